"""How often the verdict on context is wrong: ``python -m benchmarks.calibration.verdict [--seconds 540]``.

Every data set goes through `entourage.selection.compare` as users call it: default candidates, hold-out, folds.
*Without* a context effect, the share of data sets with p <= 0.05 is the rate of false alarms; it comes with an exact
(Clopper-Pearson) 95 % interval. An object's utility is linear or curved in its features, plus independent Gumbel noise,
so that independence of irrelevant alternatives holds; sets have 5 objects or, "ragged", 3 to 8. "Grouped" data have
n / 5 groups: a group's objects share a shift of the features, and its sets are drawn from ten objects whose noise is
drawn once, so that they are far from independent. *With* the distance to the middle of its set, twice, added to a
linear utility, the share is the power.

A real negative control: sub-sets of solvers on instances of ASlib's SAT11-INDU, whose runtimes can't depend on which
others ran (from the folder that ENTOURAGE_DATA names, by default ../shared/data; left out where it is not there).
Rankings only: instances differ in who is fast on them, so solvers' utilities are correlated, and choices of the
fastest violate independence of irrelevant alternatives as those of a mixed logit do. A gain would be no false alarm.

Small data come first, and rounds of all scenarios in turn, so that a run cut off by ``--seconds`` has some of each.
Exits with 1 where the pooled rate of false alarms is above 7 % beyond its interval.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as csv
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.calibration.jobs import arguments, rate, run_jobs
from entourage.data import Sets
from entourage.selection.comparison import compare

LEVEL, TOLERATED = 0.05, 0.07
SIZES = (100, 300, 1500)
SHARE = {100: 1.0, 300: 0.4, 1500: 0.1}  # of --data-sets: one costs about 70, 115 and 400 s of a core
FIRST = {100: 0.0, 300: 0.1, 1500: 0.3}  # when in the run the first round of a size has its turn
NULLS = ("linear", "curved", "ragged", "grouped")
STRENGTH = 2.0  # of the context effect, where there is one
ASLIB = "aslib_sat11_indu/runs_long.csv.gz"


def data_folder() -> Path:
    given = os.environ.get("ENTOURAGE_DATA")
    return Path(given) if given else Path(__file__).parents[2].parent / "shared" / "data"


def draw(kind: str, scenario: str, n: int, seed: int) -> tuple[Sets, NDArray[Any] | None]:
    """Simulate sets of objects with five features, and the groups they belong to."""
    rng = np.random.default_rng([seed, n, kind == "choice", [*NULLS, "context"].index(scenario)])

    def some_objects(size: int) -> tuple[NDArray[Any], NDArray[Any]]:
        x = rng.standard_normal((size, 5))
        if scenario in ("grouped", "context"):
            x = x + rng.standard_normal(5)  # so that the middle of a set says nothing of the next one's
        if scenario in ("linear", "grouped", "context"):
            utility = x @ [1.0, -0.7, 0.4, 0.0, 0.0]
        else:
            utility = 1.5 * np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2]
        if scenario == "context":
            utility = utility + STRENGTH * np.linalg.norm(x - x.mean(0), axis=1)
        return x, utility + 0.7 * rng.gumbel(size=size)

    if scenario == "grouped":
        pools = [some_objects(10) for _ in range(n // 5)]
        groups = np.arange(n) % len(pools)
        places = [rng.choice(10, 5, replace=False) for _ in range(n)]
        drawn = [(pools[g][0][at], pools[g][1][at]) for g, at in zip(groups, places, strict=True)]
    else:
        groups = None
        drawn = [some_objects(int(rng.integers(3, 9)) if scenario == "ragged" else 5) for _ in range(n)]
    return Sets.from_list([x for x, _ in drawn], [_targets(-utility, kind) for _, utility in drawn]), groups


def aslib(n: int, seed: int) -> tuple[Sets, NDArray[Any]]:
    """Draw sub-sets of 4 to 8 solvers, one or more an instance; instances are the groups."""
    table = csv.read_csv(data_folder() / ASLIB)
    instance = np.unique(table["instance_id"].to_numpy(zero_copy_only=False), return_inverse=True)[1]
    columns = [name for name in table.column_names if name.startswith("a_")]
    features = np.column_stack([table[name].to_numpy().astype(np.float64) for name in columns])
    features = np.arcsinh(features)  # sizes of programs have heavy tails
    ok = table["runstatus"].to_numpy(zero_copy_only=False) == "ok"
    runtime = np.where(ok, table["runtime"].to_numpy(), np.inf)  # others are tied at the limit
    rng = np.random.default_rng([seed, n])
    solvable = np.unique(instance[ok])
    groups = rng.choice(solvable, n, replace=n > len(solvable))
    chosen = [
        rng.choice(np.flatnonzero(instance == i), int(rng.integers(4, 9)), replace=False) for i in groups
    ]
    return Sets.from_list(
        [features[at] for at in chosen], [_targets(runtime[at], "rank") for at in chosen]
    ), groups


def _targets(costs: NDArray[Any], kind: str) -> NDArray[Any]:
    """Rank costs, ties together; or say that the smallest was chosen."""
    if kind == "choice":
        return np.asarray(np.arange(len(costs)) != costs.argmin(), dtype=np.float64)
    return np.asarray(np.unique(costs, return_inverse=True)[1], dtype=np.float64)


def simulate(kind: str, scenario: str, n: int, seed: int) -> dict[str, Any]:
    """Ask for the verdict on one data set."""
    begin = time.perf_counter()
    sets, groups = aslib(n, seed) if scenario == "aslib" else draw(kind, scenario, n, seed)
    found = compare(sets, metrics=(), kind=kind, groups=groups, level=LEVEL, random_state=seed, device="cpu")
    return {
        "p": found.p_value,
        "gain": found.gain,
        "interval": list(found.interval),
        "chosen": [[fold["context"], fold["context-free"]] for fold in found.chosen],
        "means": {name: means[found.metric] for name, means in found.means.items()},
        "still_improving": found.still_improving,
        "left_out": sorted(found.left_out),
        "seconds": round(time.perf_counter() - begin, 1),
    }


def plan(data_sets: int) -> list[dict[str, Any]]:
    """List the data sets, rounds of all scenarios, so that a run that is cut off has some of every size."""
    of_round = [(kind, scenario) for scenario in NULLS for kind in ("rank", "choice")]
    if (data_folder() / ASLIB).exists():
        of_round.append(("rank", "aslib"))
    else:
        print(f"{data_folder() / ASLIB} is not there: no negative control (ENTOURAGE_DATA names the folder).")
    turns = []
    for n in SIZES:
        rounds = max(1, round(SHARE[n] * data_sets))
        for seed in range(rounds):
            power = seed % 3 == 0 and n < max(SIZES)  # which fewer data sets show
            mine = of_round + [("rank", "context"), ("choice", "context")] * power
            jobs = [{"kind": k, "scenario": s, "n": n, "seed": seed} for k, s in mine]
            turns.append((FIRST[n] + seed / rounds, n, jobs))
    return [job for _, _, jobs in sorted(turns, key=lambda turn: turn[:2]) for job in jobs]


def show(rows: list[dict[str, Any]]) -> tuple[float, float, float]:
    """Print the rate of each scenario; return the pooled rate of false alarms with its interval."""
    table = Table(
        "kind", "scenario", "sets", "data sets", "p <= 0.05", "95 % interval", "mean gain", "seconds each",
        title=f"verdicts at the {100 * LEVEL:g} % level; all but “context” are false alarms",
    )  # fmt: skip

    def add(label: list[str], mine: list[dict[str, Any]]) -> tuple[float, float, float]:
        share, low, high = rate(row["p"] <= LEVEL for row in mine)
        gain, seconds = (float(np.mean([row[name] for row in mine])) for name in ("gain", "seconds"))
        found = f"{sum(row['p'] <= LEVEL for row in mine)} ({100 * share:.1f} %)"
        ends = f"{100 * low:.1f} to {100 * high:.1f} %"
        table.add_row(*label, str(len(mine)), found, ends, f"{gain:+.4f}", f"{seconds:.0f}")
        return share, low, high

    keys = dict.fromkeys(
        (row["scenario"] == "context", row["kind"], row["scenario"], row["n"]) for row in rows
    )
    for key in sorted(keys):
        mine = [row for row in rows if (row["kind"], row["scenario"], row["n"]) == key[1:]]
        add([key[1], key[2], str(key[3])], mine)
    null = [row for row in rows if row["scenario"] != "context"]
    for n in SIZES:
        mine = [row for row in null if row["n"] == n]
        if mine:
            add(["all", "no context", str(n)], mine)
    pooled = add(["all", "no context", "all"], null)
    Console(width=120).print(table)
    return pooled


def main() -> int:
    options = arguments((__doc__ or "").partition("\n")[0], data_sets=12)
    rows = run_jobs(
        simulate,
        plan(options.data_sets),
        options.out / "calibration-verdict.jsonl",
        workers=options.workers,
        seconds=options.seconds,
    )
    if not rows:
        print("No data set was done in the time given.")
        return 1
    _, low, _ = show(rows)
    return int(low > TOLERATED)


if __name__ == "__main__":
    sys.exit(main())
