"""Sums over each set of packed values, and what the models make of them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from entourage.data.sets import Sets
from entourage.errors import DataError

__all__ = [
    "Floats",
    "Index",
    "Packed",
    "codes_of",
    "log_sum_exp",
    "rows_at_once",
    "softmax_information",
    "softmax_terms",
    "stretches",
    "sum_by",
]

Floats: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.int64]

ROUNDING = 1e-14  # of the largest value: what differs by less doesn't differ
AT_ONCE = 200_000  # objects of a batch
MOST_NUMBERS = 20_000_000  # of their slopes: objects times parameters


@dataclass(frozen=True, eq=False)
class Packed:
    """What the utility of each object is made of, (N, p), the objects of a set side by side."""

    features: Floats
    offsets: Index

    @classmethod
    def of(cls, sets: Sets) -> Self:
        """Take the objects as they are, in double precision."""
        return cls(sets.objects.astype(np.float64), sets.offsets)

    @classmethod
    def centred(cls, sets: Sets) -> Self:
        """Take the objects less the mean of their set: what all share cancels, and would cost precision."""
        whole = cls.of(sets)
        largest = _largest(whole.features)
        for part in whole.parts(rows_at_once(1)):
            part.features[:] -= (part.sum(part.features) / part.sizes[:, None])[part.owner]
        rounding = ROUNDING * largest  # what is left of a column that never differs in a set
        whole.features[:, _largest(whole.features) <= rounding] = 0.0
        return whole

    @classmethod
    def shared(cls, sets: Sets) -> Floats:
        """Return what `centred` takes away from the objects of each set, (n, p)."""
        return np.asarray((cls.of(sets).features - cls.centred(sets).features)[sets.offsets[:-1]])

    @cached_property
    def starts(self) -> Index:
        """The first row of each set, (n,)."""
        return self.offsets[:-1]

    @cached_property
    def sizes(self) -> Index:
        """How many objects each set has, (n,)."""
        return np.diff(self.offsets)

    @cached_property
    def owner(self) -> Index:
        """The set of each object, (N,)."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @cached_property
    def others(self) -> Floats:
        """The sum of the features of the other objects of the set, for each object, (N, p)."""
        return self.sum(self.features)[self.owner] - self.features

    def sum(self, values: Floats) -> Floats:
        """Sum over the objects of each set: (N, ...) to (n, ...)."""
        return np.asarray(np.add.reduceat(values, self.starts, axis=0))

    @property
    def ends(self) -> Index:
        """Where the rows of each set end, from 0 on, (n + 1,); those of each person of a panel."""
        return self.offsets

    def part(self, start: int, stop: int) -> Self:
        """Return some of the sets, from ``start`` to ``stop``; of a panel, some of the people."""
        offsets = self.offsets[start : stop + 1]
        return replace(self, features=self.features[offsets[0] : offsets[-1]], offsets=offsets - offsets[0])

    def parts(self, most: int) -> Iterator[Self]:
        """Cut into parts of at most so many rows, or of one set or person."""
        return (self.part(start, stop) for start, stop in stretches(self.ends, most))

    def rows_of(self, chosen: Index) -> Index:
        """Return where the chosen objects of the input are."""
        return chosen

    def chosen_in(self, rows: Index, start: int, stop: int) -> Index:
        """Return what was chosen in a part, given what `rows_of` returned for all."""
        return np.asarray(rows[start:stop] - self.offsets[start])

    def log_softmax(self, utilities: Floats) -> Floats:
        """Return log-probabilities: softmax over each set, (N, ...)."""
        shifted = utilities - np.maximum.reduceat(utilities, self.starts, axis=0)[self.owner]
        total = np.log(np.add.reduceat(np.exp(shifted), self.starts, axis=0))
        return np.asarray(shifted - total[self.owner])

    def spread(self, values_of: Callable[[Any], Floats] | None = None, width: int = 1) -> Floats:
        """How much each feature differs within sets: its standard deviation there; 1 where it doesn't.

        With ``values_of``, how much each of so many columns differs that this returns for a part.
        """
        squares, largest = np.zeros(1), np.zeros(1)
        for part in self.parts(rows_at_once(width)):
            values = part.features if values_of is None else values_of(part)
            centred = values - (part.sum(values) / part.sizes[:, None])[part.owner]
            squares = squares + (centred**2).sum(0)
            largest = np.maximum(largest, _largest(values))
        found = np.sqrt(squares / len(self.features))
        nothing = found <= ROUNDING * largest
        return np.where(nothing, 1.0, found)


