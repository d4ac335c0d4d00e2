"""Sets larger than memory: features in a file that is mapped, not read, and from which batches are gathered.

Made once from a Parquet table, a chunk of rows at a time, by an encoder fitted to one column at a time.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from pyarrow import parquet

from entourage.data.coerce import offsets_of
from entourage.data.encoder import TableEncoder
from entourage.data.files import write_atomically
from entourage.data.parquet_stream import open_parquet, stretches, torn_sets
from entourage.data.ranks import align_grades
from entourage.data.sets import Sets
from entourage.errors import DataError

__all__ = ["fit_encoder", "open_sets", "write_sets"]

OBJECTS = "objects.f64"  # double precision: standardised when a batch is gathered


def fit_encoder(path: str | os.PathLike[str], **roles: Any) -> TableEncoder:
    """Fit an encoder to a Parquet file, one column in memory at a time; see `TableEncoder.fit`."""
    file = open_parquet(path)
    empty = file.schema_arrow.empty_table()

    def read(name: str) -> Any:
        return parquet.read_table(path, columns=[name]).column(0)

    return TableEncoder.fit(empty, **roles, read=read)


def write_sets(
    path: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    encoder: TableEncoder,
    on_rows: Callable[[int, int], None] = lambda done, total: None,
) -> Sets:
    """Encode a Parquet table, in which the rows of a set are contiguous, into ``folder``; return the sets."""
    file = open_parquet(path)
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    (target / "sets.json").unlink(missing_ok=True)  # of an earlier table, whose features are written over
    total, done = file.metadata.num_rows, 0
    sizes, targets, situations, worsts = [], [], [], []
    torn = torn_sets(file, encoder.set_id)
    if torn:
        raise DataError(
            f"The rows of set {torn[0]!r} are not contiguous; sort the table by {encoder.set_id!r} first."
        )
    columns = list(dict.fromkeys([encoder.set_id, *(c.name for c in encoder.columns), encoder.target]))
    with (target / OBJECTS).open("wb") as objects:
        for table in stretches(file, encoder.set_id, [c for c in columns if c is not None]):
            packed = encoder(table)
            objects.write(packed.sets.objects.tobytes())
            sizes.append(packed.sets.sizes)
            targets.append(packed.sets.targets)
            situations.append(packed.sets.situation)
            worsts.append(packed.sets.worst)
            done += table.num_rows
            on_rows(done, total)
    graded = [(t, w) for t, w in zip(targets, worsts, strict=True) if t is not None]
    # a chunk counts ranks from its own best grade
    known, worst = align_grades([t for t, _ in graded], [w for _, w in graded])
    shared = [s for s in situations if s is not None]
    np.save(target / "sizes.npy", np.concatenate(sizes))
    if known:
        np.save(target / "targets.npy", np.concatenate(known))
    if shared:
        np.save(target / "situation.npy", np.concatenate(shared))
    content = {
        "features": len(encoder.feature_names),
        "targets": bool(known),
        "situation": bool(shared),
        "worst": worst,
        "table": encoder.to_json(),
    }
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
        objects = np.memmap(home / OBJECTS, dtype=np.float64, mode="c")  # never written back
        targets = np.load(home / "targets.npy") if content["targets"] else None
        situation = np.load(home / "situation.npy") if content["situation"] else None
        shaped, offsets = objects.reshape(int(sizes.sum()), content["features"]), offsets_of(sizes)
        worst, encoder = content["worst"], TableEncoder.from_json(content["table"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{home} holds no sets, or only a part of them: {error}. Write them again."
        ) from error
    return Sets.from_disk(shaped, offsets, targets, situation, worst=worst, encoder=encoder)  # type: ignore[arg-type]
