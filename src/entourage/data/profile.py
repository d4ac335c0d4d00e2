"""The profile of a data set: how many sets, of which sizes, how many ties, what kind of columns."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entourage.data.sets import Sets

__all__ = ["ColumnProfile", "Profile", "profile_of"]


@dataclass(frozen=True)
class ColumnProfile:
    """A feature column of a table.

    Attributes
    ----------
    name : of the column
    kind : "number", "flag", "category" (a feature for each level) or "code" (the number of its level)
    role : "object" or "situation"
    levels : how many levels a category has
    missing : whether some values are missing
    """

    name: str
    kind: str
    role: str
    levels: int
    missing: bool


@dataclass(frozen=True)
class Profile:
    """What a data set holds.

    Attributes
    ----------
    sets, objects : how many there are
    smallest, largest : the sizes of sets
    sets_of_one : sets of a single object, which hold no pair
    tied_pairs, ordered_pairs : pairs of ranked objects of one set
    unranked : objects without a rank; all of them, where there are no targets
    columns : where the sets came from a table
    """

    sets: int
    objects: int
    smallest: int
    largest: int
    sets_of_one: int
    tied_pairs: int
    ordered_pairs: int
    unranked: int
    columns: tuple[ColumnProfile, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the profile as JSON can hold it."""
        return asdict(self)


def profile_of(sets: Sets) -> Profile:
    """Profile sets: sizes, ties and, where they came from a table, its columns.

    Examples
    --------
    >>> sets = Sets.from_list([np.zeros((3, 1)), np.zeros((1, 1))], targets=[[0, 1, 1], [np.nan]])
    >>> profile = profile_of(sets)
    >>> profile.sets, profile.largest, profile.tied_pairs, profile.ordered_pairs, profile.unranked
    (2, 3, 1, 2, 1)
    """
    sizes, columns = sets.sizes, [] if sets.encoder is None else sets.encoder.columns
    ranks = np.full(len(sets.objects), np.nan) if sets.targets is None else sets.targets
    known = ~np.isnan(ranks) & (ranks >= 0)
    owner, ranks = np.repeat(np.arange(len(sets)), sizes)[known], ranks[known]
    order = np.lexsort((ranks, owner))
    owner, ranks = owner[order], ranks[order]
    opens = np.ones(len(order), dtype=bool)  # where another set or another rank begins
    opens[1:] = (owner[1:] != owner[:-1]) | (ranks[1:] != ranks[:-1])
    ties = _pairs(np.diff(np.flatnonzero(opens), append=len(order)))
    return Profile(
        sets=len(sets),
        objects=len(sets.objects),
        smallest=int(sizes.min()),
        largest=int(sizes.max()),
        sets_of_one=int((sizes == 1).sum()),
        tied_pairs=ties,
        ordered_pairs=_pairs(np.bincount(owner)) - ties,
        unranked=int((~known).sum()),
        columns=tuple(ColumnProfile(c.name, c.kind, c.role, len(c.levels), c.indicator) for c in columns),
    )


def _pairs(counts: NDArray[np.int64]) -> int:
    return int((counts * (counts - 1) // 2).sum())
