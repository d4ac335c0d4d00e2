r"""The temperature of scores: by what to divide them so that they are utilities of the Plackett-Luce model.

A ranker that was trained by the hinge loss knows which object is better, but its scores have no scale: a softmax of
them is no probability. A temperature T, fitted to sets that were not trained on, gives them one (Guo et al., 2017).

The first place has a temperature of its own. In the field, scores often tell the winner better than the order of the
last; one temperature for all places would then make the chances of the favourites far too modest.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from entourage.data.sets import Sets
from entourage.errors import ParameterError

__all__ = ["Temperatures", "fit_temperatures"]

_LEAST, _MOST = 1e-6, 1e3  # of the spread of scores divided by the temperature
_CHUNK = 2_000_000  # numbers in a padded array


class Temperatures(NamedTuple):
    """By what to divide scores: for who comes first, and for the order of all."""

    first: float
    all: float


def fit_temperatures(sets: Sets, scores: NDArray[Any], weights: NDArray[Any] | None = None) -> Temperatures:
    r"""Return the temperatures T at which scores / T make first places, and whole rankings, most likely.

    .. math:: \min_{b = 1/T > 0} \sum_c w_c L(b s_c, \pi_c) + \log(1 + e^{b \sigma}) + \log(1 + e^{-b \sigma})

    For whole rankings, L is the negative log-likelihood of Plackett and Luce
    (:func:`entourage.losses.plackett_luce_loss`, with its treatment of ties and of objects that are not ranked), σ the
    spread of scores within sets. The last two terms are two observations more, in which the better of two objects is
    once before and once behind the other. They keep T finite where all orders are as predicted, and are soon outweighed
    by data. The function is convex, so there is one minimum. Where scores are of no use, or are worse than chance, T is
    large, and all rankings are equally likely.

    For the first place, L is the part of it: that the best object is chosen before all worse ones, on average over
    those that share the best rank. Under the Plackett-Luce model there is one temperature, and all places tell it
    better than the first alone. So that of the first place is shrunk towards that of all, on the scale of its
    logarithm, by the factor of James and Stein: 1 - 1 / D, but at least 0. D is twice the log-likelihood that first
    places lose by the temperature of all: about 1 where the model is right, large where it is wrong.

    Parameters
    ----------
    sets : with ranks as targets
    scores : of all objects, packed
    weights : how much each set counts; only ratios matter. A set of weight 0 is left out

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> utilities = rng.normal(size=(2000, 4))
    >>> ranks = (-utilities - rng.gumbel(size=(2000, 4))).argsort(1).argsort(1)
    >>> sets = Sets.from_array(np.zeros((2000, 4, 1)), ranks)
    >>> found = fit_temperatures(sets, 10 * utilities.ravel())
    >>> round(found.first, 1), round(found.all, 1)
    (9.7, 9.7)
    """
    if sets.targets is None or len(scores) != len(sets.objects):
        raise ParameterError("A temperature needs sets with ranks, and one score for each of their objects.")
    own = np.ones(len(sets)) if weights is None else np.asarray(weights, dtype=np.float64)
    own = own / own[own > 0].mean()
    centred = scores.astype(np.float64)
    sizes = sets.sizes
    centred -= np.repeat(np.add.reduceat(centred, sets.offsets[:-1]) / sizes, sizes)
    variance = (
        np.add.reduceat(np.square(centred / max(np.abs(centred).max(), 1e-300)), sets.offsets[:-1]) / sizes
    )
    counted = (own > 0) & (sizes > 1)
    spread = float(np.sqrt(np.average(variance, weights=own * counted))) if counted.any() else 0.0
    spread *= float(np.abs(centred).max())
    if spread == 0.0:  # all scores of a set are equal: any temperature will do
        return Temperatures(1.0, 1.0)
    batches = _batches(sets, centred / spread, own, np.flatnonzero(counted))
    of_all = _sharpness(lambda b: sum(batch.at(b, batch.ranked)[1] for batch in batches))
    of_first = _sharpness(lambda b: sum(batch.at(b, batch.first)[1] for batch in batches))
    here, there = (sum(batch.at(b, batch.first)[0] for batch in batches) for b in (of_first, of_all))
    kept = max(0.0, 1.0 - 1.0 / max(2.0 * (there - here), 1e-9))
    return Temperatures(spread / (of_all * (of_first / of_all) ** kept), spread / of_all)


def _sharpness(slope: Callable[[float], float]) -> float:
    """Return b where a loss of this slope, with the two observations more, is least; scores have a spread of 1."""

    def whole(log_sharpness: float) -> float:
        b = float(np.exp(log_sharpness))
        return float(np.tanh(b / 2)) + slope(b)

    low, high = np.log([_LEAST, _MOST])
    if whole(low) >= 0:
        return _LEAST
    if whole(high) <= 0:
        return _MOST
    return float(np.exp(brentq(whole, low, high, xtol=1e-9)))


@dataclass(frozen=True)
class _Batch:
    """Sets of about one size, objects from the worst to the best."""

    values: NDArray[np.float64]  # (m, n)
    ranked: NDArray[np.float64]  # (m, n): 1, or 0 for objects that are not ranked
    first: NDArray[np.float64]  # (m, n): the share of the first place, 0 behind it
    worse: NDArray[np.int64]  # (m, n): how many objects of the set are strictly worse
    weights: NDArray[np.float64]  # (n,)

    def at(self, b: float, counts: NDArray[np.float64]) -> tuple[float, float]:
        """Return the loss and its derivative by b, where the choice of an object before all worse ones counts so much.

        The derivative is the mean value among those left to choose from, less that of the chosen.
        """
        m, n = self.values.shape
        logs = np.full((m + 1, n), -np.inf)  # of the sum of exp(b s) over the worst k
        means = np.zeros((m + 1, n))  # the mean of s among them, by these weights
        for k in range(m):
            logs[k + 1], means[k + 1] = _with_one_more(logs[k], means[k], b, self.values[k])
        logs, means = (np.take_along_axis(array, self.worse, 0) for array in (logs, means))
        total, mean = _with_one_more(logs, means, b, self.values)
        parts = (total - b * self.values, mean - self.values)
        loss, slope = (
            float((np.where(counts > 0, counts * part, 0.0).sum(0) * self.weights).sum()) for part in parts
        )
        return loss, slope


def _with_one_more(
    logs: NDArray[np.float64], means: NDArray[np.float64], b: float, values: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the log of the sum and the mean with one object more."""
    total = np.logaddexp(logs, b * values)
    share = np.exp(b * values - total)
    return total, means + share * (values - means)


