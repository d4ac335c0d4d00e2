"""The automatic choice of a net: each of the family learns from four fifths of the sets and is judged by the rest."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from entourage.errors import DataError, check_choice, check_number
from entourage.estimators import Ranker, SetEstimator
from entourage.folds import fold_indices
from entourage.nets import FATE, FETA, ContextFree, Net, SetAttention
from entourage.sets import Sets

__all__ = ["CANDIDATES", "Tried", "choose_net", "ranker_for"]

#: The family, by the names that ``--model`` knows, in the order of what they cost.
CANDIDATES: dict[str, Net] = {
    "context_free": ContextFree(),
    "fate": FATE(),
    "feta": FETA(),
    "set_attention": SetAttention(),
}


@dataclass
class Tried:
    """A candidate of the automatic choice and what it was worth on sets held out."""

    name: str
    score: float
    seconds: float


def ranker_for(name: str, **settings: Any) -> Ranker:
    """Make the ranker of a candidate's name; one without context learns by the logistic loss unless told otherwise."""
    net = CANDIDATES[check_choice("model", name, CANDIDATES)]
    loss = "logistic" if name == "context_free" else "hinge"
    return Ranker(clone(net), **({"loss": loss} | settings))


def choose_net(
    sets: Sets,
    make: Callable[[str], SetEstimator] = ranker_for,
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
    train, test = fold_indices(len(sets), 5, groups=groups)[0] if len(sets) >= 5 else (None, None)
    informative = Ranker.task.informative(sets)
    if train is None or not informative[test].any() or not informative[train].any():
        raise DataError("There are too few sets to hold some out; name a model instead of auto.")
    begin = time.monotonic()
    found: list[Tried] = []
    for name in CANDIDATES:
        if found and time.monotonic() - begin > seconds:
            break
        start = time.monotonic()
        model = make(name).fit(sets[train], sample_weight=None if weights is None else weights[train])
        if model.interrupted_:
            raise KeyboardInterrupt
        found.append(Tried(name, model.score(sets[test]), time.monotonic() - start))
        on_try(found[-1])
    return sorted(found, key=lambda tried: -tried.score)
