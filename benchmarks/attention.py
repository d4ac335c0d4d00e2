"""Attention over pairs on a GPU, the kernel against portable tiles in one process: ``python -m benchmarks.attention``.

Scoring of one set of 3,355 objects, growth of time and memory up to 100,000, training steps of 64 sets of 100 and of
1,024 sets of 5, all with the kernel, also where the library takes the tiles (`message_passing.FUSED_ALWAYS`); errors
beside float64. Rows in ``results/attention.json``.
"""

import argparse
import copy
import json
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.gpu import FEATURES, OBJECTS, milliseconds
from entourage import SetAttention, __version__
from entourage.losses import find_loss
from entourage.nets import message_passing

RESULTS = Path(__file__).parent / "results"
SIZES = [3_355, 10_000, 30_000, 100_000]
Row = dict[str, Any]


@contextmanager
def kernel(on: bool) -> Iterator[None]:
    """Switch the kernel on or off; sets that are too small for it stay with the tiles."""
    before = message_passing.FUSED_ON, message_passing.FUSED_ALWAYS
    message_passing.FUSED_ON, message_passing.FUSED_ALWAYS = {"cuda"} if on else set(), True
    try:
        yield
    finally:
        message_passing.FUSED_ON, message_passing.FUSED_ALWAYS = before


def made(rounds: int, device: torch.device) -> torch.nn.Module:
    return (
        SetAttention(width=64, rounds=rounds, features="linear")
        .build(FEATURES, torch.Generator().manual_seed(0))
        .to(device)
    )


def scoring(device: torch.device) -> Iterator[Row]:
    scorer = made(1, device).eval()
    objects = torch.randn(1, OBJECTS, FEATURES, device=device)
    with torch.no_grad(), kernel(False):
        exact = copy.deepcopy(scorer).double()(objects.double())
    for narrow in (False, True):
        taken = {}
        for on in (False, True):
            with torch.no_grad(), kernel(on), torch.autocast("cuda", torch.bfloat16, enabled=narrow):
                error = (scorer(objects) - exact).abs().max() / exact.std()
                taken[on] = milliseconds(lambda: scorer(objects), 10, warm=3)
            yield {
                "what": f"scoring of {OBJECTS} objects, width 64, one round",
                "precision": "bfloat16" if narrow else "float32",
                "kernel": on,
                "ms": round(taken[on], 3),
                "largest_error_over_spread": float(f"{error.item():.1e}"),
                "ratio": round(taken[False] / taken[on], 1),
            }


def growth(device: torch.device) -> Iterator[Row]:
    scorer = made(1, device).eval()
    for size in SIZES:
        objects = torch.randn(1, size, FEATURES, device=device)
        with torch.no_grad(), kernel(True), torch.autocast("cuda", torch.bfloat16):
            scorer(objects)
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            taken = milliseconds(lambda o=objects: scorer(o), 2 if size > 20_000 else 10, warm=1)
        yield {
            "what": "scoring of one set as it grows, width 64, one round, bfloat16, kernel",
            "objects": size,
            "ms": round(taken, 3),
            "extra_MB": round((torch.cuda.max_memory_allocated() - before) / 1e6, 1),
        }


def training(device: torch.device) -> Iterator[Row]:
    for n, m in ((64, 100), (1024, 5)):
        for narrow in (False, True):
            taken = {}
            for on in (False, True):
                with kernel(on):
                    step = recorded(step_of(n, m, narrow, device))
                    taken[on] = milliseconds(step, 50)
                yield {
                    "what": f"forward and backward of {n} sets of {m}, width 64, three rounds, recorded",
                    "precision": "bfloat16" if narrow else "float32",
                    "kernel": on,
                    "ms": round(taken[on], 3),
                    "ratio": round(taken[False] / taken[on], 1),
                }


def step_of(n: int, m: int, narrow: bool, device: torch.device) -> Callable[[], None]:
    scorer = made(3, device)
    objects = torch.randn(n, m, FEATURES, device=device)
    ranks = torch.rand(n, m, device=device).argsort(1)
    there = torch.ones(n, m, dtype=torch.bool, device=device)
    loss = find_loss("hinge")

    def step() -> None:
        for parameter in scorer.parameters():
            parameter.grad = None
        with torch.autocast("cuda", torch.bfloat16, enabled=narrow):
            scores: Tensor = scorer(objects)
        loss(scores.float(), ranks, there).mean().backward()

    return step


def recorded(work: Callable[[], None]) -> Callable[[], None]:
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS / "attention.json")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("this compares a GPU's kernel, and there is no GPU here")
    device, rows = torch.device("cuda"), []
    for part in (scoring, growth, training):
        for row in part(device):
            print(row, flush=True)
            rows.append(row)
            content = {
                "command": "python -m benchmarks.attention",
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


if __name__ == "__main__":
    main()
