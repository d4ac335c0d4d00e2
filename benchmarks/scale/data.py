"""Long tables of any size in Parquet files, ids in no order, sets that run across files."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

FEATURES = 10
SIZES = (5, 21)  # objects of a set, the last not included
_SETS = 100_000  # made at a time


def tables(rows: int, seed: int) -> Iterator[pa.Table]:
    """Yield tables of about so many rows in all, a bounded number at a time; the id of a set is a scattered number."""
    left, first, stretch = rows, 0, 0
    while left > 0:
        rng = np.random.default_rng([seed, stretch])
        sizes = rng.integers(*SIZES, min(_SETS, -(-left * 2 // sum(SIZES))))
        n = int(sizes.sum())
        ids = (
            np.arange(first, first + len(sizes), dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        ) >> np.uint64(1)
        columns = {"set": np.repeat(ids.astype(np.int64), sizes)}
        columns |= {f"x{i}": rng.standard_normal(n, dtype=np.float32) for i in range(FEATURES)}
        starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
        order = np.lexsort((rng.random(n), np.repeat(np.arange(len(sizes)), sizes)))
        columns["place"] = np.arange(n) - starts
        columns["place"][order] = columns["place"].copy()
        yield pa.table(columns)
        left, first, stretch = left - n, first + len(sizes), stretch + 1


def write(folder: Path, rows: int, *, files: int = 8, seed: int = 1) -> tuple[int, int, int]:
    """Write about so many rows to some files that end anywhere; return the numbers of rows, sets and bytes."""
    folder.mkdir(parents=True)
    most = rows // files + 1
    number = written = sets = 0
    writer = None
    for table in tables(rows, seed):
        sets += pc.sum(pc.equal(table["place"], 0)).as_py()
        while table.num_rows:
            if writer is None:
                writer, room = parquet.ParquetWriter(folder / f"{number:04d}.parquet", table.schema), most
            writer.write_table(table.slice(0, room))
            taken = min(room, table.num_rows)
            table, room, written = table.slice(taken), room - taken, written + taken
            if room == 0:
                writer.close()
                writer, number = None, number + 1
    if writer is not None:
        writer.close()
    return written, sets, sum(path.stat().st_size for path in folder.iterdir())
