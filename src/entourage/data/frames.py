"""Any frame as an Arrow table, its columns by name, and sets as a table."""

import difflib
import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from entourage.errors import DataError

if TYPE_CHECKING:
    from entourage.data.sets import Sets

__all__ = ["arrow_table", "column_of", "frame_of", "list_columns"]

_INDEX = re.compile(r"__index_level_\d+__")


def arrow_table(frame: Any) -> pa.Table:
    """Convert any frame to an Arrow table: pandas, polars or Arrow, through narwhals."""
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


def frame_of(sets: "Sets", feature_names: Sequence[str] | None = None) -> pa.Table:
    """Return sets as a long table: set, the features, target and position where there are such."""
    names = [f"x{i}" for i in range(sets.n_features)] if feature_names is None else list(feature_names)
    columns: dict[str, Any] = {"set": np.repeat(np.arange(len(sets)), sets.sizes)}
    columns |= {name: sets.objects[:, i] for i, name in enumerate(names)}
    for name, values in (("target", sets.targets), ("position", sets.position)):
        columns |= {} if values is None else {name: values}
    return pa.table(columns)


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
    return DataError("The table can't be converted to Arrow columns; see pyarrow.Table.from_pandas.")


def column_of(table: pa.Table, name: str, what: str = "column") -> pa.ChunkedArray:
    """Return a column; an unknown name is an error that suggests a close one. ``what`` names its role."""
    if name not in table.column_names:
        close = difflib.get_close_matches(name, table.column_names, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else "."
        raise DataError(f"The table has no {what} {name!r}{hint} It has {list_columns(table.column_names)}.")
    return table.column(name)


def list_columns(names: Sequence[str], most: int = 20) -> str:
    """Name columns in a sentence, the first ``most`` of them.

    Examples
    --------
    >>> list_columns(["age", "team", "place"], most=2)
    "columns 'age', 'team' and 1 more"
    """
    shown = ", ".join(map(repr, names[:most]))
    more = f" and {len(names) - most} more" * (len(names) > most)
    return f"{'column' if len(names) == 1 else 'columns'} {shown}{more}"
