"""The paper's medoid task: rank points by their distance to the medoid of their set."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from entourage.data.ranks import ranks_from_scores
from entourage.data.sets import Seed
from entourage.data.synthetic.points import chunks, uniform_points

__all__ = ["make_medoid", "medoid_distances"]


def make_medoid(
    n_sets: int = 10_000, n_objects: int = 5, n_features: int = 2, random_state: Seed = None
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Generate the medoid task: rank random points by their distance to the medoid of their set.

    Points are uniform in the unit cube. The medoid is the point with the smallest mean distance to
    the points of its set; it has rank 0, the point furthest from it the last rank. (Of two points both are
    medoids, and the first is taken: at least three make a task.)

    Returns
    -------
    X : float32 array of shape (n_sets, n_objects, n_features)
    ranks : integer array of shape (n_sets, n_objects), 0 = best

    Examples
    --------
    >>> X, ranks = make_medoid(n_sets=3, random_state=0)
    >>> X.shape, ranks[0].tolist()
    ((3, 5, 2), [2, 0, 1, 3, 4])
    """
    X = uniform_points(n_sets, n_objects, n_features, random_state)
    return X, ranks_from_scores(-medoid_distances(X))


def medoid_distances(X: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Return the distance of each object to the medoid of its set, shape (n, m)."""
    n, m, d = X.shape
    result = np.empty((n, m))
    for part in chunks(n, m * m):
        points = X[part].astype(np.float64)
        squares = np.zeros((len(points), m, m))
        for f in range(d):
            squares += np.square(points[:, :, None, f] - points[:, None, :, f])
        distances = np.sqrt(squares)  # (n, m, m)
        medoid = distances.mean(2).argmin(1)
        result[part] = distances[np.arange(len(points)), medoid]
    return result
