"""Peak memory of learning from a Parquet table, in memory and from disk: ``python -m benchmarks.on_disk``.

Each fit runs in a process of its own. What is counted is memory that the process holds beside mapped files, which the
system can take back at any time (RssAnon), looked at every 20 ms, above what it held before the table was touched.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
FEATURES = 24


def write(path: Path, rows: int) -> None:
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    writer = None
    for start in range(0, rows, 500_000):
        ids = np.arange(start, min(start + 500_000, rows)) // 10
        columns = {"set": ids} | {f"x{i}": rng.random(len(ids), dtype=np.float32) for i in range(FEATURES)}
        table = pa.table(columns | {"y": rng.integers(0, 5, len(ids))})
        writer = writer or parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    writer.close()


def own_megabytes() -> float:
    return int(Path("/proc/self/status").read_text().partition("RssAnon:")[2].split()[0]) / 1024


def fit(path: Path, folder: str) -> None:
    """Fit in this process; print seconds and peak megabytes as JSON."""
    from entourage import Ranker
    from entourage.data import read_table
    from entourage.data.encoder import TableEncoder
    from entourage.estimators.fit_on_disk import fit_on_disk

    model = Ranker("fate", steps=200, device="cpu", random_state=0)
    roles = {"set_id": "set", "target": "y"}
    before, peak, done = own_megabytes(), [0.0], threading.Event()

    def watch() -> None:
        while not done.is_set():
            peak[0] = max(peak[0], own_megabytes())
            time.sleep(0.02)

    watcher = threading.Thread(target=watch)
    watcher.start()
    start = time.perf_counter()
    if folder:
        fit_on_disk(path, folder, model, **roles)
    else:
        table = read_table(path)
        model.fit(TableEncoder.fit(table, **roles)(table).sets)
    seconds = time.perf_counter() - start
    done.set()
    watcher.join()
    print(json.dumps({"seconds": seconds, "megabytes": peak[0] - before}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--fit", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.fit:
        fit(Path(args.fit[0]), args.fit[1])
        return
    rows = []
    for count in (args.rows // 4, args.rows):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "table.parquet"
            write(file, count)
            features = count * FEATURES * 4 / 1e6
            for where, home in (("memory", ""), ("disk", str(Path(folder) / "sets"))):
                command = [sys.executable, "-m", "benchmarks.on_disk", "--fit", str(file), home]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                rows.append({"rows": count, "features_mb": features, "from": where} | json.loads(done.stdout))
                own = rows[-1]["megabytes"]
                print(
                    f"{count:>9,} rows, {features:4.0f} MB features, from {where:6}: {own:5.0f} MB",
                    flush=True,
                )
    (RESULTS / "on_disk.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
