"""Resampling of whole sets: folds, bootstrap confidence intervals, and the sign-flip test of paired differences."""

import math
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entourage.data.sets import Seed
from entourage.errors import DataError, check_choice, check_number

__all__ = [
    "bootstrap_interval",
    "fold_indices",
    "forward_folds",
    "labels_of",
    "sign_flip_p_value",
    "widening_of",
]

Floats: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.int64]

ENUMERATED = 14  # with at most so many units, all 2^14 sign flips are enumerated
_CHUNK = 4_000_000  # numbers in a temporary array, so that memory stays bounded


def fold_indices(
    n_sets: int, folds: int, *, groups: ArrayLike | None = None, random_state: int = 0
) -> list[tuple[Index, Index]]:
    """Split sets into folds: for each, the training sets and the held-out ones.

    Sets of one group (a user, a season) stay in one fold.

    Examples
    --------
    >>> [(train.tolist(), held_out.tolist()) for train, held_out in fold_indices(4, 2)]
    [([1, 3], [0, 2]), ([0, 2], [1, 3])]
    """
    check_number("folds", folds, least=2, whole=True)
    labels = np.arange(n_sets) if groups is None else labels_of(groups, n_sets)
    kinds = int(labels.max()) + 1
    if kinds < folds:
        what = "sets" if groups is None else "groups of sets"
        raise DataError(f"{folds} folds need at least {folds} {what}; there are {kinds}.")
    order = np.random.default_rng([random_state, folds]).permutation(kinds)
    fold_of = np.empty(kinds, dtype=np.int64)
    fold_of[order] = np.arange(kinds) % folds
    mine = fold_of[labels]
    return [(np.flatnonzero(mine != fold), np.flatnonzero(mine == fold)) for fold in range(folds)]


def forward_folds(times: ArrayLike, folds: int) -> list[tuple[Index, Index]]:
    """Split sets into folds in which the held-out sets come after all training sets.

    Times are cut into ``folds`` + 1 stretches of about as many sets. Each fold holds out one, from the second on, and
    trains on all that come before. Sets of one time stay together.

    Examples
    --------
    >>> [(train.tolist(), held_out.tolist()) for train, held_out in forward_folds([3, 1, 1, 2], 2)]
    [([1, 2], [3]), ([1, 2, 3], [0])]
    """
    check_number("folds", folds, least=1, whole=True)
    order, counts = np.unique(np.asarray(times), return_inverse=True, return_counts=True)[1:]
    if len(counts) < folds + 1:
        raise DataError(
            f"{folds} folds forward in time need sets of at least {folds + 1} times; there are {len(counts)}."
        )
    ends = np.cumsum(counts)
    starts: list[int] = []  # the first time of each stretch but the first one, which is 0
    for fold in range(1, folds + 1):
        nearest = int(np.argmin(np.abs(ends - fold * ends[-1] / (folds + 1)))) + 1
        starts.append(min(max(nearest, 1 + (starts[-1] if starts else 0)), len(counts) - folds - 1 + fold))
    stretch = np.searchsorted(starts, np.arange(len(counts)), side="right")
    mine = stretch[order]
    return [(np.flatnonzero(mine < fold), np.flatnonzero(mine == fold)) for fold in range(1, folds + 1)]


def bootstrap_interval(
    values: ArrayLike,
    clusters: ArrayLike | None = None,
    *,
    weights: ArrayLike | None = None,
    level: float = 0.05,
    resamples: int = 2000,
    random_state: Seed = 0,
) -> tuple[float, float]:
    r"""Return the bootstrap confidence interval of a mean, with confidence ``1 - level``.

    Values are resampled with replacement, whole clusters at a time where those are given. The interval
    is BCa (bias-corrected and accelerated; Efron, 1987) rather than the plain percentiles, since per-set
    values of a metric are bounded and often skewed, near 0 or 1 most of all: with
    :math:`z_0` from the share of resampled means below the mean and :math:`a` from the skewness of the
    jackknife, its ends are the quantiles

    .. math:: \Phi\Bigl(z_0 + \frac{z_0 + z}{1 - a (z_0 + z)}\Bigr),
              \qquad z = \Phi^{-1}(\mathrm{level}/2),\ \Phi^{-1}(1 - \mathrm{level}/2).

    Parameters
    ----------
    values : one a set; NaN is left out
    clusters : one label a set, optional
    weights : one a set, optional: the interval is of the weighted mean; values of weight 0 are left out
    level : significance level α
    random_state : seed or Generator

    Notes
    -----
    As any bootstrap of a mean it is too narrow where units are few: by about a fifth with ten, by more
    than a third with five.

    Examples
    --------
    >>> low, high = bootstrap_interval([0.2, 0.4, 0.5, 0.7, 0.9, 0.9])
    >>> 0.2 < low < 0.6 < high < 0.9
    True
    """
    from scipy.special import ndtr, ndtri

    check_number("level", level, above=0, below=1)
    check_number("resamples", resamples, least=1, whole=True)
    sums, sizes = _units(values, clusters, weights)
    count = len(sums)
    if count < 2:
        raise DataError(
            f"An interval needs at least 2 {'values' if clusters is None else 'clusters'}, to measure "
            f"their spread; there is {count}. Give more data."
        )
    mean = sums.sum() / sizes.sum()
    others = (sums.sum() - sums) / (sizes.sum() - sizes)  # the mean without each unit
    influence = others.mean() - others
    squares = np.square(influence).sum()
    if squares <= (1e-12 * np.abs(sums).max()) ** 2:  # all equal, up to rounding
        return float(mean), float(mean)
    acceleration = (influence**3).sum() / (6 * squares**1.5)
    rng = np.random.default_rng(random_state)
    means = np.concatenate(
        [
            sums[drawn].sum(1) / sizes[drawn].sum(1)
            for drawn in (rng.integers(0, count, (rows, count)) for rows in _chunks(resamples, count))
        ]
    )
    near = np.isclose(means, mean, rtol=0, atol=1e-12 * np.abs(means).max())
    below = ((means < mean) & ~near).mean() + near.mean() / 2  # a tie counts half, as in a median
    bias = ndtri(np.clip(below, 0.5 / resamples, 1 - 0.5 / resamples))
    shifted = bias + ndtri([level / 2, 1 - level / 2])
    ends = ndtr(bias + shifted / (1 - np.minimum(acceleration * shifted, 0.99)))
    low, high = np.quantile(means, ends)
    return float(low), float(high)


