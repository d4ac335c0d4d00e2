"""Folds of sets: whole sets, and whole groups of them."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entourage.errors import DataError, check_number

__all__ = ["fold_indices"]


def fold_indices(
    n_sets: int, folds: int, *, groups: ArrayLike | None = None, random_state: int = 0
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Part sets into folds: for each, the sets to learn from and those to judge by.

    Sets of one group (a user, a season) are never parted.
    """
    check_number("folds", folds, least=2, whole=True)
    labels = np.arange(n_sets) if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
    if labels.shape != (n_sets,):
        raise DataError(f"groups needs one entry a set, shape {(n_sets,)}; got {labels.shape}.")
    kinds = int(labels.max()) + 1
    if kinds < folds:
        what = "sets" if groups is None else "groups of sets"
        raise DataError(f"{folds} folds need at least so many {what}; there are {kinds}.")
    order = np.random.default_rng([random_state, folds]).permutation(kinds)
    fold_of = np.empty(kinds, dtype=np.int64)
    fold_of[order] = np.arange(kinds) % folds
    mine = fold_of[labels]
    return [(np.flatnonzero(mine != fold), np.flatnonzero(mine == fold)) for fold in range(folds)]
