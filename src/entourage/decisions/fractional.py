r"""Exact optima of logit and nested logit: maxima of ratios of sums, by Dinkelbach's iteration.

The revenue of a set is a ratio, :math:`R(S) = A(S) / B(S)`. For a number z, the set that maximises
:math:`A(S) - z B(S)` is easy to find, since objects (nests) contribute to it independently. With z the revenue of that
set, and so on, revenue rises until it is the largest there is (Dinkelbach 1967), after a few steps. For the logit
without limits on size, the sets found are revenue-ordered (Talluri and van Ryzin 2004); with them, they solve the
problem of Rusmevichientong, Shen and Shmoys (2010). For the nested logit with dissimilarities up to 1, the best set has
of each nest its objects of the largest values (Davis, Gallego and Topaloglu 2014).
"""

from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from entourage.decisions.assortment_problem import AssortmentProblem
from entourage.decisions.structure import Structure

__all__ = ["Found", "best_of_logit", "best_of_nests", "values_of_masks"]

Floats: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.int64]
Masks: TypeAlias = NDArray[np.bool_]

_MOST_OF_A_NEST = 14  # free objects of a nest whose subsets are all tried
_MOST_STEPS = 200  # Dinkelbach's iteration takes about five


@dataclass(frozen=True)
class Found:
    """The best set, and what is known of it."""

    objects: Index
    method: str
    exact: bool = True
    bound: float | None = None  # no set is better than this, where the set is not known to be the best
    evaluated: int = 0
    by_size: dict[int, float] | None = None


def best_of_logit(
    structure: Structure, problem: AssortmentProblem, inside: Masks, allowed: Masks
) -> tuple[Floats, Masks]:
    """Return the largest value in each situation on its own, (s,), and the set that has it, (s, m).

    Parameters
    ----------
    structure : of a logit
    problem : for its values, its objective and its limits on size
    inside : which objects are in every set, (m,)
    allowed : which others may be in it, (m,)
    """
    w, v = structure.weights, problem.values_of_situations
    picked = np.flatnonzero(allowed)
    few, many = problem.low - int(inside.sum()), min(problem.high - int(inside.sum()), len(picked))
    free_w, free_v = w[:, picked], v[:, picked]
    below = structure.nothing + w[:, inside].sum(1)
    above = (w * v)[:, inside].sum(1)
    if problem.objective == "surplus":
        chosen = _largest(free_w, few, many)
        value = structure.logsum + np.log(below + (free_w * chosen).sum(1))
    else:
        value = np.full(len(w), -np.inf)
        chosen = tried = _largest(free_w * free_v, few, many)
        for _ in range(_MOST_STEPS):
            total = below + (free_w * tried).sum(
                1
            )  # 0 only where nothing is offered and there is no outside option
            earned = above + (free_w * free_v * tried).sum(1)
            now = np.where(total > 0, earned / np.where(total > 0, total, 1.0), -np.inf)
            better = now > value
            if not better.any():
                break
            value, chosen = np.where(better, now, value), np.where(better[:, None], tried, chosen)
            tried = _largest(free_w * (free_v - value[:, None]), few, many)
    whole = np.broadcast_to(inside, w.shape).copy()
    whole[:, picked] = chosen
    return value, whole


def values_of_masks(structure: Structure, problem: AssortmentProblem, masks: Masks) -> Floats:
    """Return the value of sets under a logit, on average over situations: (c, m) to (c,)."""
    w, v = structure.weights, problem.values_of_situations
    below = structure.nothing[:, None] + w @ masks.T  # (s, c)
    if problem.objective == "surplus":
        return np.asarray(problem.weights @ (structure.logsum[:, None] + np.log(below)))
    return np.asarray(problem.weights @ ((w * v) @ masks.T / below))


def _largest(gains: Floats, few: int, many: int) -> Masks:
    """Choose in each row the positive gains, the largest ``many`` at most, and ``few`` at least."""
    order = np.argsort(-gains, axis=1, kind="stable")
    count = np.clip((gains > 0).sum(1), max(few, 0), many)
    chosen = np.zeros(gains.shape, dtype=bool)
    np.put_along_axis(chosen, order, np.arange(gains.shape[1]) < count[:, None], axis=1)
    return chosen


# --- nested logit ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Subsets:
    """Subsets of a nest that the best set may have: what they add above and below, their sizes and their objects."""

    above: Floats
    below: Floats
    sizes: Index
    objects: list[Index]


