"""What a model needs to be told, from its own columns: a request becomes checked values, and these become `Sets`.

A request is checked as it comes in, value by value, and what is wrong is a `Refusal` with the place in the body. What
is checked is turned into numbers later, together with other requests, by the same function that encodes tables.
"""

import difflib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from entourage.choice import NestedLogit
from entourage.data.columns import Column, encode_column
from entourage.data.encoder import TableEncoder
from entourage.data.sets import Sets
from entourage.estimators.inputs import encoder_of
from entourage.serving.cells import BadCell, read_numbers, reader_of, say_type
from entourage.serving.limits import Limits
from entourage.serving.refusal import Refusal

__all__ = ["ArraySchema", "Request", "Schema", "TableSchema", "check_keys", "places_in", "schema_of"]

#: Told the column, "level" or "missing", and how many values.
OnUnfamiliar: TypeAlias = Callable[[str, str, int], None]

_SHOWN = 60  # characters of a name that a client made up


@dataclass(frozen=True, slots=True)
class Request:
    """The checked sets of one request, still as columns.

    Attributes
    ----------
    sizes : of the sets
    objects : a list of values for each column; of arrays, one list of numbers, object by object
    situation : the same of the sets themselves
    """

    sizes: list[int]
    objects: list[list[Any]]
    situation: list[list[Any]]

    @property
    def largest(self) -> int:
        """The size of the largest set."""
        return max(self.sizes)


class Schema(ABC):
    """What requests to a model look like."""

    @abstractmethod
    def read_objects(self, objects: list[Any], place: "_Places") -> list[list[Any]]:
        """Check the objects of all sets, one after the other; return their columns."""

    @abstractmethod
    def read_situations(self, given: list[Any]) -> list[list[Any]]:
        """Check the situations of all sets; return their columns."""

    @abstractmethod
    def sets_of(self, requests: Sequence[Request]) -> Sets:
        """Join checked requests and turn them into sets."""

    @abstractmethod
    def frame_of(self, request: Request) -> Any:
        """Return the sets of one request as :func:`entourage.decisions.what_if` takes them."""

    @abstractmethod
    def added(self, columns: list[list[Any]]) -> Any:
        """Return checked objects as :func:`entourage.decisions.what_if` takes those to add."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return what clients need to know: columns, kinds and levels."""

    @abstractmethod
    def json_schema(self) -> tuple[dict[str, Any], dict[str, Any] | None]:
        """Return the JSON schemas of an object and of a situation; None where there is none."""

    @abstractmethod
    def example(self, objects: int = 3) -> dict[str, Any]:
        """Return a set that the model takes, made from its own columns."""

    def read(self, body: Any, limits: Limits) -> Request:
        """Check the sets of a body; raise a `Refusal` with the place of what can't be used."""
        given = body.get("sets")
        if type(given) is not list or not given:
            came = "an empty list" if given == [] else "nothing" if "sets" not in body else say_type(given)
            raise Refusal(422, f"sets needs a list of at least one set; got {came}.", "sets")
        if len(given) > limits.sets:
            raise Refusal(
                422, f"A request takes at most {limits.sets} sets; got {len(given)}. Send several.", "sets"
            )
        rows: list[list[Any]] = []
        for i, one in enumerate(given):
            if type(one) is not dict:
                raise Refusal(
                    422, f"A set is an object with objects in it; got {say_type(one)}.", f"sets[{i}]"
                )
            if not one.keys() <= _OF_A_SET:
                check_keys(one, _OF_A_SET, f"sets[{i}]")
            rows.append(_rows_of(one, i, limits))
        sizes = list(map(len, rows))
        if sum(sizes) > limits.total_objects:
            raise Refusal(
                422,
                f"A request takes at most {limits.total_objects} objects in all; got {sum(sizes)}. Send several.",
                "sets",
            )
        objects = self.read_objects(list(chain.from_iterable(rows)), _Places(sizes))
        return Request(sizes, objects, self.read_situations([one.get("situation") for one in given]))


