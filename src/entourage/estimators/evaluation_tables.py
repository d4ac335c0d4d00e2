"""A model evaluated on a table that has its target."""

from typing import Any

import numpy as np

from entourage.errors import DataError
from entourage.estimators.inputs import encoder_of
from entourage.estimators.net_estimator import NetEstimator
from entourage.tasks.evaluate import evaluate_scores, mean_over_sets, metric_of_sets
from entourage.tasks.ranking_metrics import METRICS

__all__ = ["evaluate_table"]


def evaluate_table(model: NetEstimator, frame: Any) -> dict[str, Any]:
    """Evaluate a model on a table with its target: all metrics, and the ranking accuracy by set size."""
    encoder = encoder_of(model)
    if encoder.target is None:
        raise DataError("The model was fitted without a target column, so it can't be evaluated on a table.")
    sets = encoder(frame).sets
    if not model.task.informative(sets).any():
        raise DataError(
            "No set of the table is informative: in each, all targets are equal, or there is only one object."
        )
    sets = model.task.check(sets)
    scores = model.predict_scores(sets)
    found = evaluate_scores(sets, scores, model.task.metrics)
    accuracy = metric_of_sets(METRICS["ranking_accuracy"], sets, scores)
    by_size = {int(m): mean_over_sets(accuracy[sets.sizes == m]) for m in np.unique(sets.sizes) if m > 1}
    return {
        "sets": len(sets),
        "objects": len(sets.objects),
        "metrics": {name: None if np.isnan(value) else value for name, value in found.items()},
        "by_size": {m: None if np.isnan(value) else value for m, value in by_size.items()},
    }
