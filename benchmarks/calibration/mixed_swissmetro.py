"""Whether a mixed logit comes out as Biogeme's: ``python -m benchmarks.calibration.mixed_swissmetro``.

Fits the normal mixture of Biogeme's examples to Swissmetro (05normalMixtureIntegral.html, see
tests/choice/test_swissmetro.py) with several scrambles of the draws. The published integral is by quadrature, without
simulation noise: a log-likelihood of -5214.879, a mean of -2.26 and a standard deviation of 1.65 of the coefficient of
time. The noise is the standard deviation over scrambles.

A simulated log-likelihood is too small on average, the logarithm being concave, by an amount that falls with the number
of draws. The command fails (status 1) where the published one is further from the mean of the fits than three times
the noise of a single fit, or where the estimates are off by more than 0.05, less than half of their standard errors.
"""

import sys
import time
from typing import Any

import numpy as np

from benchmarks.calibration.jobs import arguments, run_jobs
from benchmarks.real.__main__ import data_folder
from benchmarks.real.swissmetro import load
from entourage.choice import MixedLogit

PUBLISHED = {"log_likelihood": -5214.879, "mean": -2.26, "deviation": 1.65}
DRAWS = (200, 1000)


def simulate(draws: int, seed: int) -> dict[str, Any]:
    """Fit with one scramble of the draws."""
    begin = time.process_time()
    sets = load(data_folder()).views["usual"]  # time, cost, train, car
    model = MixedLogit([0], draws=draws, random_state=seed).fit(sets)
    return {
        "log_likelihood": model.log_likelihood_,
        "mean": float(model.means_[0]),
        "deviation": float(model.standard_deviations_[0]),
        "converged": bool(model.converged_),
        "seconds": round(time.process_time() - begin, 2),
    }


def main() -> None:
    """Fit what is missing, print means and noise, and exit with 1 where a published figure is not met."""
    options = arguments("A mixed logit of Swissmetro against Biogeme's.", data_sets=8)
    jobs = [{"draws": draws, "seed": seed} for draws in DRAWS for seed in range(options.data_sets)]
    path = options.out / "calibration-mixed-swissmetro.jsonl"
    rows = run_jobs(simulate, jobs, path, workers=options.workers, seconds=options.seconds)
    print(f"{len(rows)} fits, {sum(row['seconds'] for row in rows):.0f} core-seconds")
    failed = not rows or not all(row["converged"] for row in rows)
    for draws in DRAWS:
        mine = [row for row in rows if row["draws"] == draws]
        if len(mine) < 3:
            continue
        print(f"{draws} draws, {len(mine)} scrambles")
        for name, published in PUBLISHED.items():
            values = np.array([row[name] for row in mine])
            mean, noise = float(values.mean()), float(values.std(ddof=1))
            print(f"    {name:15s} {mean:10.3f} ± {noise:.3f} (published: {published})")
            failed |= abs(mean - published) > (3 * noise if name == "log_likelihood" else 0.05)
    sys.exit(int(failed))


if __name__ == "__main__":
    main()
