"""Logit models of many choices: ``python -m benchmarks.many_choices [model ...]``, on one CPU thread.

Choices from sets of 5 alternatives with 6 features, 100,000 and 1,000,000 of them: seconds of a fit, how much memory it
takes at its peak beside the data, and how far the estimates are from the truth, in standard errors. Each fit runs in a
process of its own. Rows in ``results/many_choices.jsonl``.
"""

import json
import os
import platform
import subprocess
import sys
import time
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
)
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


def measure(name: str, n: int) -> dict[str, Any]:
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
    before, start = peak_megabytes(), time.perf_counter()
    model.fit(sets, groups=who)
    seconds, memory = time.perf_counter() - start, peak_megabytes() - before
    found = {"model": name, "choices": n, "seconds": seconds, "megabytes": memory, "data_megabytes": data}
    if name.startswith("M"):
        truth = np.append(TRUTH, 1.0)[
            : len(model.coef_)
        ]  # a random coefficient has a standard deviation of 1
        found["largest_z"] = float(np.abs((model.coef_ - truth) / model.standard_errors_).max())
    return found | {"converged": bool(model.converged_), "machine": platform.machine()}


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[2].isdigit():
        print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
        sys.exit()
    for name in sys.argv[1:] or MODELS:
        for n in SIZES:
            run = [sys.executable, "-m", "benchmarks.many_choices", name, str(n)]
            done = subprocess.run(
                run, capture_output=True, text=True, check=False, env=os.environ | {"OMP_NUM_THREADS": "1"}
            )
            row = done.stdout.strip() or json.dumps(
                {"model": name, "choices": n, "error": done.stderr[-300:]}
            )
            print(row, flush=True)
            with RESULTS.open("a") as file:
                file.write(row + "\n")
