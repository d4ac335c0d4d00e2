"""Real choices without features: ``python -m benchmarks.real_choices``.

San Francisco trips to work and to shop (`load_sf_modes`): which modes were open, which was taken. Five folds; mean
negative log-likelihood of a choice. Beside the models stands the entropy of the choices given the set, over all
trips: below it no function of the set alone can come on the data as a whole. Rows in ``results/real_choices.json``.
"""

import argparse
import json
import platform
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch

from entourage import FATE, FETA, ContextFree, DiscreteChooser, SetAttention, __version__
from entourage.data import load_sf_modes
from entourage.folds import fold_indices
from entourage.sets import Sets

RESULTS = Path(__file__).parent / "results"
NETS = {
    "multinomial logit": ContextFree(depth=0),
    "FETA": FETA(width=16, depth=1, activation="gelu"),
    "FATE": FATE(width=16, depth=1),
    "SetAttention": SetAttention(width=8, rounds=2, heads=2, dropout=0.0),
}
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


def judge(name: str, sets: Sets, modes: int, folds: int) -> dict[str, Any]:
    values, start = [], time.perf_counter()
    for train, test in fold_indices(len(sets), folds, random_state=0):
        model = DiscreteChooser(NETS[name], categories=[(0, modes)], **SETTINGS).fit(sets[train])
        held = sets[test]
        values.append(-model._metric(held, model.predict_scores(held), metric=model.task.criterion))
    return {
        "model": name,
        "parameters": sum(p.numel() for p in model.scorer_.parameters()),
        "nll": float(np.mean(values)),
        "folds": values,
        "estimator": " ".join(repr(model).split()),
        "seconds": round(time.perf_counter() - start, 1),
    }


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
        bound = entropy(sets)
        print(f"SF{which}: {len(sets):,} trips, {len(modes)} modes, entropy given the set {bound:.4f}")
        rows = []
        for name in NETS:
            rows.append(judge(name, sets, len(modes), args.folds))
            print(f"  {name:18} {rows[-1]['nll']:.4f}  {rows[-1]['parameters']} parameters", flush=True)
        content[which] = {"trips": len(sets), "entropy": bound, "rows": rows}
    (RESULTS / "real_choices.json").write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
