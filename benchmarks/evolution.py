"""Selection in an evolutionary algorithm by hypervolume contributions: exact, estimated, learnt.

    python -m benchmarks.evolution --weights FOLDER_OF_HVC_NET --model hvc-folder/models/…/model.entourage
    python -m benchmarks.evolution --show

A steady-state algorithm like SMS-EMOA (Beume, Naujoks and Emmerich 2007): one offspring a step by pymoo's operators
(pip install pymoo), then of the worst front the point goes that contributes least. Objectives of a front are brought to
the unit cube by its smallest and 1.1 times its range, for all ways of selection alike. Rows go to
benchmarks/results/evolution.jsonl; a row that is there is not run again.
"""

import argparse
import json
import platform
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch

import entourage
from entourage.data import (
    Sets,
    bounded_contributions,
    exact_contributions,
    front_features,
    non_dominated_fronts,
    ray_contributions,
)
from entourage.experiments.hvc_bounds import BetweenBounds
from entourage.experiments.hvc_net import HVCNet

FILE = Path(__file__).parent / "results" / "evolution.jsonl"
OFFSPRING = {3: 4000, 5: 4000, 10: 1500}  # by the number of objectives
PARENTS = 60
RAYS, TOLERANCE = 64, 0.3
REFERENCE = 1.1  # of the hypervolume that is reported: the ideal front lies within 1

Estimate = Callable[[np.ndarray], np.ndarray]


def crowding(points: np.ndarray) -> np.ndarray:
    """NSGA-II's crowding distance; infinite at the ends."""
    m, d = points.shape
    found = np.zeros(m)
    for k in range(d):
        order = np.argsort(points[:, k])
        values = points[order, k]
        found[order[[0, -1]]] = np.inf
        found[order[1:-1]] += (values[2:] - values[:-2]) / max(values[-1] - values[0], 1e-12)
    return found


def estimates(
    d: int, weights: Path | None, models: list[Path], rng: np.random.Generator
) -> dict[str, Estimate]:
    """All ways to say what a point of a front contributes."""
    found: dict[str, Estimate] = {
        "exact": exact_contributions,
        "bounds": lambda points: bounded_contributions(points, tolerance=TOLERANCE).estimate,
        f"{RAYS} rays": lambda points: ray_contributions(Sets.of(points[None]), rays=RAYS),
        "crowding": crowding,
        "random": lambda points: rng.random(len(points)),
    }
    if weights is not None:
        net = HVCNet.find(weights, d)
        found["HVC-Net"] = lambda points: net.contributions(
            Sets.of(points[None].astype(np.float32)), torch.device("cpu")
        )
    for path in models:
        model = entourage.load(path)
        plain, seen = d == model.n_features_in_, front_features(Sets.of(np.full((1, 1, d), 0.5)))
        if plain or seen.n_features == model.n_features_in_:
            name = "learnt" if isinstance(model.net_, BetweenBounds) else type(model.net_).__name__
            found[name] = partial(_scores, model, plain)
    return found


def _scores(model: entourage.Ranker, plain: bool, points: np.ndarray) -> np.ndarray:
    sets = Sets.of(points[None].astype(np.float32))
    return np.asarray(
        model.predict_scores(sets if plain else front_features(sets, tolerance=TOLERANCE))
    ).reshape(-1)


