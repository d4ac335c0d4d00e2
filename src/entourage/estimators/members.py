"""What the members of an ensemble of nets say: how far they disagree."""

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entourage.data.sets import AnySets, Sets
from entourage.errors import ParameterError
from entourage.estimators.base import SetPredictor
from entourage.estimators.inputs import given_sets
from entourage.nets import Scorer
from entourage.nets.ensemble import Stack
from entourage.training.device import find_device, placed

__all__ = ["MembersPredictor"]


class MembersPredictor(SetPredictor):
    """An estimator whose net may be an ensemble: its ``scorer_`` is then a `Stack`."""

    scorer_: Scorer
    device: str

    @abstractmethod
    def _scores_of(self, scorer: Scorer, sets: Sets) -> NDArray[Any]:
        """Score all objects of checked sets with one net."""

    def predict_scores(
        self, X: AnySets, *, situation: ArrayLike | None = None, return_std: bool = False
    ) -> Any:
        """Return the utility U(x, C) of each object; higher is better.

        What comes out has the form of what went in: an (n, m) array for an (n, m, d) array, a list of
        arrays for a list, a packed array for `Sets`, one number a row, in the order of the rows, for a table. Sets
        may have other sizes than those learnt from.

        With ``return_std`` also the standard deviation of an object's score over the members of an ensemble. Where
        only differences of scores matter, each member's scores of a set are first centred.
        """
        if not return_std:
            return super().predict_scores(X, situation=situation)
        given = given_sets(self._fitted(), X, situation)
        each = self._member_scores(given.sets)  # (members, objects)
        scores = given.back(self._checked_scores(given.sets))
        if self.task.only_differences:
            for _, rows in given.sets.by_size():
                each[:, rows] -= each[:, rows].mean(2, keepdims=True)
        return scores, given.back(each.std(0, ddof=1))

    def predict_pairs(self, X: AnySets, *, situation: ArrayLike | None = None) -> Any:
        """Return which share of the members of an ensemble put object i of a set above object j: ``(n, m, m)``.

        A tie counts one half. For sets of several sizes, a list of ``(m, m)`` arrays.
        """
        sets = given_sets(self._fitted(), X, situation).sets
        members = [sets.unpack(scores) for scores in self._member_scores(sets)]
        shares = [
            np.mean([(s[:, None] > s) + 0.5 * (s[:, None] == s) for s in own], axis=0)
            for own in zip(*members, strict=True)
        ]
        return shares if sets.uniform_size is None or isinstance(X, (list, tuple)) else np.stack(shares)

    def _member_scores(self, sets: Sets) -> NDArray[Any]:
        """Score with each member: (members, objects)."""
        self._check_fitted()
        stack: Any = getattr(self, "scorer_", None)
        if not isinstance(stack, Stack):
            blend = getattr(self, "blend_", None) is not None
            one = 'A blend of several models ("auto")' if blend else "A single net"
            raise ParameterError(
                f"{one} has no spread over members: fit an ensemble of one net, Ranker(FATE(), members=8)."
            )
        self._check_features(sets)
        members = placed(stack, find_device(self.device)).as_scorers()
        return np.stack([self._scores_of(member, sets) for member in members])
