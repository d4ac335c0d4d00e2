"""False alarms and power of the test of context in choices: ``python -m benchmarks.calibration.context_test``.

Each data set is simulated from a known utility plus Gumbel noise. In the *null* scenarios the utility is of the
object alone (and of the person who chooses), so that the share of p-values up to 0.05 is the rate of false alarms;
in the *power* scenarios the rest of the set enters, and that share is the power. All rates come with exact
(Clopper-Pearson) 95 % intervals. Scenarios named ``panel`` have people who choose ten times each, and tell the test
who chose. Exits with 1 if a null scenario, all its sizes together, is significantly above 7 %.

Options: ``--data-sets 100`` (for each scenario and number of choices), ``--workers``, ``--seconds``, ``--out``.
"""

import sys
import time
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.calibration.jobs import arguments, rate, run_jobs
from entourage.effects.context_test import context_test

LEVEL = 0.05
LARGEST_RATE = 0.07  # of false alarms
COUNTS = (150, 300, 1500)
DRAWS = 199
PER_PERSON = 10

Floats: TypeAlias = NDArray[np.float64]
Rng: TypeAlias = np.random.Generator
Data: TypeAlias = tuple[list[Floats], NDArray[np.int64], NDArray[np.int64] | None]


def choose(rng: Rng, offers: list[Floats], utility: Callable[[Floats, int], Floats]) -> NDArray[np.int64]:
    noisy = [utility(x, i) + rng.gumbel(size=len(x)) for i, x in enumerate(offers)]
    return np.array([int(one.argmax()) for one in noisy])


def people(n: int) -> NDArray[np.int64]:
    return np.arange(n) // PER_PERSON


def normal(rng: Rng, n: int, m: int, d: int, level: float = 0.0) -> list[Floats]:
    """Draw sets of normal features, with a level of each set's own."""
    return list(rng.normal(size=(n, m, d)) + level * rng.normal(size=(n, 1, d)))


def prices(rng: Rng, n: int, m: int) -> list[Floats]:
    """Draw quality and price; prices of a set are about a level that spans a factor of 50 between sets."""
    level = np.exp(rng.uniform(0, np.log(50), (n, 1)))
    price = 10 * level * np.exp(0.5 * rng.normal(size=(n, m)))
    return list(np.stack([rng.normal(size=(n, m)), price], axis=2))


# --- without context ------------------------------------------------------------------------------


def linear(rng: Rng, n: int) -> Data:
    X = normal(rng, n, 4, 3)
    return X, choose(rng, X, lambda x, i: x @ [1.0, -0.5, 0.5]), None


def quadratic(rng: Rng, n: int) -> Data:
    X = normal(rng, n, 4, 2, level=1.0)
    return X, choose(rng, X, lambda x, i: x @ [1.0, -0.5] - 0.4 * np.square(x).sum(1)), None


def saturating(rng: Rng, n: int) -> Data:
    X = [np.abs(x) for x in normal(rng, n, 4, 2, level=1.5)]
    return X, choose(rng, X, lambda x, i: 4 * (x / (x + 0.5)).sum(1)), None


def s_shaped(rng: Rng, n: int) -> Data:
    X = normal(rng, n, 4, 2, level=1.0)
    return X, choose(rng, X, lambda x, i: 2 * np.tanh(2 * x[:, 0]) + np.tanh(3 * x[:, 1] - 2)), None


def log_price(rng: Rng, n: int) -> Data:
    X = prices(rng, n, 4)
    return X, choose(rng, X, lambda x, i: x[:, 0] - 2 * np.log(x[:, 1])), None


def one_log_price(rng: Rng, n: int) -> Data:
    X = [x[:, 1:] for x in prices(rng, n, 3)]
    return X, choose(rng, X, lambda x, i: -3 * np.log(x[:, 0])), None


def linear_price(rng: Rng, n: int) -> Data:
    X = prices(rng, n, 4)
    return X, choose(rng, X, lambda x, i: x[:, 0] - 0.02 * x[:, 1]), None


def correlated(rng: Rng, n: int) -> Data:
    mix = np.linalg.cholesky(0.1 * np.eye(3) + 0.9)
    X = [x @ mix.T for x in normal(rng, n, 4, 3, level=0.5)]
    return X, choose(rng, X, lambda x, i: x @ [1.5, -1.0, 0.5]), None


def product(rng: Rng, n: int) -> Data:
    X = normal(rng, n, 4, 2, level=1.0)
    return X, choose(rng, X, lambda x, i: x @ [0.5, 0.5] + 0.5 * x[:, 0] * x[:, 1]), None


def set_sizes(rng: Rng, n: int) -> Data:
    X = [rng.normal(size=(m, 2)) + rng.normal(size=2) for m in rng.integers(2, 9, n)]
    return X, choose(rng, X, lambda x, i: x[:, 0] - np.exp(-x[:, 1])), None


