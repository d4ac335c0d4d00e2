"""Linear utilities that are learnt from pairs: Newton's method on a sum of losses over their margins."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from entourage.data.relative import LINEAR_STANDINGS
from entourage.data.sets import Sets
from entourage.estimators.baselines.base import Baseline, features_of
from entourage.training.deadline import time_is_up
from entourage.training.file_checks import Arrays, need, take

__all__ = ["LinearBaseline", "Loss", "Pairs", "logistic", "minimise", "squared_hinge"]

Floats: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.int64]
Loss: TypeAlias = Callable[[Floats], tuple[Floats, Floats, Floats]]  # of margins: values, slopes, curvatures

MOST_STEPS = 100
TOLERANCE = 1e-6  # of the gradient, in units of the first one
HUGE = 1e100  # whose square overflows, or nearly so
ROWS = 16_384  # whose part of the second derivatives is computed at a time


def squared_hinge(margins: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the squares of what margins lack of 1, with their derivatives."""
    lacking = np.maximum(0.0, 1.0 - margins)
    return lacking**2, -2 * lacking, np.where(lacking > 0, 2.0, 0.0)


def logistic(margins: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the negative log-likelihood of pairs under a logistic model, with its derivatives."""
    wrong = 0.5 * (1.0 - np.tanh(0.5 * margins))
    return np.logaddexp(0.0, -margins), -wrong, wrong * (1 - wrong)


class LinearBaseline(Baseline):
    """A linear utility of standardised features: what is scored, and what a file holds."""

    mean_: Floats
    scale_: Floats
    coef_: Floats
    converged_: bool
    standings = LINEAR_STANDINGS

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise an error where a parameter of the constructor is invalid."""

    def _standardised(self, features: Floats) -> Floats:
        """Learn means and scales; return the features standardised, in place."""
        largest = np.abs(features).max(0)
        unit = np.where(largest > HUGE, largest, 1.0)
        scaler = StandardScaler(copy=False).fit(np.divide(features, unit, out=features))
        self.mean_, self.scale_ = scaler.mean_ * unit, scaler.scale_ * unit
        return np.asarray(scaler.transform(features))

    def _score(self, sets: Sets) -> NDArray[Any]:
        return np.asarray(((features_of(sets) - self.mean_) / self.scale_) @ self.coef_)

    def _kept(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        arrays = {"mean_": self.mean_, "scale_": self.scale_, "coef_": self.coef_}
        return {"converged_": bool(self.converged_)}, {k: torch.tensor(v) for k, v in arrays.items()}

    def _restore(self, fitted: Any, arrays: Arrays) -> None:
        self._check_parameters()
        shape = (self.n_columns + self.n_situation_features_in_,)
        for name in ("mean_", "scale_", "coef_"):
            setattr(self, name, arrays.take(name, shape, finite=True))
        need(bool((self.scale_ > 0).all()), "scales of features must be above 0.")
        self.converged_ = take(fitted, "converged_", bool)


class Pairs:
    """Ordered pairs of rows, each with a cost: margins, and sums over the pairs of each row."""

    def __init__(self, better: Index, worse: Index, cost: Floats) -> None:
        self.better, self.worse, self.cost = better, worse, cost
        rows, others = np.concatenate([better, worse]), np.concatenate([worse, better])
        order = np.argsort(rows, kind="stable")
        self.others = others[order]
        self.pair = np.tile(np.arange(len(better)), 2)[order]
        self.ends = np.cumsum(np.bincount(rows))

    def margins(self, utilities: Floats) -> Floats:
        """By how much the utility of each pair's better object is above that of the other."""
        return np.asarray(utilities[self.better] - utilities[self.worse])

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


def minimise(
    features: Floats, pairs: Pairs, loss: Loss, *, l2: float = 1.0, start: Floats | None = None
) -> tuple[Floats, bool]:
    """Return the weights with the least loss plus ``l2 / 2`` times their square, and whether they are such.

    Where time is up, they are those after the steps so far, at least one.
    """
    n, d = features.shape
    w = np.zeros(d) if start is None else start
    utilities = features @ w
    values, slopes, bends = loss(pairs.margins(utilities))
    total = 0.5 * l2 * float(w @ w) + float(pairs.cost @ values)
    size = float(
        np.linalg.norm(features.T @ pairs.spread(pairs.cost * loss(np.zeros(len(pairs.cost)))[1], n))
    )
    for step in range(MOST_STEPS):
        slope = l2 * w + features.T @ pairs.spread(pairs.cost * slopes, n)
        if float(np.linalg.norm(slope)) <= TOLERANCE * size:
            return w, True
        if step and time_is_up():
            return w, False
        way = -np.linalg.solve(l2 * np.eye(d) + pairs.curvature(features, pairs.cost * bends), slope)
        along = features @ way
        length, fall = 1.0, float(slope @ way)
        while True:
            there = w + length * way
            values, slopes, bends = loss(pairs.margins(utilities + length * along))
            new = 0.5 * l2 * float(there @ there) + float(pairs.cost @ values)
            if new <= total + 1e-4 * length * fall:
                break
            length /= 2
            if length < 1e-8:  # rounding: there is no lower one
                return w, True
        w, utilities, total = there, utilities + length * along, new
    return w, False
