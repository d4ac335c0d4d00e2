"""Which rows of a table form a set, the way back to the rows, and what a column says of sets and of positions."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from entourage.data.coerce import Index, offsets_of
from entourage.data.columns import as_numbers, kind_of_column
from entourage.data.frames import arrow_table, column_of
from entourage.data.positions import pack_positions
from entourage.data.sets import Sets
from entourage.errors import DataError

_ISO = r"\d{4}-\d{2}(-\d{2}([ T]\d{2}:\d{2}(:\d{2})?)?)?$"  # what sorts in its order

__all__ = [
    "PackedTable",
    "RowPlaces",
    "exact_labels",
    "group_labels",
    "group_rows",
    "groups_of",
    "labels_of_sets",
    "positions_of",
    "times_of",
    "weights_of",
]


def group_rows(ids: Any) -> tuple[Index, Index, Index]:
    """Bring the rows of one id together: ids in order of first appearance, rows in theirs.

    Parameters
    ----------
    ids : an id for each row, an Arrow or NumPy array

    Returns
    -------
    rows : the rows, those of the first id first
    offsets : where each id begins in them, of shape (ids + 1,)
    first : the first row of each id

    Examples
    --------
    >>> rows, offsets, first = group_rows(np.array([7, 5, 7]))
    >>> rows.tolist(), offsets.tolist(), first.tolist()
    ([0, 2, 1], [0, 2, 3], [0, 1])
    """
    column = ids if isinstance(ids, pa.Array) else pa.array(ids)
    if pa.types.is_dictionary(column.type):  # a frame's own categories: some may be unused, in any order
        codes = column.indices.to_numpy(zero_copy_only=False)
        _, first, codes = np.unique(codes, return_index=True, return_inverse=True)
        codes = np.argsort(np.argsort(first))[codes]
    else:
        codes = column.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    offsets = offsets_of(np.bincount(codes))
    together = bool((codes[1:] >= codes[:-1]).all())
    rows = np.arange(len(codes)) if together else _counting_sort(codes, len(offsets) - 1)
    return rows, offsets, rows[offsets[:-1]]


def exact_labels(table: pa.Table, name: str, what: str, purpose: str) -> pa.Array:
    """Return a column of labels; missing ones, and floats too large to be exact, are refused."""
    column = column_of(table, name, what).combine_chunks()
    if pa.types.is_dictionary(column.type) and pa.types.is_string_view(column.type.value_type):
        column = pa.DictionaryArray.from_arrays(
            column.indices, column.dictionary.cast(pa.string())
        )  # as polars writes
    elif pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    if pa.types.is_nested(column.type):
        raise DataError(f"Column {name!r} {purpose}, so it needs numbers or text; it holds {column.type}.")
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
    """Sets made from a table, and the way back to its rows."""

    sets: Sets
    order: NDArray[np.int64]  # the table's row of each packed object
    ids: pa.Array  # of the sets

    def in_rows(self, packed: NDArray[Any]) -> NDArray[Any]:
        """Return packed values in the order of the table's rows."""
        values = np.empty_like(packed)
        values[self.order] = packed
        return values


@dataclass
class RowPlaces:
    """Where rows stand, in the table and in its sets, to say it in errors.

    Attributes
    ----------
    order : the table's row of each packed object
    offsets : where each set begins among the packed objects
    ids : of the sets
    """

    order: NDArray[np.int64]
    offsets: NDArray[np.int64]
    ids: pa.Array

    def __post_init__(self) -> None:
        self.together = bool((self.order[1:] > self.order[:-1]).all())  # as the table has them

    def set_of(self, packed: int) -> int:
        """Return the set of a packed object."""
        return int(np.searchsorted(self.offsets, packed, side="right")) - 1

    def of_packed(self, packed: int) -> str:
        """Say in words where a packed object stands."""
        return f"row {self.order[packed] + 1}, set {self.ids[self.set_of(packed)].as_py()!r}"

    def of_row(self, row: int) -> str:
        """Say in words where a row of the table stands."""
        return self.of_packed(int(np.flatnonzero(self.order == row)[0]))


