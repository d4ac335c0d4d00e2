"""What the effect of the screen position is worth in human choices: ``python -m benchmarks.position``.

`ranch_mms_2019`: 33,344 menus of two to five objects in 32 domains, with the place on the screen and the person. A
fifth of the people is held out. Each model is fitted without positions, with them, and with positions shuffled within
menus (for training and for the held-out people: a negative control). The mean log-likelihood of the held-out people's
choices is that of what a model predicts, which knows no positions, and with the learnt effect of the position added.
Rows are kept in ``results/position.jsonl``.
"""

import argparse
import json
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from entourage import FATE, DiscreteChooser, SetAttention, __version__
from entourage.choice import MultinomialLogit
from entourage.data import Sets
from entourage.data.encoder import TableEncoder
from entourage.data.grouping import groups_of, positions_of
from entourage.data.resampling import bootstrap_interval, fold_indices
from entourage.data.table_files import read_table
from entourage.tasks import Choice
from entourage.tasks.evaluate import metric_of_sets

RESULTS = Path(__file__).parent / "results"
DATA = Path("/work/shared/data/ranch_mms_2019/choices_long.csv.gz")


def load(path: Path) -> tuple[Sets, np.ndarray]:
    """Return the menus, one-hot by object within domain (32 domains of 5), and the person of each."""
    frame = read_table(path, ids=["menu", "subject"])
    columns = (frame.column(name).to_pylist() for name in ("domain", "object"))
    names = np.array([f"{domain}:{one}" for domain, one in zip(*columns, strict=True)])
    table = frame.append_column("id", [np.unique(names, return_inverse=True)[1] + 1.0])
    encoder = TableEncoder.fit(table, set_id="menu", target="chosen", target_kind="choice", features=["id"])
    packed = encoder(table)
    ids = packed.sets.objects[:, 0].astype(int) - 1
    one_hot = np.eye(ids.max() + 1)[ids]
    sets = Sets(
        one_hot,
        packed.sets.offsets,
        packed.sets.targets,
        worst=1.0,
        position=positions_of(table, packed, "position"),
    )
    return sets, groups_of(table, packed, "subject")


def models(steps: int, seed: int) -> dict[str, Any]:
    settings = {"steps": steps, "batch_size": 512, "device": "cpu", "random_state": seed}
    return {
        "MultinomialLogit": MultinomialLogit(l2=1.0),
        "FATE(32)": DiscreteChooser(FATE(width=32), **settings),
        "SetAttention(32)": DiscreteChooser(SetAttention(width=32, rounds=3, features="linear"), **settings),
    }


def shuffled_within(sets: Sets, seed: int) -> Sets:
    """Return the same sets with positions shuffled within each."""
    owner = np.repeat(np.arange(len(sets)), sets.sizes)
    order = np.lexsort((np.random.default_rng(seed).random(len(owner)), owner))
    return sets.with_position(np.asarray(sets.position)[order])


def run(name: str, model: Any, variant: str, sets: Sets, people: np.ndarray, seed: int) -> dict[str, Any]:
    train, test = fold_indices(len(sets), 5, groups=people, random_state=seed)[0]
    learnt = {"none": sets.with_position(None), "shown": sets, "shuffled": shuffled_within(sets, seed)}[
        variant
    ]
    start = time.perf_counter()
    model.fit(learnt[train])
    seconds = time.perf_counter() - start
    held_out, task = learnt[test] if variant != "none" else sets[test], Choice()
    scores = np.asarray(model.predict_scores(held_out), dtype=np.float64)
    effects = model.position_effects_
    found = {"without": metric_of_sets(task.criterion, held_out, scores)}
    if effects is not None:
        own = np.array([effects.get(p, 0.0) for p in np.asarray(held_out.position).tolist()])
        found["with"] = metric_of_sets(task.criterion, held_out, scores + own)
    whole = {
        key: [float(values.mean()), *bootstrap_interval(values, people[test])]
        for key, values in found.items()
    }
    return {
        "model": name,
        "positions": variant,
        "held_out_people": len(np.unique(people[test])),
        "held_out_sets": len(test),
        "log_likelihood": whole,  # mean, low, high
        "gain_of_position": None
        if effects is None
        else [
            float((found["with"] - found["without"]).mean()),
            *bootstrap_interval(found["with"] - found["without"], people[test]),
        ],
        "effects": None if effects is None else {str(k): round(v, 4) for k, v in effects.items()},
        "training_log_likelihood": getattr(model, "log_likelihood_", None),
        "seconds": round(seconds, 1),
        "settings": " ".join(repr(model).split()),
        "seed": seed,
        "versions": {
            "entourage": __version__,
            "numpy": np.__version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--model", action="append", help="some of the models")
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS / "position.jsonl")
    args = parser.parse_args()
    sets, people = load(args.data)
    print(sets, len(np.unique(people)), "people", flush=True)
    done = [json.loads(line) for line in args.out.read_text().splitlines()] if args.out.exists() else []
    known = {(row["model"], row["positions"], row["seed"]) for row in done}
    for name in models(args.steps, args.seed):
        for variant in ("none", "shown", "shuffled"):
            if (args.model and name not in args.model) or (name, variant, args.seed) in known:
                continue
            row = run(name, models(args.steps, args.seed)[name], variant, sets, people, args.seed)
            with args.out.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(
                name,
                variant,
                row["log_likelihood"],
                row["gain_of_position"],
                row["effects"],
                row["seconds"],
                flush=True,
            )


if __name__ == "__main__":
    main()
