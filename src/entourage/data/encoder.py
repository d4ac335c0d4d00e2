"""The encoder of long tables, one row an object: fitted once to a training table, kept with the model.

Any frame that narwhals knows (pandas, polars, Arrow) will do, and so will a path. Rows of a set need not stand
together. What the training table taught is a `TableEncoder`: which columns are features and of which kind, what
stands for missing values, and the levels of categories.
"""

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from entourage.data.columns import (
    ENOUGH_ROWS,
    Column,
    as_numbers,
    encode_column,
    is_number,
    kind_of_column,
    learn_column,
    without_marks,
)
from entourage.data.frames import arrow_table, column_of, list_columns
from entourage.data.grouping import PackedTable, RowPlaces, exact_labels, group_rows
from entourage.data.sets import Sets
from entourage.errors import DataError, DataWarning, check_choice

__all__ = ["TARGET_KINDS", "TableColumns", "TableEncoder"]

Floats: TypeAlias = NDArray[np.float64]

TARGET_KINDS = ("rank", "relevance", "choice", "subset")


class TableColumns(TypedDict, total=False):
    """Which column of a table is what, where a table is given instead of arrays; see `TableEncoder.fit`."""

    set_id: str
    target: str | None
    target_kind: str
    features: Sequence[str] | None
    ignore: Sequence[str] | None
    missing: Sequence[str]
    position: Any  # the column of positions; of arrays, the positions themselves


