"""Real data, all models, each tuned on the training part within the same budget: ``python -m benchmarks.tuned``.

F1 (learnt from the seasons 2000 to 2018, judged on 2019 and later) and MQ2008 (five folds). Settings are chosen by
three inner folds of the training part (seasons are not parted) in at most ``--trials`` trials or ``--seconds`` for
each model. The declared spaces of the nets have more dimensions than such a budget can search: here it is how
large the net is (a linear one too), how long and how fast it learns, its weight decay and its loss.
Rows are kept in ``results/tuned.jsonl`` as they come.
"""

import argparse
import json
import platform
import statistics
import time
from functools import partial
from pathlib import Path

import numpy as np
import torch

from entourage import __version__
from entourage.baselines import MODELS
from entourage.data import Sets
from entourage.data.datasets.formula1 import load_f1
from entourage.data.datasets.letor import load_letor
from entourage.metrics import METRICS
from entourage.selection.spaces import few_sets_space
from entourage.selection.tuning import tune
from entourage.tasks.evaluate import evaluate_scores
from entourage.training.parallel import open_pool

RESULTS = Path(__file__).parent / "results"
NAMES = ["ERR", "RankSVM", "RankBoost", "LambdaMART", "RankNet", "ListNet", "FETA-Net", "FATE-Net"]
SHOWN = {"f1": ["ranking_accuracy", "kendall_tau"], "mq2008": ["ndcg@10", "ranking_accuracy"]}
CHOSEN_BY = {"f1": "ranking_accuracy", "mq2008": "ndcg@10"}


def parts(data: Path, task: str, fold: int) -> tuple[Sets, Sets, np.ndarray | None]:
    """Return training sets, test sets and the groups of the training sets."""
    if task == "f1":
        races = load_f1(data / "f1_races" / "f1_race_results_1950_on.csv.gz")
        train = races.year <= 2018
        return races.sets[train.nonzero()[0]], races.sets[(~train).nonzero()[0]], races.year[train]
    files = [data / "letor_mq2008" / f"Fold{i}_test.txt.gz" for i in range(1, 6)]
    sets = [load_letor(file, n_features=46).sets for file in files]
    return Sets.concatenate(sets[:fold] + sets[fold + 1 :]), sets[fold], None


def run(job: tuple[str, int, str], data: Path, trials: int, seconds: float) -> dict[str, object]:
    torch.set_num_threads(1)
    task, fold, name = job
    train, test, groups = parts(data, task, fold)
    model = MODELS[name](fold)
    if name.endswith("Net"):
        model.set_params(steps=300, batch_size=32, device="cpu", net__width=32)
    if name == "ListNet":
        model.set_params(loss="plackett_luce")  # top-3 ListNet is cubic in the size of the set
    start = time.perf_counter()
    chosen = {"metric": CHOSEN_BY[task], "groups": groups, "random_state": fold}
    found = tune(model, train, space=few_sets_space(model), trials=trials, seconds=seconds, **chosen)
    tuned = time.perf_counter()
    model.set_params(**found.params).fit(train)
    scores = model.predict_scores(test)
    values = evaluate_scores(test, scores, {metric: METRICS[metric] for metric in SHOWN[task]})
    return {
        "task": task,
        "model": name,
        "fold": fold,
        "metrics": values,
        "inner_score": found.score,
        "trials": len(found.trials),
        "params": {k: v for k, v in found.params.items() if k != "net"},
        "tuning_seconds": round(tuned - start, 1),
        "fit_seconds": round(time.perf_counter() - tuned, 1),
        "machine": f"{platform.machine()}, one thread",
        "versions": {"entourage": __version__, "torch": torch.__version__},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--task", choices=["f1", "mq2008"], action="append")
    parser.add_argument("--model", choices=NAMES, action="append")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=150.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS / "tuned.jsonl")
    args = parser.parse_args()
    rows = [json.loads(line) for line in args.out.read_text().splitlines()] if args.out.exists() else []
    done = {(row["task"], row["fold"], row["model"]) for row in rows}
    jobs = [
        (task, fold, name)
        for task in args.task or ["f1", "mq2008"]
        for fold in range(1 if task == "f1" else 5)
        for name in args.model or NAMES
        if (task, fold, name) not in done
    ]
    evaluate = partial(run, data=args.data, trials=args.trials, seconds=args.seconds)
    with open_pool(evaluate, args.workers) as pool:
        for job, row in pool.run(jobs):
            rows.append(row)
            args.out.write_text("".join(json.dumps(row) + "\n" for row in rows))
            print(*job, row["metrics"], flush=True)
    for task, metrics in SHOWN.items():
        mine = [row for row in rows if row["task"] == task]
        if mine:
            print(f"\n{task}: " + ", ".join(metrics))
        for name in NAMES:
            found = [row["metrics"] for row in mine if row["model"] == name]
            if found:
                print(
                    f"{name:12}", *(f"{statistics.mean(m[metric] for m in found):.4f}" for metric in metrics)
                )


if __name__ == "__main__":
    main()
