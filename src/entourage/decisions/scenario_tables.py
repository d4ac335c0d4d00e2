"""Scenarios of tables: conditions and changes by the names of columns, rows added and removed."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from entourage.data.columns import as_numbers, number_marks
from entourage.data.encoder import TableEncoder
from entourage.data.frames import arrow_table, column_of, list_columns
from entourage.data.grouping import PackedTable, weights_of
from entourage.data.sets import is_frame
from entourage.decisions.expressions import condition, parse_changes
from entourage.decisions.market import Market
from entourage.decisions.scenario_types import Grouping, Scenario, check_left, roles_of
from entourage.errors import DataError, ParameterError
from entourage.estimators.inputs import check_weights, encoder_of

__all__ = ["table_scenario"]

Mask: TypeAlias = NDArray[np.bool_]
Index: TypeAlias = NDArray[np.int64]


def table_scenario(
    market: Market, X: Any, change: Any, where: Any, add: Any, remove: Any, by: Any, sample_weight: Any
) -> Scenario:
    """Make the scenario of a table; see :func:`entourage.decisions.what_if`."""
    encoder = encoder_of(market.model)
    table = _without_marks(_decoded(arrow_table(X)), encoder)
    packed = encoder(table, with_target=False)
    set_of_row = np.empty(table.num_rows, dtype=np.int64)
    set_of_row[packed.order] = np.repeat(np.arange(len(packed.sets)), packed.sets.sizes)
    columns = _Columns(table)
    changed = np.zeros(table.num_rows, dtype=bool)
    after = table
    if change is not None:
        changed = _rows(where, columns, "where")
        after = _changed(table, encoder, change, changed)
    removed = np.zeros(table.num_rows, dtype=bool) if remove is None else _rows(remove, columns, "remove")
    if remove is not None and not removed.any():
        raise ParameterError(f"remove={remove!r} matches no row of the table.")
    left = np.bincount(set_of_row[~removed], minlength=len(packed.sets))
    added, added_sets = _added(add, table, encoder, packed, set_of_row)
    left += np.bincount(added_sets, minlength=len(packed.sets))
    ids = packed.ids.to_pylist()
    check_left(left, ids, market.has_outside)
    kept = np.flatnonzero(~removed)
    rows = after.take(pa.array(kept))
    if added is not None:
        rows = pa.concat_tables([rows, added], promote_options="permissive")
    all_rows = np.concatenate([kept, table.num_rows + np.arange(len(added_sets))])
    new = encoder(rows, with_target=False)
    whole = np.concatenate([set_of_row, added_sets])
    return Scenario(
        before=packed.sets,
        after=new.sets,
        rows_before=packed.order,
        rows_after=all_rows[new.order],
        set_of_row=whole,
        after_order=whole[all_rows[new.order]][new.sets.offsets[:-1]],
        n_before=table.num_rows,
        ids=ids,
        weights=_weights(sample_weight, table, packed),
        roles=roles_of(changed, removed, len(added_sets)),
        groupings=_groupings(by, table, packed, added, len(added_sets)),
    )


def _without_marks(table: pa.Table, encoder: TableEncoder) -> pa.Table:
    """Return the table with nothing in place of numbers that stand for a missing value, such as -999."""
    marks = number_marks(encoder.missing)
    for column in encoder.columns if marks else ():
        i = table.column_names.index(column.name) if column.name in table.column_names else -1
        if i >= 0 and _is_number(table.column(i).type):
            own = table.column(i)
            absent = pc.is_in(own.cast(pa.float64()), value_set=pa.array(marks, pa.float64()))
            table = table.set_column(i, column.name, pc.if_else(absent, pa.scalar(None, own.type), own))
    return table


def _decoded(table: pa.Table) -> pa.Table:
    """Return the table with categories of text as plain text, so that rows can be added."""
    for i, one in enumerate(table.schema):
        if pa.types.is_dictionary(one.type) and not pa.types.is_integer(one.type.value_type):
            table = table.set_column(i, one.name, table.column(i).cast(one.type.value_type))
    return table


class _Columns(Mapping[str, Any]):
    """The columns of a table as arrays, made when they are asked for: floats, booleans, or text with None."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __iter__(self) -> Any:
        return iter(self.table.column_names)

    def __len__(self) -> int:
        return int(self.table.num_columns)

    def __contains__(self, name: object) -> bool:
        return name in self.table.column_names

    def __getitem__(self, name: str) -> NDArray[Any]:
        return _values(self.table.column(name))


