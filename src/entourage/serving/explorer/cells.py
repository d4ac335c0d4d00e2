"""What a page shows of a table: its columns, and the sets as cells that an ONNX graph takes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entourage.data.columns import Column, as_numbers, encode_column, kind_of_column, without_marks
from entourage.data.frames import arrow_table, column_of
from entourage.data.sets import AnySets, is_frame
from entourage.decisions.auditing import AuditRange
from entourage.errors import DataError
from entourage.estimators.inputs import encoder_of, given_sets

__all__ = ["MOST_OBJECTS", "MOST_SETS", "ShownColumn", "ShownSet", "ShownSets", "show_sets"]

Floats: TypeAlias = NDArray[np.float64]

MOST_SETS, MOST_OBJECTS = 300, 30  # of a page, and of a set in it
WITHIN = (0.01, 0.99)  # quantiles of a column between which its axis runs
OTHER = -1.0  # a text that is none of the levels


@dataclass(frozen=True)
class ShownColumn:
    """A column of the objects or of the situation.

    Attributes
    ----------
    name, kind : "number", "flag" or "level"
    levels : of a text; a cell is the place of its level, or -1 for another text
    low, high : the range of its numbers, but for the last percent at each end; low is -1 where a text is no level
    audited : what the economic audit would move it by; None but for numbers
    whole : whether its numbers are all whole; then those of dragged and new objects are
    """

    name: str
    kind: str
    levels: tuple[str, ...]
    low: float
    high: float
    audited: AuditRange | None = None
    whole: bool = False


@dataclass(frozen=True, eq=False)
class ShownSet:
    """A set of the page.

    Attributes
    ----------
    id : of the set
    cells : (m, columns), NaN where there is none
    labels : of the objects
    situation : (columns,)
    left_out : objects of the set that are not shown
    """

    id: str
    cells: Floats
    labels: list[str]
    situation: Floats
    left_out: int


@dataclass(frozen=True, eq=False)
class ShownSets:
    """What a page shows.

    Attributes
    ----------
    columns, situation : of the objects, and of the situation
    sets : those that are shown
    left_out : how many are not
    set_column, label_column : of a table, their names; None for arrays, and where no column names the objects
    """

    columns: list[ShownColumn]
    situation: list[ShownColumn]
    sets: list[ShownSet]
    left_out: int
    set_column: str | None = None
    label_column: str | None = None


def show_sets(
    model: Any,
    X: AnySets,
    situation: ArrayLike | None = None,
    *,
    label: str | None = None,
    most_sets: int = MOST_SETS,
    random_state: int = 0,
) -> ShownSets:
    """Take the sets of a table, or of arrays, as a page shows them.

    Of more than ``most_sets`` sets, the first are shown; of a set of more than 30 objects, 30 are drawn.

    Parameters
    ----------
    model : fitted
    X, situation : sets as in ``predict``
    label : of a table, the column that names the objects
    most_sets : shown at most
    random_state : seed of the draw of objects

    Examples
    --------
    >>> import numpy as np
    >>> from entourage.baselines import LinearRanker
    >>> X = np.random.default_rng(0).normal(size=(50, 4, 2))
    >>> model = LinearRanker().fit(X, X[..., 0].argsort(1).argsort(1))
    >>> shown = show_sets(model, X, most_sets=10)
    >>> [column.name for column in shown.columns], len(shown.sets), shown.left_out
    (['x0', 'x1'], 10, 40)
    """
    if is_frame(X):
        return _of_table(model, X, label, most_sets, random_state)
    if label is not None:
        raise DataError("label names a column of a table; these are arrays. Leave it out.")
    if model.table_ is not None:
        raise DataError("This model was fitted to a table; give a table with the same columns.")
    sets = given_sets(model, X, situation).sets
    names = [f"x{i}" for i in range(sets.n_features)]
    shared = [f"situation {i}" for i in range(sets.n_situation_features)]
    none = np.empty((len(sets), 0))
    values = none if sets.situation is None else np.asarray(sets.situation, dtype=np.float64)
    objects = np.asarray(sets.objects, dtype=np.float64)
    return _cut(
        [_number(name, objects[:, k]) for k, name in enumerate(names)],
        [_number(name, values[:, k]) for k, name in enumerate(shared)],
        objects,
        values,
        sets.offsets,
        [str(i) for i in range(len(sets))],
        [""] * len(objects),
        most_sets,
        random_state,
    )


def _of_table(model: Any, frame: Any, label: str | None, most_sets: int, random_state: int) -> ShownSets:
    encoder = encoder_of(model)
    packed = encoder(frame, with_target=False)
    table, order = arrow_table(frame), packed.order
    own = [column for column in encoder.columns if column.role == "object"]
    shared = [column for column in encoder.columns if column.role == "situation"]
    cells = np.stack([_cells(table, column, encoder.missing) for column in own], axis=1)[order]
    first = order[packed.sets.offsets[:-1]]
    of_sets = [_cells(table, column, encoder.missing)[first] for column in shared]
    situation = np.stack(of_sets, axis=1) if shared else np.empty((len(packed.sets), 0))
    labels = [""] * len(cells)
    if label is not None:
        texts = column_of(table, label, "label").to_pylist()
        labels = ["" if texts[i] is None else str(texts[i]) for i in order]
    found = _cut(
        [_shown(column, cells[:, k]) for k, column in enumerate(own)],
        [_shown(column, situation[:, k]) for k, column in enumerate(shared)],
        cells,
        situation,
        packed.sets.offsets,
        [str(one) for one in packed.ids.to_pylist()],
        labels,
        most_sets,
        random_state,
    )
    return replace(found, set_column=encoder.set_id, label_column=label)


def _cells(table: Any, column: Column, missing: Sequence[str]) -> Floats:
    """Return one number a row: the value, or the place of its level; NaN where there is none."""
    values, numeric = column_of(table, column.name), column.kind in ("number", "flag")
    if missing and kind_of_column(values, column.name) == "category":
        values, _ = without_marks(values, missing, numbers=numeric)
    if numeric:
        return as_numbers(values, missing)
    numbers = encode_column(values, column, lambda row: f"row {row + 1}")
    absent = np.asarray(values.is_null().to_numpy())
    if column.kind == "code":
        place, known = numbers[:, 0] - 1, numbers[:, 0] > 0
    else:
        levels = numbers[:, : len(column.levels)]
        place, known = levels.argmax(1).astype(np.float64), levels.max(1) > 0
    return np.where(known, place, np.where(absent, np.nan, OTHER))


def _number(name: str, values: Floats) -> ShownColumn:
    known = values[~np.isnan(values)]
    flag = len(known) > 0 and bool(np.isin(known, (0.0, 1.0)).all())
    low, high = map(float, np.quantile(known, WITHIN)) if len(known) else (0.0, 1.0)
    if low == high and len(known):
        low, high = float(known.min()), float(known.max())
    audited = AuditRange.of(values) if len(known) and np.isfinite(known).all() else None
    whole = len(known) > 0 and bool((known == np.round(known)).all())
    return ShownColumn(name, "flag" if flag else "number", (), low, high, audited, whole)


def _shown(column: Column, values: Floats) -> ShownColumn:
    if column.kind in ("category", "code"):
        other = bool((values == OTHER).any())
        return ShownColumn(column.name, "level", tuple(column.levels), -1.0 if other else 0.0, 0.0)
    found = _number(column.name, values)
    return replace(found, kind=column.kind, audited=found.audited if column.kind == "number" else None)


def _cut(
    columns: list[ShownColumn],
    situation: list[ShownColumn],
    cells: Floats,
    of_sets: Floats,
    offsets: NDArray[Any],
    ids: list[str],
    labels: list[str],
    most_sets: int,
    random_state: int,
) -> ShownSets:
    rng = np.random.default_rng(random_state)
    found = []
    for i in range(min(len(ids), most_sets)):
        rows = np.arange(offsets[i], offsets[i + 1])
        kept = rows if len(rows) <= MOST_OBJECTS else np.sort(rng.choice(rows, MOST_OBJECTS, replace=False))
        texts = [labels[row] for row in kept]
        found.append(ShownSet(ids[i], cells[kept], texts, of_sets[i], len(rows) - len(kept)))
    return ShownSets(columns, situation, found, len(ids) - len(found))
