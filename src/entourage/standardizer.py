"""Features brought to mean 0 and variance 1, by the data that was learnt from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

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

    @property
    def n_features(self) -> tuple[int, int]:
        """How many features objects have, and how many situations have."""
        return len(self.means[0]), len(self.means[1]) if len(self.means) > 1 else 0