_OF_A_SET = frozenset({"objects", "situation"})


class _Places:
    """Where an object stands in the body."""

    def __init__(self, sizes: list[int], path: str | None = None) -> None:
        self.sizes, self.path = sizes, path

    def __call__(self, flat: int, inside: str = "") -> str:
        if self.path is not None:
            return f"{self.path}[{flat}]{inside}"
        ends = list(accumulate(self.sizes))
        i = next(i for i, end in enumerate(ends) if flat < end)
        return f"sets[{i}].objects[{flat - ends[i] + self.sizes[i]}]{inside}"


def places_in(path: str) -> _Places:
    """Return what says where an object of a plain list stands."""
    return _Places([], path)


def _rows_of(one: dict[str, Any], i: int, limits: Limits) -> list[Any]:
    rows = one.get("objects")
    where = f"sets[{i}].objects"
    if type(rows) is not list:
        came = "nothing" if "objects" not in one else say_type(rows)
        raise Refusal(422, f"objects needs a list of at least one object; got {came}.", where)
    if not rows:
        raise Refusal(422, "A set needs at least one object; this one is empty. Leave it out.", where)
    if len(rows) > limits.objects:
        raise Refusal(422, f"A set takes at most {limits.objects} objects; got {len(rows)}.", where)
    return rows


def check_keys(given: Mapping[str, Any], known: Sequence[str] | frozenset[str], path: str) -> None:
    """Refuse a key that is not known, and suggest one that is like it."""
    odd = [key for key in given if key not in known]
    if odd:
        close = difflib.get_close_matches(odd[0], list(known), n=1)
        hint = f"; did you mean {close[0]!r}?" if close else "."
        names = ", ".join(repr(name) for name in sorted(known)[:20])
        raise Refusal(422, f"{odd[0][:_SHOWN]!r} is not known here{hint} Known are {names}.", path or None)


def _check_row(row: Any, names: Sequence[str], others: frozenset[str], what: str, path: str) -> None:
    """Say what is wrong with an object or a situation that has not just its columns; ``others`` are of the other."""
    if type(row) is not dict:
        raise Refusal(422, f"{what} needs its columns by name; got {say_type(row)}.", path)
    for name in row:
        if name in others:
            of_set = "situation, which is given once a set, beside objects"
            home = "objects" if what == "The situation" else of_set
            raise Refusal(422, f"{name!r} is a column of the {home}.", f"{path}.{name}")
    check_keys(row, frozenset(names), path)
    lacking = [name for name in names if name not in row]
    if lacking:
        raise Refusal(
            422,
            f"{what} lacks {lacking[0]!r}. Give a value, or null where it is missing.",
            f"{path}.{lacking[0]}",
        )


