"""What `torch.compile` saves of a training step on a CPU, and what it costs first: ``python -m benchmarks.compiled``.

Steps of 256 sets of 5, plain and compiled in turns in one process. Results in ``results/compiled.json``.
"""

import json
import platform
import statistics
import time
from pathlib import Path

import numpy as np
import torch
import torch._inductor.config

from entourage import FATE, FETA, ContextFree, Ranker, __version__
from entourage.data import make_medoid
from entourage.losses import find_loss
from entourage.training.loop import Run

RESULTS = Path(__file__).parent / "results"
STEPS = 60


def prepare(net, *, compile: bool):
    """Return a function that does some steps, and the seconds until the first was done."""
    X, ranks = make_medoid(10_000, random_state=0)
    model = Ranker(net, steps=10**6, validation=0, compile=compile, random_state=0, device="cpu")
    start = model.prepare(X, ranks, None, None)
    run = Run(start.scorer, find_loss("hinge"), start.data, start.plan, None)
    batches = start.data.epoch(256, np.random.default_rng(0))[:-1]  # full ones

    def steps(count: int) -> float:
        begin = time.perf_counter()
        for i in range(count):
            run.one_step(batches[i % len(batches)])
        run.recent.clear()
        return (time.perf_counter() - begin) / count

    first = steps(1)
    assert run.update.compiled is None or run.update.compiled.possible
    steps(10)
    return steps, first


def main() -> None:
    torch._inductor.config.force_disable_caches = True  # the first time, not what an earlier run has left
    rows = []
    for net in (FATE(), FETA(), ContextFree()):
        plain, _ = prepare(net, compile=False)
        compiled, first = prepare(net, compile=True)
        taken = [(plain(STEPS), compiled(STEPS)) for _ in range(5)]
        before, after = (statistics.median(times) for times in zip(*taken, strict=True))
        pays = first / (before - after) if after < before else None
        rows.append(
            {
                "net": repr(net),
                "plain_ms": round(1e3 * before, 3),
                "compiled_ms": round(1e3 * after, 3),
                "ratio": round(before / after, 2),
                "start_s": round(first, 1),
                "pays_from_steps": None if pays is None else round(pays),
            }
        )
        print(rows[-1], flush=True)
    about = {
        "machine": platform.machine(),
        "threads": torch.get_num_threads(),
        "versions": {"entourage": __version__, "torch": torch.__version__},
        "rows": rows,
    }
    (RESULTS / "compiled.json").write_text(json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    main()
