"""A net in two parts: its description (`Net`), and the module that is built from it (`Scorer`)."""

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from sklearn.base import BaseEstimator
from torch import Tensor, nn

from entourage.data.shapes import Mask, Objects, Scores
from entourage.nets.layers import Dropout, MaskedBatchNorm

__all__ = ["Net", "Scorer"]


class Scorer(nn.Module, ABC):
    """A generalised utility U(x, C): a batch of sets in, one score for each object out.

    Shuffling the objects of a set shuffles their scores; padding changes none. The tests hold every
    registered net to that.
    """

    stackable = True  # whether one kernel can serve several nets: what is computed depends on shapes only
    weights_by_set = False  # whether each set may have weights of its own; see `entourage.nets.layers.MLP`

    def in_one_piece(self, n: int, m: int) -> bool:
        """Whether a training batch of n sets of m objects is computed at once, not in tiles to save memory."""
        return True

    def dropouts(self) -> list[Dropout]:
        """Return the dropout layers."""
        return [module for module in self.modules() if isinstance(module, Dropout)]

    @property
    def drops_out(self) -> bool:
        """Whether the net has dropout."""
        return any(layer.share > 0 for layer in self.dropouts())

    def draw_from(self, generator: torch.Generator | None) -> None:
        """Set the generator of dropout, for whole batches; None for no dropout."""
        for layer in self.dropouts():
            layer.generator, layer.part = generator, None

    def draw_for(self, total: int, share: slice) -> None:
        """Let dropout draw for so many sets and take this share: what comes then are these sets alone."""
        for layer in self.dropouts():
            layer.part = total, share

    def sum_statistics_by(self, total: Callable[[Tensor], Tensor] | None) -> None:
        """Let batch normalisation add up its sums over processes that share a batch; None for one process."""
        for module in self.modules():
            if isinstance(module, MaskedBatchNorm):
                module.total = total

    @abstractmethod
    def forward(self, objects: Objects, mask: Mask | None = None) -> Scores:
        """Score ``objects (n, m, d)``; ``mask (n, m)`` is False in the padding, which scores 0."""


class Net(BaseEstimator, ABC):  # type: ignore[misc]
    """The description of a net: its constructor stores, `build` checks and makes the module.

    It knows neither the number of features nor the task, so that one description serves any data.
    """

    @abstractmethod
    def build(self, n_features: int, generator: torch.Generator) -> Scorer:
        """Make the module for objects of ``n_features``, its weights drawn from ``generator``."""
