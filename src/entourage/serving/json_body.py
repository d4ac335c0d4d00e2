"""The JSON of a body, in which no name may come twice: of two prices, neither is the right one."""

import json
from typing import Any

from entourage.serving.refusal import Refusal

__all__ = ["read_json"]

_SHOWN = 60  # characters of a name that a client made up


class _Repeated(Exception):
    """A name came twice in one object."""


class _Twice:
    """Stands in place of an object in which a name came twice."""

    def __init__(self, name: str) -> None:
        self.name = name


def read_json(raw: bytes) -> Any:
    """Return what a body holds; refuse one that is no JSON, or in which a name comes twice in one object.

    Examples
    --------
    >>> read_json(b'{"sets": [1, 2.5]}')
    {'sets': [1, 2.5]}
    >>> try:
    ...     read_json(b'{"sets": [{"objects": [{"price": 1, "price": 2}]}]}')
    ... except Refusal as refusal:
    ...     print(refusal.message, refusal.path)
    'price' comes twice in the same object. Give each name once. sets[0].objects[0].price
    """
    try:
        return json.loads(raw, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise Refusal(
            422, f"The body is no JSON: {error.msg} in line {error.lineno}, column {error.colno}."
        ) from None
    except (ValueError, RecursionError):  # no text, a number of thousands of digits, nested too deeply
        raise Refusal(422, "The body is no JSON that can be read.") from None
    except _Repeated:
        path, name = _place(json.loads(raw, object_pairs_hook=_marked))
    said = f"{name[:_SHOWN]!r} comes twice in the same object. Give each name once."
    raise Refusal(422, said, f"{path}.{name[:_SHOWN]}".removeprefix("."))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Repeated
    return found


def _repeated(pairs: list[tuple[str, Any]]) -> str:
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            return name
        seen.add(name)
    return ""


def _marked(pairs: list[tuple[str, Any]]) -> Any:
    found = dict(pairs)
    return found if len(found) == len(pairs) else _Twice(_repeated(pairs))


def _place(value: Any) -> tuple[str, str]:
    """Return where the first object with a name twice stands, and the name."""
    left: list[tuple[Any, Any]] = [(None, value)]  # a place is a step, and the place before it
    while left:
        place, value = left.pop()
        if isinstance(value, _Twice):
            return _in_words(place), value.name
        if isinstance(value, dict):
            left += [((name, place), one) for name, one in reversed(value.items())]
        elif isinstance(value, list):
            left += [((i, place), value[i]) for i in reversed(range(len(value)))]
    return "", ""


def _in_words(place: Any) -> str:
    steps = []
    while place is not None:
        step, place = place
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step[:_SHOWN]}")
    return "".join(reversed(steps))
