"""GPU benchmarks: training steps against a plain eager step, in one process: ``python -m benchmarks.gpu``.

The eager step is what one would write by hand: forward, the same loss, backward, clip, `torch.optim.AdamW`, the
average of the weights. Prints a table of ratios and keeps it, with the machine, in ``results/gpu.json``.
"""

import argparse
import copy
import json
import platform
import statistics
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import torch

from entourage import FATE, FETA, ContextFree, Ranker, SetAttention, __version__
from entourage.batching import Resident
from entourage.data import make_medoid
from entourage.losses import LOSSES
from entourage.sets import Sets
from entourage.training import Run

RESULTS = Path(__file__).parent / "results"
BATCH = 1024


def eager_step(scorer: torch.nn.Module, loss, objects: torch.Tensor, targets: torch.Tensor):
    optimizer = torch.optim.AdamW(scorer.parameters(), lr=0.003, weight_decay=0.1)
    average = copy.deepcopy(scorer)
    there = torch.ones(targets.shape, dtype=torch.bool, device=targets.device)

    def step() -> None:
        scores = scorer(objects)
        value = loss(scores, targets, there).mean()
        optimizer.zero_grad()
        value.backward()
        torch.nn.utils.clip_grad_norm_(scorer.parameters(), 1.0)
        optimizer.step()
        with torch.no_grad():
            for old, new in zip(average.parameters(), scorer.parameters(), strict=True):
                old.lerp_(new, 0.001)

    return step


def milliseconds(step, steps: int) -> float:
    for _ in range(20):
        step()
    times = []
    for _ in range(5):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) / steps)
    return 1e3 * statistics.median(times)


def training_step(net, loss: str, device: torch.device, members: int = 1) -> dict[str, object]:
    X, ranks = make_medoid(10_240, random_state=0)
    data = Resident(Sets.of(X, ranks), device)
    model = Ranker(net, loss=loss, batch_size=BATCH, steps=10**6, members=members, random_state=0)
    from entourage.training import EnsembleRun

    standardise = model._standardizer(Sets.of(X, ranks))
    scorer = model._build(standardise, 0).to(device)
    plain = net.build(2, torch.Generator().manual_seed(0)).to(device)
    run = (Run if members == 1 else EnsembleRun)(scorer, LOSSES[loss], data, model._plan(data, 0), None)
    batches = data.epoch(BATCH, np.random.default_rng(0))
    count = 0

    def ours() -> None:
        nonlocal count
        run.one_step(batches[count % len(batches)])
        count += 1
        run.recent.clear()

    batch = data.batch(batches[0])
    eager = eager_step(plain, LOSSES[loss], batch.objects, batch.targets)
    slow, fast = milliseconds(eager, 100), milliseconds(ours, 500)
    assert run.graphs is not None
    return {
        "what": f"training step, {net!r}, {loss}, {BATCH} sets of 5"
        + (f", {members} members" if members > 1 else ""),
        "ours_ms": round(fast, 3),
        "eager_ms": round(slow, 3),
        "ratio": round(slow / fast, 1),
        "recorded": len(run.graphs.recorded) > 0,
    }


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    device = torch.device("cuda")
    rows = []
    for net, loss, members in [
        (FATE(), "hinge", 1),
        (FETA(), "hinge", 1),
        (ContextFree(), "logistic", 1),
        (FATE(), "plackett_luce", 1),
        (SetAttention(), "hinge", 1),
        (SetAttention(), "hinge", 8),
    ]:
        rows.append(training_step(net, loss, device, members))
        print(rows[-1], flush=True)
    content = {
        "command": "python -m benchmarks.gpu",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": torch.cuda.get_device_name(),
        "versions": {
            "entourage": __version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
        },
        "rows": rows,
    }
    (RESULTS / "gpu.json").write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
