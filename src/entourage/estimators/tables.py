"""From a table to a model and back: what the commands do, as functions."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from entourage.data.columns import Column
from entourage.data.encoder import TableEncoder
from entourage.data.frames import arrow_table
from entourage.data.grouping import PackedTable
from entourage.data.memory_mapped import fit_encoder, write_sets
from entourage.data.parquet_stream import open_parquet, stretches, torn_sets
from entourage.data.sets import Sets
from entourage.errors import DataError
from entourage.estimators.base import without_each
from entourage.estimators.inputs import encoder_of
from entourage.estimators.net_estimator import NetEstimator as SetEstimator
from entourage.files import replacing
from entourage.tasks.evaluate import evaluate_scores, mean_over_sets, metric_of_sets
from entourage.tasks.ranking_metrics import METRICS

__all__ = [
    "encoder_of",
    "evaluate_table",
    "fit_on_disk",
    "influence",
    "ordered_features",
    "place_of_row",
    "predict_stream",
    "predict_table",
]


def fit_on_disk(
    path: Any,
    folder: Any,
    model: SetEstimator,
    on_rows: Callable[[int, int], None] = lambda done, total: None,
    **roles: Any,
) -> Sets:
    """Fit an estimator to a Parquet file that need not fit into memory; its features are laid out in ``folder``.

    The rows of a set must stand together. ``roles`` are those of `TableEncoder.fit`.
    """
    encoder = fit_encoder(path, **roles)
    sets = write_sets(path, folder, encoder, on_rows)
    model.fit(sets)
    return sets


def ordered_features(encoder: TableEncoder) -> list[int]:
    """Return the places of an object's numbers that have an order: no categories, no marks of missing values."""
    return [at for column, at in _places_of_columns(encoder) if column.kind in ("number", "flag")]


def marks_of_missing(encoder: TableEncoder) -> dict[int, int]:
    """Return, of the ordered features that may be missing, the places of the features that say so."""
    return {at: at + 1 for column, at in _places_of_columns(encoder) if column.indicator}


def _places_of_columns(encoder: TableEncoder) -> list[tuple[Column, int]]:
    """Return the columns of objects, each with the place of its first number."""
    own = [column for column in encoder.columns if column.role == "object"]
    starts = np.cumsum([0, *(column.width for column in own)]).tolist()
    return list(zip(own, starts, strict=False))


def place_of_row(packed: PackedTable, row: int) -> int:
    """Return where a row of a table, from 0, stands among the packed objects."""
    if not 0 <= row < len(packed.order):
        raise DataError(
            f"A row of the table is a number from 0 to {len(packed.order) - 1:,}; got {row:,}. Give one of these."
        )
    return int(np.flatnonzero(packed.order == row)[0])


def predict_table(model: SetEstimator, frame: Any) -> pa.Table:
    """Return the table with some columns more, such as score and rank (0 = best), its rows in the order they came.

    Where the table has such a column itself, the new one is called predicted_score or predicted_rank.
    """
    table = arrow_table(frame)
    packed = encoder_of(model)(table, with_target=False)
    scores = model.predict_scores(packed.sets)
    for name, values in model.columns(packed.sets, scores).items():
        free = [n for n in (name, f"predicted_{name}") if n not in table.column_names]
        if not free:
            raise DataError(
                f"The table has columns {name!r} and 'predicted_{name}' already; rename one of them."
            )
        table = table.append_column(free[0], pa.array(packed.in_rows(values)))
    return table


def predict_stream(
    model: SetEstimator,
    path: Any,
    out: Any,
    on_rows: Callable[[int, int], None] = lambda done, total: None,
) -> int | None:
    """Do what `predict_table` does from one Parquet file to another, a stretch of rows in memory at a time.

    Returns the number of rows; None, and nothing is written, where the rows of a set don't stand together.
    """
    encoder = encoder_of(model)
    file = open_parquet(path)
    if encoder.set_id not in file.schema_arrow.names or torn_sets(file, encoder.set_id):
        return None
    total, done = file.metadata.num_rows, 0
    writer: parquet.ParquetWriter | None = None
    try:
        with replacing(out) as temporary:
            for table in stretches(file, encoder.set_id):
                try:
                    predicted = predict_table(model, table)
                except DataError as error:
                    if done == 0:
                        raise
                    raise DataError(f"Counting from row {done:,}: {error}") from None
                if writer is None:
                    writer = parquet.ParquetWriter(temporary, predicted.schema)
                writer.write_table(predicted)
                done += table.num_rows
                on_rows(done, total)
            if writer is not None:
                writer.close()
    except OSError as error:
        reason = error.strerror or str(error)
        raise DataError(f"{out} can't be written: {reason}. What was there before is untouched.") from error
    return done


def evaluate_table(model: SetEstimator, frame: Any) -> dict[str, Any]:
    """Judge a model on a table with its target: all metrics, and the ranking accuracy by set size."""
    encoder = encoder_of(model)
    if encoder.target is None:
        raise DataError("The model was fitted without a target column, so there is nothing to judge by.")
    sets = encoder(frame).sets
    if not model.task.informative(sets).any():
        raise DataError(
            "No set of the table says anything to judge by: its targets are all alike, or it is of one object."
        )
    sets = model.task.check(sets)
    scores = model.predict_scores(sets)
    found = evaluate_scores(sets, scores, model.task.metrics)
    accuracy = metric_of_sets(METRICS["ranking_accuracy"], sets, scores)
    by_size = {int(m): mean_over_sets(accuracy[sets.sizes == m]) for m in np.unique(sets.sizes) if m > 1}
    return {
        "sets": len(sets),
        "objects": len(sets.objects),
        "metrics": {name: None if np.isnan(value) else value for name, value in found.items()},
        "by_size": {m: None if np.isnan(value) else value for m, value in by_size.items()},
    }


def influence(model: SetEstimator, packed: PackedTable, *, most_sets: int = 500) -> list[dict[str, Any]]:
    """Leave each object out of its set and see how many pairs of the others turn round: the most influential first.

    A context-free model has none. Looks at ``most_sets`` sets at most, of at least three objects.
    """
    chosen = np.flatnonzero(packed.sets.sizes >= 3)[:most_sets]
    if len(chosen) == 0:
        return []
    sets = packed.sets[chosen]
    whole = model.predict_scores(sets)
    turned = np.empty(len(sets.objects))
    for _, rows, stay, without in without_each(model.predict_scores, sets):
        first, second = np.triu_indices(rows.shape[1] - 1, 1)
        for j, rest in enumerate(stay):
            before, after = whole[rows[:, rest]], without[:, j]  # (n, m - 1)
            gaps = (before[:, first] - before[:, second]) * (after[:, first] - after[:, second])  # (n, pairs)
            turned[rows[:, j]] = (gaps < 0).mean(1)
    found = []
    for i, size, start in zip(chosen, sets.sizes, sets.offsets[:-1], strict=True):
        found += [
            {
                "row": int(packed.order[packed.sets.offsets[i] + j]),
                "set": packed.ids[int(i)].as_py(),
                "turned": float(turned[start + j]),
                "pairs": int((size - 1) * (size - 2) // 2),
            }
            for j in range(size)
        ]
    return sorted(found, key=lambda entry: -entry["turned"])
