"""RankBoost: a sum of thresholds on single features, each chosen for the pairs still in the wrong order."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entourage.data.sets import Sets
from entourage.errors import check_number
from entourage.estimators.baselines.base import Baseline, features_of, ordered_pairs

__all__ = ["RankBoost"]


class RankBoost(Baseline):
    r"""Boosting of pairs with threshold weak rankers (Freund, Iyer, Schapire and Singer 2003).

    Round by round, the weak ranker :math:`h(x) = [x_f > \theta]` with the largest
    :math:`|r|, r = \sum_{pairs} D (h(better) - h(worse))` gets the weight
    :math:`\alpha = \frac12 \ln \frac{1 + r}{1 - r}`, and pairs it puts in the wrong order gain weight.

    The sum over pairs is one over objects: each object's potential is the weight of the pairs it should
    win minus that of those it should lose. All thresholds of a feature are then evaluated by one histogram
    of potentials, so a round costs O(pairs + objects x features).

    Parameters
    ----------
    rounds : int
        How many weak rankers.
    bins : int
        Thresholds a feature has at most, at its quantiles.
    max_pairs : int
        How many pairs to learn from; where there are more, so many are drawn.
    relative : bool, "all", or list of columns or places
        Which numbers are also seen relative to their set (:mod:`entourage.data.relative`).
    random_state : int
        Draws the pairs.
    """

    def __init__(
        self,
        rounds: int = 100,
        *,
        bins: int = 64,
        max_pairs: int = 1_000_000,
        relative: bool | str | Sequence[str | int] = False,
        random_state: int = 0,
    ) -> None:
        self.relative = relative
        self.rounds = rounds
        self.bins = bins
        self.max_pairs = max_pairs
        self.random_state = random_state

    def _learn(self, sets: Sets, weights: NDArray[np.float64]) -> None:
        check_number("rounds", self.rounds, least=1, whole=True)
        check_number("bins", self.bins, least=2, whole=True)
        check_number("max_pairs", self.max_pairs, least=1, whole=True)
        rng = np.random.default_rng(self.random_state)
        better, worse, owner = ordered_pairs(sets, at_most=self.max_pairs, rng=rng)
        features = features_of(sets)
        n, d = features.shape
        quantiles = np.linspace(0, 1, self.bins + 1)[1:-1]
        self.thresholds_ = [np.unique(np.quantile(column, quantiles)) for column in features.T]
        codes = self._codes(features)  # (n, d): how many thresholds a feature is above
        width = self.bins  # codes are below this
        flat = codes + width * np.arange(d)  # one histogram for all features
        self.values_ = np.zeros((d, width))  # what a feature adds to the score, by its code
        distribution = weights[owner] / weights[owner].sum()
        smoothing = 1e-9
        for _ in range(self.rounds):
            potential = np.bincount(better, distribution, n) - np.bincount(worse, distribution, n)
            histogram = np.bincount(flat.reshape(-1), np.repeat(potential, d), d * width).reshape(d, width)
            above = np.cumsum(histogram[:, ::-1], axis=1)[:, ::-1]  # r of "code at least c"
            above[:, 0] = 0.0  # all codes are at least 0: no ranker at all
            feature, code = np.unravel_index(int(np.abs(above).argmax()), above.shape)
            r = float(np.clip(above[feature, code], -1 + smoothing, 1 - smoothing))
            if abs(r) < 1e-12:
                break  # no threshold separates any pair any more
            alpha = 0.5 * np.log((1 + r) / (1 - r))
            self.values_[feature, code:] += alpha
            passes = (codes[:, feature] >= code).astype(np.float64)
            distribution = distribution * np.exp(alpha * (passes[worse] - passes[better]))
            distribution /= distribution.sum()

    def _codes(self, features: NDArray[np.float64]) -> NDArray[np.int64]:
        columns = zip(self.thresholds_, features.T, strict=True)
        return np.stack([np.searchsorted(cuts, column, side="left") for cuts, column in columns], axis=1)

    def _score(self, sets: Sets) -> NDArray[Any]:
        codes = self._codes(features_of(sets))
        return np.asarray(self.values_[np.arange(codes.shape[1]), codes].sum(1))
