"""The blind twin of a net: what a net is worth more than its twin is worth of context."""

import torch

from entourage.axes import Mask, Objects, Scores
from entourage.nets.base import Net, Scorer

__all__ = ["Alone"]


class Alone(Net):
    r"""The twin of a net, blind to context: each object is scored in the company of copies of itself.

    .. math:: U_0(x) = U(x, \{x, \ldots, x\})

    It has the weights of the net it is made from, all of them in use, but the score of an object no
    longer depends on the others: what the net is worth more than its twin is worth of context.

    Parameters
    ----------
    net : FATE(), FETA(), ...

    Examples
    --------
    >>> from entourage.nets import FATE
    >>> scorer = Alone(FATE(width=8)).build(n_features=2, generator=torch.Generator().manual_seed(0))
    >>> objects = torch.rand(1, 5, 2)
    >>> torch.allclose(scorer(objects)[:, :3], scorer(objects[:, :3]))
    True
    """

    def __init__(self, net: Net) -> None:
        self.net = net

    def build(self, n_features: int, generator: torch.Generator) -> Scorer:
        """Make the module."""
        company = getattr(self.net, "order", 1)  # a FETA of order k looks at k others at a time
        return _AloneScorer(self.net.build(n_features, generator), copies=1 + company)


class _AloneScorer(Scorer):
    def __init__(self, scorer: Scorer, *, copies: int) -> None:
        super().__init__()
        self.scorer, self.copies = scorer, copies
        self.stackable = scorer.stackable

    def in_one_piece(self, n: int, m: int) -> bool:
        return self.scorer.in_one_piece(n * m, self.copies)

    def forward(self, objects: Objects, mask: Mask | None = None) -> Scores:
        n, m, d = objects.shape
        alike = objects.reshape(n * m, 1, d).expand(-1, self.copies, -1)  # (n m, copies, d)
        there = None if mask is None else mask.reshape(n * m, 1).expand(-1, self.copies)
        scores: torch.Tensor = self.scorer(alike, there)
        return scores[:, 0].reshape(n, m)
