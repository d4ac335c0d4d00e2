"""Features of the points of a front, from the geometry of the boxes that others cover. Estimates and bounds, no labels.

The box of a point reaches from the point to the reference; another point covers a corner of it. Seen from the point, in
units of its own box, what is left is star-shaped: along a ray the box is free up to a length t, then covered. With
rays through points that are spread evenly over the far sides of a box around it, the mean of ``t^d`` over all rays is
the share that is left, and over ``rays`` of them an estimate of it (by lines: Shang, Ishibuchi and Ni 2020).
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entourage.data.sets import Sets
from entourage.data.synthetic.boxes import compiled
from entourage.errors import check_number

__all__ = ["front_features", "ray_contributions"]

NEAREST = 6  # points that cover most of a box, each by itself
LEAST = 1e-12  # shares below are as good as none


def front_features(sets: Sets, *, rays: int = 64, reference: float = 1.0) -> Sets:
    """Return the sets with features of each point beside its coordinates: 11 + 2 d more, all on a log scale.

    - the volume of its box, and of the smallest box around what is left of it;
    - the share of the latter that each of the 6 points leaves which cover most, each by itself: upper bounds;
    - the mean and the median length of rays, and the contribution as ``rays`` of them estimate it;
    - the sides of the smallest box, relative to its own, and its own sides, each from the shortest to the longest.

    A set of m points takes ``m^2 (1 + rays) d`` operations; exact contributions take far longer from d = 5 on.

    Parameters
    ----------
    sets : of points to be minimised, with no coordinate above the reference
    rays : directions for each point, the same for all
    reference : the reference point

    Examples
    --------
    >>> front_features(Sets.of([[[0.0, 0.5], [0.5, 0.0]]]))
    Sets(1 set of 2 objects, 17 features)
    """
    features, _ = _computed(sets, rays, reference)
    return Sets(np.concatenate([sets.objects, features], axis=1), sets.offsets, sets.targets)


def ray_contributions(sets: Sets, *, rays: int = 64, reference: float = 1.0) -> NDArray[np.float64]:
    """Return what rays alone estimate the contribution of each point at, packed: the best single feature.

    Examples
    --------
    >>> ray_contributions(Sets.of([[[0.0, 0.5], [0.5, 0.0]]]), rays=4096).round(3)
    array([0.25, 0.25])
    """
    return _computed(sets, rays, reference)[1]


def _computed(sets: Sets, rays: int, reference: float) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    check_number("rays", rays, least=1, whole=True)
    d = sets.n_features
    sides = np.maximum(reference - sets.objects.astype(np.float64), LEAST)
    features = np.empty((len(sides), 11 + 2 * d), dtype=np.float32)
    estimates = np.empty(len(sides))
    compiled(_describe)(sides, sets.offsets, _directions(d, rays), features, estimates)
    return features, estimates


@lru_cache(maxsize=8)
def _directions(d: int, rays: int) -> NDArray[np.float64]:
    """Spread rays evenly over the far sides of the unit cube: (rays, d), the largest coordinate 1."""
    from scipy.stats import qmc  # as long to import as the whole of entourage.data

    points = qmc.Halton(d, scramble=False).random(rays + 1)[1:]  # the last coordinate says which side
    return np.array([np.insert(point[:-1], int(d * point[-1]), 1.0) for point in points])


def _describe(
    sides: NDArray[np.float64],
    offsets: NDArray[np.int64],
    directions: NDArray[np.float64],
    features: NDArray[Any],
    estimates: NDArray[np.float64],
) -> None:
    """Fill the features and the estimates of all sets. Compiled."""
    rays, d = directions.shape
    for s in range(len(offsets) - 1):
        start, end = offsets[s], offsets[s + 1]
        m = end - start
        gaps = np.empty((m, d))  # how far the box of i is free of j along each axis, in units of its sides
        left = np.ones(max(m, NEAREST))
        lengths = np.empty(rays)
        free = np.empty(d)  # what is left lies within a box of these sides
        for i in range(m):
            own = sides[start + i]
            free[:] = 1.0
            n = 0
            for j in range(m):
                if j == i:
                    continue
                wide, axis = 0, 0
                for k in range(d):
                    gap = max(0.0, 1.0 - sides[start + j, k] / own[k])
                    gaps[n, k] = gap
                    if gap > 0.0:
                        wide += 1
                        axis = k
                if wide == 1:  # j covers all but a slab
                    free[axis] = min(free[axis], gaps[n, axis])
                n += 1
            volume, slab = 0.0, 0.0
            for k in range(d):
                free[k] = max(free[k], LEAST)
                volume += np.log(own[k])
                slab += np.log(free[k])
            kept = 0  # of those that reach into that box, in units of its sides
            left[:] = 1.0
            for j in range(n):
                covered, inside = 0.0, True
                for k in range(d):
                    gap = gaps[j, k] / free[k]
                    if gap >= 1.0:
                        inside = False
                        break
                    gaps[kept, k] = gap
                    covered += np.log1p(-gap)
                if inside:
                    left[kept] = -np.expm1(covered)
                    kept += 1
            total, mean = 0.0, 0.0
            for r in range(rays):
                length = 1.0
                for j in range(kept):
                    reach = 0.0
                    for k in range(d):
                        if gaps[j, k] > reach * directions[r, k]:
                            reach = gaps[j, k] / max(directions[r, k], LEAST)
                            if reach >= length:
                                break
                    length = min(length, reach)
                lengths[r] = length
                total += length**d
                mean += length
            share = max(total / rays, LEAST)
            estimates[start + i] = np.exp(volume + slab) * share
            row = features[start + i]
            row[0], row[1] = volume, volume + slab
            row[2 : 2 + NEAREST] = np.log(np.maximum(np.sort(left)[:NEAREST], LEAST))
            row[8] = np.log(max(mean / rays, LEAST))
            row[9] = np.log(max(np.median(lengths), LEAST))
            row[10] = volume + slab + np.log(share)
            row[11 : 11 + d] = np.log(np.sort(free))
            row[11 + d :] = np.log(np.sort(own))
