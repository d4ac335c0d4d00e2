"""What it costs to offer the best set of a context-free model: ``python -m benchmarks.decisions``.

Products have two attributes, both better when larger, near the line on which one is traded for the other. Choices,
buying nothing included, are drawn from a softmax of the mean attribute plus a known context effect (attraction,
similarity or compromise; "none" is the negative control). A context-free net, FATE, FETA and SetAttention are fitted
to the choices. For new catalogues with random margins, `best_assortment` finds the best set of up to four of twelve
products under each model, and all are sold in the true world, beside the best set of the truth. Rows are kept in
``results/decisions.jsonl``.

``python -m benchmarks.decisions --speed`` measures the enumeration of all 2^20 sets of 20 objects.
"""

import argparse
import json
import os
import platform
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.measure import peak_megabytes
from entourage import FATE, FETA, ContextFree, DiscreteChooser, SetAttention, Sets, __version__
from entourage.choice import ContextualLogit
from entourage.data.resampling import bootstrap_interval
from entourage.data.synthetic.context_effects import EFFECTS
from entourage.decisions import best_assortment

RESULTS = Path(__file__).parent / "results"
STRENGTH = {"none": 0.0, "attraction": 1.5, "similarity": 1.5, "compromise": 3.0}
PRODUCTS, LARGEST = 12, 4


def products(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Draw products near the trade-off line, (..., 2)."""
    along = rng.random(shape)
    return (np.stack([along, 1 - along], axis=-1) + rng.normal(0, 0.12, (*shape, 2))).clip(0, 1)


def true_probabilities(X: np.ndarray, effect: str) -> np.ndarray:
    """Return how often each product of sets (n, m, 2) is chosen; the rest is nothing."""
    added = 0.0 if effect == "none" else STRENGTH[effect] * EFFECTS[effect](X)
    powers = np.exp(4 * X.mean(2) - 2.5 + added)
    return powers / (1 + powers.sum(1, keepdims=True))


def simulate(effect: str, n_sets: int, rng: np.random.Generator) -> Sets:
    """Draw choice sets of one to six products, and what is chosen."""
    parts = []
    for m in range(1, 7):
        X = products((n_sets // 6, m), rng)
        p = true_probabilities(X, effect)
        place = (p.cumsum(1) < rng.random((len(X), 1))).sum(1)  # m: nothing
        parts.append(Sets.of(X, (np.arange(m) != place[:, None]).astype(float)))
    return Sets.concatenate(parts)


def best_of_truth(X: np.ndarray, margins: np.ndarray, effect: str) -> float:
    """Return the largest true revenue of a set."""
    best = 0.0
    for m in range(1, LARGEST + 1):
        rows = np.array(list(combinations(range(PRODUCTS), m)))
        best = max(best, float((true_probabilities(X[rows], effect) * margins[rows]).sum(1).max()))
    return best


def run(effect: str, n_sets: int, catalogues: int, steps: int, seed: int) -> dict[str, Any]:
    """Fit, optimise, and sell in the true world."""
    start, rng = time.perf_counter(), np.random.default_rng(seed)
    sets = simulate(effect, n_sets, rng)
    settings = {"outside": True, "steps": steps, "device": "cpu", "random_state": seed}
    models = {"ContextFree": ContextFree(width=64), "FATE": FATE(width=64), "FETA": FETA(width=64)}
    models["SetAttention"] = SetAttention(width=32, rounds=2, features="linear")
    fitted = {name: DiscreteChooser(net, **settings).fit(sets) for name, net in models.items()}
    held_out = simulate(effect, 6000, rng)
    revenue: dict[str, list[float]] = {name: [] for name in [*models, "truth", "promised by ContextFree"]}
    methods = {}
    for _ in range(catalogues):
        X, margins = products((PRODUCTS,), rng), rng.uniform(0.5, 1.5, PRODUCTS)
        for name, model in fitted.items():
            found = best_assortment(model, X, margins, size=(1, LARGEST))
            methods[name] = found.method
            own = found.objects
            revenue[name].append(float(true_probabilities(X[None, own], effect)[0] @ margins[own]))
            if name == "ContextFree":
                revenue["promised by ContextFree"].append(found.value)
        revenue["truth"].append(best_of_truth(X, margins, effect))
    best = np.array(revenue["truth"])
    lost = {name: 100 * (1 - np.array(revenue[name]) / best) for name in models}
    saved = {name: lost["ContextFree"] - lost[name] for name in models if name != "ContextFree"}
    return {
        "effect": effect,
        "sets": len(sets),
        "catalogues": catalogues,
        "seed": seed,
        "log_likelihood": {name: model.log_likelihood(held_out) for name, model in fitted.items()},
        "revenue": {name: float(np.mean(values)) for name, values in revenue.items()},
        "lost_percent": {name: float(values.mean()) for name, values in lost.items()},
        "saved_percent": {name: float(values.mean()) for name, values in saved.items()},
        "saved_interval": {
            name: [float(end) for end in bootstrap_interval(values)] for name, values in saved.items()
        },
        "optimal_sets": {name: float((values < 1e-6).mean()) for name, values in lost.items()},
        "methods": methods,
        "seconds": round(time.perf_counter() - start, 1),
        "machine": f"{platform.machine()}, {torch.get_num_threads()} threads, torch {torch.__version__}",
        "version": __version__,
    }


def speed() -> None:
    """Enumerate all sets of 20 objects; OMP_NUM_THREADS sets the threads."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 6, 4)), rng.integers(0, 6, 2000)
    ids = np.array([rng.choice(20, 6, replace=False) + 1.0 for _ in range(2000)])[:, :, None]
    objects, value = rng.normal(size=(20, 4)), rng.uniform(1, 2, 20)
    models = {
        "ContextualLogit, 4 features": (ContextualLogit().fit(X, y), objects),
        "ContextualLogit, 20 alternatives": (
            ContextualLogit(alternatives=20, l2=1.0).fit(ids, y),
            np.arange(1.0, 21)[:, None],
        ),
        "FATE": (DiscreteChooser(FATE(), outside=True, steps=50, random_state=0).fit(X, y), objects),
    }
    for name, (model, given) in models.items():
        start = time.perf_counter()
        found = best_assortment(model, given, value, verbose=True)
        seconds = time.perf_counter() - start
        peak, threads = peak_megabytes(), torch.get_num_threads()
        print(
            f"{name}: {found.evaluated:,} sets, {seconds:.0f} s, {found.method}, {threads} threads, peak of the "
            f"process {peak:.0f} MB, load {os.getloadavg()[0]:.1f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--effect", action="append", choices=list(STRENGTH))
    parser.add_argument("--sets", type=int, default=12_000)
    parser.add_argument("--catalogues", type=int, default=200)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS / "decisions.jsonl")
    args = parser.parse_args()
    if args.speed:
        speed()
        return
    for effect in args.effect or STRENGTH:
        row = run(effect, args.sets, args.catalogues, args.steps, args.seed)
        with args.out.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{effect}, {row['seconds']} s")
        for name, lost in row["lost_percent"].items():
            words = f"  {name}: log-likelihood {row['log_likelihood'][name]:.4f}, revenue lost {lost:.2f} %"
            if name in row["saved_percent"]:
                low, high = row["saved_interval"][name]
                words += f"; saved {row['saved_percent'][name]:.2f} [{low:.2f}, {high:.2f}]"
            print(words, flush=True)


if __name__ == "__main__":
    main()
