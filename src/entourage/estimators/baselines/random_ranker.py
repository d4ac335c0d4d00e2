"""The random ranker: chance level."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from entourage.data.sets import Sets
from entourage.estimators.baselines.base import Baseline

__all__ = ["RandomRanker"]


class RandomRanker(Baseline):
    """Scores at random: chance level, the least a ranker has to beat.

    Parameters
    ----------
    random_state : int
        The same sets get the same scores each time.
    """

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def _learn(self, sets: Sets, weights: NDArray[np.float64]) -> None:
        pass

    def _score(self, sets: Sets) -> NDArray[Any]:
        return np.random.default_rng(self.random_state).random(len(sets.objects))
