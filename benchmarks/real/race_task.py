"""The simulated races as a task: an 80/20 split in time; nets on raw columns and text against sorting by odds."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.real.parts import Fit, Part, Target, Task
from benchmarks.real.races import COLUMNS, race_columns
from benchmarks.real.rivals import auto, baselines_of, nets_of, one
from entourage.data.sets import Sets

__all__ = ["TASK", "SortByColumn", "load"]


class SortByColumn:
    """Sort by one column, the smallest first; nothing is learnt."""

    def __init__(self, column: int = 0) -> None:
        self.column = column

    def fit(self, sets: Sets) -> "SortByColumn":
        """Learn nothing."""
        return self

    def predict_scores(self, sets: Sets) -> NDArray[Any]:
        """Return minus the column."""
        return np.asarray(-sets.objects[:, self.column])

    def __repr__(self) -> str:
        return f"SortByColumn({self.column})"


@cache
def load(data: Path, part: str = "", n_races: int = 8500) -> Part:
    """Simulate the races; levels of text are those of the races learnt from."""
    races = pa.table(race_columns(n_races))
    n_train = n_races * 4 // 5
    rows = int(np.searchsorted(races["race"].to_numpy(), n_train))
    early = Sets.from_frame(races.slice(0, rows), set_id="race", target="place", features=COLUMNS)
    late = Sets.from_frame(races.slice(rows), like=early)
    places = np.arange(n_races)
    both = Sets.concatenate([early, late])
    return Part({"features": both}, [(places[:n_train], places[n_train:])])


TASK = Task(
    name="races",
    kind="rank",
    metrics=("ranking_accuracy", "top1_accuracy"),
    load=load,
    n_folds=1,
    budget=300.0,
    models={"odds": Fit(one(SortByColumn))}
    | baselines_of("rank")
    | nets_of("rank")
    | {"auto": Fit(auto("rank"), ours=True)},
    targets=tuple(
        Target(model, metric, rivals=("odds",))
        for model in ("FATE", "SetAttention", "auto")
        for metric in ("ranking_accuracy", "top1_accuracy")
    ),
)
