"""How long Entourage takes to start: ``python -m benchmarks.start``.

Whole processes, run in turns: Python alone, ``import entourage``, ``entourage --help`` and, beside them, ``import
numpy``. Seconds of wall clock and of CPU, the least and the median; on a busy machine the least wall time and the CPU
time say more. Rows, with ratios to Python alone and to numpy, in ``results/start.json``.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from entourage import __version__

RESULTS = Path(__file__).parent / "results"
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import numpy": ["-c", "import numpy"],
    "import entourage": ["-c", "import entourage"],
    "entourage --help": ["-m", "entourage", "--help"],
    "entourage fit --help": ["-m", "entourage", "fit", "--help"],
}
TARGETS = {"import entourage": 0.15, "entourage --help": 0.4}  # seconds


def one_start(arguments: list[str]) -> tuple[float, float]:
    """Return the seconds of wall clock and of CPU of one process."""
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"python {' '.join(arguments)} ended with code {process.returncode}.")
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime


def rows_of(repeats: int) -> list[dict[str, object]]:
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in COMMANDS}
    for turn in range(repeats + 1):  # the first turn writes bytecode, and doesn't count
        for name, arguments in COMMANDS.items():
            figures = one_start(arguments)
            if turn:
                times[name].append(figures)
    rows: list[dict[str, object]] = []
    for name, figures in times.items():
        wall, cpu = zip(*figures, strict=True)
        rows.append(
            {
                "what": name,
                "wall_s": {"least": round(min(wall), 3), "median": round(statistics.median(wall), 3)},
                "cpu_s": {"least": round(min(cpu), 3), "median": round(statistics.median(cpu), 3)},
                "cpu_to_python": round(min(cpu) / min(c for _, c in times["python -c pass"]), 1),
                "cpu_to_numpy": round(min(cpu) / min(c for _, c in times["import numpy"]), 1),
                "target_s": TARGETS.get(name),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=20)
    rows = rows_of(parser.parse_args().repeats)
    print(
        f"{'':22}{'wall: least':>12}{'median':>9}{'CPU: least':>12}{'to python':>11}{'to numpy':>10}{'target':>9}"
    )
    for row in rows:
        wall, cpu = row["wall_s"], row["cpu_s"]
        target = f"< {row['target_s']}" if row["target_s"] else ""
        print(
            f"{row['what']:22}{wall['least']:>10.3f} s{wall['median']:>7.3f} s{cpu['least']:>10.3f} s"
            f"{row['cpu_to_python']:>11}{row['cpu_to_numpy']:>10}{target:>9}"
        )
    content = {
        "command": "python -m benchmarks.start",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}; load {os.getloadavg()[0]:.1f}",
        "versions": {"entourage": __version__, "python": platform.python_version()},
        "rows": rows,
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "start.json").write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