@dataclass
class TableEncoder:
    """What turns tables of one form into sets."""

    set_id: str
    target: str | None
    target_kind: str
    columns: list[Column]
    missing: list[str] = field(default_factory=list)  # texts that stand for a missing value

    @classmethod
    def fit(
        cls,
        frame: Any,
        *,
        set_id: str,
        target: str | None,
        target_kind: str = "rank",
        features: Sequence[str] | None = None,
        situation: Sequence[str] | None = None,
        ignore: Sequence[str] | None = None,
        missing: Sequence[str] = (),
        codes: bool = False,
        read: Callable[[str], pa.ChunkedArray] | None = None,
    ) -> Self:
        """Learn from a training table what its columns are.

        Parameters
        ----------
        frame : pandas, polars or Arrow
        set_id, target : columns
        target_kind : "rank" (smaller is better), "relevance" (larger is better), "choice" (1 for the chosen row of a
            set, else 0) or "subset" (1 for every chosen row, else 0)
        features : columns of the objects; by default all others
        situation : columns that describe the set as a whole
        ignore : columns that are not features
        missing : texts that stand for a missing value, such as "---"
        codes : whether a category of more than 32 levels becomes the number of its level, for a net to learn a
            vector for each (`categories`); otherwise the rarer ones share a column
        read : returns a column by its name, where the frame holds no rows itself
        """
        check_choice("target_kind", target_kind, TARGET_KINDS)
        table = arrow_table(frame)
        by_name = dict(
            zip(table.column_names, table.columns, strict=True)
        )  # tables may have thousands of columns
        shared, unused, marks = _names(situation), _names(ignore), _names(missing)
        for name in (set_id, *([] if target is None else [target]), *shared, *_names(features), *unused):
            if name not in by_name:
                column_of(table, name)  # says which names are like it
        if target == set_id:
            raise DataError(
                f"Column {set_id!r} can't be the set id and the target as well: one says which rows form a set, the "
                "other what is known of each row. Name another column for one of them."
            )
        for role in (set_id, target):
            if role in shared:
                raise DataError(f"Column {role!r} can't be of the situation and something else as well.")
        taken = {set_id, target, *shared, *unused}
        chosen = [n for n in table.column_names if n not in taken] if features is None else _names(features)
        if features is None:
            chosen = [n for n in chosen if not _counts_rows(table, n)]
            _warn_of_indices(table, chosen)
        ignored = set(unused)
        odd = [name for name, times in Counter(chosen).items() if times > 1 or name in ignored]
        if odd:
            raise DataError(
                f"Column {odd[0]!r} is named as a feature twice, or to be ignored as well; once is enough."
            )
        other = {set_id, target, *shared}
        for name in chosen:
            if name in other:
                raise DataError(
                    f"Column {name!r} can't be a feature of the objects and something else as well."
                )
        if not chosen and not shared:
            raise DataError("No column is left to learn from: a table needs at least one feature.")
        read = read or by_name.__getitem__
        columns = [learn_column(read(n), n, "object", codes=codes, missing=marks) for n in chosen]
        columns += [learn_column(read(n), n, "situation", codes=False, missing=marks) for n in shared]
        useful = [column for column in columns if column.width]
        if not any(column.role == "object" for column in useful):
            raise DataError(
                "No feature column distinguishes the objects of a set: all are empty, names or of the situation."
            )
        return cls(set_id, target, target_kind, useful, marks)

    @property
    def feature_names(self) -> list[str]:
        """What the numbers of an object are called."""
        return [name for column in self.columns if column.role == "object" for name in column.names]

    @property
    def number_places(self) -> dict[str, int]:
        """The place of each numeric column among an object's numbers, by its name."""
        found, at = {}, 0
        for column in self.columns:
            if column.role == "object":
                if column.kind == "number":
                    found[column.name] = at
                at += column.width
        return found

    @property
    def categories(self) -> list[tuple[int, int]]:
        """The place of each code among an object's numbers, and its levels: see ``Ranker(categories=...)``."""
        found, at = [], 0
        for column in self.columns:
            if column.kind == "code":
                found.append((at, len(column.levels)))
            at += column.width
        return found

    @property
    def text_columns(self) -> list[str]:
        """The columns that hold text, which a file must be read as."""
        return [column.name for column in self.columns if column.kind in ("category", "code")]

    def check_same(self, other: "TableEncoder", what: str) -> None:
        """See that sets made by another encoder mean the same by their numbers."""
        if self.columns == other.columns:  # nearly always, and asked whenever sets are scored
            return
        mine, theirs = ({c.name: c for c in encoder.columns} for encoder in (self, other))
        if list(mine) != list(theirs):
            differing = sorted(set(mine) ^ set(theirs))
            detail = (
                f"{list_columns(differing)} in only one of them"
                if differing
                else "other columns or another order"
            )
        else:
            odd = [name for name, column in mine.items() if column.coding != theirs[name].coding]
            if not odd:
                return
            first, second = mine[odd[0]], theirs[odd[0]]
            detail = f"column {odd[0]!r} " + (
                f"is encoded by other levels ({_levels(first)}; {_levels(second)})"
                if first.kind == second.kind and first.levels != second.levels
                else f"is encoded differently ({_coded(first)}; {_coded(second)})"
            )
        raise DataError(
            f"{what}: their tables were encoded separately, {detail}. Encode the second table like the first: "
            "Sets.from_frame(table, like=training_sets), or give tables to fit and predict themselves."
        )

    def __call__(self, frame: Any, *, with_target: bool = True) -> PackedTable:
        """Turn a table of the same form into sets."""
        table = arrow_table(frame)
        if table.num_rows == 0:
            raise DataError("The table holds no rows.")
        by_name = dict(zip(table.column_names, table.columns, strict=True))
        needed = [self.set_id, *(column.name for column in self.columns)]
        needed += [self.target] if with_target and self.target is not None else []
        lacking = [name for name in needed if name not in by_name]
        if lacking:
            raise DataError(
                f"The table lacks {list_columns(lacking)}, which the model was fitted to; it has "
                f"{list_columns(table.column_names)}."
            )
        labels = exact_labels(table, self.set_id, "set id", "says which set a row belongs to")
        order, offsets, first = group_rows(labels)
        ids = labels.take(pa.array(first))
        ids = ids.dictionary_decode() if pa.types.is_dictionary(ids.type) else ids
        place = RowPlaces(order, offsets, ids)
        own = [c for c in self.columns if c.role == "object"]
        shared = [c for c in self.columns if c.role == "situation"]
        objects = self._encode(by_name, own, place)
        situation = self._encode(by_name, shared, place) if shared else None
        if situation is not None:
            situation = self._one_a_set(situation, shared, place)
        targets = worst = None
        if with_target and self.target is not None:
            column = by_name[self.target]
            targets, worst = _read_target(column, self.target, self.target_kind, place, self.missing)
        sets = Sets(objects, offsets, targets, situation, worst=worst, encoder=self)
        return PackedTable(sets, order, ids)

    def _encode(self, table: dict[str, pa.ChunkedArray], columns: list[Column], place: RowPlaces) -> Floats:
        parts = [encode_column(table[c.name], c, place.of_row, self.missing) for c in columns]
        numbers = np.concatenate(parts, axis=1)
        return (
            numbers if place.together else numbers.take(place.order, axis=0)
        )  # whole rows: kind to the cache

    def _one_a_set(self, values: Floats, columns: list[Column], place: RowPlaces) -> Floats:
        """Take the situation from the first row of each set, seeing that the others agree."""
        first = values[place.offsets[:-1]]
        differs = (np.repeat(first, np.diff(place.offsets), axis=0) != values).any(1)
        if differs.any():
            packed = int(np.argmax(differs))
            at = int(np.argmax(values[packed] != first[place.set_of(packed)]))
            name = [column.name for column in columns for _ in range(column.width)][at]
            raise DataError(
                f"Column {name!r} is of the situation, so it must be the same for all rows of a set; it differs "
                f"in {place.of_packed(packed)}."
            )
        return first

    def to_json(self) -> dict[str, Any]:
        """Return what a model file keeps."""
        return {
            "set_id": self.set_id,
            "target": self.target,
            "target_kind": self.target_kind,
            "columns": [vars(column) for column in self.columns],
            "missing": self.missing,
        }

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Self:
        """Make the encoder of a model file again."""
        return cls(
            content["set_id"],
            content["target"],
            content["target_kind"],
            [Column(**column) for column in content["columns"]],
            list(content.get("missing", [])),
        )


