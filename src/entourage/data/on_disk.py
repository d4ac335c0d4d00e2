"""Sets larger than memory: features in a file that is mapped, not read, and from which batches are gathered.

Made once from a Parquet table, a stretch of rows at a time, by an encoder that looked at one column at a time.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from entourage.data.tables import Column, TableEncoder, learn_column
from entourage.errors import DataError
from entourage.files import write_atomically
from entourage.sets import Sets

__all__ = ["fit_encoder", "open_sets", "write_sets"]

ROWS = 1 << 18  # encoded at a time


def fit_encoder(path: str | os.PathLike[str], **roles: Any) -> TableEncoder:
    """Learn what the columns of a Parquet file are, one column in memory at a time; see `TableEncoder.fit`."""
    file = _open(path)
    empty = file.schema_arrow.empty_table()

    def learn(name: str, role: str, codes: bool) -> Column:
        return learn_column(parquet.read_table(path, columns=[name]), name, role, codes)

    return TableEncoder.fit(empty, **roles, learn=learn)


def write_sets(
    path: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    encoder: TableEncoder,
    on_rows: Callable[[int, int], None] = lambda done, total: None,
) -> Sets:
    """Encode a Parquet table, in which the rows of a set stand together, into ``folder``; return the sets there."""
    file = _open(path)
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    total, done = file.metadata.num_rows, 0
    sizes, targets, situations = [], [], []
    seen: set[Any] = set()
    rest: pa.Table | None = None
    columns = list(dict.fromkeys([encoder.set_id, *(c.name for c in encoder.columns), encoder.target]))
    with (target / "objects.f32").open("wb") as objects:
        for batch in file.iter_batches(ROWS, columns=[c for c in columns if c is not None]):
            table = pa.Table.from_batches([batch])
            done += table.num_rows
            table = table if rest is None else pa.concat_tables([rest, table])
            if done < total:  # the last set may go on in the next stretch
                ids = table.column(encoder.set_id).combine_chunks()
                last = ids[len(ids) - 1]
                start = len(ids)
                while start > 0 and ids[start - 1].equals(last):
                    start -= 1
                table, rest = table.slice(0, start), table.slice(start)
                if table.num_rows == 0:
                    continue
            packed = encoder(table)
            for name in packed.ids.to_pylist():
                if name in seen:
                    raise DataError(
                        f"The rows of set {name!r} don't stand together; sort the table by {encoder.set_id!r} first."
                    )
                seen.add(name)
            objects.write(packed.sets.objects.tobytes())
            sizes.append(packed.sets.sizes)
            targets.append(packed.sets.targets)
            situations.append(packed.sets.situation)
            on_rows(done, total)
    known = [t for t in targets if t is not None]
    shared = [s for s in situations if s is not None]
    np.save(target / "sizes.npy", np.concatenate(sizes))
    if known:
        np.save(target / "targets.npy", np.concatenate(known))
    if shared:
        np.save(target / "situation.npy", np.concatenate(shared))
    content = {"features": len(encoder.feature_names), "targets": bool(known), "situation": bool(shared)}
    write_atomically(
        target / "sets.json", json.dumps(content).encode()
    )  # last: a folder without it is no sets
    return open_sets(target)


def open_sets(folder: str | os.PathLike[str]) -> Sets:
    """Open sets that `write_sets` wrote; their features stay on disk."""
    home = Path(folder)
    try:
        content = json.loads((home / "sets.json").read_text())
        sizes = np.load(home / "sizes.npy")
        objects = np.memmap(home / "objects.f32", dtype=np.float32, mode="c")  # never written back
        targets = np.load(home / "targets.npy") if content["targets"] else None
        situation = np.load(home / "situation.npy") if content["situation"] else None
        shaped = objects.reshape(int(sizes.sum()), content["features"])
    except (OSError, ValueError, KeyError) as error:
        raise DataError(
            f"{home} holds no sets, or only a part of them: {error}. Write them again."
        ) from error
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Sets.from_disk(shaped, offsets, targets, situation)  # type: ignore[arg-type]


def _open(path: str | os.PathLike[str]) -> parquet.ParquetFile:
    try:
        return parquet.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())
        raise DataError(
            f"{path} can't be read as parquet, which sets on disk are made from: {reason}"
        ) from error
