"""Statement and branch coverage of each room, by ``make coverage``; fails where the core has too little.

The core is what computes a figure that users are shown: data, tasks, nets, training, estimators, selection, effects,
decisions, choice, and what they stand on. Other rooms are measured and shown, but have no bound here: commands and the
paper's experiments are run by tests of their own kind, servers, Ray and the training of the pretrained net by
``make heavy-tests``, ``make browser`` and ``make ray``, which aren't part of this measurement.
"""

import json
import sys
import tempfile
from collections import Counter
from pathlib import Path

from coverage import Coverage
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "coverage.jsonl"
KEYS = ("statements", "statements_covered", "branches", "branches_covered")
LEAST = 95.0  # percent, of statements and of branches
CORE = (
    "errors",
    "data",
    "tasks",
    "nets",
    "training",
    "report",
    "pretrained",
    "estimators",
    "choice",
    "selection",
    "effects",
    "decisions",
)
#: Files of these rooms that ``make test`` can't run, and what runs them instead.
LEFT_OUT = {
    "data/synthetic/boxes.py": "compiled by numba, whose lines can't be seen; make test compares it with pygmo",
    "data/synthetic/front_geometry.py": "compiled by numba, likewise",
    "nets/attention_triton.py": "kernels of a GPU; make heavy-tests runs them in Triton's interpreter",
    "nets/pairs_triton.py": "kernels of a GPU, likewise",
    "nets/triton_parts.py": "what these kernels share",
    "training/cuda_graphs.py": "records kernels of a GPU; benchmarks.gpu runs it on one",
    "training/processes.py": "several processes that train together; make ray starts them",
}


def room_of(file: str) -> str:
    """Return the room of a file, given below ``src/entourage``."""
    return file.split("/")[0].removesuffix(".py")


def counts_of(files: dict[str, dict]) -> list[dict]:
    """Return a row for each room: the core in the order of its layers, all of it together, then the others."""
    rooms: dict[str, Counter] = {}
    for path, found in files.items():
        file = path.replace("\\", "/").split("src/entourage/")[-1]
        if file in LEFT_OUT:
            continue
        summary = found["summary"]
        own = rooms.setdefault(room_of(file), Counter())
        own["statements"] += summary["num_statements"]
        own["statements_covered"] += summary["covered_lines"]
        own["branches"] += summary["num_branches"]
        own["branches_covered"] += summary["covered_branches"]
    core = sum((rooms[room] for room in CORE), Counter())
    others = sorted(set(rooms) - set(CORE) - {"__init__", "__main__"})
    every = [(room, True, rooms[room]) for room in CORE]
    every += [("the core", True, core), *((room, False, rooms[room]) for room in others)]
    return [{"room": room, "core": inside} | {key: own[key] for key in KEYS} for room, inside, own in every]


def percent(row: dict, what: str) -> float:
    """Return the percentage of a row that is covered; 100 where there is nothing to cover."""
    return 100.0 * row[f"{what}_covered"] / row[what] if row[what] else 100.0


def shown(rows: list[dict]) -> Table:
    """Return the rows as a table for the terminal."""
    table = Table(
        "room", "statements", "covered", "branches", "covered", title="Coverage of make test, by room"
    )
    for row in rows:
        cells = (f"{row['statements']:,}", f"{percent(row, 'statements'):.1f} %")
        cells += (f"{row['branches']:,}", f"{percent(row, 'branches'):.1f} %")
        table.add_row(row["room"], *cells, style="bold" if row["room"] == "the core" else None)
    return table


def main() -> int:
    """Print and keep the table; return 1 where the core has too little."""
    found = Coverage(config_file=str(ROOT / "pyproject.toml"))
    found.load()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "coverage.json"
        found.json_report(outfile=str(report))
        rows = counts_of(json.loads(report.read_text())["files"])
    Console(width=100).print(shown(rows))
    RESULTS.write_text("".join(json.dumps(row) + "\n" for row in rows))
    core = next(row for row in rows if row["room"] == "the core")
    short = [what for what in ("statements", "branches") if percent(core, what) < LEAST]
    for what in short:
        sys.stderr.write(
            f"{percent(core, what):.1f} % of the core's {what} are covered; {LEAST:g} % are needed. "
            ".venv/bin/coverage report --show-missing says which are not.\n"
        )
    return int(bool(short))


if __name__ == "__main__":
    sys.exit(main())
