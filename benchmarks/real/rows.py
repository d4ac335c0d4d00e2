"""Rows of the table as JSON lines, written as they come; the values of each test set beside them.

A row is (task, part, fold, model) with what came of the fit. Of several rows of one fit the last one holds. The values
of the test sets, by which models are compared with an interval, are lines of a file of their own, compressed.
"""

import base64
import json
import os
import platform
import zlib
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.real.parts import Outcome
from entourage import __version__

__all__ = [
    "ROWS",
    "VALUES",
    "Key",
    "key_of",
    "machine",
    "read_rows",
    "read_values",
    "row_of",
    "versions",
    "write",
]

ROWS, VALUES = "real_tables.jsonl", "real_values.jsonl"
Key = tuple[str, str, int, str]
NO_VALUE = -(2**31)


def key_of(row: dict[str, Any]) -> Key:
    """Say which fit a row is of."""
    return row["task"], row["part"], row["fold"], row["model"]


def row_of(key: Key, outcome: Outcome, budget: float, quick: bool) -> dict[str, Any]:
    """Make the row of a fit."""
    task, part, fold, model = key
    return {
        "task": task,
        "part": part,
        "fold": fold,
        "model": model,
        "metrics": {name: round(value, 6) for name, value in outcome.metrics.items()},
        "seconds": round(outcome.seconds, 2),
        "estimator": outcome.estimator,
        "budget": budget,
        **outcome.extra,
        **({"quick": True} if quick else {}),
        "machine": machine(),
        "threads": torch.get_num_threads(),
        "versions": versions(),
    }


def write(folder: Path, row: dict[str, Any], values: dict[str, NDArray[Any]]) -> None:
    """Append the values, then the row: a row that is there has its values."""
    folder.mkdir(parents=True, exist_ok=True)
    if values:
        line = {name: row[name] for name in ("task", "part", "fold", "model")} | {
            name: _packed(array) for name, array in values.items()
        }
        with (folder / VALUES).open("a") as file:
            file.write(json.dumps(line) + "\n")
    with (folder / ROWS).open("a") as file:
        file.write(json.dumps(row) + "\n")


def read_rows(folder: Path) -> dict[Key, dict[str, Any]]:
    """Return the last row of each fit."""
    return {key_of(row): row for row in _lines(folder / ROWS)}


def read_values(folder: Path, task: str) -> dict[Key, dict[str, NDArray[Any]]]:
    """Return the values of the test sets of each fit of a task: "set", "unit" and its metrics."""
    named = ("task", "part", "fold", "model")
    return {
        key_of(line): {name: _unpacked(text) for name, text in line.items() if name not in named}
        for line in _lines(folder / VALUES)
        if line["task"] == task
    }


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines() if line] if path.exists() else []


def _packed(array: NDArray[Any]) -> str:
    """Write whole numbers by their differences, others to four decimals; both compressed."""
    whole = np.issubdtype(array.dtype, np.integer)
    numbers = (
        np.diff(array, prepend=0) if whole else np.where(np.isnan(array), NO_VALUE, np.round(1e4 * array))
    )
    planes = numbers.astype("<i4").view(np.uint8).reshape(-1, 4).T  # bytes of one weight side by side
    return ("i" if whole else "d") + base64.b64encode(zlib.compress(planes.tobytes(), 9)).decode()


def _unpacked(text: str) -> NDArray[Any]:
    planes = np.frombuffer(zlib.decompress(base64.b64decode(text[1:])), np.uint8).reshape(4, -1)
    numbers = np.ascontiguousarray(planes.T).view("<i4").ravel().astype(np.int64)
    return np.cumsum(numbers) if text[0] == "i" else np.where(numbers == NO_VALUE, np.nan, numbers / 1e4)


@cache
def machine() -> str:
    """Name the processor and count its cores."""
    name = platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [
            line.split(":")[1].strip()
            for line in info.read_text().splitlines()
            if line.startswith("model name")
        ]
        name = models[0] if models else name
    return f"{name}, {os.cpu_count()} cores"


@cache
def versions() -> dict[str, str]:
    """Return the versions of what was used."""
    found = {"entourage": __version__, "python": platform.python_version(), "torch": str(torch.__version__)}
    for name in ("numpy", "scikit-learn", "lightgbm"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "-"
    return found
