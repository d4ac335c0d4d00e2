"""The automatic choice of a net: each net is trained on four fifths of the sets and evaluated on the rest."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from entourage.data.resampling import fold_indices
from entourage.data.sets import Sets
from entourage.errors import DataError, check_choice, check_number
from entourage.estimators import NetEstimator, estimator_class
from entourage.estimators.inputs import check_something_to_learn
from entourage.nets import REGISTRY, Net
from entourage.tasks.evaluate import mean_over_sets, metric_of_sets

__all__ = ["CANDIDATES", "Tried", "choose_net", "estimator_for"]

#: The family, by the names that ``--model`` knows, in the order of what they cost.
CANDIDATES: dict[str, Net] = {entry.name: entry.net() for entry in REGISTRY}


@dataclass
class Tried:
    """A candidate of the automatic choice and what it was worth on sets held out."""

    name: str
    score: float
    seconds: float


def estimator_for(name: str, kind: str = "rank", **settings: Any) -> NetEstimator:
    """Make the estimator of a candidate's name, for a kind of target (:data:`entourage.tasks.TASKS`)."""
    return estimator_class(kind)(clone(CANDIDATES[check_choice("model", name, CANDIDATES)]), **settings)


def choose_net(
    sets: Sets,
    make: Callable[[str], NetEstimator],
    *,
    seconds: float = 300.0,
    groups: Any = None,
    weights: NDArray[np.float64] | None = None,
    on_try: Callable[[Tried], None] = lambda tried: None,
) -> list[Tried]:
    """Try each candidate on a held-out fifth of the sets, until the time is up; the best comes first.

    Parameters
    ----------
    sets : what to learn from
    make : a name to an estimator
    seconds : no candidate is begun later; the first is always tried, so that there is a choice to make
    groups : one label a set; sets of one group are not parted
    weights : one a set
    on_try : told of each as it is done
    """
    check_number("budget", seconds, least=0)
    task = make("context_free").task
    check_something_to_learn(task, sets)
    kinds = len(sets) if groups is None else len(np.unique(groups))
    told = task.informative(sets) & (True if weights is None else weights > 0)
    few = DataError(
        f"There are too few sets to hold some out ({len(sets)}); name a model instead of auto: {', '.join(CANDIDATES)}."
    )
    if kinds < 2:
        raise few
    train, test = fold_indices(len(sets), min(5, kinds), groups=groups)[0]
    if not told[test].any() or not told[train].any():
        raise few
    begin = time.monotonic()
    found: list[Tried] = []
    for name in CANDIDATES:
        if found and time.monotonic() - begin > seconds:
            break
        start = time.monotonic()
        own, held_out_weights = (None, None) if weights is None else (weights[train], weights[test])
        model = make(name).fit(sets[train], sample_weight=own)
        metric = model.task.metrics[model.task.searched_by]
        held_out = model.task.check(sets[test])
        score = mean_over_sets(
            metric_of_sets(metric, held_out, model.predict_scores(held_out)), held_out_weights
        )
        found.append(Tried(name, score, time.monotonic() - start))
        on_try(found[-1])
    return sorted(found, key=lambda tried: -tried.score)
