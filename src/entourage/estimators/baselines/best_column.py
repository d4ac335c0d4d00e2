"""The best single column: objects sorted by one number. A model has to beat it to be worth its name."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import ndtri
from torch import Tensor

from entourage.data.sets import Sets
from entourage.errors import check_number
from entourage.estimators.base import OneChoicePredictor, SubsetPredictor
from entourage.estimators.baselines.base import Baseline, ordered_pairs, ranking_criterion
from entourage.tasks import mean_over_sets, metric_of_sets
from entourage.training.deadline import time_is_up
from entourage.training.file_checks import Arrays, need, take

__all__ = ["BestColumn", "BestColumnLogit", "BestColumnSubset"]

Floats: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.int64]

SCREENED_BY = 200_000  # pairs or objects, by which all columns are screened
FINALISTS = 20  # columns that are evaluated on all sets
KNOTS = 33  # of the monotone map of a column
AT_ONCE = 8_000_000  # numbers in a temporary array
NEWTON_STEPS = 25
L2 = 1.0  # penalty on the square of a coefficient, as if it were normal with variance 1: the maps have that, too


class _OneColumn(Baseline):
    """What the three models share: which column it is, and its name."""

    index_: int

    def _set_column(self, index: int, sets: Sets) -> None:
        self.index_ = int(index)
        names = [] if sets.encoder is None else sets.encoder.feature_names
        known = len(names) in (sets.n_features, sets.n_features + sets.n_situation_features)
        self.column_ = str(names[self.index_]) if known else f"x{self.index_}"

    def facts(self) -> dict[str, str]:
        """Say in a few words what was learnt, for ``entourage info``."""
        return {"column": self.column_, "best": "the smallest" if self._descends() else "the largest"}

    @abstractmethod
    def _descends(self) -> bool:
        """Whether the score falls where the column rises."""

    def _kept(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        return {"index_": self.index_, "column_": self.column_}, {}

    def _restore(self, fitted: Any, arrays: Arrays) -> None:
        self.index_ = take(fitted, "index_", int, least=0)
        need(self.index_ < self.n_features_in_, "'index_' is none of the columns.")
        self.column_ = take(fitted, "column_", str)


class BestColumn(_OneColumn):
    """Rank by one feature of the objects, ascending or descending: the one that ranks the training sets best.

    By 0/1-ranking accuracy; by nDCG where targets came from relevance grades. Where there are many pairs, columns are
    first screened by 200,000 of them.

    Parameters
    ----------
    random_state : int
        Draws the pairs.

    Attributes
    ----------
    column_ : the name of the column; x0, x1, ... where there was no table
    index_ : its place among the features of the objects
    ascending_ : whether the smallest number is the best
    train_score_ : the metric on the training sets

    Examples
    --------
    >>> import numpy as np
    >>> from entourage.baselines import BestColumn
    >>> X = np.random.default_rng(0).normal(size=(100, 4, 3))
    >>> ranks = X[..., 1].argsort(1).argsort(1)
    >>> model = BestColumn().fit(X, ranks)
    >>> model.column_, model.ascending_, model.train_score_
    ('x1', True, 1.0)
    """

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def _learn(self, sets: Sets, weights: Floats) -> None:
        metric = ranking_criterion(sets)
        advantage = _advantages(sets, weights, np.random.default_rng(self.random_state))
        best = (-np.inf, 0, 1.0)
        for index in np.argsort(-np.abs(advantage), kind="stable")[:FINALISTS]:
            column = sets.objects[:, index].astype(np.float64)
            for sign in (1.0, -1.0):
                found = mean_over_sets(metric_of_sets(metric, sets, sign * column), weights)
                best = max(best, (found, -int(index), sign))
            if time_is_up():
                break
        self.train_score_ = float(best[0])
        self.ascending_ = best[2] < 0
        self._set_column(-best[1], sets)

    def _descends(self) -> bool:
        return self.ascending_

    def _score(self, sets: Sets) -> NDArray[Any]:
        return sets.objects[:, self.index_].astype(np.float64) * (-1.0 if self.ascending_ else 1.0)

    def _kept(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        fitted, tensors = super()._kept()
        return fitted | {"ascending_": bool(self.ascending_), "train_score_": self.train_score_}, tensors

    def _restore(self, fitted: Any, arrays: Arrays) -> None:
        super()._restore(fitted, arrays)
        self.ascending_ = take(fitted, "ascending_", bool)
        self.train_score_ = take(fitted, "train_score_", float)


class _MappedColumn(_OneColumn):
    """A utility that is linear in a monotone map of one column."""

    _fit_all: Callable[..., tuple[Floats, Floats, Floats]]

    def _learn(self, sets: Sets, weights: Floats) -> None:
        few = _some_sets(sets, self.random_state)
        values = _in_chunks(self._fit_all, sets[few], weights[few], np.arange(sets.n_features))
        finalists = np.argsort(-values, kind="stable")[:FINALISTS]
        if len(few) < len(sets):
            values = _in_chunks(self._fit_all, sets, weights, finalists)
            finalists = finalists[np.argsort(-values, kind="stable")]
        self._set_column(int(finalists[0]), sets)
        self.knots_, self.levels_ = _map_of(sets.objects[:, self.index_].astype(np.float64))
        fitted = self._fit_all(sets, weights, self._mapped(sets)[:, None])
        self.intercept_, self.coef_ = float(fitted[1][0]), float(fitted[2][0])

    def _descends(self) -> bool:
        return self.coef_ < 0

    def _mapped(self, sets: Sets) -> Floats:
        return np.interp(sets.objects[:, self.index_].astype(np.float64), self.knots_, self.levels_)

    def _score(self, sets: Sets) -> NDArray[Any]:
        return self.intercept_ + self.coef_ * self._mapped(sets)

    def _kept(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        fitted, tensors = super()._kept()
        arrays = {"knots_": torch.tensor(self.knots_), "levels_": torch.tensor(self.levels_)}
        return fitted | {"coef_": self.coef_, "intercept_": self.intercept_}, tensors | arrays

    def _restore(self, fitted: Any, arrays: Arrays) -> None:
        super()._restore(fitted, arrays)
        self.coef_, self.intercept_ = take(fitted, "coef_", float), take(fitted, "intercept_", float)
        self.knots_ = arrays.take("knots_", None, finite=True)
        self.levels_ = arrays.take("levels_", self.knots_.shape, finite=True)
        ascend = len(self.knots_) > 0 and all((np.diff(a) > 0).all() for a in (self.knots_, self.levels_))
        need(ascend, "the map of the column doesn't ascend.")


class BestColumnLogit(OneChoicePredictor, _MappedColumn):
    """Discrete choice by one feature of the objects: the one under which the training choices are likeliest.

    The utility is a coefficient times a monotone map of the column: piecewise linear between its quantiles, to those
    of a normal distribution, and constant beyond them, so that neither skew nor outliers matter. The coefficient has
    the penalty of a standard normal prior.

    Parameters
    ----------
    random_state : int
        Draws the sets by which columns are screened, where there are many.

    Attributes
    ----------
    column_, index_ : the name of the column, and its place among the features of the objects
    coef_ : the coefficient of the mapped column
    knots_, levels_ : the map

    Examples
    --------
    >>> import numpy as np
    >>> from entourage.baselines import BestColumnLogit
    >>> rng = np.random.default_rng(0)
    >>> X = np.exp(rng.normal(size=(300, 4, 3)))
    >>> y = (np.log(X[..., 2]) + rng.gumbel(size=(300, 4))).argmax(1)
    >>> model = BestColumnLogit().fit(X, y)
    >>> model.column_, round(model.coef_, 1)
    ('x2', 1.0)
    """

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    @staticmethod
    def _fit_all(sets: Sets, weights: Floats, mapped: Floats) -> tuple[Floats, Floats, Floats]:
        return _logits(sets, weights, mapped)


class BestColumnSubset(SubsetPredictor, _MappedColumn):
    """Subset choice by one feature of the objects, as :class:`BestColumnLogit`, with a sigmoid and an intercept.

    Parameters
    ----------
    threshold : float or "training"
        The utility above which an object is chosen; 0 is a probability of one half. "training" takes the one with the
        best F1 on the training sets.
    random_state : int
        Draws the sets by which columns are screened, where there are many.

    Examples
    --------
    >>> import numpy as np
    >>> from entourage.baselines import BestColumnSubset
    >>> X = np.random.default_rng(0).normal(size=(200, 5, 3))
    >>> model = BestColumnSubset().fit(X, X[..., 0] > 1)
    >>> model.column_, model.score(X, X[..., 0] > 1) > 0.9
    ('x0', True)
    """

    def __init__(self, threshold: float | str = "training", *, random_state: int = 0) -> None:
        self.threshold = threshold
        self.random_state = random_state

    def _check_parameters(self) -> None:
        if self.threshold != "training":
            check_number("threshold (unless it is 'training')", self.threshold)

    def _learn(self, sets: Sets, weights: Floats) -> None:
        self._check_parameters()
        super()._learn(sets, weights)
        if isinstance(self.threshold, str):
            self.threshold_ = self.task.best_threshold(sets, self._score(sets), weights)
        else:
            self.threshold_ = float(self.threshold)

    @staticmethod
    def _fit_all(sets: Sets, weights: Floats, mapped: Floats) -> tuple[Floats, Floats, Floats]:
        return _logistic(sets, weights, mapped)

    def _kept(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        fitted, tensors = super()._kept()
        return fitted | {"threshold_": self.threshold_}, tensors

    def _restore(self, fitted: Any, arrays: Arrays) -> None:
        self._check_parameters()
        super()._restore(fitted, arrays)
        self.threshold_ = take(fitted, "threshold_", float)


def _advantages(sets: Sets, weights: Floats, rng: np.random.Generator) -> Floats:
    """How much more often the better object of a pair has more of each column than less, over sets, (d,)."""
    better, worse, owner = ordered_pairs(sets, at_most=SCREENED_BY, rng=rng)
    counts = np.bincount(owner, minlength=len(sets))
    cost = (weights / np.maximum(counts, 1))[owner]
    found = np.empty(sets.n_features)
    for index in range(sets.n_features):
        column = sets.objects[:, index]
        found[index] = cost @ np.sign(
            column[better] / 2 - column[worse] / 2
        )  # halves: no difference overflows
    return found


def _some_sets(sets: Sets, seed: int) -> Index:
    """Return sets of about as many objects as columns are screened by; all, where there are no more."""
    if len(sets.objects) <= SCREENED_BY // 10:
        return np.arange(len(sets))
    order = np.random.default_rng(seed).permutation(len(sets))
    count = int(np.searchsorted(np.cumsum(sets.sizes[order]), SCREENED_BY // 10)) + 1
    return np.sort(order[:count])


def _map_of(column: Floats) -> tuple[Floats, Floats]:
    """Return knots of a monotone map of a column, and their levels: about standard normal where it is continuous."""
    values, counts = np.unique(column, return_counts=True)
    middle = (np.cumsum(counts) - counts / 2) / len(column)  # the share of what is smaller
    if len(values) > KNOTS:
        places = np.searchsorted(middle, np.linspace(0.5 / KNOTS, 1 - 0.5 / KNOTS, KNOTS))
        places = np.unique(np.minimum(places, len(values) - 1))
        values, middle = values[places], middle[places]
    return values, ndtri(middle)


def _in_chunks(fit: Any, sets: Sets, weights: Floats, columns: Index) -> Floats:
    """Return the penalised log-likelihood of each column; minus infinity where time is too short."""
    step = max(1, AT_ONCE // len(sets.objects))
    values = np.full(len(columns), -np.inf)
    for begin in range(0, len(columns), step):
        some = columns[begin : begin + step]
        mapped = np.empty((len(sets.objects), len(some)))
        for k, index in enumerate(some):
            column = sets.objects[:, index].astype(np.float64)
            mapped[:, k] = np.interp(column, *_map_of(column))
        values[begin : begin + step] = fit(sets, weights, mapped)[0]
        if time_is_up():
            break
    return values


def _logits(sets: Sets, weights: Floats, mapped: Floats) -> tuple[Floats, Floats, Floats]:
    """Fit a conditional logit to each column of (N, d) by itself: penalised log-likelihoods, zeros, coefficients."""
    starts, owner = sets.offsets[:-1], np.repeat(np.arange(len(sets)), sets.sizes)
    chosen = np.flatnonzero(sets.targets == 0)
    observed = mapped[chosen]
    coef = np.zeros(mapped.shape[1])
    value = np.full(len(coef), -np.inf)
    step = np.zeros(len(coef))
    for _ in range(NEWTON_STEPS):
        while True:  # halve the step of those columns whose likelihood it would lower
            utilities = mapped * (coef + step)
            highest = np.maximum.reduceat(utilities, starts, axis=0)
            powers = np.exp(utilities - highest[owner])
            total = np.add.reduceat(powers, starts, axis=0)
            log_p = utilities[chosen] - highest - np.log(total)
            new = weights @ log_p - 0.5 * L2 * (coef + step) ** 2
            worse = new < value - 1e-9 * np.abs(value)
            if not worse.any() or np.abs(step[worse]).max() < 1e-9:
                break
            step = np.where(worse, step / 2, step)
        coef, value = coef + step, new
        mean = np.add.reduceat(powers * mapped, starts, axis=0) / total
        square = np.add.reduceat(powers * mapped**2, starts, axis=0) / total
        slope = weights @ (observed - mean) - L2 * coef
        step = slope / (weights @ np.maximum(square - mean**2, 0.0) + L2)
        if np.abs(step).max() < 1e-8:
            break
    return value, np.zeros(len(coef)), coef


def _logistic(sets: Sets, weights: Floats, mapped: Floats) -> tuple[Floats, Floats, Floats]:
    """Fit a logistic regression to each column of (N, d): penalised log-likelihoods, intercepts, coefficients."""
    of_row = np.repeat(weights, sets.sizes)
    y = 1.0 - np.asarray(sets.targets, dtype=np.float64)
    theta = np.zeros((2, mapped.shape[1]))  # intercepts, coefficients
    value = np.full(mapped.shape[1], -np.inf)
    step = np.zeros_like(theta)
    for _ in range(NEWTON_STEPS):
        while True:
            a, b = theta + step
            utilities = a + mapped * b
            new = of_row @ (y[:, None] * utilities - np.logaddexp(0.0, utilities))
            new -= 0.5 * L2 * b**2 + 0.5e-6 * a**2
            worse = new < value - 1e-9 * np.abs(value)
            if not worse.any() or np.abs(step[:, worse]).max() < 1e-9:
                break
            step = np.where(worse, step / 2, step)
        theta, value = theta + step, new
        p = 0.5 * (1.0 + np.tanh(0.5 * utilities))
        off = of_row[:, None] * (y[:, None] - p)
        bend = of_row[:, None] * p * (1 - p)
        slope = np.stack([off.sum(0) - 1e-6 * a, (off * mapped).sum(0) - L2 * b])
        aa, ab, bb = bend.sum(0) + 1e-6, (bend * mapped).sum(0), (bend * mapped**2).sum(0) + L2
        det = aa * bb - ab**2
        step = np.stack([bb * slope[0] - ab * slope[1], aa * slope[1] - ab * slope[0]]) / det
        if np.abs(step).max() < 1e-8:
            break
    return value, theta[0], theta[1]
