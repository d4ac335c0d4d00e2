"""What a scenario is made of: sets before and after, the role of each row, and groups of rows or sets."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from entourage.data.sets import Sets
from entourage.errors import DataError

__all__ = ["ROLES", "Grouping", "Scenario", "check_left", "roles_of"]

Floats: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.int64]

#: What a scenario does to a row.
ROLES = ("changed", "added", "removed", "others")
MOST_GROUPS = 200


@dataclass(frozen=True)
class Grouping:
    """Groups of objects (a brand) or of sets (a segment), from one column.

    Attributes
    ----------
    name : of the column
    labels : of the groups, as text
    codes : the group of each row, or of each set
    of_sets : whether all rows of each set share their group
    """

    name: str
    labels: list[str]
    codes: Index
    of_sets: bool

    @classmethod
    def of(cls, name: str, values: Any, sets: Sets, n_added: int, added: Any = None) -> "Grouping":
        """Make groups of packed labels, one an object before the change; ``added``: those of added objects.

        Added objects without a label are a group of their own.
        """
        own = [_text(one) for one in np.asarray(values).tolist()]
        new = ["added"] * n_added if added is None else [_text(one) for one in np.asarray(added).tolist()]
        labels, codes = np.unique(np.array(own, dtype=object).astype(str), return_inverse=True)
        first = codes[sets.offsets[:-1]]
        of_sets = bool((np.repeat(first, sets.sizes) == codes).all()) and bool((sets.sizes > 1).any())
        _check_few(name, labels)
        if of_sets:
            order = _numeric_order(labels)
            return cls(name, [str(labels[i]) for i in order], np.argsort(order)[first], True)
        labels, codes = np.unique(np.array(own + new, dtype=object).astype(str), return_inverse=True)
        order = _numeric_order(labels)
        return cls(name, [str(labels[i]) for i in order], np.argsort(order)[codes], False)


def _check_few(name: str, labels: Any) -> None:
    if len(labels) > MOST_GROUPS:
        raise DataError(
            f"by={name!r} has {len(labels):,} values, and {MOST_GROUPS} groups are the most. Round it, or group by "
            "another column."
        )


def _text(value: Any) -> str:
    if value is None or (isinstance(value, float) and value != value):
        return "missing"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _numeric_order(labels: Any) -> Index:
    """Return the order of labels: by number where all are numbers, else as text."""
    try:
        return np.argsort(np.array([float(one) for one in labels]), kind="stable")
    except ValueError:
        return np.arange(len(labels))


@dataclass(frozen=True)
class Scenario:
    """Sets before and after a change.

    Rows are the objects before, then those that are added.

    Attributes
    ----------
    before, after : the sets
    rows_before, rows_after : the row of each packed object of these
    set_of_row : the set of each row, counted as in ``before``
    after_order : the set of ``before`` that each set of ``after`` is; sets that nothing is left of are not in it
    n_before : how many rows there are before
    ids : of the sets
    weights : of the sets
    roles : of each row, a place in `ROLES`
    groupings : for shares by group
    """

    before: Sets
    after: Sets
    rows_before: Index
    rows_after: Index
    set_of_row: Index
    after_order: Index
    n_before: int
    ids: Sequence[Any]
    weights: Floats
    roles: Index
    groupings: list[Grouping]

    @property
    def n_rows(self) -> int:
        """How many rows there are, before and after together."""
        return len(self.set_of_row)

    @property
    def situation_changes(self) -> bool:
        """Whether features of situations differ before and after."""
        old, new = self.before.situation, self.after.situation
        return old is not None and new is not None and not np.array_equal(old[self.after_order], new)

    def in_rows(self, packed: Floats, *, after: bool) -> Floats:
        """Return packed values by row; NaN where a row is not offered."""
        found = np.full(self.n_rows, np.nan)
        found[self.rows_after if after else self.rows_before] = packed
        return found

    def of_sets(self, values: Floats, empty: float) -> Floats:
        """Return values of the sets of ``after`` in the order of ``before``; ``empty`` where nothing is left of one."""
        found = np.full(len(self.before), empty)
        found[self.after_order] = values
        return found

    @property
    def n_emptied(self) -> int:
        """How many sets nothing is left of."""
        return len(self.before) - len(self.after)


def roles_of(changed: NDArray[np.bool_], removed: NDArray[np.bool_], n_added: int) -> Index:
    """Return the role of each row, those that are added behind the others; one that is removed is not changed."""
    old = np.where(removed, ROLES.index("removed"), np.where(changed, 0, ROLES.index("others")))
    return np.append(old, np.full(n_added, ROLES.index("added"))).astype(np.int64)


def check_left(sizes: Index, ids: Sequence[Any], outside: bool) -> None:
    """Check that objects are left in each set; with an outside option, in one of them.

    Examples
    --------
    >>> check_left(np.array([0, 2]), ["a", "b"], outside=True)
    >>> check_left(np.array([0, 2]), ["a", "b"], outside=False)
    Traceback (most recent call last):
        ...
    entourage.errors.DataError: remove leaves nothing of 1 set (the first is 'a'), and this model has no outside ...
    """
    empty = int((sizes == 0).sum())
    if empty == 0 or (outside and empty < len(sizes)):
        return
    if outside:
        raise DataError("remove leaves nothing of any set, so nothing is chosen at all. Keep an object.")
    raise DataError(
        f"remove leaves nothing of {empty:,} set{'s' * (empty != 1)} (the first is {ids[int(np.argmin(sizes))]!r}), "
        "and this model has no outside option: something is always chosen. Leave these sets out, keep an object in "
        "each, or fit with outside=True where nothing may be chosen."
    )
