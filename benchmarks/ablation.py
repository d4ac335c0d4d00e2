"""Each ingredient of the best net on and off: ``python -m benchmarks.ablation --device cuda --workers 8``.

Medoid (10,000 sets) and hypervolume (100,000), fresh data sets for each seed; Formula 1 (to 2018, judged on later
races) and MQ2008 (each seed another fold held out). Rows are kept in ``results/ablation.jsonl`` as they come; the
table is printed as Markdown: 0/1-ranking accuracy, for MQ2008 nDCG@10, mean ± standard deviation over seeds.
"""

import argparse
import json
import statistics
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.best import SETTINGS, data_of
from benchmarks.tuned import parts
from entourage import FATE, FETA, Ranker, SetAttention, __version__
from entourage.data.sets import Sets
from entourage.metrics import METRICS
from entourage.nets import Net
from entourage.tasks.evaluate import metric_of_sets
from entourage.training.parallel import open_pool

RESULTS = Path(__file__).parent / "results"
STEPS = 4_000  # on medoid and hypervolume: a third of what benchmarks.best takes
SHORT = {"steps": 300, "batch_size": 32, "weight_decay": 1.0}  # little data is soon learnt by heart
TASKS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {  # of the net, of training, metric
    "medoid": (*SETTINGS["medoid"], "ranking_accuracy"),
    "hypervolume-2": (*SETTINGS["hypervolume-2"], "ranking_accuracy"),
    "f1": ({"width": 32, "rounds": 2, "features": "linear"}, SHORT, "ranking_accuracy"),
    "mq2008": ({"width": 32, "rounds": 2, "features": "linear"}, SHORT, "ndcg@10"),
}
#: What is changed: the kind of net, its settings, those of training.
VARIANTS: dict[str, tuple[type[Net], dict[str, Any], dict[str, Any]]] = {
    "SetAttention": (SetAttention, {}, {}),
    "8 members": (SetAttention, {}, {"members": 8}),
    "one round": (SetAttention, {"rounds": 1}, {}),
    "shallow pairs": (SetAttention, {"depth": 1}, {}),
    "sharpness not learnt": (SetAttention, {"sharpening": 0.0}, {}),
    "states normalised": (SetAttention, {"norm": "layer"}, {}),
    "no dropout": (SetAttention, {"dropout": 0.0}, {}),
    "dropout 0.2": (SetAttention, {"dropout": 0.2}, {}),
    "weight decay 0.01": (SetAttention, {}, {"weight_decay": 0.01}),
    "no average of weights": (SetAttention, {}, {"ema": None}),
    "constant rate": (SetAttention, {}, {"schedule": "constant"}),
    "logistic loss": (SetAttention, {}, {"loss": "logistic"}),
    "periodic features": (SetAttention, {"features": "periodic"}, {}),
    "centred features": (SetAttention, {"features": "centred"}, {}),
    "16 points, linear time": (SetAttention, {"points": 16}, {}),
    "FATE, 3 rounds": (FATE, {"width": 64, "rounds": 3, "dropout": 0.1}, {}),
    "FATE, 3 rounds, spread": (FATE, {"width": 64, "rounds": 3, "dropout": 0.1, "pooling": "spread"}, {}),
    "FETA, 3 rounds": (FETA, {"width": 64, "rounds": 3, "dropout": 0.1, "activation": "gelu"}, {}),
    "FATE, the paper's": (FATE, {}, {"weight_decay": 0.1}),
    "FETA, the paper's": (FETA, {}, {"weight_decay": 0.1}),
}


def changes_something(task: str, variant: str) -> bool:
    base, training, _ = TASKS[task]
    kind, changed, other = VARIANTS[variant]
    if kind is not SetAttention or not (changed or other):
        return True
    same_net = repr(SetAttention(**base)) == repr(SetAttention(**base | changed))
    return not same_net or training | other != training


def run(job: tuple[str, str, int], device: str, data: Path) -> dict[str, Any]:
    torch.set_num_threads(1)
    task, variant, seed = job
    base, training, metric = TASKS[task]
    kind, changed, other = VARIANTS[variant]
    net = kind(**(base | changed if kind is SetAttention else changed))
    if task in ("f1", "mq2008"):
        train, test, _ = parts(data, task, seed)
        fixed: dict[str, Any] = {}
    else:
        train = Sets.of(*data_of(task, 10_000 if task == "medoid" else 100_000, [7, seed, 0]))
        test = Sets.of(*data_of(task, 20_000, [7, seed, 1]))
        fixed = {"steps": STEPS, "batch_size": 512}
    settings = fixed | training | other | {"validation": 0, "patience": None}
    start = time.perf_counter()
    model = Ranker(net, device=device, random_state=seed, **settings).fit(train)
    seconds = time.perf_counter() - start
    scores = model.predict_scores(test)
    values = metric_of_sets(METRICS[metric], test, scores)
    return {
        "task": task,
        "variant": variant,
        "seed": seed,
        "metric": metric,
        "value": float(np.nanmean(values)),
        "fit_seconds": round(seconds, 1),
        "estimator": " ".join(repr(model).split()),
        "machine": torch.cuda.get_device_name() if device.startswith("cuda") else "CPU",
        "versions": {"entourage": __version__, "torch": torch.__version__},
    }


def show(rows: list[dict[str, Any]]) -> None:
    tasks = [task for task in TASKS if any(row["task"] == task for row in rows)]
    print("\n| | " + " | ".join(tasks) + " |\n| --- |" + " ---: |" * len(tasks))
    for variant in VARIANTS:
        cells = []
        for task in tasks:
            values = [row["value"] for row in rows if (row["task"], row["variant"]) == (task, variant)]
            sd = f" ± {statistics.stdev(values):.4f}" if len(values) > 1 else ""
            cells.append(f"{statistics.mean(values):.4f}{sd}" if values else "")
        if any(cells):
            print(f"| {variant} | " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", choices=list(TASKS), action="append")
    parser.add_argument("--variant", choices=list(VARIANTS), action="append")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=RESULTS / "ablation.jsonl")
    args = parser.parse_args()
    rows = [json.loads(line) for line in args.out.read_text().splitlines()] if args.out.exists() else []
    done = {(row["task"], row["variant"], row["seed"]) for row in rows}
    jobs = [
        (task, variant, seed)
        for seed in range(args.seeds)
        for task in args.task or TASKS
        for variant in args.variant or VARIANTS
        if (task, variant, seed) not in done and changes_something(task, variant)
    ]
    with open_pool(partial(run, device=args.device, data=args.data), args.workers) as pool:
        for job, row in pool.run(jobs):
            rows.append(row)
            with args.out.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(*job, round(row["value"], 4), flush=True)
    show(rows)


if __name__ == "__main__":
    main()
