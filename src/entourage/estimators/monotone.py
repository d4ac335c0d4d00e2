"""What ``monotone=`` asks for: which columns an object's own demand must not fall or rise with."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from entourage.data.sets import Sets
from entourage.errors import ParameterError
from entourage.nets import Net
from entourage.nets.monotone import Monotone
from entourage.training.view import View

__all__ = ["constrained", "find_signs"]

Signs = tuple[tuple[int, int], ...]
Categories = Sequence[tuple[int, int]]


def find_signs(monotone: Any, sets: Sets, categories: Categories = ()) -> Signs:
    """Return the places of the monotone columns among an object's features, in order, and their signs.

    Parameters
    ----------
    monotone : None, or +1 or -1 for names of columns, or for places of features
    sets : whose columns they are
    categories : places of features that are codes of levels, which have no order, and their numbers of levels

    Examples
    --------
    >>> find_signs({2: -1, 0: 1}, Sets.of(np.zeros((1, 2, 3))))
    ((0, 1), (2, -1))
    """
    if monotone is None:
        return ()
    if not isinstance(monotone, Mapping):
        raise ParameterError(
            f'monotone needs a dict of columns and signs, such as {{"price": -1}}, or {{0: -1}} for an array; got '
            f"{monotone!r}."
        )
    found: dict[int, int] = {}
    for column, sign in monotone.items():
        place = _place(column, sets, {place for place, _ in categories})
        if isinstance(sign, bool) or not isinstance(sign, int | float | np.number) or sign not in (1, -1):
            raise ParameterError(
                f"monotone needs +1 (a higher {column!r} never lowers the probability of being chosen) or -1 (it never "
                f"raises it); got {column!r}: {sign!r}."
            )
        if place in found:
            raise ParameterError(f"monotone names feature {place} twice: {dict(monotone)!r}.")
        found[place] = int(sign)
    return tuple(sorted(found.items()))


def _place(column: Any, sets: Sets, codes: set[int]) -> int:
    if isinstance(column, str):
        return _named(column, sets)
    whole = isinstance(column, int | np.integer) and not isinstance(column, bool)
    if not whole or not 0 <= column < sets.n_features:
        raise ParameterError(
            f"monotone needs places of features from 0 to {sets.n_features - 1}, or names of columns; got {column!r}."
        )
    if int(column) in codes:
        raise ParameterError(
            f"monotone names feature {column}, which holds codes of levels: they have no order."
        )
    return int(column)


def _named(name: str, sets: Sets) -> int:
    """Return the place of a column of a table: of a number, or of a flag."""
    if sets.encoder is None:
        raise ParameterError(
            f"monotone names the column {name!r}, but there is no table. Give places of features, such as {{0: -1}}."
        )
    able, at = {}, 0
    for column in sets.encoder.columns:
        if column.role == "object":
            if column.kind in ("number", "flag"):
                able[column.name] = at
            at += column.width
    if name in able:
        return able[name]
    known = {column.name: column for column in sets.encoder.columns}
    why = "which is no feature of the objects"
    if name in known and known[name].role == "situation":
        why = "which is the same for all objects of a set, so that no object's own demand depends on it"
    elif name in known:
        why = "which is a category: its levels have no order"
    raise ParameterError(
        f"monotone names {name!r}, {why}; it can be one of {', '.join(map(repr, able)) or 'none here'}."
    )


def constrained(net: Net, view: View, categories: Categories) -> Net:
    """Return the net to build for the inputs of a view: monotone where the view says so, else as it is.

    Inputs that are codes come to the net as vectors behind all numbers (:mod:`entourage.nets.embeddings`), so the
    numbers move up.
    """
    if not view.monotone:
        return net
    codes = sorted(place for place, _ in categories)

    def moved(place: int) -> int:
        return place - int(np.searchsorted(codes, place))

    own, standings, ignored = view.monotone_inputs
    return Monotone(
        net,
        [(moved(place), sign) for place, sign in own],
        [(moved(place), sign) for place, sign in standings],
        [moved(place) for place in ignored],
    )
