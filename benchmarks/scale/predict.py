"""Scoring by several workers of one thread each: ``python -m benchmarks.scale predict``.

Runs ``entourage predict MODEL 'in/*.parquet' -o out --workers N`` for tables of 10^5, 10^6 and 10^7 rows, each command
as a user gives it: start, reading set ids, scoring, writing. The model is SetAttention with its defaults, whose net
takes most of the time. Sets have 5 to 20 objects of 10 features, in 8 files; ids are scattered, so that every id is
hashed. Peak memory is VmHWM of the driver and of each worker, asked for several times a second. ``cpu_seconds`` are of
all processes together: they say what was computed on a machine that is not idle; ratios need one that is.
"""

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks.scale.data import tables, write
from benchmarks.scale.record import record
from entourage import FATE, Ranker, SetAttention

NETS = {"set_attention": lambda: SetAttention(rounds=3, features="linear"), "fate": FATE}


class Peaks(threading.Thread):
    """The largest resident size, in megabytes, of a process and of those that it started."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid, self.driver, self.workers, self.ended = pid, 0.0, dict[str, float](), threading.Event()

    def run(self) -> None:
        """Ask until it has ended."""
        while not self.ended.wait(0.2):
            self.driver = max(self.driver, _peak(str(self.pid)))
            for child in _children(self.pid):
                if b"spawn_main" in _read(child, "cmdline"):
                    self.workers[child] = max(self.workers.get(child, 0.0), _peak(child))


def _read(pid: str, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def _peak(pid: str) -> float:
    found = re.search(rb"VmHWM:\s+(\d+) kB", _read(pid, "status"))
    return int(found[1]) / 1024 if found else 0.0


def _children(pid: int) -> list[str]:
    return _read(str(pid), f"task/{pid}/children").decode().split()


def _cpu_seconds() -> float:
    """Return those of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(model: Path, source: Path, out: Path, workers: int) -> dict[str, Any]:
    """Run the command; return seconds, megabytes, and what it printed."""
    shutil.rmtree(out, ignore_errors=True)
    command = [
        sys.executable,
        "-m",
        "entourage",
        "predict",
        str(model),
        f"{source}/*.parquet",
        "-o",
        str(out),
    ]
    command += ["--workers", str(workers), "--device", "cpu", "--json"]
    begin, used = time.perf_counter(), _cpu_seconds()
    one = {"OMP_NUM_THREADS": "1"}  # as each worker has it; numpy's BLAS reads it when it starts
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ | one)
    peaks = Peaks(process.pid)
    peaks.start()
    told, _ = process.communicate()
    seconds = time.perf_counter() - begin
    peaks.ended.set()
    if process.returncode:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}")
    said = json.loads(told)
    return {
        "workers": workers,
        "rows": said["rows"],
        "parts": said["parts"],
        "seconds": round(seconds, 2),
        "cpu_seconds": round(_cpu_seconds() - used, 2),
        "planning_seconds": round(said["seconds"]["planning"], 2),
        "scoring_seconds": round(said["seconds"]["scoring"], 2),
        "driver_megabytes": round(peaks.driver),
        "worker_megabytes": [round(peak) for peak in peaks.workers.values()],
        "bytes_written": sum(path.stat().st_size for path in out.iterdir()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[10**5, 10**6, 10**7])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--net", choices=NETS, default="set_attention")
    parser.add_argument("--folder", help="where tables are made; by default a temporary folder")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        folder = Path(name)
        model = Ranker(NETS[args.net](), steps=5, device="cpu", random_state=0)
        model.fit(next(tables(20_000, seed=0)), set_id="set", target="place").save(folder / "model")
        for rows in args.rows:
            _, sets, size = write(folder / "in", rows)
            found = []
            for workers in args.workers:
                one = run(folder / "model", folder / "in", folder / "out", workers)
                found.append(one)
                record(
                    {"what": "predict", "net": args.net, "sets": sets, "bytes_read": size}
                    | one
                    | {
                        "seconds_per_million_sets": round(one["seconds"] * 1e6 / sets, 1),
                        "cpu_seconds_per_million_sets": round(one["cpu_seconds"] * 1e6 / sets, 1),
                        "bytes_per_million_sets": round((size + one["bytes_written"]) * 1e6 / sets),
                        "ratio": round(found[0]["seconds"] / one["seconds"], 2),
                        "scoring_ratio": round(found[0]["scoring_seconds"] / one["scoring_seconds"], 2),
                    }
                )
            shutil.rmtree(folder / "in")


if __name__ == "__main__":
    main()
