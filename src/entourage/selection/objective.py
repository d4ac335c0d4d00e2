"""What a search maximises: the mean score of a model over inner folds, reported while it learns."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from entourage.data.resampling import fold_indices
from entourage.data.sets import Sets
from entourage.errors import DataError, check_number
from entourage.estimators import NetEstimator
from entourage.estimators.base import SetPredictor
from entourage.tasks.evaluate import metric_of_sets

__all__ = ["Objective", "defined_mean", "inner_folds"]

Folds: TypeAlias = list[tuple[NDArray[np.int64], NDArray[np.int64]]]

_STEPS_A_FOLD = 1000  # reports are numbered: those of the second fold from 1000 on, its last one 1999


@dataclass(frozen=True)
class Objective:
    """The mean score of a model with some settings over the inner folds.

    Progress is reported, so that a trial can be pruned. All reports of a trial are of one measure, so that they can be
    compared with those of other trials and with each other: the criterion where the model evaluates it while it
    learns, else the metric of the search.
    """

    model: SetPredictor
    sets: Sets
    folds: Folds
    metric: str

    def __call__(self, params: Mapping[str, Any], report: Callable[[int, float], None]) -> float:
        """Return the mean score; ``report(number, score)`` is called as it becomes known."""
        scores: list[float] = []
        reported: list[float] = []  # of the folds that are done
        for i, (train, test) in enumerate(self.folds):
            model: Any = clone(self.model).set_params(**params)
            if self.reports_criterion:
                model.fit(self.sets[train], on_evaluation=_Progress(report, i, reported))
            else:
                model.fit(self.sets[train])
            held_out = self.sets[test]
            predicted = model.predict_scores(held_out)
            scores.append(defined_mean(metric_of_sets(model.task.metrics[self.metric], held_out, predicted)))
            reported.append(
                defined_mean(metric_of_sets(model.task.criterion, held_out, predicted))
                if self.reports_criterion
                else scores[-1]
            )
            report((i + 1) * _STEPS_A_FOLD - 1, float(np.mean(reported)))
        return float(np.mean(scores))

    @property
    def reports_criterion(self) -> bool:
        """Whether the model evaluates its criterion while it learns."""
        return isinstance(self.model, NetEstimator) and bool(self.model.validation)


class _Progress:
    """Reports each evaluation of a fit, averaged with what the folds before it reached."""

    def __init__(self, report: Callable[[int, float], None], fold: int, earlier: Sequence[float]) -> None:
        self.report, self.earlier = report, tuple(earlier)
        self.numbers: Iterator[int] = iter(range(fold * _STEPS_A_FOLD, (fold + 1) * _STEPS_A_FOLD - 1))

    def __call__(self, score: float) -> None:
        self.report(next(self.numbers), float(np.mean([*self.earlier, score])))


def inner_folds(sets: Sets, folds: int, groups: ArrayLike | None, random_state: int) -> Folds:
    """Return so many folds, training and test sets of each; of one, the first of five."""
    check_number("folds", folds, least=1, whole=True)
    if folds > 1:
        return fold_indices(len(sets), folds, groups=groups, random_state=random_state)
    return fold_indices(len(sets), 5, groups=groups, random_state=random_state)[:1]


def defined_mean(values: NDArray[np.float64]) -> float:
    """Return the mean over the sets for which a metric is defined; at least one is needed."""
    if np.isnan(values).all():
        raise DataError("A fold holds no set for which the metric is defined; take fewer folds.")
    return float(np.nanmean(values))
