"""Whether probabilities and coverage hold what they say: ``python -m benchmarks.calibration.probabilities``.

Simulates rankings and choices of known utilities, fits a small FATE to 300 sets, and asks on 500 fresh ones how
often place intervals (rankings) and prediction sets (choices) hold the truth, at stated coverages of 80, 90 and 95
%: as the model is calibrated in ``fit``, on the 30 sets that it holds out for early stopping, and by ``calibrate``
on 100 fresh sets. Beside it the expected calibration error of the probability of the first place: of a softmax of
the scores as they are, and with the temperature of either calibration; and that of the softmax of the true
utilities, which is chance alone but for normal noise. In one scenario the order behind the first place is noisier.

The command fails (status 1) where the coverage with fresh sets is below the stated one by more than two standard
errors over data sets.
"""

import sys
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.calibration.jobs import arguments, run_jobs
from entourage import FATE, DiscreteChooser, Ranker
from entourage.data.sets import Sets
from entourage.tasks import Choice
from entourage.tasks.reliability import expected_calibration_error

COVERAGES = (0.8, 0.9, 0.95)
TRAIN, FRESH, TEST = 300, 100, 500
SCENARIOS: dict[str, dict[str, Any]] = {
    "rankings, hinge": {"sizes": (6, 6)},
    "rankings, plackett_luce": {"sizes": (6, 6), "loss": "plackett_luce"},
    "rankings, hinge, sizes 2 to 12": {"sizes": (2, 12)},
    "rankings, hinge, normal noise": {"sizes": (6, 6), "noise": "normal"},
    "choices": {"sizes": (6, 6), "task": "choice"},
    "choices, outside option, sizes 1 to 8": {"sizes": (1, 8), "task": "outside"},
    "rankings, hinge, lower places noisier": {"sizes": (12, 12), "noise": "behind the first"},
}


def draw(
    n: int, sizes: tuple[int, int], noise: str, outside: bool, rng: np.random.Generator
) -> tuple[Sets, NDArray[Any]]:
    """Draw sets with ranks, and their true utilities, packed; all ranks are 1 where the outside option is best."""
    counts = rng.integers(sizes[0], sizes[1] + 1, n)
    X = [rng.normal(size=(m, 3)) for m in counts]
    utility = [1.5 * x[:, 0] - x[:, 1] - 0.5 * np.square(x[:, 0] - x[:, 0].mean()) for x in X]
    chance = rng.normal if noise == "normal" else rng.gumbel
    seen = [u + chance(size=len(u)) for u in utility]
    if noise == "behind the first":  # as in many races
        seen = [
            np.where(s == s.max(), np.inf, u / 4 + chance(size=len(u)))
            for u, s in zip(utility, seen, strict=True)
        ]
    ranks = [(-s).argsort().argsort().astype(float) for s in seen]
    if outside:
        ranks = [
            own if s.max() > rng.gumbel() else np.full(len(s), 1.0)
            for own, s in zip(ranks, seen, strict=True)
        ]
    return Sets.from_list(X, ranks), np.concatenate(utility)


def as_choices(sets: Sets) -> Sets:
    """Turn first places into choices."""
    targets: NDArray[Any] = sets.targets  # type: ignore[assignment]
    return sets.with_targets((targets > 0).astype(float), worst=1.0)


def softmax(sets: Sets, scores: NDArray[Any], outside: bool) -> NDArray[Any]:
    return Choice(outside=outside).probabilities(sets, scores)


