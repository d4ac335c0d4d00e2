"""What ten repetitions trained together cost, as a multiple of one: ``python -m benchmarks.together``."""

import argparse
import json
import platform
import statistics
import time
from pathlib import Path

import torch

from entourage import FATE, FETA, ContextFree, Ranker
from entourage.data import make_medoid
from entourage.estimators import fit_together

RESULTS = Path(__file__).parent / "results"


def seconds(net, count: int, steps: int, device: str, **settings) -> float:
    """Time one fit of ``count`` models, their data made before."""
    data = [make_medoid(10_000, random_state=seed) for seed in range(count)]
    models = [Ranker(net, steps=steps, device=device, random_state=seed, **settings) for seed in range(count)]
    start = time.perf_counter()
    fit_together(models, data)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=None)
    args = parser.parse_args()
    machine = torch.cuda.get_device_name() if args.device == "cuda" else f"{platform.machine()} CPU"
    rows = []
    print(f"{machine}, torch {torch.__version__}; medoid, 10,000 sets of 5, {args.steps} steps of 256")
    for net in (ContextFree(), FETA(), FATE()):
        for count in (1, 10):
            seconds(net, count, 20, args.device)  # warm up
        timed = {1: [], 10: []}
        for _ in range(args.rounds):  # in turns, so that both see the same machine
            for count in timed:
                timed[count].append(seconds(net, count, args.steps, args.device))
        one, ten = (statistics.median(timed[count]) for count in (1, 10))
        rows.append({"net": repr(net), "one": one, "ten": ten, "ratio": ten / one})
        print(f"{net!r:15} one {one:6.2f} s   ten together {ten:6.2f} s   {ten / one:.2f}x")
    out = args.out or RESULTS / f"together-{args.device}.json"
    about = {"machine": machine, "torch": torch.__version__, "steps": args.steps, "rows": rows}
    out.write_text(json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    main()