class TableSchema(Schema):
    """Requests to a model of a table: objects are columns by name.

    Examples
    --------
    >>> encoder = TableEncoder("trip", "chosen", "choice", [Column("price", "number", "object")])
    >>> schema = TableSchema(encoder)
    >>> schema.read({"sets": [{"objects": [{"price": 3}, {"price": None}]}]}, Limits()).objects
    [[3.0, None]]
    """

    def __init__(
        self,
        encoder: TableEncoder,
        on_unfamiliar: OnUnfamiliar = lambda *told: None,
        ids: Mapping[int, Sequence[float]] | None = None,
    ) -> None:
        self.encoder, self._on_unfamiliar = encoder, on_unfamiliar
        self._levels = {column.name: frozenset(column.levels) for column in encoder.columns}
        self.own = [column for column in encoder.columns if column.role == "object"]
        self.shared = [column for column in encoder.columns if column.role == "situation"]
        self._names = frozenset(column.name for column in self.own)
        self._shared_names = frozenset(column.name for column in self.shared)
        self._readers = {c.name: reader_of(c, encoder.missing) for c in encoder.columns}
        begins = accumulate((column.width for column in self.own), initial=0)
        places = {c.name: at for c, at in zip(self.own, begins, strict=False) if c.kind in ("number", "flag")}
        self._ids = {name: ids[at] for name, at in places.items() if ids and at in ids}

    def read_objects(self, objects: list[Any], place: _Places) -> list[list[Any]]:
        """Check the objects of all sets, one after the other; return their columns."""
        names = self._names
        for flat, row in enumerate(objects):
            if type(row) is not dict or row.keys() != names:
                _check_row(row, [c.name for c in self.own], self._shared_names, "An object", place(flat))
        return [
            self._read(objects, column, lambda at, c=column: place(at, f".{c.name}")) for column in self.own
        ]

    def read_situations(self, given: list[Any]) -> list[list[Any]]:
        """Check the situations of all sets; return their columns."""
        names = self._shared_names
        if not names:
            for i, one in enumerate(given):
                if one:
                    raise Refusal(422, "This model has no situation; leave it out.", f"sets[{i}].situation")
            return []
        for i, row in enumerate(given):
            if type(row) is not dict or row.keys() != names:
                path = f"sets[{i}].situation"
                if row is None:
                    row = {}
                _check_row(row, [c.name for c in self.shared], self._names, "The situation", path)
        return [
            self._read(given, column, lambda at, c=column: f"sets[{at}].situation.{c.name}")
            for column in self.shared
        ]

    def _read(self, rows: list[Any], column: Column, path: Any) -> list[Any]:
        name = column.name
        try:
            return self._readers[name]([row[name] for row in rows])
        except BadCell as bad:
            raise Refusal(422, f"{name!r} {bad.message}", path(bad.place)) from None

    def sets_of(self, requests: Sequence[Request]) -> Sets:
        """Join checked requests and turn them into sets."""
        sizes = list(chain.from_iterable(one.sizes for one in requests))
        own = self._encode(self.own, [one.objects for one in requests])
        shared = self._encode(self.shared, [one.situation for one in requests]) if self.shared else None
        return Sets(own, np.append(0, np.cumsum(sizes)), None, shared, encoder=self.encoder)

    def _encode(self, columns: list[Column], parts: list[list[list[Any]]]) -> NDArray[np.float64]:
        encoded = []
        for i, column in enumerate(columns):
            values = parts[0][i] if len(parts) == 1 else list(chain.from_iterable(part[i] for part in parts))
            text = column.kind in ("category", "code")
            array = pa.chunked_array([pa.array(values, pa.string() if text else pa.float64())])
            missing = () if text else self.encoder.missing  # marks among texts were taken out one by one
            self._count_unfamiliar(column, values)
            encoded.append(encode_column(array, column, _nowhere, missing))
        return np.concatenate(encoded, axis=1)

    def _count_unfamiliar(self, column: Column, values: list[Any]) -> None:
        """Tell of what the model can only guess at: levels that are not its own, numbers that never were missing."""
        if column.kind in ("category", "code"):
            known = self._levels[column.name]
            unknown = sum(value is not None and value not in known for value in values)
            if unknown:
                self._on_unfamiliar(column.name, "level", unknown)
        elif not column.indicator:
            missing = values.count(None)
            if missing:
                self._on_unfamiliar(column.name, "missing", missing)

    def frame_of(self, request: Request) -> pa.Table:
        """Return the sets of one request as a table; the sets are counted in its column of set ids."""
        owner = np.repeat(np.arange(len(request.sizes)), request.sizes)
        columns: dict[str, Any] = {self.encoder.set_id: pa.array(owner)}
        columns |= self._arrow_columns(request.objects)
        for column, values in zip(self.shared, request.situation, strict=True):
            columns[column.name] = _arrow(column, values).take(pa.array(owner))
        return pa.table(columns)

    def added(self, columns: list[list[Any]]) -> pa.Table:
        """Return checked objects as a table, without set ids: they join every set."""
        return pa.table(self._arrow_columns(columns))

    def _arrow_columns(self, columns: list[list[Any]]) -> dict[str, pa.Array]:
        return {c.name: _arrow(c, values) for c, values in zip(self.own, columns, strict=True)}

    def describe(self) -> dict[str, Any]:
        """Return what clients need to know: columns, kinds and levels."""
        own = [_describe(c) | _alternatives(self._ids.get(c.name)) for c in self.own]
        return {"columns": own, "situation": [_describe(c) for c in self.shared]}

    def json_schema(self) -> tuple[dict[str, Any], dict[str, Any] | None]:
        """Return the JSON schemas of an object and of a situation; None where there is none."""
        return _object_schema(self.own), _object_schema(self.shared) if self.shared else None

    def example(self, objects: int = 3) -> dict[str, Any]:
        """Return a set that the model takes, made from its own columns."""
        rows = [
            {c.name: _example_value(c, i, self._ids.get(c.name)) for c in self.own}
            for i in range(_fewer(objects, self._ids))
        ]
        shared = {c.name: _example_value(c, 0) for c in self.shared}
        return {"objects": rows} | ({"situation": shared} if shared else {})


