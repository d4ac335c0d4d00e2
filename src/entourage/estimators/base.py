"""What every estimator shares once it can score: predictions, evaluation, and checks of the input."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import exceptions
from sklearn.base import BaseEstimator

from entourage.data.encoder import TableColumns, TableEncoder
from entourage.data.ranks import tie_equal_objects
from entourage.data.relative import STANDINGS, Relative, find_places
from entourage.data.sets import AnySets, Sets, is_frame
from entourage.errors import DataError, ParameterError, ShapeError, UserError
from entourage.estimators.inputs import check_something_to_learn, encoder_of, given_sets, training_sets
from entourage.estimators.plugins import explorer, onnx_export
from entourage.tasks import Choice, Ranking, SubsetChoice, Task
from entourage.tasks.evaluate import evaluate_scores, mean_over_sets, metric_of_sets

__all__ = ["NotFittedError", "OneChoicePredictor", "SetPredictor", "SubsetPredictor", "without_each"]

Index: TypeAlias = NDArray[np.int64]

_CHUNK = 8_000_000  # numbers in a temporary array, so that memory stays bounded


class NotFittedError(UserError, exceptions.NotFittedError):  # type: ignore[misc]
    """The model has not been fitted."""


class SetPredictor(BaseEstimator, ABC):  # type: ignore[misc]
    """An estimator that scores the objects of sets; a subclass fits, and scores packed sets.

    ``fit`` sets ``n_features_in_`` and ``n_situation_features_in_``. From a table it also sets ``table_``, a
    description of the columns, and ``feature_names_in_``.
    """

    n_features_in_: int
    n_situation_features_in_: int
    table_: dict[str, Any] | None = None
    level_codes = (
        False  # whether categories of many levels become codes, for a net to learn a vector for each
    )

    relative_: Relative | None = None  # which columns a model without a net sees relative to their set
    standings: tuple[str, ...] = STANDINGS  # how it sees them

    @property
    def task(self) -> Task:
        """What a target means, what is done with scores, and how predictions are evaluated."""
        return Ranking()

    @property
    def learns_position(self) -> bool:
        """Whether `fit` learns an effect of positions."""
        return False

    @property
    def _words(self) -> str:
        """What it is called in a message."""
        return type(self).__name__

    def _learn_relative(self, sets: Sets) -> Sets:
        """Find the columns that the parameter ``relative`` names; return what is seen of the sets."""
        places = find_places(getattr(self, "relative", False), sets)
        self.relative_ = None if places is None else Relative(places, self.standings)
        return self._seen(sets)

    def _seen(self, sets: Sets) -> Sets:
        """Return sets with the standings of their objects behind the features, where the model sees these."""
        if self.relative_ is None:
            return sets
        return sets.with_features(
            np.concatenate([sets.objects, self.relative_.of(sets)], axis=1), sets.situation
        )

    @property
    def n_columns(self) -> int:
        """How many numbers of an object a model without a net sees."""
        return self.n_features_in_ + (0 if self.relative_ is None else self.relative_.width)

    @abstractmethod
    def _packed_scores(self, sets: Sets) -> NDArray[Any]:
        """Score all objects of checked sets, packed; higher is better."""

    def predict_scores(self, X: AnySets, *, situation: ArrayLike | None = None) -> Any:
        """Return the utility U(x, C) of each object; higher is better.

        What comes out has the form of what went in: an (n, m) array for an (n, m, d) array, a list of
        arrays for a list, a packed array for `Sets`, one number a row, in the order of the rows, for a table. Sets
        may have other sizes than those learnt from.
        """
        given = given_sets(self._fitted(), X, situation)
        return given.back(self._checked_scores(given.sets))

    def predict(self, X: AnySets, *, situation: ArrayLike | None = None) -> Any:
        """Return the predicted ranks, 0 = best, in the order the objects came in; see `predict_scores`.

        Equal scores share a rank. Objects of a set that are equal in all features do, too, though rounding may give
        them scores that differ in the last digits.

        Subset choice: 1 for chosen objects, 0 for the others.
        """
        given = given_sets(self._fitted(), X, situation)
        return given.back(self.decide(given.sets, self._checked_scores(given.sets)))

    def decide(self, sets: Sets, scores: NDArray[Any]) -> NDArray[np.int64]:
        """Return packed predictions from packed scores; see `predict`. Equal objects of a set are tied."""
        ranks = np.empty(len(scores), dtype=np.int64)
        for _, rows in sets.by_size():
            ranks[rows] = self.task.decide(tie_equal_objects(sets.objects, rows, scores[rows]))
        return ranks

    def columns(self, sets: Sets, scores: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Return what a table of predictions has a column for, packed, from packed scores."""
        return {"score": scores, "rank": self.decide(sets, scores)}

    def score(
        self,
        X: AnySets,
        y: Any = None,
        *,
        situation: ArrayLike | None = None,
        sample_weight: ArrayLike | str | None = None,
    ) -> float:
        """Return the metric of the task, averaged over sets.

        Ranking: the share of pairs in the right order (0/1-ranking accuracy). Discrete choice: accuracy. Subset
        choice: F1. A table needs the target column that the model learnt from.
        """
        sets, weights = self._evaluation_sets(X, y, situation, sample_weight)
        return mean_over_sets(metric_of_sets(self.task.metric, sets, self._checked_scores(sets)), weights)

    def evaluate(
        self,
        X: AnySets,
        y: Any = None,
        *,
        situation: ArrayLike | None = None,
        sample_weight: ArrayLike | str | None = None,
    ) -> dict[str, float]:
        """Return every metric of the task, each averaged over the sets in which it is defined."""
        sets, weights = self._evaluation_sets(X, y, situation, sample_weight)
        return evaluate_scores(sets, self._checked_scores(sets), self.task.metrics, weights)

    def _evaluation_sets(
        self, X: Any, y: Any, situation: Any, sample_weight: Any
    ) -> tuple[Sets, NDArray[np.float64] | None]:
        """Make sets to evaluate the model on, and their weights."""
        self._check_fitted()
        encoder = None
        if is_frame(X):
            encoder = encoder_of(self)
        sets, weights, _ = training_sets(
            self.task, X, y, situation, sample_weight=sample_weight, encoder=encoder
        )
        return sets, weights

    def to_onnx(self, path: str | os.PathLike[str], *, tolerance: float = 1e-5) -> Any:
        """Write the fitted model as an ONNX graph, from cells of a table, or features, to scores and probabilities.

        The graph is first compared with the model, on random sets of 1 to 1,000 objects; where they differ by more
        than ``tolerance``, nothing is written. Needs the extra ``[onnx]``. See :func:`entourage.serving.onnx.to_onnx`.
        """
        return onnx_export().to_onnx(self._fitted(), path, tolerance=tolerance)

    def explore(self, X: AnySets, **options: Any) -> Any:
        """Return a page in which the model scores these sets live, for people to change; a notebook shows it.

        ``.save("explorer.html")`` writes it. Options, and what the page holds: see :func:`entourage.serving.explore`.
        Needs the extra ``[onnx]``.
        """
        return explorer().explore(self._fitted(), X, **options)

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
            raise NotFittedError(f"This {type(self).__name__} is not fitted yet; call fit(X, y) first.")

    def _fitted(self) -> Self:
        self._check_fitted()
        return self

    def _check_features(self, sets: Sets) -> None:
        if sets.encoder is not None and self.table_ is not None:
            known = encoder_of(self)
            if known is not sets.encoder:
                known.check_same(sets.encoder, "These sets don't fit the model, which learnt from others")
        for what, needed, came in (
            ("features", self.n_features_in_, sets.n_features),
            ("situation features", self.n_situation_features_in_, sets.n_situation_features),
        ):
            if needed != came:
                raise ShapeError(f"This model was fitted on {needed} {what}; these sets have {came}.")

    def _check_training_data(
        self,
        X: Any,
        y: Any,
        situation: Any,
        sample_weight: Any,
        groups: Any = None,
        table: TableColumns | None = None,
        encoder: TableEncoder | None = None,
    ) -> tuple[Sets, NDArray[np.float64] | None, Any]:
        """Make sets of the input and check that some are informative; weights have mean 1.

        Sets of weight 0 are left out here, so that they have no effect at all.
        """
        sets, weights, labels = training_sets(
            self.task,
            X,
            y,
            situation,
            sample_weight=sample_weight,
            groups=groups,
            table=table,
            codes=self.level_codes,
            encoder=encoder,
        )
        if sets.position is not None and not self.learns_position:
            raise ParameterError(
                f"{self._words} learns no effect of positions; nets that are trained (Ranker, DiscreteChooser, "
                "SubsetChooser) and MultinomialLogit do. Leave position out, or drop it: sets.with_position(None)."
            )
        if weights is not None and not weights.all():
            if sets.on_disk:
                raise DataError("Sets on disk can't have a weight of 0; leave them out of the table.")
            kept = weights > 0
            sets, weights = sets[kept], weights[kept]
            if labels is not None and len(labels) == len(kept):
                labels = np.asarray(labels)[kept]
        check_something_to_learn(self.task, sets)
        return sets, None if weights is None else weights / weights.mean(), labels

    def _learnt_from(self, sets: Sets) -> None:
        """Keep the number of features of the training sets and, of a table, its columns."""
        self.n_features_in_ = sets.n_features
        self.n_situation_features_in_ = sets.n_situation_features
        self.table_ = None if sets.encoder is None else sets.encoder.to_json()

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The columns that were learnt from, where it was a table."""
        if self.table_ is None:
            raise AttributeError("feature_names_in_ exists only where the model learnt from a table.")
        return np.array([column["name"] for column in self.table_["columns"]], dtype=object)


class OneChoicePredictor(SetPredictor):
    """What all estimators of discrete choice share: one object of a set is chosen."""

    @property
    def task(self) -> Choice:
        """What a target means, what is done with scores, and how predictions are evaluated."""
        return Choice()

    def predict(self, X: AnySets, *, situation: ArrayLike | None = None) -> NDArray[np.int64]:
        """Return the place of the most probable object of each set; -1 where nothing is chosen.

        Of a table: 1 for the row that is chosen in each set, 0 for the others.
        """
        given = given_sets(self._fitted(), X, situation)
        places = np.asarray(self.task.places(given.sets, self._checked_scores(given.sets)))
        if not given.is_table:
            return places
        chosen = np.zeros(len(given.sets.objects), dtype=np.int64)
        some = places >= 0
        chosen[given.sets.offsets[:-1][some] + places[some]] = 1
        return np.asarray(given.back(chosen))

    def predict_proba(self, X: AnySets, *, situation: ArrayLike | None = None) -> Any:
        """Return the probability that each object is chosen, in the form of the input.

        They sum to 1 in each set; with an outside option, to 1 minus its probability.
        """
        given = given_sets(self._fitted(), X, situation)
        return given.back(self.task.probabilities(given.sets, self._checked_scores(given.sets)))

    def columns(self, sets: Sets, scores: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Return what a table of predictions has a column for, packed, from packed scores."""
        return {"probability": self.task.probabilities(sets, scores)} | super().columns(sets, scores)

    def log_likelihood(
        self,
        X: AnySets,
        y: Any = None,
        *,
        situation: ArrayLike | None = None,
        sample_weight: ArrayLike | str | None = None,
    ) -> float:
        """Return the mean log-probability of what was chosen."""
        sets, weights = self._evaluation_sets(X, y, situation, sample_weight)
        return mean_over_sets(metric_of_sets(self.task.criterion, sets, self._checked_scores(sets)), weights)


