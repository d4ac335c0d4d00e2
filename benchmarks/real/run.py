"""The fits of the table: one after another or side by side, a row of each written as it comes."""

import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.real import aslib, car_choice, formula1, mq2008, race_task, ranch, swissmetro, yoochoose
from benchmarks.real.parts import Outcome, Settings
from benchmarks.real.rows import Key, row_of, write
from entourage.training.parallel import open_pool

__all__ = ["TASKS", "fit_one", "run_jobs"]

TASKS = {
    module.TASK.name: module.TASK
    for module in (mq2008, formula1, ranch, swissmetro, car_choice, yoochoose, aslib, race_task)
}


def fit_one(key: Key, data: Path, budget: float | None, quick: bool) -> tuple[Outcome | str, float]:
    """Do one fit; an error is returned as text, so that the others go on."""
    torch.set_num_threads(1)
    name, part, fold, model = key
    task = TASKS[name]
    seconds = task.budget if budget is None else budget
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            settings = Settings(budget=seconds, seed=fold, quick=quick)
            return task.models[model].run(task, task.load(data, part), fold, settings), seconds
    except Exception as error:
        return f"{type(error).__name__}: {error}", seconds


def run_jobs(
    jobs: list[Key],
    data: Path,
    out: Path,
    *,
    budget: float | None = None,
    workers: int = 1,
    quick: bool = False,
) -> list[dict[str, Any]]:
    """Do fits, and write a row of each as it comes."""
    rows = []
    work = partial(fit_one, data=data, budget=budget, quick=quick)
    begin = time.monotonic()
    with open_pool(work, min(workers, max(1, len(jobs)))) as pool:
        for count, (key, (outcome, seconds)) in enumerate(pool.run(jobs), start=1):
            passed = f"{count} of {len(jobs)}, {time.monotonic() - begin:.0f} s"
            if isinstance(outcome, str):
                print(*key, "FAILED:", outcome, f"({passed})", flush=True)
                continue
            rows.append(row_of(key, outcome, seconds, quick))
            write(out, rows[-1], outcome.values)
            print(*key, rows[-1]["metrics"], f"{rows[-1]['seconds']} s ({passed})", flush=True)
    return rows
