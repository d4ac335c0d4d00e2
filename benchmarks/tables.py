"""Loading a long Parquet table into sets, against polars sorting it: ``python -m benchmarks.tables``.

5,000,000 rows in 500,000 sets, in random order, ten feature columns. Needs polars.
"""

import argparse
import json
import platform
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
from pyarrow import parquet

from benchmarks.measure import in_turns
from entourage.data import Sets
from entourage.data.table_files import read_table

RESULTS = Path(__file__).parent / "results"


def write(path: Path, rows: int, sets: int, together: bool) -> None:
    rng = np.random.default_rng(0)
    ids = np.sort(rng.integers(0, sets, rows))
    ids = ids if together else rng.permutation(ids)
    columns = {"set": ids} | {f"x{i}": rng.random(rows) for i in range(10)} | {"y": rng.integers(0, 5, rows)}
    parquet.write_table(pa.table(columns), path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--sets", type=int, default=500_000)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    rows = []
    for together in (True, False):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "table.parquet"
            write(file, args.rows, args.sets, together)
            frame = pl.read_parquet(file)
            ours, sort = in_turns(
                lambda: Sets.from_frame(read_table(file), set_id="set", target="y"),  # noqa: B023
                lambda: frame.sort("set"),  # noqa: B023
                args.repeats,
            )
        rows.append(
            {"rows_together": together, "from_parquet": ours, "polars_sort": sort, "ratio": ours / sort}
        )
        order = "set by set" if together else "in random order"
        print(
            f"rows {order}: {ours:.2f} s from Parquet to Sets, polars sorts in {sort:.2f} s: {ours / sort:.2f}x"
        )
    about = {
        "machine": platform.machine(),
        "polars": pl.__version__,
        "pyarrow": pa.__version__,
        "rows": args.rows,
        "sets": args.sets,
        "threads": pl.thread_pool_size(),
        "results": rows,
    }
    (RESULTS / "tables.json").write_text(json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    main()
