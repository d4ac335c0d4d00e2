"""Which sets are held out of training, and how a net is evaluated on them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from entourage.data.resampling import labels_of
from entourage.data.sets import Sets
from entourage.tasks import Task, metric_of_sets
from entourage.training.batches import Resident
from entourage.training.held_out import HeldOutEvaluation

__all__ = ["FEWEST_TO_HOLD_OUT", "evaluation_on", "hold_out"]

MOST_TO_HOLD_OUT = 20_000  # of sets on disk
FEWEST_TO_HOLD_OUT = 20  # with fewer informative sets than this, none are held out


def hold_out(
    task: Task, sets: Sets, share: float, seed: int, groups: Any = None
) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """Return which sets to learn from, and which to hold out: only informative ones; None for none.

    With ``groups``, one label a set, whole groups are held out.
    """
    informative = np.flatnonzero(task.informative(sets))
    if not share or len(informative) < FEWEST_TO_HOLD_OUT:
        return np.arange(len(sets)), None
    count = min(max(1, round(share * len(sets))), len(informative) - 1)
    count = min(count, MOST_TO_HOLD_OUT) if sets.on_disk else count  # these are read into memory
    if groups is not None:
        return _hold_out_groups(labels_of(groups, len(sets)), informative, count, seed)
    held_out = np.sort(np.random.default_rng([seed, 2**32]).permutation(informative)[:count])
    return np.setdiff1d(np.arange(len(sets)), held_out), held_out


def _hold_out_groups(
    labels: NDArray[np.int64], informative: NDArray[np.int64], count: int, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """Hold out groups, drawn at random, that have about ``count`` informative sets; one group is left.

    Where the first one drawn has more, the smallest is held out instead: most sets shall be learnt from.
    """
    sizes = np.bincount(labels[informative], minlength=int(labels.max()) + 1)
    order = np.random.default_rng([seed, 2**32]).permutation(len(sizes))
    order = order[sizes[order] > 0]
    if len(order) < 2:
        return np.arange(len(labels)), None
    fitting = int(np.searchsorted(np.cumsum(sizes[order[:-1]]), count, side="right"))
    some = order[:fitting] if fitting else order[[sizes[order].argmin()]]
    held_out = informative[np.isin(labels[informative], some)]
    return np.flatnonzero(~np.isin(labels, some)), held_out


def evaluation_on(
    held_out: Sets,
    task: Task,
    view: Callable[[Sets], Sets],
    device: torch.device,
    precision: str,
    *,
    weights: NDArray[Any] | None,
    seed: int,
) -> HeldOutEvaluation:
    """Return what scores a net on held-out sets, by the criterion of the task."""

    def values(scores: NDArray[Any]) -> NDArray[np.float64]:
        return metric_of_sets(task.criterion, held_out, scores)

    return HeldOutEvaluation(Resident(view(held_out), device), values, precision, weights=weights, seed=seed)
