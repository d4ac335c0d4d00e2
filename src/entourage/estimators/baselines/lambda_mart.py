"""LambdaMART by LightGBM: the usual context-free ranker in practice. Needs the extra ``[boost]``."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from entourage.data.sets import Sets
from entourage.errors import DataError, UserError
from entourage.estimators.baselines.base import Baseline, features_of, places

__all__ = ["LambdaMART"]

LARGEST_SET = 10_000  # LightGBM refuses larger ones


class LambdaMART(Baseline):
    """Gradient-boosted trees under LambdaRank.

    The grade of an object is the number of ranked objects it stands before; tied objects share the average,
    rounded down, and unranked ones take no part. Gains are linear in the grade, since ``2^grade`` overflows
    for long rankings.

    Parameters
    ----------
    n_estimators, num_leaves, learning_rate, min_child_samples, reg_lambda : as in LightGBM
    n_jobs : int
        Threads.
    random_state : int
    """

    def __init__(
        self,
        n_estimators: int = 300,
        *,
        num_leaves: int = 31,
        learning_rate: float = 0.1,
        min_child_samples: int = 20,
        reg_lambda: float = 0.0,
        n_jobs: int = 1,
        random_state: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.num_leaves = num_leaves
        self.learning_rate = learning_rate
        self.min_child_samples = min_child_samples
        self.reg_lambda = reg_lambda
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _learn(self, sets: Sets, weights: NDArray[np.float64]) -> None:
        try:
            from lightgbm import LGBMRanker
        except ImportError:
            raise UserError("LambdaMART needs LightGBM: run pip install 'entourage[boost]'.") from None
        if sets.sizes.max() > LARGEST_SET:
            raise DataError(
                f"LightGBM takes sets of at most {LARGEST_SET:,} objects; the largest here has "
                f"{sets.sizes.max():,}. Learn from subsets: sets.sample_subsets({LARGEST_SET})."
            )
        place, ranked = places(sets)
        known = ~np.isnan(place)
        grades = np.floor((ranked - 1 - place)[known]).astype(np.int64)
        groups = np.add.reduceat(known, sets.offsets[:-1])
        self.model_ = LGBMRanker(
            n_estimators=self.n_estimators,
            num_leaves=self.num_leaves,
            learning_rate=self.learning_rate,
            min_child_samples=self.min_child_samples,
            reg_lambda=self.reg_lambda,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
            label_gain=list(range(int(grades.max()) + 1)),
            lambdarank_truncation_level=int(sets.sizes.max()),
            deterministic=True,
            force_row_wise=True,
            verbose=-1,
        )
        row_weights = np.repeat(weights, sets.sizes)[known]
        self.model_.fit(features_of(sets)[known], grades, group=groups[groups > 0], sample_weight=row_weights)

    def _packed_scores(self, sets: Sets) -> NDArray[Any]:
        return np.asarray(self.model_.booster_.predict(features_of(sets), num_threads=self.n_jobs))
