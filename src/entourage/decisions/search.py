"""The search for the best set under any model: enumeration, branch and bound, and greedy search with exchanges."""

import heapq
from collections.abc import Callable, Iterator
from itertools import chain, combinations, islice
from math import comb
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from entourage.decisions.fractional import Found, best_of_logit, values_of_masks
from entourage.decisions.offer import Offer
from entourage.decisions.structure import Structure

__all__ = ["Progress", "branch_and_bound", "count_sets", "enumerate_sets", "exchange"]

Index: TypeAlias = NDArray[np.int64]
Masks: TypeAlias = NDArray[np.bool_]
Progress: TypeAlias = Callable[[int, int], None]  # how many sets are done, of how many

_BATCH = 8192  # sets between two reports of progress
_GAIN = 1e-12  # what a better set is better by, relative to the value, so that rounding makes no cycles
_NODES = 20_000  # of branch and bound
_TOLERANCE = 1e-10  # of a bound, relative: what is nearer is as good


def count_sets(offer: Offer) -> int:
    """Return how many sets the constraints allow."""
    needed = len(offer.required)
    return sum(comb(len(offer.free), size - needed) for size in range(offer.low, offer.high + 1))


def enumerate_sets(offer: Offer, on_progress: Progress | None = None, *, keep: bool = False) -> Found:
    """Evaluate every set; of equal ones the smallest is the best, then the one of the first objects.

    With ``keep``, an interruption (Ctrl-C) ends the search with the best set so far.
    """
    total, done = count_sets(offer), 0
    best: tuple[float, Index] | None = None
    by_size: dict[int, float] = {}
    try:
        for rows in _all_sets(offer):
            values = offer.values(rows)
            at = int(np.argmax(values))
            size, top = rows.shape[1], float(values[at])
            by_size[size] = max(top, by_size.get(size, -np.inf))
            if best is None or top > best[0] + _GAIN * abs(best[0]):
                best = (top, rows[at])
            done += len(rows)
            if on_progress is not None:
                on_progress(done, total)
    except KeyboardInterrupt:
        if not keep or best is None:
            raise
        method = f"enumeration, interrupted after {done:,} of {total:,} sets"
        return Found(np.sort(best[1]), method, False, None, done, by_size)
    assert best is not None
    return Found(np.sort(best[1]), "enumeration", True, None, total, by_size)


def _all_sets(offer: Offer) -> Iterator[Index]:
    """Yield all sets, as positions (c, size), the smallest first."""
    needed = len(offer.required)
    for size in range(offer.low, offer.high + 1):
        chosen = combinations(offer.free.tolist(), size - needed)
        left = comb(len(offer.free), size - needed)
        while left:
            count = min(left, _BATCH)
            flat = chain.from_iterable(islice(chosen, count))
            free = np.fromiter(flat, dtype=np.int64, count=count * (size - needed)).reshape(count, -1)
            fixed = np.broadcast_to(offer.required, (count, needed))
            yield np.sort(np.concatenate([fixed, free], axis=1), axis=1)
            left -= count


def exchange(
    offer: Offer,
    *,
    restarts: int = 8,
    random_state: int = 0,
    on_progress: Progress | None = None,
    keep: bool = False,
    starts: list[Index] | None = None,
) -> Found:
    """Add, drop and exchange objects while the value rises, from several starts.

    Starts are: the set that grows by the best object while the value rises; the best of the sets of the largest values;
    random sets; and those given.
    """
    rng = np.random.default_rng(random_state)
    best: tuple[float, Index] | None = None
    evaluated = 0
    given = [] if starts is None else starts
    total = 2 + len(given) + restarts
    method = f"greedy with exchanges, {restarts} random restarts"
    try:
        for i in range(total):
            if i < 2:
                objects, tried = (_grown, _ordered)[i](offer)
            else:
                objects, tried = given[i - 2] if i - 2 < len(given) else _random(offer, rng), 0
            value, objects, more = _climb(offer, objects)
            evaluated += tried + more
            if best is None or value > best[0] + _GAIN * abs(best[0]):
                best = (value, objects)
            if on_progress is not None:
                on_progress(i + 1, total)
    except KeyboardInterrupt:
        if not keep or best is None:
            raise
        method += ", interrupted"
    assert best is not None
    return Found(np.sort(best[1]), method, False, None, evaluated)


def _grown(offer: Offer) -> tuple[Index, int]:
    """Grow a set by the best object, one at a time, to the least size and on while the value rises."""
    objects, tried = offer.required, 0
    value = offer.value_of(objects) if len(objects) or offer.outside else -np.inf
    while len(objects) < offer.high:
        rest = np.setdiff1d(offer.free, objects)
        rows = np.sort(
            np.concatenate([np.broadcast_to(objects, (len(rest), len(objects))), rest[:, None]], 1), 1
        )
        values = offer.values(rows)
        tried += len(rows)
        at = int(np.argmax(values))
        if len(objects) >= offer.low and values[at] <= value + _GAIN * abs(value):
            break
        value, objects = float(values[at]), rows[at]
    return objects, tried


