"""Cross-validation of whole sets, and of whole groups of them: no set is split between training and test."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from entourage.data.encoder import TableColumns
from entourage.data.resampling import fold_indices
from entourage.errors import check_choice, check_number
from entourage.estimators.base import SetPredictor
from entourage.estimators.inputs import training_sets
from entourage.tasks.evaluate import mean_over_sets, metric_of_sets

__all__ = ["CrossValidation", "cross_validate"]


@dataclass(frozen=True)
class CrossValidation:
    """The result of :func:`cross_validate`.

    Attributes
    ----------
    means : of each metric, over all sets for which it is defined
    folds : of each metric, its mean on each fold
    values : of each metric, its value on each set by the model that was not fitted to it; NaN where it is not defined.
        Sets of weight 0 are left out
    fold_of : the fold of each of these sets
    """

    means: dict[str, float]
    folds: dict[str, list[float]]
    values: dict[str, NDArray[np.float64]] = field(repr=False)
    fold_of: NDArray[np.int64] = field(repr=False)


def cross_validate(
    model: SetPredictor,
    X: Any,
    y: Any = None,
    *,
    folds: int = 5,
    metrics: Sequence[str] | None = None,
    groups: ArrayLike | str | None = None,
    situation: ArrayLike | Sequence[str] | None = None,
    sample_weight: ArrayLike | str | None = None,
    random_state: int = 0,
    **table: Unpack[TableColumns],
) -> CrossValidation:
    """Fit clones of a model to all folds but one, and evaluate each on the held-out fold.

    Parameters
    ----------
    model : any estimator, baseline or choice model; stays as it is
    X, y, situation, sample_weight, table : see :meth:`entourage.Ranker.fit`; a frame with set_id=, target=, ... will do
    folds : number of folds
    metrics : names; by default all that the task has
    groups : one label a set, or a column of a frame; sets of one label are in the same fold
    random_state : seeds the folds

    Examples
    --------
    >>> from entourage.estimators.baselines import RankSVM
    >>> from entourage.data import make_hypervolume
    >>> found = cross_validate(RankSVM(), *make_hypervolume(n_sets=100, random_state=0), metrics=["ranking_accuracy"])
    >>> found.means["ranking_accuracy"] > 0.6, len(found.folds["ranking_accuracy"])
    (True, 5)
    """
    check_number("folds", folds, least=2, whole=True)
    names = list(model.task.metrics) if metrics is None else list(metrics)
    for name in names:
        check_choice("metrics", name, model.task.metrics)
    sets, weights, labels = training_sets(
        model.task,
        X,
        y,
        situation,
        sample_weight=sample_weight,
        groups=groups,
        table=table,
        codes=model._level_codes,
    )
    if weights is not None and not weights.all():  # as fit leaves them out
        kept = weights > 0
        labels = None if labels is None else np.asarray(labels)[kept]
        sets, weights = sets[kept], weights[kept]
    values = {name: np.full(len(sets), np.nan) for name in names}
    fold_of = np.empty(len(sets), dtype=np.int64)
    parts = fold_indices(len(sets), folds, groups=labels, random_state=random_state)
    for i, (train, test) in enumerate(parts):
        fitted: Any = clone(model)
        fitted.fit(sets[train], sample_weight=None if weights is None else weights[train])
        scores = fitted.predict_scores(sets[test])
        fold_of[test] = i
        for name in names:
            values[name][test] = metric_of_sets(fitted.task.metrics[name], sets[test], scores)
    return CrossValidation(
        means={name: mean_over_sets(values[name], weights) for name in names},
        folds={
            name: [
                mean_over_sets(values[name][test], None if weights is None else weights[test])
                for _, test in parts
            ]
            for name in names
        },
        values=values,
        fold_of=fold_of,
    )
