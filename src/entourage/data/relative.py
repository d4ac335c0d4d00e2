"""The set-relative view: where an object stands in its set, column by column. The simplest kind of context.

A number is also seen as its difference from the mean of the set, as its z-score and its rank within the set, and as
its gap to the largest and to the smallest of the set.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from entourage.errors import DataError, ParameterError

if TYPE_CHECKING:
    from entourage.data.sets import Sets

__all__ = [
    "LINEAR_STANDINGS",
    "MONOTONE_STANDINGS",
    "STANDINGS",
    "Columns",
    "Relative",
    "find_places",
    "within_sets",
]

Floats: TypeAlias = NDArray[np.float64]
Columns: TypeAlias = bool | str | int | Sequence[str | int] | None

#: What is said of a number within its set.
STANDINGS = ("centred", "z-score", "rank", "gap to largest", "gap to smallest")

#: What a linear utility can use: the others differ from the number itself by a constant of the set, which cancels.
LINEAR_STANDINGS = ("z-score", "rank")

#: What never falls for an object, and never rises for any other of its set, when the number of this object rises. The
#: z-score of another object may rise: the spread grows, and one below the mean comes nearer to it.
MONOTONE_STANDINGS = ("centred", "rank", "gap to largest", "gap to smallest")

ROUNDING = 1e-14  # of the largest value: what varies by less within a set doesn't vary
_CHUNK = 4_000_000  # numbers in a temporary array


@dataclass(frozen=True)
class Relative:
    """Which features are also seen relative to their set, and how.

    Examples
    --------
    >>> from entourage.data import Sets
    >>> sets = Sets.of([[[1.0], [3.0]], [[5.0]]])
    >>> Relative((0,), ("centred", "rank")).of(sets).tolist()
    [[-1.0, 0.25], [1.0, 0.75], [0.0, 0.5]]
    """

    places: tuple[int, ...]
    standings: tuple[str, ...] = STANDINGS

    @property
    def width(self) -> int:
        """How many numbers it adds to an object."""
        return len(self.places) * len(self.standings)

    def of(self, sets: "Sets") -> Floats:
        """Return these numbers, (objects, width), packed: all standings of the first column, then of the second."""
        return self.of_values(sets.objects, sets)

    def of_values(self, objects: NDArray[Any], sets: "Sets") -> Floats:
        """Do the same for other features of the objects, such as transformed ones."""
        return within_sets(objects, sets, self.places, self.standings)

    def names(self, features: Sequence[str]) -> list[str]:
        """Name these numbers, given the names of the features."""
        return [f"{features[place]} ({what})" for place in self.places for what in self.standings]


def within_sets(
    objects: NDArray[Any], sets: "Sets", places: Sequence[int], standings: Sequence[str] = STANDINGS
) -> Floats:
    r"""Return where each object stands in its set, ``(objects, places × standings)``.

    With the mean :math:`\bar x` and the standard deviation :math:`s` of the m objects of a set:

    - centred :math:`x - \bar x`, z-score :math:`(x - \bar x) / s`,
    - rank: the share of objects below plus half the share of equal ones, itself included; in (0, 1), larger for
      larger values, and tied objects share it,
    - gaps :math:`x - \max x` and :math:`x - \min x`.

    In a set of one, or where a column doesn't vary in a set, these are 0, 0, 1/2, 0 and 0.

    Parameters
    ----------
    objects : packed features, (objects, d), those of ``sets`` or others in their place
    sets : which objects belong together
    places : of the columns
    standings : of :data:`STANDINGS`
    """
    chosen = list(places)
    found = np.empty((len(objects), len(chosen), len(standings)))
    for _, all_rows in sets.by_size():
        step = max(1, _CHUNK // max(1, all_rows.shape[1] * len(chosen)))
        for begin in range(0, len(all_rows), step):
            rows = all_rows[begin : begin + step]
            values = np.asarray(objects[rows.ravel()][:, chosen], dtype=np.float64)
            values = values.reshape(*rows.shape, len(chosen))  # (n, m, p)
            found[rows] = _standings(values, standings)
    return found.reshape(len(objects), -1)


def _standings(values: Floats, standings: Sequence[str]) -> Floats:
    """Return (n, m, p, standings) of values (n, m, p)."""
    m = values.shape[1]
    halves = values / 2  # exact, and no difference of two overflows
    low, high = halves.min(1, keepdims=True), halves.max(1, keepdims=True)
    varies = high - low > ROUNDING * np.maximum(np.abs(low), np.abs(high))  # (n, 1, p)
    gap = halves - low  # exact where values lie far from 0
    size = np.where(varies, high - low, 1.0)
    centred = gap / size - (gap / size).mean(1, keepdims=True)  # in [-1, 1]: no square overflows
    spread = np.sqrt((centred**2).mean(1, keepdims=True))
    parts: dict[str, Callable[[], Floats]] = {
        "centred": lambda: _doubled(centred * size),
        "z-score": lambda: centred / np.where(varies, spread, 1.0),
        "rank": lambda: (rankdata(values, axis=1) - 0.5) / m,
        "gap to largest": lambda: _doubled(halves - high),
        "gap to smallest": lambda: _doubled(gap),
    }
    neutral = {"rank": 0.5}
    return np.stack([np.where(varies, parts[s](), neutral.get(s, 0.0)) for s in standings], axis=-1)


def _doubled(values: Floats) -> Floats:
    """Return twice the values, at most the largest number there is."""
    most = np.finfo(np.float64).max / 2
    return 2 * np.clip(values, -most, most)


def find_places(relative: Columns, sets: "Sets", codes: Sequence[int] = ()) -> tuple[int, ...] | None:
    """Return the places of the columns to see relative to their set; None for none.

    Parameters
    ----------
    relative : False or None for none, True or "all" for every number, or names of columns, or places of features
    sets : whose columns they are; of a table, every number is every numeric column, without text and booleans
    codes : places that hold codes of levels, which are no numbers
    """
    if relative is None or relative is False:
        return None
    by_name: dict[str, int] = {} if sets.encoder is None else sets.encoder.number_places
    if relative is True or (isinstance(relative, str) and relative == "all"):
        every = range(sets.n_features) if sets.encoder is None else by_name.values()
        places = tuple(place for place in every if place not in codes)
        if not places:
            raise DataError(
                "relative needs at least one numeric column of the objects, and there is none. Leave it out."
            )
        return places
    if not isinstance(relative, str | int | Sequence) or isinstance(relative, bytes):
        raise ParameterError(
            f'relative needs True or "all", names of columns or places of features; got {relative!r}.'
        )
    named = [relative] if isinstance(relative, str | int) else list(relative)
    places = tuple(_place(one, sets, by_name, codes) for one in named)
    if not places:
        return None
    if len(set(places)) < len(places):
        raise ParameterError(f"relative names a column twice: {named}.")
    return places


def _place(one: Any, sets: "Sets", by_name: dict[str, int], codes: Sequence[int]) -> int:
    if isinstance(one, str):
        if sets.encoder is None:
            raise ParameterError(
                f"relative={one!r} names a column, but there is no table. Give places of features, such as [0, 2]."
            )
        if one not in by_name:
            raise ParameterError(
                f"relative names {one!r}, which is no numeric column of the objects; these are "
                f"{', '.join(map(repr, by_name)) or 'none'}."
            )
        return by_name[one]
    if isinstance(one, bool) or not isinstance(one, int | np.integer) or not 0 <= one < sets.n_features:
        raise ParameterError(
            f"relative needs places of features from 0 to {sets.n_features - 1}, or names of columns; got {one!r}."
        )
    if one in codes:
        raise ParameterError(
            f"relative names feature {one}, which holds codes of levels: they have no order."
        )
    return int(one)
