"""The fits of a comparison: each candidate on the training part of each outer and inner fold."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from entourage.data.sets import Sets
from entourage.errors import UserError
from entourage.estimators.base import SetPredictor
from entourage.estimators.positions import learnable_sets
from entourage.selection.convergence import learning_curve
from entourage.tasks import task_of
from entourage.tasks.evaluate import metric_of_sets

__all__ = ["FitCandidate", "FoldFit", "FoldResult", "Key", "mean_over_folds", "seeded_clone"]

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


@dataclass(frozen=True)
class FitCandidate:
    """Fits a candidate to one fold and evaluates it; carries all that a worker needs."""

    sets: Sets
    candidates: dict[str, tuple[SetPredictor, str]]
    metrics: tuple[str, ...]
    random_state: int
    kind: str
    outside: bool

    def __call__(self, job: FoldFit) -> FoldResult:
        """Do one fit."""
        begin = time.perf_counter()
        place = list(self.candidates).index(job.name)
        inner = 0 if job.inner is None else job.inner + 1
        model = seeded_clone(self.candidates[job.name][0], self.random_state, place, job.fold, inner)
        try:
            model.fit(learnable_sets(model, self.sets[job.train]))
            test = self.sets[job.test]
            scores = model.predict_scores(test)
        except UserError as error:
            raise type(error)(f"{job.name}, fold {job.fold + 1}: {error}") from error
        task = task_of(self.kind, outside=self.outside)
        known = task.metrics | model.task.metrics  # its own first: a threshold counts
        values = {name: metric_of_sets(known[name], test, scores) for name in self.metrics}
        return FoldResult(values, time.perf_counter() - begin, learning_curve(model))

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
        }


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
