"""Simulated worlds, of which the oracle is known: ``python -m benchmarks.pretrained.simulated``.

What share of the oracle's gain in log-likelihood over uniform choices does each model reach, from 300 labelled sets? In
all worlds, and in those where a family of the prior takes part. Worlds come in batches of one number of objects and of
columns; their seeds are not those of pretraining. Rows are appended as they come, as in ``benchmarks.pretrained``.
"""

import argparse
import importlib.util
import json
import os
import time
import warnings
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks.pretrained.models import MODELS, Skipped
from benchmarks.pretrained.scores import main_values
from benchmarks.pretrained.tables import Table
from benchmarks.real.rows import machine, versions
from entourage.data.sets import Sets
from entourage.training.parallel import map_in_order

__all__ = ["Job", "fit_one", "main", "print_shares", "worlds_of"]

ROWS = Path(__file__).parents[1] / "results" / "pretrained_simulated.jsonl"
BATCH = 8  # worlds of one shape
FIRST_SEED = 1_800_000_000  # of the generators here
LABELLED, TESTED = 300, 300
SHAPES = ((3, 2), (3, 6), (4, 4), (5, 3), (5, 10), (6, 16), (8, 6), (2, 5))  # objects, columns
DEFAULT = ("uniform", "ridge", "ridge contextual", "ContextFree", "FATE", "pretrained", "pretrained+")


class Job(NamedTuple):
    """A fit: which model in which world, with how many labelled sets."""

    world: int
    sets: int
    model: str


class Simulated(NamedTuple):
    """A world as a table; the oracle's log-likelihood of each set, the context's share, and its families."""

    table: Table
    oracle: np.ndarray[Any, np.dtype[np.float64]]
    share: float
    families: tuple[str, ...]


@cache
def worlds_of(batch: int, sets: int) -> list[Simulated]:
    """Draw a batch of worlds."""
    prior = importlib.import_module("entourage.pretraining.prior")
    objects, columns = SHAPES[batch % len(SHAPES)]
    shape = prior.Shape(worlds=BATCH, sets=sets, objects=objects, columns=columns)
    drawn = prior.draw_worlds(shape, torch.Generator().manual_seed(FIRST_SEED + batch))
    found = []
    for w in range(BATCH):
        table = Table(
            f"world {batch * BATCH + w}",
            "choice",
            Sets.from_array(
                drawn.values[w].double().numpy(), 1.0 - drawn.labels[w].double().numpy()
            ).with_targets(1.0 - drawn.labels[w].double().numpy().ravel(), worst=1.0),
            None,
        )
        present = tuple(
            name
            for name, weight in zip(prior.FAMILIES, drawn.families[w].tolist(), strict=True)
            if weight > 0
        )
        found.append(Simulated(table, drawn.oracle[w].double().numpy(), float(drawn.share[w]), present))
    return found


def fit_one(job: Job, until: float = float("inf")) -> dict[str, Any] | str:
    """Do one fit and return its row; why there is none, as text."""
    if time.time() > until:
        return "no time left"
    torch.set_num_threads(1)
    world = worlds_of(job.world // BATCH, job.sets + TESTED)[job.world % BATCH]
    train, test = np.arange(job.sets), np.arange(job.sets, job.sets + TESTED)
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scored = MODELS[job.model](world.table, train, test, job.world)
    except Skipped as reason:
        return f"skipped: {reason}"
    except Exception as error:
        return f"FAILED: {type(error).__name__}: {error}"
    sets = world.table.sets[test]
    return {
        **job._asdict(),
        "log_likelihood": round(float(main_values("choice", sets, scored.utilities).mean()), 6),
        "oracle": round(float(world.oracle[test].mean()), 6),
        "uniform": round(-float(np.log(sets.sizes).mean()), 6),
        "share": round(world.share, 4),
        "families": list(world.families),
        "seconds": round(time.perf_counter() - start, 3),
        "settings": scored.settings,
        "machine": machine(),
        "versions": versions(),
    }


def print_shares(rows: list[dict[str, Any]]) -> None:
    """Print the share of the oracle's gain that each model reaches, by family; a ratio of sums over worlds."""
    families = dict.fromkeys(name for row in rows for name in row["families"])
    parts: dict[str, list[dict[str, Any]]] = {
        "all": rows,
        "without context": [row for row in rows if row["share"] == 0],
        "with context": [row for row in rows if row["share"] > 0],
        **{name: [row for row in rows if name in row["families"]] for name in families},
    }
    for n in sorted({row["sets"] for row in rows}):
        models = [name for name in MODELS if any(row["model"] == name and row["sets"] == n for row in rows)]
        print(
            f"\n## Share of the oracle's gain over uniform, {n} labelled sets (worlds that all models have)"
        )
        print(f"{'':20}{'worlds':>8}" + "".join(f"{name:>18}" for name in models))
        for part, those in parts.items():
            by = {
                name: {r["world"]: r for r in those if r["model"] == name and r["sets"] == n}
                for name in models
            }
            common = set.intersection(*(set(found) for found in by.values()))
            if not common:
                continue
            line = f"{part:20}{len(common):>8}"
            for name in models:
                gain = sum(by[name][w]["log_likelihood"] - by[name][w]["uniform"] for w in common)
                most = sum(by[name][w]["oracle"] - by[name][w]["uniform"] for w in common)
                line += f"{gain / most:>18.3f}"
            print(line)


def main(given: list[str] | None = None) -> None:
    """Read the options, do the fits that have no row, print the shares."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pretrained.simulated", description=__doc__)
    parser.add_argument("--model", choices=list(MODELS), action="append")
    parser.add_argument("--worlds", type=int, default=128)
    parser.add_argument("--sets", type=int, default=LABELLED, help="labelled sets of a world")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="begin no fit after so many seconds"
    )
    parser.add_argument("--rows", type=Path, default=ROWS)
    parser.add_argument("--again", action="store_true", help="do fits anew that have a row")
    parser.add_argument("--show", action="store_true", help="only print the table")
    args = parser.parse_args(given)
    os.environ["OMP_NUM_THREADS"] = "1"  # of the workers
    if importlib.util.find_spec("entourage.pretraining") is None and not args.show:
        parser.error("this version has no entourage.pretraining: there is no prior to draw worlds from")
    read = _read(args.rows)
    jobs = [Job(world, args.sets, model) for world in range(args.worlds) for model in args.model or DEFAULT]
    jobs = [job for job in jobs if not args.show and (args.again or job not in read)]
    args.rows.parent.mkdir(parents=True, exist_ok=True)
    work = partial(fit_one, until=time.time() + args.seconds)
    told: set[str] = set()
    for job, row in zip(jobs, map_in_order(work, jobs, workers=args.workers), strict=True):
        if isinstance(row, str):
            if row not in told:
                print(*job, row, flush=True)
            told.add(row)
            continue
        with args.rows.open("a") as file:
            file.write(json.dumps(row) + "\n")
    print_shares(list(_read(args.rows).values()))


def _read(path: Path) -> dict[Job, dict[str, Any]]:
    lines = path.read_text().splitlines() if path.exists() else []
    rows = [json.loads(line) for line in lines if line.strip()]
    return {Job(row["world"], row["sets"], row["model"]): row for row in rows}


if __name__ == "__main__":
    main()
