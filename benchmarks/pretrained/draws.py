"""Draws: people held out, labelled sets from the others."""

import numpy as np
from numpy.typing import NDArray

from benchmarks.pretrained.tables import Table
from entourage.data.resampling import fold_indices

__all__ = ["MOST_TEST", "draw", "inner_folds", "room"]

Index = NDArray[np.int64]

MOST_TEST = 1000
SHARE = 1 / 3  # of the sets that are held out, at most


def draw(table: Table, n: int, seed: int) -> tuple[Index, Index]:
    """Return the places of ``n`` labelled sets and of the test sets.

    Test sets are those of people drawn at random until there are 1,000 or a third of all. Labelled sets are drawn from
    the other people. A draw has the same test sets for every ``n``, and fewer labelled sets are the first of more.
    """
    rng = np.random.default_rng([18, seed])
    groups = np.unique(table.groups(), return_inverse=True)[1]
    order = rng.permutation(int(groups.max()) + 1)
    sizes = np.bincount(groups)[order]
    wanted = min(MOST_TEST, round(SHARE * len(groups)))
    held_out = order[: 1 + int(np.searchsorted(np.cumsum(sizes), wanted))]
    tested = np.isin(groups, held_out)
    test = rng.permutation(np.flatnonzero(tested))[:MOST_TEST]
    labelled = rng.permutation(np.flatnonzero(~tested))
    if n > len(labelled):
        raise ValueError(
            f"{table.name} has {len(labelled)} sets of people who are not held out; {n} were asked for."
        )
    return labelled[:n], np.sort(test)


def room(table: Table) -> int:
    """Return how many labelled sets every draw has."""
    largest = int(np.unique(table.groups(), return_counts=True)[1].max())
    return len(table.sets) - min(MOST_TEST, round(SHARE * len(table.sets))) - largest


def inner_folds(table: Table, train: Index, folds: int, seed: int) -> list[tuple[Index, Index]]:
    """Return folds of the labelled sets that keep people together, as places in the table."""
    groups = table.groups()[train]
    count = min(folds, len(np.unique(groups)))
    return [
        (train[inside], train[outside])
        for inside, outside in fold_indices(len(train), count, groups=groups, random_state=seed)
    ]
