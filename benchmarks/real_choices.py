"""Real choices, with and without features: ``python -m benchmarks.real_choices``.

San Francisco trips to work and to shop. Without features (`load_sf_modes`): which modes were open, which was taken;
beside the models stands the entropy of the choices given the set, over all trips: below it no function of the set
alone can come on the data as a whole. With features (`load_sf`): times, costs, who travels; households are not
parted. Five folds; mean negative log-likelihood of a choice; nothing is tuned. Results in
``results/real_choices.json``.
"""

import argparse
import json
import platform
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import clone

from entourage import FATE, FETA, ContextFree, DiscreteChooser, SetAttention, __version__
from entourage.choice import ContextualLogit, MultinomialLogit
from entourage.data import load_sf, load_sf_modes
from entourage.folds import fold_indices
from entourage.sets import Sets

RESULTS = Path(__file__).parent / "results"
SETTINGS = {"steps": 400, "batch_size": 256, "learning_rate": 0.01, "random_state": 0, "device": "cpu"}
PUBLISHED = {
    "work": {"MNL": 0.948, "FATE": 0.817, "DeepHalo": 0.807},
    "shop": {"MNL": 1.726, "FATE": 1.577, "DeepHalo": 1.526},
}


def entropy(sets: Sets) -> float:
    """Return the mean negative log-likelihood of the frequencies in each set of modes, on the data themselves."""
    keys, taken = [], []
    for start, end in zip(sets.offsets[:-1], sets.offsets[1:], strict=True):
        modes = sets.objects[start:end, 0]
        keys.append(tuple(modes))
        taken.append(modes[sets.targets[start:end] == 0][0])
    of_set, of_choice = Counter(keys), Counter(zip(keys, taken, strict=True))
    pairs = zip(keys, taken, strict=True)
    return -float(np.mean([np.log(of_choice[key, mode] / of_set[key]) for key, mode in pairs]))


def models(modes: int) -> dict[str, Any]:
    """Return the models that know modes by their number alone."""

    def chooser(net) -> DiscreteChooser:
        return DiscreteChooser(net, categories=[(0, modes)], **SETTINGS)

    return {
        "multinomial logit": MultinomialLogit(alternatives=modes),
        "contextual logit, full, l2 = 1": ContextualLogit(alternatives=modes, l2=1.0),
        "contextual logit, rank 2, l2 = 1": ContextualLogit(rank=2, alternatives=modes, l2=1.0),
        "FETA": chooser(FETA(width=16, depth=1, activation="gelu")),
        "FATE": chooser(FATE(width=16, depth=1)),
        "SetAttention": chooser(SetAttention(width=8, rounds=2, heads=2, dropout=0.0)),
    }


def featured() -> dict[str, Any]:
    """Return the models that see all features, and who travels."""
    nets = {
        "linear": ContextFree(depth=0),
        "ContextFree": ContextFree(width=32),
        "FATE": FATE(width=32),
        "SetAttention": SetAttention(width=32, rounds=2),
    }
    return {name: DiscreteChooser(net, **SETTINGS) for name, net in nets.items()}


def parameters(model: Any) -> int:
    return (
        sum(p.numel() for p in model.scorer_.parameters()) if hasattr(model, "scorer_") else len(model.coef_)
    )


def judge(name: str, model: Any, sets: Sets, folds: int, groups: Any = None) -> dict[str, Any]:
    values, start = [], time.perf_counter()
    for train, test in fold_indices(len(sets), folds, groups=groups, random_state=0):
        fitted = clone(model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what the data leave open
            fitted.fit(sets[train])
        held = sets[test]
        values.append(-fitted._metric(held, fitted.predict_scores(held), metric=fitted.task.criterion))
    return {
        "model": name,
        "parameters": parameters(fitted),
        "nll": float(np.mean(values)),
        "folds": values,
        "estimator": " ".join(repr(fitted).split()),
        "seconds": round(time.perf_counter() - start, 1),
    }


def show(what: str, row: dict[str, Any]) -> None:
    print(f"  {what:17} {row['model']:32} {row['nll']:.4f}  {row['parameters']} parameters", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data/sf_mode_choice"))
    parser.add_argument("--folds", type=int, default=5)
    args = parser.parse_args()
    content: dict[str, Any] = {
        "machine": platform.machine(),
        "versions": {"entourage": __version__, "torch": torch.__version__},
        "published": PUBLISHED,
    }
    for which in ("work", "shop"):
        sets, modes = load_sf_modes(args.data, which)
        trips = load_sf(args.data, which)
        bound = entropy(sets)
        print(f"SF{which}: {len(sets):,} trips, {len(modes)} modes, entropy given the set {bound:.4f}")
        rows: dict[str, list[dict[str, Any]]] = {"without features": [], "with features": []}
        for name, model in models(len(modes)).items():
            rows["without features"].append(judge(name, model, sets, args.folds))
            show("without features", rows["without features"][-1])
        for name, model in featured().items():
            rows["with features"].append(judge(name, model, trips.sets, args.folds, trips.household))
            show("with features", rows["with features"][-1])
        content[which] = {"trips": len(sets), "entropy": bound, **rows}
    (RESULTS / "real_choices.json").write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