def _values(column: pa.ChunkedArray) -> NDArray[Any]:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_dictionary(column.type):
        column = column.cast(kind)
    if pa.types.is_boolean(kind) and column.null_count == 0:
        return np.asarray(column.to_numpy(), dtype=bool)
    if _is_number(kind) or pa.types.is_boolean(kind):
        return as_numbers(column)
    return np.array([None if one is None else str(one) for one in column.to_pylist()], dtype=object)


def _rows(given: Any, columns: _Columns, what: str) -> Mask:
    """Return which rows are meant: all, a condition, or booleans."""
    if given is None:
        return np.ones(columns.table.num_rows, dtype=bool)
    if isinstance(given, str):
        return condition(given, columns)
    found = np.asarray(given)
    if found.dtype != bool or found.shape != (columns.table.num_rows,):
        raise ParameterError(
            f"{what} of a table is a condition, such as 'price > 3', or one boolean for each of "
            f"{columns.table.num_rows:,} rows; got {type(given).__name__}."
        )
    return found


def _changed(table: pa.Table, encoder: TableEncoder, change: Any, chosen: Mask) -> pa.Table:
    """Return the table with a change applied to the chosen rows."""
    texts = [change] if isinstance(change, str) else change
    if not isinstance(texts, Sequence) or not all(isinstance(one, str) for one in texts):
        raise ParameterError(
            f"change of a table is text, such as 'price*=1.1'; got {type(change).__name__}. For callables, pass Sets."
        )
    if not chosen.any():
        raise ParameterError("where matches no row of the table, so nothing changes.")
    known = {column.name: column for column in encoder.columns}
    used, after = [], table
    for assignment in (one for text in texts for one in parse_changes(text)):
        name = assignment.column
        if name in (encoder.set_id, encoder.target):
            role = "says which set a row belongs to" if name == encoder.set_id else "is the target"
            raise ParameterError(f"Column {name!r} {role}; a change is of features.")
        old = _values(column_of(after, name))
        new = assignment.of(_Columns(after))
        text = old.dtype == object
        if text != (new.dtype == object):
            needed = 'text in quotes, as in brand = "x"' if text else "a number"
            raise ParameterError(f"Column {name!r} needs {needed}; got {assignment.text!r}.")
        used += [name] if name in known else []
        if text:
            levels = known[name].levels if name in known else []
            strange = set(new[chosen].tolist()) - set(levels) - set(old.tolist()) - {None}
            if name in known and strange:
                raise DataError(
                    f"{min(strange)!r} is no level of {name!r} that the model or the table knows; known are "
                    f"{', '.join(map(repr, levels[:10]))}."
                )
            column = pa.array(np.where(chosen, new, old).tolist(), type=pa.string())
        else:
            mixed = np.where(chosen, new.astype(np.float64), old.astype(np.float64))
            wrong = chosen & ~np.isfinite(mixed) & np.isfinite(old.astype(np.float64))
            if wrong.any():
                raise DataError(
                    f"{assignment.text!r} makes no finite number in row {int(np.argmax(wrong)) + 1}. Check for "
                    "divisions by 0 and logarithms."
                )
            column = pa.array(mixed, from_pandas=True)
            if pa.types.is_boolean(table.column(name).type):
                column = _flags(mixed, name, assignment.text)
        after = after.set_column(after.column_names.index(name), name, column)
    if not used:
        raise ParameterError(
            f"The model uses none of the changed columns, so nothing would change; it uses {list_columns(list(known))}."
        )
    if all(
        after.column(name).equals(_as_type(table.column(name), after.column(name).type)) for name in set(used)
    ):
        raise ParameterError("The change changes no value that the model uses. Check it, and where.")
    return after


def _flags(mixed: Any, name: str, text: str) -> pa.Array:
    if not np.isin(mixed[~np.isnan(mixed)], (0.0, 1.0)).all():
        raise ParameterError(f"Column {name!r} is True or False; got {text!r}.")
    return pa.array([None if one != one else bool(one) for one in mixed.tolist()])