def _ordered(offer: Offer) -> tuple[Index, int]:
    """Return the best of the sets that hold the free objects of the largest values."""
    order = offer.free[np.argsort(-(offer.weights @ offer.values_of_situations)[offer.free], kind="stable")]
    needed = len(offer.required)
    sizes = range(max(offer.low, 0), offer.high + 1)
    sets = [np.sort(np.concatenate([offer.required, order[: size - needed]])) for size in sizes]
    values = [offer.value_of(one) for one in sets]
    return sets[int(np.argmax(values))], len(sets)


def _random(offer: Offer, rng: np.random.Generator) -> Index:
    size = int(rng.integers(offer.low, offer.high + 1)) - len(offer.required)
    return np.sort(np.concatenate([offer.required, rng.choice(offer.free, size, replace=False)]))


def _climb(offer: Offer, objects: Index) -> tuple[float, Index, int]:
    """Take the best set that differs by one object added, dropped or exchanged, while it is better."""
    value, tried = offer.value_of(objects), 1
    while True:
        found: tuple[float, Index] | None = None
        for rows in _neighbours(offer, objects):
            values = offer.values(rows)
            tried += len(rows)
            at = int(np.argmax(values))
            if values[at] > (value if found is None else found[0]) + _GAIN * abs(value):
                found = (float(values[at]), rows[at])
        if found is None:
            return value, objects, tried
        value, objects = found


def _neighbours(offer: Offer, objects: Index) -> Iterator[Index]:
    """Yield the sets with an object more, an object less, and another object, (c, size) each."""
    inside, rest = np.intersect1d(objects, offer.free), np.setdiff1d(offer.free, objects)
    with_all = np.broadcast_to(objects, (len(rest), len(objects)))
    if len(objects) < offer.high and len(rest):
        yield np.sort(np.concatenate([with_all, rest[:, None]], axis=1), axis=1)
    if len(inside):
        fewer = np.stack([objects[objects != one] for one in inside])  # (inside, size - 1)
        if len(objects) > offer.low:
            yield fewer
        if len(rest):
            pairs = np.repeat(fewer, len(rest), axis=0)
            yield np.sort(np.concatenate([pairs, np.tile(rest, len(fewer))[:, None]], axis=1), axis=1)


def branch_and_bound(
    structure: Structure,
    offer: Offer,
    *,
    start: Index,
    on_progress: Progress | None = None,
    keep: bool = False,
) -> Found:
    """Find the best set of a logit over a population of situations.

    The bound of a branch is the mean of what is best in each situation on its own (`best_of_logit`): no set can do
    better.
    """
    m = structure.weights.shape[1]
    best = np.isin(np.arange(m), start)
    value = float(values_of_masks(structure, offer, best[None])[0])
    inside, allowed = (np.isin(np.arange(m), which) for which in (offer.required, offer.free))
    heap: list[tuple[float, int, Masks, Masks]] = []
    nodes = 0

    def add(inside: Masks, allowed: Masks) -> None:
        """Bound a branch, try the sets that its situations like best, and keep it if it may hold a better one."""
        nonlocal best, value, nodes
        within = int(inside.sum())
        if within > offer.high or within + int(allowed.sum()) < offer.low:
            return
        nodes += 1
        tops, sets = best_of_logit(structure, offer, inside, allowed)
        values = values_of_masks(structure, offer, sets)
        at = int(np.argmax(values))
        if values[at] > value + _GAIN * abs(value):
            best, value = sets[at], float(values[at])
        bound = float(offer.weights @ tops)
        if bound > value + _TOLERANCE * max(abs(value), abs(bound)):
            share = offer.weights @ sets
            doubt = np.where(allowed, np.minimum(share, 1 - share), -1.0)
            branch = np.zeros(m, dtype=bool)
            branch[int(np.argmax(doubt))] = True
            heapq.heappush(heap, (-bound, nodes, np.stack([inside, allowed]), branch))

    method, left = "branch and bound", None
    add(inside, allowed)
    try:
        while heap and nodes < _NODES:
            bound, _, (inside, allowed), branch = heapq.heappop(heap)
            left = -bound  # no set of an open branch is better
            if left <= value + _TOLERANCE * max(abs(value), abs(left)):
                heap.clear()
                break
            add(inside | branch, allowed & ~branch)
            add(inside, allowed & ~branch)
            if on_progress is not None:
                on_progress(nodes, _NODES)
    except KeyboardInterrupt:
        if not keep:
            raise
        method = "branch and bound, interrupted"
    objects = np.flatnonzero(best)
    if method == "branch and bound":
        if not heap:
            return Found(objects, method, True, None, nodes)
        method, left = f"branch and bound, stopped after {nodes:,} branches", -heap[0][0]
    return Found(objects, method, False, value if left is None else max(value, left), nodes)
