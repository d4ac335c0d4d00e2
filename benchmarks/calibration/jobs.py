"""Simulated data sets side by side: one row each, kept as it comes, so that a run that is stopped goes on."""

import argparse
import json
import os
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from scipy.stats import binomtest

from entourage.training.parallel import open_pool

RESULTS = Path(__file__).parents[1] / "results"


def arguments(
    what: str, *, data_sets: int, more: Callable[[argparse.ArgumentParser], None] | None = None
) -> argparse.Namespace:
    """Read the options that all calibrations have; ``more`` adds others."""
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("--data-sets", type=int, default=data_sets, help="simulated data sets a scenario")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no data set after so long")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder of the rows")
    if more is not None:
        more(parser)
    return parser.parse_args()


def run_jobs(
    simulate: Callable[..., dict[str, Any]],
    jobs: Iterable[dict[str, Any]],
    path: Path,
    *,
    workers: int,
    seconds: float = float("inf"),
) -> list[dict[str, Any]]:
    """Call ``simulate(**job)`` for each job that has no row in ``path`` yet; return the rows of all that have.

    A row is the job with what the function returned. ``simulate`` must be a function of a module, since other
    processes import it; each runs in one thread.
    """
    wanted = list(jobs)
    done = {_key(row, wanted[0]): row for row in _read(path)}
    todo = [job for job in wanted if _key(job, job) not in done]
    path.parent.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    torch.set_num_threads(1)  # of this process, which is the worker where there is one
    with open_pool(partial(_before, begin + seconds, simulate), workers) as pool:
        for count, (job, found) in enumerate(pool.run(todo)):
            if found is None:
                continue
            row = job | found
            done[_key(row, job)] = row
            with path.open("a") as file:
                file.write(json.dumps(row) + "\n")
            if count % max(1, len(todo) // 20) == 0:
                passed = time.monotonic() - begin
                print(f"{count + 1} of {len(todo)}, {passed:.0f} s", flush=True)
    return [done[_key(job, job)] for job in wanted if _key(job, job) in done]


def rate(flags: Iterable[bool]) -> tuple[float, float, float]:
    """Return a share with its exact (Clopper-Pearson) 95 % interval."""
    given = list(flags)
    if not given:
        return float("nan"), 0.0, 1.0
    ends = binomtest(sum(given), len(given)).proportion_ci(0.95)
    return sum(given) / len(given), float(ends.low), float(ends.high)


def _before(
    end: float, simulate: Callable[..., dict[str, Any]], job: dict[str, Any]
) -> dict[str, Any] | None:
    """Simulate unless the time is up, by the clock of the machine, which all processes share."""
    return simulate(**job) if time.monotonic() < end else None


def _read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _key(row: dict[str, Any], job: dict[str, Any]) -> str:
    return json.dumps({name: row.get(name) for name in sorted(job)})
