"""The folds of a comparison: the sets that candidates learn from, are chosen by, and are compared on."""

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entourage.data.resampling import fold_indices, forward_folds, labels_of
from entourage.errors import DataError

__all__ = ["OuterFold", "check_enough", "inner_folds_for", "moments_of", "outer_folds"]

Index: TypeAlias = NDArray[np.int64]

MANY_SETS = 1500  # up to which there is an inner fold; above, a part of the training sets is set aside


@dataclass(frozen=True)
class OuterFold:
    """One outer fold.

    Attributes
    ----------
    train : the sets that candidates learn from
    test : the sets on which they are compared
    inner : for each inner fold, which sets candidates learn from and by which they are chosen
    aside : the sets by which they are chosen, where there are no inner folds; none of ``train``
    """

    train: Index
    test: Index
    inner: list[tuple[Index, Index]]
    aside: Index | None


def inner_folds_for(n_sets: int) -> int:
    """Return how many inner folds there are by default: one, or none for many sets.

    Examples
    --------
    >>> inner_folds_for(300), inner_folds_for(8500)
    (1, 0)
    """
    return 1 if n_sets <= MANY_SETS else 0


def outer_folds(
    n_sets: int,
    folds: int,
    inner: int | None,
    *,
    labels: Index | None,
    times: Index | None,
    random_state: int,
) -> list[OuterFold]:
    """Split sets into outer folds and these into inner ones.

    Parameters
    ----------
    n_sets : how many sets there are
    folds : outer ones
    inner : inner ones; 1 for a single split, a fifth held out; 0 for a fifth of the training sets that is set aside,
        so that each candidate is fitted once; None where there is nothing to choose
    labels : one a set; sets of one label are not parted
    times : one a set; then candidates learn from earlier sets than those they are evaluated on
    random_state : draws random folds
    """

    def split(some: Index, count: int, seed: int) -> list[tuple[Index, Index]]:
        if times is not None:
            return [(some[a], some[b]) for a, b in forward_folds(times[some], count)]
        mine = None if labels is None else labels[some]
        parts = fold_indices(len(some), count, groups=mine, random_state=seed)
        return [(some[a], some[b]) for a, b in parts]

    def last_fifth(some: Index, seed: int) -> tuple[Index, Index]:
        if times is None:
            return split(some, 5, seed)[0]
        kinds = len(np.unique(times[some]))
        if kinds > 1:
            return split(some, min(4, kinds - 1), seed)[-1]
        train, aside = fold_indices(len(some), min(5, len(some)), random_state=seed)[
            0
        ]  # of one time: in no order
        return some[train], some[aside]

    found = []
    for i, (train, test) in enumerate(split(np.arange(n_sets), folds, random_state)):
        parts: list[tuple[Index, Index]] = []
        aside = None
        if inner == 0:
            train, aside = last_fifth(train, random_state + 1 + i)
        elif inner == 1:
            parts = [last_fifth(train, random_state + 1 + i)]
        elif inner is not None:
            parts = split(train, inner, random_state + 1 + i)
        found.append(OuterFold(train, test, parts, aside))
    return found


def check_enough(
    n: int, labels: Index | None, folds: int, inner: int | None, level: float, units: str
) -> None:
    """Check that every fold can be filled, and that the test can reach its level at all."""
    came = n if labels is None else len(np.unique(labels))
    what = units if labels is None else f"groups of {units}"
    parts = 0 if inner is None else 5 if inner <= 1 else inner
    needed = folds
    while needed - math.ceil(needed / folds) < parts:  # what the smallest training part is left with
        needed += 1
    if came < needed:
        choice = "" if inner is None else f", each with {parts} inner ones,"
        raise DataError(
            f"{folds} outer folds{choice} need at least {needed} {what}; there are {came}. "
            "Take fewer folds, or collect more data."
        )
    needed = math.ceil(math.log2(1 / level))
    if came < needed:
        raise DataError(
            f"A test at the {100 * level:g} % level needs at least {needed} {what}; there are {came}, "
            f"with which p is never below {0.5**came:g}. Collect more data, or take another level."
        )


def moments_of(times: ArrayLike, n_sets: int) -> Index:
    """Return the place of each set in time; text, and what is missing, has none."""
    given = np.asarray(times)
    if given.dtype.kind not in "biufmM" or (given.dtype.kind in "fmM" and (given != given).any()):
        raise DataError(
            "times needs one number or date a set (a NumPy array of them), none missing. Text has no order in time: "
            "convert it, as with np.array(texts, dtype='datetime64[D]')."
        )
    return labels_of(given, n_sets)
