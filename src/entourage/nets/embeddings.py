"""Categorical features: a learnt embedding vector for each level."""

import math
from collections.abc import Sequence

import torch
from torch import nn

from entourage.data.shapes import Mask, Objects, Scores
from entourage.errors import check_number
from entourage.nets.base import Net, Scorer

__all__ = ["build_with_categories", "vector_size"]


def vector_size(levels: int) -> int:
    """Return the size of the embedding of one of so many levels: about the root of their number, at most 16."""
    return min(16, max(2, math.isqrt(levels)))


def build_with_categories(
    net: Net, n_features: int, categories: Sequence[tuple[int, int]], generator: torch.Generator
) -> Scorer:
    """Build a net for objects some of whose features are codes of levels.

    Parameters
    ----------
    net : what sees the vectors of the levels in place of the codes
    n_features : how many features objects have, the codes included
    categories : for each such feature its place and the number of its levels; a code is 1 to that number, and 0
        (or anything else) is a level that was never seen, whose vector is 0
    generator : draws the initial weights

    Examples
    --------
    >>> from entourage.nets import ContextFree
    >>> scorer = build_with_categories(ContextFree(), 3, [(2, 100)], torch.Generator().manual_seed(0))
    >>> scorer(torch.tensor([[[0.5, 0.1, 7.0], [0.2, 0.3, 99.0]]])).shape
    torch.Size([1, 2])
    """
    if not categories:
        return net.build(n_features, generator)
    for place, levels in categories:
        check_number("the place of a category", place, least=0, below=n_features, whole=True)
        check_number("the levels of a category", levels, least=1, whole=True)
    wider = sum(vector_size(levels) for _, levels in categories)
    inner = net.build(n_features - len(categories) + wider, generator)
    return _WithCategories(inner, n_features, categories, generator)


class _WithCategories(Scorer):
    def __init__(
        self,
        scorer: Scorer,
        n_features: int,
        categories: Sequence[tuple[int, int]],
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.scorer = scorer
        self.stackable = scorer.stackable
        self.places = [place for place, _ in categories]
        self.levels = [levels for _, levels in categories]
        taken = set(self.places)
        self.numbers = [i for i in range(n_features) if i not in taken]
        self.vectors = nn.ParameterList(
            torch.randn(levels, vector_size(levels), generator=generator) for levels in self.levels
        )

    def in_one_piece(self, n: int, m: int) -> bool:
        return self.scorer.in_one_piece(n, m)

    def forward(self, objects: Objects, mask: Mask | None = None) -> Scores:
        parts = [objects[..., self.numbers]]
        for place, levels, vectors in zip(self.places, self.levels, self.vectors, strict=True):
            code = objects[..., place].round().long()
            seen = (code >= 1) & (code <= levels)
            found = vectors[(code - 1).clamp(0, levels - 1)]  # (n, m, v)
            parts.append(torch.where(seen.unsqueeze(-1), found, 0.0))
        scores: Scores = self.scorer(torch.cat(parts, dim=-1), mask)
        return scores
