"""Random points, and chunks of sets that keep memory bounded."""

import numpy as np
from numpy.typing import NDArray

from entourage.data.sets import Seed
from entourage.errors import check_number

__all__ = ["check_task", "chunks", "uniform_points"]

CHUNK = 4_000_000  # numbers in a temporary array


def check_task(
    n_sets: int, n_objects: int, n_features: int, random_state: Seed, *, fewest_features: int = 1
) -> np.random.Generator:
    """Check the sizes of a task, and return its source of random numbers."""
    check_number("n_sets", n_sets, least=1, whole=True)
    check_number("n_objects", n_objects, least=1, whole=True)
    check_number("n_features", n_features, least=fewest_features, whole=True)
    return np.random.default_rng(random_state)


def uniform_points(n_sets: int, n_objects: int, n_features: int, random_state: Seed) -> NDArray[np.float32]:
    """Draw points uniformly from the unit cube, (n_sets, n_objects, n_features)."""
    rng = check_task(n_sets, n_objects, n_features, random_state)
    return rng.random((n_sets, n_objects, n_features), dtype=np.float32)


def chunks(n: int, numbers_per_set: int) -> list[slice]:
    """Split ``n`` sets into chunks whose temporary arrays take a few megabytes.

    Examples
    --------
    >>> chunks(5, 2_000_000)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    size = max(1, CHUNK // numbers_per_set)
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]
