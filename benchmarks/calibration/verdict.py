"""How far the verdict on context can be trusted: ``python -m benchmarks.verdict [--data-sets 200]``.

Simulates small data sets: 120 sets of 4 to 6 objects with 3 features, ranked by a nonlinear utility of
each object plus Gumbel noise. *Without* any effect of context, the share of data sets in which
`entourage.comparison.compare` finds one at the 5 % level is its rate of false positives; it comes with
an exact (Clopper-Pearson) 95 % interval. With the distance to the middle of the set added to the
utility, times a strength, that share is the power; there are an eighth as many data sets a strength.

Models are small, since it is the test that is judged and not they. Rows are kept in
``results/verdict.json`` as they come; what is found there, of the same settings, is not done again.
"""

import argparse
import json
import math
import multiprocessing
import os
import platform
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from scipy.stats import binomtest

from entourage import FATE, FETA, ContextFree, Ranker, __version__
from entourage.baselines import RankSVM
from entourage.comparison import Candidates, compare
from entourage.data import Sets
from entourage.files import write_atomically
from entourage.intervals import sign_flip_p_value
from entourage.nets.alone import Alone

LEVEL = 0.05
N_SETS = 120
SIZES = (4, 5, 6)
NOISE = 0.5  # the scale of the Gumbel noise
WIDTH = 32
TRAINING: dict[str, Any] = {"steps": 30, "batch_size": 64, "learning_rate": 0.02, "validation": 0.0}
FOLDS: dict[str, int] = {"folds": 5, "inner": 3}  # as compare has them
STRENGTHS = (0.0, 0.5, 1.0, 2.0, 4.0)


def simulate(strength: float, seed: int) -> Sets:
    """Draw sets in which an object is worth its own utility and, times ``strength``, its remoteness."""
    rng = np.random.default_rng([seed, round(1000 * strength)])
    objects, ranks = [], []
    for size in rng.choice(SIZES, N_SETS):
        x = rng.standard_normal((size, 3))
        alone = np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] / 2
        remoteness = np.linalg.norm(x - x.mean(0), axis=1)
        utility = alone + strength * remoteness + NOISE * rng.gumbel(size=size)
        objects.append(x)
        ranks.append(np.argsort(np.argsort(-utility)))
    return Sets.from_list(objects, ranks)


def small_candidates() -> Candidates:
    """Return the defaults of `compare`, narrow and briefly trained, without boosted trees."""

    def net(which: Any) -> Ranker:
        return Ranker(which, device="cpu", **TRAINING)

    return {
        "linear": (RankSVM(), "context-free"),
        "ContextFree": (net(ContextFree(WIDTH)), "context-free"),
        "FATE, alone": (net(Alone(FATE(WIDTH))), "context-free"),
        "FETA, alone": (net(Alone(FETA(WIDTH))), "context-free"),
        "FATE": (net(FATE(WIDTH)), "context"),
        "FETA": (net(FETA(WIDTH)), "context"),
    }


def run(strength: float, seed: int) -> dict[str, Any]:
    torch.set_num_threads(1)
    begin = time.perf_counter()
    found = compare(
        simulate(strength, seed),
        small_candidates(),
        metrics=(),
        level=LEVEL,
        random_state=seed,
        **FOLDS,
    )
    return {
        "strength": strength,
        "seed": seed,
        "gain": found.gain,
        "interval": list(found.interval),
        "p_value": found.p_value,
        "uncorrected_p_value": sign_flip_p_value(found.differences),
        "chosen": found.chosen,
        "means": {name: means["ranking_accuracy"] for name, means in found.means.items()},
        "seconds": round(time.perf_counter() - begin, 2),
    }


def summarize(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each strength: how often context was found to matter, with an exact binomial interval."""
    summary = []
    for strength in sorted({row["strength"] for row in rows}):
        mine = [row for row in rows if row["strength"] == strength]
        found = sum(row["p_value"] <= LEVEL for row in mine)
        ends = binomtest(found, len(mine)).proportion_ci(0.95, method="exact")
        summary.append(
            {
                "strength": strength,
                "data_sets": len(mine),
                "found": found,
                "found_uncorrected": sum(row["uncorrected_p_value"] <= LEVEL for row in mine),
                "share": found / len(mine),
                "interval": [ends.low, ends.high],
                "mean_gain": float(np.mean([row["gain"] for row in mine])),
                "seconds": float(np.mean([row["seconds"] for row in mine])),
            }
        )
    return summary


def show(summary: list[dict[str, Any]]) -> None:
    table = Table(
        "strength of context",
        "data sets",
        "found to matter",
        "95 % interval",
        "mean gain",
        "seconds each",
        title=f"verdicts at the {100 * LEVEL:g} % level; strength 0: false positives",
    )
    for row in summary:
        low, high = row["interval"]
        table.add_row(
            f"{row['strength']:g}",
            str(row["data_sets"]),
            f"{row['found']} ({100 * row['share']:.1f} %)",
            f"{100 * low:.1f} to {100 * high:.1f} %",
            f"{row['mean_gain']:+.4f}",
            f"{row['seconds']:.1f}",
        )
    Console(width=110).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data-sets", type=int, default=200, help="without an effect of context")
    parser.add_argument("--power-data-sets", type=int, help="for each strength; by default an eighth")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "verdict.json")
    options = parser.parse_args()
    few = options.power_data_sets
    few = math.ceil(options.data_sets / 8) if few is None else few
    settings = {
        "level": LEVEL,
        "n_sets": N_SETS,
        "sizes": list(SIZES),
        "noise": NOISE,
        "candidates": {name: [repr(model), kind] for name, (model, kind) in small_candidates().items()},
        **FOLDS,
    }
    python = platform.python_version()
    versions = {"entourage": __version__, "torch": torch.__version__, "python": python}
    rows: list[dict[str, Any]] = []
    if options.out.exists():
        earlier = json.loads(options.out.read_text())
        if (earlier["settings"], earlier["versions"]) == (settings, versions):
            rows = earlier["rows"]
        else:
            print(f"{options.out} is of other settings or versions and will be replaced.")
    wanted = [(0.0, seed) for seed in range(options.data_sets)]
    wanted += [(strength, seed) for strength in STRENGTHS if strength for seed in range(few)]
    done = {(row["strength"], row["seed"]) for row in rows}
    left = [job for job in wanted if job not in done]

    def keep() -> None:
        content = {
            "command": f"python -m benchmarks.verdict --data-sets {options.data_sets}",
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, {options.workers} processes",
            "versions": versions,
            "settings": settings,
            "summary": summarize(rows),
            "rows": sorted(rows, key=lambda row: (row["strength"], row["seed"])),
        }
        write_atomically(options.out, (json.dumps(content, indent=1) + "\n").encode())

    os.environ["OMP_NUM_THREADS"] = "1"  # of the processes to come, or they slow each other down
    options.out.parent.mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.workers, mp_context=context) as pool:
        for i, future in enumerate(as_completed([pool.submit(run, *job) for job in left])):
            rows.append(future.result())
            keep()
            if (i + 1) % 20 == 0:
                print(f"{i + 1} of {len(left)} data sets", flush=True)
    show(summarize(rows))


if __name__ == "__main__":
    main()
