"""Features brought to mean 0 and variance 1, by the data that was learnt from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from entourage.sets import Sets

__all__ = ["Standardizer"]


@dataclass(frozen=True)
class Standardizer:
    """Means and scales of the objects' features and, where there are such, of the situation's.

    Examples
    --------
    >>> sets = Sets.of(np.array([[[1.0, 5.0], [3.0, 5.0]]]))
    >>> Standardizer.fit(sets)(sets).objects.tolist()  # a constant feature becomes 0
    [[-1.0, 0.0], [1.0, 0.0]]
    """

    means: tuple[NDArray[np.float64], ...]
    scales: tuple[NDArray[np.float64], ...]

    @classmethod
    def fit(cls, sets: Sets, enabled: bool = True, leave: Sequence[int] = ()) -> Self:
        """Learn means and scales; if not ``enabled``, features stay as they are, as those in ``leave`` do."""
        parts = [sets.objects] if sets.situation is None else [sets.objects, sets.situation]
        if not enabled:
            return cls(*zip(*((np.zeros(p.shape[1]), np.ones(p.shape[1])) for p in parts), strict=True))
        means, scales = [], []
        for part in parts:
            if isinstance(part, np.memmap):
                mean, scale = _in_pieces(part)
                means.append(mean)
                scales.append(scale)
                continue
            largest = np.abs(part).max(0).astype(np.float64)
            unit = part / np.where(largest > 0, largest, 1.0)  # so that no square overflows
            mean, spread = unit.mean(0), unit.std(0)
            varies = spread > 1e-12 * np.abs(mean)  # more than rounding leaves of a constant feature
            means.append(mean * largest)
            scales.append(np.where(varies, spread * largest, 1.0))
        for place in leave:
            means[0][place], scales[0][place] = 0.0, 1.0
        return cls(tuple(means), tuple(scales))

    def __call__(self, sets: Sets) -> Sets:
        """Return the same sets with standardised float32 features."""
        situation = None if sets.situation is None else self._apply(sets.situation, 1)
        return sets.with_features(self._apply(sets.objects, 0), situation)

    def _apply(self, values: NDArray[Any], part: int) -> NDArray[np.float32]:
        with np.errstate(over="ignore"):  # beyond float32: infinite, and refused once it is scored
            return ((values - self.means[part]) / self.scales[part]).astype(np.float32)

    def situations(self, sets: Sets) -> Sets:
        """Return the same sets with standardised situations, their objects as they are."""
        situation = None if sets.situation is None else self._apply(sets.situation, 1)
        return sets.with_features(sets.objects, situation)

    def on_batch(self, objects: Tensor) -> Tensor:
        """Standardise gathered objects, for sets whose features stay on disk."""
        means, scales = (torch.from_numpy(values[0]) for values in (self.means, self.scales))
        return ((objects.double() - means) / scales).float()

    @property
    def n_features(self) -> tuple[int, int]:
        """How many features objects have, and how many situations have."""
        return len(self.means[0]), len(self.means[1]) if len(self.means) > 1 else 0


def _in_pieces(part: NDArray[Any], rows: int = 1 << 18) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean and scale of features that are too many to hold, in two passes."""
    pieces = [slice(start, start + rows) for start in range(0, len(part), rows)]
    mean = sum(part[piece].sum(0, dtype=np.float64) for piece in pieces) / len(part)
    square = sum(np.square(part[piece] - mean).sum(0) for piece in pieces) / len(part)
    spread = np.sqrt(square)
    return mean, np.where(spread > 1e-7 * np.abs(mean), spread, 1.0)
