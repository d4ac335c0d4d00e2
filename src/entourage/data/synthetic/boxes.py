"""Exact hypervolume contributions of large sets, by splitting what a point dominates alone into boxes.

The box of a point reaches from the point to the reference. Another point covers a corner of it. One such corner splits
the rest of the box into at most d smaller boxes, in each of which fewer corners are left; and so on, until a box is
covered by nothing. Only volumes are added, nothing is subtracted: a contribution of 1e-12 is as precise as one of 0.1.
The idea of splitting by a pivot is that of QHV (Russo and Francisco 2014, Jaszkiewicz 2018).

Compiled by numba, of the extra ``[hypervolume]``.
"""

import functools
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entourage.errors import UserError

__all__ = ["by_boxes", "by_integers", "can_compile", "compiled", "require_compiler"]


def can_compile() -> bool:
    """Whether numba is installed."""
    return importlib.util.find_spec("numba") is not None


def require_compiler() -> None:
    """Raise an error, before any long work, where numba is missing."""
    if not can_compile():
        raise UserError(
            "Fronts, and exact hypervolume contributions of large sets, are computed by compiled code, which needs "
            "numba: run pip install 'entourage[hypervolume]' and try again."
        )


@functools.cache
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function of arrays when it is first called; kept on disk for the next process."""
    require_compiler()
    import numba

    try:
        made: Callable[..., Any] = numba.njit(cache=True)(function)
    except RuntimeError:  # neither the folder of the source nor the user's can be written to
        made = numba.njit(function)
    return made


def by_boxes(sides: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the contributions of points (m, d), given as the sides of their boxes: the reference less the point.

    Examples
    --------
    >>> by_boxes(np.array([[3.0, 1.0], [1.0, 2.0]]))
    array([2., 1.])
    """
    m, d = sides.shape
    result = np.empty(m)
    if m:
        space = np.empty((m + 1, m, d)), np.empty((m + 1, d)), np.empty((m + 1, d))
        compiled(_contributions)(np.ascontiguousarray(sides, dtype=np.float64), *space, result)
    return result


def by_integers(sides: NDArray[np.int64], i: int) -> int:
    """Return the contribution of one point where the sides of the boxes are whole numbers: no rounding at all.

    Examples
    --------
    >>> by_integers(np.array([[3, 1], [1, 2]]), 0)
    2
    """
    own = tuple(map(int, sides[i]))
    others = [
        tuple(min(a, b) for a, b in zip(own, map(int, side), strict=True))
        for j, side in enumerate(sides)
        if j != i
    ]
    return _left_in_integers((0,) * len(own), own, _largest(others))


