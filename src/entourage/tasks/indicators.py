"""Targets that say of each object whether it was chosen: 1 or 0 in ``y``, rank 0 or 1 in `Sets`."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entourage.data.sets import AnySets, Sets
from entourage.errors import DataError

__all__ = ["check_indicators", "sets_with_indicators"]


def sets_with_indicators(X: AnySets, y: Any, situation: ArrayLike | None) -> Sets:
    """Make sets of rows of 1 for chosen objects and 0 for the others."""
    sets = Sets.of(X, [np.asarray(row, dtype=np.float64) for row in y], situation)
    given: NDArray[Any] = sets.targets  # type: ignore[assignment]
    strange = ~np.isin(given, (0.0, 1.0))
    if strange.any():
        at = int(np.argmax(strange))
        i = int(np.searchsorted(sets.offsets, at, side="right")) - 1
        raise DataError(f"y holds 1 for chosen objects and 0 for the others; set {i} has {given[at]:g}.")
    return sets.with_targets(1.0 - given, worst=1.0)


def check_indicators(sets: Sets, what: str) -> NDArray[Any]:
    """Return the targets, after a check that each is 0 or 1."""
    if sets.targets is None:
        raise DataError(
            "Choices are needed: pass y, or Sets with targets (0 for chosen objects, 1 for the others)."
        )
    strange = ~np.isin(sets.targets, (0.0, 1.0))
    if strange.any():
        at = int(np.argmax(strange))
        i = int(np.searchsorted(sets.offsets, at, side="right")) - 1
        raise DataError(
            f"The targets of {what} are 0 for chosen objects and 1 for the others; set {i} has "
            f"{sets.targets[at]:g}. Rankings are for Ranker."
        )
    return sets.targets
