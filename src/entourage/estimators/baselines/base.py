"""What the classical rankers share: they are context-free and score each object from its own features."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entourage.data.encoder import TableColumns
from entourage.data.ranks import average_places
from entourage.data.sets import AnySets, Sets
from entourage.estimators.base import SetPredictor

__all__ = ["Baseline", "features_of", "ordered_pairs", "places"]


class Baseline(SetPredictor):
    """A ranker with the ``fit``, ``predict`` and ``score`` of :class:`entourage.Ranker`."""

    def fit(
        self,
        X: AnySets,
        y: Any = None,
        *,
        situation: ArrayLike | Sequence[str] | None = None,
        sample_weight: ArrayLike | str | None = None,
        **table: Unpack[TableColumns],
    ) -> Self:
        """Learn from sets and their ranks, or from a table; see :meth:`entourage.Ranker.fit`."""
        sets, weights, _ = self._check_training_data(X, y, situation, sample_weight, table=table)
        self._learn(sets, np.ones(len(sets)) if weights is None else weights)
        self._learnt_from(sets)
        return self

    @abstractmethod
    def _learn(self, sets: Sets, weights: NDArray[np.float64]) -> None:
        """Fit to checked sets with one weight each, on average 1."""


def features_of(sets: Sets) -> NDArray[np.float64]:
    """Return each object's features with those of its set's situation behind them, packed."""
    parts = [sets.objects]
    if sets.situation is not None:
        parts.append(np.repeat(sets.situation, sets.sizes, axis=0))
    return np.concatenate(parts, axis=1, dtype=np.float64)


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
