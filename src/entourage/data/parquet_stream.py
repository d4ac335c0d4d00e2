"""Parquet tables in chunks of rows that never split a set."""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from entourage.data.set_runs import run_starts
from entourage.errors import DataError

__all__ = ["ROWS", "open_parquet", "stretches", "torn_sets", "whole_sets"]

ROWS = 1 << 18  # in a chunk, more where a set is larger


def open_parquet(path: str | os.PathLike[str]) -> parquet.ParquetFile:
    """Open a Parquet file, or say why it can't be read."""
    try:
        return parquet.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{path} can't be read as parquet: {reason}") from error


def stretches(
    file: parquet.ParquetFile, set_id: str, columns: Sequence[str] | None = None
) -> Iterator[pa.Table]:
    """Yield all rows in their order, in tables that end where a set does; the rows of a set must be contiguous."""
    batches = file.iter_batches(ROWS, columns=columns)
    return whole_sets((pa.Table.from_batches([batch]) for batch in batches), set_id)


def whole_sets(tables: Iterable[pa.Table], set_id: str) -> Iterator[pa.Table]:
    """Cut tables, whose rows follow each other, anew: each ends where a set does."""
    rest: list[pa.Table] = []  # of the last set, which may go on in the next table
    for table in tables:
        if table.num_rows == 0:
            continue
        starts = run_starts(table.column(set_id))
        last = int(starts[-1]) if len(starts) else 0
        if last == 0 and (not rest or _same(rest[-1], table, set_id)):
            rest.append(table)
            continue
        table, tail = table.slice(0, last), table.slice(last)
        yield pa.concat_tables([*rest, table] if table.num_rows else rest)
        rest = [tail]
    if rest:
        yield pa.concat_tables(rest)


def torn_sets(file: parquet.ParquetFile, set_id: str) -> list[Any]:
    """Return the ids of sets whose rows are not contiguous; only the column of set ids is read."""
    firsts: list[pa.Array] = []
    before: pa.Scalar | None = None
    for batch in file.iter_batches(ROWS, columns=[set_id]):
        ids = batch.column(0)
        if pa.types.is_dictionary(ids.type):
            ids = ids.dictionary_decode()
        starts = run_starts(ids)
        if before is None or not ids[0].equals(before):
            starts = np.concatenate([[0], starts])
        firsts.append(ids.take(pa.array(starts)))
        before = ids[len(ids) - 1]
    runs = pa.chunked_array(firsts)
    if len(runs) == pc.count_distinct(runs, mode="all").as_py():
        return []
    counts = pc.value_counts(runs)
    torn: list[Any] = counts.field("values").filter(pc.greater(counts.field("counts"), 1)).to_pylist()
    return torn


def _same(before: pa.Table, after: pa.Table, set_id: str) -> bool:
    first, last = after.column(set_id)[0], before.column(set_id)[before.num_rows - 1]
    return bool(first.as_py() == last.as_py())