def best_of_nests(
    structure: Structure, problem: AssortmentProblem, situation: int = 0
) -> tuple[float, Index, str] | None:
    """Return the largest value in one situation, its set and how it was found; None where that takes too long.

    Nests of few objects are enumerated, for any dissimilarity and any limits. Of larger ones the objects of the largest
    values are tried, where that is optimal: dissimilarities up to 1, no limit on size that binds, no other required
    object in a nest of several.
    """
    v, w = problem.values_of_situations[situation], structure.weights[situation]
    nothing = float(structure.nothing[situation])
    required = np.isin(np.arange(len(w)), problem.required)
    free = np.isin(np.arange(len(w)), problem.free)
    members = [np.flatnonzero(structure.nest == nest) for nest in range(len(structure.dissimilarity))]
    small = all(free[own].sum() <= _MOST_OF_A_NEST for own in members)
    ordered = problem.objective != "surplus" and bool((structure.dissimilarity <= 1).all())
    ordered = ordered and not any(required[own].any() and len(own) > 1 for own in members)
    if not small and not ordered:
        return None
    nests = [
        _subsets(own, required, free, w, v, float(scale), problem.objective, every=small)
        for own, scale in zip(members, structure.dissimilarity, strict=True)
        if (required | free)[own].any()
    ]
    low, high = problem.low, problem.high
    free_of_limits = _search(nests, nothing, 0, len(w), problem.objective)
    if free_of_limits is None:
        return None
    value, objects = free_of_limits
    how = "nest-wise revenue-ordered" if ordered and not small else "nest-wise enumeration"
    if not low <= len(objects) <= high:
        if not small:
            return None
        limited = _search(nests, nothing, low, high, problem.objective)
        if limited is None:
            return None
        value, objects = limited
    elif ordered:
        how = "nest-wise revenue-ordered"
    shift = float(structure.logsum[situation]) if problem.objective == "surplus" else 0.0
    return (shift + value, np.sort(objects), how)


def _subsets(
    own: Index,
    required: Masks,
    free: Masks,
    w: Floats,
    v: Floats,
    scale: float,
    objective: str,
    *,
    every: bool,
) -> _Subsets:
    fixed, open_ = own[required[own]], own[free[own]]
    if every:
        chosen = [np.array(c, dtype=np.int64) for k in range(len(open_) + 1) for c in combinations(open_, k)]
    else:
        order = open_[np.argsort(-v[open_], kind="stable")]
        chosen = [order[:k] for k in range(len(order) + 1)]
    objects = [np.concatenate([fixed, c]) for c in chosen]
    whole = w[own].sum()
    inside = np.array([w[c].sum() for c in objects])
    below = np.where(inside > 0, whole * (inside / whole) ** scale, 0.0)
    if objective == "surplus":
        above, below = below, np.zeros(len(below))
    else:
        earned = np.array([(w * v)[c].sum() for c in objects])
        above = np.where(inside > 0, below * earned / np.where(inside > 0, inside, 1.0), 0.0)
    return _Subsets(above, below, np.array([len(c) for c in objects]), objects)


def _search(
    nests: list[_Subsets], nothing: float, low: int, high: int, objective: str
) -> tuple[float, Index] | None:
    """Maximise the ratio over one subset of each nest, of ``low`` to ``high`` objects together."""
    largest = sum(int(nest.sizes.max()) for nest in nests)
    binding = low > 0 or high < largest
    if objective == "surplus":
        above, _, objects = _pick(nests, 0.0, low, high, binding)
        return float(np.log(nothing + above)), objects
    z = 0.0
    best: tuple[float, Index] | None = None
    for _ in range(_MOST_STEPS):
        above, below, objects = _pick(nests, z, low, high, binding)
        if nothing + below <= 0:  # nothing is offered, and there is no outside option: limits forbid it
            return _search(nests, nothing, max(low, 1), high, objective)
        now = above / (nothing + below)
        if best is not None and now <= best[0]:
            break
        best, z = (now, objects), now
    return best


def _pick(nests: list[_Subsets], z: float, low: int, high: int, binding: bool) -> tuple[float, float, Index]:
    """Maximise the sum of gains, above - z below: nest by nest, or by dynamic programming over sizes."""
    if not binding:
        picks = [int(np.argmax(nest.above - z * nest.below)) for nest in nests]
    else:
        best = np.zeros(1)
        choices: list[Index] = []
        for nest in nests:
            gains = nest.above - z * nest.below
            most = min(high, len(best) - 1 + int(nest.sizes.max()))
            after, choice = np.full(most + 1, -np.inf), np.zeros(most + 1, dtype=np.int64)
            for size in np.unique(nest.sizes):  # the best subset of each size
                of_size = np.flatnonzero(nest.sizes == size)
                pick = int(of_size[np.argmax(gains[of_size])])
                for before in range(min(len(best), most + 1 - int(size))):
                    if best[before] + gains[pick] > after[before + size]:
                        after[before + size], choice[before + size] = best[before] + gains[pick], pick
            best, choices = after, [*choices, choice]
        at = min(low, len(best) - 1)
        at += int(np.argmax(best[at:]))
        picks = []
        for nest, choice in zip(reversed(nests), reversed(choices), strict=True):
            pick = int(choice[at])
            picks.append(pick)
            at -= int(nest.sizes[pick])
        picks.reverse()
    above = sum(float(nest.above[pick]) for nest, pick in zip(nests, picks, strict=True))
    below = sum(float(nest.below[pick]) for nest, pick in zip(nests, picks, strict=True))
    return above, below, np.concatenate([nest.objects[pick] for nest, pick in zip(nests, picks, strict=True)])
