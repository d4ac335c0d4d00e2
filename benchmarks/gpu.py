"""GPU benchmarks, all ratios within one process: ``python -m benchmarks.gpu``.

- Training steps against a plain eager step: what one would write by hand (forward, the same loss, backward, clip,
  `torch.optim.AdamW`, the average of the weights).
- FETA's pairs of one large set against eager pairs, and against `torch.compile` on the split first layer.
- An ensemble against one net, ten repetitions against one.

Prints each row as it comes and keeps all, with the machine, in ``results/gpu.json``.
"""

import argparse
import copy
import functools
import json
import platform
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.together import seconds
from entourage import FATE, FETA, ContextFree, Ranker, SetAttention, __version__
from entourage.data import make_medoid
from entourage.losses import find_loss
from entourage.nets import pairs
from entourage.training.loop import Run

RESULTS = Path(__file__).parent / "results"
BATCH = 1024
OBJECTS, FEATURES = 3_355, 16
SIZES = [3_355, 10_000, 30_000, 100_000]
Row = dict[str, Any]


def eager_step(scorer: torch.nn.Module, loss, objects: Tensor, targets: Tensor) -> Callable[[], None]:
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


def milliseconds(work: Callable[[], object], times: int, warm: int = 20) -> float:
    for _ in range(warm):
        work()
    taken = []
    for _ in range(5):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(times):
            work()
        torch.cuda.synchronize()
        taken.append((time.perf_counter() - start) / times)
    return 1e3 * statistics.median(taken)


def our_step(net, loss: str, members: int, compile: bool) -> tuple[Callable[[], None], Run, float]:
    """Return a step of `Ranker`'s training, the run, and the seconds until the first steps are done."""
    X, ranks = make_medoid(10 * BATCH, random_state=0)
    model = Ranker(
        net,
        loss=loss,
        batch_size=BATCH,
        steps=10**6,
        validation=0,
        members=members,
        compile=compile,
        random_state=0,
        device="cuda",
    )
    start = model.prepare(X, ranks, None, None)
    run = Run(start.scorer, find_loss(loss), start.data, start.plan, None)
    batches = start.data.epoch(BATCH, np.random.default_rng(0))
    count = 0

    def step() -> None:
        nonlocal count
        run.one_step(batches[count % len(batches)])
        count += 1
        run.recent.clear()

    began = time.perf_counter()
    for _ in range(5):
        step()
    torch.cuda.synchronize()
    return step, run, time.perf_counter() - began


def training_step(net, loss: str, *, members: int = 1, compile: bool = False) -> Row:
    step, run, first = our_step(net, loss, members, compile)
    plain = net.build(2, torch.Generator().manual_seed(0)).cuda()
    batch = run.data.batch(torch.arange(BATCH, device="cuda"))
    eager = milliseconds(eager_step(plain, find_loss(loss), batch.objects, batch.targets), 100)
    ours = milliseconds(step, 500)
    assert run.update.graphs is not None
    assert run.update.compiled is None or run.update.compiled.possible
    return {
        "what": f"training step, {net!r}, {loss}, {BATCH} sets of 5",
        "members": members,
        "compiled": compile,
        "recorded": len(run.update.graphs.recorded) > 0,
        "first_steps_s": round(first, 1),
        "ours_ms": round(ours, 3),
        "eager_ms": round(eager, 3),
        "ratio": round(eager / ours, 1),
    }


def eager_pairs(utility, objects: Tensor) -> Tensor:
    """Evaluate the net on all concatenated pairs at once."""
    m = objects.shape[1]
    both = torch.cat([objects[0][:, None].expand(m, m, -1), objects[0].expand(m, m, -1)], dim=2)
    values = utility(both).squeeze(-1)
    return ((values.sum(1) - values.diagonal()) / (m - 1))[None]


def split_pairs(utility, objects: Tensor) -> Tensor:
    """Do the same with the first layer taken apart."""
    m = objects.shape[1]
    left, right = utility.first(objects, objects)
    values = utility.after_first(left[:, :, None] + right[:, None]).squeeze(-1)
    return (values.sum(2) - values.diagonal(dim1=1, dim2=2)) / (m - 1)