def _as_type(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_floating(kind):
        return pa.chunked_array([pa.array(as_numbers(column), from_pandas=True)])
    return column.cast(kind)


def _added(
    add: Any, table: pa.Table, encoder: TableEncoder, packed: PackedTable, set_of_row: Index
) -> tuple[pa.Table | None, Index]:
    """Return rows to add, with all columns of the model, and the set of each."""
    if add is None:
        return None, np.empty(0, dtype=np.int64)
    if isinstance(add, str):
        add = {one.column: one.of({"": np.zeros(1)})[0] for one in parse_changes(add)}
    if isinstance(add, Mapping):
        add = pa.table({name: [value] for name, value in add.items()})
    if not is_frame(add):
        raise ParameterError(
            "add to a table is a table of rows, a dict of one row, or text such as 'brand=\"new\"; price=3'; got "
            f"{type(add).__name__}."
        )
    rows = arrow_table(add)
    n = len(packed.sets)
    if encoder.set_id in rows.column_names:
        place = {str(one): i for i, one in enumerate(packed.ids.to_pylist())}
        labels = [str(one) for one in rows.column(encoder.set_id).to_pylist()]
        strange = [one for one in labels if one not in place]
        if strange:
            raise DataError(f"add has rows of set {strange[0]!r}, which is not in the table.")
        sets = np.array([place[one] for one in labels], dtype=np.int64)
        rows = rows.drop_columns([encoder.set_id])
    else:  # the same objects for every set
        sets = np.repeat(np.arange(n), rows.num_rows)
        rows = rows.take(pa.array(np.tile(np.arange(rows.num_rows), n)))
    first = np.empty(n, dtype=np.int64)
    first[set_of_row[::-1]] = np.arange(table.num_rows)[::-1]  # the first row of each set
    own = table.take(pa.array(first[sets]))
    shared = [encoder.set_id, *(c.name for c in encoder.columns if c.role == "situation")]
    lacking = [c.name for c in encoder.columns if c.role == "object" and c.name not in rows.column_names]
    if lacking:
        raise DataError(f"add lacks {list_columns(lacking)}, which the model was fitted to. Add them.")
    for column in encoder.columns:
        if column.levels and column.name in rows.column_names:
            known = {*column.levels, *(str(one) for one in table.column(column.name).unique().to_pylist())}
            odd = {str(one) for one in rows.column(column.name).to_pylist() if one is not None} - known
            if odd:
                raise DataError(
                    f"{min(odd)!r} is no level of {column.name!r} that the model or the table knows."
                )
    for name in shared:
        if name not in rows.column_names:
            rows = rows.append_column(name, own.column(name))
    extra = [name for name in rows.column_names if name not in table.column_names]
    rows = rows.drop_columns(extra) if extra else rows
    for i, one in enumerate(rows.schema):
        rows = rows.set_column(i, one.name, _like(rows.column(i), table.column(one.name).type, one.name))
    return rows, sets


def _like(column: pa.ChunkedArray, kind: pa.DataType, name: str) -> pa.ChunkedArray:
    """Return a column of added rows in a type that joins the table's: numbers, flags of 0 and 1, or text."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    own = column.type
    if pa.types.is_null(own) or own == kind:
        return column
    try:
        if pa.types.is_boolean(kind) and _is_number(own):
            numbers = as_numbers(column)
            if np.isin(numbers[~np.isnan(numbers)], (0.0, 1.0)).all():
                return pa.chunked_array([_flags(numbers, name, "add")])
        elif pa.types.is_boolean(own) and _is_number(kind):
            return column.cast(pa.int8()).cast(kind)
        elif (_is_number(kind) and _is_number(own)) or _is_text(kind) == _is_text(own) != _is_number(own):
            return column
    except pa.ArrowInvalid:
        pass
    needed = "text" if _is_text(kind) else "True or False" if pa.types.is_boolean(kind) else f"{kind} values"
    raise DataError(f"Column {name!r} of the table holds {needed}; add has {column[0].as_py()!r} in it.")


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _weights(given: Any, table: pa.Table, packed: PackedTable) -> NDArray[np.float64]:
    own = weights_of(table, packed, given) if isinstance(given, str) else given
    found = check_weights(own, len(packed.sets))
    return np.ones(len(packed.sets)) if found is None else found


def _groupings(
    by: Any, table: pa.Table, packed: PackedTable, added: pa.Table | None, n_added: int
) -> list[Grouping]:
    names = [] if by is None else [by] if isinstance(by, str) else list(by)
    found = []
    for name in names:
        if not isinstance(name, str):
            raise ParameterError(f"by names columns of the table; got {name!r}.")
        values = _plain(column_of(table, name))[packed.order]
        new = None if added is None or name not in added.column_names else _plain(added.column(name))
        one = Grouping.of(name, values, packed.sets, n_added, new)
        if not one.of_sets:  # of packed objects so far: as rows
            codes = one.codes.copy()
            codes[packed.order] = one.codes[: table.num_rows]
            one = Grouping(name, one.labels, codes, False)
        found.append(one)
    return found


def _plain(column: pa.ChunkedArray) -> NDArray[Any]:
    found = np.empty(len(column), dtype=object)
    found[:] = column.to_pylist()
    return found
