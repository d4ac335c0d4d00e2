"""Means over sets with their bootstrap intervals, and samples of what is measured."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from entourage.data.resampling import bootstrap_interval
from entourage.data.sets import Seed

__all__ = ["Estimate", "draw_at_most"]

Floats: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class Estimate:
    """A mean over sets of one fitted model, with its bootstrap interval over sets.

    The interval is about other sets and the same model. For an interval that includes fitting the model to other
    people, see :func:`entourage.effects.refit_resampled`.

    Attributes
    ----------
    values : one a set, NaN where a set has none
    groups : one label a set; sets of one label are resampled together

    Examples
    --------
    >>> Estimate(np.array([0.2, 0.4, 0.5, 0.7, 0.9, 0.9]))
    Estimate(0.6, 95 % from 0.383333 to 0.783333, 6 sets)
    """

    values: Floats
    groups: Index | None = None

    @property
    def value(self) -> float:
        """The mean."""
        return float(np.nanmean(self.values))

    @property
    def n(self) -> int:
        """How many sets have a value."""
        return int((~np.isnan(self.values)).sum())

    def interval(
        self, level: float = 0.05, *, resamples: int = 2000, random_state: Seed = 0
    ) -> tuple[float, float]:
        """Return the confidence interval of 1 - level; see :func:`entourage.data.resampling.bootstrap_interval`."""
        return bootstrap_interval(
            self.values, self.groups, level=level, resamples=resamples, random_state=random_state
        )

    def to_json(self, level: float = 0.05) -> dict[str, Any]:
        """Return mean, interval and number of sets; the interval of a single set or group is None."""
        known = ~np.isnan(self.values)
        units = self.n if self.groups is None else len(np.unique(self.groups[known]))
        return {
            "value": self.value,
            "interval": list(self.interval(level)) if units > 1 else None,
            "n": self.n,
        }

    def __repr__(self) -> str:
        ends = self.to_json()["interval"]
        sure = f"95 % from {ends[0]:.6g} to {ends[1]:.6g}, " if ends else ""
        if self.groups is None:
            return f"Estimate({self.value:.6g}, {sure}{self.n} set{'s' * (self.n != 1)})"
        return f"Estimate({self.value:.6g}, {sure}{self.n} values in {len(np.unique(self.groups))} groups)"


def draw_at_most(places: Index, most: int, rng: np.random.Generator) -> Index:
    """Return all places, or ``most`` of them drawn at random, in order."""
    return places if len(places) <= most else np.sort(rng.choice(places, most, replace=False))
