"""Boosted trees for choices: one object of a set, or some. They need the extra ``[boost]`` to learn."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from entourage.data.sets import Sets
from entourage.errors import check_number
from entourage.estimators.base import OneChoicePredictor, SubsetPredictor
from entourage.estimators.baselines.boosting import Boosted, Gradients
from entourage.tasks import Choice, SubsetChoice
from entourage.tasks.ranking_metrics import Metric
from entourage.training.file_checks import Arrays, take

__all__ = ["BoostedLogit", "BoostedSubset"]

Floats: TypeAlias = NDArray[np.float64]

LEAST_CURVATURE = 1e-16  # as in LightGBM's own objectives: none is 0


class BoostedLogit(OneChoicePredictor, Boosted):
    r"""Discrete choice by boosted trees: their sum is the utility of a conditional logit.

    An object is chosen with probability :math:`p_i = e^{u_i} / \sum_j e^{u_j}` over its set. A tree is grown on the
    gradient :math:`p - y` and the second derivatives :math:`p (1 - p)` of the negative log-likelihood, and rounds are
    chosen by the log-likelihood of held-out sets. Every set has one chosen object: there is no outside option.

    Notes
    -----
    Parameters and attributes are those of :class:`~entourage.estimators.baselines.boosting.Boosted`.

    Examples
    --------
    >>> import numpy as np
    >>> from entourage.baselines import BoostedLogit
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4, 2))
    >>> y = (3 * np.abs(X[..., 0]) + rng.gumbel(size=(300, 4))).argmax(1)
    >>> model = BoostedLogit(100).fit(X, y)
    >>> model.predict_proba(X[:2]).sum(1).round(6).tolist(), bool(model.log_likelihood(X, y) > -1)
    ([1.0, 1.0], True)
    """

    def _criterion(self, sets: Sets) -> Metric:
        return self.task.criterion

    def _labels(self, sets: Sets) -> tuple[Floats, dict[str, Any]]:
        return _chosen(sets), {"objective": "none"}

    def _gradients(self, sets: Sets, weights: Floats) -> Gradients:
        return _of_likelihood(self.task, sets, weights)


class BoostedSubset(SubsetPredictor, Boosted):
    r"""Subset choice by boosted trees: each object is chosen with probability :math:`1 / (1 + e^{-u})`.

    Trees are grown on the log-likelihood of each object, and rounds are chosen by it on held-out sets.

    Parameters
    ----------
    threshold : float or "held-out"
        The utility above which an object is chosen; 0 is a probability of one half. "held-out" takes the one with
        the best F1 on the held-out sets, 0 where none are held out.

    Notes
    -----
    All other parameters, and the attributes, are those of
    :class:`~entourage.estimators.baselines.boosting.Boosted`.

    Examples
    --------
    >>> import numpy as np
    >>> from entourage.baselines import BoostedSubset
    >>> X = np.random.default_rng(0).normal(size=(200, 5, 2))
    >>> BoostedSubset(50).fit(X, X[..., 0] > 0.5).score(X, X[..., 0] > 0.5) > 0.9
    True
    """

    def __init__(
        self,
        n_estimators: int = 1000,
        *,
        threshold: float | str = "held-out",
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
        self.threshold = threshold

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.threshold != "held-out":
            check_number("threshold (unless it is 'held-out')", self.threshold)

    def _criterion(self, sets: Sets) -> Metric:
        return self.task.criterion

    def _base(self, sets: Sets, weights: Floats) -> float:
        share = np.average(sets.targets == 0, weights=np.repeat(weights, sets.sizes))
        share = np.clip(share, 1e-6, 1 - 1e-6)
        return float(np.log(share / (1 - share)))

    def _labels(self, sets: Sets) -> tuple[Floats, dict[str, Any]]:
        return _chosen(sets), {"objective": "none"}

    def _gradients(self, sets: Sets, weights: Floats) -> Gradients:
        return _of_likelihood(self.task, sets, weights)

    def _finish(self, sets: Sets, scores: Floats | None, weights: Floats) -> None:
        if not isinstance(self.threshold, str):
            self.threshold_ = float(self.threshold)
        elif scores is None:
            self.threshold_ = 0.0
        else:
            self.threshold_ = self.task.best_threshold(sets, scores, weights)

    def _kept(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        fitted, tensors = super()._kept()
        return fitted | {"threshold_": self.threshold_}, tensors

    def _restore(self, fitted: Any, arrays: Arrays) -> None:
        super()._restore(fitted, arrays)
        self.threshold_ = take(fitted, "threshold_", float)


def _of_likelihood(task: Choice | SubsetChoice, sets: Sets, weights: Floats) -> Gradients:
    """Return what computes the derivatives of the negative log-likelihood by the scores, softmax or sigmoid."""
    chosen = _chosen(sets)
    of_row = np.repeat(weights, sets.sizes)

    def gradients(scores: Floats) -> tuple[Floats, Floats]:
        p = task.probabilities(sets, scores)
        return (p - chosen) * of_row, np.maximum(p * (1 - p), LEAST_CURVATURE) * of_row

    return gradients


def _chosen(sets: Sets) -> Floats:
    """Return 1 for chosen objects, 0 for the others."""
    return 1.0 - np.asarray(sets.targets, dtype=np.float64)
