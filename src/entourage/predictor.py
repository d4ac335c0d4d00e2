"""What every ranker can do once it can score: predict, judge, and say what is wrong with its input."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import exceptions
from sklearn.base import BaseEstimator

from entourage.errors import DataError, ShapeError, UserError
from entourage.metrics import Metric
from entourage.sets import AnySets, Sets
from entourage.tasks import Ranking

__all__ = ["NotFittedError", "OneChoicePredictor", "SetPredictor", "like", "without_each"]

Index: TypeAlias = NDArray[np.int64]

_CHUNK = 8_000_000  # numbers in a temporary array, so that memory stays bounded


class NotFittedError(UserError, exceptions.NotFittedError):  # type: ignore[misc]
    """A prediction was asked of a model that has not been fitted."""


class SetPredictor(BaseEstimator, ABC):  # type: ignore[misc]
    """An estimator that scores the objects of sets; a subclass fits, and scores packed sets.

    ``fit`` leaves ``n_features_in_`` and ``n_situation_features_in_`` behind.
    """

    task: Any = Ranking
    n_features_in_: int
    n_situation_features_in_: int

    @abstractmethod
    def _packed_scores(self, sets: Sets) -> NDArray[Any]:
        """Score all objects of checked sets, packed; higher is better."""

    def predict_scores(self, X: AnySets, *, situation: ArrayLike | None = None) -> Any:
        """Return the utility U(x, C) of each object; higher is better.

        What comes out has the form of what went in: an (n, m) array for an (n, m, d) array, a list of
        arrays for a list, a packed array for `Sets`. Sets may have other sizes than those learnt from.
        """
        sets = Sets.of(X, None, situation)
        return like(X, sets, self._checked_scores(sets))

    def predict(self, X: AnySets, *, situation: ArrayLike | None = None) -> Any:
        """Return the predicted ranks, 0 = best, in the order the objects came in; see `predict_scores`.

        Choosing some: 1 for chosen objects, 0 for the others.
        """
        sets = Sets.of(X, None, situation)
        return like(X, sets, self.decide(sets, self._checked_scores(sets)))

    def decide(self, sets: Sets, scores: NDArray[Any]) -> NDArray[np.int64]:
        """Turn packed scores into packed predictions; see `predict`."""
        ranks = np.empty(len(scores), dtype=np.int64)
        for _, rows in sets.by_size():
            ranks[rows] = self.task.decide(scores[rows])
        return ranks

    def score(
        self,
        X: AnySets,
        y: Any = None,
        *,
        situation: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return how good predictions are, averaged over sets, by the metric of the task.

        Ranking: the share of pairs in the right order (0/1-ranking accuracy). Choosing one: how often it is the right
        one. Choosing some: F1.
        """
        sets = self.task.check(self.task.sets_of(X, y, situation))
        return self._metric(sets, self._checked_scores(sets), _check_weights(sample_weight, len(sets)))

    def _metric(
        self,
        sets: Sets,
        packed: NDArray[Any],
        weights: NDArray[Any] | None = None,
        metric: Metric | None = None,
    ) -> float:
        """Judge packed scores, sets of one size at a time."""
        judge = self.task.metric if metric is None else metric
        values = np.full(len(sets), np.nan)
        for chosen, rows in sets.by_size():
            values[chosen] = judge(packed[rows], sets.targets[rows], per_set=True)  # type: ignore[index]
        defined = ~np.isnan(values)
        if weights is not None:
            defined &= weights > 0
        if not defined.any():
            return float("nan")
        return float(np.average(values[defined], weights=None if weights is None else weights[defined]))

    def _checked_scores(self, sets: Sets) -> NDArray[Any]:
        self._check_fitted()
        self._check_features(sets)
        scores = self._packed_scores(sets)
        if not np.isfinite(scores).all():
            i = int(np.searchsorted(sets.offsets, int(np.argmin(np.isfinite(scores))), side="right")) - 1
            raise DataError(
                f"The scores of set {i} are not finite: its features are too far from those learnt from. "
                "Check their units."
            )
        return scores

    def _check_fitted(self) -> None:
        if not hasattr(self, "n_features_in_"):
            raise NotFittedError(
                f"This {type(self).__name__} has not learnt anything yet; call fit(X, y) first."
            )

    def _check_features(self, sets: Sets) -> None:
        for what, needed, came in [
            ("features", self.n_features_in_, sets.n_features),
            ("situation features", self.n_situation_features_in_, sets.n_situation_features),
        ]:
            if needed != came:
                raise ShapeError(f"This model was fitted on {needed} {what}; these sets have {came}.")

    def _check_training_data(
        self, X: AnySets, y: Any, situation: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> tuple[Sets, NDArray[np.float64] | None]:
        """Make sets of whatever came and see that there is something to learn; weights have mean 1."""
        sets = self.task.check(self.task.sets_of(X, y, situation))
        if not self.task.informative(sets).any():
            raise DataError(self.task.nothing)
        weights = _check_weights(sample_weight, len(sets))
        return sets, None if weights is None else weights / weights.mean()


class OneChoicePredictor(SetPredictor):
    """What everything that chooses one object of a set can do."""

    def predict(self, X: AnySets, *, situation: ArrayLike | None = None) -> NDArray[np.int64]:
        """Return the place of the most probable object of each set; -1 where nothing is chosen."""
        sets = Sets.of(X, None, situation)
        return np.asarray(self.task.places(sets, self._checked_scores(sets)))

    def predict_proba(self, X: AnySets, *, situation: ArrayLike | None = None) -> Any:
        """Return the probability that each object is chosen, in the form of the input.

        They sum to 1 in each set, or where nothing may be chosen to what is left by that.
        """
        sets = Sets.of(X, None, situation)
        return like(X, sets, self.task.probabilities(sets, self._checked_scores(sets)))

    def log_likelihood(
        self,
        X: AnySets,
        y: Any = None,
        *,
        situation: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the mean log-probability of what was chosen."""
        sets = self.task.check(self.task.sets_of(X, y, situation))
        weights = _check_weights(sample_weight, len(sets))
        return self._metric(sets, self._checked_scores(sets), weights, self.task.criterion)


def _check_weights(sample_weight: ArrayLike | None, n_sets: int) -> NDArray[np.float64] | None:
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_sets,):
        raise ShapeError(f"sample_weight needs one entry a set, shape {(n_sets,)}; got {weights.shape}.")
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise DataError("Sample weights must be finite, none negative and not all 0.")
    return weights


def like(X: AnySets, sets: Sets, packed: NDArray[Any]) -> Any:
    """Give packed values the form of the input."""
    if isinstance(X, Sets):
        return packed
    if isinstance(X, (list, tuple)):
        return sets.unpack(packed)
    return packed.reshape(len(sets), -1)


def without_each(
    score: Callable[[Sets], NDArray[Any]], sets: Sets
) -> Iterator[tuple[Index, Index, Index, NDArray[Any]]]:
    """Leave each object out of its set and score those who stay; sets of fewer than three are passed over.

    Yields some sets of one size at a time: which they are (n,), the rows of their objects (n, m), the places of those
    who stay when object j leaves (m, m - 1), and what they score then (n, m, m - 1).
    """
    for chosen, rows in sets.by_size():
        m = rows.shape[1]
        if m < 3:
            continue
        stay = np.array([np.delete(np.arange(m), j) for j in range(m)])  # (m, m - 1)
        step = max(1, _CHUNK // (m * m * sets.n_features))
        at_once = max(1, _CHUNK // (m * sets.n_features))
        for begin in range(0, len(chosen), step):
            some, mine = chosen[begin : begin + step], rows[begin : begin + step]
            left = mine[:, stay].reshape(-1, m - 1)  # (n * m, m - 1): the rows of all that remain
            owner = np.repeat(some, m)
            parts = [
                score(_pick(sets, left[k : k + at_once], owner[k : k + at_once]))
                for k in range(0, len(left), at_once)
            ]
            yield some, mine, stay, np.concatenate(parts).reshape(len(some), m, m - 1)


def _pick(sets: Sets, rows: Index, owner: Index) -> Sets:
    """Make sets of rows (n, m), each in the situation of its owner."""
    offsets = np.arange(len(rows) + 1) * rows.shape[1]
    situation = None if sets.situation is None else sets.situation[owner]
    return Sets(sets.objects[rows.ravel()], offsets, None, situation)
