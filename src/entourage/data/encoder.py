"""Long tables, one row an object, turned into sets, and what that takes: learnt once, kept with the model.

Any frame that narwhals knows (pandas, polars, Arrow) will do, and so will a path. Rows of a set need not stand
together. What the training table taught is a `TableEncoder`: which columns are features and of which kind, what
stands for missing values, and the levels of categories.
"""

import re
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from entourage.data.coerce import offsets_of
from entourage.data.columns import (
    Column,
    as_numbers,
    encode_column,
    kind_of_column,
    learn_column,
    without_marks,
)
from entourage.data.sets import Sets
from entourage.errors import DataError, DataWarning, check_choice

__all__ = [
    "TARGET_KINDS",
    "PackedTable",
    "TableColumns",
    "TableEncoder",
    "arrow_table",
    "group_rows",
    "groups_of",
    "warn_of_oddities",
    "weights_of",
]

Floats: TypeAlias = NDArray[np.float64]

_INDEX = re.compile(r"__index_level_\d+__")
TARGET_KINDS = ("rank", "relevance", "choice", "subset")


class TableColumns(TypedDict, total=False):
    """Which column of a table is what, where a table is given instead of arrays; see `TableEncoder.fit`."""

    set_id: str
    target: str | None
    target_kind: str
    features: Sequence[str] | None
    ignore: Sequence[str] | None
    missing: Sequence[str]


def arrow_table(frame: Any) -> pa.Table:
    """Turn any frame into an Arrow table: pandas, polars or Arrow, through narwhals."""
    columns = list(getattr(frame, "column_names", None) or getattr(frame, "columns", []))
    twice = [str(name) for name, times in Counter(columns).items() if times > 1]
    if twice:
        raise DataError(
            f"The table has more than one column named {', '.join(map(repr, twice))}; rename them."
        )
    if isinstance(frame, pa.Table):
        index = [
            name for name in columns if _INDEX.fullmatch(name)
        ]  # what pandas stores of an index without a name
        return frame.drop_columns(index) if index else frame
    import narwhals.stable.v1 as nw

    try:
        native = nw.from_native(frame, eager_only=True)
    except TypeError:
        raise DataError(
            f"A table needs to be a pandas, polars or Arrow frame; got {type(frame).__name__}. "
            "To read a file, see entourage.data.read_table."
        ) from None
    names = list(native.columns)
    odd = [name for name in names if not isinstance(name, str)]
    if odd:
        raise DataError(f"Columns need names that are text; there is {odd[0]!r}. Rename it.")
    try:
        return native.to_arrow().select(names)  # without the index of a pandas frame
    except (pa.ArrowException, OverflowError, TypeError):
        raise _mixed_column(native, names) from None


def _mixed_column(native: Any, names: list[str]) -> DataError:
    """Say which column of a frame has no single type, and where."""
    for name in names:
        try:
            native.select(name).to_arrow()
        except (pa.ArrowException, OverflowError, TypeError):
            values = native[name].to_list()
            numbers = [isinstance(value, (int, float)) for value in values]
            rare = numbers.count(True) < numbers.count(False)
            row = next((i for i, n in enumerate(numbers) if n == rare and values[i] is not None), 0)
            return DataError(
                f"Column {name!r} mixes types that can't share a column: row {row + 1} holds {values[row]!r}, a "
                f"{type(values[row]).__name__}. Make it all numbers (with missing values where there are none), or "
                "all text."
            )
    return DataError("The table can't be turned into Arrow columns; see pyarrow.Table.from_pandas.")


def group_rows(table: pa.Table, set_id: str) -> tuple[NDArray[np.int64], NDArray[np.int64], pa.Array]:
    """Find the rows of each set: their order, set by set, the offsets, and the ids in order of appearance."""
    column = _exact_labels(table, set_id, "set id", "says which set a row belongs to")
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    if pa.types.is_dictionary(column.type):  # a frame's own categories: some may be unused
        used, first, codes = np.unique(codes, return_index=True, return_inverse=True)
        order = np.argsort(first)  # of appearance, as for any other column
        codes, ids = np.argsort(order)[codes], encoded.dictionary.take(pa.array(used[order]))
    else:
        ids = encoded.dictionary
    counts = np.bincount(codes, minlength=len(ids))
    offsets = offsets_of(counts)
    together = bool((codes[1:] >= codes[:-1]).all())
    return np.arange(len(codes)) if together else _counting_sort(codes, len(ids)), offsets, ids


