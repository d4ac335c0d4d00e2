"""Metrics of choices, with the signature of :mod:`entourage.metrics`; chosen objects have rank 0."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from entourage.tasks.metric_arrays import Bools, Floats, as_arrays, over_sets

__all__ = [
    "choice_accuracy",
    "f1",
    "hamming_accuracy",
    "informedness",
    "log_likelihood",
    "subset_accuracy",
    "subset_log_likelihood",
]


def choice_accuracy(
    scores: ArrayLike,
    ranks: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    outside: bool = False,
    per_set: bool = False,
) -> Any:
    """How often the chosen object (rank 0) has the highest score; a tie counts its share.

    With ``outside`` there is an outside option, whose score is 0. Without it, sets in which nothing was chosen have
    no value.
    """
    s, r, known = as_arrays(scores, ranks, mask)
    s, chosen, known = _alternatives(s, r, known, outside)
    top = known & (s == np.where(known, s, -np.inf).max(1, keepdims=True, initial=-np.inf))
    values = (top & chosen).sum(1) / np.maximum(top.sum(1), 1)
    return over_sets(np.asarray(values, dtype=np.float64), np.asarray(chosen.any(1)), per_set)


def log_likelihood(
    scores: ArrayLike,
    ranks: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    outside: bool = False,
    per_set: bool = False,
) -> Any:
    """Log-probability of the chosen object (rank 0) under a softmax of the scores; see `choice_accuracy`."""
    s, r, known = as_arrays(scores, ranks, mask)
    s, chosen, known = _alternatives(s.astype(np.float64), r, known, outside)
    highest = np.where(known, s, -np.inf).max(1, keepdims=True, initial=-np.inf)
    shifted = s - np.where(
        np.isfinite(highest), highest, 0.0
    )  # before anything is added: log 2 is lost beside 1e30
    total = np.where(known, np.exp(np.minimum(shifted, 0.0)), 0.0).sum(1)
    values = np.where(chosen, shifted - np.log(np.maximum(total, np.finfo(float).tiny))[:, None], 0.0).sum(1)
    return over_sets(np.asarray(values, dtype=np.float64), np.asarray(chosen.any(1)), per_set)


def subset_log_likelihood(
    scores: ArrayLike, ranks: ArrayLike, mask: ArrayLike | None = None, *, per_set: bool = False
) -> Any:
    """Average log-probability of choosing each object (rank 0) or not, by a sigmoid of its score."""
    s, r, known = as_arrays(scores, ranks, mask)
    terms = -np.logaddexp(0.0, np.where(r == 0, -s, s).astype(np.float64))
    values = np.where(known, terms, 0.0).sum(1) / np.maximum(known.sum(1), 1)
    return over_sets(np.asarray(values, dtype=np.float64), np.asarray(known.any(1)), per_set)


def f1(
    scores: ArrayLike,
    ranks: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    threshold: float = 0.0,
    per_set: bool = False,
) -> Any:
    """F1 of choosing the objects that score above the threshold; 1 where nothing is chosen, and nothing was."""
    right, chosen, known = _chosen_and_true(scores, ranks, mask, threshold)
    hits, size = (right & chosen).sum(1), right.sum(1) + chosen.sum(1)
    values = np.where(size > 0, 2 * hits / np.maximum(size, 1), 1.0)
    return over_sets(np.asarray(values, dtype=np.float64), np.asarray(known.any(1)), per_set)


def subset_accuracy(
    scores: ArrayLike,
    ranks: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    threshold: float = 0.0,
    per_set: bool = False,
) -> Any:
    """1 where exactly the right objects score above the threshold, else 0."""
    right, chosen, known = _chosen_and_true(scores, ranks, mask, threshold)
    return over_sets(
        np.asarray((right == chosen).all(1), dtype=np.float64), np.asarray(known.any(1)), per_set
    )


def hamming_accuracy(
    scores: ArrayLike,
    ranks: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    threshold: float = 0.0,
    per_set: bool = False,
) -> Any:
    """Share of the objects that are correctly chosen or correctly left out: 1 - Hamming loss."""
    right, chosen, known = _chosen_and_true(scores, ranks, mask, threshold)
    values = ((right == chosen) & known).sum(1) / np.maximum(known.sum(1), 1)
    return over_sets(np.asarray(values, dtype=np.float64), np.asarray(known.any(1)), per_set)


def informedness(
    scores: ArrayLike,
    ranks: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    threshold: float = 0.0,
    per_set: bool = False,
) -> Any:
    """True-positive rate less false-positive rate (Youden's J): 0 is guessing.

    A set in which all objects were chosen, or none, has no value.
    """
    right, chosen, known = _chosen_and_true(scores, ranks, mask, threshold)
    wrong = known & ~right
    both = right.any(1) & wrong.any(1)
    values = (right & chosen).sum(1) / np.maximum(right.sum(1), 1) - (wrong & chosen).sum(1) / np.maximum(
        wrong.sum(1), 1
    )
    return over_sets(np.asarray(values, dtype=np.float64), np.asarray(both), per_set)


def _alternatives(s: Floats, r: Floats, known: Bools, outside: bool) -> tuple[Floats, Bools, Bools]:
    """Return scores, chosen objects and mask, with the outside option as one more alternative where there is one."""
    chosen = known & (r == 0)
    if not outside:
        return s, chosen, known
    none = ~chosen.any(1, keepdims=True)
    return (
        np.concatenate([s, np.zeros(none.shape)], axis=1),
        np.concatenate([chosen, none], axis=1),
        np.concatenate([known, np.ones_like(none)], axis=1),
    )


def _chosen_and_true(
    scores: ArrayLike, ranks: ArrayLike, mask: ArrayLike | None, threshold: float
) -> tuple[Bools, Bools, Bools]:
    s, r, known = as_arrays(scores, ranks, mask)
    return known & (r == 0), known & (s > threshold), known
