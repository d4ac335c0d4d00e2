"""RankSVM: a linear utility that separates the better from the worse of each pair."""

from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from entourage.data.sets import Sets
from entourage.errors import check_number
from entourage.estimators.baselines.base import Baseline, features_of, ordered_pairs
from entourage.training.deadline import time_is_up
from entourage.training.file_checks import Arrays, need, take

__all__ = ["RankSVM"]

Floats: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.int64]

MOST_STEPS = 100
TOLERANCE = 1e-6  # of the gradient, in units of the first one
ROWS = 16_384  # whose part of the second derivatives is computed at a time


class RankSVM(Baseline):
    r"""A linear support vector machine on the differences of pairs (Joachims 2002), with the squared hinge loss.

    Features are standardised. The weights minimise :math:`\frac12 |w|^2 + C \sum (\max(0, 1 - w^\top (x_i - x_j)))^2`
    over the pairs in which object i is better than object j; Newton's method finds the minimum, without a matrix of
    differences. Under a time limit it ends with the weights so far.

    Parameters
    ----------
    C : float
        The weight of margin violations against the size of the weights.
    max_pairs : int
        How many pairs to learn from; where there are more, so many are drawn.
    random_state : int
        Draws the pairs.

    Attributes
    ----------
    mean_, scale_ : of each feature in the training data
    coef_ : the weight of each standardised feature
    converged_ : whether the minimum was found

    Examples
    --------
    >>> import numpy as np
    >>> from entourage.baselines import RankSVM
    >>> X = np.random.default_rng(0).normal(size=(50, 4, 2))
    >>> ranks = (-X[..., 0]).argsort(1).argsort(1)
    >>> RankSVM().fit(X, ranks).score(X, ranks) > 0.99
    True
    """

    def __init__(self, C: float = 1.0, *, max_pairs: int = 1_000_000, random_state: int = 0) -> None:
        self.C = C
        self.max_pairs = max_pairs
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_number("C", self.C, above=0)
        check_number("max_pairs", self.max_pairs, least=1, whole=True)

    def _learn(self, sets: Sets, weights: Floats) -> None:
        self._check_parameters()
        rng = np.random.default_rng(self.random_state)
        better, worse, owner = ordered_pairs(sets, at_most=self.max_pairs, rng=rng)
        features = features_of(sets)
        scaler = StandardScaler(copy=False).fit(features)
        self.mean_, self.scale_ = scaler.mean_, scaler.scale_
        features = scaler.transform(features)
        self.coef_, self.converged_ = _minimise(features, _Pairs(better, worse, self.C * weights[owner]))

    def _score(self, sets: Sets) -> NDArray[Any]:
        return np.asarray(((features_of(sets) - self.mean_) / self.scale_) @ self.coef_)

    def _kept(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        arrays = {"mean_": self.mean_, "scale_": self.scale_, "coef_": self.coef_}
        return {"converged_": bool(self.converged_)}, {k: torch.tensor(v) for k, v in arrays.items()}

    def _restore(self, fitted: Any, arrays: Arrays) -> None:
        self._check_parameters()
        shape = (self.n_features_in_ + self.n_situation_features_in_,)
        for name in ("mean_", "scale_", "coef_"):
            setattr(self, name, arrays.take(name, shape, finite=True))
        need(bool((self.scale_ > 0).all()), "scales of features must be above 0.")
        self.converged_ = take(fitted, "converged_", bool)


class _Pairs:
    """Ordered pairs of rows, each with a cost: margins, and sums over the pairs of each row."""

    def __init__(self, better: Index, worse: Index, cost: Floats) -> None:
        self.better, self.worse, self.cost = better, worse, cost
        rows, others = np.concatenate([better, worse]), np.concatenate([worse, better])
        order = np.argsort(rows, kind="stable")
        self.others = others[order]
        self.pair = np.tile(np.arange(len(better)), 2)[order]
        self.ends = np.cumsum(np.bincount(rows))

    def lacking(self, utilities: Floats) -> Floats:
        """By how much each pair's margin falls short of 1."""
        return np.maximum(0.0, 1.0 - (utilities[self.better] - utilities[self.worse]))

    def spread(self, values: Floats, n: int) -> Floats:
        """Return the sum of a value over the pairs that a row should win, less those it should lose, (n,)."""
        return np.asarray(
            np.bincount(self.better, values, n) - np.bincount(self.worse, values, n), np.float64
        )

    def curvature(self, features: Floats, active: Floats) -> Floats:
        """Return the sum of ``active (x_i - x_j) (x_i - x_j)^T`` over the pairs, (d, d)."""
        n, d = features.shape
        ends = np.concatenate([[0], self.ends, np.full(n - len(self.ends), len(self.pair))])
        values = active[self.pair]
        joined = csr_matrix((values, self.others, ends), shape=(n, n))
        degree = np.bincount(self.better, active, n) + np.bincount(self.worse, active, n)
        total = np.zeros((d, d))
        for begin in range(0, n, ROWS):
            rows = slice(begin, begin + ROWS)
            total += features[rows].T @ (degree[rows, None] * features[rows] - joined[rows] @ features)
        return total


def _minimise(features: Floats, pairs: _Pairs) -> tuple[Floats, bool]:
    """Return the weights with the least penalised squared hinge loss, and whether they are such."""
    n, d = features.shape
    w, utilities = np.zeros(d), np.zeros(n)
    lacking = pairs.lacking(utilities)
    loss = float(pairs.cost @ lacking**2)
    first = 0.0
    for step in range(MOST_STEPS):
        slope = w - 2 * features.T @ pairs.spread(pairs.cost * lacking, n)
        first = first or float(np.linalg.norm(slope))
        if float(np.linalg.norm(slope)) <= TOLERANCE * first:
            return w, True
        if step and time_is_up():
            return w, False
        bend = np.eye(d) + 2 * pairs.curvature(features, pairs.cost * (lacking > 0))
        way = -np.linalg.solve(bend, slope)
        along = features @ way
        length, fall = 1.0, float(slope @ way)
        while True:
            lacking = pairs.lacking(utilities + length * along)
            new = 0.5 * float((w + length * way) @ (w + length * way)) + float(pairs.cost @ lacking**2)
            if new <= loss + 1e-4 * length * fall:
                break
            length /= 2
            if length < 1e-8:  # rounding: there is no lower one
                return w, True
        w, utilities, loss = w + length * way, utilities + length * along, new
    return w, False
