"""What the classical rankers share: they are context-free and score each object from its own features."""

import os
from abc import abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from entourage.data.encoder import TableColumns
from entourage.data.ranks import average_places
from entourage.data.resampling import labels_of
from entourage.data.sets import AnySets, Sets
from entourage.errors import DataError
from entourage.estimators.base import SetPredictor
from entourage.estimators.model_file import content_of, save_described
from entourage.estimators.table_file import check_table
from entourage.estimators.view_file import describe_relative, relative_from
from entourage.tasks.ranking_metrics import Metric, ndcg, ranking_accuracy
from entourage.training.file_checks import Arrays, params_of, take

__all__ = ["Baseline", "features_of", "ordered_pairs", "places", "ranking_criterion"]


class Baseline(SetPredictor):
    """A ranker with the ``fit``, ``predict`` and ``score`` of :class:`entourage.Ranker`."""

    def fit(
        self,
        X: AnySets,
        y: Any = None,
        *,
        situation: ArrayLike | Sequence[str] | None = None,
        sample_weight: ArrayLike | str | None = None,
        groups: ArrayLike | str | None = None,
        **table: Unpack[TableColumns],
    ) -> Self:
        """Learn from sets and their ranks, or from a table; see :meth:`entourage.Ranker.fit`.

        ``groups`` has one label a set, or is a column of a table: whoever chose, or the season. Sets of one label are
        held out together, where a model holds sets out to stop early or to choose a penalty.
        """
        sets, weights, labels = self._check_training_data(X, y, situation, sample_weight, groups, table)
        self._units = None if labels is None else labels_of(labels, len(sets))
        try:
            self._learn(self._learn_relative(sets), np.ones(len(sets)) if weights is None else weights)
        finally:
            del self._units
        self._learnt_from(sets)
        return self

    _units: NDArray[np.int64] | None  # while it learns: the group of each set, where there are groups

    def _folds(self, sets: Sets, count: int, seed: int) -> list[NDArray[np.int64]]:
        """Part the informative sets at random into so many folds, or fewer; groups stay whole."""
        informative = np.flatnonzero(self.task.informative(sets))
        rng = np.random.default_rng([seed, 2**32])
        if self._units is None:
            shuffled = rng.permutation(informative)
            count = min(count, len(shuffled))
            return [np.sort(shuffled[k::count]) for k in range(count)]
        mine = self._units[informative]
        labels = rng.permutation(np.unique(mine))
        if len(labels) < 2:
            raise DataError(
                "groups needs at least two labels among the informative sets, of which one is held out; there is one. "
                "Leave groups out, or set validation=0."
            )
        count = min(count, len(labels))
        return [informative[np.isin(mine, labels[k::count])] for k in range(count)]

    @abstractmethod
    def _learn(self, sets: Sets, weights: NDArray[np.float64]) -> None:
        """Fit to checked sets with one weight each, on average 1."""

    def _packed_scores(self, sets: Sets) -> NDArray[Any]:
        return self._score(self._seen(sets))

    @abstractmethod
    def _score(self, sets: Sets) -> NDArray[Any]:
        """Score all objects of checked sets, packed; higher is better."""

    # --- files ------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file that :func:`entourage.load` reads."""
        self._check_fitted()
        save_described(self, path)

    def describe(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Return what a file holds of the model: the JSON content, and the tensors."""
        fitted, tensors = self._kept()
        common = {
            "n_features_in_": self.n_features_in_,
            "n_situation_features_in_": self.n_situation_features_in_,
            "table_": self.table_,
            "relative_": describe_relative(self.relative_),
        }
        return content_of(self, common | fitted), tensors

    @classmethod
    def from_file(cls, content: dict[str, Any], tensors: dict[str, Tensor]) -> Self:
        """Restore the model that a file holds."""
        model = cls(**params_of(cls, content.get("params")))
        fitted: Any = content.get("fitted")
        model.n_features_in_ = take(fitted, "n_features_in_", int, least=1)
        model.n_situation_features_in_ = take(fitted, "n_situation_features_in_", int, least=0)
        model.relative_ = relative_from(fitted.get("relative_"), model.n_features_in_)
        arrays = Arrays(tensors)
        model._restore(fitted, arrays)
        arrays.must_be_empty()
        widths = (model.n_features_in_, model.n_situation_features_in_)
        model.table_ = check_table(fitted.get("table_"), widths)
        return model

    def facts(self) -> dict[str, str]:
        """Say in a few words what was learnt, for ``entourage info``."""
        return {}

    def _kept(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Return what was learnt, for a file: what JSON can hold, and tensors."""
        raise NotImplementedError(f"{type(self).__name__} can't be saved.")

    def _restore(self, fitted: Any, arrays: Arrays) -> None:
        """Set what `_kept` returned, all of it checked."""
        raise NotImplementedError(f"{type(self).__name__} can't be in a file.")


def features_of(sets: Sets) -> NDArray[np.float64]:
    """Return each object's features with those of its set's situation behind them, packed."""
    parts = [sets.objects]
    if sets.situation is not None:
        parts.append(np.repeat(sets.situation, sets.sizes, axis=0))
    return np.concatenate(parts, axis=1, dtype=np.float64)


def ranking_criterion(sets: Sets) -> Metric:
    """Return 0/1-ranking accuracy, or nDCG where targets came from relevance grades, of which some are relevant."""
    targets: NDArray[Any] = sets.targets  # type: ignore[assignment]
    if sets.worst is None or not (targets < sets.worst).any():
        return ranking_accuracy
    return partial(ndcg, worst=sets.worst)


def places(sets: Sets) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return each object's place among the ranked ones of its set, packed, and how many those are.

    Places start at 0; tied objects share their average place; objects that are not ranked have NaN.
    """
    targets: NDArray[Any] = sets.targets  # type: ignore[assignment]
    place = np.full(len(targets), np.nan)
    ranked = np.empty(len(targets), dtype=np.int64)
    for _, rows in sets.by_size():
        known = ~np.isnan(targets[rows])
        place[rows] = np.where(known, average_places(targets[rows], known), np.nan)
        ranked[rows] = known.sum(1, keepdims=True)
    return place, ranked


def ordered_pairs(
    sets: Sets, *, at_most: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return pairs of different rank: rows of the better, rows of the worse, and their sets.

    Where there could be more than ``at_most``, so many are drawn at random: a set with the probability of
    its number of pairs, then two of its objects.
    """
    targets: NDArray[Any] = sets.targets  # type: ignore[assignment]
    sizes = sets.sizes
    possible = sizes * (sizes - 1) // 2
    if possible.sum() <= at_most:
        firsts, seconds, owners = [], [], []
        for chosen, rows in sets.by_size():
            i, j = np.triu_indices(rows.shape[1], 1)
            firsts.append(rows[:, i].reshape(-1))
            seconds.append(rows[:, j].reshape(-1))
            owners.append(np.repeat(chosen, len(i)))
        first, second, owner = map(np.concatenate, (firsts, seconds, owners))
    else:
        owner = rng.choice(len(sets), size=at_most, p=possible / possible.sum())
        first = rng.integers(0, sizes[owner])
        second = (first + rng.integers(1, sizes[owner])) % sizes[owner]
        first, second = first + sets.offsets[owner], second + sets.offsets[owner]
    forward, backward = targets[first] < targets[second], targets[first] > targets[second]
    known = forward | backward  # False for ties and where either is not ranked
    better = np.where(forward, first, second)[known]
    worse = np.where(forward, second, first)[known]
    return better, worse, owner[known]
