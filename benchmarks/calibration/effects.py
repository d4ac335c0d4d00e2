"""Whether intervals of context effects hold what they say: ``python -m benchmarks.calibration.effects``.

Simulates choices from sets of 2 to 5 alternatives, with or without a context effect, fits a small FATE, refits it to
resampled groups (`entourage.effects.refits`) and makes the seven 95 % confidence intervals that ``entourage
effects`` prints. Without context the truth of all is 0, and a share of 5 % may exclude it; we ask for 7 % at most.
With a known effect (an alternative loses utility with its squared distance from the mean of its set: people like the
middle) the truth is what the true utility function shows on the same sets, and we ask that 90 % cover it.

Printed with exact (Clopper-Pearson) 95 % intervals. The command fails (status 1) where the mean share of a scenario is
beyond its bound by more than two standard errors over data sets.
"""

import sys
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.calibration.jobs import arguments, rate, run_jobs
from entourage import FATE, DiscreteChooser
from entourage.data.sets import Sets
from entourage.effects import EffectsReport, Quantity, effects_report, refit_resampled

MOST_EXCLUDED, LEAST_COVERED = 0.07, 0.90
REFITS = 12
SCENARIOS: dict[str, dict[str, Any]] = {
    "no context, linear": {"n": 200, "context": 0.0},
    "no context, curved": {"n": 500, "context": 0.0, "curve": 0.5, "features": 3},
    "no context, 60 people": {"n": 300, "context": 0.0, "curve": 0.5, "people": 60},
    "known effect, 300 sets": {"n": 300, "context": 0.6},
    "known effect, 600 sets": {"n": 600, "context": 0.6},
}
SINGLE = ("reversal_rate", "iia_violation", "regularity_rate", "regularity_amount")
NATURAL = ("attraction", "compromise", "similarity")
ALL = (*SINGLE, *NATURAL)


class Truth:
    """The utility by which people choose."""

    def __init__(self, context: float, curve: float) -> None:
        self.context, self.curve = context, curve

    def utility(self, x: NDArray[Any]) -> NDArray[Any]:
        """Return the utilities of the alternatives of one set."""
        own = x @ np.array([1.0, 0.7, 0.4])[: x.shape[1]] + self.curve * np.sin(2 * x[:, 0])
        return np.asarray(own - self.context * np.square(x - x.mean(0)).sum(1))

    def predict_scores(self, sets: Sets) -> NDArray[Any]:
        """Return them packed, as a model does."""
        return np.concatenate([self.utility(x) for x in sets.to_list()])


def draw(
    truth: Truth, n: int, features: int, people: int | None, seed: int
) -> tuple[Sets, NDArray[Any] | None]:
    """Draw sets, what was chosen from them, and who chose: people differ in what they are offered."""
    rng = np.random.default_rng([seed, n, features, people or 0, round(1000 * truth.context)])
    groups = None if people is None else np.arange(n) % people
    levels = np.zeros((n, features)) if groups is None else rng.normal(size=(n, features))[groups]
    X = [
        level + rng.normal(size=(m, features)) for level, m in zip(levels, rng.integers(2, 6, n), strict=True)
    ]
    chosen = [(truth.utility(x) + rng.gumbel(size=len(x))).argmax() for x in X]
    rows = [(np.arange(len(x)) != c).astype(float) for x, c in zip(X, chosen, strict=True)]
    return Sets.from_list(X, rows), groups


def simulate(scenario: str, seed: int) -> dict[str, Any]:
    """Return the seven intervals for one data set, with their truths."""
    begin = time.process_time()
    settings = {"curve": 0.0, "features": 2, "people": None} | SCENARIOS[scenario]
    truth = Truth(settings["context"], settings["curve"])
    sets, groups = draw(truth, settings["n"], settings["features"], settings["people"], seed)
    model = DiscreteChooser(FATE(width=16), steps=300, device="cpu", random_state=seed).fit(sets)
    refits = refit_resampled(model, sets, groups=groups, refits=REFITS, random_state=seed)
    options: dict[str, Any] = {
        "better": {f"x{i}": "more" for i in range(settings["features"])},
        "most_triples": 500,
        "draws": 0,
    }
    report = effects_report(model, sets, refits=refits, **options)
    true = effects_report(truth, sets, **options)
    kept = ("value", "refits", "reference", "estimate", "interval")
    rows = {
        name: {key: getattr(_quantity(report, name), key) for key in kept}
        | {"truth": _quantity(true, name).value}
        for name in ALL
    }
    return {"quantities": rows, "seconds": time.process_time() - begin}


def _quantity(report: EffectsReport, name: str) -> Quantity:
    """Return one of the seven quantities; there is always a case of each effect."""
    return getattr(report, name) if name in SINGLE else report.natural_effects.quantity(name)  # type: ignore[return-value]


def main() -> None:
    """Run what is missing, print the shares, and exit with 1 where one is clearly beyond its bound."""
    options = arguments("Coverage of the intervals of context effects.", data_sets=24)
    jobs = [
        {"scenario": scenario, "seed": seed} for seed in range(options.data_sets) for scenario in SCENARIOS
    ]
    path = options.out / "calibration-effects.jsonl"
    rows = run_jobs(simulate, jobs, path, workers=options.workers, seconds=options.seconds)
    print(f"{len(rows)} data sets, {sum(row['seconds'] for row in rows):.0f} core-seconds")
    failed = not rows  # no data, no claim
    for scenario, settings in SCENARIOS.items():
        mine = [row["quantities"] for row in rows if row["scenario"] == scenario]
        if not mine:
            continue
        without = settings["context"] == 0
        print(
            f"{scenario}: {len(mine)} data sets; share of intervals that {'exclude 0' if without else 'cover'}"
        )
        flags = np.array(
            [[_flag(row[name], without=without) for name in ALL] for row in mine]
        )  # (data sets, 7)
        for i, name in enumerate(ALL):
            share, low, high = rate(flags[:, i].tolist())
            means = "".join(
                f"  {key} {np.mean([row[name][key] for row in mine]):+.4f}"
                for key in ("truth", "value", "refits", "reference", "estimate")
            )
            found = np.mean([_excludes(row[name]["interval"], 0.0) for row in mine])
            print(f"  {name:18s} {share:.3f} [{low:.3f}, {high:.3f}]{means}  exclude 0: {found:.2f}")
        shares = flags.mean(1)  # of a data set: its seven intervals are not independent
        error = shares.std(ddof=1) / np.sqrt(len(shares)) if len(shares) > 1 else float("inf")
        print(
            f"  all                {shares.mean():.3f} ± {2 * error:.3f} (two standard errors over data sets)"
        )
        beyond = (
            shares.mean() - 2 * error > MOST_EXCLUDED
            if without
            else shares.mean() + 2 * error < LEAST_COVERED
        )
        failed = failed or bool(beyond)
    sys.exit(int(failed))


def _flag(entry: dict[str, Any], *, without: bool) -> bool:
    """Whether an interval excludes 0; with a known effect, whether it covers the truth."""
    excluded = _excludes(entry["interval"], 0.0 if without else entry["truth"])
    return excluded if without else not excluded


def _excludes(interval: list[float], value: float) -> bool:
    return not interval[0] - 1e-12 <= value <= interval[1] + 1e-12


if __name__ == "__main__":
    main()