def _batches(
    sets: Sets, values: NDArray[np.float64], weights: NDArray[np.float64], chosen: NDArray[np.int64]
) -> list[_Batch]:
    targets: NDArray[Any] = sets.targets  # type: ignore[assignment]
    order = chosen[np.argsort(sets.sizes[chosen], kind="stable")]
    batches, begin = [], 0
    while begin < len(order):
        end = begin + 1
        while end < len(order) and (end + 1 - begin) * sets.sizes[order[end]] <= _CHUNK:
            end += 1
        some = order[begin:end]
        size = np.arange(sets.sizes[some].max())
        mask = size < sets.sizes[some][:, None]  # (n, m)
        rows = np.where(mask, sets.offsets[some][:, None] + size, 0)
        batches.append(_batch(values[rows], np.where(mask, targets[rows], np.nan), weights[some]))
        begin = end
    return batches


def _batch(values: NDArray[np.float64], ranks: NDArray[np.float64], weights: NDArray[np.float64]) -> _Batch:
    """Sort the objects of sets (n, m), whose padding has no rank."""
    ranked = ranks >= 0  # False for NaN too
    order = np.argsort(np.where(ranked, -ranks, np.inf), axis=1, kind="stable")  # the worst first
    keys = np.take_along_axis(np.where(ranked, ranks, np.inf), order, 1)
    place = np.broadcast_to(np.arange(ranks.shape[1]), ranks.shape)
    same = np.zeros(ranks.shape, dtype=bool)
    same[:, 1:] = keys[:, 1:] == keys[:, :-1]
    worse = np.maximum.accumulate(np.where(same, 0, place), axis=1)  # the start of one's group of ties
    best = (keys == keys.min(1, keepdims=True)) & np.isfinite(keys)
    return _Batch(
        values=np.ascontiguousarray(np.take_along_axis(values, order, 1).T),
        ranked=np.ascontiguousarray(np.isfinite(keys).T.astype(np.float64)),
        first=np.ascontiguousarray((best / np.maximum(best.sum(1, keepdims=True), 1)).T),
        worse=np.ascontiguousarray(worse.T),
        weights=weights,
    )
