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

__all__ = ["by_boxes", "by_integers", "can_compile", "compiled", "require_compiler", "split"]


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
    return split(sides, 0.0)[:, 0]


def split(sides: NDArray[np.float64], tolerance: float) -> NDArray[np.float64]:
    """Return a lower bound, an estimate, an upper bound, and the crowding, of the contribution of each point: (m, 4).

    A box is not split further where its own bounds are no further apart than ``tolerance`` times the contribution
    that is certain so far. With 0 all are split, and the three are the contribution. In a box of which corners cover
    the shares c_j

    - the product of 1 - c_j is a lower bound of the share that is left: that a random point of the box lies outside
      of one corner makes it likelier that it lies outside of another (Harris' inequality);
    - the least 1 - c_j is an upper bound;
    - a tree estimates (Chow and Liu 1968): from the largest corner to the smallest, each times the chance to lie
      outside of it given that one lies outside of that larger one which raises this chance most.

    Crowding is the mean logarithm of how many corners such boxes have, weighted by how far their bounds are apart.
    """
    m, d = sides.shape
    result = np.empty((m, 4))
    if m:
        space = np.empty((m + 1, m, d)), np.empty((m + 1, d)), np.empty((m + 1, d))
        compiled(_contributions)(np.ascontiguousarray(sides, dtype=np.float64), tolerance, *space, result)
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
    tolerance: float,
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

    def left_by_tree(known, low, inverse, left, covered):  # type: ignore[no-untyped-def]
        """Estimate the share of a box that corners leave, of which each by itself leaves ``left``."""
        order = np.argsort(left)
        share = left[order[0]]
        for a in range(1, len(order)):
            j = order[a]
            most = left[j]
            for b in range(a):
                i = order[b]
                both = 1.0
                for q in range(d):
                    both *= (min(known[i, q], known[j, q]) - low[q]) * inverse[q]
                most = max(most, 1.0 - (covered[j] - both) / left[i])  # outside of j, given outside of i
            share *= most
        return share

    counts, pivots = np.zeros(m + 1, np.int64), np.zeros(m + 1, np.int64)
    done = np.zeros((m + 1, d), np.bool_)
    inverse, left, covered = np.empty(d), np.empty(m), np.empty(m)
    for i in range(m):
        result[i] = 0.0
        if sides[i].min() <= 0.0:
            continue
        # the box of i, and the corners of it that the others cover, of which none lies within another
        lows[0] = 0.0
        highs[0] = sides[i]
        total, rest = 0.0, 0.0  # a compensated sum of lower bounds
        estimate, upper, crowding = 0.0, 0.0, 0.0  # beyond the lower bound
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
            if fresh:
                n = counts[t]
                value = 1.0
                for q in range(d):
                    value *= high[q] - low[q]
                    inverse[q] = 1.0 / (high[q] - low[q])
                lowest, least = value, 1.0
                for j in range(n):  # what each corner leaves, as a sum of slabs
                    left[j], covered[j] = 0.0, 1.0
                    for q in range(d):
                        left[j] += covered[j] * (high[q] - corners[t, j, q]) * inverse[q]
                        covered[j] *= (corners[t, j, q] - low[q]) * inverse[q]
                    lowest *= left[j]
                    if left[j] < least:  # the pivot is the corner that covers most
                        least = left[j]
                        pivots[t] = j
                between = value * least - lowest
                if n < 2 or (tolerance > 0.0 and between <= tolerance * (total + lowest)):
                    if n > 1 and between > 0.0:
                        share = left_by_tree(corners[t], low, inverse, left[:n], covered)  # type: ignore[no-untyped-call]
                        estimate += min(max(value * share - lowest, 0.0), between)
                        upper += between
                        crowding += between * np.log(n)
                    lowest -= rest
                    new = total + lowest
                    rest = (new - total) - lowest
                    total = new
                    t -= 1
                    fresh = False
                    continue
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
        result[i] = total, total + estimate, total + upper, crowding / upper if upper > 0.0 else 0.0
