"""Whether intervals of trade-offs hold what they say: ``python -m benchmarks.calibration.trade_offs``.

Simulates choices by a known linear utility, or by people whose tastes differ about it, fits a multinomial or a nested
logit and makes 95 % intervals: of willingness to pay (delta method, and draws of the coefficients) and of the mean own
elasticity (draws). The truth is the ratio of the true coefficients, and the elasticity by the true coefficients on the
same sets. The issue asks that 90 to 98 % cover it.

Printed with exact (Clopper-Pearson) 95 % intervals. The command fails (status 1) where a share is clearly beyond.
"""

import sys
import time
from typing import Any

import numpy as np
from scipy.special import softmax

from benchmarks.calibration.jobs import arguments, rate, run_jobs
from entourage.choice import MultinomialLogit, NestedLogit
from entourage.decisions import elasticities, willingness_to_pay

LEAST, MOST = 0.90, 0.98
COEFFICIENTS = np.array([1.0, -0.8])  # of quality and price
SCENARIOS: dict[str, dict[str, Any]] = {
    "300 choices": {"n": 300},
    "1,000 choices": {"n": 1000},
    "500 choices, nested": {"n": 500, "nested": True},
    "1,200 choices of 150 people, clustered": {"n": 1200, "people": 150},
}
NAMES = ("delta", "draws", "elasticity")


def simulate(scenario: str, seed: int) -> dict[str, Any]:
    """Return for each interval whether it covers the truth."""
    begin = time.process_time()
    settings = {"people": None, "nested": False} | SCENARIOS[scenario]
    n, people = settings["n"], settings["people"]
    rng = np.random.default_rng([seed, n, people or 0, int(settings["nested"])])
    groups = None if people is None else np.arange(n) % people
    X = rng.uniform(1, 4, size=(n, 4, 2))
    favourite = np.zeros((n, 4))
    if groups is not None:  # the choices of a person are alike: each has a favourite place
        favourite = rng.normal(scale=0.7, size=(people, 4))[groups]
    y = (X @ COEFFICIENTS + favourite + rng.gumbel(size=(n, 4))).argmax(1)
    shift = int(settings["nested"])
    if settings["nested"]:
        X = np.concatenate([np.tile(np.arange(1.0, 5.0), (n, 1))[..., None], X], axis=2)
        model: Any = NestedLogit([[1, 2], [3, 4]]).fit(X, y)
    else:
        model = MultinomialLogit().fit(X, y, groups=groups)
    options: dict[str, Any] = {"random_state": seed, "draws": 200 if not settings["nested"] else 60}
    found = {
        "delta": willingness_to_pay(model, X, shift, shift + 1).estimate,
        "draws": willingness_to_pay(model, X, shift, shift + 1, intervals="draws", **options).estimate,
    }
    truth = dict.fromkeys(found, -COEFFICIENTS[0] / COEFFICIENTS[1])
    if groups is None:  # with favourites the true elasticity is another
        p = softmax(X[..., shift:] @ COEFFICIENTS, axis=1)
        found["elasticity"] = elasticities(model, X, shift + 1, **options).estimate
        truth["elasticity"] = (p * COEFFICIENTS[1] * X[..., shift + 1] * (1 - p)).sum() / p.sum()
    covers = {name: bool(one.low <= truth[name] <= one.high) for name, one in found.items()}
    return {"covers": covers, "seconds": time.process_time() - begin}


def main() -> None:
    """Run what is missing, print the shares, and exit with 1 where one is clearly beyond its bounds."""
    options = arguments("Coverage of the intervals of trade-offs.", data_sets=300)
    jobs = [
        {"scenario": scenario, "seed": seed} for seed in range(options.data_sets) for scenario in SCENARIOS
    ]
    path = options.out / "calibration-trade-offs.jsonl"
    rows = run_jobs(simulate, jobs, path, workers=options.workers, seconds=options.seconds)
    print(f"{len(rows)} data sets, {sum(row['seconds'] for row in rows):.0f} core-seconds")
    failed = not rows
    for scenario in SCENARIOS:
        mine = [row["covers"] for row in rows if row["scenario"] == scenario]
        for name in NAMES:
            flags = [row[name] for row in mine if name in row]
            if flags:
                share, low, high = rate(flags)
                print(f"{scenario:40s} {name:10s} {share:.3f} [{low:.3f}, {high:.3f}]")
                failed = failed or high < LEAST or low > MOST
    sys.exit(int(failed))


if __name__ == "__main__":
    main()
