"""The paper's hypervolume task: rank the points of a Pareto front by the volume that each alone dominates."""

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entourage.data.ranks import ranks_from_scores
from entourage.data.sets import Seed
from entourage.data.synthetic.boxes import by_boxes, can_compile
from entourage.data.synthetic.points import check_task, chunks
from entourage.errors import ParameterError

__all__ = ["by_inclusion_exclusion", "by_slices", "hypervolume_contributions", "make_hypervolume"]

LONG = 500_000  # operations for a set, about as long as splitting its boxes takes


def make_hypervolume(
    n_sets: int = 10_000, n_objects: int = 5, n_features: int = 2, random_state: Seed = None
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Generate the hypervolume task: rank the points of a Pareto front by their contributions.

    Points are uniform on the part of the unit sphere where no coordinate is positive, a Pareto front
    under minimisation. The contribution of a point is the volume, up to the origin as the reference,
    that it alone dominates; the point with the largest contribution has rank 0.

    Returns
    -------
    X : float32 array of shape (n_sets, n_objects, n_features)
    ranks : integer array of shape (n_sets, n_objects), 0 = best

    Examples
    --------
    >>> X, ranks = make_hypervolume(n_sets=3, random_state=0)
    >>> X.shape, bool((X <= 0).all()), ranks[0].tolist()
    ((3, 5, 2), True, [1, 2, 3, 4, 0])
    """
    rng = check_task(n_sets, n_objects, n_features, random_state, fewest_features=2)
    points = rng.standard_normal((n_sets, n_objects, n_features))
    X = -np.abs(points / np.linalg.norm(points, axis=2, keepdims=True)).astype(np.float32)
    return X, ranks_from_scores(hypervolume_contributions(X))


def hypervolume_contributions(X: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Return the volume, up to the origin, that each point of a set dominates alone.

    Exact for any number of points and features. Two ways, the cheaper one is taken: inclusion and
    exclusion over the subsets of a set, ``2^m d`` operations, or slicing along the last feature
    down to the planar case, ``m^(d-2)`` sorts. Both work on all sets at once. Where both take long, boxes are split
    set by set (:func:`entourage.data.exact_contributions`) if numba is installed, the extra ``[hypervolume]``.

    Parameters
    ----------
    X : array of shape (n, m, d)
        Points to be minimised, with no positive coordinate.

    Examples
    --------
    >>> hypervolume_contributions(np.array([[[-3.0, -1.0], [-1.0, -2.0]]]))
    array([[2., 1.]])
    """
    X = np.asarray(X)
    if (X > 0).any():
        raise ParameterError(
            "Hypervolume contributions are taken up to the origin: no coordinate may be positive. "
            "Subtract your reference point first."
        )
    n, m, d = X.shape
    slicing = d <= 2 or m > 20 or 2**m * d > 12 * m ** (d - 1)
    if (12 * m ** (d - 1) if slicing else 2**m * d) > LONG and d > 2 and can_compile():
        return np.array([by_boxes(-points.astype(np.float64)) for points in X]).reshape(n, m)
    result = np.empty((n, m))
    for part in chunks(n, 4 * m * d):
        sides = -X[part].astype(np.float64)  # the box of a point reaches from the origin to here
        result[part] = by_slices(sides) if slicing else by_inclusion_exclusion(sides)
    return result


def by_inclusion_exclusion(sides: NDArray[np.float64]) -> NDArray[np.float64]:
    """Contribution of j = sum over the subsets T with j in T of ``(-1)^(|T| - 1)`` volume(common box of T)."""
    n, m, _ = sides.shape
    result = np.zeros((n, m))
    columns = np.ascontiguousarray(sides.transpose(2, 1, 0))  # (d, m, n)
    for size in range(1, m + 1):
        for chosen in combinations(range(m), size):
            common = columns[:, chosen[0]]
            for j in chosen[1:]:
                common = np.minimum(common, columns[:, j])
            volume = common.prod(0) if size % 2 else -common.prod(0)
            result[:, chosen] += volume[:, None]
    return result


def by_slices(sides: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cut along the last feature; within a slab only the points that reach it compete, one feature fewer."""
    n, m, d = sides.shape
    if d == 1:
        ordered = np.sort(sides[..., 0], axis=1)
        runner_up = ordered[:, -2:-1] if m > 1 else np.zeros((n, 1))
        return np.maximum(sides[..., 0] - runner_up, 0.0)
    if d == 2:
        return _planar(sides)
    order = np.argsort(-sides[..., -1], axis=1)  # highest first: slab t holds the first t + 1 points
    ordered = np.take_along_axis(sides, order[..., None], axis=1)
    heights = np.concatenate([ordered[..., -1], np.zeros((n, 1))], axis=1)
    total = np.zeros((n, m))
    for t in range(m):
        thickness = heights[:, t] - heights[:, t + 1]
        total[:, : t + 1] += thickness[:, None] * by_slices(ordered[:, : t + 1, :-1])
    result = np.empty((n, m))
    np.put_along_axis(result, order, total, axis=1)
    return result


def _planar(sides: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sorted by width, a point's own corner lies between its neighbours on the staircase."""
    n, m, _ = sides.shape
    order = np.lexsort((-sides[..., 1], -sides[..., 0]), axis=1)  # widest first; of equals the highest
    width = np.take_along_axis(sides[..., 0], order, axis=1)
    height = np.take_along_axis(sides[..., 1], order, axis=1)
    tallest = np.zeros((n, m + 1))  # of the points at least as wide, before each point
    np.maximum.accumulate(height, axis=1, out=tallest[:, 1:])
    steps = width - np.concatenate([width[:, 1:], np.zeros((n, 1))], axis=1)
    if (height > tallest[:, :-1]).all():  # a front: none dominates another, each owns one rectangle
        own = steps * (height - tallest[:, :-1])
    else:
        own = np.empty((n, m))
        for j in range(m):  # wider points cover what lies below `tallest`, narrower ones raise that floor
            floor = np.concatenate([tallest[:, j : j + 1], height[:, j + 1 :]], axis=1)
            np.maximum.accumulate(floor, axis=1, out=floor)
            own[:, j] = (steps[:, j:] * np.maximum(height[:, j : j + 1] - floor, 0.0)).sum(1)
    result = np.empty((n, m))
    np.put_along_axis(result, order, own, axis=1)
    return result
