"""What ``Ranker(SetAttention())`` reaches, and whether within a minute: ``python -m benchmarks.minute [--threads 2]``.

Trains at the defaults on 10,000 sets of the medoid task and tests on 20,000 fresh ones, anew for each seed; these data
were not used to choose the defaults. Rows are kept in ``results/minute.jsonl`` as they come; a seed that has one for so
many threads is left out. ``cpu_seconds`` are of all threads: other work on the machine adds less to them.
"""

import argparse
import json
import platform
import statistics
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from entourage import Ranker, SetAttention, __version__
from entourage.data import make_medoid

OUT = Path(__file__).parent / "results" / "minute.jsonl"
GOAL = 0.985  # 0/1-ranking accuracy, in at most
MOST = 60  # seconds


def run(seed: int) -> dict[str, Any]:
    train_seed, test_seed = np.random.SeedSequence([seed, 60]).spawn(2)
    X, ranks = make_medoid(10_000, random_state=np.random.default_rng(train_seed))
    X_test, truth = make_medoid(20_000, random_state=np.random.default_rng(test_seed))
    start, started = time.perf_counter(), time.process_time()
    model = Ranker(SetAttention(), random_state=seed, device="cpu").fit(X, ranks)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - started
    return {
        "seed": seed,
        "ranking_accuracy": model.score(X_test, truth),
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu_seconds, 1),
        "steps": model.n_steps_,
        "threads": torch.get_num_threads(),
        "settings": SetAttention().get_params(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": platform.machine(),
        "versions": {"entourage": __version__, "torch": torch.__version__},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    rows = [json.loads(line) for line in OUT.read_text().splitlines()] if OUT.exists() else []
    for seed in range(args.seeds):
        if any((row["seed"], row["threads"]) == (seed, args.threads) for row in rows):
            continue
        rows.append(run(seed))
        with OUT.open("a") as file:
            file.write(json.dumps(rows[-1]) + "\n")
        print(rows[-1], flush=True)
    rows = [row for row in rows if row["threads"] == args.threads]
    reached = [row["ranking_accuracy"] for row in rows]
    took = [row["seconds"] for row in rows]
    print(
        f"accuracy {statistics.mean(reached):.4f}, least {min(reached):.4f} (goal {GOAL}); "
        f"seconds {statistics.mean(took):.0f}, most {max(took):.0f} (goal {MOST})"
    )


if __name__ == "__main__":
    main()
