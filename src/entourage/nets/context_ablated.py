"""The context-ablated control of a net: the same weights, every object in the same fixed context."""

import functools
from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from entourage.data.shapes import Mask, Objects, Scores
from entourage.nets.base import Net, Scorer
from entourage.nets.fate import FATEScorer
from entourage.nets.feta import FETAScorer
from entourage.nets.layers import MLP, present, score_in_tiles

__all__ = ["ContextAblated"]

Utility: TypeAlias = Callable[[Tensor, Tensor | None], Tensor]

REFERENCES = 4  # objects of the fixed context


class ContextAblated(Net):
    r"""The context-ablated control of a net: every object is scored in the same fixed context.

    .. math:: U_0(x) = U(x, C_0)

    with a context :math:`C_0` of a few reference objects, drawn once from a standard normal distribution, as the
    features are standardised. The control has the weights of the net it is made from, but the score of an object
    doesn't depend on the others of its set: what the net gains over its control is due to context, not to its size.

    Parameters
    ----------
    net : FATE(), FETA(), ...

    Notes
    -----
    Why not copies of the object itself, which need no reference? Then the part of the net that is meant
    for the context sees the object, too. Where there is no context effect, a net's context is a noisy constant, in
    which an object has a share of 1 / m only; fed with the object, the same weights fit the noise of small data: such
    a control is worse than its net, and a net seems to gain from context although there is no context effect.

    Nets other than FATE and FETA score :math:`C_0 \cup \{x\}`, as an object is part of what they aggregate.

    Examples
    --------
    >>> from entourage.nets import FATE
    >>> scorer = ContextAblated(FATE(width=8)).build(n_features=2, generator=torch.Generator().manual_seed(0))
    >>> objects = torch.rand(1, 5, 2)
    >>> torch.allclose(scorer(objects)[:, :3], scorer(objects[:, :3]))
    True
    """

    def __init__(self, net: Net) -> None:
        self.net = net

    def build(self, n_features: int, generator: torch.Generator) -> Scorer:
        """Make the module."""
        scorer = self.net.build(n_features, generator)
        count = max(
            REFERENCES, getattr(self.net, "order", 1)
        )  # a FETA of order k needs contexts of at least k others
        return _AloneScorer(scorer, torch.randn(count, n_features, generator=generator))


class _AloneScorer(Scorer):
    context: Tensor

    def __init__(self, scorer: Scorer, context: Tensor) -> None:
        super().__init__()
        self.scorer = scorer
        self.register_buffer("context", context)  # (c, d)
        self.stackable = scorer.stackable

    def in_one_piece(self, n: int, m: int) -> bool:
        return self._short_cut() is not None or self.scorer.in_one_piece(n * m, 1 + len(self.context))

    def forward(self, objects: Objects, mask: Mask | None = None) -> Scores:
        utility = self._short_cut() or self._among_references
        return present(score_in_tiles(utility, objects, mask), mask)

    def _short_cut(self) -> Utility | None:
        """Return what scores objects without scoring the references as well, for the nets that have it."""
        scorer = self.scorer
        if isinstance(scorer, FATEScorer):
            return functools.partial(_score_by_fate, scorer, self.context)
        if isinstance(scorer, FETAScorer) and scorer.pairs is not None and not len(scorer.higher):
            return functools.partial(_score_by_feta, scorer, scorer.pairs, self.context)
        return None

    def _among_references(self, objects: Tensor, mask: Tensor | None) -> Tensor:
        n, t, d = objects.shape
        references = self.context.expand(n * t, -1, -1)
        in_context = torch.cat([objects.reshape(n * t, 1, d), references], dim=1)  # (n t, 1 + c, d)
        valid = None if mask is None else mask.reshape(n * t, 1).expand(-1, in_context.shape[1])
        scores: Tensor = self.scorer(in_context, valid)
        return scores[:, :1].reshape(n, t, 1)


def _score_by_fate(scorer: FATEScorer, context: Tensor, objects: Tensor, mask: Tensor | None) -> Tensor:
    aggregated = scorer.embedding(context[None]).mean(1, keepdim=True)  # (1, 1, k)
    own, rest = scorer.joint.first(objects, aggregated)
    return scorer.joint.after_first(own + rest, mask)  # (n, t, 1)


def _score_by_feta(
    scorer: FETAScorer, pairs: MLP, context: Tensor, objects: Tensor, mask: Tensor | None
) -> Tensor:
    left, right = pairs.first(objects, context)  # (n, t, h), (c, h)
    valid = None if mask is None else mask[:, :, None].expand(-1, -1, len(right))
    values = pairs.after_first(left[:, :, None] + right, valid)  # (n, t, c, 1)
    values = torch.sigmoid(values) if scorer.squash else values
    own: Tensor = scorer.alone(objects, mask)
    return own + values.mean(2)
