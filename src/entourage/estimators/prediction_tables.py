"""Tables with predictions: a model's columns added to a table, in memory or from file to file."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from entourage.data.files import replacing
from entourage.data.frames import arrow_table
from entourage.data.grouping import labels_of_sets
from entourage.data.parquet_stream import open_parquet, stretches, torn_sets
from entourage.errors import DataError
from entourage.estimators.inputs import encoder_of
from entourage.estimators.net_estimator import NetEstimator

__all__ = ["predict_stream", "predict_table"]


def predict_table(model: NetEstimator, frame: Any, people: str | None = None) -> pa.Table:
    """Return the table with columns added, such as score and rank (0 = best), its rows in the order they came.

    Where the table has such a column itself, the new one is called predicted_score or predicted_rank. ``people`` is the
    column of the decision maker, for models that know some.
    """
    table = arrow_table(frame)
    packed = encoder_of(model)(table, with_target=False)
    known: dict[str, Any] = {} if people is None else {"people": labels_of_sets(table, packed, people)}
    scores = model.predict_scores(packed.sets, **known)
    for name, values in model.columns(packed.sets, scores).items():
        free = [n for n in (name, f"predicted_{name}") if n not in table.column_names]
        if not free:
            raise DataError(
                f"The table has columns {name!r} and 'predicted_{name}' already; rename one of them."
            )
        table = table.append_column(free[0], pa.array(packed.in_rows(values)))
    return table


def predict_stream(
    model: NetEstimator,
    path: Any,
    out: Any,
    on_rows: Callable[[int, int], None] = lambda done, total: None,
) -> int | None:
    """Do what `predict_table` does from one Parquet file to another, a chunk of rows in memory at a time.

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
