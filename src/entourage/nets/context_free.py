"""The context-free utility of an object: what every classical ranker learns."""

import torch

from entourage.data.shapes import Mask, Objects, Scores
from entourage.nets.base import Net, Scorer
from entourage.nets.layers import MLP, present, score_in_tiles

__all__ = ["ContextFree"]


class ContextFree(Net):
    """The context-free utility U(x) of an object: it doesn't depend on the others of the choice set.

    Under ``loss="logistic"`` this is RankNet, under ``loss="listnet"`` ListNet; ``depth=0`` is a
    linear utility.

    Parameters
    ----------
    width, depth : int
        Units in a hidden layer, and how many hidden layers.
    activation : {"relu", "selu", "gelu"}
    norm : {"none", "batch", "layer"}
        Normalisation before each activation. The paper uses "relu" with "batch", or "selu" with
        "none"; "gelu" with "layer" is what transformers do.

    Examples
    --------
    >>> net = ContextFree(width=16).build(n_features=2, generator=torch.Generator().manual_seed(0))
    >>> net(torch.zeros(4, 5, 2)).shape
    torch.Size([4, 5])
    """

    def __init__(
        self, width: int = 128, depth: int = 2, *, activation: str = "relu", norm: str = "none"
    ) -> None:
        self.width = width
        self.depth = depth
        self.activation = activation
        self.norm = norm

    def build(self, n_features: int, generator: torch.Generator) -> Scorer:
        """Make the module."""
        return _ContextFreeScorer(
            MLP(
                n_features,
                1,
                depth=self.depth,
                width=self.width,
                activation=self.activation,
                norm=self.norm,
                generator=generator,
            )
        )


class _ContextFreeScorer(Scorer):
    weights_by_set = True

    def __init__(self, utility: MLP) -> None:
        super().__init__()
        self.utility = utility

    def forward(self, objects: Objects, mask: Mask | None = None) -> Scores:
        return present(score_in_tiles(self.utility.forward, objects, mask), mask)
