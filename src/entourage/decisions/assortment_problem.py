"""What may be offered, to whom, and the value of an offered set: the problem that `best_assortment` solves."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entourage.data.sets import Sets
from entourage.decisions.candidates import Candidates
from entourage.decisions.market import Market
from entourage.errors import ParameterError, ShapeError, check_choice, check_number

__all__ = ["OBJECTIVES", "AssortmentProblem", "make_problem", "positions_among", "weights_of_situations"]

Floats: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.int64]

OBJECTIVES = ("revenue", "share", "surplus")
_AT_ONCE = 1 << 21  # numbers in the objects of one batch, so that memory stays bounded


@dataclass(frozen=True, eq=False)
class AssortmentProblem:
    """Candidates, the situations in which a set of them is offered, and the constraints on the set.

    Attributes
    ----------
    market : the choice probabilities
    candidates : the m objects, in each situation
    weights : of the situations, with sum 1, (s,)
    value : what a choice of each object is worth, (1, m) or (s, m)
    objective : "revenue", "share" or "surplus"
    required, free : positions of the objects that every set has, and of those that it may have
    low, high : the least and the largest size of a set, required objects included
    outside : whether the market has an outside option
    """

    market: Market
    candidates: Candidates
    weights: Floats
    value: Floats
    objective: str
    required: Index
    free: Index
    low: int
    high: int
    outside: bool

    @property
    def n_situations(self) -> int:
        """How many situations there are."""
        return len(self.weights)

    @property
    def values_of_situations(self) -> Floats:
        """What a choice of each object is worth in each situation, (s, m)."""
        return np.broadcast_to(self.value, (self.n_situations, self.value.shape[1]))

    def sets_of(self, rows: Index) -> Sets:
        """Make sets of positions (c, k): all c sets in the first situation, then in the second, and so on."""
        return self.candidates.offered(rows)

    def values(self, rows: Index) -> Floats:
        """Return the value of sets of one size, positions (c, k), on average over the situations: (c,)."""
        if rows.shape[1] == 0:
            return np.zeros(len(rows))  # nothing is offered: no revenue, no share, and log 1
        found = np.empty(len(rows))
        for part in self._batches(rows):
            found[part] = self.weights @ self._by_situation(rows[part])
        return found

    def value_of(self, objects: Index) -> float:
        """Return the value of one set."""
        return float(self.values(np.sort(objects)[None])[0])

    def shares(self, objects: Index) -> tuple[Floats, float | None]:
        """Return the mean choice probability of each object of a set, and of choosing nothing."""
        if len(objects) == 0:
            return np.zeros(0), 1.0
        sets = self.sets_of(np.asarray(objects)[None])
        p = self.market.probabilities(sets).reshape(self.n_situations, len(objects))
        nothing = self.market.outside(sets)
        return self.weights @ p, None if nothing is None else float(self.weights @ nothing)

    def with_limits(self, low: int, high: int) -> "AssortmentProblem":
        """Return the same problem with other limits on the size of a set."""
        return replace(self, low=low, high=high)

    def _by_situation(self, rows: Index) -> Floats:
        """Return the value of sets in each situation: (s, c)."""
        sets = self.sets_of(rows)
        if self.objective == "surplus":
            return np.asarray(self.market.logsum(sets), dtype=np.float64).reshape(self.n_situations, -1)
        p = np.asarray(self.market.probabilities(sets), dtype=np.float64)
        worth = self.value[:, rows]  # (1 or s, c, k)
        return np.asarray((p.reshape(self.n_situations, *rows.shape) * worth).sum(2))

    def _batches(self, rows: Index) -> Iterator[slice]:
        levels = getattr(self.market.model, "alternatives", None) or 0  # ids become so many columns
        each = max(1, self.n_situations * rows.shape[1] * max(self.candidates.width, levels))
        step = max(1, _AT_ONCE // each)
        for begin in range(0, len(rows), step):
            yield slice(begin, begin + step)


def make_problem(
    market: Market,
    candidates: Candidates,
    *,
    value: Floats | None,
    objective: str,
    size: int | Sequence[int] | None,
    required: Any,
    forbidden: Any,
    weights: ArrayLike | None,
) -> AssortmentProblem:
    """Check everything and lay out the problem."""
    check_choice("objective", objective, OBJECTIVES)
    m = candidates.m
    outside = market.outside(candidates.offered(np.arange(m)[None])) is not None
    worth = _worth(value, objective, candidates, outside)
    needed = positions_among(required, candidates, "required")
    barred = positions_among(forbidden, candidates, "forbidden")
    both = np.intersect1d(needed, barred)
    if len(both):
        raise ParameterError(f"Object {both[0]} is required and forbidden; leave one of them out.")
    free = np.setdiff1d(np.arange(m), np.concatenate([needed, barred]))
    if len(needed) + len(free) == 0:
        raise ParameterError("All objects are forbidden, so there is nothing to offer. Leave some in.")
    low, high = _limits(size, len(needed), len(needed) + len(free), outside)
    return AssortmentProblem(
        market,
        candidates,
        weights_of_situations(weights, candidates.n_situations),
        worth,
        objective,
        needed,
        free,
        low,
        high,
        outside,
    )


def _worth(value: Floats | None, objective: str, candidates: Candidates, outside: bool) -> Floats:
    if objective == "surplus":
        return np.ones((1, candidates.m))
    if objective == "revenue":
        if value is None:
            raise ParameterError(
                'Revenue needs value, what a choice of each object is worth: a column, value="margin", or an array. '
                'Without values, choose objective="share" or "surplus".'
            )
        return value
    if value is None:
        if not outside:
            raise ParameterError(
                "This model has no outside option: something is always chosen, and every set has share 1. Give value, "
                "1 for objects whose share counts and 0 for others (those of competitors), or fit with outside=True."
            )
        return np.ones((1, candidates.m))
    odd = (value != 0) & (value != 1)
    if odd.any():
        raise ParameterError(
            "With objective='share', value is 1 for objects whose share counts and 0 for others; got "
            f"{value[odd][0]:g}. Leave value out to count all objects."
        )
    return value


def positions_among(given: Any, candidates: Candidates, what: str) -> Index:
    """Return checked positions of objects, ascending; a boolean mask, positions, or labels where there are such."""
    if given is None:
        return np.zeros(0, dtype=np.int64)
    entries = np.atleast_1d(np.asarray(given))
    if entries.size == 0:
        return np.zeros(0, dtype=np.int64)
    if entries.dtype == bool:
        if entries.shape != (candidates.m,):
            raise ShapeError(
                f"{what} as a mask needs one entry for each of {candidates.m} objects; got {entries.shape}."
            )
        return np.flatnonzero(entries)
    if candidates.labels is not None:
        places = {str(label): i for i, label in enumerate(candidates.labels)}
        unknown = [entry for entry in entries.tolist() if str(entry) not in places]
        if unknown:
            raise ParameterError(
                f"{what} names {unknown[0]!r}, which is no object; there are {', '.join(list(places)[:6])}"
                f"{' and others' if len(places) > 6 else ''}."
            )
        return np.unique([places[str(entry)] for entry in entries.tolist()])
    if entries.dtype.kind not in "iu" or entries.ndim != 1:
        raise ParameterError(
            f"{what} needs positions of objects, from 0 to {candidates.m - 1}; got {given!r}. To name objects, give "
            "object_id, the column of their names."
        )
    for entry in entries.tolist():
        if not 0 <= entry < candidates.m:
            raise ParameterError(
                f"{what} needs positions of objects, from 0 to {candidates.m - 1}; got {entry}."
            )
    return np.unique(entries).astype(np.int64)


def weights_of_situations(weights: ArrayLike | None, n: int) -> Floats:
    """Return checked weights of the situations, with sum 1."""
    if weights is None:
        return np.full(n, 1 / n)
    found = np.asarray(weights, dtype=np.float64)
    if found.shape != (n,):
        raise ShapeError(f"weights needs one entry for each of {n} situations; got shape {found.shape}.")
    if not np.isfinite(found).all() or (found < 0).any() or found.sum() <= 0:
        raise ParameterError("weights of situations must be finite, none negative and not all 0.")
    return np.asarray(found / found.sum())


def _limits(size: int | Sequence[int] | None, least: int, most: int, outside: bool) -> tuple[int, int]:
    """Return the least and the largest size of a set."""
    given: Sequence[int] = (1, most) if size is None else size if isinstance(size, Sequence) else (1, size)
    if len(given) != 2:
        raise ParameterError(f"size needs the least and the largest, (1, 8), or the largest; got {size!r}.")
    low, high = given
    check_number("size (the least)", low, least=0, whole=True)
    check_number("size (the largest)", high, least=low, whole=True)
    if low == 0 and not outside:
        raise ParameterError(
            "A set of no objects needs an outside option, which this model has not: size from 1 on."
        )
    if high < least:
        raise ParameterError(f"{least} objects are required, but a set may have at most {high}. Raise size.")
    if low > most:
        raise ParameterError(
            f"A set needs at least {low} objects, but only {most} may be offered. Lower size."
        )
    return max(int(low), least), min(int(high), most)