class ArraySchema(Schema):
    """Requests to a model of arrays: objects are lists of numbers.

    Examples
    --------
    >>> request = ArraySchema(2).read({"sets": [{"objects": [[1, 2], [3, 4.5]]}]}, Limits())
    >>> ArraySchema(2).sets_of([request])
    Sets(1 set of 2 objects, 2 features)
    """

    def __init__(
        self,
        n_features: int,
        n_situation_features: int = 0,
        ids: Mapping[int, Sequence[float]] | None = None,
    ) -> None:
        self.n_features, self.n_shared, self._ids = n_features, n_situation_features, dict(ids or {})

    def read_objects(self, objects: list[Any], place: _Places) -> list[list[Any]]:
        """Check the objects of all sets, one after the other; return their numbers."""
        return [_read_rows(objects, self.n_features, "An object", place)]

    def read_situations(self, given: list[Any]) -> list[list[Any]]:
        """Check the situations of all sets; return their numbers."""
        if not self.n_shared:
            for i, one in enumerate(given):
                if one:
                    raise Refusal(422, "This model has no situation; leave it out.", f"sets[{i}].situation")
            return []
        return [
            _read_rows(given, self.n_shared, "The situation", lambda i, rest="": f"sets[{i}].situation{rest}")
        ]

    def sets_of(self, requests: Sequence[Request]) -> Sets:
        """Join checked requests and turn them into sets."""
        sizes = list(chain.from_iterable(one.sizes for one in requests))
        own = np.array(_joined(requests, False))
        shared = np.array(_joined(requests, True)).reshape(-1, self.n_shared) if self.n_shared else None
        return Sets(own.reshape(-1, self.n_features), np.append(0, np.cumsum(sizes)), None, shared)

    def frame_of(self, request: Request) -> Sets:
        """Return the sets of one request."""
        return self.sets_of([request])

    def added(self, columns: list[list[Any]]) -> NDArray[np.float64]:
        """Return checked objects as an array, (objects, features)."""
        return np.array(columns[0]).reshape(-1, self.n_features)

    def describe(self) -> dict[str, Any]:
        """Return what clients need to know: how many numbers."""
        found: dict[str, Any] = {"n_features": self.n_features, "n_situation_features": self.n_shared}
        if self._ids:  # by the place of the number that says which one an object is
            found["alternatives"] = {str(place): list(ids) for place, ids in self._ids.items()}
        return found

    def json_schema(self) -> tuple[dict[str, Any], dict[str, Any] | None]:
        """Return the JSON schemas of an object and of a situation; None where there is none."""
        return _numbers_schema(self.n_features), _numbers_schema(self.n_shared) if self.n_shared else None

    def example(self, objects: int = 3) -> dict[str, Any]:
        """Return a set that the model takes."""
        rows = [
            [
                self._ids[j][i] if j in self._ids else round(0.5 * i + 0.1 * j, 1)
                for j in range(self.n_features)
            ]
            for i in range(_fewer(objects, self._ids))
        ]
        shared = [round(0.1 * j, 1) for j in range(self.n_shared)]
        return {"objects": rows} | ({"situation": shared} if shared else {})


