"""Features standardised to mean 0 and variance 1 on the training data."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Standardizer"]

Floats: TypeAlias = NDArray[np.float64]

ROUNDING = 1e-14  # of the largest value: what varies by less doesn't vary
RAREST = 0.2  # of its range: the smallest scale of a column of two values, such as a rare level of a category


@dataclass(frozen=True)
class Standardizer:
    """Means and scales of the objects' features and, where there are such, of the situation's.

    All in double precision, from the values as they came: differences of a minute in a column of Unix times are not
    lost to rounding. A feature that doesn't vary in the training data has an infinite scale: it becomes 0 whatever
    its value is later, since its effect is not identified. A column of two values of which one is rare, such as an
    indicator of a rare level, is scaled by a fifth of its range at least: else the rare value would be huge.

    Examples
    --------
    >>> objects = np.array([[1.0, 5.0], [3.0, 5.0]])
    >>> standardise = Standardizer.fit(lambda: iter([objects]))
    >>> standardise(objects, 0).tolist(), standardise(np.array([[1.0, 9.0]]), 0).tolist()
    ([[-1.0, 0.0], [1.0, 0.0]], [[-1.0, 0.0]])
    """

    means: tuple[Floats, ...]
    scales: tuple[Floats, ...]

    @classmethod
    def fit(
        cls,
        objects: Callable[[], Iterator[NDArray[Any]]],
        situation: NDArray[Any] | None = None,
        enabled: bool = True,
        leave: Sequence[int] = (),
        *,
        weights: Floats | None = None,
        sizes: NDArray[np.int64] | None = None,
        ignore_constant: bool = True,
    ) -> Self:
        """Learn means and scales.

        Parameters
        ----------
        objects : iterates over the features of all objects, some rows at a time; called for each pass
        situation : features of the situations, (sets, features)
        enabled : if not, features stay as they are, but for constant ones
        leave : the places of features that stay as they are: codes
        weights, sizes : one a set; without sizes every set has one object
        ignore_constant : whether features that don't vary become 0; otherwise their scale is 1, for models that
            will learn from more sets
        """
        of_objects = weights if weights is None or sizes is None else np.repeat(weights, sizes)
        parts = [(objects, of_objects)]
        if situation is not None:
            shared = situation
            parts.append((lambda: iter([shared]), weights))
        means, scales = [], []
        for pieces, own in parts:
            mean, spread, varies = _moments(pieces, own)
            means.append(mean if enabled else np.zeros_like(mean))
            constant = np.inf if ignore_constant else 1.0
            scales.append(np.where(varies, spread if enabled else 1.0, constant))
        for place in leave:
            means[0][place], scales[0][place] = 0.0, 1.0
        return cls(tuple(means), tuple(scales))

    def __call__(self, values: NDArray[Any], part: int) -> NDArray[np.float32]:
        """Return standardised float32 features, of objects (part 0) or of situations (part 1)."""
        with np.errstate(over="ignore"):  # beyond float32: infinite, and refused once it is scored
            scaled = values - self.means[part]  # in double precision
            scaled /= self.scales[part]
            return scaled.astype(np.float32)


def _moments(
    pieces: Callable[[], Iterator[NDArray[Any]]], weights: Floats | None
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Return mean, standard deviation and whether it varies, of each column; three passes in bounded memory."""
    ends = [(values.min(0), values.max(0), len(values)) for values in pieces()]
    lowest = np.min([low for low, _, _ in ends], axis=0).astype(np.float64)
    highest = np.max([high for _, high, _ in ends], axis=0).astype(np.float64)
    rows = sum(count for _, _, count in ends)
    middle, unit = lowest / 2 + highest / 2, highest / 2 - lowest / 2
    varies = unit > 0
    unit = np.where(varies, unit, 1.0)
    total = float(rows) if weights is None else float(weights.sum())
    two_valued = np.ones(len(unit), dtype=bool)

    def mean_of(power: int, centre: Any) -> Floats:
        found, at = np.zeros(len(unit)), 0
        for values in pieces():
            scaled = (values.astype(np.float64) - middle) / unit - centre  # in [-2, 2]: no square overflows
            own = None if weights is None else weights[at : at + len(values)]
            found += (scaled**power).sum(0) if own is None else own @ scaled**power
            at += len(values)
            if power == 1:
                np.logical_and(two_valued, (np.abs(scaled) == 1.0).all(0), out=two_valued)
        return found / total

    mean = mean_of(1, 0.0)
    spread = np.sqrt(mean_of(2, mean))
    largest = np.maximum(np.abs(lowest), np.abs(highest))
    varies &= unit * spread > ROUNDING * largest  # of a constant; with weights, what varies may weigh nothing
    spread = np.where(two_valued, np.maximum(spread, 2 * RAREST), spread)  # units are half a range
    return middle + unit * mean, unit * np.where(varies, spread, 1.0), varies