def _counts_rows(table: pa.Table, name: str) -> bool:
    """Whether a column is the index that a frame was written with: it has no name of its own, and each value once."""
    if (
        name not in ("", "Unnamed: 0")
        or table.num_rows == 0
        or not pa.types.is_integer(table.field(name).type)
    ):
        return False
    if pc.count_distinct(table.column(name), mode="all").as_py() < table.num_rows:
        return False
    warnings.warn(
        f"Column {name!r} seems to be the index of a frame: no name, and another value in each row. It was left out; "
        "write tables without their index.",
        DataWarning,
        stacklevel=3,
    )
    return True


def _warn_of_indices(table: pa.Table, names: Sequence[str]) -> None:
    """Say which whole numbers rise from each row to the next: of sorted rows an index or an id is a leak."""
    if table.num_rows < ENOUGH_ROWS:
        return
    for name in names:
        column = table.column(name)
        if not pa.types.is_integer(column.type) or column.null_count:
            continue
        values = column.to_numpy()
        if (values[1:] > values[:-1]).all():
            warnings.warn(
                f"Column {name!r} rises from each row to the next, as an index or an id does. Where rows were sorted "
                "by the target, it gives the target away. Ignore it (ignore=, --ignore), or name it as a feature.",
                DataWarning,
                stacklevel=3,
            )


def _names(given: Sequence[str] | None) -> list[str]:
    """Return names as a list, where one may come alone."""
    return [given] if isinstance(given, str) else list(given or [])


def _levels(column: Column) -> str:
    shown = ", ".join(map(repr, column.levels[:4]))
    return shown + f" and {len(column.levels) - 4} more" * (len(column.levels) > 4)


def _coded(column: Column) -> str:
    if column.kind in ("category", "code"):
        return f"text of {len(column.levels)} levels"
    missing = f", missing values as {column.fill:.6g}" if column.indicator else ", never missing"
    return f"a {column.kind} of the {column.role}{missing}"


def _first_text(column: pa.ChunkedArray) -> str:
    """Say which text a target holds, and what to do about it."""
    array = column.combine_chunks()
    array = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
    texts = array.cast(pa.string())
    others = pc.fill_null(pc.invert(is_number(texts)), False)
    row = pc.index(others, True).as_py()
    if row < 0:
        return f"numbers as {column.type}. Give it as numbers"
    return (
        f"{texts[row].as_py()!r} in row {row + 1}. Where such cells stand for nothing, say so (missing=, --missing); "
        "else give numbers"
    )


def _read_target(
    column: pa.ChunkedArray, name: str, kind: str, place: RowPlaces, missing: Sequence[str]
) -> tuple[Floats, float | None]:
    """Turn the target into packed ranks, and return the rank of what is irrelevant."""
    what = {"rank": "ranks", "relevance": "relevances"}.get(kind, "choices, 0 or 1")
    came = kind_of_column(column, name)
    if came == "category" and missing:
        column, came = without_marks(column, missing)
    if came == "empty":
        raise DataError(f"Column {name!r} should hold {what}; it is empty.")
    if came not in ("number", "flag"):
        raise DataError(f"Column {name!r} should hold {what}; it holds {_first_text(column)}.")
    values = as_numbers(column, missing)[place.order]
    if np.isinf(values).any():
        at = int(np.argmax(np.isinf(values)))
        raise DataError(f"Column {name!r} is infinite in {place.of_packed(at)}; it should hold {what}.")
    if kind == "rank":
        negative = (values < 0) & (values != -1)
        if negative.any():
            at = int(np.argmax(negative))
            raise DataError(
                f"Column {name!r} should hold ranks, 0 or 1 for the best and larger for worse (-1 or nothing where a "
                f"row is not ranked); {place.of_packed(at)} holds {values[at]:g}. Where larger is better, give "
                'target_kind="relevance" (--target-kind relevance).'
            )
        return values, None
    if kind == "relevance":
        if np.isnan(values).all():
            return values, None
        best = float(np.nanmax(values))
        return (
            best - values,
            best if best > 0 else None,
        )  # without a grade above 0 nothing is relevant: an order
    wrong = ~np.isin(values, (0.0, 1.0))
    if wrong.any():
        at = int(np.argmax(wrong))
        came = "nothing" if np.isnan(values[at]) else f"{values[at]:g}"
        raise DataError(f"Column {name!r} should hold {what}; {place.of_packed(at)} holds {came}.")
    return 1.0 - values, 1.0
