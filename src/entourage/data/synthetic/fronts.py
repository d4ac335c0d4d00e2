"""Sets of non-dominated points as HVC-Net's authors draw them, with their exact hypervolume contributions."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entourage.data.ranks import ranks_from_scores
from entourage.data.sets import Seed, Sets
from entourage.data.synthetic.boxes import compiled
from entourage.data.synthetic.contributions import checked_contributions
from entourage.errors import DataError, check_number

__all__ = ["Fronts", "make_fronts", "non_dominated_fronts"]

SETS_AT_ONCE = 25  # of one population, labelled by one job


@dataclass(frozen=True)
class Fronts:
    """Sets of non-dominated points, to be minimised up to the reference point 1.

    Parameters
    ----------
    sets : their targets are ranks, 0 = the largest contribution
    contributions : the volume that each point alone dominates, exact, packed as the points are
    checked : how many contributions were computed again in whole numbers
    """

    sets: Sets
    contributions: NDArray[np.float64]
    checked: int


def make_fronts(
    n_sets: int = 1000,
    n_features: int = 3,
    random_state: Seed = None,
    *,
    sizes: tuple[int, int] = (1, 100),
    population: int | None = None,
    sets_per_population: int = 250,
    check_below: float = 1e-9,
    map_over: Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]] = map,
    on_sets: Callable[[int], None] = lambda done: None,
) -> Fronts:
    """Make sets of non-dominated points by the protocol of HVC-Net (Shang, Liao, Ishibuchi 2022, mode "best").

    A population of uniform points of the unit cube is sorted into fronts. For each set a size is drawn, then a front,
    with a weight that falls linearly from the best front to the last one, until it has so many points; the set is a
    random part of it. Needs numba, of the extra ``[hypervolume]``.

    Parameters
    ----------
    n_sets : how many sets
    n_features : how many objectives, at least 2
    random_state : the seed; the result does not depend on ``map_over``
    sizes : the fewest and the most points of a set
    population : points that are sorted into fronts, 10,000 for each objective by default
    sets_per_population : a new population is drawn after so many sets
    check_below : contributions smaller than that are computed again in whole numbers, without rounding
    map_over : where jobs run, for example ``functools.partial(map_in_order, workers=4)`` with
        :func:`entourage.training.parallel.map_in_order`
    on_sets : is called with how many sets are done

    Examples
    --------
    >>> made = make_fronts(3, 2, random_state=0, sizes=(2, 4), population=200)
    >>> made.sets
    Sets(3 sets of 2 to 4 objects, 2 features, targets)
    >>> bool((made.contributions > 0).all())
    True
    """
    check_number("n_sets", n_sets, least=1, whole=True)
    check_number("n_features", n_features, least=2, whole=True)
    population = 10_000 * n_features if population is None else population
    check_number("population", population, least=1, whole=True)
    check_number("sets_per_population", sets_per_population, least=1, whole=True)
    low, high = sizes
    check_number("the smallest size", low, least=1, whole=True)
    check_number("the largest size", high, least=low, whole=True)
    seeds = np.random.default_rng(random_state).integers(2**63, size=-(-n_sets // sets_per_population))
    draws = [
        _Draw(
            int(seed),
            min(sets_per_population, n_sets - i * sets_per_population),
            n_features,
            (low, high),
            population,
        )
        for i, seed in enumerate(seeds)
    ]
    points: list[NDArray[np.float32]] = []
    labels: list[NDArray[np.float64]] = []
    checked = 0
    for drawn in map_over(_draw_sets, draws):
        points += drawn
    lots = [_Lot(points[i : i + SETS_AT_ONCE], check_below) for i in range(0, n_sets, SETS_AT_ONCE)]
    for contributions, again in map_over(_label_sets, lots):
        labels += contributions
        checked += again
        on_sets(len(labels))
    sets = Sets.from_list(points)
    packed = np.concatenate(labels)
    ranks = np.empty(len(packed))
    for _, rows in sets.by_size():
        ranks[rows] = ranks_from_scores(packed[rows])
    return Fronts(sets.with_targets(ranks), packed, checked)


def non_dominated_fronts(points: NDArray[np.floating[Any]]) -> list[NDArray[np.int64]]:
    """Sort points, to be minimised, into fronts: the best is dominated by none, the next by the best alone, ...

    Examples
    --------
    >>> [front.tolist() for front in non_dominated_fronts(np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]))]
    [[0, 1], [2]]
    """
    order = np.argsort(points.sum(1, dtype=np.float64), kind="stable")  # none is dominated by a later one
    ranks = np.empty(len(points), dtype=np.int64)
    compiled(_peel)(np.ascontiguousarray(points[order], dtype=np.float64), ranks)
    return [np.sort(order[ranks == rank]) for rank in range(int(ranks.max()) + 1)] if len(points) else []


def _peel(points: NDArray[np.float64], ranks: NDArray[np.int64]) -> None:
    """Take front after front from points in the order of their sums; fill the ranks. Compiled."""
    n, d = points.shape
    left = np.arange(n)
    front = np.empty((n, d), points.dtype)
    count, rank = n, 0
    while count > 0:
        inside, after = 0, 0
        for a in range(count):
            i = left[a]
            dominated = False
            for b in range(inside):
                worse, better = True, False
                for k in range(d):
                    if front[b, k] > points[i, k]:
                        worse = False
                        break
                    better |= front[b, k] < points[i, k]
                if worse and better:
                    dominated = True
                    break
            if dominated:
                left[after] = i
                after += 1
            else:
                front[inside] = points[i]
                inside += 1
                ranks[i] = rank
        count = after
        rank += 1


@dataclass(frozen=True)
class _Draw:
    """The sets to draw from one population."""

    seed: int
    count: int
    n_features: int
    sizes: tuple[int, int]
    population: int


@dataclass(frozen=True)
class _Lot:
    """Sets to label."""

    points: list[NDArray[np.float32]]
    check_below: float


def _draw_sets(draw: _Draw) -> list[NDArray[np.float32]]:
    """Draw a population, and sets from its fronts."""
    rng = np.random.default_rng(draw.seed)
    points = rng.random((draw.population, draw.n_features), dtype=np.float32)
    fronts = non_dominated_fronts(points)
    weights = np.arange(len(fronts) - 1, -1, -1.0)  # as in their program, where the last front is never drawn
    if len(fronts) == 1:
        weights[:] = 1.0
    lengths = np.array([len(front) for front in fronts])
    return [_one(points, fronts, weights, lengths, draw.sizes, rng) for _ in range(draw.count)]


def _one(
    points: NDArray[np.float32],
    fronts: list[NDArray[np.int64]],
    weights: NDArray[np.float64],
    lengths: NDArray[np.int64],
    sizes: tuple[int, int],
    rng: np.random.Generator,
) -> NDArray[np.float32]:
    size = int(rng.integers(sizes[0], sizes[1] + 1))
    possible = np.where(lengths >= size, weights, 0.0)  # drawing again until a front is large enough
    if not possible.any():
        raise DataError(
            f"No front of {len(points):,} points with {points.shape[1]} features holds {size} points; the largest has "
            f"{lengths.max()}. Take smaller sizes or a larger population."
        )
    front = fronts[int(rng.choice(len(fronts), p=possible / possible.sum()))]
    chosen: NDArray[np.float32] = points[rng.permutation(front)[:size]]
    return chosen


def _label_sets(lot: _Lot) -> tuple[list[NDArray[np.float64]], int]:
    """Compute the contributions of sets, and how many of them were computed again."""
    found = [checked_contributions(points, 1.0, lot.check_below) for points in lot.points]
    return [contributions for contributions, _ in found], sum(again for _, again in found)
