"""Whether intervals of decisions cover the truth: ``python -m benchmarks.calibration.decisions``.

Simulates 500 choices of a known multinomial or nested logit, fits the model, and asks whether the 95 % intervals of
`what_if` hold what the true model says of the same change: of a share, and of consumer surplus in utils and in money.
From draws of the coefficients and, for the multinomial logit, also from 30 refits to resampled sets. A FATE that learns
from choices of the same multinomial logit has 20 refits; no surplus in money, since it has no coefficient of the cost.

The command fails (status 1) where a coverage is not between 90 and 98 %, by more than two standard errors.
"""

import sys
import time
import warnings
from typing import Any

import numpy as np

from benchmarks.calibration.jobs import arguments, run_jobs
from entourage import FATE, DiscreteChooser
from entourage.choice import MultinomialLogit, NestedLogit
from entourage.decisions import refit_people, what_if

SETS, REFITS, NET_REFITS = 500, 30, 20
SCENARIOS = {
    "multinomial logit, draws": "draws",
    "multinomial logit, refits": "refits",
    "nested logit, draws": "draws",
    "FATE, refits": "refits",
}
QUANTITIES = ("share", "surplus", "money")
CHANGE = {"change": "x2*=1.2", "where": "x0==1", "cost": 2}


def simulate(scenario: str, seed: int) -> dict[str, Any]:
    """Return whether each interval holds the truth, for one data set."""
    begin = time.process_time()
    rng = np.random.default_rng([seed, list(SCENARIOS).index(scenario)])
    ids = np.tile([[1.0], [2.0], [3.0]], (SETS, 1, 1))
    X = np.concatenate([ids, rng.normal(size=(SETS, 3, 1)), rng.uniform(1, 4, size=(SETS, 3, 1))], axis=2)
    nested = scenario.startswith("nested")
    truth: Any = NestedLogit([[2, 3]], intercepts=False) if nested else MultinomialLogit()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        truth.fit(X, rng.integers(0, 3, SETS))  # for its form alone
        if nested:
            truth.theta_ = np.array([1.0, -0.7, np.log(0.5)])
        else:
            truth.theta_ = np.array([0.3, 1.0, -0.7])
        truth.coef_ = truth.theta_.copy()
        p = truth.predict_proba(X)
        y = (p.cumsum(1) < rng.random((SETS, 1))).sum(1).clip(max=2)
        net = scenario.startswith("FATE")
        model: Any = type(truth)(**truth.get_params())
        if net:
            model = DiscreteChooser(FATE(width=16), steps=300, device="cpu", random_state=seed)
        model.fit(X, y)
        refits = None
        if SCENARIOS[scenario] == "refits":
            count = NET_REFITS if net else REFITS
            refits = refit_people(model, X, y, refits=count, random_state=seed)
    change = {name: value for name, value in CHANGE.items() if name != "cost" or not net}
    known = what_if(truth, X, intervals="none", **CHANGE)
    found = what_if(model, X, refits=refits, random_state=seed, **change)
    pairs = {
        "share": (found.shifts[0].change, known.shifts[0].change.value),
        "surplus": (found.surplus, known.surplus.value if known.surplus else np.nan),
        "money": (found.money, known.money.value if known.money else np.nan),
    }
    row: dict[str, Any] = {
        name: bool(one.low <= value <= one.high) for name, (one, value) in pairs.items() if one
    }
    return row | {"seconds": time.process_time() - begin}


def main() -> None:
    """Run what is missing, print coverages, and exit with 1 where one is clearly off."""
    options = arguments("Coverage of intervals of decisions.", data_sets=200)
    jobs = [
        {"scenario": scenario, "seed": seed} for seed in range(options.data_sets) for scenario in SCENARIOS
    ]
    path = options.out / "calibration-decisions.jsonl"
    rows = run_jobs(simulate, jobs, path, workers=options.workers, seconds=options.seconds)
    print(f"{len(rows)} data sets, {sum(row['seconds'] for row in rows):.0f} core-seconds")
    failed = not rows
    for scenario in SCENARIOS:
        mine = [row for row in rows if row["scenario"] == scenario]
        for name in [name for name in QUANTITIES if any(name in row for row in mine)]:
            covered = float(np.mean([row[name] for row in mine]))
            error = 2 * np.sqrt(covered * (1 - covered) / len(mine))
            print(f"{scenario}: {name} covered {covered:.3f} ± {error:.3f} of {len(mine)}")
            failed = failed or covered + error < 0.9 or covered - error > 0.98
    sys.exit(int(failed))


if __name__ == "__main__":
    main()
