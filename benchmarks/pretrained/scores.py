"""What utilities of held-out sets are worth: log-likelihood first."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.pretrained.ridge import Stages
from entourage.data.sets import Sets
from entourage.metrics import METRICS
from entourage.tasks import TASKS
from entourage.tasks.evaluate import mean_over_sets, metric_of_sets

__all__ = ["MAIN", "main_values", "scores_of"]

#: The score that chooses and is compared.
MAIN = "log_likelihood"


def main_values(kind: str, sets: Sets, utilities: NDArray[Any]) -> NDArray[np.float64]:
    """Return the log-likelihood of each set: of the choice, or of the ranking (Plackett–Luce) by object."""
    rows = sets.with_features(np.asarray(utilities, dtype=np.float64)[:, None], None)
    stages = Stages.of(rows, kind)
    found = stages.log_likelihood(stages.values[..., 0])
    return np.asarray(found if kind == "choice" else found / sets.sizes)


def scores_of(kind: str, sets: Sets, utilities: NDArray[Any]) -> dict[str, float]:
    """Return the mean of each score over sets."""
    others: dict[str, Callable[..., Any]] = (
        {"accuracy": TASKS["choice"].metrics["accuracy"]}
        if kind == "choice"
        else {name: METRICS[name] for name in ("kendall_tau", "ndcg")}
    )
    found = {MAIN: float(main_values(kind, sets, utilities).mean())}
    for name, metric in others.items():
        found[name] = mean_over_sets(metric_of_sets(metric, sets, utilities))
    return found
