"""The objects that may be offered, in each situation: from a frame, an array or `Sets`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from entourage.data.columns import as_numbers, kind_of_column
from entourage.data.frames import arrow_table, column_of
from entourage.data.sets import Sets, is_frame
from entourage.errors import DataError, ParameterError, ShapeError
from entourage.estimators.inputs import encoder_of

__all__ = ["Candidates", "candidates_of", "numbers_of_objects"]

Floats: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Candidates:
    """The m objects that may be offered, in each of s situations.

    Attributes
    ----------
    features : (1, m, d) where objects are the same in all situations, else (s, m, d)
    situation : features of the situations, (s, k); None where there are none
    encoder : of the table, where it was one
    labels : what objects are called, where a column says so
    table : the rows of the table, those of the first situation first, where it was one
    """

    features: Floats
    situation: Floats | None
    encoder: Any = None
    labels: list[Any] | None = None
    table: Any = None

    @property
    def m(self) -> int:
        """How many objects there are."""
        return int(self.features.shape[1])

    @property
    def n_situations(self) -> int:
        """How many situations there are."""
        return max(len(self.features), 1 if self.situation is None else len(self.situation))

    @property
    def width(self) -> int:
        """How many numbers describe an object and its situation."""
        return int(self.features.shape[2]) + (0 if self.situation is None else self.situation.shape[1])

    def offered(self, rows: Index) -> Sets:
        """Make sets of positions (c, k): all c sets in the first situation, then in the second, and so on."""
        c, k = rows.shape
        n, d = self.n_situations, self.features.shape[2]
        objects = np.broadcast_to(self.features[:, rows], (n, c, k, d)).reshape(-1, d)
        return self.sets_with(objects, n * c, k, c)

    def sets_with(self, objects: Floats, n_sets: int, k: int, each: int = 1) -> Sets:
        """Make sets of packed objects, k in each, ``each`` sets in every situation."""
        situation = None if self.situation is None else np.repeat(self.situation, each, axis=0)
        return Sets(objects, np.arange(n_sets + 1) * k, None, situation, encoder=self.encoder)


def candidates_of(
    model: Any, objects: Any, situations: Any = None, object_id: str | None = None
) -> Candidates:
    """Read the objects that may be offered.

    Parameters
    ----------
    model : the fitted model, which knows how to read a table
    objects : a frame with a row for each object; an array (m, d), or (s, m, d) where features depend on the situation;
        or Sets of one size. A frame of several sets has the same objects in each, a situation, told by ``object_id``.
    situations : features of the situations, (s, k), or a frame with a row for each
    object_id : the column that says which object a row is
    """
    if is_frame(objects):
        return _from_table(encoder_of(model), arrow_table(objects), situations, object_id)
    if object_id is not None:
        raise ParameterError("object_id names a column of a table; the objects came as an array.")
    if isinstance(objects, Sets):
        if objects.uniform_size is None:
            raise ShapeError("Each situation needs the same objects; these Sets are of several sizes.")
        if situations is not None and objects.situation is not None:
            raise ParameterError("situations came twice: these Sets carry their own.")
        own = objects.situation if situations is None else situations
        features = np.asarray(objects.objects, dtype=np.float64).reshape(len(objects), -1, objects.n_features)
        encoder = objects.encoder
    else:
        own, encoder = situations, None
        try:
            features = np.asarray(objects, dtype=np.float64)
        except (ValueError, TypeError):
            features = np.zeros((0, 0, 0))
        if features.ndim == 2:
            features = features[None]
        if features.ndim != 3 or 0 in features.shape:
            raise ShapeError(
                "objects needs the axes (objects, features), or (situations, objects, features) where features depend "
                f"on the situation; got {_shape(objects)}."
            )
    if not np.isfinite(features).all():
        i, j = np.argwhere(~np.isfinite(features))[0, 1:].tolist()
        raise DataError(f"Features must be finite; that of object {i}, feature {j}, is not. Impute it first.")
    situation = None if own is None else np.atleast_2d(np.asarray(own, dtype=np.float64))
    if situation is not None and 1 != len(features) != len(situation) != 1:
        raise ShapeError(
            f"objects come in {len(features)} situations, but situations has {len(situation)} rows. Give one for each."
        )
    if situation is not None and len(situation) == 1 < len(features):
        situation = np.repeat(situation, len(features), axis=0)
    return Candidates(features, situation, encoder)


def _shape(given: Any) -> str:
    """Say what came instead of an array."""
    try:
        return f"shape {np.shape(given)}" if np.ndim(given) else type(given).__name__
    except ValueError:
        return "rows of several lengths"


def numbers_of_objects(given: Any, candidates: Candidates, what: str) -> Floats:
    """Return numbers of the objects, (1, m) or (s, m): the name of a column, one number for all, or an array."""
    if isinstance(given, str):
        if candidates.table is None:
            raise ParameterError(
                f"{what}={given!r} names a column, but the objects are no table. Pass one number an object."
            )
        column = column_of(candidates.table, given, what)
        if kind_of_column(column, given) not in ("number", "flag"):
            raise DataError(f"Column {given!r} ({what}) needs numbers; it holds {column.type}.")
        found = as_numbers(column).reshape(-1, candidates.m)
    else:
        try:
            numbers = np.asarray(given, dtype=np.float64)
        except (ValueError, TypeError):
            raise ParameterError(f"{what} needs numbers, one an object; got {given!r:.80}.") from None
        found = np.atleast_2d(np.full(candidates.m, numbers) if numbers.ndim == 0 else numbers)
        if found.shape not in {(1, candidates.m), (candidates.n_situations, candidates.m)}:
            raise ShapeError(
                f"{what} needs one number for each of {candidates.m} objects; got shape {np.shape(given)}."
            )
    if not np.isfinite(found).all():
        at = int(np.argwhere(~np.isfinite(found))[0, 1])
        raise DataError(f"{what} of object {at} is missing or infinite; give every object a number.")
    if len(found) > 1 and (found == found[0]).all():
        found = found[:1]
    return found


def _from_table(encoder: Any, table: pa.Table, situations: Any, object_id: str | None) -> Candidates:
    if situations is not None:
        table = _in_each(encoder, table, situations)
    elif encoder.set_id not in table.column_names:
        table = table.append_column(encoder.set_id, pa.array(np.zeros(table.num_rows, dtype=np.int64)))
    packed = encoder(table, with_target=False)
    sets, table = packed.sets, table.take(pa.array(packed.order))
    names = None if object_id is None else column_of(table, object_id, "object_id").to_pylist()
    labels = None
    if names is not None:
        order, labels = _same_objects(names, sets.offsets, object_id, encoder.set_id)
        table = table.take(pa.array(order))
        sets = Sets(sets.objects[order], sets.offsets, None, sets.situation, encoder=encoder)
    elif len(sets) > 1 and situations is None:
        raise DataError(
            f"The table has {len(sets)} sets (column {encoder.set_id!r}): situations in which the same objects are "
            "offered. Say which rows are the same object: object_id=, the column of names (--object). For one "
            f"situation, leave out the column {encoder.set_id!r}."
        )
    features = np.asarray(sets.objects, dtype=np.float64).reshape(len(sets), -1, sets.n_features)
    if (features == features[0]).all():
        features = features[:1]
        if sets.situation is None and len(sets) > 1:
            features = np.repeat(
                features, len(sets), axis=0
            )  # situations all alike: weights still have a row each
    return Candidates(features, sets.situation, encoder, labels, table)


def _in_each(encoder: Any, table: pa.Table, situations: Any) -> pa.Table:
    """Return the objects in every situation, whose columns come from a frame of their own."""
    wanted = [column.name for column in encoder.columns if column.role == "situation"]
    if not wanted:
        raise ParameterError("This model knows no features of the situation; leave situations out.")
    if not is_frame(situations):
        raise ParameterError(
            f"With a table of objects, situations is a table, too, with a row for each and the columns "
            f"{', '.join(wanted)}."
        )
    rows = arrow_table(situations)
    n, m = rows.num_rows, table.num_rows
    here = pa.array(np.repeat(np.arange(n), m))
    repeated = table.take(pa.array(np.tile(np.arange(m), n)))
    for name in wanted:
        if name in repeated.column_names:
            repeated = repeated.drop_columns([name])
        repeated = repeated.append_column(name, column_of(rows, name, "situation").take(here))
    if encoder.set_id in repeated.column_names:
        repeated = repeated.drop_columns([encoder.set_id])
    return repeated.append_column(encoder.set_id, here)


def _same_objects(
    names: Sequence[Any], offsets: ArrayLike, object_id: str | None, set_id: str
) -> tuple[Index, list[Any]]:
    """Return the rows in the order that the first set has its objects in, and their names."""
    ends = np.asarray(offsets)
    labels = list(names[: ends[1]])
    place = {label: i for i, label in enumerate(labels)}
    if len(place) < len(labels) or None in place:
        raise DataError(
            f"Column {object_id!r} should name each object once in a set; a name is missing or twice."
        )
    order = np.empty(ends[-1], dtype=np.int64)
    for i in range(len(ends) - 1):
        own = names[ends[i] : ends[i + 1]]
        if len(own) != len(labels) or set(own) != set(labels):
            raise DataError(
                f"Every set (column {set_id!r}) needs the same objects, by column {object_id!r}; set number {i} has "
                "others than the first. Leave out objects that are not in all of them."
            )
        for row, label in enumerate(own):
            order[ends[i] + place[label]] = ends[i] + row
    return order, labels
