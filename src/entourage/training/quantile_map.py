"""Numbers with heavy tails, outliers or skew, brought to a normal shape by the quantiles of the training data.

A few huge values stretch the scale by which a column is standardised, so that all others lie in one point. A column
whose quantiles say so is mapped monotonically: a value becomes the normal score of its share of the training values
below it, linear between up to 128 quantiles, and growing with the logarithm beyond the smallest and the largest.
"""

from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

__all__ = ["QuantileMap", "is_heavy_tailed"]

Floats: TypeAlias = NDArray[np.float64]

KNOTS = 128
MOST_ROWS = 1_000_000  # from which quantiles are learnt; of more, every k-th
FARTHEST = 10.0  # robust standard deviations from the median, beyond which a value is an outlier
MOST_SKEWED = 5.0  # the longer tail over the shorter one, from the median to the outermost hundredths


@dataclass(frozen=True)
class QuantileMap:
    """A monotone map of some columns, by quantiles of the training data.

    Examples
    --------
    >>> values = np.exp(np.random.default_rng(0).normal(size=(10_000, 1)) * 2)
    >>> mapped = QuantileMap.fit(values, range(1))(values)
    >>> bool(abs(values).max() > 1000), bool(abs(mapped).max() < 5)
    (True, True)
    """

    places: tuple[int, ...]
    knots: tuple[Floats, ...]  # of each column, increasing
    scores: tuple[Floats, ...]  # at the knots, increasing

    @classmethod
    def fit(
        cls, values: NDArray[Any], places: Any, weights: Floats | None = None, *, every: bool = False
    ) -> Self:
        """Learn from the columns at ``places``; only those with heavy tails are mapped, unless ``every``."""
        stride = -(-len(values) // MOST_ROWS)
        own = None if weights is None else weights[::stride]
        found: list[tuple[int, Floats, Floats]] = []
        for place in places:
            distinct, shares = _distribution(np.asarray(values[::stride, place], dtype=np.float64), own)
            if len(distinct) > 2 and (every or is_heavy_tailed(distinct, shares)):
                found.append((int(place), *_knots(distinct, shares)))
        return cls(
            tuple(place for place, _, _ in found),
            tuple(knots for _, knots, _ in found),
            tuple(scores for _, _, scores in found),
        )

    def __call__(self, values: NDArray[Any]) -> Floats:
        """Return the values with these columns mapped, in double precision."""
        mapped = np.array(values, dtype=np.float64)
        for place, knots, scores in zip(self.places, self.knots, self.scores, strict=True):
            mapped[:, place] = _apply(mapped[:, place], knots, scores)
        return mapped


def is_heavy_tailed(distinct: Floats, shares: Floats) -> bool:
    """Whether a distribution has outliers, or one tail much longer than the other.

    Parameters
    ----------
    distinct : the values, increasing
    shares : of each, which sum to 1

    Examples
    --------
    >>> normal = np.sort(np.random.default_rng(0).normal(size=1000))
    >>> is_heavy_tailed(normal, np.full(1000, 1e-3)), is_heavy_tailed(np.exp(normal), np.full(1000, 1e-3))
    (False, True)
    """
    middle = np.cumsum(shares) - shares / 2
    distinct = distinct / max(np.abs(distinct).max(), 1e-300)  # nothing overflows
    lowest, low, median, high, highest = np.interp([0.01, 0.1, 0.5, 0.9, 0.99], middle, distinct)
    scale = (high - low) / 2.563  # the standard deviation, of a normal distribution
    if scale <= 0:  # nearly all values are equal
        return True
    far = max(distinct[-1] - median, median - distinct[0]) / scale
    tails = sorted([highest - median, median - lowest])
    return bool(far > FARTHEST or tails[1] > MOST_SKEWED * tails[0])


def _distribution(values: Floats, weights: Floats | None) -> tuple[Floats, Floats]:
    """Return the distinct values and their shares."""
    distinct, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    sums = counts.astype(np.float64) if weights is None else np.bincount(inverse, weights, len(distinct))
    weighted = sums > 0
    return distinct[weighted], sums[weighted] / sums.sum()


def _knots(distinct: Floats, shares: Floats) -> tuple[Floats, Floats]:
    middle = np.cumsum(shares) - shares / 2  # the share below, equal ones counted half
    first, last = float(middle[0]), float(middle[-1])
    # by share, and by score: else the few largest values lie on one stretch with an outlier, and so in one point
    by_share = np.linspace(first, last, KNOTS // 2)
    by_score = ndtr(np.linspace(ndtri(first), ndtri(last), KNOTS // 2)).clip(first, last)
    levels = np.concatenate([by_share, by_score])
    kept = np.unique(np.searchsorted(middle, levels).clip(0, len(distinct) - 1))
    kept = np.unique(np.concatenate([[0], kept, [len(distinct) - 1]]))
    return distinct[kept], ndtri(middle[kept])


def _apply(values: Floats, knots: Floats, scores: Floats) -> Floats:
    values, knots = values / 2, knots / 2  # exact, and no difference overflows
    found = np.interp(values, knots, scores)
    for end, inner, side in ((0, 1, -1.0), (-1, -2, 1.0)):
        beyond = side * (values - knots[end])
        slope = (scores[end] - scores[inner]) / (knots[end] - knots[inner])
        outside = beyond > 0
        with np.errstate(over="ignore"):
            grown = np.log1p(beyond[outside] * slope)
        huge = np.isinf(grown)
        grown[huge] = np.log(beyond[outside][huge]) + np.log(slope)
        found[outside] += side * grown
    return found
