"""Against other libraries that do the same work, on two CPU threads: ``python -m benchmarks.peers``.

- LightGBM's LambdaMART (the baseline of ``entourage.baselines``): how long ours learns until it is as accurate.
- allRank's transformer, where it is there (``pip install --no-deps allRank==1.4.3 attrs``: its own pins are of 2021):
  as many steps on the same batches, by the same loss and optimiser; how long, and how accurate.

Results in ``results/peers.json``.
"""

import argparse
import json
import platform
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks.passes import LENGTHS
from benchmarks.tuned import parts
from entourage import FATE, ContextFree, Ranker, SetAttention, __version__
from entourage.baselines import MODELS
from entourage.data import make_hypervolume, make_medoid
from entourage.data.sets import Sets
from entourage.losses import hinge_ranking_loss
from entourage.metrics import METRICS
from entourage.tasks.evaluate import mean_over_sets, metric_of_sets

RESULTS = Path(__file__).parent / "results"
STEPS, BATCH = 1_000, 256


def judged(model, test: Sets, metric: str) -> float:
    scores = model.predict_scores(test)
    return mean_over_sets(metric_of_sets(METRICS[metric], test, scores))


def timed_fit(model, train: Sets) -> float:
    start = time.perf_counter()
    model.fit(train)
    return time.perf_counter() - start


def against_lambda_mart(data: Path) -> list[dict[str, Any]]:
    tasks: dict[str, tuple[Sets, Sets, str]] = {
        "medoid, 10,000 sets": (
            Sets.of(*make_medoid(10_000, random_state=0)),
            Sets.of(*make_medoid(20_000, random_state=1)),
            "ranking_accuracy",
        ),
        "hypervolume, 100,000 sets": (
            Sets.of(*make_hypervolume(100_000, 5, 2, random_state=0)),
            Sets.of(*make_hypervolume(20_000, 5, 2, random_state=1)),
            "ranking_accuracy",
        ),
    }
    if data.exists():
        train, test, _ = parts(data, "mq2008", 0)
        tasks["MQ2008, fold 1"] = (train, test, "ndcg@10")
    rows = []
    for task, (train, test, metric) in tasks.items():
        forest = MODELS["LambdaMART"](0)
        seconds = timed_fit(forest, train)
        goal = judged(forest, test, metric)
        for net in (ContextFree(), FATE(), SetAttention(rounds=3, features="linear")):
            for steps in LENGTHS:
                batch = {"batch_size": 32, "weight_decay": 1.0} if metric == "ndcg@10" else {}
                model = Ranker(net, steps=steps, validation=0, random_state=0, device="cpu", **batch)
                ours = timed_fit(model, train)
                score = judged(model, test, metric)
                if score >= goal:
                    break
            rows.append(
                {
                    "what": f"{task}: {net!r} against LightGBM's LambdaMART, {metric}",
                    "lambda_mart": goal,
                    "lambda_mart_s": round(seconds, 2),
                    "ours": score,
                    "ours_s": round(ours, 2),
                    "as_accurate": bool(score >= goal),
                    "ratio": round(seconds / ours, 2),
                }
            )
            print(rows[-1], flush=True)
    return rows


def against_all_rank() -> list[dict[str, Any]]:
    try:
        from allrank.models.transformer import make_transformer
    except ImportError as error:
        print(f"allRank isn't here ({error}): pip install --no-deps allRank==1.4.3 attrs")
        return []

    class Peer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Linear(2, 64)
            self.encoder = make_transformer(N=3, d_ff=128, h=4, dropout=0.1, n_features=64)
            self.last = torch.nn.Linear(64, 1)

        def forward(self, objects: torch.Tensor) -> torch.Tensor:
            padding = torch.zeros(objects.shape[:2], dtype=torch.bool)
            places = torch.arange(objects.shape[1]).expand(len(objects), -1)
            return self.last(self.encoder(self.first(objects), padding, places)).squeeze(-1)

    X, ranks = make_medoid(10_000, random_state=0)
    test = Sets.of(*make_medoid(20_000, random_state=1))
    torch.manual_seed(0)
    peer = Peer()
    objects, targets = (torch.from_numpy(X).float() - 0.5) / 0.29, torch.from_numpy(ranks).float()
    rate = torch.optim.lr_scheduler.OneCycleLR
    optimizer = torch.optim.AdamW(peer.parameters(), lr=0.003, weight_decay=0.1)
    schedule = rate(optimizer, 0.003, total_steps=STEPS, pct_start=0.1)
    there = torch.ones(BATCH, 5, dtype=torch.bool)
    start = time.perf_counter()
    for step in range(STEPS):
        if step % (len(objects) // BATCH) == 0:
            order = torch.randperm(len(objects)).split(BATCH)
        chosen = order[step % (len(objects) // BATCH)]
        loss = hinge_ranking_loss(peer(objects[chosen]), targets[chosen], there[: len(chosen)]).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(peer.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    seconds = time.perf_counter() - start
    with torch.no_grad():
        unseen = (torch.from_numpy(test.objects.reshape(-1, 5, 2)).float() - 0.5) / 0.29
        theirs = METRICS["ranking_accuracy"](peer.eval()(unseen).numpy(), test.targets.reshape(-1, 5))
    rows = []
    for net in (FATE(), SetAttention(rounds=3, features="linear")):
        model = Ranker(net, steps=STEPS, validation=0, random_state=0, device="cpu")
        ours = timed_fit(model, Sets.of(X, ranks))
        rows.append(
            {
                "what": f"medoid, {STEPS} steps of {BATCH}: {net!r} against allRank's transformer (3 blocks of 64)",
                "all_rank": theirs,
                "all_rank_s": round(seconds, 2),
                "ours": model.score(test),
                "ours_s": round(ours, 2),
                "ratio": round(seconds / ours, 2),
            }
        )
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    args = parser.parse_args()
    rows = against_lambda_mart(args.data) + against_all_rank()
    content = {
        "command": "python -m benchmarks.peers",
        "machine": f"{platform.machine()}, {torch.get_num_threads()} threads",
        "versions": {"entourage": __version__, "torch": torch.__version__},
        "rows": rows,
    }
    (RESULTS / "peers.json").write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
