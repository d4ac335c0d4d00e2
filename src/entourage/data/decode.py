"""Codes of levels as indicators, for models that can't learn a vector for each level."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from entourage.data.columns import MOST_LEVELS
from entourage.data.sets import Sets

__all__ = ["place_without_codes", "without_codes"]

Floats: TypeAlias = NDArray[np.float64]


def without_codes(sets: Sets, categories: Sequence[tuple[int, int]]) -> Sets:
    """Return the same sets, each code as an indicator of its level: of the 31 first ones, and one of all others.

    Of a table the first levels are the most frequent ones, and its encoder then says what these columns are.

    Parameters
    ----------
    sets : whose objects have codes among their features
    categories : the place of each such feature, and how many levels it has

    Examples
    --------
    >>> sets = Sets.of(np.array([[[0.5, 2.0], [0.1, 1.0], [0.3, 0.0]]]))
    >>> without_codes(sets, [(1, 2)]).objects.tolist()
    [[0.5, 0.0, 1.0], [0.1, 1.0, 0.0], [0.3, 0.0, 0.0]]
    """
    if not categories:
        return sets
    levels_at, parts, at = dict(categories), [], 0
    for place in range(sets.n_features):
        if place in levels_at:
            parts += [sets.objects[:, at:place], _indicators(sets.objects[:, place], levels_at[place])]
            at = place + 1
    found = sets.with_features(np.concatenate([*parts, sets.objects[:, at:]], axis=1), sets.situation)
    if sets.encoder is not None:
        columns = [
            replace(column, kind="category", levels=column.levels[: _own(len(column.levels))], rest=True)
            if column.kind == "code"
            else column
            for column in sets.encoder.columns
        ]
        found.encoder = replace(sets.encoder, columns=columns)
    return found


def place_without_codes(place: int, categories: Sequence[tuple[int, int]]) -> int:
    """Return where a number is once codes are indicators.

    Examples
    --------
    >>> place_without_codes(2, [(0, 3), (5, 9)]), place_without_codes(1, [(0, 100)])
    (4, 32)
    """
    return place + sum(min(levels, MOST_LEVELS) - 1 for code, levels in categories if code < place)


def _own(levels: int) -> int:
    """How many levels have an indicator of their own."""
    return levels if levels <= MOST_LEVELS else MOST_LEVELS - 1


def _indicators(codes: NDArray[Any], levels: int) -> Floats:
    own = _own(levels)
    found: Floats = (codes[:, None] == np.arange(1, own + 1)).astype(np.float64)
    if own == levels:
        return found
    others = ((codes > own) & (codes <= levels))[:, None]
    return np.concatenate([found, others], axis=1)