def rows_at_once(n_parameters: int) -> int:
    """Return how many rows are computed at once at most."""
    return max(1, min(AT_ONCE, MOST_NUMBERS // max(n_parameters, 1)))


def stretches(ends: Index, most: int) -> Iterator[tuple[int, int]]:
    """Cut units whose rows end at ``ends`` into stretches of at most ``most`` rows, or of one unit.

    Examples
    --------
    >>> import numpy as np
    >>> list(stretches(np.array([0, 2, 4, 9, 10]), 4))
    [(0, 2), (2, 3), (3, 4)]
    """
    start, last = 0, len(ends) - 1
    while start < last:
        reach = int(np.searchsorted(ends, ends[start] + most, side="right")) - 1
        stop = min(max(reach, start + 1), last)
        yield start, stop
        start = stop


def _largest(values: Floats) -> Floats:
    """Return the largest absolute value of each column, without a copy of all."""
    return np.asarray(np.maximum(values.max(0), -values.min(0)))


def log_sum_exp(values: Floats, starts: Index) -> Floats:
    """Return the logarithm of the sum of exponentials over stretches of rows that begin at ``starts``."""
    highest = np.maximum.reduceat(values, starts, axis=0)
    sizes = np.diff(np.append(starts, len(values)))
    powers = np.exp(values - np.repeat(highest, sizes, axis=0))
    return np.asarray(np.log(np.add.reduceat(powers, starts, axis=0)) + highest)


def sum_by(groups: Index, values: Floats) -> Floats:
    """Sum the rows of each group, which are counted from 0 without a gap: (n, ...) to (g, ...)."""
    starts = np.cumsum(np.bincount(groups)) - np.bincount(groups)
    return np.asarray(np.add.reduceat(values[np.argsort(groups, kind="stable")], starts, axis=0))


def softmax_terms(utilities: Floats, slopes: Floats, packed: Packed, chosen: Index) -> tuple[Floats, Floats]:
    """Return each set's log-likelihood (n,) and its gradient (n, p), given those of the utilities (N, p)."""
    log_p = packed.log_softmax(utilities)
    return log_p[chosen], slopes[chosen] - packed.sum(np.exp(log_p)[:, None] * slopes)


def softmax_information(utilities: Floats, slopes: Floats, packed: Packed, weights: Floats) -> Floats:
    """Return the Fisher information (p, p): for utilities linear in the parameters, minus the Hessian."""
    p = np.exp(packed.log_softmax(utilities))
    mean = packed.sum(p[:, None] * slopes)
    centred = slopes - mean[packed.owner]
    return np.asarray((centred * (p * weights[packed.owner])[:, None]).T @ centred)


def codes_of(column: NDArray[np.floating], n_alternatives: int, packed: Packed) -> Index:
    """Return which alternative each object is, from 0; ids run from 1."""
    strange = (column != np.round(column)) | (column < 1) | (column > n_alternatives)
    if strange.any():
        row = int(np.argmax(strange))
        i = int(packed.owner[row])
        raise DataError(
            f"The id of an alternative is a whole number from 1 to {n_alternatives}; set {i}, object "
            f"{row - packed.starts[i]} has {column[row]:g}. Number the alternatives from 1."
        )
    return column.astype(np.int64) - 1
