"""Categorical features: a learnt embedding vector for each level."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from entourage.data.shapes import Mask, Objects, Scores
from entourage.errors import check_number
from entourage.nets.base import Net, Scorer
from entourage.nets.layers import runs_of

__all__ = ["build_with_categories", "vector_size"]

RARE = 5.0  # a level seen so often has half its vector
START = 0.05  # the size of initial vectors: at first a level counts hardly more than one never seen


def vector_size(levels: int) -> int:
    """Return the size of the embedding of one of so many levels: about the root of their number, at most 16."""
    return min(16, max(2, math.isqrt(levels)))


def build_with_categories(
    net: Net,
    n_features: int,
    categories: Sequence[tuple[int, int]],
    generator: torch.Generator,
    counts: Sequence[Sequence[int]] = (),
) -> Scorer:
    """Build a net for objects some of whose features are codes of levels.

    Parameters
    ----------
    net : what sees the vectors of the levels in place of the codes
    n_features : how many features objects have, the codes included
    categories : for each such feature its place and the number of its levels; a code is 1 to that number, and 0
        (or anything else) is a level that was never seen, whose vector is 0
    generator : draws the initial weights
    counts : for each category, how often each level was seen: the vector of a level seen n times is shrunk by
        n / (n + 5) towards that of a level never seen. Without counts none is shrunk

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
    return _WithCategories(inner, n_features, categories, generator, counts)


class _WithCategories(Scorer):
    def __init__(
        self,
        scorer: Scorer,
        n_features: int,
        categories: Sequence[tuple[int, int]],
        generator: torch.Generator,
        counts: Sequence[Sequence[int]],
    ) -> None:
        super().__init__()
        self.scorer = scorer
        self.stackable = scorer.stackable
        self.places = [place for place, _ in categories]
        self.levels = [levels for _, levels in categories]
        taken = set(self.places)
        self.numbers = runs_of([i for i in range(n_features) if i not in taken])
        self.vectors = nn.ParameterList(
            START * torch.randn(levels, vector_size(levels), generator=generator) for levels in self.levels
        )
        often = [torch.tensor(seen, dtype=torch.float32, device="cpu").unsqueeze(-1) for seen in counts]
        # no buffers: they follow from the data and are the same for all members of a stack
        self._shrinkage = {torch.device("cpu"): [n / (n + RARE) for n in often]}

    def _shrunk(self, i: int) -> Tensor:
        """Return the vectors of a category, those of rare levels shrunk, (levels, v)."""
        vectors: Tensor = self.vectors[i]
        here = self._shrinkage.get(vectors.device)
        if here is None:
            here = [share.to(vectors.device) for share in self._shrinkage[torch.device("cpu")]]
            self._shrinkage[vectors.device] = here
        return vectors * here[i] if here else vectors

    def in_one_piece(self, n: int, m: int) -> bool:
        return self.scorer.in_one_piece(n, m)

    def forward(self, objects: Objects, mask: Mask | None = None) -> Scores:
        parts = [objects[..., begin:end] for begin, end in self.numbers]
        for i, (place, levels) in enumerate(zip(self.places, self.levels, strict=True)):
            code = objects[..., place].round().long()
            seen = (code >= 1) & (code <= levels)
            found = self._shrunk(i)[(code - 1).clamp(0, levels - 1)]  # (n, m, v)
            parts.append(torch.where(seen.unsqueeze(-1), found, 0.0))
        scores: Scores = self.scorer(torch.cat(parts, dim=-1), mask)
        return scores
