"""Whether intervals of choice models hold the truth: ``python -m benchmarks.calibration.logits``.

Choices are simulated from each model, the model is fitted, and 95 % intervals (estimate ± 1.96 standard errors, those
that z values are made of) hold the true parameters or don't. The issue asks that 90 to 98 % do.

Printed with exact (Clopper-Pearson) 95 % intervals, which take the parameters of a fit for independent, and for each
parameter with the mean and the standard deviation of (estimate - truth) / standard error, which should be 0 and 1. The
command fails (status 1) where a share of a model is clearly beyond.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.calibration.jobs import arguments, rate, run_jobs
from entourage.choice import (
    ContextualLogit,
    CrossNestedLogit,
    LatentClassLogit,
    LinearContextLogit,
    MixedLogit,
    MultinomialLogit,
    NestedLogit,
    RandomRegret,
)

LEAST, MOST = 0.90, 0.98


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


def multinomial(rng: np.random.Generator) -> tuple[Any, Any]:
    X, b = rng.normal(size=(800, 4, 2)), np.array([1.0, -0.5])
    return MultinomialLogit().fit(X, chosen(X @ b, rng)), b


def clustered(rng: np.random.Generator) -> tuple[Any, Any]:
    """Choices of a person are alike: each has a favourite place, which the model doesn't know."""
    X, b, who = rng.normal(size=(1200, 4, 2)), np.zeros(2), np.repeat(np.arange(150), 8)
    X[..., 0] = rng.normal(size=(150, 4))[who]  # the same in all choices of a person
    favourite = rng.normal(size=(150, 4))[who]
    return MultinomialLogit().fit(X, chosen(favourite, rng), groups=who), b


def contextual(rng: np.random.Generator) -> tuple[Any, Any]:
    X, b, A = rng.normal(size=(1000, 4, 2)), np.array([1.0, -0.5]), np.array([[0.2, 0.0], [-0.3, 0.1]])
    u = X @ b + ((X.sum(1, keepdims=True) - X) @ A * X).sum(2)
    return ContextualLogit().fit(X, chosen(u, rng)), np.append(b, A)


def normal(rng: np.random.Generator) -> tuple[Any, Any]:
    X, who = rng.normal(size=(2000, 3, 2)), np.repeat(np.arange(250), 8)
    taste = np.stack([rng.normal(1.0, 0.8, size=250), np.full(250, -0.5)], axis=1)
    y = chosen((X * taste[who][:, None]).sum(2), rng)
    return MixedLogit([0], draws=200).fit(X, y, groups=who), np.array([1.0, -0.5, 0.8])


def nests(model: Any, share: float) -> Callable[[np.random.Generator], tuple[Any, Any]]:
    """Simulate from the probabilities of a (cross-)nested logit with given parameters."""

    def made(rng: np.random.Generator) -> tuple[Any, Any]:
        ids = np.tile(np.arange(1.0, 5)[None, :, None], (2000, 1, 1))
        X = np.concatenate([ids, rng.normal(size=(2000, 4, 1))], axis=2)
        one = model()
        sets = one.task.sets_of(X, np.zeros(2000, dtype=int))
        one._prepare(sets)
        middle = [np.log(share / (1 - share))] if one.n_allocations else []
        theta = np.array([0.3, -0.2, 0.1, 1.0, *middle, np.log(0.5), np.log(0.6)])
        p = np.exp(one._utilities(theta, one._design(sets))).reshape(2000, 4)
        y = (rng.random((2000, 1)) > p.cumsum(1)).sum(1)
        truth = np.array([0.3, -0.2, 0.1, 1.0, *([share] if middle else []), 0.5, 0.6])
        return one.fit(X, np.minimum(y, 3)), truth

    return made


WORLDS: dict[str, Callable[[np.random.Generator], tuple[Any, Any]]] = {
    "RandomRegret": regret,
    "LinearContextLogit": linear_context,
    "NestedLogit": nests(lambda: NestedLogit([[1, 2], [3, 4]]), 0.5),
    "CrossNestedLogit": nests(lambda: CrossNestedLogit([[1, 2], [2, 3, 4]]), 0.5),
    "LatentClassLogit": latent,
    "MixedLogit, lognormal": lognormal,
    "MixedLogit, correlated": correlated,
    "MultinomialLogit": multinomial,
    "MultinomialLogit, clustered": clustered,
    "ContextualLogit": contextual,
    "MixedLogit, normal": normal,
}


def simulate(world: str, seed: int) -> dict[str, Any]:
    """Return how far each estimate is from the truth, in standard errors."""
    begin = time.process_time()
    with warnings.catch_warnings(action="ignore"):
        model, truth = WORLDS[world](np.random.default_rng([seed, list(WORLDS).index(world)]))
    errors = model.robust_standard_errors_ if model.clustered else model.standard_errors_
    away = ((model.coef_ - truth) / errors).round(4).tolist()
    found = {"away": away, "names": model.parameter_names_, "converged": bool(model.converged_)}
    return found | {"seconds": round(time.process_time() - begin, 2)}


def report(world: str, rows: list[dict[str, Any]]) -> bool:
    """Print the coverage in one world; return whether it is clearly beyond its bounds."""
    away = np.array(
        [row["away"] for row in rows], dtype=float
    )  # (data sets, parameters); NaN: not identified
    held = np.abs(away) < 1.96
    share, low, high = rate(held.ravel().tolist())
    failed = sum(not row["converged"] for row in rows)
    print(f"{world}: {share:.3f} [{low:.3f}, {high:.3f}] of {held.size}, {len(rows)} data sets", end="")
    print(f", {failed} without convergence" if failed else "")
    for i, name in enumerate(rows[0]["names"]):
        print(f"    {name:32s} {held[:, i].mean():.3f}   {away[:, i].mean():+.2f} ± {away[:, i].std():.2f}")
    return high < LEAST or low > MOST


def main() -> None:
    """Run what is missing, print the shares, and exit with 1 where one is clearly beyond its bounds."""
    options = arguments("Coverage of the intervals of choice models.", data_sets=200, more=_worlds)
    worlds = options.world or list(WORLDS)
    jobs = [{"world": world, "seed": seed} for seed in range(options.data_sets) for world in worlds]
    path = options.out / "calibration-logits.jsonl"
    rows = run_jobs(simulate, jobs, path, workers=options.workers, seconds=options.seconds)
    print(f"{len(rows)} data sets, {sum(row['seconds'] for row in rows):.0f} core-seconds")
    by_world = {world: [row for row in rows if row["world"] == world] for world in worlds}
    wrong = [report(world, mine) for world, mine in by_world.items() if mine]
    sys.exit(int(any(wrong) or not rows))


def _worlds(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--world", action="append", choices=WORLDS, help="only this; may be repeated")


if __name__ == "__main__":
    main()
