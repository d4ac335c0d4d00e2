"""Torn sets, over layouts that tempt one to tear them: ``python -m benchmarks.scale torn``.

10^6 sets in files and row groups that end anywhere: one row a row group, sets over three files and more, row groups of
1 to 40 rows, large sets over many row groups, files as pyarrow writes them. `predict_parts` scores them with two
workers. A set is torn if a rank is not the number of objects of the whole set with a larger score, or if a score
differs (by more than 1e-4 of its size) from that of the whole table scored in one piece. The control cuts the same rows
without regard to sets.
"""

import argparse
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

from benchmarks.scale.record import record
from entourage import FATE, Ranker, load
from entourage.distributed.scoring import predict_parts
from entourage.estimators.prediction_tables import predict_table

ROWS_PER_PART = 9_973
LAYOUTS: dict[str, tuple[int, tuple[int, int], tuple[int, int], tuple[int, int]]] = {
    # sets, their objects, rows of a file, rows of a row group; each from, to
    "one row a row group": (20_000, (1, 10), (2_000, 4_000), (1, 2)),
    "sets over three files and more": (4_000, (3, 12), (1, 5), (1, 5)),
    "any ends": (200_000, (1, 10), (1, 40_000), (1, 41)),
    "large sets": (1_000, (100, 2_000), (1, 50_000), (1, 1_000)),
    "as pyarrow writes": (775_000, (1, 10), (1_500_001, 1_500_002), (1 << 20, (1 << 20) + 1)),
}


def make(name: str, folder: Path, seed: int) -> pa.Table:
    """Write the files of a layout; return their rows."""
    sets, objects, file_rows, group_rows = LAYOUTS[name]
    rng = np.random.default_rng(seed)
    sizes = rng.integers(*objects, sets)
    rows = int(sizes.sum())
    ids = np.repeat(rng.permutation(sets), sizes)
    table = pa.table(
        {"set": ids, "row": np.arange(rows)} | {f"x{i}": rng.normal(size=rows) for i in range(3)}
    )
    folder.mkdir()
    first = number = 0
    while first < rows:
        part = table.slice(first, int(rng.integers(*file_rows)))
        with parquet.ParquetWriter(folder / f"{number:06d}.parquet", part.schema) as writer:
            done = 0
            while done < part.num_rows:
                group = int(rng.integers(*group_rows))
                writer.write_table(part.slice(done, group), row_group_size=group)
                done += group
        first, number = first + part.num_rows, number + 1
    return table


def torn(found: pa.Table, expected: pa.Table) -> int:
    """Return how many sets are torn; the rows must be the same, in the same order."""
    assert found["set"].equals(expected["set"])
    assert found["row"].equals(expected["row"])
    ids = expected["set"].to_numpy()
    begins = np.append(True, ids[1:] != ids[:-1])
    owner = np.cumsum(begins) - 1
    ranks, scores = found["rank"].to_numpy(), _scores(found)
    order = np.lexsort((-scores, owner))  # sets stay where they are
    places = np.arange(len(ids))
    new = begins | np.append(True, np.diff(scores[order]) != 0)  # equal scores share the place of the first
    best = np.maximum.accumulate(np.where(new, places, 0)) - np.flatnonzero(begins)[owner]
    bad = ranks[order] != best
    ours, theirs = _scores(found), _scores(expected)
    differs = ~np.isclose(ours, theirs, rtol=1e-4, atol=1e-6)
    return len(np.unique(np.concatenate([owner[bad], owner[differs]])))


def _scores(table: pa.Table) -> NDArray[Any]:
    return np.asarray(table["score"].to_numpy())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--layout", choices=LAYOUTS, nargs="+", default=list(LAYOUTS))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sample = make("any ends", folder / "sample", 0).slice(0, 5000)
        sample = sample.append_column("place", sample["row"])
        model = Ranker(FATE(width=16), steps=50, device="cpu", random_state=0)
        model.fit(sample, set_id="set", target="place", ignore=["row"]).save(folder / "m")
        fitted = load(folder / "m").set_params(device="cpu")
        for layout in args.layout:
            table = make(layout, folder / "in", 1 + list(LAYOUTS).index(layout))
            files = len(list((folder / "in").iterdir()))
            begin = time.perf_counter()
            scored = predict_parts(
                folder / "m",
                str(folder / "in"),
                str(folder / "out"),
                workers=2,
                rows_per_part=ROWS_PER_PART,
                device="cpu",
            )
            seconds = time.perf_counter() - begin
            found = pa.concat_tables(
                [parquet.read_table(path) for path in sorted((folder / "out").glob("part-*"))]
            )
            whole = predict_table(fitted, table)
            pieces = [table.slice(k, ROWS_PER_PART) for k in range(0, table.num_rows, ROWS_PER_PART)]
            control = pa.concat_tables([predict_table(fitted, piece) for piece in pieces])
            record(
                {
                    "what": "torn sets",
                    "layout": layout,
                    "sets": LAYOUTS[layout][0],
                    "rows": table.num_rows,
                    "files": files,
                    "parts": scored.parts,
                    "seconds": round(seconds, 1),
                    "torn": torn(found, whole),
                    "torn_by_cuts_at_any_row": torn(control, whole),
                }
            )
            for one in ("in", "out"):
                shutil.rmtree(folder / one)


if __name__ == "__main__":
    main()
