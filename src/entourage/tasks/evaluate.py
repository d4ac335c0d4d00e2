"""Metrics of scores on sets: the one place where a metric meets sets of differing sizes.

`score`, `evaluate`, `compare`, `tune`, cross-validation, early stopping and the experiments all go through here, so
that they can't differ. Where targets came from relevance grades, metrics of grades are given the rank that counts as
irrelevant (``sets.worst``).
"""

import inspect
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from entourage.data.sets import Sets
from entourage.tasks.ranking_metrics import Metric

__all__ = ["evaluate_scores", "mean_over_sets", "metric_of_sets"]

Floats: TypeAlias = NDArray[np.float64]


def metric_of_sets(metric: Metric, sets: Sets, scores: NDArray[Any]) -> Floats:
    """Return a metric of packed scores for each set; NaN where it is not defined.

    Examples
    --------
    >>> from entourage.tasks.ranking_metrics import ndcg
    >>> sets = Sets.from_list([np.zeros((2, 1)), np.zeros((3, 1))], [[0, 1], [2, 2, 1]])
    >>> scores = np.array([1.0, 2.0, 1.0, 2.0, 3.0])
    >>> metric_of_sets(ndcg, sets, scores).round(2).tolist()  # by default the worst of each set is irrelevant
    [0.63, 1.0]
    """
    targets: NDArray[Any] = sets.targets  # type: ignore[assignment]
    graded = sets.worst is not None and "worst" in inspect.signature(metric).parameters
    extra = {"worst": sets.worst} if graded else {}
    values = np.full(len(sets), np.nan)
    for chosen, rows in sets.by_size():
        values[chosen] = metric(scores[rows], targets[rows], per_set=True, **extra)
    return values


def mean_over_sets(values: Floats, weights: NDArray[Any] | None = None) -> float:
    """Return the mean over the sets in which a metric is defined, NaN where there is none.

    Sets of weight 0 take no part.
    """
    known = ~np.isnan(values) if weights is None else ~np.isnan(values) & (weights > 0)
    if not known.any():
        return float("nan")
    return float(np.average(values[known], weights=None if weights is None else weights[known]))


def evaluate_scores(
    sets: Sets, scores: NDArray[Any], metrics: Mapping[str, Metric], weights: NDArray[Any] | None = None
) -> dict[str, float]:
    """Return the mean of each metric over the sets in which it is defined."""
    return {
        name: mean_over_sets(metric_of_sets(metric, sets, scores), weights)
        for name, metric in metrics.items()
    }