def schema_of(model: Any, on_unfamiliar: OnUnfamiliar = lambda *told: None) -> Schema:
    """Return what requests to a fitted model look like; ``on_unfamiliar`` is told of values that it never saw."""
    if model.table_ is not None:
        return TableSchema(encoder_of(model), on_unfamiliar, _ids_of(model))
    return ArraySchema(model.n_features_in_, model.n_situation_features_in_, _ids_of(model))


def _ids_of(model: Any) -> dict[int, list[float]]:
    """Return the ids of alternatives that a model knows, by the place of the feature that holds them."""
    count = getattr(model, "alternatives", None)
    if count is not None:
        return {0: [float(one) for one in range(1, count + 1)]}
    if not isinstance(model, NestedLogit):
        return {}
    places = [place for place in range(model.n_features_in_) if model.is_id(place)]
    return {places[0]: model.alternatives_.tolist()} if len(places) == 1 else {}  # of text, the levels say it


def _fewer(objects: int, ids: Mapping[Any, Sequence[float]]) -> int:
    return min([objects, *map(len, ids.values())])


def _alternatives(ids: Sequence[float] | None) -> dict[str, Any]:
    return {} if ids is None else {"alternatives": list(ids)}


def _read_rows(rows: list[Any], width: int, what: str, path: Any) -> list[float]:
    for i, row in enumerate(rows):
        if type(row) is not list or len(row) != width:
            came = f"{len(row)}" if type(row) is list else say_type(row)
            raise Refusal(422, f"{what} of this model is a list of {width} numbers; got {came}.", path(i))
    try:
        return read_numbers(list(chain.from_iterable(rows)))
    except BadCell as bad:
        at = path(bad.place // width, f"[{bad.place % width}]")
        raise Refusal(422, f"A feature {bad.message}", at) from None


def _joined(requests: Sequence[Request], shared: bool) -> list[float]:
    return list(chain.from_iterable((one.situation if shared else one.objects)[0] for one in requests))


def _nowhere(row: int) -> str:
    return f"object {row}"  # of a shared batch; values were checked before, so this is never shown


def _arrow(column: Column, values: list[Any]) -> pa.Array:
    if column.kind == "flag":
        return pa.array([None if value is None else bool(value) for value in values], pa.bool_())
    return pa.array(values, pa.string() if column.kind in ("category", "code") else pa.float64())


def _describe(column: Column) -> dict[str, Any]:
    found: dict[str, Any] = {"name": column.name}
    found["kind"] = "text" if column.kind in ("category", "code") else column.kind
    if column.levels:
        found["levels"] = list(column.levels)
    else:
        found["missing_seen"] = column.indicator
    return found


def _object_schema(columns: list[Column]) -> dict[str, Any]:
    kinds = {"number": "number", "flag": "boolean", "category": "string", "code": "string"}
    properties: dict[str, Any] = {}
    for column in columns:
        one: dict[str, Any] = {"type": [kinds[column.kind], "null"]}
        if column.levels:
            shown = ", ".join(column.levels[:20]) + ", ..." * (len(column.levels) > 20)
            one["description"] = f"Levels that were learnt: {shown}"
        properties[column.name] = one
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _numbers_schema(width: int) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "number"}, "minItems": width, "maxItems": width}


def _example_value(column: Column, i: int, ids: Sequence[float] | None = None) -> Any:
    if ids is not None:
        return bool(ids[i]) if column.kind == "flag" else ids[i]
    if column.kind in ("category", "code"):
        return column.levels[i % len(column.levels)] if column.levels else None
    if column.kind == "flag":
        return i % 2 == 0
    return float(f"{column.fill * (1 + 0.1 * i):.4g}") if column.fill else float(i)
