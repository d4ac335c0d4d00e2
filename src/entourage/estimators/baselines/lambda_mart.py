"""LambdaMART by LightGBM: the usual context-free ranker in practice. Needs the extra ``[boost]`` to learn."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entourage.data.sets import Sets
from entourage.errors import DataError, check_choice
from entourage.estimators.baselines.base import places, ranking_criterion
from entourage.estimators.baselines.boosting import Boosted
from entourage.tasks.ranking_metrics import Metric

__all__ = ["LambdaMART"]

LARGEST_SET = 10_000  # LightGBM refuses larger ones
MOST_GRADE = 30.0  # gains are 2 to the grade


class LambdaMART(Boosted):
    """Gradient-boosted trees under LambdaRank (Burges 2010), stopped early.

    The grade of an object is the number of ranked objects it stands before; tied objects share the average,
    rounded down, and unranked ones take no part. Gains are linear in the grade, since ``2^grade`` overflows
    for long rankings. Rounds are chosen by 0/1-ranking accuracy on held-out sets, by nDCG where targets came from
    relevance grades.

    Parameters
    ----------
    objective : {"lambdarank", "xendcg"}
        "xendcg" is the listwise cross entropy of Bruch (2021); it needs targets that came from relevance grades, and
        takes those for labels.

    Notes
    -----
    All other parameters, and the attributes, are those of :class:`~entourage.estimators.baselines.boosting.Boosted`.

    Examples
    --------
    >>> from entourage.baselines import LambdaMART
    >>> from entourage.data import make_hypervolume
    >>> X, ranks = make_hypervolume(n_sets=100, random_state=0)
    >>> model = LambdaMART(50).fit(X, ranks)
    >>> model.predict(X[:2]).shape, model.n_rounds_ <= 50
    ((2, 5), True)
    """

    def __init__(
        self,
        n_estimators: int = 1000,
        *,
        objective: str = "lambdarank",
        num_leaves: int | None = None,
        learning_rate: float = 0.05,
        min_child_samples: int = 20,
        reg_lambda: float = 0.0,
        colsample_bytree: float = 1.0,
        validation: float = 0.1,
        folds: int | None = None,
        patience: int = 50,
        relative: bool | str | Sequence[str | int] = False,
        n_jobs: int = 1,
        random_state: int = 0,
    ) -> None:
        super().__init__(
            n_estimators,
            num_leaves=num_leaves,
            learning_rate=learning_rate,
            min_child_samples=min_child_samples,
            reg_lambda=reg_lambda,
            colsample_bytree=colsample_bytree,
            validation=validation,
            folds=folds,
            patience=patience,
            relative=relative,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.objective = objective

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("objective", self.objective, ["lambdarank", "xendcg"])

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
        if self.objective == "xendcg":
            if sets.worst is None:
                raise DataError(
                    'objective="xendcg" needs targets that came from relevance grades (target_kind="relevance"); '
                    "these are ranks. Take lambdarank."
                )
            best = np.nan_to_num(sets.worst - np.asarray(sets.targets, dtype=np.float64))
            return np.floor(np.clip(best, 0, MOST_GRADE)), {"objective": "rank_xendcg"}
        place, ranked = places(sets)
        grades = np.where(np.isnan(place), 0.0, np.floor(ranked - 1 - place))
        return grades, {
            "objective": "lambdarank",
            "label_gain": list(range(int(grades.max()) + 1)),
            "lambdarank_truncation_level": largest,
        }
