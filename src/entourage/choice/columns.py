"""Columns of choice models: named or counted, and the base levels of categories, which are left out."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from entourage.choice.likelihood import Index
from entourage.data.sets import Sets
from entourage.errors import DataError, ParameterError, check_choice, check_number

__all__ = ["base_columns", "place_of", "spans_of"]


def spans_of(encoder: Any, role: str = "object") -> dict[str, tuple[Any, int]]:
    """Return each column of the objects, or of the situation, by name, with the place of its first number."""
    found, at = {}, 0
    for column in encoder.columns:
        if column.role == role:
            found[column.name] = (column, at)
            at += column.width
    return found


def base_columns(
    base: Any, sets: Sets, default: bool, leave: Sequence[str] = (), role: str = "object"
) -> Index:
    """Return the places of base levels, whose coefficient is 0: one a category of a table.

    All levels of a category sum to 1 for each object, so that their coefficients are identified only relative to one
    level. Where the category is missing in some rows, these have no level, and are the base.

    Parameters
    ----------
    base : the level of each category, by the names of both; the first (the most frequent) of those not named
    sets : of a table; others have no base
    default : whether categories that are not named have a base, too
    leave : categories that are no features
    role : "object", or "situation"
    """
    if base is not None and not isinstance(base, Mapping):
        raise ParameterError(f'base names a level of each category, such as {{"mode": "car"}}; got {base!r}.')
    if sets.encoder is None:
        if base:
            raise ParameterError(
                "base names columns of a table, but these are sets without one. Leave out the column of the base level."
            )
        return np.zeros(0, dtype=np.int64)
    spans, chosen = spans_of(sets.encoder, role), dict(base or {})
    values = np.asarray(sets.objects if role == "object" else sets.situation)
    text = [column for column in sets.encoder.columns if column.kind == "category" and column.width]
    found = []
    for name in chosen:
        if name not in [column.name for column in text]:
            raise ParameterError(
                f"base names {name!r}, which is no column of text; these are "
                f"{', '.join(column.name for column in text) or 'none'}."
            )
    for name in [column.name for column in text if column.role == role]:
        if name in leave or not (default or name in chosen):
            continue
        column, at = spans[name]
        levels = [*column.levels, *["other"] * column.rest]
        whole = bool((values[:, at : at + column.width].sum(1) == 1).all())
        if name in chosen:
            level = check_choice(f"base of {name!r}", str(chosen[name]), levels)
            if not whole:
                raise DataError(
                    f"Column {name!r} is missing in some rows; these are the base, to which levels compare. Leave it "
                    "out of base, or fill the missing values."
                )
            found.append(at + levels.index(level))
        elif whole:
            found.append(at)
    return np.array(found, dtype=np.int64)


def place_of(column: Any, names: Sequence[str], dropped: Index, width: int, what: str) -> int:
    """Return the place of a column among those that the model sees.

    Parameters
    ----------
    column : its name, or its place among all
    names : of the columns that the model sees
    dropped : the places of base levels, which it doesn't
    width : how many there are in all
    what : names a column, for errors
    """
    if isinstance(column, str):
        return list(names).index(check_choice(what, column, names))
    check_number(what, column, least=0, below=width, whole=True)
    if column in dropped:
        raise ParameterError(
            f"{what}={column} is the base level of a category, which has no coefficient. Choose another base."
        )
    return int(column) - int((dropped < column).sum())