def groups_of(frame: Any, packed: PackedTable, name: str) -> NDArray[np.int64]:
    """Return a number for the group of each set, from a column that is the same for all rows of a set."""
    return _labels_of_sets(frame, packed, name, "groups sets")[0]


def group_labels(frame: Any, name: str) -> list[Any]:
    """Return the labels that the numbers of `groups_of` stand for, in their order."""
    column = exact_labels(arrow_table(frame), name, "column", "groups sets")
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode("encode")
    return list(encoded.dictionary.to_pylist())


def labels_of_sets(frame: Any, packed: PackedTable, name: str) -> list[Any]:
    """Return the label of the group of each set, from a column that is the same for all rows of a set."""
    labels = group_labels(frame, name)
    return [labels[code] for code in groups_of(frame, packed, name)]


def weights_of(frame: Any, packed: PackedTable, name: str) -> NDArray[np.float64]:
    """Return the weight of each set, from a column that is the same for all rows of a set."""
    codes, labels = _labels_of_sets(frame, packed, name, "weighs sets")
    if kind_of_column(pa.chunked_array([labels]), name) != "number":
        raise DataError(f"Column {name!r} weighs sets, so it needs numbers; it holds {labels.type}.")
    return as_numbers(pa.chunked_array([labels]))[codes]


def times_of(frame: Any, packed: PackedTable, name: str) -> NDArray[np.int64]:
    """Return the place of each set in time, from a column that is the same for all rows of a set; equal ones share it.

    Numbers and dates are in their order, text only where it is written year first, as in 2019-03-31.
    """
    codes, labels = _labels_of_sets(frame, packed, name, "orders sets in time")
    if pa.types.is_dictionary(labels.type):
        labels = labels.dictionary_decode()
    held, codes = np.unique(codes, return_inverse=True)
    labels = labels.take(pa.array(held))  # a dictionary may hold others, missing ones too
    if pa.types.is_string(labels.type) or pa.types.is_large_string(labels.type):
        first = next((text for text in labels.to_pylist() if not re.match(_ISO, text)), None)
        if first is not None:
            raise DataError(
                f"Column {name!r} orders sets in time, and as text it needs the year first, as in 2019-03-31; "
                f"it holds {first!r}. Give numbers or dates."
            )
    ranks = pc.rank(labels, tiebreaker="dense").to_numpy()
    return np.asarray(ranks, dtype=np.int64)[codes] - 1


def positions_of(frame: Any, packed: PackedTable, name: str) -> NDArray[Any]:
    """Return the packed positions that a column of a table holds; none may be missing."""
    column = exact_labels(arrow_table(frame), name, "column", "holds positions")
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    labels = column.to_numpy(zero_copy_only=False)[packed.order]
    try:
        return pack_positions(labels, packed.sets.sizes)
    except DataError as error:
        raise DataError(f"Column {name!r}: {error}") from None


def _labels_of_sets(
    frame: Any, packed: PackedTable, name: str, purpose: str
) -> tuple[NDArray[np.int64], pa.Array]:
    """Return for each set the place of its label, and the labels; all rows of a set must have the same."""
    column = exact_labels(arrow_table(frame), name, "column", purpose)
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode("encode")
    codes = encoded.indices.to_numpy(zero_copy_only=False)[packed.order]
    place = RowPlaces(packed.order, packed.sets.offsets, packed.ids)
    first = codes[packed.sets.offsets[:-1]]
    differs = np.repeat(first, packed.sets.sizes) != codes
    if differs.any():
        raise DataError(
            f"Column {name!r} {purpose}, so it must be the same for all rows of a set; it differs in "
            f"{place.of_packed(int(np.argmax(differs)))}."
        )
    return np.asarray(first, dtype=np.int64), encoded.dictionary
