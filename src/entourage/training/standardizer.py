"""Features standardised to mean 0 and variance 1 on the training data."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from entourage.data.sets import Sets

__all__ = ["Standardizer"]

ROUNDING = 1e-14  # of the largest value: what varies by less doesn't vary


@dataclass(frozen=True)
class Standardizer:
    """Means and scales of the objects' features and, where there are such, of the situation's.

    All in double precision, from the values as they came: differences of a minute in a column of Unix times are not
    lost to rounding. A feature that doesn't vary in the training data has an infinite scale: it becomes 0 whatever
    its value is later, since its effect is not identified.

    Examples
    --------
    >>> sets = Sets.of(np.array([[[1.0, 5.0], [3.0, 5.0]]]))
    >>> standardise = Standardizer.fit(sets)
    >>> standardise(sets).objects.tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    >>> standardise(Sets.of(np.array([[[1.0, 9.0]]]))).objects.tolist()
    [[-1.0, 0.0]]
    """

    means: tuple[NDArray[np.float64], ...]
    scales: tuple[NDArray[np.float64], ...]

    @classmethod
    def fit(
        cls,
        sets: Sets,
        enabled: bool = True,
        leave: Sequence[int] = (),
        *,
        weights: NDArray[np.float64] | None = None,
        ignore_constant: bool = True,
    ) -> Self:
        """Learn means and scales.

        Parameters
        ----------
        sets : what to learn from
        enabled : if not, features stay as they are, but for constant ones
        leave : the places of features that stay as they are: codes
        weights : one a set
        ignore_constant : whether features that don't vary become 0; otherwise their scale is 1, for models that
            will learn from more sets
        """
        of_objects = None if weights is None else np.repeat(weights, sets.sizes)
        parts = [(sets.objects, of_objects)]
        parts += [] if sets.situation is None else [(sets.situation, weights)]
        means, scales = [], []
        for values, own in parts:
            mean, spread, varies = _moments(values, own)
            means.append(mean if enabled else np.zeros_like(mean))
            constant = np.inf if ignore_constant else 1.0
            scales.append(np.where(varies, spread if enabled else 1.0, constant))
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


def _moments(
    values: NDArray[Any], weights: NDArray[np.float64] | None, rows: int = 1 << 18
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Return mean, standard deviation and whether it varies, of each column; two passes in bounded memory."""
    pieces = [slice(start, start + rows) for start in range(0, len(values), rows)]
    lowest = np.min([values[piece].min(0) for piece in pieces], axis=0).astype(np.float64)
    highest = np.max([values[piece].max(0) for piece in pieces], axis=0).astype(np.float64)
    middle, unit = lowest / 2 + highest / 2, highest / 2 - lowest / 2
    varies = unit > 0
    unit = np.where(varies, unit, 1.0)
    total = float(len(values)) if weights is None else float(weights.sum())

    def mean_of(power: int, centre: Any) -> NDArray[np.float64]:
        found = np.zeros(values.shape[1])
        for piece in pieces:
            scaled = (
                values[piece].astype(np.float64) - middle
            ) / unit - centre  # in [-2, 2]: no square overflows
            found += (scaled**power).sum(0) if weights is None else weights[piece] @ scaled**power
        return found / total

    mean = mean_of(1, 0.0)
    spread = np.sqrt(mean_of(2, mean))
    largest = np.maximum(np.abs(lowest), np.abs(highest))
    varies &= unit * spread > ROUNDING * largest  # of a constant; with weights, what varies may weigh nothing
    return middle + unit * mean, unit * np.where(varies, spread, 1.0), varies