def constants(rng: Rng, n: int) -> Data:
    """Five labelled alternatives, of which three to five are on offer; log price and time."""
    X = []
    for m in rng.integers(3, 6, n):
        which = rng.choice(5, m, replace=False)
        price = (1 + which) * np.exp(rng.normal(0, 0.4, m) + rng.normal(0, 0.7))
        X.append(np.column_stack([np.eye(5)[which][:, 1:], price, rng.gamma(3, 1, m)]))
    return (
        X,
        choose(rng, X, lambda x, i: x[:, :4] @ [0.5, 1, 1, 2] - 1.5 * np.log(x[:, 4]) - 0.3 * x[:, 5]),
        None,
    )


def heavy_tails(rng: Rng, n: int) -> Data:
    X = list(rng.standard_t(2, size=(n, 4, 2)) + rng.standard_t(3, size=(n, 1, 2)))
    return X, choose(rng, X, lambda x, i: x @ [0.5, -0.3]), None


def mostly_zero(rng: Rng, n: int) -> Data:
    X = [
        np.column_stack([np.expm1(np.maximum(x[:, 0], 0)), x[:, 1]]) for x in normal(rng, n, 4, 2, level=1.0)
    ]
    return X, choose(rng, X, lambda x, i: 2 * np.log1p(x[:, 0]) + x[:, 1]), None


def unix_times(rng: Rng, n: int) -> Data:
    X = [x * 30 + 1.7e9 for x in normal(rng, n, 4, 1, level=1.0)]
    return X, choose(rng, X, lambda x, i: -0.5 * np.square((x[:, 0] - 1.7e9) / 30)), None


def panel_same(rng: Rng, n: int) -> Data:
    X, y, _ = quadratic(rng, n)
    return X, y, people(n)


