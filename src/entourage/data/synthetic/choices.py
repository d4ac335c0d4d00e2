"""Choice tasks: which object is chosen, or which subset, depends on the whole choice set."""

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entourage.data.sets import Seed
from entourage.data.synthetic.hypervolume import make_hypervolume
from entourage.data.synthetic.medoid import make_medoid
from entourage.data.synthetic.points import uniform_points
from entourage.errors import check_choice, check_number

__all__ = ["CHOICE_TASKS", "make_choice", "make_digits", "make_pareto"]

Floats = NDArray[np.float32]
CHOICE_TASKS = ("medoid", "hypervolume", "nearest_neighbour")


def make_choice(
    task: str = "medoid",
    n_sets: int = 10_000,
    n_objects: int = 10,
    n_features: int = 2,
    random_state: Seed = None,
) -> tuple[Floats, NDArray[np.int64]]:
    """Generate choice sets and the index of the object that is chosen from each.

    Parameters
    ----------
    task : "medoid" (the object nearest to all others), "hypervolume" (the one that contributes most to the volume its
        set dominates) or "nearest_neighbour" (the one with the nearest neighbour: of the two closest objects, the one
        whose next neighbour is nearer)

    Examples
    --------
    >>> X, y = make_choice("nearest_neighbour", n_sets=3, n_objects=4, random_state=0)
    >>> X.shape, y.tolist()
    ((3, 4, 2), [2, 1, 1])
    """
    check_choice("task", task, CHOICE_TASKS)
    if task == "nearest_neighbour":
        check_number("n_objects", n_objects, least=3, whole=True)
        X = uniform_points(n_sets, n_objects, n_features, random_state)
        distances = np.linalg.norm(X[:, :, None] - X[:, None], axis=-1)  # (n, m, m)
        nearest = np.partition(distances, (1, 2), axis=2)[:, :, 1:3]  # (n, m, 2), without the object itself
        closest = nearest[:, :, 0] == nearest[:, :, 0].min(1, keepdims=True)  # two of them
        return X, np.where(closest, nearest[:, :, 1], np.inf).argmin(1)
    make = make_medoid if task == "medoid" else make_hypervolume
    X, ranks = make(n_sets, n_objects, n_features, random_state=random_state)
    return X, ranks.argmin(1)


def make_pareto(
    n_sets: int = 10_000, n_objects: int = 10, n_features: int = 2, random_state: Seed = None
) -> tuple[Floats, NDArray[np.int64]]:
    """Generate sets and rows that are 1 for the Pareto-optimal objects: no other is better in every feature.

    Examples
    --------
    >>> X, y = make_pareto(n_sets=2, n_objects=4, random_state=0)
    >>> y.tolist()
    [[1, 0, 0, 0], [0, 1, 0, 1]]
    """
    X = uniform_points(n_sets, n_objects, n_features, random_state)
    beaten = np.any(
        np.all(X[:, None] > X[:, :, None], axis=3), axis=2
    )  # (n, m): another is better in every feature
    return X, 1 - beaten.astype(np.int64)


def make_digits(
    task: str = "mode",
    n_sets: int = 10_000,
    n_objects: int = 10,
    part: str = "train",
    random_state: Seed = None,
) -> tuple[Floats, NDArray[np.int64]]:
    """Generate sets of handwritten digits (scikit-learn's, 8 × 8) and rows that are 1 for the chosen ones.

    Parameters
    ----------
    task : "mode" (all digits of the most frequent class, or of all such classes where they tie) or "unique" (digits
        whose class occurs once)
    part : "train" or "test": the two have no picture in common

    Examples
    --------
    >>> X, y = make_digits("unique", n_sets=2, n_objects=5, random_state=0)
    >>> X.shape, y.shape
    ((2, 5, 64), (2, 5))
    """
    check_choice("task", task, ("mode", "unique"))
    check_choice("part", part, ("train", "test"))
    check_number("n_sets", n_sets, least=1, whole=True)
    check_number("n_objects", n_objects, least=1, whole=True)
    pictures, kinds = _digits()
    order = np.random.default_rng(0).permutation(len(pictures))
    cut = 2 * len(order) // 3
    pool = order[:cut] if part == "train" else order[cut:]
    drawn = np.random.default_rng(random_state).choice(pool, size=(n_sets, n_objects))
    labels = kinds[drawn]  # (n, m)
    counts = (labels[:, :, None] == labels[:, None]).sum(2)
    wanted = counts == (counts.max(1, keepdims=True) if task == "mode" else 1)
    return pictures[drawn], wanted.astype(np.int64)


@functools.cache
def _digits() -> tuple[Any, Any]:
    from sklearn.datasets import load_digits

    pictures, kinds = load_digits(return_X_y=True)
    return (pictures / 16).astype(np.float32), kinds
