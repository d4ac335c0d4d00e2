"""Subset choice: some objects of a set are chosen."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entourage.data.sets import AnySets, Sets
from entourage.tasks.choice_metrics import (
    f1,
    hamming_accuracy,
    informedness,
    subset_accuracy,
    subset_log_likelihood,
)
from entourage.tasks.evaluate import mean_over_sets, metric_of_sets
from entourage.tasks.indicators import check_indicators, sets_with_indicators
from entourage.tasks.losses import SUBSET_LOSSES, Loss, find_loss
from entourage.tasks.ranking_metrics import METRICS, Metric

__all__ = ["SubsetChoice"]


class SubsetChoice:
    """Some objects were chosen: they have rank 0, the others 1."""

    kind = "subset"
    losses = SUBSET_LOSSES
    outside = False
    only_differences = False
    main, words, criterion_words = "f1", "F1", "mean log-likelihood of an object"
    searched_by, searched_words = "f1", words
    criterion: Metric = staticmethod(subset_log_likelihood)
    informative_words = "sets"
    nothing_to_learn = "There are no objects, so there is nothing to learn."

    def __init__(self, *, threshold: float = 0.0) -> None:
        self.threshold = threshold
        self.metric: Metric = partial(f1, threshold=threshold)
        self.metrics = {
            "f1": self.metric,
            "subset_accuracy": partial(subset_accuracy, threshold=threshold),
            "hamming_accuracy": partial(hamming_accuracy, threshold=threshold),
            "informedness": partial(informedness, threshold=threshold),
        } | METRICS

    def find_loss(self, loss: str | Loss | None) -> Loss:
        """Return the loss of this name, or the callable itself."""
        return find_loss(loss, self.losses)

    @staticmethod
    def sets_of(X: AnySets, y: Any = None, situation: ArrayLike | None = None) -> Sets:
        """Make sets of arrays, lists or `Sets`; y holds rows of 0 and 1."""
        return Sets.of(X, None, situation) if y is None else sets_with_indicators(X, y, situation)

    @staticmethod
    def in_single_precision(sets: Sets) -> Sets:
        """Return sets to train on, as they are."""
        return sets

    @staticmethod
    def check(sets: Sets) -> Sets:
        """Check that targets are 0 for chosen objects and 1 for the others."""
        check_indicators(sets, "a choice of some")
        return sets

    @staticmethod
    def informative(sets: Sets) -> NDArray[np.bool_]:
        """Which sets are informative: all are."""
        return np.ones(len(sets), dtype=bool)

    def decide(self, scores: NDArray[Any]) -> NDArray[np.int64]:
        """Return 1 for chosen objects, 0 for the others."""
        return np.asarray(scores > self.threshold).astype(np.int64)

    @staticmethod
    def probabilities(sets: Sets, scores: NDArray[Any]) -> NDArray[np.float64]:
        """Return the sigmoid of packed scores."""
        return np.asarray(0.5 * (1.0 + np.tanh(0.5 * scores.astype(np.float64))))

    @staticmethod
    def best_threshold(sets: Sets, scores: NDArray[Any], weights: NDArray[Any] | None = None) -> float:
        """Return the threshold with the best mean F1, among quantiles of the scores, and 0."""
        values = scores.astype(np.float64)
        candidates = np.concatenate([[0.0], np.quantile(values, np.linspace(0.005, 0.995, 199))])
        means = [
            mean_over_sets(metric_of_sets(partial(f1, threshold=float(t)), sets, scores), weights)
            for t in candidates
        ]
        return float(candidates[int(np.argmax(means))])
