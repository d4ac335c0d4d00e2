"""The fits of a comparison: each candidate on the training part of each outer and inner fold."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from entourage.data.sets import Sets
from entourage.errors import UserError
from entourage.estimators import NetEstimator
from entourage.estimators.base import SetPredictor
from entourage.estimators.baselines.base import Baseline
from entourage.estimators.blend import sets_for
from entourage.estimators.positions import learnable_sets
from entourage.selection.convergence import learning_curve
from entourage.tasks import task_of
from entourage.tasks.evaluate import metric_of_sets
from entourage.training.deadline import time_is_up, time_limit

__all__ = ["FitCandidate", "FoldFit", "FoldResult", "Key", "groups_for", "mean_over_folds", "seeded_clone"]

Floats: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.int64]
Key: TypeAlias = tuple[str, int, int | None]  # candidate, outer fold, inner fold


@dataclass(frozen=True)
class FoldFit:
    """One fit to do: which candidate, on which sets, evaluated on which others."""

    name: str
    fold: int
    inner: int | None  # None for the fit on the whole training part of the outer fold
    train: Index
    test: Index
    aside: Index | None = None  # sets to choose by, where there are no inner folds
    place: int = 0  # among all fits

    @property
    def key(self) -> Key:
        """What its result is kept under."""
        return self.name, self.fold, self.inner

    def is_inner(self, name: str, fold: int) -> bool:
        """Whether it is a fit of a candidate on an inner fold of an outer one."""
        return (self.name, self.fold) == (name, fold) and self.inner is not None


@dataclass(frozen=True)
class FoldResult:
    """What came of a fit: each metric of each set it was evaluated on."""

    values: dict[str, Floats]
    seconds: float
    curve: Floats  # see learning_curve
    aside: Floats | None = None  # the metric to choose by, of each set that was set aside
    out_of_time: bool = False


@dataclass(frozen=True)
class FitCandidate:
    """Fits a candidate to one fold and evaluates it; carries all that a worker needs."""

    sets: Sets
    candidates: dict[str, tuple[SetPredictor, str]]
    metrics: tuple[str, ...]
    random_state: int
    kind: str
    outside: bool
    fits: int = 0  # in all
    workers: int = 1
    deadline: float = math.inf  # by the clock of the machine
    labels: Index | None = None  # the group of each set

    def __call__(self, job: FoldFit) -> FoldResult:
        """Do one fit."""
        begin = time.perf_counter()
        place = list(self.candidates).index(job.name)
        inner = 0 if job.inner is None else job.inner + 1
        model = seeded_clone(self.candidates[job.name][0], self.random_state, place, job.fold, inner)
        sets = sets_for(model, self.sets, [] if self.sets.encoder is None else self.sets.encoder.categories)
        own = None if self.labels is None else self.labels[job.train]
        try:
            with time_limit(self._seconds(job)):
                model.fit(learnable_sets(model, sets[job.train]), **groups_for(model, own))
                out_of_time = time_is_up()
            values = self._values(model, sets[job.test], self.metrics)
            aside = None if job.aside is None else self._values(model, sets[job.aside], self.metrics[:1])
        except UserError as error:
            raise type(error)(f"{job.name}, fold {job.fold + 1}: {error}") from error
        return FoldResult(
            values,
            time.perf_counter() - begin,
            learning_curve(model),
            None if aside is None else aside[self.metrics[0]],
            out_of_time,
        )

    def _values(self, model: Any, sets: Sets, metrics: Sequence[str]) -> dict[str, Floats]:
        scores = model.predict_scores(sets)
        task = task_of(self.kind, outside=self.outside)
        known = task.metrics | model.task.metrics  # its own first: a threshold counts
        return {name: metric_of_sets(known[name], sets, scores) for name in metrics}

    def _seconds(self, job: FoldFit) -> float:
        """Return the time that a fit may take: an equal share of what is left."""
        if self.deadline == math.inf:
            return math.inf
        return max(0.0, self.deadline - time.time()) * self.workers / max(1, self.fits - job.place)

    def row(self, job: FoldFit, result: FoldResult) -> dict[str, Any]:
        """Return a fit and its result as plain data."""
        return {
            "candidate": job.name,
            "kind": self.candidates[job.name][1],
            "fold": job.fold,
            "inner": job.inner,
            "learnt_from": len(job.train),
            "judged_by": len(job.test),
            "means": {name: mean_over_folds([values]) for name, values in result.values.items()},
            "seconds": round(result.seconds, 3),
            "out_of_time": result.out_of_time,
        }


def groups_for(model: Any, labels: Index | None) -> dict[str, Index]:
    """Return the groups for a model that holds sets out of training itself; one group can't be parted."""
    if labels is None or not isinstance(model, NetEstimator | Baseline) or len(np.unique(labels)) < 2:
        return {}
    return {"groups": labels}


def seeded_clone(model: SetPredictor, *entropy: int) -> Any:
    """Clone a model with a seed of its own for each fit, whichever worker does it and when."""
    copy = clone(model)
    if "random_state" in copy.get_params(deep=False):
        copy.set_params(random_state=int(np.random.default_rng(entropy).integers(2**31)))
    return copy


def mean_over_folds(values: Sequence[Floats]) -> float:
    """Return the mean over all sets of some folds in which a metric is defined; NaN where there is none."""
    joined = np.concatenate(values)
    return float("nan") if np.isnan(joined).all() else float(np.nanmean(joined))