class SubsetPredictor(SetPredictor):
    """What all estimators of subset choice share: some objects of a set are chosen, those above a threshold.

    A subclass has a parameter ``threshold``, a number or "held-out"; ``fit`` sets ``threshold_``.
    """

    threshold: float | str

    @property
    def task(self) -> SubsetChoice:
        """What a target means, what is done with scores, and how predictions are evaluated."""
        if not isinstance(self.threshold, str):
            return SubsetChoice(threshold=float(self.threshold))
        return SubsetChoice(threshold=getattr(self, "threshold_", 0.0))

    def predict_proba(self, X: AnySets, *, situation: ArrayLike | None = None) -> Any:
        """Return the probability that each object is chosen, in the form of the input."""
        given = given_sets(self._fitted(), X, situation)
        return given.back(self.task.probabilities(given.sets, self._checked_scores(given.sets)))

    def columns(self, sets: Sets, scores: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Return what a table of predictions has a column for, packed, from packed scores."""
        probabilities = self.task.probabilities(sets, scores)
        return {"probability": probabilities, "score": scores, "chosen": self.decide(sets, scores)}


def without_each(
    score: Callable[[Sets], NDArray[Any]], sets: Sets
) -> Iterator[tuple[Index, Index, Index, NDArray[Any]]]:
    """Remove each object from its set in turn and score the others; sets of fewer than three objects are skipped.

    Yields some sets of one size at a time: which they are (n,), the rows of their objects (n, m), the places of the
    objects that remain when object j is removed (m, m - 1), and their scores then (n, m, m - 1).
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
    return Sets(sets.objects[rows.ravel()], offsets, None, situation, encoder=sets.encoder)