def _exact_labels(table: pa.Table, name: str, what: str, purpose: str) -> pa.Array:
    """Return a column of labels, all of them there; numbers that a double can't tell apart are refused."""
    column = _column(table, name, what).combine_chunks()
    if pa.types.is_dictionary(column.type) and pa.types.is_string_view(column.type.value_type):
        column = pa.DictionaryArray.from_arrays(
            column.indices, column.dictionary.cast(pa.string())
        )  # as polars writes
    missing = column.is_null()
    if pa.types.is_floating(column.type):
        missing = pc.or_kleene(missing, pc.is_nan(column))
    if pc.any(missing).as_py():
        row = pc.index(missing, True).as_py() + 1
        raise DataError(f"Column {name!r} {purpose}; it is missing in row {row}.")
    if pa.types.is_floating(column.type):
        exact = {16: 2.0**11, 32: 2.0**24, 64: 2.0**53}[column.type.bit_width]
        large = pc.greater_equal(pc.abs(column.cast(pa.float64())), exact)
        if pc.any(large).as_py():
            row = pc.index(large, True).as_py() + 1
            raise DataError(
                f"Column {name!r} {purpose}, but holds floating-point numbers so large that different ones become "
                f"the same ({column[row - 1].as_py():.6g} in row {row}). Store it as whole numbers or as text."
            )
    return column


def _counting_sort(codes: NDArray[np.integer[Any]], kinds: int) -> NDArray[np.int64]:
    """Return the stable order of small whole numbers in linear time, as a sparse matrix gathers its rows."""
    from scipy.sparse import coo_array

    n = len(codes)
    ones = np.ones(n, dtype=np.int8)
    gathered = coo_array((ones, (codes, np.arange(n, dtype=codes.dtype))), shape=(kinds, n)).tocsr()
    return np.asarray(gathered.indices, dtype=np.int64)


@dataclass
class PackedTable:
    """Sets made of a table, and the way back."""

    sets: Sets
    order: NDArray[np.int64]  # the table's row of each packed object
    ids: pa.Array  # of the sets

    def in_rows(self, packed: NDArray[Any]) -> NDArray[Any]:
        """Return packed values in the order of the table's rows."""
        values = np.empty_like(packed)
        values[self.order] = packed
        return values


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
        situation : columns that say something of the set as a whole
        ignore : columns that are no features
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
                _column(table, name, "column")  # says which names are like it
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
                "No feature column tells the objects of a set apart: all are empty, names or of the situation."
            )
        return cls(set_id, target, target_kind, useful, marks)

    @property
    def feature_names(self) -> list[str]:
        """What the numbers of an object are called."""
        return [name for column in self.columns if column.role == "object" for name in column.names]

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
                f"{_listed(differing)} in only one of them" if differing else "other columns or another order"
            )
        else:
            odd = [name for name, column in mine.items() if column.coding != theirs[name].coding]
            if not odd:
                return
            first, second = mine[odd[0]], theirs[odd[0]]
            detail = f"column {odd[0]!r} " + (
                f"is coded by other levels ({_levels(first)}; {_levels(second)})"
                if first.kind == second.kind and first.levels != second.levels
                else f"is coded otherwise ({_coded(first)}; {_coded(second)})"
            )
        raise DataError(
            f"{what}: their tables were coded apart, {detail}. Code the second table like the first: "
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
                f"The table lacks {_listed(lacking)}, which the model learnt from; it has "
                f"{_listed(table.column_names)}."
            )
        order, offsets, ids = group_rows(table, self.set_id)
        place = _Place(order, offsets, ids)
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

    def _encode(self, table: dict[str, pa.ChunkedArray], columns: list[Column], place: "_Place") -> Floats:
        parts = [encode_column(table[c.name], c, place.of_row, self.missing) for c in columns]
        numbers = np.concatenate(parts, axis=1)
        return (
            numbers if place.together else numbers.take(place.order, axis=0)
        )  # whole rows: kind to the cache

    def _one_a_set(self, values: Floats, columns: list[Column], place: "_Place") -> Floats:
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