def simulate(scenario: str, seed: int) -> dict[str, Any]:
    """Return coverages, sizes and calibration errors for one data set."""
    begin = time.process_time()
    own = {"noise": "gumbel", "task": "rank", "loss": "hinge"} | SCENARIOS[scenario]
    outside, ranking = own["task"] == "outside", own["task"] == "rank"
    rng = np.random.default_rng([seed, list(SCENARIOS).index(scenario)])
    drawn = [draw(n, own["sizes"], own["noise"], outside, rng) for n in (TRAIN, FRESH, TEST)]
    train, fresh, test = (sets if ranking else as_choices(sets) for sets, _ in drawn)
    settings: dict[str, Any] = {"steps": 400, "device": "cpu", "random_state": seed}
    model: Any = (
        Ranker(FATE(width=16), loss=own["loss"], **settings)
        if ranking
        else DiscreteChooser(FATE(width=16), outside=outside, **settings)
    )
    model.fit(train)
    targets: NDArray[Any] = test.targets  # type: ignore[assignment]
    scores = model.predict_scores(test)
    row: dict[str, Any] = {
        "ece": {
            "true": expected_calibration_error(softmax(test, drawn[2][1], outside), targets == 0),
            "scores": expected_calibration_error(softmax(test, scores, outside), targets == 0),
        }
    }
    for name in ("held-out", "fresh"):
        if name == "fresh":
            model.calibrate(fresh)
        if ranking:
            row["ece"][name] = expected_calibration_error(model.predict_proba(test), targets == 0)
            row[f"temperature {name}"] = model.temperature_
        row[name] = {str(coverage): covered(model, test, coverage) for coverage in COVERAGES}
    return row | {"seconds": time.process_time() - begin}


def covered(model: Any, test: Sets, coverage: float) -> tuple[float, float]:
    """Return the share that was covered, of a random object or choice of a random set, and the mean size."""
    targets: NDArray[Any] = test.targets  # type: ignore[assignment]
    starts = test.offsets[:-1]
    if isinstance(model, Ranker):
        low, high = model.predict_place_intervals(test, coverage)
        hits = (low <= targets) & (targets <= high)
        shares = np.add.reduceat(hits, starts) / test.sizes
        return float(shares.mean()), float((np.add.reduceat(high - low + 1, starts) / test.sizes).mean())
    inside, nothing = model.predict_sets(test, coverage, return_nothing=True)
    chosen = np.logical_or.reduceat(targets == 0, starts)
    hits = np.where(chosen, np.logical_or.reduceat(inside & (targets == 0), starts), nothing)
    return float(hits.mean()), float((np.add.reduceat(inside, starts) + nothing).mean())


def main() -> None:
    """Run what is missing, print the shares, and exit with 1 where coverage is clearly too low."""
    options = arguments("Coverage of prediction sets and place intervals, and calibration.", data_sets=20)
    jobs = [
        {"scenario": scenario, "seed": seed} for seed in range(options.data_sets) for scenario in SCENARIOS
    ]
    path = options.out / "calibration-probabilities.jsonl"
    rows = run_jobs(simulate, jobs, path, workers=options.workers, seconds=options.seconds)
    print(f"{len(rows)} data sets, {sum(row['seconds'] for row in rows):.0f} core-seconds")
    failed = not rows  # no data, no claim
    for scenario in SCENARIOS:
        mine = [row for row in rows if row["scenario"] == scenario]
        if not mine:
            continue
        print(f"{scenario}: {len(mine)} data sets")
        for name in ("held-out", "fresh"):
            for coverage in COVERAGES:
                values = np.array([row[name][str(coverage)] for row in mine])  # (data sets, 2)
                mean, size = values.mean(0)
                error = values[:, 0].std(ddof=1) / np.sqrt(len(mine)) if len(mine) > 1 else float("inf")
                print(
                    f"  {name:9s} stated {coverage:.2f}: covered {mean:.4f} ± {2 * error:.4f}, mean size {size:.2f}"
                )
                failed = failed or (name == "fresh" and bool(mean + 2 * error < coverage))
        errors = {key: np.mean([row["ece"][key] for row in mine]) for key in mine[0]["ece"]}
        print("  ECE  " + "  ".join(f"{key} {value:.4f}" for key, value in errors.items()))
    sys.exit(int(failed))


if __name__ == "__main__":
    main()
