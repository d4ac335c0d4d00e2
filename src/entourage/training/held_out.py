"""Scores on held-out sets, for early stopping and the choice of the best weights."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from entourage.errors import TrainingError
from entourage.nets import Scorer
from entourage.tasks import mean_over_sets
from entourage.training.batches import Resident, predict_packed
from entourage.training.device import autocast
from entourage.training.processes import processes_here

__all__ = ["HeldOutEvaluation", "HeldOutScore", "score_not_chosen_by", "with_callback"]


class HeldOutScore(float):
    """A score on held-out sets that also knows those of two halves of them."""

    halves: tuple[float, float]


class HeldOutEvaluation:
    """The score of a net on held-out sets, each counted by its weight: higher is better.

    Parameters
    ----------
    data : the held-out sets
    values : packed scores to a value for each set, NaN where it has none
    precision : of the net
    weights : one a set, optional
    seed : splits the sets into two halves; each can be scored at the step that was best for the other
    """

    def __init__(
        self,
        data: Resident,
        values: Callable[[NDArray[Any]], NDArray[np.float64]],
        precision: str,
        *,
        weights: NDArray[Any] | None = None,
        seed: int = 0,
    ) -> None:
        self.data, self.values, self.precision, self.weights = data, values, precision, weights
        order = np.random.default_rng([seed, 2**34]).permutation(len(data))
        self.halves = np.split(order, [len(order) // 2])

    def __call__(self, scorer: Scorer) -> float:
        """Score the sets, and evaluate the scores."""
        with autocast(self.data.device, self.precision):
            return self.of(predict_packed(scorer, self.data, processes=processes_here()))

    def of(self, scores: Tensor) -> float:
        """Evaluate packed scores."""
        packed = scores.cpu().numpy()
        if not np.isfinite(packed).all():
            raise TrainingError(
                "The scores of held-out sets became infinite or NaN; no model was kept. Lower the "
                "learning rate, or check for extreme features."
            )
        values = self.values(packed)
        found = HeldOutScore(mean_over_sets(values, self.weights))
        first, second = (
            mean_over_sets(values[half], None if self.weights is None else self.weights[half])
            for half in self.halves
        )
        found.halves = first, second
        return found


def score_not_chosen_by(history: list[dict[str, Any]]) -> float | None:
    """Return the held-out score without selection bias: each half at the step where the other half was best.

    The best score of all evaluations is too optimistic: even of pure noise, some evaluation is good by chance. None
    where nothing was held out, or one half has no score.

    Examples
    --------
    >>> score_not_chosen_by([{"halves": [0.9, 0.4]}, {"halves": [0.5, 0.6]}])  # (0.4 + 0.5) / 2
    0.45
    """
    pairs = np.array([row["halves"] for row in history if "halves" in row])
    if len(pairs) == 0 or not np.isfinite(pairs).all():
        return None
    first, second = pairs.T
    return float((second[first.argmax()] + first[second.argmax()]) / 2)


def with_callback(
    evaluate: HeldOutEvaluation, on_evaluation: Callable[[float], None]
) -> Callable[[Scorer], float]:
    """Call ``on_evaluation`` with each score."""

    def score_of(scorer: Scorer) -> float:
        score = evaluate(scorer)
        on_evaluation(score)
        return score

    return score_of
