"""The search for the best set under any model: enumeration, branch and bound, and greedy search with exchanges."""

import heapq
from collections.abc import Callable, Iterator
from itertools import chain, combinations, islice
from math import comb
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from entourage.decisions.assortment_problem import AssortmentProblem
from entourage.decisions.fractional import Found, best_of_logit, values_of_masks
from entourage.decisions.structure import Structure

__all__ = ["Progress", "branch_and_bound", "count_sets", "enumerate_sets", "exchange"]

Index: TypeAlias = NDArray[np.int64]
Masks: TypeAlias = NDArray[np.bool_]
Progress: TypeAlias = Callable[[int, int], None]  # how many sets are done, of how many

_BATCH = 8192  # sets between two reports of progress
_GAIN = 1e-12  # what a better set is better by, relative to the value, so that rounding makes no cycles
_NODES = 20_000  # of branch and bound
_TOLERANCE = 1e-10  # of a bound, relative: what is nearer is as good


def count_sets(problem: AssortmentProblem) -> int:
    """Return how many sets the constraints allow."""
    needed = len(problem.required)
    return sum(comb(len(problem.free), size - needed) for size in range(problem.low, problem.high + 1))


def enumerate_sets(
    problem: AssortmentProblem, on_progress: Progress | None = None, *, keep: bool = False
) -> Found:
    """Evaluate every set; of equal ones the smallest is the best, then the one of the first objects.

    With ``keep``, an interruption (Ctrl-C) ends the search with the best set so far.
    """
    total, done = count_sets(problem), 0
    best: tuple[float, Index] | None = None
    by_size: dict[int, float] = {}
    try:
        for rows in _all_sets(problem):
            values = problem.values(rows)
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


def _all_sets(problem: AssortmentProblem) -> Iterator[Index]:
    """Yield all sets, as positions (c, size), the smallest first."""
    needed = len(problem.required)
    for size in range(problem.low, problem.high + 1):
        chosen = combinations(problem.free.tolist(), size - needed)
        left = comb(len(problem.free), size - needed)
        while left:
            count = min(left, _BATCH)
            flat = chain.from_iterable(islice(chosen, count))
            free = np.fromiter(flat, dtype=np.int64, count=count * (size - needed)).reshape(count, -1)
            fixed = np.broadcast_to(problem.required, (count, needed))
            yield np.sort(np.concatenate([fixed, free], axis=1), axis=1)
            left -= count


def exchange(
    problem: AssortmentProblem,
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
                objects, tried = (_grown, _ordered)[i](problem)
            else:
                objects, tried = given[i - 2] if i - 2 < len(given) else _random(problem, rng), 0
            value, objects, more = _climb(problem, objects)
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


def _grown(problem: AssortmentProblem) -> tuple[Index, int]:
    """Grow a set by the best object, one at a time, to the least size and on while the value rises."""
    objects, tried = problem.required, 0
    value = problem.value_of(objects) if len(objects) or problem.outside else -np.inf
    while len(objects) < problem.high:
        rest = np.setdiff1d(problem.free, objects)
        rows = np.sort(
            np.concatenate([np.broadcast_to(objects, (len(rest), len(objects))), rest[:, None]], 1), 1
        )
        values = problem.values(rows)
        tried += len(rows)
        at = int(np.argmax(values))
        if len(objects) >= problem.low and values[at] <= value + _GAIN * abs(value):
            break
        value, objects = float(values[at]), rows[at]
    return objects, tried


def _ordered(problem: AssortmentProblem) -> tuple[Index, int]:
    """Return the best of the sets that hold the free objects of the largest values."""
    order = problem.free[
        np.argsort(-(problem.weights @ problem.values_of_situations)[problem.free], kind="stable")
    ]
    needed = len(problem.required)
    sizes = range(max(problem.low, 0), problem.high + 1)
    sets = [np.sort(np.concatenate([problem.required, order[: size - needed]])) for size in sizes]
    values = [problem.value_of(one) for one in sets]
    return sets[int(np.argmax(values))], len(sets)


def _random(problem: AssortmentProblem, rng: np.random.Generator) -> Index:
    size = int(rng.integers(problem.low, problem.high + 1)) - len(problem.required)
    return np.sort(np.concatenate([problem.required, rng.choice(problem.free, size, replace=False)]))


def _climb(problem: AssortmentProblem, objects: Index) -> tuple[float, Index, int]:
    """Take the best set that differs by one object added, dropped or exchanged, while it is better."""
    value, tried = problem.value_of(objects), 1
    while True:
        found: tuple[float, Index] | None = None
        for rows in _neighbours(problem, objects):
            values = problem.values(rows)
            tried += len(rows)
            at = int(np.argmax(values))
            if values[at] > (value if found is None else found[0]) + _GAIN * abs(value):
                found = (float(values[at]), rows[at])
        if found is None:
            return value, objects, tried
        value, objects = found


def _neighbours(problem: AssortmentProblem, objects: Index) -> Iterator[Index]:
    """Yield the sets with an object more, an object less, and another object, (c, size) each."""
    inside, rest = np.intersect1d(objects, problem.free), np.setdiff1d(problem.free, objects)
    with_all = np.broadcast_to(objects, (len(rest), len(objects)))
    if len(objects) < problem.high and len(rest):
        yield np.sort(np.concatenate([with_all, rest[:, None]], axis=1), axis=1)
    if len(inside):
        fewer = np.stack([objects[objects != one] for one in inside])  # (inside, size - 1)
        if len(objects) > problem.low:
            yield fewer
        if len(rest):
            pairs = np.repeat(fewer, len(rest), axis=0)
            yield np.sort(np.concatenate([pairs, np.tile(rest, len(fewer))[:, None]], axis=1), axis=1)


def branch_and_bound(
    structure: Structure,
    problem: AssortmentProblem,
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
    value = float(values_of_masks(structure, problem, best[None])[0])
    inside, allowed = (np.isin(np.arange(m), which) for which in (problem.required, problem.free))
    heap: list[tuple[float, int, Masks, Masks]] = []
    nodes = 0

    def add(inside: Masks, allowed: Masks) -> None:
        """Bound a branch, try the sets that its situations like best, and keep it if it may hold a better one."""
        nonlocal best, value, nodes
        within = int(inside.sum())
        if within > problem.high or within + int(allowed.sum()) < problem.low:
            return
        nodes += 1
        tops, sets = best_of_logit(structure, problem, inside, allowed)
        values = values_of_masks(structure, problem, sets)
        at = int(np.argmax(values))
        if values[at] > value + _GAIN * abs(value):
            best, value = sets[at], float(values[at])
        bound = float(problem.weights @ tops)
        if bound > value + _TOLERANCE * max(abs(value), abs(bound)):
            share = problem.weights @ sets
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
