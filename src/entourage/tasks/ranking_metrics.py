r"""Ranking metrics: how good predictions are.

Every metric has the signature ``metric(scores, ranks, mask=None, *, per_set=False) -> float``:

scores : (n, m) array or tensor
    The predicted utilities; higher is better. Predicted ranks can be passed as ``-ranks``.
ranks : (n, m) array or tensor
    The truth, 0 = best. Equal ranks are a tie. NaN or a negative rank: not ranked, left out.
mask : (n, m) array or tensor, optional
    False in the padding.
per_set : bool
    Return an array of one value a set, NaN where the metric is not defined, instead of the mean
    over the sets where it has one (NaN if there is no such set).

*Tied truth* is left out: two objects of equal rank have no right order. *Tied scores* count as documented
with each metric: on average, or at the worst place of the tied group, never at the best one.

Some metrics grade objects by relevance instead of order. There ``worst`` is the rank that counts as
irrelevant, and relevance is ``worst - rank`` (never below 0): for grades 0...2 turned into ranks 2...0,
``worst=2``. By default it is the largest rank of each set.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from entourage.data.ranks import average_places, mean_within_ties
from entourage.errors import DataError, check_choice, check_number
from entourage.tasks.metric_arrays import Bools, Floats, as_arrays, over_sets

__all__ = [
    "LOWER_IS_BETTER",
    "METRICS",
    "Metric",
    "average_precision",
    "expected_reciprocal_rank",
    "kendall_tau",
    "ndcg",
    "ranking_accuracy",
    "ranking_loss",
    "reciprocal_rank",
    "spearman",
    "top1_accuracy",
    "zero_one_accuracy",
]

Metric: TypeAlias = Callable[..., Any]

_CHUNK = 4_000_000  # pairs compared at a time


def zero_one_accuracy(
    scores: ArrayLike, ranks: ArrayLike, mask: ArrayLike | None = None, *, per_set: bool = False
) -> Any:
    """0/1-accuracy: 1 if the whole order is right, else 0.

    All pairs of different true rank must be in order; a tie in the scores of such a pair is a mistake.

    Examples
    --------
    >>> zero_one_accuracy([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]], [[0, 1, 2], [1, 0, 2]])
    0.5
    """
    right, _tied, ordered, _ = _count_pairs(*as_arrays(scores, ranks, mask))
    return over_sets(np.where(right == ordered, 1.0, 0.0), ordered > 0, per_set)


def ranking_accuracy(
    scores: ArrayLike, ranks: ArrayLike, mask: ArrayLike | None = None, *, per_set: bool = False
) -> Any:
    """0/1-ranking accuracy: the share of the pairs of different true rank that are in order.

    A pair of tied scores counts one half.

    Examples
    --------
    >>> ranking_accuracy([[3.0, 1.0, 1.0]], [[0, 1, 2]])  # (1 + 1 + 1/2) / 3
    0.8333333333333334
    """
    right, tied, ordered, _ = _count_pairs(*as_arrays(scores, ranks, mask))
    return over_sets((right + 0.5 * tied) / np.maximum(ordered, 1), ordered > 0, per_set)


def ranking_loss(
    scores: ArrayLike, ranks: ArrayLike, mask: ArrayLike | None = None, *, per_set: bool = False
) -> Any:
    """0/1-ranking loss: the share of the pairs of different true rank that are in the wrong order.

    A pair of tied scores counts one half; ``1 - ranking_accuracy``.

    Examples
    --------
    >>> ranking_loss([[3.0, 1.0, 1.0]], [[0, 1, 2]])  # (0 + 0 + 1/2) / 3
    0.16666666666666666
    """
    right, tied, ordered, _ = _count_pairs(*as_arrays(scores, ranks, mask))
    return over_sets((ordered - right - 0.5 * tied) / np.maximum(ordered, 1), ordered > 0, per_set)


def kendall_tau(
    scores: ArrayLike, ranks: ArrayLike, mask: ArrayLike | None = None, *, per_set: bool = False
) -> Any:
    """Kendall's tau-b: pairs in order minus pairs out of order, normalised for ties on either side.

    Without ties it is twice the ranking accuracy minus 1. Constant scores give 0; a set whose true
    ranks are all tied has no value.

    Examples
    --------
    >>> kendall_tau([[3.0, 1.0, 2.0]], [[0, 1, 2]])
    0.3333333333333333
    """
    right, tied, ordered, told_apart = _count_pairs(*as_arrays(scores, ranks, mask))
    wrong = ordered - right - tied
    scale = np.sqrt(ordered * told_apart)
    return over_sets((right - wrong) / np.where(scale > 0, scale, 1.0), ordered > 0, per_set)


def spearman(
    scores: ArrayLike, ranks: ArrayLike, mask: ArrayLike | None = None, *, per_set: bool = False
) -> Any:
    """Spearman's rank correlation: Pearson's correlation of the ranks, tied ones on their average.

    Without ties this is the paper's ``1 - 6 sum (difference of ranks)^2 / (n (n^2 - 1))``. Constant scores give 0; a
    set whose true ranks are all tied has no value.

    Examples
    --------
    >>> spearman([[3.0, 1.0, 2.0]], [[0, 1, 2]])  # 1 - 6 (0 + 1 + 1) / 24
    0.5
    """
    s, r, known = as_arrays(scores, ranks, mask)
    a, b = average_places(-s, known), average_places(r, known)
    count = np.maximum(known.sum(1, keepdims=True), 1)
    middle = (count - 1) / 2
    a, b = np.where(known, a - middle, 0.0), np.where(known, b - middle, 0.0)
    scale = np.sqrt((a * a).sum(1) * (b * b).sum(1))
    return over_sets((a * b).sum(1) / np.where(scale > 0, scale, 1.0), (b != 0).any(1), per_set)


def ndcg(
    scores: ArrayLike,
    ranks: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    per_set: bool = False,
    k: int | None = None,
    worst: float | None = None,
    gain: str = "linear",
    no_relevant: float | None = None,
) -> Any:
    """Normalised discounted cumulative gain of the first ``k`` objects, all by default.

    The gain of an object, its relevance ("linear") or ``2^relevance - 1`` ("exponential"), is divided
    by ``log2(place + 1)``; the sum is divided by that of the ideal order. Tied scores share the average
    of their gains.

    Parameters
    ----------
    no_relevant : float, optional
        The value of a set without relevant objects: LETOR's tool gives 0, others 1; by default such
        sets are left out.

    Examples
    --------
    >>> ndcg([[1.0, 2.0]], [[0, 1]])  # (0 / log2 2 + 1 / log2 3) / (1 / log2 2)
    0.6309297535714575
    """
    s, r, known = as_arrays(scores, ranks, mask)
    check_choice("gain", gain, ["linear", "exponential"])
    if k is not None:
        check_number("k", k, least=1, whole=True)
    relevance = _relevance(r, known, worst)[0]
    if gain == "exponential" and relevance.max(initial=0) > 1000:
        raise DataError("gain='exponential' overflows for so many ranks; use gain='linear'.")
    gains = np.exp2(relevance) - 1 if gain == "exponential" else relevance
    discounts = 1 / np.log2(np.arange(s.shape[1]) + 2.0)
    discounts[s.shape[1] if k is None else k :] = 0.0
    falling = np.where(known, -s, np.inf)
    order = np.argsort(falling, axis=1, kind="stable")
    shared = mean_within_ties(np.take_along_axis(gains, order, 1), np.take_along_axis(falling, order, 1))
    ideal = (-np.sort(-gains, axis=1) * discounts).sum(1)
    values = (shared * discounts).sum(1) / np.where(ideal > 0, ideal, 1.0)
    defined = ideal > 0
    if no_relevant is not None:
        values = np.where(defined, values, no_relevant)
        defined = known.any(1)
    return over_sets(values, defined, per_set)


def top1_accuracy(
    scores: ArrayLike, ranks: ArrayLike, mask: ArrayLike | None = None, *, per_set: bool = False
) -> Any:
    """Whether the object with the highest score has the best rank.

    Where several tie for the highest score: the share of them that do.

    Examples
    --------
    >>> top1_accuracy([[3.0, 3.0, 1.0]], [[0, 1, 2]])
    0.5
    """
    s, r, known = as_arrays(scores, ranks, mask)
    best = _best(r, known)
    first = known & (s == np.where(known, s, -np.inf).max(1, keepdims=True, initial=-np.inf))
    values = (first & best).sum(1) / np.maximum(first.sum(1), 1)
    return over_sets(values, _orders_something(r, known), per_set)


def reciprocal_rank(
    scores: ArrayLike,
    ranks: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    per_set: bool = False,
    worst: float | None = None,
) -> Any:
    """One over the place of the first relevant object.

    Relevant are the objects of the best rank or, where ``worst`` is given, all ranked better than
    that. Of tied scores each stands on the last place of its group.

    Examples
    --------
    >>> reciprocal_rank([[1.0, 3.0, 2.0]], [[0, 1, 2]])
    0.3333333333333333
    """
    s, r, known = as_arrays(scores, ranks, mask)
    relevant, defined = _relevant(r, known, worst)
    places = np.where(relevant, _last_places(s, known), np.inf)
    first = places.min(1, initial=np.inf)
    return over_sets(1 / first, defined, per_set)


def average_precision(
    scores: ArrayLike,
    ranks: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    per_set: bool = False,
    worst: float | None = None,
) -> Any:
    """Average the precision at the places of the relevant objects.

    Relevant are the objects of the best rank or, where ``worst`` is given, all ranked better than
    that. Of tied scores each stands on the last place of its group, as in scikit-learn.

    Examples
    --------
    >>> average_precision([[4.0, 3.0, 2.0, 1.0]], [[0, 1, 0, 1]])  # (1/1 + 2/3) / 2
    0.8333333333333333
    """
    s, r, known = as_arrays(scores, ranks, mask)
    relevant, defined = _relevant(r, known, worst)
    precision = np.where(relevant, _last_places(s, relevant) / np.maximum(_last_places(s, known), 1), 0.0)
    return over_sets(precision.sum(1) / np.maximum(relevant.sum(1), 1), defined, per_set)


def expected_reciprocal_rank(
    scores: ArrayLike,
    ranks: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    per_set: bool = False,
    worst: float | None = None,
) -> Any:
    """Average one over the place at which a reader going down the list is satisfied (ERR).

    An object of relevance g satisfies with probability ``(2^g - 1) / 2^worst``; without ``worst``, the largest
    relevance of the set stands in its place. Of tied scores the less relevant object is read first.

    Examples
    --------
    >>> expected_reciprocal_rank([[2.0, 1.0]], [[0, 1]])  # 1/2 + (1/2) (0/2)
    0.5
    """
    s, r, known = as_arrays(scores, ranks, mask)
    relevance, highest = _relevance(r, known, worst)
    highest = (
        relevance.max(1, keepdims=True, initial=0.0) if worst is None else highest
    )  # ranks may begin at 1
    chance = np.where(known, np.exp2(relevance - highest) - np.exp2(-highest), 0.0)
    order = np.lexsort((relevance, np.where(known, -s, np.inf)), axis=1)
    chance = np.take_along_axis(chance, order, 1)
    still_reading = np.ones_like(chance)
    np.cumprod(1 - chance[:, :-1], axis=1, out=still_reading[:, 1:])
    values = (chance * still_reading / np.arange(1, s.shape[1] + 1)).sum(1)
    return over_sets(values, np.any(relevance > 0, axis=1), per_set)


#: Every metric, by name.
#: The metrics of which a lower value is the better one.
LOWER_IS_BETTER = ("ranking_loss",)

METRICS: dict[str, Metric] = {
    "zero_one_accuracy": zero_one_accuracy,
    "ranking_accuracy": ranking_accuracy,
    "ranking_loss": ranking_loss,
    "spearman": spearman,
    "kendall_tau": kendall_tau,
    "ndcg": ndcg,
    "ndcg@10": partial(ndcg, k=10),
    "top1_accuracy": top1_accuracy,
    "reciprocal_rank": reciprocal_rank,
    "expected_reciprocal_rank": expected_reciprocal_rank,
    "average_precision": average_precision,
}


def _count_pairs(s: Floats, r: Floats, known: Bools) -> tuple[Floats, Floats, Floats, Floats]:
    """Count the pairs of different true rank (in order, with tied scores, all) and of different score."""
    n, m = s.shape
    right, tied, ordered, apart = np.zeros((4, n))
    step = max(1, _CHUNK // max(1, m * m))
    for start in range(0, n, step):
        part = slice(start, start + step)
        a, b, both = s[part], r[part], known[part]
        for i in range(0, m, max(1, _CHUNK // max(1, m))):  # rows, so that one huge set fits too
            rows = slice(i, i + max(1, _CHUNK // m))
            pair = both[:, rows, None] & both[:, None, :]
            before = (b[:, rows, None] < b[:, None, :]) & pair
            higher = a[:, rows, None] > a[:, None, :]
            right[part] += (before & higher).sum((1, 2))
            ordered[part] += before.sum((1, 2))
            tied[part] += (before & (a[:, rows, None] == a[:, None, :])).sum((1, 2))
            apart[part] += (higher & pair).sum((1, 2))
    return right, tied, ordered, apart


def _last_places(s: Floats, among: Bools) -> Floats:
    """How many of ``among`` score at least as high: an object's place, 1 = first, the last of its ties."""
    n, m = s.shape
    keys = np.where(among, -s, np.inf)
    ordered = np.sort(keys, axis=1)
    if m * m * n <= _CHUNK:
        return np.asarray((ordered[:, None, :] <= -s[:, :, None]).sum(2), dtype=np.float64)
    return np.stack(
        [np.searchsorted(row, -own, side="right") for row, own in zip(ordered, s, strict=True)]
    ).astype(np.float64)


def _orders_something(r: Floats, known: Bools) -> Bools:
    low = np.where(known, r, np.inf).min(1, initial=np.inf)
    high = np.where(known, r, -np.inf).max(1, initial=-np.inf)
    return np.asarray(low < high)


def _best(r: Floats, known: Bools) -> Bools:
    return np.asarray(known & (r == np.where(known, r, np.inf).min(1, keepdims=True, initial=np.inf)))


def _relevant(r: Floats, known: Bools, worst: float | None) -> tuple[Bools, Bools]:
    """Which objects are relevant, and in which sets that is defined."""
    if worst is None:
        return _best(r, known), _orders_something(r, known)
    relevant = known & (r < worst)
    return relevant, np.asarray(relevant.any(1))


def _relevance(r: Floats, known: Bools, worst: float | None) -> tuple[Floats, Floats]:
    """Relevance of each object, and the highest possible, (n, 1)."""
    highest = np.where(known, r, 0.0).max(1, keepdims=True, initial=0.0)
    if worst is not None:
        highest = np.full_like(highest, worst)
    return np.where(known, np.maximum(highest - r, 0.0), 0.0), highest
