"""One object of a set changed, or removed, the others as they are; every object in turn, in batches."""

from collections.abc import Callable, Iterator

import numpy as np

from entourage.data.sets import Sets
from entourage.decisions.offers import Floats, Index

__all__ = ["each_moved", "each_removed", "probabilities_after"]

_ROWS = 400_000  # objects of one batch


def each_moved(
    sets: Sets, column: int, values: Floats, objects: Index | None = None
) -> Iterator[tuple[Index, Index, Sets]]:
    """Yield copies of the sets in which one object has another value of a column: all objects, or some, in turn.

    Yields
    ------
    objects : which objects were changed, places among the packed ones
    rows : where these stand among the objects of the copies
    copies : one set for each of them, in their order

    Examples
    --------
    >>> sets = Sets.of([[[1.0], [2.0]]])
    >>> objects, rows, copies = next(each_moved(sets, 0, np.array([7.0, 9.0])))
    >>> copies.objects[:, 0].tolist(), rows.tolist()
    ([7.0, 2.0, 1.0, 9.0], [0, 3])
    """
    chosen = np.arange(len(sets.objects)) if objects is None else objects
    owner = np.searchsorted(sets.offsets, chosen, side="right") - 1
    for part in _parts(sets.sizes[owner]):
        copies = sets[owner[part]]
        rows = copies.offsets[:-1] + chosen[part] - sets.offsets[owner[part]]
        changed = copies.objects.astype(np.float64)
        changed[rows, column] = values[part]
        yield chosen[part], rows, copies.with_features(changed, copies.situation)


def each_removed(sets: Sets) -> Iterator[tuple[Index, Index, Sets]]:
    """Yield copies of the sets without one object, all objects of sets of at least two in turn.

    Yields
    ------
    objects : which objects were removed, places among the packed ones
    kept : of each object of the copies, its place among the packed ones
    copies : one set for each of the removed objects, in their order

    Examples
    --------
    >>> objects, kept, copies = next(each_removed(Sets.of([[[1.0], [2.0]], [[3.0]]])))
    >>> objects.tolist(), kept.tolist(), copies.objects[:, 0].tolist()
    ([0, 1], [1, 0], [2.0, 1.0])
    """
    owner = np.repeat(np.arange(len(sets)), sets.sizes)
    chosen = np.flatnonzero(sets.sizes[owner] > 1)
    for part in _parts(sets.sizes[owner[chosen]]):
        gone = chosen[part]
        whole = sets[owner[gone]]
        begins = whole.offsets[:-1]
        left = np.ones(len(whole.objects), dtype=bool)
        left[begins + gone - sets.offsets[owner[gone]]] = False
        source = np.arange(len(whole.objects)) + np.repeat(sets.offsets[owner[gone]] - begins, whole.sizes)
        offsets = np.append(0, np.cumsum(whole.sizes - 1))
        position = None if whole.position is None else whole.position[left]
        beside = {"worst": whole.worst, "encoder": whole.encoder, "position": position}
        targets = None
        yield gone, source[left], Sets(whole.objects[left], offsets, targets, whole.situation, **beside)


def probabilities_after(
    probabilities: Callable[[Sets], Floats],
    sets: Sets,
    column: int,
    values: Floats,
    objects: Index | None = None,
) -> Floats:
    """Return the probability of each object when its own value of a column, and nothing else, is another."""
    found = np.empty(len(sets.objects) if objects is None else len(objects))
    done = 0
    for chosen, rows, copies in each_moved(sets, column, values, objects):
        found[done : done + len(chosen)] = probabilities(copies)[rows]
        done += len(chosen)
    return found


def _parts(sizes: Index) -> Iterator[slice]:
    """Yield stretches whose sizes sum to about a batch."""
    ends = np.cumsum(sizes)
    start = 0
    while start < len(sizes):
        before = 0 if start == 0 else int(ends[start - 1])
        stop = max(int(np.searchsorted(ends, before + _ROWS, side="right")), start + 1)
        yield slice(start, stop)
        start = stop
