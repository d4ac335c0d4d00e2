"""What every task offers: what a target means, what is done with scores, and how predictions are evaluated.

In `Sets` every target is a rank: 0 = best. A choice has two of them, 0 for chosen objects and 1 for the rest, so that
a ranker can be evaluated on choices, too. A task knows nothing of nets: it is given scores.
"""

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entourage.data.sets import AnySets, Sets
from entourage.tasks.losses import Loss
from entourage.tasks.ranking_metrics import Metric

__all__ = ["Task"]


class Task(Protocol):
    """A task is always an instance: `Ranking()`, `Choice(outside=True)`, `SubsetChoice(threshold=0.5)`."""

    @property
    def kind(self) -> str:
        """The default kind of target of a table: a key of `TASKS`."""

    @property
    def outside(self) -> bool:
        """Whether there is an outside (no-choice) option."""

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
        """The metric by which training chooses the best weights."""

    @property
    def criterion_words(self) -> str:
        """What `criterion` is called in a sentence."""

    @property
    def metrics(self) -> dict[str, Metric]:
        """All metrics that are defined for this task, by name."""

    @property
    def searched_by(self) -> str:
        """The metric by which models are compared and settings searched for."""

    @property
    def searched_words(self) -> str:
        """What it is called in a sentence."""

    @property
    def informative_words(self) -> str:
        """What informative sets are, in words; see `informative`."""

    @property
    def nothing_to_learn(self) -> str:
        """The error message where no set is informative."""

    def find_loss(self, loss: str | Loss | None) -> Loss:
        """Return the loss of this name, or the callable itself."""

    def sets_of(self, X: AnySets, y: Any = None, situation: ArrayLike | None = None) -> Sets:
        """Make sets of arrays, lists or `Sets`."""

    def check(self, sets: Sets) -> Sets:
        """Return the sets with targets as the task needs them; raise an error where they can't be used."""

    def in_single_precision(self, sets: Sets) -> Sets:
        """Return sets to train on, with targets that stay distinct in float32."""

    def informative(self, sets: Sets) -> NDArray[np.bool_]:
        """Which sets are informative: those from which the task can learn."""

    def decide(self, scores: NDArray[Any]) -> NDArray[np.int64]:
        """Turn the scores of sets of one size, (n, m), into predictions."""