@dataclass
class _Place:
    """Where rows stand, to say it in errors."""

    order: NDArray[np.int64]
    offsets: NDArray[np.int64]
    ids: pa.Array

    def __post_init__(self) -> None:
        self.together = bool((self.order[1:] > self.order[:-1]).all())  # as the table has them

    def set_of(self, packed: int) -> int:
        return int(np.searchsorted(self.offsets, packed, side="right")) - 1

    def of_packed(self, packed: int) -> str:
        return f"row {self.order[packed] + 1}, set {self.ids[self.set_of(packed)].as_py()!r}"

    def of_row(self, row: int) -> str:
        return self.of_packed(int(np.flatnonzero(self.order == row)[0]))


def groups_of(frame: Any, packed: PackedTable, name: str) -> NDArray[np.int64]:
    """Return a number for the group of each set, from a column that is the same for all rows of a set."""
    return _labels_of_sets(frame, packed, name, "groups sets")[0]


def weights_of(frame: Any, packed: PackedTable, name: str) -> Floats:
    """Return the weight of each set, from a column that is the same for all rows of a set."""
    codes, labels = _labels_of_sets(frame, packed, name, "weighs sets")
    if kind_of_column(pa.chunked_array([labels]), name) != "number":
        raise DataError(f"Column {name!r} weighs sets, so it needs numbers; it holds {labels.type}.")
    return as_numbers(pa.chunked_array([labels]))[codes]


def _labels_of_sets(
    frame: Any, packed: PackedTable, name: str, purpose: str
) -> tuple[NDArray[np.int64], pa.Array]:
    """Return for each set the place of its label, and the labels; all rows of a set must have the same."""
    column = _exact_labels(arrow_table(frame), name, "column", purpose)
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode("encode")
    codes = encoded.indices.to_numpy(zero_copy_only=False)[packed.order]
    place = _Place(packed.order, packed.sets.offsets, packed.ids)
    first = codes[packed.sets.offsets[:-1]]
    differs = np.repeat(first, packed.sets.sizes) != codes
    if differs.any():
        raise DataError(
            f"Column {name!r} {purpose}, so it must be the same for all rows of a set; it differs in "
            f"{place.of_packed(int(np.argmax(differs)))}."
        )
    return np.asarray(first, dtype=np.int64), encoded.dictionary


def warn_of_oddities(frame: Any, packed: PackedTable, encoder: TableEncoder) -> None:
    """Say what a training table may not mean: choices read as ranks, rows that stand in a set twice."""
    if encoder.target_kind == "rank" and _looks_like_choices(packed.sets):
        warnings.warn(
            f"In every set one row has 1 in {encoder.target!r} and all others 0: as ranks, that row is the worst. "
            'Where 1 says what was chosen, give target_kind="choice" (--target-kind choice).',
            DataWarning,
            stacklevel=2,
        )
    twice = _rows_twice(arrow_table(frame), packed)
    if len(twice):
        first, second = twice[0]
        warnings.warn(
            f"{len(twice):,} row{'s' * (len(twice) != 1)} stand{'s' * (len(twice) == 1)} in a set twice, the same in "
            f"every column (row {second + 1:,} is row {first + 1:,} again). Where that isn't meant, drop duplicates.",
            DataWarning,
            stacklevel=2,
        )


def _looks_like_choices(sets: Sets) -> bool:
    """Whether in every set of three objects or more just one has a target of 1, and all others 0."""
    enough = np.flatnonzero(sets.sizes >= 3)
    if len(enough) == 0 or sets.targets is None:
        return False
    large = sets[enough]
    targets: Floats = large.targets  # type: ignore[assignment]
    if not np.isin(targets, (0, 1)).all():
        return False
    return bool((np.add.reduceat(targets, large.offsets[:-1]) == 1).all())


