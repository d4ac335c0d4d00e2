"""Ranks: 0 is best, equal ranks are a tie, NaN or a negative number means not ranked."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["align_grades", "average_places", "mean_within_ties", "ranks_from_scores", "tie_equal_objects"]

ROUNDING = 1e-5  # of a score, or of 1 where that is larger: what equal objects may differ by
_CHUNK = 8_000_000  # numbers in a temporary array


def ranks_from_scores(scores: NDArray[Any], mask: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
    """Rank the objects of each set by falling score.

    The rank of an object is the number of objects of its set with a higher score, so that equal
    scores share a rank. O(m log m) in the set size.

    Parameters
    ----------
    scores : array of shape (n, m)
    mask : boolean array of shape (n, m), optional
        False in the padding, which gets rank -1.

    Examples
    --------
    >>> ranks_from_scores(np.array([[0.1, 0.9, 0.1, 0.5]]))
    array([[2, 0, 2, 1]])
    """
    falling = -np.asarray(scores)
    if mask is not None:
        falling = np.where(mask, falling, np.inf)
    order = np.argsort(falling, axis=1, kind="stable")  # (n, m): object at each place
    sets = np.arange(len(order))[:, None]  # (n, 1)
    ordered = falling[sets, order]
    place = np.broadcast_to(np.arange(order.shape[1]), order.shape)
    opens_group = np.ones(order.shape, dtype=bool)
    opens_group[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    group_start = np.maximum.accumulate(np.where(opens_group, place, 0), axis=1)
    ranks = np.empty(order.shape, dtype=np.int64)
    ranks[sets, order] = group_start
    if mask is not None:
        ranks[~mask] = -1
    return ranks


def tie_equal_objects(objects: NDArray[Any], rows: NDArray[np.int64], scores: NDArray[Any]) -> NDArray[Any]:
    """Give objects of a set that are equal in all features one score, where only rounding tells them apart.

    A product of matrices may round the same row differently at differing places.

    Parameters
    ----------
    objects : of all sets, packed, (objects, d)
    rows : (n, m), the objects of some sets of one size
    scores : (n, m), theirs

    Examples
    --------
    >>> rows = np.array([[0, 1, 2]])
    >>> tie_equal_objects(np.array([[1.0], [2.0], [1.0]]), rows, np.array([[0.5, 0.1, 0.5 + 1e-9]]))
    array([[0.5, 0.1, 0.5]])
    """
    near = np.flatnonzero(_level(np.sort(scores, axis=1)).any(1))
    if len(near) == 0:
        return scores
    found = scores.copy()
    step = max(1, _CHUNK // (rows.shape[1] * max(1, objects.shape[1])))
    for begin in range(0, len(near), step):
        some = near[begin : begin + step]
        order = np.argsort(scores[some], axis=1, kind="stable")
        rising = np.take_along_axis(scores[some], order, 1)
        values = objects[np.take_along_axis(rows[some], order, 1)]
        one, other = values[:, :-1], values[:, 1:]
        equal = ((one == other) | (np.isnan(one) & np.isnan(other))).all(2) & _level(rising)
        place = np.arange(1, rows.shape[1])
        first = np.zeros(order.shape, dtype=np.int64)  # whose score each takes
        first[:, 1:] = np.maximum.accumulate(np.where(equal, 0, place), axis=1)
        tied = np.empty_like(rising)
        np.put_along_axis(tied, order, np.take_along_axis(rising, first, 1), 1)
        found[some] = tied
    return found


def _level(rising: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether each score is that of the one before it, but for rounding: (n, m) to (n, m - 1)."""
    return np.asarray(np.diff(rising, axis=1) <= ROUNDING * np.maximum(1.0, np.abs(rising[:, 1:])))


def average_places(values: NDArray[Any], known: NDArray[Any]) -> NDArray[Any]:
    """Place of each known value in rising order, from 0; tied ones share the average."""
    keys = np.where(known, values, np.inf)
    order = np.argsort(keys, axis=1, kind="stable")
    places = np.broadcast_to(np.arange(values.shape[1], dtype=np.float64), values.shape)
    shared = mean_within_ties(places, np.take_along_axis(keys, order, 1))
    result = np.empty_like(shared)
    np.put_along_axis(result, order, shared, 1)
    return result


def mean_within_ties(values: NDArray[Any], keys: NDArray[Any]) -> NDArray[Any]:
    """Replace each value by the mean over those in its row with the same key; rows are sorted by key."""
    n, m = keys.shape
    opens = np.ones((n, m), dtype=bool)
    opens[:, 1:] = keys[:, 1:] != keys[:, :-1]
    group = np.cumsum(opens.reshape(-1)) - 1
    flat = np.asarray(values, dtype=np.float64).reshape(-1)
    if opens.all():
        return flat.reshape(n, m)
    means = np.bincount(group, weights=flat) / np.bincount(group)
    return np.asarray(means[group].reshape(n, m))


def align_grades(
    ranks: Sequence[NDArray[Any]], worsts: Sequence[float | None]
) -> tuple[list[NDArray[Any]], float | None]:
    """Bring ranks that were counted from differing best grades together: one grade, one rank.

    Parameters
    ----------
    ranks : some arrays of ranks
    worsts : the rank of what is irrelevant in each; None where it came from no grades

    Returns
    -------
    ranks : counted from the best grade of all
    worst : the rank of what is irrelevant, now the same in all

    Examples
    --------
    >>> align_grades([np.array([0.0, 2.0]), np.array([0.0, 1.0])], [2.0, 1.0])
    ([array([0., 2.]), array([1., 2.])], 2.0)
    """
    worst = max((own for own in worsts if own is not None), default=None)
    aligned = [
        part if worst is None or own is None else part + (worst - own)
        for part, own in zip(ranks, worsts, strict=True)
    ]
    return aligned, worst
