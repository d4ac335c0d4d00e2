"""Ranking: the targets of a set are ranks."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entourage.data.ranks import ranks_from_scores
from entourage.data.sets import AnySets, Sets
from entourage.errors import DataError
from entourage.tasks.losses import LOSSES, Loss, find_loss
from entourage.tasks.ranking_metrics import METRICS, Metric, ranking_accuracy

__all__ = ["Ranking"]


class Ranking:
    """Targets are ranks: 0 = best, equal = tied, NaN or -1 = not ranked."""

    kind = "rank"
    losses = LOSSES
    outside = False
    only_differences = True
    metric: Metric = staticmethod(ranking_accuracy)
    criterion: Metric = staticmethod(ranking_accuracy)
    metrics = METRICS
    main, words, criterion_words = "ranking_accuracy", "0/1-ranking accuracy", "0/1-ranking accuracy"
    searched_by, searched_words = "ranking_accuracy", "0/1-ranking accuracy"
    decide = staticmethod(ranks_from_scores)
    informative_words = "sets that rank two objects differently"
    nothing_to_learn = (
        "No set ranks two objects differently, so there is nothing to learn. "
        "Check that y holds ranks within each set."
    )

    def find_loss(self, loss: str | Loss | None) -> Loss:
        """Return the loss of this name, or the callable itself."""
        return find_loss(loss, self.losses)

    @staticmethod
    def sets_of(X: AnySets, y: Any = None, situation: ArrayLike | None = None) -> Sets:
        """Make sets of arrays, lists or `Sets`."""
        return Sets.of(X, y, situation)

    @staticmethod
    def check(sets: Sets) -> Sets:
        """Return the sets with unranked objects as NaN; raise an error for other targets that are no ranks."""
        if sets.targets is None:
            raise DataError("Ranks are needed: pass y, or Sets with targets.")
        targets = np.where(sets.targets == -1, np.nan, sets.targets)
        strange = (targets < 0) | np.isinf(targets)
        if strange.any():
            row = int(np.argmax(strange))
            i = int(np.searchsorted(sets.offsets, row, side="right")) - 1
            raise DataError(
                "Ranks must be 0 or larger (0 = best), or NaN or -1 where an object is not ranked; "
                f"set {i}, object {row - sets.offsets[i]} has {targets[row]:g}. "
                "For relevance grades, larger = better, pass grades.max() - grades."
            )
        return sets.with_targets(targets, worst=sets.worst)

    @staticmethod
    def in_single_precision(sets: Sets) -> Sets:
        """Return sets to train on: ranks that float32 would merge become places, since only their order counts."""
        targets: NDArray[Any] = sets.targets.copy()  # type: ignore[union-attr]
        with np.errstate(over="ignore"):
            rounded = targets.astype(np.float32)
        if not (rounded != targets)[~np.isnan(targets)].any():
            return sets
        for _, rows in sets.by_size():
            ranks = ranks_from_scores(-targets[rows], ~np.isnan(targets[rows]))
            targets[rows] = np.where(ranks < 0, np.nan, ranks)
        return sets.with_targets(targets)

    @staticmethod
    def informative(sets: Sets) -> NDArray[np.bool_]:
        """Which sets are informative: those that rank two objects differently."""
        targets: NDArray[Any] = sets.targets  # type: ignore[assignment]
        starts = sets.offsets[:-1]
        low = np.minimum.reduceat(np.where(np.isnan(targets), np.inf, targets), starts)
        high = np.maximum.reduceat(np.where(np.isnan(targets), -np.inf, targets), starts)
        return np.asarray(low < high)
