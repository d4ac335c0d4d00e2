"""Sums over each set of packed values, and what the models make of them."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self, TypeAlias

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
    "softmax_information",
    "softmax_terms",
    "sum_by",
]

Floats: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.int64]

ROUNDING = 1e-14  # of the largest value: what differs by less doesn't differ


@dataclass(frozen=True, eq=False)
class Packed:
    """What the utility of each object is made of, (N, p), the objects of a set side by side."""

    whole: ClassVar[bool] = False  # whether it can't be cut into parts

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
        within = whole.features - (whole.sum(whole.features) / whole.sizes[:, None])[whole.owner]
        rounding = ROUNDING * np.abs(whole.features).max(
            0
        )  # what is left of a column that never differs in a set
        within[:, np.abs(within).max(0) <= rounding] = 0.0
        return cls(within, sets.offsets)

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

    def part(self, start: int, stop: int) -> "Packed":
        """Return some of the sets, from ``start`` to ``stop``."""
        offsets = self.offsets[start : stop + 1]
        return Packed(self.features[offsets[0] : offsets[-1]], offsets - offsets[0])

    def log_softmax(self, utilities: Floats) -> Floats:
        """Return log-probabilities: softmax over each set, (N, ...)."""
        shifted = utilities - np.maximum.reduceat(utilities, self.starts, axis=0)[self.owner]
        return np.asarray(shifted - log_sum_exp(shifted, self.starts)[self.owner])

    def spread(self, values: Floats) -> Floats:
        """How much each column of (N, p) differs within sets: its standard deviation there; 1 where it doesn't."""
        if values.shape[1] == 0:
            return np.ones(0)
        centred = values - (self.sum(values) / self.sizes[:, None])[self.owner]
        found = np.sqrt((centred**2).mean(0))
        nothing = found <= ROUNDING * np.abs(values).max(0)
        return np.where(nothing, 1.0, found)


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
