"""Sub-sets of solvers (ASlib, SAT11-INDU), a negative control: a runtime can't depend on which other solvers ran.

In each of 20 draws every solvable instance gets a random sub-set of five to eight of the 18 solvers, with features of
the solver; those of the instance are the situation. Runs that did not end are tied at the limit. `compare` must find
no significant context effect in at least 19 of them.
"""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.real.csv_file import read_columns
from benchmarks.real.parts import Part, Task
from benchmarks.real.verdicts import Verdict
from entourage.data.sets import Sets

__all__ = ["TASK", "load"]

DRAWS = tuple(f"draw {seed}" for seed in range(20))


@cache
def _runs(data: Path) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the features of each solver, of each instance, and runtimes (instances, solvers); inf = not solved."""
    c = read_columns(data / "aslib_sat11_indu" / "runs_long.csv.gz")
    instance = np.unique(c["instance_id"].astype(str), return_inverse=True)[1]
    solver = np.unique(c["algorithm"].astype(str), return_inverse=True)[1]
    runtime = np.full((instance.max() + 1, solver.max() + 1), np.inf)
    ok = c["runstatus"].astype(str) == "ok"
    runtime[instance[ok], solver[ok]] = c["runtime"][ok]

    def of(prefix: str, unit: NDArray[Any]) -> NDArray[Any]:
        first = np.unique(unit, return_index=True)[1]
        columns = [column[first].astype(np.float64) for name, column in c.items() if name.startswith(prefix)]
        found = np.arcsinh(np.column_stack(columns))  # sizes of programs and of formulas have heavy tails
        medians = np.nanmedian(np.where(np.isnan(found).all(0), 0.0, found), axis=0)
        return np.where(np.isnan(found), medians, found)

    return of("a_", solver), of("i_", instance), runtime


@cache
def load(data: Path, part: str = "draw 0") -> Part:
    """Draw the sub-sets of the 253 instances that a solver solved; without a part that is tested."""
    solvers, instances, runtime = _runs(data)
    rng = np.random.default_rng([17, int(part.split()[1])])
    kept = np.flatnonzero(np.isfinite(runtime).any(1))
    chosen = [rng.choice(runtime.shape[1], int(rng.integers(5, 9)), replace=False) for _ in kept]
    ranks = [
        np.unique(runtime[i, some], return_inverse=True)[1] for i, some in zip(kept, chosen, strict=True)
    ]
    sets = Sets.from_list([solvers[some] for some in chosen], ranks, instances[kept])
    return Part({"features": sets}, [], ids=kept)


TASK = Task(
    name="aslib",
    kind="rank",
    metrics=("ranking_accuracy",),
    load=load,
    parts=DRAWS,
    n_folds=1,
    models={"verdict": Verdict()},
)
