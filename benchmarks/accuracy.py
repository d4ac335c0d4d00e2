"""What the defaults reach on the medoid task: ``python -m benchmarks.accuracy [--seeds 5] [--all]``.

Trains on 10,000 sets of 5 points in the plane and judges on 20,000 fresh ones, anew for each seed. Prints
mean and standard deviation and keeps all rows in ``results/accuracy-DEVICE.json``.
"""

import argparse
import json
import platform
import statistics
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from entourage import FATE, FETA, ContextFree, Ranker, __version__
from entourage.data import make_medoid
from entourage.metrics import METRICS
from entourage.training.device import find_device
from entourage.training.parallel import map_in_order

METRIC_NAMES = ["spearman", "ranking_accuracy", "zero_one_accuracy"]
DEFAULTS = {
    "Ranker(FATE())": (FATE(), {}),
    "Ranker(FETA())": (FETA(), {}),
    'Ranker(ContextFree(), loss="logistic")': (ContextFree(), {"loss": "logistic"}),
}
PAPER = {"activation": "relu", "norm": "batch"}
SGD = {"optimizer": "sgd", "learning_rate": 0.1, "weight_decay": 0.0, "ema": None}
VARIANTS = DEFAULTS | {
    'Ranker(ContextFree(), loss="listnet")': (ContextFree(), {"loss": "listnet"}),
    "FATE(include_self=False)": (FATE(include_self=False), {}),
    'FATE("relu", "batch"), SGD with Nesterov momentum': (FATE(**PAPER), SGD),
    "FETA(squash=True)": (FETA(squash=True), {}),
    "FETA(order=2)": (FETA(order=2), {}),
    "FETA(depth=0, squash=True)": (FETA(depth=0, squash=True), {}),
}


def run(job: tuple[str, int], device: str) -> dict[str, object]:
    name, seed = job
    train_seed, test_seed = np.random.SeedSequence([seed, 2026]).spawn(2)
    X, ranks = make_medoid(10_000, random_state=np.random.default_rng(train_seed))
    X_test, ranks_test = make_medoid(20_000, random_state=np.random.default_rng(test_seed))
    net, params = VARIANTS[name]
    start = time.perf_counter()
    model = Ranker(net, random_state=seed, device=device, **params).fit(X, ranks)
    seconds = time.perf_counter() - start
    scores = model.predict_scores(X_test)
    return {"name": name, "seed": seed, "seconds": seconds} | {
        m: METRICS[m](scores, ranks_test) for m in METRIC_NAMES
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="auto")
    parser.add_argument(
        "--workers", type=int, default=1, help="processes; seconds mean little with more than one"
    )
    parser.add_argument("--all", action="store_true", help="variants of the nets too")
    options = parser.parse_args()
    device = find_device(options.device).type
    names = VARIANTS if options.all else DEFAULTS
    threads = torch.get_num_threads() if options.workers == 1 else 1
    jobs = [(name, seed) for name in names for seed in range(options.seeds)]
    rows = list(map_in_order(partial(run, device=device), jobs, workers=options.workers))
    table = Table(
        "model", *METRIC_NAMES, "seconds", title=f"medoid, {options.seeds} fresh data sets, {device}"
    )
    for name in names:
        mine = [row for row in rows if row["name"] == name]
        cells = []
        for metric in METRIC_NAMES:
            values = [row[metric] for row in mine]
            spread = statistics.stdev(values) if len(values) > 1 else 0.0
            cells.append(f"{statistics.mean(values):.4f} ± {spread:.4f}")
        table.add_row(name, *cells, f"{statistics.mean(row['seconds'] for row in mine):.0f}")
    Console(width=130).print(table)
    machine = torch.cuda.get_device_name() if device == "cuda" else f"{platform.machine()}, {threads} threads"
    content = {
        "command": f"python -m benchmarks.accuracy --seeds {options.seeds} --device {device} --workers "
        f"{options.workers}{' --all' * options.all}",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine,
        "versions": {
            "entourage": __version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
        },
        "rows": rows,
    }
    folder = Path(__file__).parent / "results"
    folder.mkdir(exist_ok=True)
    (folder / f"accuracy-{device}.json").write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