def panel_tastes(rng: Rng, n: int) -> Data:
    X, tastes = normal(rng, n, 4, 2, level=0.5), rng.normal([1.0, -0.5], 1.0, (n, 2))
    return X, choose(rng, X, lambda x, i: x @ tastes[i // PER_PERSON]), people(n)


def panel_correlated(rng: Rng, n: int) -> Data:
    X, normals = normal(rng, n, 4, 3), rng.normal(size=(n, 3))
    tastes = [1.0, -0.5, 0.0] + normals @ np.linalg.cholesky(0.3 * np.eye(3) + 0.9).T
    return X, choose(rng, X, lambda x, i: x @ tastes[i // PER_PERSON]), people(n)


def panel_classes(rng: Rng, n: int) -> Data:
    X, kind = normal(rng, n, 4, 2, level=0.5), rng.integers(0, 2, n)
    tastes = np.array([[2.0, 0.0], [0.0, -1.5]])[kind]
    return X, choose(rng, X, lambda x, i: x @ tastes[i // PER_PERSON]), people(n)


def panel_lognormal(rng: Rng, n: int) -> Data:
    X, tastes = normal(rng, n, 4, 2, level=0.5), np.exp(rng.normal([0, -1], [0.7, 0.7], (n, 2)))
    return X, choose(rng, X, lambda x, i: x @ tastes[i // PER_PERSON]), people(n)


def panel_log_price(rng: Rng, n: int) -> Data:
    X, tastes = prices(rng, n, 4), rng.normal([1.0, -2.0], [0.7, 1.0], (n, 2))
    log = [np.column_stack([x[:, 0], np.log(x[:, 1])]) for x in X]
    return X, choose(rng, log, lambda x, i: x @ tastes[i // PER_PERSON]), people(n)


def panel_constants(rng: Rng, n: int) -> Data:
    """Everybody has favourites among four labelled alternatives, of which two to four are on offer."""
    X, favours = [], rng.normal([0, 0.5, 1.0, 0.5], 1.0, (n, 4))
    for m in rng.integers(2, 5, n):
        which = rng.choice(4, m, replace=False)
        X.append(np.column_stack([np.eye(4)[which][:, 1:], rng.normal(size=m)]))

    def utility(x: Floats, i: int) -> Floats:
        label = np.where(x[:, :3].any(1), x[:, :3].argmax(1) + 1, 0)
        return np.asarray(favours[i // PER_PERSON][label] - x[:, 3])

    return X, choose(rng, X, utility), people(n)


# --- with context ---------------------------------------------------------------------------------


def trade_off(rng: Rng, n: int, m: int = 3) -> list[Floats]:
    """Draw offers whose quality is about what they lack in economy."""
    quality = rng.random((n, m, 1))
    return list(np.concatenate([quality, 1 - quality + 0.15 * rng.normal(size=(n, m, 1))], axis=2))


def extreme(x: Floats) -> Floats:
    """Return how far each object is from the middle of the set's range, summed over the features."""
    return np.asarray(np.abs(x - (x.max(0) + x.min(0)) / 2).sum(1))


def compromise(rng: Rng, n: int) -> Data:
    X = trade_off(rng, n)
    return X, choose(rng, X, lambda x, i: 3 * x.sum(1) - 2 * extreme(x)), None


def strong_compromise(rng: Rng, n: int) -> Data:
    X = trade_off(rng, n)
    return X, choose(rng, X, lambda x, i: 3 * x.sum(1) - 4 * extreme(x)), None


def distance_to_mean(rng: Rng, n: int) -> Data:
    X = normal(rng, n, 4, 2)
    return X, choose(rng, X, lambda x, i: x @ [1.0, -0.5] - np.abs(x - x.mean(0)).sum(1)), None


def attraction(rng: Rng, n: int) -> Data:
    def utility(x: Floats, i: int) -> Floats:
        better = (x[:, None] > x[None]).all(2)
        near = np.exp(-3 * np.abs(x[:, None] - x[None]).sum(2))
        return np.asarray(3 * x.sum(1) + 3 * (better * near).sum(1))

    X = trade_off(rng, n)
    return X, choose(rng, X, utility), None


def similarity(rng: Rng, n: int) -> Data:
    def utility(x: Floats, i: int) -> Floats:
        squares = np.square(x[:, None] - x[None]).sum(2)
        return np.asarray(x.sum(1) - 2 * (np.exp(-squares / 2).sum(1) - 1))

    X = normal(rng, n, 4, 2)
    return X, choose(rng, X, utility), None


def reference_price(rng: Rng, n: int) -> Data:
    """Let a price above the mean of the set cost three times as much as one below."""

    def utility(x: Floats, i: int) -> Floats:
        log = np.log(x[:, 1])
        return np.asarray(x[:, 0] - log - 2 * np.maximum(log - log.mean(), 0))

    X = prices(rng, n, 4)
    return X, choose(rng, X, utility), None


def panel_compromise(rng: Rng, n: int) -> Data:
    X, tastes = trade_off(rng, n), rng.normal(3.0, 2.0, (n, 2))
    return X, choose(rng, X, lambda x, i: x @ tastes[i // PER_PERSON] - 2 * extreme(x)), people(n)


def panel_distance(rng: Rng, n: int) -> Data:
    X, tastes = normal(rng, n, 4, 2), rng.normal([1.0, -0.5], 1.0, (n, 2))
    return (
        X,
        choose(rng, X, lambda x, i: x @ tastes[i // PER_PERSON] - np.abs(x - x.mean(0)).sum(1)),
        people(n),
    )


NULL = (
    linear,
    quadratic,
    saturating,
    s_shaped,
    log_price,
    one_log_price,
    linear_price,
    correlated,
    product,
    set_sizes,
    constants,
    heavy_tails,
    mostly_zero,
    unix_times,
    panel_same,
    panel_tastes,
    panel_correlated,
    panel_classes,
    panel_lognormal,
    panel_log_price,
    panel_constants,
)
POWER = (
    compromise,
    strong_compromise,
    distance_to_mean,
    attraction,
    similarity,
    reference_price,
    panel_compromise,
    panel_distance,
)
SCENARIOS = {one.__name__: one for one in (*NULL, *POWER)}


def simulate(scenario: str, n: int, seed: int, draws: int = DRAWS) -> dict[str, Any]:
    """Simulate one data set and test it."""
    X, y, groups = SCENARIOS[scenario](np.random.default_rng([seed, n, *scenario.encode()]), n)
    begin = time.perf_counter()
    found = context_test(X, y, groups=groups, draws=draws, random_state=seed)
    return {
        "p": found.p_value,
        "p_chi2": found.p_chi2,
        "degrees": found.degrees,
        "seconds": round(time.perf_counter() - begin, 3),
    }


def show(rows: list[dict[str, Any]]) -> bool:
    """Print both tables; return whether all null scenarios keep the level."""
    kept = True
    for title, scenarios in (("false alarms", NULL), ("power", POWER)):
        table = Table(
            "scenario", *[f"n = {n:,}" for n in COUNTS], "all", "seconds", title=f"{title}, level {LEVEL}"
        )
        for scenario in scenarios:
            mine = [row for row in rows if row["scenario"] == scenario.__name__]
            cells = []
            for part in (*[[row for row in mine if row["n"] == n] for n in COUNTS], mine):
                share, low, high = rate(row["p"] <= LEVEL for row in part)
                cells.append(f"{100 * share:.1f} % [{100 * low:.1f}, {100 * high:.1f}]" if part else "")
            if title == "false alarms" and mine:
                kept &= low <= LARGEST_RATE
            slowest = max((row["seconds"] for row in mine), default=0.0)
            table.add_row(scenario.__name__, *cells, f"{slowest:.1f}")
        Console(width=130).print(table)
    return kept


def main() -> None:
    options = arguments(__doc__.partition("\n")[0], data_sets=100)
    jobs = [
        {"scenario": scenario, "n": n, "seed": seed}
        for seed in range(options.data_sets)
        for n in COUNTS
        for scenario in SCENARIOS
    ]
    path = options.out / "calibration-context-test.jsonl"
    rows = run_jobs(simulate, jobs, path, workers=options.workers, seconds=options.seconds)
    if not rows:
        sys.exit("No data set was simulated; allow more --seconds.")
    if not show(rows):
        print(f"A null scenario is significantly above {LARGEST_RATE:.0%}.")
        sys.exit(1)


if __name__ == "__main__":
    main()
