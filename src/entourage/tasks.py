"""What a target means, what is done with scores, and how the result is judged."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from entourage.errors import DataError
from entourage.metrics import Metric, ranking_accuracy
from entourage.ranks import ranks_from_scores
from entourage.sets import Sets

__all__ = ["Ranking"]


class Ranking:
    """Targets are ranks: 0 = best, equal = tied, NaN or -1 = not ranked."""

    metric: Metric = staticmethod(ranking_accuracy)
    decide = staticmethod(ranks_from_scores)

    @staticmethod
    def check(sets: Sets) -> Sets:
        """Return the sets with unranked objects as NaN; say what is wrong with other targets."""
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
        with np.errstate(over="ignore"):
            rounded = targets.astype(np.float32)
        if (rounded != targets)[~np.isnan(targets)].any():
            for _, rows in sets.by_size():  # finer than float32 can tell: only their order counts
                ranks = ranks_from_scores(-targets[rows], ~np.isnan(targets[rows]))
                targets[rows] = np.where(ranks < 0, np.nan, ranks)
        return sets.with_targets(targets)

    @staticmethod
    def informative(sets: Sets) -> NDArray[np.bool_]:
        """Which sets say anything: they rank two objects differently."""
        targets: NDArray[Any] = sets.targets  # type: ignore[assignment]
        starts = sets.offsets[:-1]
        low = np.minimum.reduceat(np.where(np.isnan(targets), np.inf, targets), starts)
        high = np.maximum.reduceat(np.where(np.isnan(targets), -np.inf, targets), starts)
        return np.asarray(low < high)
