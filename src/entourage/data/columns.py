"""A feature column of a table: what was learnt about it from the training table, and how its cells become numbers.

Numbers stay in double precision. Text becomes one number for each level, or the number of its level. A column whose
kind differs from that of the training table is refused: a number in place of text would silently be an unseen level.
"""

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from entourage.errors import DataError, DataWarning

__all__ = [
    "ENOUGH_ROWS",
    "MOST_LEVELS",
    "Column",
    "as_numbers",
    "encode_column",
    "is_number",
    "kind_of_column",
    "learn_column",
    "number_marks",
    "without_marks",
]

Floats: TypeAlias = NDArray[np.float64]

MOST_LEVELS = (
    32  # of a category, each with a column of its own; beyond, rarer ones share one, or all are codes
)
MOSTLY = 0.8  # with so large a share of numbers, a column of text is said to be one of numbers with strays
ENOUGH_ROWS = 20  # in which a text that never comes twice is a name
_NUMBER = r"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$"
_DECIMAL_COMMA = r"^\s*[-+]?(\d+|\d{1,3}(\.\d{3})+),\d+\s*$"
_THOUSANDS = r"[-+]?[1-9]\d{0,2}([,'’\x{a0}\x{202f} ]\d{3})+(\.\d+)?"  # as a person writes a large number
_PLAIN = rf"([-+]?\d*\.?\d+|{_THOUSANDS})"
_AMOUNT = rf"^\s*({_THOUSANDS}|[-+]?[$€£¥₹]\s*{_PLAIN}|{_PLAIN}\s*[%$€£¥₹])\s*$"
_DATE = r"^\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4})([ T]+\d.*)?$"


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

    @property
    def coding(self) -> tuple[Any, ...]:
        """What two columns must share for their numbers to mean the same."""
        fill = self.fill if self.indicator else None  # without missing values it stands nowhere
        return self.name, self.kind, self.role, self.indicator, fill, tuple(self.levels), self.rest


