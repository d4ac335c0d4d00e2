"""Values of a request as those of one column, each of the type that the model learnt."""

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any, TypeAlias

from entourage.data.columns import Column

__all__ = ["BadCell", "Reader", "read_numbers", "reader_of", "say_type"]

#: Returns the values of a column, converted; raises `BadCell` at the first that can't be used.
Reader: TypeAlias = Callable[[list[Any]], list[Any]]

_NUMBERS = {float, int}
_NUMBERS_OR_NONE = {float, int, type(None)}
_TEXT_OR_NONE = {str, type(None)}
_FLAGS = {bool, int, float, type(None)}
_WORDS = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "an object",
    type(None): "null",
}


class BadCell(Exception):
    """A value that can't be used: its place among the values, and a sentence."""

    def __init__(self, place: int, message: str) -> None:
        super().__init__(message)
        self.place, self.message = place, message


def say_type(value: Any) -> str:
    """Say what kind of JSON value came, not the value itself.

    Examples
    --------
    >>> say_type({"a": 1}), say_type(None)
    ('an object', 'null')
    """
    if isinstance(value, float) and not isfinite(value):
        return "NaN" if value != value else "an infinite number"
    return _WORDS.get(type(value), "something else")


def reader_of(column: Column, missing: Sequence[str]) -> Reader:
    """Return what reads the values of a column; ``missing`` are texts that stand for a missing value.

    Examples
    --------
    >>> read = reader_of(Column("price", "number", "object"), ["---"])
    >>> read([3, 2.5, None, "---"])
    [3.0, 2.5, None, None]
    >>> read([3, "2.5"])
    Traceback (most recent call last):
        ...
    entourage.serving.cells.BadCell: needs a number, or null where it is missing; got text.
    """
    marks = frozenset(missing)
    if column.kind in ("category", "code"):
        return lambda values: _read_text(values, marks)
    if column.kind == "flag":
        return lambda values: _read_flags(values, marks)
    return lambda values: _read_column_of_numbers(values, marks)


def read_numbers(values: list[Any]) -> list[float]:
    """Return numbers as floats; none may be missing.

    Examples
    --------
    >>> read_numbers([1, 2.5])
    [1.0, 2.5]
    """
    if not _NUMBERS.issuperset(map(type, values)):
        place = next(i for i, value in enumerate(values) if type(value) not in _NUMBERS)
        raise BadCell(place, f"needs a number; got {say_type(values[place])}.")
    return _finite(_floats(values), "needs a finite number")


def _read_column_of_numbers(values: list[Any], marks: frozenset[str]) -> list[Any]:
    needed = "needs a number, or null where it is missing"
    if not _NUMBERS_OR_NONE.issuperset(map(type, values)):
        values = [None if _is_mark(value, marks) else value for value in values]
        for place, value in enumerate(values):
            if type(value) not in _NUMBERS_OR_NONE:
                raise BadCell(place, f"{needed}; got {say_type(value)}.")
    return _finite(_floats(values), needed)


def _read_flags(values: list[Any], marks: frozenset[str]) -> list[Any]:
    if marks:
        values = [None if _is_mark(value, marks) else value for value in values]
    for place, value in enumerate(values):
        if type(value) not in _FLAGS or (value is not None and value != 0 and value != 1):
            raise BadCell(place, f"needs true or false, or null where it is missing; got {say_type(value)}.")
    return [None if value is None else float(value) for value in values]


def _read_text(values: list[Any], marks: frozenset[str]) -> list[Any]:
    if not _TEXT_OR_NONE.issuperset(map(type, values)):
        place = next(i for i, value in enumerate(values) if type(value) not in _TEXT_OR_NONE)
        raise BadCell(place, f"needs text, or null where it is missing; got {say_type(values[place])}.")
    if marks:
        values = [None if _is_mark(value, marks) else value for value in values]
    try:
        "".join(filter(None, values)).encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        place = next(i for i, value in enumerate(values) if value is not None and not _is_unicode(value))
        raise BadCell(place, "needs text of whole characters; got half of a surrogate pair.") from None
    return values


def _is_mark(value: Any, marks: frozenset[str]) -> bool:
    return type(value) is str and value.strip() in marks


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _floats(values: list[Any]) -> list[Any]:
    if {float}.issuperset(map(type, values)):
        return values
    try:
        return [None if value is None else float(value) for value in values]
    except OverflowError:  # a whole number of more than 308 digits
        place = next(i for i, value in enumerate(values) if type(value) is int and abs(value) > 1e308)
        raise BadCell(place, "needs a finite number; got one that is too large.") from None


def _finite(values: list[Any], needed: str) -> list[Any]:
    try:
        good = all(map(isfinite, values))
    except TypeError:  # some are None
        good = all(value is None or isfinite(value) for value in values)
    if good:
        return values
    place = next(i for i, value in enumerate(values) if value is not None and not isfinite(value))
    raise BadCell(place, f"{needed}; got {say_type(values[place])}.")
