"""The changes of a what-if request, checked: text for :mod:`entourage.decisions.expressions`, and objects to add."""

from typing import Any

from entourage.serving.cells import say_type
from entourage.serving.limits import Limits
from entourage.serving.refusal import Refusal
from entourage.serving.schema import Request, Schema, places_in

__all__ = ["read_changes"]

_MOST = 20  # changes in one request


def read_changes(body: dict[str, Any], schema: Schema, sets: Request, limits: Limits) -> dict[str, Any]:
    """Return what :func:`entourage.decisions.what_if` is to be told of a body.

    Examples
    --------
    >>> from entourage.serving.schema import ArraySchema
    >>> schema = ArraySchema(2)
    >>> body = {"sets": [{"objects": [[1, 2], [3, 4]]}], "change": "x0 += 1", "where": "x1 > 2"}
    >>> read_changes(body, schema, schema.read(body, Limits()), Limits())
    {'change': ['x0 += 1'], 'where': 'x1 > 2'}
    """
    changes: dict[str, Any] = {}
    if "change" in body:
        given = body["change"]
        texts = given if type(given) is list else [given]
        if not 1 <= len(texts) <= _MOST or not all(type(text) is str for text in texts):
            raise Refusal(
                422,
                f"change needs text such as 'price *= 1.1', or a list of 1 to {_MOST} of them; got {say_type(given)}.",
                "change",
            )
        changes["change"] = texts
    for name in ("where", "remove"):
        if name in body:
            if type(body[name]) is not str:
                raise Refusal(
                    422, f"{name} needs a condition such as 'price > 3'; got {say_type(body[name])}.", name
                )
            changes[name] = body[name]
    if "add" in body:
        changes["add"] = _read_added(body["add"], schema, sets, limits)
    if not changes.keys() & {"change", "add", "remove"}:
        raise Refusal(422, "Nothing changes: give change, add or remove.")
    return changes


def _read_added(given: Any, schema: Schema, sets: Request, limits: Limits) -> Any:
    if type(given) is not list or not given:
        raise Refusal(422, "add needs a list of at least one object, which joins every set.", "add")
    if sets.largest + len(given) > limits.objects:
        raise Refusal(
            422,
            f"A set takes at most {limits.objects} objects; with add it has {sets.largest + len(given)}.",
            "add",
        )
    total = sum(sets.sizes) + len(given) * len(sets.sizes)
    if total > limits.total_objects:
        raise Refusal(
            422,
            f"A request takes at most {limits.total_objects} objects in all; with add it has {total}.",
            "add",
        )
    return schema.added(schema.read_objects(given, places_in("add")))
