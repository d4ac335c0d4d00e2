"""The features of objects: their names, which of them have an order, and how far they spread."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from entourage.data.sets import Sets
from entourage.data.table_places import marks_of_missing, ordered_features
from entourage.errors import ShapeError

__all__ = ["Features", "spread_of"]


@dataclass(frozen=True)
class Features:
    """What is known of the features of objects.

    Attributes
    ----------
    names : of all features
    ordered : the places of those of which more may be better or worse: numbers, not categories
    missing : of some features by place, the place of the feature that is 1 where the value was missing
    """

    names: list[str]
    ordered: list[int]
    missing: dict[int, int]

    @classmethod
    def of(
        cls,
        sets: Sets,
        names: Sequence[str] | None = None,
        ordered: Sequence[int] | None = None,
        missing: Mapping[int, int] | None = None,
    ) -> "Features":
        """Take what is given; for the rest, what the table of the sets says. Without a table all are numbers."""
        table, d = sets.encoder, sets.n_features
        if names is None:
            names = [f"x{i}" for i in range(d)] if table is None else table.feature_names
        if ordered is None:
            ordered = range(d) if table is None else ordered_features(table)
        if missing is None:
            missing = {} if table is None else marks_of_missing(table)
        if len(names) != d:
            raise ShapeError(f"names needs one for each of {d} features; got {len(names)}.")
        return cls(list(names), list(ordered), dict(missing))

    def varied(self, sets: Sets) -> dict[str, int]:
        """Return the ordered features that vary in these sets, by name, with their places."""
        return {self.names[i]: i for i in self.ordered if np.ptp(sets.objects[:, i]) > 0}


def spread_of(sets: Sets, feature: int) -> float:
    """Return the standard deviation of a feature over all objects."""
    return float(sets.objects[:, feature].std(dtype=np.float64))
