"""Random subsets of sets: which rows of their objects are drawn."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from entourage.data.coerce import Seed, offsets_of
from entourage.errors import check_number

__all__ = ["draw_subsets"]

Index: TypeAlias = NDArray[np.int64]


def draw_subsets(
    all_offsets: Index, size: int, random_state: Seed = None, *, per_set: int = 1
) -> tuple[Index, Index, Index]:
    """Draw ``per_set`` subsets of ``size`` objects from each set; one of at most ``size`` objects is taken whole.

    Returns the rows drawn, in order, the size of each subset, and the set it is drawn from.

    Examples
    --------
    >>> rows, sizes, owners = draw_subsets(np.array([0, 2, 5]), 2, random_state=0)
    >>> rows[:2].tolist(), len(rows), sizes.tolist(), owners.tolist()
    ([0, 1], 4, [2, 2], [0, 1])
    """
    check_number("size", size, least=1, whole=True)
    check_number("per_set", per_set, least=1, whole=True)
    count = len(all_offsets) - 1
    chosen = np.repeat(np.arange(count), per_set)
    sizes = np.diff(all_offsets)[chosen]
    offsets = offsets_of(sizes)
    owner = np.repeat(np.arange(len(chosen)), sizes)
    keys = np.random.default_rng(random_state).random(offsets[-1])
    order = np.lexsort((keys, owner))  # shuffled within each set, sets in their order
    place = np.arange(offsets[-1]) - np.repeat(offsets[:-1], sizes)
    kept = np.sort(order[place < size])
    rows = kept + (all_offsets[chosen] - offsets[:-1])[owner[kept]]
    return rows, np.minimum(sizes, size), chosen
