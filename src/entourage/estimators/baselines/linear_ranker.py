"""A linear utility by logistic regression of pairs, with a penalty that is chosen by cross-validation."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from entourage.data.sets import Sets
from entourage.errors import check_number
from entourage.estimators.baselines.base import features_of, ordered_pairs, ranking_criterion
from entourage.estimators.baselines.pair_loss import LinearBaseline, Pairs, logistic, minimise
from entourage.estimators.validation_split import FEWEST_TO_HOLD_OUT
from entourage.estimators.view_file import describe_map, map_from
from entourage.tasks import mean_over_sets, metric_of_sets
from entourage.training.deadline import time_is_up
from entourage.training.file_checks import Arrays, take
from entourage.training.quantile_map import QuantileMap

__all__ = ["LinearRanker"]

Floats: TypeAlias = NDArray[np.float64]

PENALTIES = (1000.0, 300.0, 100.0, 30.0, 10.0, 1.0)  # tried, in this order
BY_DEFAULT = 10.0  # where there are too few sets to try
FOLDS = 5
MOST_OBJECTS_IN_FOLDS = 50_000  # where there are more, the penalty hardly matters


class LinearRanker(LinearBaseline):
    r"""Rank by a linear utility, learnt by logistic regression of pairs.

    Object i is before j with probability :math:`1 / (1 + e^{-w^\top (x_i - x_j)})`. Features are standardised, after
    those with heavy tails are mapped by their quantiles (:mod:`entourage.training.quantile_map`). The weights
    minimise the negative log-likelihood of pairs, averaged within each set and summed over sets, plus
    :math:`\frac{l2}{2} |w|^2`; Newton's method finds the minimum.

    Parameters
    ----------
    l2 : float or "folds"
        "folds" takes the one, of six from 1 to 1,000, under which five folds of the training sets rank best when held
        out: by 0/1-ranking accuracy, by nDCG where targets came from relevance grades. With fewer than 20 informative
        sets, or more than 50,000 objects, it is 10.
    max_pairs : int
        How many pairs to learn from; where there are more, so many are drawn.
    relative : bool, "all", or list of columns or places
        Which numbers are also seen relative to their set (:mod:`entourage.data.relative`): as z-score and
        rank, since the other standings differ from the number by a constant of the set.
    random_state : int
        Draws the pairs and the folds.

    Attributes
    ----------
    l2_ : the penalty
    mean_, scale_ : of each feature in the training data
    coef_ : the weight of each standardised feature
    converged_ : whether the minimum was found

    Examples
    --------
    >>> import numpy as np
    >>> from entourage.baselines import LinearRanker
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 4, 2))
    >>> ranks = (-X @ [2.0, -1.0] + rng.gumbel(size=(200, 4))).argsort(1).argsort(1)
    >>> LinearRanker().fit(X, ranks).score(X, ranks) > 0.75
    True
    """

    def __init__(
        self,
        l2: float | str = "folds",
        *,
        max_pairs: int = 1_000_000,
        relative: bool | str | Sequence[str | int] = False,
        random_state: int = 0,
    ) -> None:
        self.relative = relative
        self.l2 = l2
        self.max_pairs = max_pairs
        self.random_state = random_state

    def _check_parameters(self) -> None:
        if self.l2 != "folds":
            check_number("l2 (unless it is 'folds')", self.l2, above=0)
        check_number("max_pairs", self.max_pairs, least=1, whole=True)
        check_number("random_state", self.random_state, least=0, whole=True)

    def _learn(self, sets: Sets, weights: Floats) -> None:
        self._check_parameters()
        features = features_of(sets)
        self.map_ = QuantileMap.fit(features, range(features.shape[1]), np.repeat(weights, sets.sizes))
        features = self._standardised(self.map_(features))
        pairs = self._pairs(sets, weights)
        self.l2_ = self._best_penalty(sets, features, weights) if isinstance(self.l2, str) else float(self.l2)
        self.coef_, self.converged_ = minimise(features, pairs, logistic, l2=self.l2_)

    def facts(self) -> dict[str, str]:
        """Say in a few words what was learnt, for ``entourage info``."""
        return {"penalty": f"{self.l2_:g}"}

    def _score(self, sets: Sets) -> NDArray[Any]:
        return np.asarray(((self.map_(features_of(sets)) - self.mean_) / self.scale_) @ self.coef_)

    def _kept(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        fitted, tensors = super()._kept()
        return fitted | {"l2_": self.l2_, "map_": describe_map(self.map_)}, tensors

    def _restore(self, fitted: Any, arrays: Arrays) -> None:
        super()._restore(fitted, arrays)
        self.l2_ = take(fitted, "l2_", float, least=0)
        self.map_ = map_from(fitted.get("map_"), self.n_columns + self.n_situation_features_in_)

    def _pairs(self, sets: Sets, weights: Floats) -> Pairs:
        rng = np.random.default_rng(self.random_state)
        better, worse, owner = ordered_pairs(sets, at_most=self.max_pairs, rng=rng)
        return Pairs(better, worse, weights[owner] / np.bincount(owner)[owner])

    def _best_penalty(self, sets: Sets, features: Floats, weights: Floats) -> float:
        """Return the penalty under which held-out sets are ranked best."""
        few = int(self.task.informative(sets).sum()) < FEWEST_TO_HOLD_OUT
        if few or len(features) > MOST_OBJECTS_IN_FOLDS:
            return BY_DEFAULT
        folds = self._folds(sets, FOLDS, self.random_state)
        metric = ranking_criterion(sets)
        totals = np.zeros(len(PENALTIES))
        for fold in folds:
            out = np.zeros(len(sets), dtype=bool)
            out[fold] = True
            rows = np.repeat(~out, sets.sizes)
            pairs, held_out = self._pairs(sets[~out], weights[~out]), sets[out]
            w = None
            for i, l2 in enumerate(PENALTIES):
                w, _ = minimise(features[rows], pairs, logistic, l2=l2, start=w)
                values = metric_of_sets(metric, held_out, features[~rows] @ w)
                totals[i] += mean_over_sets(values, weights[out]) * weights[out].sum()
                if time_is_up():
                    return BY_DEFAULT
        return PENALTIES[int(np.argmax(totals))]