def pair_scoring(device: torch.device) -> list[Row]:
    utility = FETA(width=64).build(FEATURES, torch.Generator().manual_seed(0)).to(device).pairs
    objects = torch.randn(1, OBJECTS, FEATURES, device=device)
    ours = functools.partial(pairs.mean_over_others, utility, objects, None, squash=False)
    compiled = torch.compile(split_pairs, dynamic=False)

    def narrow(work: Callable[[], Tensor]) -> Callable[[], Tensor]:
        def run() -> Tensor:
            with torch.autocast("cuda", dtype=torch.bfloat16):
                return work()

        return run

    def portable() -> Tensor:
        pairs.FUSED_ON.discard("cuda")
        try:
            return ours()
        finally:
            pairs.FUSED_ON.add("cuda")

    def back(work: Callable[[], Tensor]) -> Callable[[], Tensor]:
        def run() -> Tensor:
            utility.zero_grad()
            value = work().sum()
            value.backward()
            return value

        return run

    def recorded(work: Callable[[], Tensor]) -> Callable[[], None]:
        """Record the work as a CUDA graph, as steps of training are."""
        stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                work()
        torch.cuda.current_stream().wait_stream(stream)
        with torch.cuda.graph(graph, stream=stream):
            work()
        return graph.replay

    with torch.no_grad():
        exact = eager_pairs(copy.deepcopy(utility).double(), objects.double())
        off = {
            "bfloat16": (narrow(ours)() - exact).abs().max() / exact.std(),
            "float32": (ours() - exact).abs().max() / exact.std(),
        }
        kinds = {
            "eager pairs, float32": functools.partial(eager_pairs, utility, objects),
            "torch.compile, split, bfloat16": narrow(functools.partial(compiled, utility, objects)),
            "ours, bfloat16": narrow(ours),
            "ours, float32": ours,
            "ours, portable tiles, float32": portable,
        }
        times = {name: milliseconds(work, 20, warm=3) for name, work in kinds.items()}
    times["forward and backward: ours, bfloat16"] = milliseconds(back(narrow(ours)), 20, warm=3)
    times["forward and backward: ours, bfloat16, recorded"] = milliseconds(
        recorded(back(narrow(ours))), 20, warm=3
    )
    times["forward and backward: ours, float32"] = milliseconds(back(ours), 10, warm=3)
    times["forward and backward: portable tiles, float32"] = milliseconds(back(portable), 3, warm=1)
    first = times["eager pairs, float32"]
    rows: list[Row] = [
        {
            "what": f"FETA's pairs, {OBJECTS} objects, {FEATURES} features, 2 × 64 hidden: {name}",
            "ms": round(ms, 3),
            "eager_pairs_over_this": round(first / ms, 1),
        }
        for name, ms in times.items()
    ]
    rows.append({"what": "largest error over spread of scores", **{k: v.item() for k, v in off.items()}})
    return rows


def growth(device: torch.device) -> list[Row]:
    """Time and extra memory of FETA and FATE as sets grow, and the slopes."""
    rows: list[Row] = []
    for name, net, power in (("FETA", FETA(width=64), 2), ("FATE", FATE(width=64), 1)):
        scorer = net.build(FEATURES, torch.Generator().manual_seed(0)).to(device).eval()
        times, peaks = [], []
        for size in SIZES:
            objects = torch.randn(1, size, FEATURES, device=device)
            with torch.no_grad(), torch.autocast("cuda", dtype=torch.bfloat16):
                scorer(objects)
                torch.cuda.reset_peak_memory_stats()
                before = torch.cuda.memory_allocated()
                times.append(
                    milliseconds(lambda s=scorer, o=objects: s(o), 2 if size > 20_000 else 10, warm=1)
                )
                peaks.append(torch.cuda.max_memory_allocated() - before)
        slope = functools.partial(np.polyfit, np.log(SIZES[1:]), deg=1)
        rows.append(
            {
                "what": f"{name}, bfloat16, one set of {SIZES} objects: scoring",
                "ms": [round(t, 3) for t in times],
                "extra_MB": [round(p / 1e6, 1) for p in peaks],
                "slope_of_time": round(float(slope(np.log(times[1:]))[0]), 2),
                "slope_of_memory": round(float(slope(np.log(peaks[1:]))[0]), 2),
                "expected": power,
            }
        )
    return rows


def repetitions(*, compile: bool) -> Row:
    """Compiled ones are timed with their start-up, after one that fills torch's cache on disk."""
    for count in (1, 10):
        seconds(FATE(), count, 50, "cuda", compile=compile)
    one, ten = (
        statistics.median(
            seconds(FATE(), count, 4000, "cuda", compile=compile) for _ in range(1 if compile else 3)
        )
        for count in (1, 10)
    )
    return {
        "what": "ten repetitions of FATE on medoid together, against one (4,000 steps of 256 sets)",
        "compiled": compile,
        "one_s": round(one, 2),
        "ten_s": round(ten, 2),
        "ratio": round(ten / one, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS / "gpu.json")
    args = parser.parse_args()
    device = torch.device("cuda")
    rows: list[Row] = []

    def keep(*new: Row) -> None:
        for row in new:
            print(row, flush=True)
        rows.extend(new)
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
        args.out.write_text(json.dumps(content, indent=1) + "\n")

    for net, loss in [(FATE(), "hinge"), (FETA(), "hinge"), (ContextFree(), "logistic")]:
        for compile in (False, True):
            keep(training_step(net, loss, compile=compile))
    keep(training_step(FATE(), "plackett_luce"))
    for members in (1, 8):
        keep(training_step(SetAttention(rounds=3, features="linear"), "hinge", members=members))
    keep(*pair_scoring(device))
    keep(*growth(device))
    for compile in (False, True):
        keep(repetitions(compile=compile))


if __name__ == "__main__":
    main()
