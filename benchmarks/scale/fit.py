"""Fitting and tuning as tables grow: ``python -m benchmarks.scale fit``.

For tables of 10^5, 10^6 and 10^7 rows (sets of 5 to 20 objects, 10 features, 8 Parquet files): FATE with its defaults
fitted from disk (``entourage fit FOLDER --on-disk``), in 200 steps, and one trial of tuning on one inner fold, which
holds its table in memory. Each in a process of its own with two threads. Memory is the peak of what the process holds
beside mapped files (RssAnon), asked for ten times a second.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from benchmarks.scale.data import write
from benchmarks.scale.record import record
from entourage import FATE, Ranker
from entourage.data.memory_mapped import fit_encoder, open_sets, write_sets
from entourage.data.parquet_files import open_sources
from entourage.data.places import find_files
from entourage.data.sets import Sets

STEPS = 200
ROLES = {"set_id": "set", "target": "place"}


class Peak(threading.Thread):
    """The largest private memory of this process, in megabytes."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.megabytes = 0.0

    def run(self) -> None:
        """Ask until the process ends."""
        while True:
            found = re.search(r"RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text())
            self.megabytes = max(self.megabytes, int(found[1]) / 1024 if found else 0.0)
            time.sleep(0.1)


def fit(folder: Path) -> dict[str, float]:
    """Fit from disk; return seconds, and the bytes of the features."""
    disk, begin = folder / "disk", time.perf_counter()
    encoder = fit_encoder(folder / "in", **ROLES)
    learnt = time.perf_counter()
    write_sets(folder / "in", disk, encoder)
    written = time.perf_counter()
    Ranker(FATE(), steps=STEPS, device="cpu", random_state=0).fit(open_sets(disk))
    return {
        "columns_seconds": learnt - begin,
        "features_seconds": written - learnt,
        "training_seconds": time.perf_counter() - written,
        "bytes_on_disk": sum(file.stat().st_size for file in disk.iterdir()),
    }


def tune(folder: Path) -> dict[str, float]:
    """Read a table, and do one trial; return seconds."""
    import pyarrow as pa

    from entourage.selection import tune as search

    begin = time.perf_counter()
    table = pa.concat_tables(open_sources(find_files(str(folder / "in"))).read_all())
    sets = Sets.from_frame(table, **ROLES)
    del table
    read = time.perf_counter()
    search(Ranker(FATE(), steps=STEPS, device="cpu", random_state=0), sets, trials=1, folds=1)
    return {"reading_seconds": read - begin, "trial_seconds": time.perf_counter() - read}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[10**5, 10**6, 10**7])
    parser.add_argument("--what", choices=["fit", "tune"], nargs="+", default=["fit", "tune"])
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside is not None:
        peak = Peak()
        peak.start()
        found = {"fit": fit, "tune": tune}[args.what[0]](args.inside)
        print(json.dumps(found | {"megabytes": peak.megabytes}))
        return
    for rows in args.rows:
        with tempfile.TemporaryDirectory() as name:
            _, sets, size = write(Path(name) / "in", rows)
            for what in args.what:
                command = [sys.executable, "-m", "benchmarks.scale", "fit", "--what", what, "--inside", name]
                out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                found = json.loads(out.splitlines()[-1])
                record(
                    {
                        "what": what,
                        "net": "fate",
                        "steps": STEPS,
                        "rows": rows,
                        "sets": sets,
                        "bytes_read": size,
                    }
                    | {name: round(value, 2) for name, value in found.items()}
                )


if __name__ == "__main__":
    main()
