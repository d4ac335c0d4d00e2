"""How accurate Entourage's best net is on the paper's tasks: ``python -m benchmarks.best --device cuda``.

Ensembles of `SetAttention` on fresh data sets of each task, tested on fresh sets. Settings were chosen by the score on
other data sets of the same generators (seeds apart from any used here). Rows are kept in ``results/best.jsonl`` as
they come; ``--repetition`` and ``--task`` choose some of them, so that several processes can share the work.
"""

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from entourage import Ranker, SetAttention, __version__
from entourage.data import make_hypervolume, make_medoid
from entourage.data.sets import Sets
from entourage.metrics import METRICS

RESULTS = Path(__file__).parent / "results"
METRIC_NAMES = ["ranking_accuracy", "zero_one_accuracy"]
MEMBERS = {"medoid": 8, "hypervolume-2": 3, "hypervolume-5": 3}
TARGETS = {"medoid": (0.990, 0.94), "hypervolume-2": (0.998, 0.98), "hypervolume-5": (0.993, 0.93)}
SETTINGS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {  # of the net, of training
    "medoid": ({"rounds": 4, "features": "linear", "depth": 2, "dropout": 0.2}, {"weight_decay": 0.3}),
    "hypervolume-2": ({"rounds": 4, "features": "linear", "depth": 2, "dropout": 0.0}, {}),
    "hypervolume-5": ({"rounds": 4, "features": "linear", "depth": 2, "dropout": 0.0, "norm": "layer"}, {}),
}


def data_of(task: str, sets: int, seed: list[int]) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    if task == "medoid":
        return make_medoid(sets, random_state=rng)
    return make_hypervolume(sets, 5, int(task[-1]), random_state=rng)


def run(task: str, repetition: int, members: int, steps: int, device: str) -> dict[str, Any]:
    net, training = SETTINGS[task]
    n_train = 10_000 if task == "medoid" else 100_000
    X, ranks = data_of(task, n_train, [6, repetition, 0])
    X_test, truth = data_of(task, 50_000, [6, repetition, 1])
    fixed = {"steps": steps, "batch_size": 512, "validation": 0, "patience": None}
    model = Ranker(
        SetAttention(**net), **fixed, **training, members=members, device=device, random_state=repetition
    )
    start = time.perf_counter()
    model.fit(X, ranks)
    seconds = time.perf_counter() - start
    whole = model.predict_scores(X_test)
    each = [whole]
    if members > 1:
        each = model._member_scores(Sets.of(X_test)).reshape(members, *truth.shape)
    return {
        "task": task,
        "repetition": repetition,
        "members": members,
        "steps": steps,
        "estimator": " ".join(repr(model).split()),
        "fit_seconds": round(seconds, 1),
        "ensemble": {name: METRICS[name](whole, truth) for name in METRIC_NAMES},
        "member": {name: statistics.mean(METRICS[name](own, truth) for own in each) for name in METRIC_NAMES},
        "machine": torch.cuda.get_device_name() if device.startswith("cuda") else "CPU",
        "versions": {"entourage": __version__, "torch": torch.__version__},
    }


def show(rows: list[dict[str, Any]]) -> None:
    for task, targets in TARGETS.items():
        mine = [row for row in rows if row["task"] == task]
        if not mine:
            continue
        print(
            f"\n{task}, {len(mine)} data sets, {mine[0]['members']} members, mean ± sd (one member; target)"
        )
        for name, target in zip(METRIC_NAMES, targets, strict=True):
            values = [row["ensemble"][name] for row in mine]
            alone = statistics.mean(row["member"][name] for row in mine)
            sd = statistics.stdev(values) if len(values) > 1 else float("nan")
            print(f"  {name}: {statistics.mean(values):.4f} ± {sd:.4f} ({alone:.4f}; {target})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", choices=list(TARGETS), action="append")
    parser.add_argument("--repetition", type=int, action="append")
    parser.add_argument("--members", type=int, default=None, help="by default 8 for medoid, 3 for the others")
    parser.add_argument("--steps", type=int, default=12_000)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, default=RESULTS / "best.jsonl")
    args = parser.parse_args()
    rows = [json.loads(line) for line in args.out.read_text().splitlines()] if args.out.exists() else []
    members = {task: args.members or count for task, count in MEMBERS.items()}
    if any((row["members"], row["steps"]) != (members[row["task"]], args.steps) for row in rows):
        raise SystemExit(f"{args.out} holds rows of other members or steps; take another file with --out.")
    done = {(row["task"], row["repetition"]) for row in rows}
    for repetition in args.repetition or range(5):
        for task in args.task or TARGETS:
            if (task, repetition) not in done:
                rows.append(run(task, repetition, members[task], args.steps, args.device))
                with args.out.open("a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
                print(task, repetition, rows[-1]["ensemble"], rows[-1]["fit_seconds"], flush=True)
    show(rows)


if __name__ == "__main__":
    main()
