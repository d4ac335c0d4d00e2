"""RankSVM: a linear utility that separates the better from the worse of each pair."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from entourage.data.sets import Sets
from entourage.errors import check_number
from entourage.estimators.baselines.base import Baseline, features_of, ordered_pairs

__all__ = ["RankSVM"]


class RankSVM(Baseline):
    """A linear support vector machine on the differences of pairs.

    Parameters
    ----------
    C : float
        The weight of margin violations against the size of the weights.
    max_pairs : int
        How many pairs to learn from; where there are more, so many are drawn.
    random_state : int
        Draws the pairs, and the order in which each is presented.
    """

    def __init__(self, C: float = 1.0, *, max_pairs: int = 1_000_000, random_state: int = 0) -> None:
        self.C = C
        self.max_pairs = max_pairs
        self.random_state = random_state

    def _learn(self, sets: Sets, weights: NDArray[np.float64]) -> None:
        check_number("C", self.C, above=0)
        check_number("max_pairs", self.max_pairs, least=1, whole=True)
        rng = np.random.default_rng(self.random_state)
        better, worse, owner = ordered_pairs(sets, at_most=self.max_pairs, rng=rng)
        scaler = StandardScaler().fit(features_of(sets))
        features = scaler.transform(features_of(sets))
        sign = rng.choice([-1.0, 1.0], size=len(better))
        sign[:2] = [1.0, -1.0][: len(sign)]  # both ways round occur, or there would be one class only
        if len(sign) == 1:
            better, worse, owner, sign = (np.repeat(a, 2) for a in (better, worse, owner, sign))
            sign[1] = -1.0
        differences = (features[better] - features[worse]) * sign[:, None]
        svm = LinearSVC(C=self.C, dual=False, fit_intercept=False)
        svm.fit(differences, sign, sample_weight=weights[owner])
        self.scaler_, self.coef_ = scaler, svm.coef_[0]

    def _packed_scores(self, sets: Sets) -> NDArray[Any]:
        return np.asarray(self.scaler_.transform(features_of(sets)) @ self.coef_)