def _rows_twice(table: pa.Table, packed: PackedTable) -> list[tuple[int, int]]:
    """Return pairs of the table's rows that are alike in every column and of one set."""
    sets = packed.sets
    key = sets.objects @ np.random.default_rng(0).normal(size=sets.n_features)  # equal for equal rows
    owner = np.repeat(np.arange(len(sets)), sets.sizes)
    order = np.lexsort((packed.order, key, owner))
    same = (owner[order][1:] == owner[order][:-1]) & (key[order][1:] == key[order][:-1])
    at = np.flatnonzero(same)
    if len(at) == 0:
        return []
    first, second = packed.order[order[at]], packed.order[order[at + 1]]
    alike = np.ones(len(at), dtype=bool)
    for column in table.columns:
        values = column.combine_chunks()
        values = values.indices if pa.types.is_dictionary(values.type) else values
        a, b = values.take(pa.array(first[alike])), values.take(pa.array(second[alike]))
        equal = pc.fill_null(pc.equal(a, b), False).to_numpy(zero_copy_only=False)
        both = pc.and_(a.is_null(), b.is_null()).to_numpy(zero_copy_only=False)
        alike[np.flatnonzero(alike)[~(equal | both)]] = False
        if not alike.any():
            return []
    pairs = zip(first[alike].tolist(), second[alike].tolist(), strict=True)
    return sorted(pairs, key=lambda pair: pair[1])


def _counts_rows(table: pa.Table, name: str) -> bool:
    """Whether a column is the index that a frame was written with: it has no name of its own, and each value once."""
    if name not in ("", "Unnamed: 0") or table.num_rows == 0:
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


def _names(given: Sequence[str] | None) -> list[str]:
    """Return names as a list, where one may come alone."""
    return [given] if isinstance(given, str) else list(given or [])


def _column(table: pa.Table, name: str, what: str) -> pa.ChunkedArray:
    if name not in table.column_names:
        import difflib

        close = difflib.get_close_matches(name, table.column_names, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else "."
        raise DataError(f"The table has no {what} {name!r}{hint} It has {_listed(table.column_names)}.")
    return table.column(name)


def _listed(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:20]))
    return f"{'column' if len(names) == 1 else 'columns'} {shown}" + (
        f" and {len(names) - 20} more" * (len(names) > 20)
    )


def _levels(column: Column) -> str:
    shown = ", ".join(map(repr, column.levels[:4]))
    return shown + f" and {len(column.levels) - 4} more" * (len(column.levels) > 4)


def _coded(column: Column) -> str:
    if column.kind in ("category", "code"):
        return f"text of {len(column.levels)} levels"
    missing = f", missing values as {column.fill:.6g}" if column.indicator else ", never missing"
    return f"a {column.kind} of the {column.role}{missing}"


def _read_target(
    column: pa.ChunkedArray, name: str, kind: str, place: _Place, missing: Sequence[str]
) -> tuple[Floats, float | None]:
    """Turn the target into packed ranks, and return the rank of what is irrelevant."""
    what = {"rank": "ranks", "relevance": "relevances"}.get(kind, "choices, 0 or 1")
    came = kind_of_column(column, name)
    if came == "category" and missing:
        column, came = without_marks(column, missing)
    if came not in ("number", "flag"):
        raise DataError(
            f"Column {name!r} should hold {what}; it holds {column.type}. Where some cells are text that stands for "
            "nothing, name it: missing=, --missing."
        )
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
        return best - values, best
    wrong = ~np.isin(values, (0.0, 1.0))
    if wrong.any():
        at = int(np.argmax(wrong))
        came = "nothing" if np.isnan(values[at]) else f"{values[at]:g}"
        raise DataError(f"Column {name!r} should hold {what}; {place.of_packed(at)} holds {came}.")
    return 1.0 - values, 1.0
