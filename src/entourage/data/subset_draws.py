"""Subsets of the objects of sets, drawn without replacement."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from entourage.data.coerce import offsets_of

__all__ = ["draw_subsets"]

Index: TypeAlias = NDArray[np.int64]


def draw_subsets(
    offsets: Index, size: int, per_set: int, rng: np.random.Generator
) -> tuple[Index, Index, Index]:
    """Draw ``per_set`` subsets of at most ``size`` objects from each set: their rows, their offsets, and of which set.

    Examples
    --------
    >>> rows, starts, owners = draw_subsets(np.array([0, 3, 4]), 2, 2, np.random.default_rng(0))
    >>> starts.tolist(), owners.tolist(), rows[4:].tolist()
    ([0, 2, 4, 5, 6], [0, 0, 1, 1], [3, 3])
    """
    chosen = np.repeat(np.arange(len(offsets) - 1), per_set)
    sizes = np.diff(offsets)[chosen]
    begins = offsets_of(sizes)
    owner = np.repeat(np.arange(len(chosen)), sizes)
    keys = rng.random(begins[-1])
    order = np.lexsort((keys, owner))  # shuffled within each set, sets in their order
    place = np.arange(begins[-1]) - np.repeat(begins[:-1], sizes)
    kept = np.sort(order[place < size])
    rows = kept + (offsets[chosen] - begins[:-1])[owner[kept]]
    return rows, offsets_of(np.minimum(sizes, size)), chosen