def evolve(problem_name: str, d: int, estimate: Estimate, offspring: int, seed: int) -> tuple[float, float]:
    """Run the algorithm; return the hypervolume reached and the seconds of a core that selection took."""
    from pymoo.core.population import Population
    from pymoo.indicators.hv import HV
    from pymoo.operators.crossover.sbx import SBX
    from pymoo.operators.mutation.pm import PM
    from pymoo.problems import get_problem

    problem = get_problem(problem_name, n_var=d + 9, n_obj=d)
    rng = np.random.default_rng(seed)
    x = rng.random((PARENTS, problem.n_var))
    f = problem.evaluate(x)
    cross, mutate = SBX(prob=1.0, eta=15), PM(eta=20)
    seconds = 0.0
    for _ in range(offspring):
        pair = Population.new(X=x[rng.choice(len(x), 2, replace=False)])
        child = cross.do(problem, pair, np.array([[0, 1]]), random_state=rng)
        child = mutate.do(problem, child[:1], random_state=rng).get("X")
        x, f = np.vstack([x, child]), np.vstack([f, problem.evaluate(child)])
        worst = non_dominated_fronts(f)[-1]
        own = f[worst]
        low, high = own.min(0), own.max(0)
        points = (own - low) / (1.1 * np.maximum(high - low, 1e-12))
        start = time.process_time()  # of one thread: what else runs on the machine doesn't count
        loser = worst[int(np.argmin(estimate(points)))] if len(worst) > 1 else worst[0]
        seconds += time.process_time() - start
        x, f = np.delete(x, loser, 0), np.delete(f, loser, 0)
    reached = HV(ref_point=np.full(d, REFERENCE))(f) or 0.0
    return float(reached) / REFERENCE**d, seconds


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--weights", type=Path, help="folder of HVC-Net's weights")
    parser.add_argument(
        "--model", type=Path, action="append", default=[], help="a fitted model; may be given again"
    )
    parser.add_argument("--objectives", type=int, nargs="+", default=[3, 5])
    parser.add_argument("--problem", default="dtlz2")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--offspring", type=int, help="instead of 4,000 or, with ten objectives, 1,500")
    parser.add_argument("--only", nargs="+", help="these ways of selection")
    parser.add_argument("--show", action="store_true", help="print the table of the rows")
    given = parser.parse_args()
    torch.set_num_threads(1)
    rows = [json.loads(line) for line in FILE.read_text().splitlines()] if FILE.exists() else []
    if given.show:
        show(rows)
        return
    for d in given.objectives:
        offspring = given.offspring or OFFSPRING[d]
        for seed in range(given.seeds):
            for name, estimate in estimates(
                d, given.weights, given.model, np.random.default_rng(seed)
            ).items():
                key = {
                    "problem": given.problem,
                    "objectives": d,
                    "offspring": offspring,
                    "seed": seed,
                    "by": name,
                }
                if (given.only and name not in given.only) or any(key.items() <= row.items() for row in rows):
                    continue
                estimate(np.random.default_rng(0).random((5, d)))  # compiled, loaded
                reached, seconds = evolve(given.problem, d, estimate, offspring, seed)
                row = {
                    **key,
                    "hypervolume": round(reached, 5),
                    "seconds": round(seconds, 2),
                    "machine": f"{platform.machine()} CPU",
                }
                rows.append(row)
                print(json.dumps(row), flush=True)
                FILE.write_text("".join(json.dumps(row) + "\n" for row in rows))
    show(rows)


def show(rows: list[dict]) -> None:
    """Print a table for each problem: mean hypervolume, its standard deviation, milliseconds a selection."""
    for problem, d in dict.fromkeys((row["problem"], row["objectives"]) for row in rows):
        mine = [row for row in rows if (row["problem"], row["objectives"]) == (problem, d)]
        seeds = len({row["seed"] for row in mine})
        print(f"\n{problem}, {d} objectives, {mine[0]['offspring']:,} offspring, {seeds} seeds\n")
        print("| selection by | hypervolume | sd | ms a selection |\n| --- | ---: | ---: | ---: |")
        for name in dict.fromkeys(row["by"] for row in mine):
            own = [row for row in mine if row["by"] == name]
            values = [row["hypervolume"] for row in own]
            cost = np.mean([1000 * row["seconds"] / row["offspring"] for row in own])
            print(f"| {name} | {np.mean(values):.4f} | {np.std(values):.4f} | {cost:.2g} |")


if __name__ == "__main__":
    main()
