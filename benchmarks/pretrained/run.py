"""The fits of the table: over several processes, a row of each written as it comes."""

import json
import time
import traceback
import warnings
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

from benchmarks.pretrained.draws import draw, room
from benchmarks.pretrained.models import MODELS, Skipped
from benchmarks.pretrained.scores import scores_of
from benchmarks.pretrained.tables import load_table
from benchmarks.real.rows import machine, versions
from entourage.training.parallel import Future, first_done, open_pool

__all__ = ["SETS", "Job", "fit_one", "list_jobs", "read_rows", "run_jobs"]

#: How many labelled sets.
SETS = (16, 32, 100, 300, 1000)


class Job(NamedTuple):
    """A fit: which model on which draw."""

    table: str
    sets: int
    seed: int
    model: str


def list_jobs(
    tables: list[str], sets: list[int], seeds: list[int], models: list[str], data: Path
) -> list[Job]:
    """Return all fits, draw by draw, so that a run that is cut off is balanced; say which don't apply."""
    room_of = {name: room(load_table(name, data)) for name in tables}
    fits = {name: [n for n in sets if n <= room_of[name]] for name in tables}
    for name in tables:
        for n in sorted(set(sets) - set(fits[name])):
            print(
                f"{name}: {n} labelled sets are left out; people who are not held out have {room_of[name]}."
            )
    no_situation = [name for name in tables if load_table(name, data).sets.situation is None]
    return [
        Job(name, n, seed, model)
        for seed in seeds
        for model in models
        for name in tables
        for n in fits[name]
        if not (model == "ridge interacted" and name in no_situation)
    ]


def fit_one(job: Job, data: Path) -> dict[str, Any] | str:
    """Do one fit and return its row; why there is none, as text."""
    torch.set_num_threads(1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            table = load_table(job.table, data)
            train, test = draw(table, job.sets, job.seed)
            start = time.perf_counter()
            scored = MODELS[job.model](table, train, test, job.seed)
            seconds = time.perf_counter() - start
            found = scores_of(table.kind, table.sets[test], scored.utilities)
    except Skipped as reason:
        return f"skipped: {reason}"
    except Exception as error:
        return f"FAILED: {type(error).__name__}: {error}\n{traceback.format_exc()}"
    return {
        **job._asdict(),
        "scores": {name: round(value, 6) for name, value in found.items()},
        "seconds": round(seconds, 3),
        "settings": scored.settings,
        "test_sets": len(test),
        "machine": machine(),
        "versions": versions(),
    }


def run_jobs(
    jobs: list[Job], data: Path, rows: Path, *, workers: int = 1, seconds: float | None = None
) -> int:
    """Do fits and append a row of each as it comes; begin none after so many seconds. Return how many were done."""
    begin, done, waiting = time.monotonic(), 0, list(reversed(jobs))
    refused: dict[tuple[str, str], str] = {}
    rows.parent.mkdir(parents=True, exist_ok=True)
    with (
        open_pool(partial(fit_one, data=data), max(1, min(workers, len(jobs)))) as pool,
        rows.open("a") as file,
    ):
        running: dict[Future[dict[str, Any] | str], Job] = {}
        while waiting or running:
            in_time = seconds is None or time.monotonic() - begin < seconds
            while waiting and in_time and len(running) < pool.workers:
                job = waiting.pop()
                if (job.table, job.model) not in refused:
                    running[pool.submit(job)] = job
            if not running:
                break
            for future in first_done(running):
                job, row = running.pop(future), future.result()
                passed = f"{time.monotonic() - begin:.0f} s, {len(waiting)} to do"
                if isinstance(row, str):
                    if row.startswith("skipped"):
                        refused[job.table, job.model] = row
                    print(*job, row, f"({passed})", flush=True)
                    continue
                file.write(json.dumps(row) + "\n")
                file.flush()
                done += 1
                print(*job, row["scores"], f"{row['seconds']} s ({passed})", flush=True)
    if waiting:
        print(
            f"Stopped after {time.monotonic() - begin:.0f} s: {len(waiting)} fits have no row. Run it again to go on."
        )
    return done


def read_rows(path: Path) -> dict[Job, dict[str, Any]]:
    """Return the last row of each fit."""
    lines = path.read_text().splitlines() if path.exists() else []
    found = [json.loads(line) for line in lines if line.strip()]
    return {Job(row["table"], row["sets"], row["seed"], row["model"]): row for row in found}
