r"""The temperature of scores: by what to divide them so that they are utilities of the Plackett-Luce model.

A ranker that was trained by the hinge loss knows which object is better, but its scores have no scale: a softmax of
them is no probability. A temperature T, fitted to sets that were not trained on, gives them one (Guo et al., 2017).

The first place has a temperature of its own. In the field, scores often tell the winner better than the order of the
last; one temperature for all places would then make the chances of the favourites far too modest.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from entourage.data.sets import Sets
from entourage.errors import ParameterError

__all__ = ["fit_temperature"]

_LEAST, _MOST = 1e-6, 1e3  # of the spread of scores divided by the temperature
_FEW = 1.0  # first places: what the lower places of all sets count together for the temperature of the first place
_CHUNK = 2_000_000  # numbers in a padded array


def fit_temperature(
    sets: Sets, scores: NDArray[Any], weights: NDArray[Any] | None = None, *, first: bool = False
) -> float:
    r"""Return the temperature T at which scores / T make the rankings most likely.

    .. math:: \min_{b = 1/T > 0} \sum_c w_c L(b s_c, \pi_c) + \log(1 + e^{b \sigma}) + \log(1 + e^{-b \sigma})

    L is the negative log-likelihood of Plackett and Luce (:func:`entourage.losses.plackett_luce_loss`, with its
    treatment of ties and of objects that are not ranked), σ the spread of scores within sets. The last two terms
    are two observations more, in which the better of two objects is once before and once behind the other. They
    keep T finite where all orders are as predicted, and are soon outweighed by data. The function is convex, so
    there is one minimum. Where scores are of no use, or are worse than chance, T is large, and all rankings are
    equally likely.

    With ``first``, L is the part of the first place: that the best object is chosen before all worse ones, on average
    over those that share the best rank. The lower places of all sets together count like one first place more (as
    long as none counts more than in full): where very few sets are known, they help.

    Parameters
    ----------
    sets : with ranks as targets
    scores : of all objects, packed
    weights : how much each set counts; only ratios matter. A set of weight 0 is left out
    first : make first places most likely, not whole rankings

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> utilities = rng.normal(size=(2000, 4))
    >>> ranks = (-utilities - rng.gumbel(size=(2000, 4))).argsort(1).argsort(1)
    >>> sets = Sets.from_array(np.zeros((2000, 4, 1)), ranks)
    >>> round(fit_temperature(sets, 10 * utilities.ravel()), 1)
    9.7
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
        return 1.0
    lower = _FEW / counted.sum() if first else None
    batches = _batches(sets, centred / spread, own, np.flatnonzero(counted), lower)

    def slope(log_sharpness: float) -> float:
        """Return the derivative by b σ."""
        b = float(np.exp(log_sharpness))
        return float(np.tanh(b / 2)) + sum(batch.slope(b) for batch in batches)

    low, high = np.log([_LEAST, _MOST])
    if slope(low) >= 0:
        return spread / _LEAST
    if slope(high) <= 0:
        return spread / _MOST
    return spread / float(np.exp(brentq(slope, low, high, xtol=1e-9)))


@dataclass(frozen=True)
class _Batch:
    """Sets of about one size, objects from the worst to the best, those that are not ranked left out."""

    values: NDArray[np.float64]  # (m, n)
    counts: NDArray[np.float64]  # (m, n): how much the choice of an object before all worse ones counts
    worse: NDArray[np.int64]  # (m, n): how many objects of the set are strictly worse
    weights: NDArray[np.float64]  # (n,)

    def slope(self, b: float) -> float:
        """Return the derivative of the loss by b: the mean value among those left to choose from, less the chosen."""
        m, n = self.values.shape
        logs = np.full((m + 1, n), -np.inf)  # of the sum of exp(b s) over the worst k
        means = np.zeros((m + 1, n))  # the mean of s among them, by these weights
        for k in range(m):
            logs[k + 1], means[k + 1] = _with_one_more(logs[k], means[k], b, self.values[k])
        logs, means = (np.take_along_axis(array, self.worse, 0) for array in (logs, means))
        _, mean = _with_one_more(logs, means, b, self.values)
        steps = np.where(self.counts > 0, self.counts * (mean - self.values), 0.0)
        return float((steps.sum(0) * self.weights).sum())


def _with_one_more(
    logs: NDArray[np.float64], means: NDArray[np.float64], b: float, values: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the log of the sum and the mean with one object more."""
    total = np.logaddexp(logs, b * values)
    share = np.exp(b * values - total)
    return total, means + share * (values - means)


def _batches(
    sets: Sets,
    values: NDArray[np.float64],
    weights: NDArray[np.float64],
    chosen: NDArray[np.int64],
    lower: float | None,
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
        batches.append(_batch(values[rows], np.where(mask, targets[rows], np.nan), weights[some], lower))
        begin = end
    return batches


def _batch(
    values: NDArray[np.float64],
    ranks: NDArray[np.float64],
    weights: NDArray[np.float64],
    lower: float | None,
) -> _Batch:
    """Sort the objects of sets (n, m), whose padding has no rank.

    Each choice counts 1. With ``lower`` the best, or all that share the best rank, count 1, and the others this number.
    """
    ranked = ranks >= 0  # False for NaN too
    order = np.argsort(np.where(ranked, -ranks, np.inf), axis=1, kind="stable")  # the worst first
    keys = np.take_along_axis(ranks, order, 1)
    place = np.broadcast_to(np.arange(ranks.shape[1]), ranks.shape)
    same = np.zeros(ranks.shape, dtype=bool)
    same[:, 1:] = keys[:, 1:] == keys[:, :-1]
    worse = np.maximum.accumulate(np.where(same, 0, place), axis=1)  # the start of one's group of ties
    known = np.take_along_axis(ranked, order, 1)
    counts = known.astype(np.float64)
    if lower is not None:
        best = known & (keys == np.nanmin(np.where(known, keys, np.inf), axis=1, keepdims=True))
        others = (known & ~best).sum(1, keepdims=True)
        shared = 1.0 / np.maximum(best.sum(1, keepdims=True), 1)
        counts = np.where(best, shared, known * np.minimum(1.0, lower / np.maximum(others, 1)))
    return _Batch(
        values=np.ascontiguousarray(np.take_along_axis(values, order, 1).T),
        counts=np.ascontiguousarray(counts.T),
        worse=np.ascontiguousarray(worse.T),
        weights=weights,
    )
