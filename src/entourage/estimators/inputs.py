"""Input of any form as sets, and the way back: arrays, lists, `Sets`, or a table with its columns named."""

import difflib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entourage.data.encoder import TableColumns, TableEncoder
from entourage.data.frames import arrow_table
from entourage.data.grouping import PackedTable, groups_of, positions_of, weights_of
from entourage.data.sets import AnySets, Sets, is_frame
from entourage.data.table_warnings import warn_of_oddities
from entourage.errors import DataError, ParameterError, ShapeError, UserError
from entourage.tasks import Task

__all__ = [
    "Given",
    "check_something_to_learn",
    "check_weights",
    "encoder_of",
    "given_sets",
    "like",
    "training_sets",
]

#: The encoder of each model that has read a table, made from the description that stands beside it.
_ENCODERS: WeakKeyDictionary[Any, tuple[dict[str, Any], TableEncoder]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Given:
    """Sets to score, and the way back."""

    sets: Sets
    back: Callable[[NDArray[Any]], Any]  # brings packed values into the form of the input
    is_table: bool


def like(X: AnySets, sets: Sets, packed: NDArray[Any]) -> Any:
    """Give packed values the form of the input."""
    if isinstance(X, Sets):
        return packed
    if isinstance(X, (list, tuple)):
        return sets.unpack(packed)
    return packed.reshape(len(sets), -1)


def encoder_of(model: Any, name: Any = "The model") -> TableEncoder:
    """Return what turns tables into the sets a model knows."""
    if getattr(model, "table_", None) is None:
        raise UserError(
            f"{name} was fitted to arrays, not to a table, so its columns are unknown. Fit it to a table: "
            "fit(table, set_id=..., target=...), or entourage fit TABLE."
        )
    kept = _ENCODERS.get(model)
    if kept is None or kept[0] is not model.table_:  # a fit replaces the description of the table
        kept = _ENCODERS[model] = model.table_, TableEncoder.from_json(model.table_)
    return kept[1]


def given_sets(model: Any, X: Any, situation: Any = None, *, with_target: bool = False) -> Given:
    """Make sets of what a fitted model is to score; a table as the model learnt to read it."""
    if not is_frame(X):
        sets = Sets.of(X, None, situation)
        return Given(sets, lambda packed: like(X, sets, packed), False)
    if situation is not None:
        raise ParameterError("The columns of the situation were given to fit; leave situation out here.")
    packed = encoder_of(model)(X, with_target=with_target)
    return Given(packed.sets, packed.in_rows, True)


def training_sets(
    task: Task,
    X: Any,
    y: Any = None,
    situation: Any = None,
    *,
    sample_weight: ArrayLike | str | None = None,
    groups: ArrayLike | str | None = None,
    table: TableColumns | None = None,
    codes: bool = False,
    encoder: TableEncoder | None = None,
) -> tuple[Sets, NDArray[np.float64] | None, Any]:
    """Make checked sets for training or evaluation, with a weight and a group for each.

    Parameters
    ----------
    task : what targets mean
    X, y, situation : arrays, lists or Sets; or a table, and the names of its columns of the situation
    sample_weight, groups : one a set; of a table, also the name of a column
    table : the other columns of a table; ``position`` may be given with arrays, too
    codes : see `TableEncoder.fit`
    encoder : how to read the table, where that was learnt before
    """
    columns: dict[str, Any] = dict(table or {})
    _check_columns(columns)
    position = columns.pop("position", None)
    if not is_frame(X):
        if columns:
            raise ParameterError(
                f"{', '.join(columns)} name columns of a table; X is {type(X).__name__}. Pass a pandas, polars or "
                "Arrow frame."
            )
        for name, value in (("sample_weight", sample_weight), ("groups", groups)):
            if isinstance(value, str):
                raise ParameterError(
                    f"{name}={value!r} names a column, but X is no table. Pass one entry a set."
                )
        sets = task.check(task.sets_of(X, y, situation))
        if position is not None:
            if sets.position is not None:
                raise ParameterError("position came twice: these Sets carry their own.")
            sets = sets.with_position(position)
        return sets, check_weights(sample_weight, len(sets)), groups
    if y is not None:
        raise ParameterError(
            "Of a table, name the column to learn instead of y: fit(table, set_id=..., target=...)."
        )
    _check_position(position, encoder, columns, situation)
    if encoder is None and columns.get("features") is None:  # columns of weights or groups are no features
        beside = [
            name
            for name in (sample_weight, groups, position)
            if isinstance(name, str) and name != columns.get("set_id")
        ]
        ignored = columns.get("ignore") or []
        ignored = [ignored] if isinstance(ignored, str) else list(ignored)
        if beside:
            columns["ignore"] = [*ignored, *(name for name in beside if name not in ignored)]
    packed = _read(task, X, situation, columns, codes, encoder)
    if position is not None:
        packed = replace(packed, sets=packed.sets.with_position(positions_of(X, packed, position)))
    if isinstance(sample_weight, str):
        sample_weight = weights_of(X, packed, sample_weight)
    if isinstance(groups, str):
        groups = groups_of(X, packed, groups)
    weights = check_weights(sample_weight, len(packed.sets))
    if weights is not None and not weights.all() and encoder is None:  # nor shall they shape levels and means
        kept = weights > 0
        rows = np.sort(packed.order[np.repeat(kept, packed.sets.sizes)])
        left = None if groups is None else np.asarray(groups)[kept]
        fewer = arrow_table(X).take(rows)
        some: dict[str, Any] = {
            "sample_weight": weights[kept],
            "groups": left,
            "table": columns
            | ({} if position is None else {"position": position}),  # with what is no feature
            "codes": codes,
        }
        return training_sets(task, fewer, None, situation, **some)
    return task.check(packed.sets), weights, groups


def check_something_to_learn(task: Task, sets: Sets) -> None:
    """Check that at least one set is informative."""
    if sets.sizes.max() == 1 and not getattr(task, "outside", False):
        raise DataError(
            "Every set has one object, so there is nothing to compare it with. Check which column says what forms "
            "a set: it seems to have another value in every row."
        )
    if not task.informative(sets).any():
        raise DataError(task.nothing_to_learn)


def _read(
    task: Task, frame: Any, situation: Any, columns: dict[str, Any], codes: bool, encoder: TableEncoder | None
) -> PackedTable:
    if encoder is None:
        lacking = [name for name in ("set_id", "target") if columns.get(name) is None]
        if lacking:
            raise ParameterError(
                f"A table needs its columns named: give {' and '.join(lacking)}, as in "
                'fit(table, set_id="race", target="place").'
            )
        encoder = TableEncoder.fit(
            frame, **({"target_kind": task.kind} | columns), situation=situation, codes=codes
        )
        packed = encoder(frame)
        warn_of_oddities(frame, packed, encoder)
        return packed
    if columns or situation is not None:
        raise ParameterError(
            "The columns were learnt in an earlier fit; pass the table without column names."
        )
    if encoder.target is None:
        raise DataError(
            "These columns were learnt without a target, so the table serves neither training nor evaluation."
        )
    return encoder(frame)


def _check_columns(columns: dict[str, Any]) -> None:
    """Check that every keyword is known for tables."""
    known = list(TableColumns.__annotations__)
    for name in columns:
        if name not in known:
            close = difflib.get_close_matches(name, [*known, "situation"], n=1)
            hint = f"; did you mean {close[0]!r}?" if close else "."
            raise TypeError(f"Unknown argument {name!r}{hint} A table has {', '.join(known)}.")


def _check_position(position: Any, encoder: Any, columns: dict[str, Any], situation: Any) -> None:
    """Check that the position of a table is a column without another role."""
    if position is None:
        return
    if not isinstance(position, str):
        raise ParameterError(
            f"Of a table, position is the name of a column; got {type(position).__name__}. Add the positions to it."
        )
    if encoder is not None:
        raise ParameterError("Positions are learnt by fit alone; leave position out here.")
    features, shared = (
        [given] if isinstance(given, str) else list(given or [])
        for given in (columns.get("features"), situation)
    )
    roles = {"the set id": [columns.get("set_id")], "the target": [columns.get("target")]}
    for role, names in (roles | {"a feature": features, "of the situation": shared}).items():
        if position in names:
            raise DataError(
                f"Column {position!r} can't be the position and {role} as well: a position is no feature."
            )


def check_weights(sample_weight: Any, n_sets: int) -> NDArray[np.float64] | None:
    """Return weights as an array, after a check that there is one for each set."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_sets,):
        raise ShapeError(f"sample_weight needs one entry a set, shape {(n_sets,)}; got {weights.shape}.")
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise DataError("Sample weights must be finite, none negative and not all 0.")
    return weights
