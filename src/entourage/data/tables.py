"""Long tables, one row an object, turned into sets, and what that takes: learnt once, kept with the model.

Any frame that narwhals knows (pandas, polars, Arrow) will do, and so will a path. Rows of a set need not stand
together. What the training table taught is a `TableEncoder`: which columns are features and of which kind, what
stands for missing values, and the levels of categories.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from entourage.errors import DataError, check_choice
from entourage.sets import Sets

__all__ = [
    "TARGET_KINDS",
    "Column",
    "PackedTable",
    "TableEncoder",
    "arrow_table",
    "group_rows",
    "groups_of",
    "learn_column",
]

TARGET_KINDS = ("rank", "relevance", "choice", "subset")
MOST_LEVELS = (
    32  # of a category, each with a column of its own; beyond, rarer ones share one, or all are codes
)


def arrow_table(frame: Any) -> pa.Table:
    """Turn any frame into an Arrow table: pandas, polars or Arrow, through narwhals."""
    if isinstance(frame, pa.Table):
        return frame
    import narwhals.stable.v1 as nw

    try:
        native = nw.from_native(frame, eager_only=True)
    except TypeError:
        raise DataError(
            f"A table needs to be a pandas, polars or Arrow frame; got {type(frame).__name__}. "
            "To read a file, see entourage.data.read_table."
        ) from None
    return native.to_arrow().select(list(native.columns))  # without the index of a pandas frame


def group_rows(table: pa.Table, set_id: str) -> tuple[NDArray[np.int64], NDArray[np.int64], pa.Array]:
    """Find the rows of each set: their order, set by set, the offsets, and the ids in order of appearance."""
    column = _column(table, set_id, "set id").combine_chunks()
    missing = column.is_null()
    if pa.types.is_floating(column.type):
        missing = pc.or_kleene(missing, pc.is_nan(column))
    if pc.any(missing).as_py():
        row = pc.index(missing, True).as_py() + 1
        raise DataError(f"Column {set_id!r} says which set a row belongs to; it is missing in row {row}.")
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    if pa.types.is_dictionary(column.type):  # a frame's own categories: some may be unused
        used, codes = np.unique(codes, return_inverse=True)
        ids = encoded.dictionary.take(pa.array(used))
    else:
        ids = encoded.dictionary
    counts = np.bincount(codes, minlength=len(ids))
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    together = bool((codes[1:] >= codes[:-1]).all())
    return np.arange(len(codes)) if together else _counting_sort(codes, len(ids)), offsets, ids


def _counting_sort(codes: NDArray[np.integer[Any]], kinds: int) -> NDArray[np.int64]:
    """Return the stable order of small whole numbers in linear time, as a sparse matrix gathers its rows."""
    from scipy.sparse import coo_array

    n = len(codes)
    ones = np.ones(n, dtype=np.int8)
    gathered = coo_array((ones, (codes, np.arange(n, dtype=codes.dtype))), shape=(kinds, n)).tocsr()
    return np.asarray(gathered.indices, dtype=np.int64)


@dataclass
class Column:
    """A feature column as the training table had it."""

    name: str
    kind: str  # "number", "flag", "category" (a column for each level) or "code" (the number of its level)
    role: str  # "object" or "situation"
    fill: float = 0.0  # stands for a missing number: the mean
    indicator: bool = False  # whether another column says that it was missing
    levels: list[str] = field(default_factory=list)  # of a category; the rest are "other"
    rest: bool = False  # whether rarer levels were seen, which share a column with unseen ones

    @property
    def width(self) -> int:
        """How many numbers it becomes."""
        if self.kind == "code":
            return 1
        return len(self.levels) + self.rest if self.kind == "category" else 1 + self.indicator

    @property
    def names(self) -> list[str]:
        """What these numbers are called."""
        if self.kind == "category":
            return [f"{self.name}={level}" for level in self.levels] + [f"{self.name}=other"] * self.rest
        return [self.name] + [f"{self.name} is missing"] * self.indicator


@dataclass
class PackedTable:
    """Sets made of a table, and the way back."""

    sets: Sets
    order: NDArray[np.int64]  # the table's row of each packed object
    ids: pa.Array  # of the sets
    grades: NDArray[np.float64] | None = None  # packed relevances, where the target is such

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

    @classmethod
    def fit(
        cls,
        frame: Any,
        *,
        set_id: str,
        target: str | None,
        target_kind: str = "rank",
        features: list[str] | None = None,
        situation: list[str] | None = None,
        ignore: list[str] | None = None,
        codes: bool = False,
        learn: Callable[[str, str, bool], Column] | None = None,
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
        codes : whether a category of more than 32 levels becomes the number of its level, for a net to learn a
            vector for each (`categories`); otherwise the rarer ones share a column
        learn : learns a column by its name, role and ``codes``, where the frame holds no rows itself
        """
        check_choice("target_kind", target_kind, TARGET_KINDS)
        table = arrow_table(frame)
        situation = list(situation or [])
        for name in (
            set_id,
            *([] if target is None else [target]),
            *situation,
            *(features or []),
            *(ignore or []),
        ):
            _column(table, name, "column")
        taken = {set_id, target, *situation, *(ignore or [])}
        chosen = (
            [name for name in table.column_names if name not in taken] if features is None else list(features)
        )
        for name in chosen:
            if name in (set_id, target, *situation):
                raise DataError(
                    f"Column {name!r} can't be a feature of the objects and something else as well."
                )
        if not chosen and not situation:
            raise DataError("No column is left to learn from: a table needs at least one feature.")
        learn = learn or (lambda name, role, codes: learn_column(table, name, role, codes))
        columns = [learn(name, "object", codes) for name in chosen]
        columns += [learn(name, "situation", False) for name in situation]
        useful = [column for column in columns if column.width]
        if not any(column.role == "object" for column in useful):
            raise DataError(
                "No feature column tells the objects of a set apart: all are empty, or features of the situation."
            )
        return cls(set_id, target, target_kind, useful)

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

    def __call__(self, frame: Any, *, with_target: bool = True) -> PackedTable:
        """Turn a table of the same form into sets."""
        table = arrow_table(frame)
        if table.num_rows == 0:
            raise DataError("The table holds no rows.")
        needed = [self.set_id, *(column.name for column in self.columns)]
        needed += [self.target] if with_target and self.target is not None else []
        missing = [name for name in needed if name not in table.column_names]
        if missing:
            raise DataError(
                f"The table lacks {_listed(missing)}, which the model learnt from; it has "
                f"{_listed(table.column_names)}."
            )
        order, offsets, ids = group_rows(table, self.set_id)
        place = _Place(order, offsets, ids)
        own = [c for c in self.columns if c.role == "object"]
        shared = [c for c in self.columns if c.role == "situation"]
        objects = self._encode(table, own, place)
        situation = self._encode(table, shared, place) if shared else None
        if situation is not None:
            situation = self._one_a_set(situation, shared, place)
        targets = grades = None
        if with_target and self.target is not None:
            targets, grades = _read_target(table, self.target, self.target_kind, place)
        return PackedTable(Sets(objects, offsets, targets, situation), order, ids, grades)

    def _encode(self, table: pa.Table, columns: list[Column], place: "_Place") -> NDArray[np.float32]:
        numbers = np.empty((table.num_rows, sum(column.width for column in columns)), dtype=np.float32)
        at = 0
        for column in columns:
            numbers[:, at : at + column.width] = _encode_column(table, column, place)
            at += column.width
        return (
            numbers if place.together else numbers.take(place.order, axis=0)
        )  # whole rows: kind to the cache

    def _one_a_set(
        self, values: NDArray[np.float32], columns: list[Column], place: "_Place"
    ) -> NDArray[np.float32]:
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
        }

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Self:
        """Make the encoder of a model file again."""
        return cls(
            content["set_id"],
            content["target"],
            content["target_kind"],
            [Column(**column) for column in content["columns"]],
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
    table = arrow_table(frame)
    column = _column(table, name, "column").combine_chunks()
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode("encode")
    codes = encoded.indices.to_numpy(zero_copy_only=False)[packed.order]
    place = _Place(packed.order, packed.sets.offsets, packed.ids)
    first = codes[packed.sets.offsets[:-1]]
    differs = np.repeat(first, packed.sets.sizes) != codes
    if differs.any():
        raise DataError(
            f"Column {name!r} groups sets, so it must be the same for all rows of a set; it differs in "
            f"{place.of_packed(int(np.argmax(differs)))}."
        )
    return np.asarray(first, dtype=np.int64)


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


def _kind(column: pa.ChunkedArray, name: str) -> str:
    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_boolean(kind):
        return "flag"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "category" if pa.types.is_dictionary(column.type) else "number"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "category"
    if pa.types.is_null(kind):
        return "empty"
    if pa.types.is_temporal(kind):
        raise DataError(
            f"Column {name!r} holds dates or times ({kind}); turn it into numbers that mean something here, such as "
            "days since an event, weekday or hour, or leave it out."
        )
    raise DataError(
        f"Column {name!r} holds {kind}, which is no feature; numbers, booleans and text are. Leave it out."
    )


def learn_column(table: pa.Table, name: str, role: str, codes: bool) -> Column:
    """Learn what a column of a table is."""
    values = table.column(name)
    kind = _kind(values, name)
    if kind == "empty":
        return Column(name, "category", role)  # no numbers at all
    if kind == "category":
        texts = _texts(values)
        counts = pc.value_counts(texts.drop_null())
        pairs = sorted(
            zip(counts.field(0).to_pylist(), counts.field(1).to_pylist(), strict=True),
            key=lambda p: (-p[1], p[0]),
        )
        levels = [text for text, _ in pairs]
        if codes and len(levels) > MOST_LEVELS:
            return Column(name, "code", role, levels=levels)
        most = MOST_LEVELS if len(levels) <= MOST_LEVELS else MOST_LEVELS - 1
        return Column(name, "category", role, levels=levels[:most], rest=len(levels) > most)
    numbers = _numbers(values)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = float(numbers.mean()) if len(numbers) else float("nan")
    if abs(mean) <= float(np.finfo(np.float32).max):  # then all are there, in one pass
        return Column(name, kind, role, fill=mean)
    there = ~np.isnan(numbers)
    finite = np.abs(numbers) <= np.finfo(np.float32).max  # others are refused when they are encoded
    if not there.any():
        return Column(name, "category", role)
    return Column(
        name,
        kind,
        role,
        fill=float(numbers[finite].mean()) if finite.any() else 0.0,
        indicator=not there.all(),
    )


def _texts(values: pa.ChunkedArray) -> pa.Array:
    array = values.combine_chunks()
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    return array.cast(pa.string())


def _numbers(values: pa.ChunkedArray) -> NDArray[np.float64]:
    """Return a numeric column as floats, NaN where it is missing."""
    return np.asarray(values.cast(pa.float64()).to_numpy(), dtype=np.float64)


def _encode_column(table: pa.Table, column: Column, place: _Place) -> NDArray[np.float32]:
    """Return the numbers of a column, (rows, width)."""
    values = table.column(column.name)
    kind = _kind(values, column.name)
    if column.kind in ("category", "code"):
        if kind not in ("category", "empty"):
            values = values.cast(pa.string())  # numbers where text was learnt: their text may be a level
        codes = pc.index_in(_texts(values), value_set=pa.array(column.levels, pa.string()))
        places = codes.fill_null(-1).to_numpy(zero_copy_only=False)
        known = places >= 0
        if column.kind == "code":
            return np.asarray(places[:, None] + 1, dtype=np.float32)
        result = np.zeros((len(places), column.width), dtype=np.float32)
        result[np.flatnonzero(known), places[known]] = 1.0
        if column.rest:
            given = _texts(values).is_valid().to_numpy(zero_copy_only=False)
            result[~known & given, -1] = 1.0
        return result
    if kind == "category":
        numbers = _parse(values, column.name, place)
    elif kind == "empty":
        numbers = np.full(len(values), np.nan)
    else:
        numbers = _numbers(values)
    with np.errstate(over="ignore"):  # looked at next
        filled = numbers.astype(np.float32)
    missing = np.zeros(len(numbers), dtype=bool)
    with np.errstate(invalid="ignore"):
        total = filled.sum(dtype=np.float64)  # finite only where all are: one pass, no temporary
    if not np.isfinite(total):
        missing = np.isnan(numbers)
        filled[missing] = column.fill
        wrong = ~np.isfinite(filled)
        if wrong.any():
            row = int(np.argmax(wrong))
            what = "is infinite" if np.isinf(numbers[row]) else "is too large for a float32"
            raise DataError(
                f"Column {column.name!r} {what} in {place.of_row(row)}; features must be finite or missing. "
                "Leave such rows out or rescale the column."
            )
    return np.stack([filled, missing], axis=1) if column.indicator else filled[:, None]


def _parse(values: pa.ChunkedArray, name: str, place: _Place) -> NDArray[np.float64]:
    """Read numbers from a column of text, as the model learnt numbers from it."""
    texts = _texts(values)
    try:
        return np.asarray(texts.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
    except pa.ArrowInvalid:
        for row, text in enumerate(texts.to_pylist()):
            try:
                float(text or 0)
            except ValueError:
                raise DataError(
                    f"Column {name!r} needs numbers, as the model learnt from; {place.of_row(row)} holds {text!r}."
                ) from None
        raise DataError(f"Column {name!r} needs numbers, as the model learnt from; it holds text.") from None


def _read_target(
    table: pa.Table, name: str, kind: str, place: _Place
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Turn the target into packed ranks, and return relevances as they are too."""
    column = table.column(name)
    what = {"rank": "ranks", "relevance": "relevances"}.get(kind, "choices, 0 or 1")
    if _kind(column, name) not in ("number", "flag"):
        raise DataError(f"Column {name!r} should hold {what}; it holds {column.type}.")
    values = _numbers(column)[place.order]
    if np.isinf(values).any():
        at = int(np.argmax(np.isinf(values)))
        raise DataError(f"Column {name!r} is infinite in {place.of_packed(at)}; it should hold {what}.")
    if kind == "rank":
        return values, None
    if kind == "relevance":
        grades = values
        return np.nanmax(grades) - grades if not np.isnan(grades).all() else grades, grades
    wrong = ~np.isin(values, (0.0, 1.0))
    if wrong.any():
        at = int(np.argmax(wrong))
        came = "nothing" if np.isnan(values[at]) else f"{values[at]:g}"
        raise DataError(f"Column {name!r} should hold {what}; {place.of_packed(at)} holds {came}.")
    return 1.0 - values, values
