"""Formula 1: learnt from the races of 2000 to 2018, tested on the later ones, with what was known before a race."""

from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.real.parts import Fit, Part, Target, Task
from benchmarks.real.rivals import SHORT, auto, baselines_of, nets_of
from entourage.data.datasets.formula1 import load_f1

__all__ = ["TASK", "load"]


@cache
def load(data: Path, part: str = "") -> Part:
    """Read the 514 races from 2000 on; seasons are what is resampled, and what inner folds don't part."""
    races = load_f1(data / "f1_races" / "f1_race_results_1950_on.csv.gz")
    early = races.year <= 2018
    return Part({"features": races.sets}, [(np.flatnonzero(early), np.flatnonzero(~early))], races.year)


TASK = Task(
    name="f1",
    kind="rank",
    metrics=("ranking_accuracy", "kendall_tau"),
    load=load,
    n_folds=1,
    models=baselines_of("rank")
    | nets_of("rank", **SHORT)
    | {"auto": Fit(auto("rank"), panel=True, ours=True)},
    targets=(Target("auto", "ranking_accuracy", least=0.774),),
)
