"""Settings of intervals that elasticities, diversion, willingness to pay and demand curves share."""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

__all__ = ["IntervalSettings", "for_intervals"]


class IntervalSettings(TypedDict, total=False):
    """Where intervals come from: arguments of :func:`entourage.decisions.intervals_of`; ``intervals`` is its method."""

    intervals: str
    refits: Sequence[Any] | None
    draws: int
    level: float
    random_state: int


def for_intervals(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `intervals_of`; an unknown one is an error that suggests a close one.

    Examples
    --------
    >>> for_intervals({"intervals": "none", "draws": 50})
    {'method': 'none', 'draws': 50}
    >>> for_intervals({"drawz": 50})
    Traceback (most recent call last):
        ...
    TypeError: Unknown argument 'drawz'; did you mean 'draws'? ...
    """
    known = list(IntervalSettings.__annotations__)
    for name in given:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else "."
            raise TypeError(f"Unknown argument {name!r}{hint} Intervals have {', '.join(known)}.")
    return {"method" if name == "intervals" else name: value for name, value in given.items()}