def widening_of(folds: int) -> float:
    r"""Return the factor by which the standard error of a mean over ``folds`` exceeds that of independent sets.

    :math:`\sqrt{1 + n_\mathrm{test} / n_\mathrm{train} \cdot k} = \sqrt{1 + k / (k - 1)}` (Nadeau and Bengio, 2003).

    Examples
    --------
    >>> widening_of(5)
    1.5
    """
    return math.sqrt(1 + folds / (folds - 1))


def sign_flip_p_value(
    differences: ArrayLike,
    clusters: ArrayLike | None = None,
    *,
    alternative: str = "greater",
    widening: float = 1.0,
    resamples: int = 2000,
    random_state: Seed = 0,
) -> float:
    """Return the p-value of the paired permutation test of a mean difference.

    Under the null hypothesis each difference could as well have the other sign: how often is the sum,
    with signs assigned at random, at least as large as observed? Where clusters are given, their sums are
    flipped. At most 14 units are enumerated, and p is exact; otherwise it is ``(b + 1) / (resamples +
    1)`` for ``b`` random flips that reach the sum, which keeps the test valid (Phipson and Smyth, 2010).

    Exact where differences are symmetric about 0 under the hypothesis; for a mean of 0 alone, right in
    the limit of many units.

    Parameters
    ----------
    differences : one a set; NaN is left out
    clusters : one label a set, optional
    alternative : {"greater", "two-sided"}
    widening : a factor on the null distribution, for units that are not quite independent; see
        :func:`widening_of`
    random_state : seed or Generator

    Examples
    --------
    >>> sign_flip_p_value([1.0, 2.0, 3.0])  # of 8 flips only the one without a minus reaches 6
    0.125
    >>> sign_flip_p_value([1.0, 2.0, 3.0], alternative="two-sided")
    0.25
    """
    check_choice("alternative", alternative, ["greater", "two-sided"])
    check_number("resamples", resamples, least=1, whole=True)
    sums, _ = _units(differences, clusters)
    count = len(sums)
    if count == 0:
        raise DataError("A test needs at least one difference; there is none. Give more data.")
    two_sided = alternative == "two-sided"
    observed = abs(sums.sum()) if two_sided else sums.sum()
    observed -= 1e-9 * np.abs(sums).sum()  # sums in another order round otherwise: equal is reached

    def reached(signs: NDArray[Any]) -> int:
        totals = widening * ((2.0 * signs - 1.0) @ sums)
        return int(((np.abs(totals) if two_sided else totals) >= observed).sum())

    if count <= ENUMERATED:
        return float(reached((np.arange(2**count)[:, None] >> np.arange(count)) & 1) / 2**count)
    rng = np.random.default_rng(random_state)
    hits = sum(reached(rng.integers(0, 2, (rows, count))) for rows in _chunks(resamples, count))
    return float((hits + 1) / (resamples + 1))


def _units(
    values: ArrayLike, clusters: ArrayLike | None, weights: ArrayLike | None = None
) -> tuple[Floats, Floats]:
    """Return the sum and the number of defined values of each unit: a cluster, or a value by itself.

    With weights: the weighted sum, and the sum of the weights.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise DataError(f"One value a set is needed, an array of one axis; got shape {array.shape}.")
    shares = np.ones(len(array)) if weights is None else np.asarray(weights, dtype=np.float64)
    if shares.shape != array.shape:
        raise DataError(f"weights needs one a value, shape {array.shape}; got {shares.shape}.")
    defined = ~np.isnan(array) & (shares > 0)
    array, shares = array[defined], shares[defined]
    if clusters is None:
        return array * shares, shares
    labels = labels_of(clusters, len(defined))[defined]
    labels = np.unique(labels, return_inverse=True)[1]  # a cluster without a defined value is no unit
    sums: Floats = np.bincount(labels, weights=array * shares).astype(np.float64)
    return sums, np.bincount(labels, weights=shares).astype(np.float64)


def labels_of(groups: ArrayLike, n_sets: int) -> Index:
    """Return a number for the group of each set."""
    labels = np.asarray(groups)
    if labels.shape != (n_sets,):
        raise DataError(f"groups needs one label a set, shape {(n_sets,)}; got {labels.shape}.")
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def _chunks(resamples: int, count: int) -> Iterator[int]:
    step = max(1, _CHUNK // count)
    return (min(step, resamples - start) for start in range(0, resamples, step))
