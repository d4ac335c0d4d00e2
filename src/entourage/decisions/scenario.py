"""A scenario: the same sets before and after a change, with the rows of both lined up."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from entourage.data.sets import Sets, is_frame
from entourage.data.table_places import marks_of_missing, ordered_features
from entourage.decisions.expressions import condition, parse_changes
from entourage.decisions.market import Market
from entourage.decisions.scenario_tables import table_scenario
from entourage.decisions.scenario_types import Grouping, Scenario, check_left, roles_of
from entourage.errors import DataError, ParameterError, ShapeError, check_number
from entourage.estimators.inputs import check_weights, encoder_of

__all__ = ["Scenario", "make_scenario"]

Floats: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Index: TypeAlias = NDArray[np.int64]


def make_scenario(
    market: Market,
    X: Any,
    *,
    change: Any = None,
    where: Any = None,
    add: Any = None,
    remove: Any = None,
    by: Any = None,
    situation: Any = None,
    sample_weight: Any = None,
) -> Scenario:
    """Make the sets before and after; see :func:`entourage.decisions.what_if`."""
    if change is None and add is None and remove is None:
        raise ParameterError("Nothing changes: give change, add or remove.")
    if where is not None and change is None:
        raise ParameterError("where says which objects change; give change, too. To remove objects: remove=.")
    if is_frame(X):
        if situation is not None:
            raise ParameterError("The columns of the situation were given to fit; leave situation out here.")
        return table_scenario(market, X, change, where, add, remove, by, sample_weight)
    return _ArrayScenario(market, X, situation).make(change, where, add, remove, by, sample_weight)


@dataclass
class _ArrayScenario:
    """Arrays, lists and Sets: columns are x0, x1, ..., or the names of the table that Sets came from."""

    market: Market
    X: Any
    situation: Any
    sets: Sets = field(init=False)
    marks: dict[int, int] = field(init=False)  # of columns that may be missing, the places of what says so

    def __post_init__(self) -> None:
        self.sets = self.market.sets_of(self.X, self.situation)
        needed, came = self.market.model.n_features_in_, self.sets.n_features
        if needed != came:
            raise ShapeError(f"This model was fitted on {needed} features; these sets have {came}.")
        model = self.market.model
        self.marks = {} if model.table_ is None else marks_of_missing(encoder_of(model))

    def make(self, change: Any, where: Any, add: Any, remove: Any, by: Any, sample_weight: Any) -> Scenario:
        sets = self.sets
        if isinstance(sample_weight, str):
            raise ParameterError(f"sample_weight={sample_weight!r} names a column, but X is no table.")
        objects = np.array(sets.objects, dtype=np.float64)
        owner = np.repeat(np.arange(len(sets)), sets.sizes)
        changes = self._mask(where, "where") if change is not None else np.zeros(len(objects), dtype=bool)
        after = objects if change is None else self._changed(objects, change, changes)
        removed = np.zeros(len(objects), dtype=bool) if remove is None else self._mask(remove, "remove")
        if remove is not None and not removed.any():
            raise ParameterError("remove matches no object, so nothing is removed. Check the condition.")
        added, added_owner = self._added(add)
        self._check_codes(after, objects)
        self._check_codes(added, np.full_like(added, np.nan))
        roles = roles_of(changes, removed, len(added))
        whole = np.concatenate([after, added])
        set_of_row = np.concatenate([owner, added_owner])
        kept = np.flatnonzero(np.append(~removed, np.ones(len(added), dtype=bool)))
        kept = kept[np.argsort(set_of_row[kept], kind="stable")]
        sizes = np.bincount(set_of_row[kept], minlength=len(sets))
        check_left(sizes, list(range(len(sets))), self.market.has_outside)
        left = np.flatnonzero(sizes)  # sets without an object are no sets: nothing is chosen from them
        situation = None if sets.situation is None else sets.situation[left]
        ends = np.append(0, np.cumsum(sizes[left]))
        new = Sets(whole[kept], ends, None, situation, encoder=sets.encoder)
        weights = check_weights(sample_weight, len(sets))
        return Scenario(
            before=sets,
            after=new,
            rows_before=np.arange(len(objects)),
            rows_after=kept,
            set_of_row=set_of_row,
            after_order=left,
            n_before=len(objects),
            ids=list(range(len(sets))),
            weights=np.ones(len(sets)) if weights is None else weights,
            roles=roles,
            groupings=self._groupings(by, objects, len(added)),
        )

    def _columns(self, objects: Floats) -> dict[str, Any]:
        """Return the columns by name; NaN where the table that the sets came from has no value."""
        return {name: self._known(objects, i) for i, name in enumerate(self.market.names())}

    def _known(self, objects: Floats, place: int) -> Floats:
        mark = self.marks.get(place)
        return (
            objects[:, place] if mark is None else np.where(objects[:, mark] == 1, np.nan, objects[:, place])
        )

    def _place(self, column: Any) -> int:
        """Return the place of a column to change: of sets that came from a table, a number of the objects."""
        names = self.market.names()
        if isinstance(column, str):
            if column not in names:
                raise DataError(
                    f"There is no column {column!r} to change; there are {', '.join(names[:20])}."
                )
            place = names.index(column)
        else:
            check_number("A column to change", column, least=0, below=len(names), whole=True)
            place = int(column)
        model = self.market.model
        if model.table_ is not None and place not in ordered_features(encoder_of(model)):
            raise DataError(
                f"{names[place]!r} is no number but a level of a category or a mark of missing values, which can't be "
                "changed by itself. Pass the table instead of Sets."
            )
        return place

    def _check_codes(self, objects: Floats, before: Floats) -> None:
        """Check that new codes are those of levels that were learnt from."""
        for place, levels in getattr(self.market.model, "categories_", None) or []:
            own = objects[objects[:, place] != before[:, place], place]
            odd = own[(own != np.round(own)) | (own < 1) | (own > levels)]
            if len(odd):
                raise DataError(
                    f"Feature {place} holds codes of levels, whole numbers from 1 to {levels}; the scenario has "
                    f"{odd[0]:g}."
                )

    def _mask(self, given: Any, what: str) -> Mask:
        """Return which objects are meant: all, a condition, a callable of the objects, or booleans."""
        objects = np.asarray(self.sets.objects, dtype=np.float64)
        if given is None:
            return np.ones(len(objects), dtype=bool)
        if isinstance(given, str):
            found: Any = condition(given, self._columns(objects))
        elif callable(given):
            found = np.asarray(given(objects.copy()))
        else:
            found = self._packed(given, what)
        if found.dtype != bool or found.shape != (len(objects),):
            raise ShapeError(
                f"{what} needs one boolean for each of {len(objects)} objects; got {found.dtype}, shape {found.shape}."
            )
        return np.asarray(found)

    def _packed(self, given: Any, what: str) -> NDArray[Any]:
        """Return values of objects that came packed, (n, m) or as a list of rows."""
        try:
            ragged = isinstance(given, list | tuple) and len(given) > 0 and np.ndim(given[0]) == 1
            return np.concatenate([np.asarray(one) for one in given]) if ragged else np.asarray(given).ravel()
        except ValueError:
            raise ShapeError(
                f"{what} needs one value an object: packed, (n, m), or a list of rows."
            ) from None

    def _changed(self, objects: Floats, change: Any, chosen: Mask) -> Floats:
        after = objects.copy()
        if isinstance(change, str) or (
            isinstance(change, Sequence) and all(isinstance(c, str) for c in change)
        ):
            for one in [change] if isinstance(change, str) else change:
                for assignment in parse_changes(one):
                    place = self._place(assignment.column)
                    new = assignment.of(self._columns(after))
                    if new.dtype.kind not in "fiub":
                        raise DataError(f"{assignment.column!r} of arrays needs numbers; got {new.dtype}.")
                    self._set(after, place, chosen, new[chosen])
        elif isinstance(change, dict):
            for column, how in change.items():
                place = self._place(column)
                new = how(self._known(after, place)[chosen]) if callable(how) else how
                self._set(after, place, chosen, new)
        elif callable(change):
            new = np.asarray(change(after[chosen].copy()), dtype=np.float64)
            if new.shape != after[chosen].shape:
                raise ShapeError(
                    f"change must return objects of shape {after[chosen].shape}; got {new.shape}."
                )
            after[chosen] = new
        else:
            raise ParameterError(
                "change of arrays is text such as 'x1*=1.1', a dict of columns to numbers or callables, {1: lambda v: "
                f"1.1 * v}}, or a callable of the objects, (objects, features); got {type(change).__name__}."
            )
        if not np.isfinite(after).all():
            raise DataError(
                "change makes values that are not finite numbers. Check for divisions by 0 and logarithms."
            )
        if np.array_equal(after, objects):
            raise ParameterError("change changes no object. Check where, and the change itself.")
        return after

    def _set(self, after: Floats, place: int, chosen: Mask, new: Any) -> None:
        """Give the chosen objects new values of a column; what was missing stays so where its new value is NaN."""
        try:
            values = np.broadcast_to(np.asarray(new, dtype=np.float64), (int(chosen.sum()),))
        except (ValueError, TypeError):
            raise ShapeError(
                f"change needs one number for column {self.market.names()[place]!r}, or one for each of "
                f"{int(chosen.sum())} objects; got {np.shape(new) or repr(new)}."
            ) from None
        missing = np.isnan(self._known(after, place)[chosen]) & np.isnan(values)
        rows = np.flatnonzero(chosen)[~missing]
        after[rows, place] = values[~missing]
        if place in self.marks:
            after[rows, self.marks[place]] = 0.0  # it is known now

    def _added(self, add: Any) -> tuple[Floats, Index]:
        """Return objects to add and the set of each: the same for every set, or a list with one array a set."""
        n, d = len(self.sets), self.sets.n_features
        if add is None:
            return np.empty((0, d)), np.empty(0, dtype=np.int64)
        needed = f"add needs objects of {d} features: (objects, {d}) for every set, or a list of such arrays, one a set"
        try:
            if isinstance(add, list | tuple) and len(add) == n and all(np.ndim(one) == 2 for one in add):
                parts = [np.asarray(one, dtype=np.float64) for one in add]
            else:
                parts = [np.atleast_2d(np.asarray(add, dtype=np.float64))] * n
        except (ValueError, TypeError):
            raise ShapeError(f"{needed}; got {add!r:.80}.") from None
        odd = [one.shape for one in parts if one.ndim != 2 or one.shape[1] != d]
        if odd:
            raise ShapeError(f"{needed}; got shape {odd[0]}.")
        sizes, objects = np.array([len(one) for one in parts]), np.concatenate(parts)
        if not np.isfinite(objects).all():
            raise DataError("Features must be finite; those of the objects to add are not all.")
        return objects, np.repeat(np.arange(n), sizes)

    def _groupings(self, by: Any, objects: Floats, n_added: int) -> list[Grouping]:
        if by is None:
            return []
        named = isinstance(by, str | int | np.integer) or (
            isinstance(by, list | tuple) and all(isinstance(one, str) for one in by)
        )
        if named:
            columns = self._columns(objects)
            found = []
            for one in by if isinstance(by, list | tuple) else [by]:
                name = self.market.names()[int(one)] if isinstance(one, int | np.integer) else one
                if name not in columns:
                    raise DataError(
                        f"There is no column {name!r} to group by; there are {', '.join(columns)}."
                    )
                found.append(Grouping.of(name, columns[name], self.sets, n_added))
            return found
        labels = np.asarray(by) if not isinstance(by, list | tuple) else None
        if labels is None or labels.ndim != 1 or len(labels) not in (len(self.sets), len(objects)):
            labels = self._packed(by, "by")
        if len(labels) == len(self.sets) != len(objects):
            labels = np.repeat(labels, self.sets.sizes)
        if len(labels) != len(objects):
            raise ShapeError(
                f"by needs a column, or one label an object ({len(objects)}) or a set ({len(self.sets)}); got "
                f"{len(labels)}."
            )
        return [Grouping.of("group", labels, self.sets, n_added)]
