"""What is known of the contributions of all points of many sets without computing them exactly.

By bounds (:func:`entourage.data.bounded_contributions`), or by rays: the box of a point reaches from the point to the
reference. Seen from the point, in units of its box, what no other covers is star-shaped: along a ray the box is free up
to a length t, then covered. With rays through points that are spread evenly over the far sides of the smallest box
around it, the mean of ``t^d`` is the share that is left (by lines: Shang, Ishibuchi and Ni 2020).
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from entourage.data.sets import Sets
from entourage.data.synthetic.boxes import compiled
from entourage.data.synthetic.contributions import bounded_contributions
from entourage.errors import check_number

__all__ = ["front_features", "ray_contributions"]

LEAST = 1e-12  # shares and sides below are as good as none
SMALLEST = 1e-30  # contributions below are as good as none


def front_features(sets: Sets, *, tolerance: float = 0.3, reference: float = 1.0) -> Sets:
    """Return the sets with four features of each point beside its coordinates.

    They are the logarithms of the lower bound, the estimate and the upper bound of its contribution, and its crowding:
    see :func:`entourage.data.bounded_contributions`. No order of points or objectives changes them.

    Parameters
    ----------
    sets : of points to be minimised
    tolerance : the larger, the faster, and the further the bounds are apart
    reference : the reference point

    Examples
    --------
    >>> front_features(Sets.of([[[0.0, 0.5], [0.5, 0.0]]]))
    Sets(1 set of 2 objects, 6 features)
    """
    rows = [np.empty((0, 4))]
    for points in sets.to_list():
        known = bounded_contributions(points, reference, tolerance=tolerance)
        values = np.column_stack([known.lower, known.estimate, known.upper])
        rows.append(np.column_stack([np.log(np.maximum(values, SMALLEST)), known.crowding]))
    features = np.concatenate(rows).astype(np.float32)
    return Sets(np.concatenate([sets.objects, features], axis=1), sets.offsets, sets.targets)


def ray_contributions(sets: Sets, *, rays: int = 64, reference: float = 1.0) -> NDArray[np.float64]:
    """Return what rays estimate the contribution of each point at, packed.

    A set of m points takes ``m^2 (1 + rays) d`` operations.

    Parameters
    ----------
    sets : of points to be minimised, with no coordinate above the reference
    rays : directions for each point, the same for all
    reference : the reference point

    Examples
    --------
    >>> ray_contributions(Sets.of([[[0.0, 0.5], [0.5, 0.0]]]), rays=4096).round(3)
    array([0.25, 0.25])
    """
    check_number("rays", rays, least=1, whole=True)
    sides = np.maximum(reference - sets.objects.astype(np.float64), LEAST)
    estimates = np.empty(len(sides))
    compiled(_estimate)(sides, sets.offsets, _directions(sets.n_features, rays), estimates)
    return estimates


@lru_cache(maxsize=8)
def _directions(d: int, rays: int) -> NDArray[np.float64]:
    """Spread rays evenly over the far sides of the unit cube: (rays, d), the largest coordinate 1."""
    from scipy.stats import qmc  # as long to import as the whole of entourage.data

    points = qmc.Halton(d, scramble=False).random(rays + 1)[1:]  # the last coordinate says which side
    return np.array([np.insert(point[:-1], int(d * point[-1]), 1.0) for point in points])


def _estimate(
    sides: NDArray[np.float64],
    offsets: NDArray[np.int64],
    directions: NDArray[np.float64],
    estimates: NDArray[np.float64],
) -> None:
    """Fill the estimates of all sets. Compiled."""
    rays, d = directions.shape
    for s in range(len(offsets) - 1):
        start, end = offsets[s], offsets[s + 1]
        m = end - start
        gaps = np.empty((m, d))  # how far the box of i is free of j along each axis, in units of its sides
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
            volume = 1.0
            for k in range(d):
                free[k] = max(free[k], LEAST)
                volume *= own[k] * free[k]
            kept = 0  # of those that reach into that box, in units of its sides
            for j in range(n):
                inside = True
                for k in range(d):
                    gap = gaps[j, k] / free[k]
                    if gap >= 1.0:
                        inside = False
                        break
                    gaps[kept, k] = gap
                kept += inside
            total = 0.0
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
                total += length**d
            estimates[start + i] = volume * total / rays
