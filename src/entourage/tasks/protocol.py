"""What every task offers: what a target means, what is done with scores, and how the result is judged.

In `Sets` every target is a rank: 0 = best. A choice knows two of them, 0 for what was chosen and 1 for the rest, so
that what can rank can be judged on choices, too. A task knows nothing of nets: it is given scores.
"""

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entourage.data.sets import AnySets, Sets
from entourage.tasks.losses import Loss
from entourage.tasks.ranking_metrics import Metric

__all__ = ["ChoiceTask", "Task"]


class Task(Protocol):
    """A task is always an instance: `Ranking()`, `Choice(outside=True)`, `SubsetChoice(threshold=0.5)`."""

    @property
    def kind(self) -> str:
        """What the target of a table is, unless it is said: a key of `TASKS`."""

    @property
    def outside(self) -> bool:
        """Whether a set may end without a choice."""

    @property
    def losses(self) -> dict[str, Loss]:
        """The losses that fit, by name."""

    @property
    def only_differences(self) -> bool:
        """Whether a shift of all scores of a set means nothing."""

    @property
    def metric(self) -> Metric:
        """What `score` returns."""

    @property
    def main(self) -> str:
        """The name of `metric` among `metrics`."""

    @property
    def words(self) -> str:
        """What `metric` is called in a sentence."""

    @property
    def criterion(self) -> Metric:
        """By which training chooses the best weights."""

    @property
    def criterion_words(self) -> str:
        """What `criterion` is called in a sentence."""

    @property
    def metrics(self) -> dict[str, Metric]:
        """All metrics that mean something, by name."""

    @property
    def searched_by(self) -> str:
        """The metric by which models are compared and settings searched for."""

    @property
    def searched_words(self) -> str:
        """What it is called in a sentence."""

    @property
    def telling(self) -> str:
        """What `informative` finds, in words."""

    @property
    def nothing(self) -> str:
        """What to say where no set is informative."""

    def find_loss(self, loss: str | Loss | None) -> Loss:
        """Return the loss of this name, or the callable itself."""

    def sets_of(self, X: AnySets, y: Any = None, situation: ArrayLike | None = None) -> Sets:
        """Make sets of whatever came."""

    def check(self, sets: Sets) -> Sets:
        """Return the sets with targets as the task needs them; say what is wrong with others."""

    def in_single_precision(self, sets: Sets) -> Sets:
        """Return sets to train on: what float32 can't tell apart is made so that it can."""

    def informative(self, sets: Sets) -> NDArray[np.bool_]:
        """Which sets say anything."""

    def decide(self, scores: NDArray[Any]) -> NDArray[np.int64]:
        """Turn the scores of sets of one size, (n, m), into predictions."""


class ChoiceTask(Task, Protocol):
    """A task whose scores are utilities of a choice, so that there are probabilities."""

    def probabilities(self, sets: Sets, scores: NDArray[Any]) -> NDArray[np.float64]:
        """Return how probable it is that each object is chosen, from packed scores."""