def _largest(corners: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Drop the corners that lie within another, and those that are empty."""
    kept: list[tuple[int, ...]] = []
    for corner in sorted(set(corners), reverse=True):
        if min(corner) > 0 and not any(
            all(a <= b for a, b in zip(corner, other, strict=True)) for other in kept
        ):
            kept.append(corner)
    return kept


def _left_in_integers(low: tuple[int, ...], high: tuple[int, ...], corners: list[tuple[int, ...]]) -> int:
    """Volume between ``low`` and ``high`` that no corner covers; a corner reaches from 0 to its sides."""
    volume = 1
    for a, b in zip(low, high, strict=True):
        volume *= b - a
    if not corners or volume == 0:
        return volume
    covering = [
        corner for corner in corners if all(c > a for c, a in zip(corner, low, strict=True))
    ]  # the others don't reach into this box
    if not covering:
        return volume
    pivot = max(covering, key=sum)
    rest = [corner for corner in covering if corner is not pivot]
    total, floor, roof = 0, list(low), list(high)
    for k, reach in enumerate(pivot):
        if reach < roof[k]:  # the slab beyond the pivot, of which corners that reach no further cover nothing
            floor[k] = reach
            inside = [tuple(map(min, corner, roof)) for corner in rest if corner[k] > reach]
            total += _left_in_integers(tuple(floor), tuple(roof), _largest(inside))
            floor[k] = low[k]
            roof[k] = reach
    return total


# --- compiled: plain loops over arrays ----------------------------------------------------------


def _contributions(
    sides: NDArray[np.float64],
    corners: NDArray[np.float64],
    lows: NDArray[np.float64],
    highs: NDArray[np.float64],
    result: NDArray[np.float64],
) -> None:
    """Fill ``result``; ``corners`` (m + 1, m, d), ``lows`` and ``highs`` (m + 1, d) have a place for each depth."""
    m, d = sides.shape

    def keep_largest(known, n):  # type: ignore[no-untyped-def]
        """Add ``known[n]`` to the first n corners unless it lies within one; drop those within it; return how many."""
        a = 0
        while a < n:
            within, around = True, True
            for q in range(d):
                within &= known[n, q] <= known[a, q]
                around &= known[n, q] >= known[a, q]
                if not within and not around:
                    break
            if within:
                return n
            if around:
                n -= 1
                for q in range(d):
                    known[a, q] = known[n, q]
                    known[n, q] = known[n + 1, q]
            else:
                a += 1
        return n + 1

    counts, pivots = np.zeros(m + 1, np.int64), np.zeros(m + 1, np.int64)
    done = np.zeros((m + 1, d), np.bool_)
    for i in range(m):
        # the box of i, and the corners of it that the others cover, of which none lies within another
        lows[0] = 0.0
        highs[0] = sides[i]
        total, rest = 0.0, 0.0  # a compensated sum
        n = 0
        for j in range(m):
            if j == i:
                continue
            empty = False
            for q in range(d):
                corners[0, n, q] = min(sides[i, q], sides[j, q])
                empty |= corners[0, n, q] <= 0.0
            n = n if empty else keep_largest(corners[0], n)  # type: ignore[no-untyped-call]
        counts[0] = n
        t = 0
        fresh = True
        while t >= 0:
            low, high = lows[t], highs[t]
            if fresh and counts[t] < 2:
                value = 1.0
                for q in range(d):
                    value *= high[q] - low[q]
                if counts[t] == 1:  # what one corner leaves, as a sum of slabs
                    value, left = 0.0, 1.0
                    for k in range(d):
                        slab = left * (high[k] - corners[t, 0, k])
                        for q in range(k + 1, d):
                            slab *= high[q] - low[q]
                        value += slab
                        left *= corners[t, 0, k] - low[k]
                value -= rest
                new = total + value
                rest = (new - total) - value
                total = new
                t -= 1
                fresh = False
                continue
            if fresh:  # the pivot is the corner that covers most
                most = -1.0
                for j in range(counts[t]):
                    value = 1.0
                    for q in range(d):
                        value *= corners[t, j, q] - low[q]
                    if value > most:
                        most = value
                        pivots[t] = j
                done[t] = False
            pivot = corners[t, pivots[t]]
            axis, largest = -1, 0.0
            for k in range(d):
                if not done[t, k] and high[k] > pivot[k]:
                    extent = (high[k] - pivot[k]) / (high[k] - low[k])
                    if extent > largest:
                        axis, largest = k, extent
            if axis < 0:
                t -= 1
                fresh = False
                continue
            done[t, axis] = True
            lows[t + 1] = low
            lows[t + 1, axis] = pivot[axis]
            highs[t + 1] = high
            n = 0
            for j in range(counts[t]):
                if corners[t, j, axis] > pivot[axis]:
                    for q in range(d):
                        corners[t + 1, n, q] = min(corners[t, j, q], high[q])
                    n = keep_largest(corners[t + 1], n)  # type: ignore[no-untyped-call]
            counts[t + 1] = n
            high[axis] = pivot[axis]  # the rest of this box
            t += 1
            fresh = True
        result[i] = total
