"""Whether choice models find the truth: ``python -m benchmarks.calibration.logits [--data-sets 200]``.

Choices are simulated from each model, the model is fitted, and we count how often 95 % intervals (estimate ± 1.96
standard errors) hold the true parameters. Exits with 1 where a model's share is outside 90 to 98 % beyond its exact
95 % interval. Rows in ``results/calibration-logits.jsonl``.
"""

import argparse
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binomtest

from entourage.choice import (
    CrossNestedLogit,
    LatentClassLogit,
    LinearContextLogit,
    MixedLogit,
    NestedLogit,
    RandomRegret,
)

RESULTS = Path(__file__).parents[1] / "results" / "calibration-logits.jsonl"
LOW, HIGH = 0.90, 0.98


def chosen(u: Any, rng: np.random.Generator) -> Any:
    return (u + rng.gumbel(size=u.shape)).argmax(1)


def latent(rng: np.random.Generator) -> tuple[Any, Any]:
    X, who = rng.normal(size=(1500, 3, 2)), np.repeat(np.arange(300), 5)
    kind = (rng.random(300) < 0.35).astype(int)[who]
    taste = np.array([[1.5, 0.5], [-1.0, 1.0]])[kind]
    model = LatentClassLogit(2, restarts=3).fit(X, chosen((X * taste[:, None]).sum(2), rng), groups=who)
    return model, np.array([1.5, 0.5, -1.0, 1.0, np.log(0.35 / 0.65)])


def regret(rng: np.random.Generator) -> tuple[Any, Any]:
    X, b = rng.normal(size=(800, 4, 2)), np.array([0.6, -0.4])
    felt = np.log1p(np.exp(b * (X[:, None] - X[:, :, None]))).sum((2, 3))
    return RandomRegret().fit(X, chosen(-felt, rng)), b


def linear_context(rng: np.random.Generator) -> tuple[Any, Any]:
    X, b, A = rng.normal(size=(1000, 4, 2)), np.array([1.0, -0.5]), np.array([[0.5, 0.0], [-1.0, 0.8]])
    u = (X * (b + X.mean(1) @ A)[:, None]).sum(2)
    return LinearContextLogit().fit(X, chosen(u, rng)), np.append(b, A)


def correlated(rng: np.random.Generator) -> tuple[Any, Any]:
    X, who = rng.normal(size=(2000, 3, 2)), np.repeat(np.arange(250), 8)
    taste = np.array([1.0, -1.0]) + rng.normal(size=(250, 2)) @ np.array([[1.0, 0.8], [0.0, 0.6]])
    y = chosen((X * taste[who][:, None]).sum(2), rng)
    model = MixedLogit([0, 1], correlated=True, draws=200).fit(X, y, groups=who)
    return model, np.array([1.0, -1.0, 1.0, 1.0, 0.8])


def lognormal(rng: np.random.Generator) -> tuple[Any, Any]:
    X, who = rng.normal(size=(2000, 3, 2)), np.repeat(np.arange(250), 8)
    taste = np.stack([-np.exp(rng.normal(0.2, 0.6, size=250)), np.full(250, 0.5)], axis=1)
    y = chosen((X * taste[who][:, None]).sum(2), rng)
    model = MixedLogit({0: "-lognormal"}, draws=200).fit(X, y, groups=who)
    return model, np.array([0.2, 0.5, 0.6])


def nests(model: Any, share: float) -> Callable[[np.random.Generator], tuple[Any, Any]]:
    """Simulate from the probabilities of a (cross-)nested logit with given parameters."""

    def simulate(rng: np.random.Generator) -> tuple[Any, Any]:
        ids = np.tile(np.arange(1.0, 5)[None, :, None], (2000, 1, 1))
        X = np.concatenate([ids, rng.normal(size=(2000, 4, 1))], axis=2)
        made = model()
        sets = made.task.sets_of(X, np.zeros(2000, dtype=int))
        made._prepare(sets)
        middle = [np.log(share / (1 - share))] if made.n_allocations else []
        theta = np.array([0.3, -0.2, 0.1, 1.0, *middle, np.log(0.5), np.log(0.6)])
        p = np.exp(made._utilities(theta, made._design(sets))).reshape(2000, 4)
        y = (rng.random((2000, 1)) > p.cumsum(1)).sum(1)
        truth = np.array([0.3, -0.2, 0.1, 1.0, *([share] if middle else []), 0.5, 0.6])
        return made.fit(X, np.minimum(y, 3)), truth

    return simulate


WORLDS: dict[str, Callable[[np.random.Generator], tuple[Any, Any]]] = {
    "RandomRegret": regret,
    "LinearContextLogit": linear_context,
    "NestedLogit": nests(lambda: NestedLogit([[1, 2], [3, 4]]), 0.5),
    "CrossNestedLogit": nests(lambda: CrossNestedLogit([[1, 2], [2, 3, 4]]), 0.5),
    "LatentClassLogit": latent,
    "MixedLogit, lognormal": lognormal,
    "MixedLogit, correlated": correlated,
}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-sets", type=int, default=200)
    parser.add_argument("--world", action="append", choices=WORLDS)
    given = parser.parse_args()
    wrong = False
    for number, (name, world) in enumerate(WORLDS.items()):
        if given.world and name not in given.world:
            continue
        hits, bias = [], []
        for seed in range(given.data_sets):
            with warnings.catch_warnings(action="ignore"):
                model, truth = world(np.random.default_rng([seed, number]))
            away = (model.coef_ - truth) / model.standard_errors_
            hits.append(np.abs(away) < 1.96)
            bias.append(model.coef_ - truth)
        held = np.array(hits)
        interval = binomtest(int(held.sum()), held.size).proportion_ci(0.95)
        row = {
            "world": name,
            "data_sets": given.data_sets,
            "coverage": float(held.mean()),
            "interval": [interval.low, interval.high],
            "by_parameter": held.mean(0).round(3).tolist(),
            "bias": np.mean(bias, axis=0).round(4).tolist(),
        }
        wrong |= interval.high < LOW or interval.low > HIGH
        print(json.dumps(row), flush=True)
        with RESULTS.open("a") as file:
            file.write(json.dumps(row) + "\n")
    sys.exit(int(wrong))
