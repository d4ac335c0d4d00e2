"""LambdaMART by LightGBM: the usual context-free ranker in practice. Needs the extra ``[boost]`` to learn."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from entourage.data.sets import Sets
from entourage.errors import DataError
from entourage.estimators.baselines.base import places, ranking_criterion
from entourage.estimators.baselines.boosting import Boosted
from entourage.tasks.ranking_metrics import Metric

__all__ = ["LambdaMART"]

LARGEST_SET = 10_000  # LightGBM refuses larger ones


class LambdaMART(Boosted):
    """Gradient-boosted trees under LambdaRank (Burges 2010), stopped early.

    The grade of an object is the number of ranked objects it stands before; tied objects share the average,
    rounded down, and unranked ones take no part. Gains are linear in the grade, since ``2^grade`` overflows
    for long rankings. Rounds are chosen by 0/1-ranking accuracy on held-out sets, by nDCG where targets came from
    relevance grades.

    Notes
    -----
    Parameters and attributes are those of :class:`~entourage.estimators.baselines.boosting.Boosted`.

    Examples
    --------
    >>> from entourage.baselines import LambdaMART
    >>> from entourage.data import make_hypervolume
    >>> X, ranks = make_hypervolume(n_sets=100, random_state=0)
    >>> model = LambdaMART(50).fit(X, ranks)
    >>> model.predict(X[:2]).shape, model.n_rounds_ <= 50
    ((2, 5), True)
    """

    def _criterion(self, sets: Sets) -> Metric:
        return ranking_criterion(sets)

    def _rows(self, sets: Sets) -> NDArray[np.bool_]:
        return ~np.isnan(sets.targets)  # type: ignore[arg-type]

    def _labels(self, sets: Sets) -> tuple[NDArray[np.float64], dict[str, Any]]:
        largest = int(sets.sizes.max())
        if largest > LARGEST_SET:
            raise DataError(
                f"LightGBM takes sets of at most {LARGEST_SET:,} objects; the largest here has "
                f"{largest:,}. Learn from subsets: sets.sample_subsets({LARGEST_SET})."
            )
        place, ranked = places(sets)
        grades = np.where(np.isnan(place), 0.0, np.floor(ranked - 1 - place))
        return grades, {
            "objective": "lambdarank",
            "label_gain": list(range(int(grades.max()) + 1)),
            "lambdarank_truncation_level": largest,
        }
