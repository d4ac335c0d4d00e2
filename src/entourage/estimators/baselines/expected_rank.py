"""Expected rank regression: a linear model of an object's expected rank."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from entourage.data.relative import LINEAR_STANDINGS
from entourage.data.sets import Sets
from entourage.errors import check_number
from entourage.estimators.baselines.base import Baseline, features_of, places

__all__ = ["ExpectedRankRegression"]


class ExpectedRankRegression(Baseline):
    r"""Regress an object's expected rank on its features (Kamishima, Kazawa and Akaho 2005).

    Over all complete rankings that agree with a ranking of L objects, the expected relative rank of the object on
    place j (from 1) is :math:`j / (L + 1)`. Tied objects have their average place, unranked ones take no part. The
    score is minus the expected rank.

    Parameters
    ----------
    alpha : float
        The L2 penalty on the weights of the standardised features.
    relative : bool, "all", or list of columns or places
        Which numbers are also seen relative to their set (:mod:`entourage.data.relative`): as z-score and
        rank, since the other standings differ from the number by a constant of the set.
    """

    standings = LINEAR_STANDINGS

    def __init__(self, alpha: float = 1e-3, *, relative: bool | str | Sequence[str | int] = False) -> None:
        self.relative = relative
        self.alpha = alpha

    def _learn(self, sets: Sets, weights: NDArray[np.float64]) -> None:
        check_number("alpha", self.alpha, least=0)
        place, ranked = places(sets)
        known = ~np.isnan(place)
        expected = (place[known] + 1) / (ranked[known] + 1)
        self.model_ = make_pipeline(StandardScaler(), Ridge(alpha=self.alpha))
        row_weights = np.repeat(weights, sets.sizes)[known]
        self.model_.fit(features_of(sets)[known], expected, ridge__sample_weight=row_weights)

    def _score(self, sets: Sets) -> NDArray[Any]:
        return np.asarray(-self.model_.predict(features_of(sets)))
