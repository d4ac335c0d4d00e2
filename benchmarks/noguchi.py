"""Attraction, compromise and similarity in human choices, as nets learn them: ``python -m benchmarks.noguchi``.

Noguchi and Stewart's (2014) 2,790 choices among three products. A net learns from the choices of 27 of the 30 choice
sets, without a word on their design, and is asked about the others: by how much do the log-odds of target to
competitor move between the two decoys of a choice set, each of which favours one of the two (halved; above 0 is
the direction of the literature). Intervals are over the ten choice sets of an effect. ``people`` is the same
quantity in the choices themselves. Results in ``results/noguchi.json``.
"""

import argparse
import json
import platform
from pathlib import Path
from typing import Any

import numpy as np
import torch

from entourage import FATE, FETA, ContextFree, DiscreteChooser, SetAttention, __version__
from entourage.data import load_noguchi_stewart
from entourage.decoys import attraction, compromise, similarity
from entourage.folds import fold_indices
from entourage.intervals import bootstrap_interval

RESULTS = Path(__file__).parent / "results"
EFFECTS = {"attraction": attraction, "compromise": compromise, "similarity": similarity}
NETS = {
    "ContextFree": ContextFree(width=32),
    "FATE": FATE(width=32),
    "FETA": FETA(width=32),
    "SetAttention": SetAttention(width=32, rounds=2),
}


class Design:
    """The choices, and which product each decoy favours."""

    def __init__(self, path: Path) -> None:
        data = load_noguchi_stewart(path)
        self.sets = data.sets
        self.objects = data.sets.to_array().astype(float)  # (trials, 3, 2): A, B and the decoy
        self.picked = data.sets.targets.reshape(-1, 3).argmin(1)
        self.favours_a = np.char.endswith(data.alternative.reshape(-1, 3)[:, 2], "a")
        self.favours_a ^= data.effect == "similarity"  # what is like A hurts A
        self.effect = data.effect
        self.choice_set = np.unique([data.effect, data.choiceset.astype(str)], axis=1, return_inverse=True)[
            1
        ].ravel()

    def triples(self, chosen: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return targets, competitors, decoys and the other decoys of one choice set, for A and for B."""
        for_a = self.objects[chosen[self.favours_a[chosen]][0]]
        for_b = self.objects[chosen[~self.favours_a[chosen]][0]]
        a, b = for_a[0], for_a[1]
        return (
            np.stack([a, b]),
            np.stack([b, a]),
            np.stack([for_a[2], for_b[2]]),
            np.stack([for_b[2], for_a[2]]),
        )

    def people(self, effect: str) -> list[float]:
        """Return, for each choice set, how far the decoys move people's log-odds (half a choice is added to each)."""
        moved = []
        for g in np.unique(self.choice_set[self.effect == effect]):
            odds = []
            for favours in (True, False):
                mine = self.picked[(self.choice_set == g) & (self.favours_a == favours)]
                odds.append(np.log(((mine == 0).sum() + 0.5) / ((mine == 1).sum() + 0.5)))
            moved.append((odds[0] - odds[1]) / 2)
        return moved


def judge(design: Design, net: Any, seeds: int, steps: int) -> dict[str, Any]:
    shifts: dict[str, dict[int, list[float]]] = {effect: {} for effect in EFFECTS}
    likelihood = np.zeros(len(design.sets))
    for seed in range(seeds):
        folds = fold_indices(len(design.sets), 10, groups=design.choice_set, random_state=0)
        for fold, (train, test) in enumerate(folds):
            model = DiscreteChooser(
                net, steps=steps, batch_size=128, device="cpu", random_state=100 * seed + fold
            ).fit(design.sets[train])
            chances = model.predict_proba(design.sets[test]).reshape(-1, 3)
            likelihood[test] += np.log(chances[np.arange(len(test)), design.picked[test]]) / seeds
            for g in np.unique(design.choice_set[test]):
                chosen = test[design.choice_set[test] == g]
                effect = str(design.effect[chosen[0]])
                targets, rivals, decoys, others = design.triples(chosen)
                found = EFFECTS[effect](model, targets, rivals, decoys, instead=others)
                shifts[effect].setdefault(int(g), []).append(found.shift.value / 2)
    return {
        "likelihood": likelihood,
        "effects": {
            effect: summary([float(np.mean(values)) for values in own.values()])
            for effect, own in shifts.items()
        },
    }


def summary(values: list[float]) -> dict[str, Any]:
    low, high = bootstrap_interval(np.array(values))
    return {
        "mean": float(np.mean(values)),
        "interval": [low, high],
        "above_0": int((np.array(values) > 0).sum()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data/noguchi_stewart_2014"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=500)
    args = parser.parse_args()
    design = Design(args.data)
    content: dict[str, Any] = {
        "machine": platform.machine(),
        "versions": {"entourage": __version__, "torch": torch.__version__},
        "people": {effect: summary(design.people(effect)) for effect in EFFECTS},
    }
    print("people", content["people"])
    alone = None
    for name, net in NETS.items():
        found = judge(design, net, args.seeds, args.steps)
        likelihood = found.pop("likelihood")
        alone = likelihood if alone is None else alone
        found["log_likelihood"] = float(likelihood.mean())
        if name != "ContextFree":
            gain = likelihood - alone
            found["gain"] = {
                "mean": float(gain.mean()),
                "interval": list(bootstrap_interval(gain, design.choice_set)),
            }
        content[name] = found
        print(name, found, flush=True)
    (RESULTS / "noguchi.json").write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
