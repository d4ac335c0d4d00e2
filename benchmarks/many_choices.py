"""Logit models of many choices: ``python -m benchmarks.many_choices [model ...] [--once]``, on one CPU thread.

Choices from sets of 5 alternatives with 6 features, 100,000 and 1,000,000 of them: seconds of a fit (by the clock, and
of the processor, which other work doesn't slow), how much memory it takes at its peak beside the data, and how far the
estimates are from the truth, in standard errors. Each fit runs in a process of its own. With ``--once`` a fit ends
where it begins: it computes the likelihood and its gradient a few times, but takes no step (one of EM for latent
classes), and leaves out the Hessian where that is found by differences of gradients. That tells the memory of a fit,
and the seconds of a gradient.
Rows in ``results/many_choices.jsonl``.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import peak_megabytes
from entourage.choice import (
    ContextualLogit,
    CrossNestedLogit,
    LatentClassLogit,
    LinearContextLogit,
    MixedLogit,
    MultinomialLogit,
    NestedLogit,
    RandomRegret,
    batches,
    latent,
)
from entourage.choice.batches import Batches
from entourage.data import Sets

RESULTS = Path(__file__).parent / "results" / "many_choices.jsonl"
TRUTH = np.array([1.0, -0.8, 0.5, -0.3, 0.2, 0.0])
MODELS: dict[str, Any] = {
    "MultinomialLogit": lambda: MultinomialLogit(),
    "LinearContextLogit": lambda: LinearContextLogit(),
    "ContextualLogit": lambda: ContextualLogit(),
    "RandomRegret": lambda: RandomRegret(),
    "NestedLogit": lambda: NestedLogit([[1, 2], [3, 4]]),
    "CrossNestedLogit": lambda: CrossNestedLogit([[1, 2], [2, 3, 4]]),
    "LatentClassLogit": lambda: LatentClassLogit(2, restarts=1),
    "MixedLogit, 100 draws": lambda: MixedLogit([0], draws=100),
    "MixedLogit, 100 draws, 10 choices a person": lambda: MixedLogit([0], draws=100),
}
SIZES = (100_000, 1_000_000)


def measure(name: str, n: int, once: bool) -> dict[str, Any]:
    """Simulate so many choices, and fit the model."""
    rng = np.random.default_rng(0)
    who = np.arange(n) // 10 if name.endswith("a person") else None
    people = np.arange(n) if who is None else who
    x = rng.normal(size=(n, 5, 6))
    taste = np.tile(TRUTH, (n, 1))
    if name.startswith("Mixed"):
        taste[:, 0] += rng.normal(size=people[-1] + 1)[people]
    elif name == "LatentClassLogit":
        taste[rng.random(n) < 0.3] *= -1
    u = np.einsum("nmd,nd->nm", x, taste) + rng.gumbel(size=(n, 5))
    chosen = u.argmax(1)
    if name.endswith("NestedLogit"):
        x = np.concatenate([np.tile(np.arange(1.0, 6)[None, :, None], (n, 1, 1)), x], axis=2)
    targets = np.ones((n, 5))
    targets[np.arange(n), chosen] = 0
    sets = Sets(x.reshape(-1, x.shape[2]), np.arange(n + 1) * 5, targets.ravel(), worst=1.0)
    data = sets.objects.nbytes / 2**20
    del x, u, taste, targets
    model = MODELS[name]()
    model.fit(
        sets[:1000], groups=None if who is None else who[:1000]
    )  # what is imported at first use is not the fit's doing
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    counted = Counter[str]()
    total = Batches.total

    def counting(*given: Any) -> Any:
        counted["gradients"] += (
            getattr(given[1], "__self__", None) is model
        )  # not of the logit where it begins
        return total(*given)

    Batches.total = counting
    if once:
        model._max_iter = 0
        latent.QUICK = 1  # EM steps
        batches.slopes_by_differences = lambda gradient, theta, steps: np.diag(np.abs(gradient(theta)) + 1)
    before, start, worked = peak_megabytes(), time.perf_counter(), time.process_time()
    with warnings.catch_warnings(action="ignore" if once else "default"):
        model.fit(sets, groups=who)
    found = {"model": name, "choices": n, "steps": "none" if once else "all"}
    found |= {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - worked}
    found |= {
        "gradients": counted["gradients"],
        "megabytes": peak_megabytes() - before,
        "data_megabytes": data,
    }
    if name.startswith("M") and not once:
        truth = np.append(TRUTH, 1.0)[
            : len(model.coef_)
        ]  # a random coefficient has a standard deviation of 1
        found["largest_z"] = float(np.abs((model.coef_ - truth) / model.standard_errors_).max())
    return found | {"converged": bool(model.converged_), "machine": platform.machine()}


def main() -> None:
    """Measure each model in a process of its own."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model", nargs="*", help="all by default")
    parser.add_argument("--choices", type=int, nargs="*", default=SIZES)
    parser.add_argument("--once", action="store_true", help="take no step")
    parser.add_argument("--here", action="store_true", help="in this process")
    options = parser.parse_args()
    if options.here:
        print(json.dumps(measure(options.model[0], options.choices[0], options.once)))
        return
    for name in options.model or MODELS:
        for n in options.choices:
            run = [sys.executable, "-m", "benchmarks.many_choices", name, "--choices", str(n), "--here"]
            done = subprocess.run(
                run + ["--once"] * options.once,
                capture_output=True,
                text=True,
                check=False,
                env=os.environ | {"OMP_NUM_THREADS": "1"},
            )
            error = {"model": name, "choices": n, "error": done.stderr[-300:]}
            row = done.stdout.strip() or json.dumps(error)
            print(row, flush=True)
            with RESULTS.open("a") as file:
                file.write(row + "\n")


if __name__ == "__main__":
    main()