def kind_of_column(values: pa.ChunkedArray, name: str) -> str:
    """Return "number", "flag", "category" or "empty"; other types are refused."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_boolean(kind):
        return "flag"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "category" if pa.types.is_dictionary(values.type) else "number"
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


def learn_column(
    values: pa.ChunkedArray, name: str, role: str, *, codes: bool, missing: Sequence[str] = ()
) -> Column:
    """Learn what a column of a table is; ``missing`` are texts that stand for no value."""
    kind = kind_of_column(values, name)
    if kind == "category" and missing:
        values, kind = without_marks(values, missing)
    if kind == "empty":
        return Column(name, "category", role)  # no numbers at all
    if kind == "category":
        return _learn_category(_texts(values), name, role, codes)
    numbers = as_numbers(values, missing)
    known = ~np.isnan(numbers)
    if not known.any():
        return Column(name, "category", role)
    finite = numbers[np.isfinite(numbers)]  # others are refused when they are encoded
    largest = float(np.abs(finite).max(initial=0.0)) or 1.0
    fill = largest * float((finite / largest).mean()) if len(finite) else 0.0  # no sum overflows
    return Column(name, kind, role, fill=fill, indicator=not known.all())


def _learn_category(texts: pa.Array, name: str, role: str, codes: bool) -> Column:
    counts = pc.value_counts(texts.drop_null())
    pairs = sorted(
        zip(counts.field(0).to_pylist(), counts.field(1).to_pylist(), strict=True),
        key=lambda p: (-p[1], p[0]),
    )
    levels = [text for text, _ in pairs]
    numeric = _say_numbers(texts, pairs, name)
    if role == "object" and len(levels) >= ENOUGH_ROWS and pairs[0][1] == 1 and not numeric:
        warnings.warn(
            f"Column {name!r} holds another text in each of {len(levels):,} rows: a name, from which nothing can be "
            "learnt about other rows. It was left out; ignore it (ignore=, --ignore) to say so yourself.",
            DataWarning,
            stacklevel=2,
        )
        return Column(name, "category", role)
    if codes and len(levels) > MOST_LEVELS:
        return Column(name, "code", role, levels=levels)
    most = MOST_LEVELS if len(levels) <= MOST_LEVELS else MOST_LEVELS - 1
    return Column(name, "category", role, levels=levels[:most], rest=len(levels) > most)


def _say_numbers(texts: pa.Array, pairs: list[tuple[str, int]], name: str) -> bool:
    """Warn where a column of text seems to be one of numbers, all or nearly all; return whether it does."""
    levels = pa.array([text for text, _ in pairs], pa.string())
    counts = np.array([count for _, count in pairs])
    given = int(counts.sum())
    if _say_dates(levels, counts, name):
        return False
    if _say_amounts(texts, levels, counts, name):
        return True
    for pattern, commas in ((_NUMBER, False), (_DECIMAL_COMMA, True)):
        numeric = pc.match_substring_regex(levels, pattern).to_numpy(zero_copy_only=False)
        held = int(counts[numeric].sum())
        if held < MOSTLY * given:
            continue
        if held == given and not commas and len(pairs) <= MOST_LEVELS:
            return False  # few numbers, all of them text by intention
        if held == given and not commas:
            what, way_out = f"numbers in all {given:,} rows, but as text", "Give it as numbers."
        elif commas:
            what = f"numbers with decimal commas in {held:,} of {given:,} rows, so it was read as text"
            way_out = "Read the file with decimal=',' (--decimal ,)."
            if pc.any(pc.match_substring(levels, ".")).as_py():
                way_out = "Leave out the points between thousands, and read the file with decimal=',' (--decimal ,)."
        else:
            stray = pairs[int(np.argmin(numeric))][0]
            row = pc.index(texts, stray).as_py() + 1
            what = (
                f"numbers in {held:,} of {given:,} rows, but text in {given - held:,} ({stray!r} in row {row:,}), so "
                "it was read as text: every number is a category of its own"
            )
            way_out = (
                f"Where such cells are missing values, say so: missing=[{stray!r}] (--missing {stray!r})."
            )
        warnings.warn(f"Column {name!r} holds {what}. {way_out}", DataWarning, stacklevel=2)
        return True
    return False


def _say_dates(levels: pa.Array, counts: NDArray[np.int64], name: str) -> bool:
    """Warn where a column of text holds dates, and return whether it does."""
    dates = pc.match_substring_regex(levels, _DATE).to_numpy(zero_copy_only=False)
    if len(counts) == 0 or counts[dates].sum() < MOSTLY * counts.sum():
        return False
    one = levels[int(np.argmax(dates))].as_py()
    warnings.warn(
        f"Column {name!r} holds dates as text ({one!r}), each a level of its own. Turn it into numbers that mean "
        "something here, such as days since an event, weekday or hour, or leave it out.",
        DataWarning,
        stacklevel=2,
    )
    return True


def _say_amounts(texts: pa.Array, levels: pa.Array, counts: NDArray[np.int64], name: str) -> bool:
    """Warn where numbers are written with thousands separators, currencies or per cent; return whether they are."""
    amounts = pc.match_substring_regex(levels, _AMOUNT).to_numpy(zero_copy_only=False)
    plain = is_number(levels).to_numpy(zero_copy_only=False)
    commas = pc.match_substring_regex(levels, _DECIMAL_COMMA).to_numpy(zero_copy_only=False)
    few = len(counts) <= MOST_LEVELS  # texts by intention
    if (
        few
        or not amounts.any()
        or counts[amounts | plain].sum() < MOSTLY * counts.sum()
        or (commas & ~amounts).any()
    ):
        return False
    one = levels[int(np.argmax(amounts))].as_py()
    warnings.warn(
        f"Column {name!r} holds numbers with thousands separators, currency or per cent signs in "
        f"{int(counts[amounts].sum()):,} of {int(counts.sum()):,} rows ({one!r} in row "
        f"{pc.index(texts, one).as_py() + 1:,}), so it was read as text: every number is a category of its own. Write "
        "plain numbers, such as 1234.5.",
        DataWarning,
        stacklevel=2,
    )
    return True


def is_number(texts: pa.Array) -> pa.Array:
    """Return which texts are plain numbers; of a missing one, nothing is known."""
    return pc.match_substring_regex(texts, _NUMBER)


def without_marks(
    values: pa.ChunkedArray, missing: Sequence[str], *, numbers: bool = True
) -> tuple[pa.ChunkedArray, str]:
    """Make the given texts missing values; where all that is left are ``numbers``, they are read as such."""
    texts = _texts(values)
    marks = pc.is_in(pc.utf8_trim_whitespace(texts), value_set=pa.array(list(missing), pa.string()))
    left = pc.if_else(pc.and_(marks, texts.is_valid()), pa.scalar(None, pa.string()), texts)
    if numbers and left.null_count < len(left) and left.null_count > texts.null_count:
        try:
            return pa.chunked_array([pc.utf8_trim_whitespace(left).cast(pa.float64())]), "number"
        except pa.ArrowInvalid:
            pass
    return pa.chunked_array([left]), "category"


def encode_column(
    values: pa.ChunkedArray, column: Column, of_row: Callable[[int], str], missing: Sequence[str] = ()
) -> Floats:
    """Return the numbers of a column, (rows, width); ``of_row`` says in words where a row is."""
    kind = kind_of_column(values, column.name)
    text = column.kind in ("category", "code")
    if kind == "category" and missing:
        values, kind = without_marks(values, missing, numbers=not text)
    if text:
        return _encode_category(values, column, kind)
    if kind == "category":
        numbers = _parse(values, column.name, of_row)
    elif kind == "empty":
        numbers = np.full(len(values), np.nan)
    else:
        numbers = as_numbers(values, missing)
        _check_flags(numbers, column, kind, of_row)
    absent = np.isnan(numbers)
    filled = np.where(absent, column.fill, numbers) if absent.any() else numbers
    if not np.isfinite(filled).all():
        row = int(np.argmin(np.isfinite(filled)))
        raise DataError(
            f"Column {column.name!r} is infinite in {of_row(row)}; features must be finite or missing. "
            "Leave such rows out or rescale the column."
        )
    return np.stack([filled, absent], axis=1) if column.indicator else filled[:, None]


def _encode_category(values: pa.ChunkedArray, column: Column, kind: str) -> Floats:
    if kind not in ("category", "empty"):
        shown = ", ".join(map(repr, column.levels[:3]))
        more = ", ..." * (len(column.levels) > 3)
        raise DataError(
            f"Column {column.name!r} held text when the model was fitted ({shown}{more}), and holds "
            f"{'numbers' if kind == 'number' else 'booleans'} ({values.type}) now. Give it as text, or fit the model "
            "again with numbers."
        )
    texts = _texts(values)
    codes = pc.index_in(texts, value_set=pa.array(column.levels, pa.string()))
    places = codes.fill_null(-1).to_numpy(zero_copy_only=False)
    if column.kind == "code":
        return np.asarray(places[:, None] + 1, dtype=np.float64)
    known = places >= 0
    result = np.zeros((len(places), column.width))
    result[np.flatnonzero(known), places[known]] = 1.0
    if column.rest:
        given = texts.is_valid().to_numpy(zero_copy_only=False)
        result[~known & given, -1] = 1.0
    return result


def _check_flags(numbers: Floats, column: Column, kind: str, of_row: Callable[[int], str]) -> None:
    """See that booleans stay booleans, and numbers numbers."""
    if column.kind == kind:
        return
    if column.kind == "number":
        raise DataError(
            f"Column {column.name!r} held numbers when the model was fitted, and holds booleans now. Give it as "
            "numbers."
        )
    strange = ~np.isnan(numbers) & (numbers != 0) & (numbers != 1)
    if strange.any():
        row = int(np.argmax(strange))
        raise DataError(
            f"Column {column.name!r} held booleans when the model was fitted; {of_row(row)} holds {numbers[row]:g}. "
            "Give it as booleans, or as 0 and 1."
        )


def _texts(values: pa.ChunkedArray) -> pa.Array:
    array = values.combine_chunks()
    if not pa.types.is_dictionary(array.type):
        return array.cast(pa.string())
    return pa.DictionaryArray.from_arrays(
        array.indices, array.dictionary.cast(pa.string())
    ).dictionary_decode()


def as_numbers(values: pa.ChunkedArray, missing: Sequence[str] = ()) -> Floats:
    """Return a numeric column as floats, NaN where it is missing, or is one of the marks that are numbers."""
    numbers = np.asarray(values.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)
    marks = number_marks(missing)
    return np.where(np.isin(numbers, marks), np.nan, numbers) if marks else numbers


def number_marks(missing: Sequence[str]) -> list[float]:
    """Return those marks of missing values that are numbers.

    Examples
    --------
    >>> number_marks(["---", "-999"])
    [-999.0]
    """
    return [float(mark) for mark in missing if re.match(_NUMBER, mark)]


def _parse(values: pa.ChunkedArray, name: str, of_row: Callable[[int], str]) -> Floats:
    """Read numbers from a column of text, as in the training table."""
    texts = _texts(values)
    try:
        return np.asarray(texts.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
    except pa.ArrowInvalid:
        wrong = pc.fill_null(pc.invert(pc.match_substring_regex(texts, _NUMBER)), False)
        row = max(pc.index(wrong, True).as_py(), 0)
        raise DataError(
            f"Column {name!r} needs numbers, as in the training table; {of_row(row)} holds {texts[row].as_py()!r}. "
            "Where such cells are missing values, make them empty, or fit with missing= (--missing)."
        ) from None
