"""A row of ``benchmarks/results/scale.jsonl``: what was measured, with which versions, on which machine, how busy."""

import json
import os
import platform
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch

from entourage import __version__

RESULTS = Path(__file__).parents[1] / "results" / "scale.jsonl"


def record(row: dict[str, Any]) -> None:
    """Print a row and append it to the results."""
    cores = os.cpu_count() or 1
    row = row | {
        "machine": f"{platform.machine()}, {cores} cores",
        "load": round(os.getloadavg()[0], 1),
        "versions": {"entourage": __version__, "torch": torch.__version__, "pyarrow": pa.__version__},
    }
    line = json.dumps(row)
    print(line, flush=True)
    with RESULTS.open("a") as file:
        file.write(line + "\n")
