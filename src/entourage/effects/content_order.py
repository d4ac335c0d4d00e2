"""An order of sets and of their objects by what they hold, so that a result doesn't depend on the order of rows.

Whatever is drawn at random for sets in this order is the same when the rows of a table are shuffled. Sets and objects
are ordered by 64-bit hashes of their numbers; objects that are alike in everything are interchangeable.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from entourage.data.sets import Sets

__all__ = ["chunks_of_sets", "content_order", "in_content_order"]

Index: TypeAlias = NDArray[np.int64]
Hashes: TypeAlias = NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)  # of splitmix64 (Steele, Lea and Flood, 2014), as the two below
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def chunks_of_sets(sizes: Index, most_objects: int) -> list[tuple[int, int]]:
    """Cut sets into stretches of at most ``most_objects`` objects, or of one set.

    Examples
    --------
    >>> chunks_of_sets(np.array([2, 2, 3, 9, 1]), 5)
    [(0, 2), (2, 3), (3, 4), (4, 5)]
    """
    found, begin, held = [], 0, 0
    for i, size in enumerate(sizes.tolist()):
        if held and held + size > most_objects:
            found.append((begin, i))
            begin, held = i, 0
        held += size
    return [*found, (begin, len(sizes))]


def content_order(
    sets: Sets, labels: Index | None = None, weights: NDArray[Any] | None = None, *, most_objects: int = 2**18
) -> Index:
    """Return the order of sets by what they hold; those that hold the same are ordered by what their group holds.

    Examples
    --------
    >>> sets = Sets.from_list([[[1.0]], [[2.0], [3.0]], [[4.0]]])
    >>> there, back = content_order(sets), content_order(sets[[2, 1, 0]])
    >>> (2 - back == there).all()
    np.True_
    """
    hashes = np.empty(len(sets), dtype=np.uint64)
    for begin, end in chunks_of_sets(sets.sizes, most_objects):
        part = sets[begin:end]
        hashes[begin:end] = np.add.reduceat(_hash_objects(part), part.offsets[:-1])
    if sets.situation is not None:
        hashes = _mix(hashes ^ _hash_rows(sets.situation))
    if weights is not None:
        hashes = _mix(hashes ^ _hash_rows(weights[:, None]))
    if labels is None:
        return np.argsort(hashes, kind="stable")
    of_group = np.zeros(int(labels.max()) + 1, dtype=np.uint64)
    np.add.at(of_group, labels, _mix(hashes))
    return np.lexsort((of_group[labels], hashes))


def in_content_order(sets: Sets) -> Sets:
    """Return the same sets, without positions, with the objects of each ordered by what they hold.

    Examples
    --------
    >>> one, other = Sets.from_list([[[1.0], [2.0]]], [[0, 1]]), Sets.from_list([[[2.0], [1.0]]], [[1, 0]])
    >>> (in_content_order(one).objects == in_content_order(other).objects).all()
    np.True_
    """
    owner = np.repeat(np.arange(len(sets)), sets.sizes)
    rows = np.lexsort((_hash_objects(sets), owner))
    ordered = sets.with_position(None).with_features(sets.objects[rows], sets.situation)
    return ordered if sets.targets is None else ordered.with_targets(sets.targets[rows], worst=sets.worst)


def _hash_objects(sets: Sets) -> Hashes:
    """Hash each object with its target."""
    hashes = _hash_rows(sets.objects)
    return hashes if sets.targets is None else _mix(hashes ^ _hash_rows(sets.targets[:, None]))


def _hash_rows(values: NDArray[Any]) -> Hashes:
    """Hash each row of numbers; 0 and -0 are one number, and so are all NaN."""
    hashes = np.zeros(len(values), dtype=np.uint64)
    for column in values.T:
        numbers = np.ascontiguousarray(column, dtype=np.float64) + 0.0
        numbers[np.isnan(numbers)] = np.nan
        hashes = _mix(hashes + _STEP ^ numbers.view(np.uint64))
    return hashes


def _mix(numbers: Hashes) -> Hashes:
    numbers = (numbers ^ (numbers >> np.uint64(30))) * _FIRST
    numbers = (numbers ^ (numbers >> np.uint64(27))) * _SECOND
    return numbers ^ (numbers >> np.uint64(31))
