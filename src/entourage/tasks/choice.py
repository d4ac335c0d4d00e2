"""Discrete choice: one object of a set is chosen, or, with an outside option, none."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entourage.data.ranks import ranks_from_scores
from entourage.data.sets import AnySets, Sets
from entourage.errors import DataError, ShapeError
from entourage.tasks.choice_metrics import choice_accuracy, log_likelihood
from entourage.tasks.indicators import check_indicators, sets_with_indicators
from entourage.tasks.losses import CHOICE_LOSSES, Loss, choice_loss, find_loss
from entourage.tasks.ranking_metrics import METRICS, Metric

__all__ = ["Choice"]


class Choice:
    """One object of a set is chosen: it has rank 0, the others 1.

    With ``outside`` there is an outside option: nothing may be chosen. It has utility 0.
    """

    kind = "choice"
    losses = CHOICE_LOSSES
    main, words, criterion_words = "accuracy", "accuracy", "mean log-likelihood"
    searched_by, searched_words = "log_likelihood", criterion_words
    nothing_to_learn = (
        "No set has two objects and a chosen one, so there is nothing to learn. "
        "Check that y marks the chosen objects."
    )

    def __init__(self, *, outside: bool = False) -> None:
        self.outside = outside
        self.only_differences = not outside
        self.informative_words = "sets" if outside else "sets of at least two objects"
        self.metric: Metric = partial(choice_accuracy, outside=outside)
        self.criterion: Metric = partial(log_likelihood, outside=outside)
        self.metrics = {"accuracy": self.metric, "log_likelihood": self.criterion} | METRICS

    def find_loss(self, loss: str | Loss | None) -> Loss:
        """Return the loss of this name, or the callable itself; "nll" with the outside option, where there is one."""
        found = find_loss(loss, self.losses)
        return partial(choice_loss, outside=True) if self.outside and found is choice_loss else found

    def sets_of(self, X: AnySets, y: Any = None, situation: ArrayLike | None = None) -> Sets:
        """Make sets of arrays, lists or `Sets`; y holds places of the chosen objects, or rows of 0 and 1."""
        if y is None:
            return Sets.of(X, None, situation)
        sets = Sets.of(X, None, situation)
        if not _is_flat(y, len(sets)):
            return sets_with_indicators(X, y, situation)
        places = np.asarray(y)
        if places.dtype.kind not in "biuf":
            raise DataError(
                f"y holds the place of the chosen object in each set, a whole number; got {places.dtype}. Give its "
                "position in the set, from 0 on."
            )
        if places.shape != (len(sets),):
            raise ShapeError(
                f"y needs one place for each of {len(sets)} sets, or rows of 0 and 1; got {places.shape}."
            )
        if (places != np.round(places)).any() or (places < -1).any() or (places >= sets.sizes).any():
            i = int(np.argmax((places != np.round(places)) | (places < -1) | (places >= sets.sizes)))
            raise DataError(
                f"y holds the place of the chosen object, from 0 on (or -1 for none); set {i} has "
                f"{sets.sizes[i]} objects, and its y is {places[i]}."
            )
        ranks = np.ones(len(sets.objects))
        some = places >= 0
        ranks[sets.offsets[:-1][some] + places[some].astype(np.int64)] = 0.0
        return sets.with_targets(ranks, worst=1.0)

    @staticmethod
    def in_single_precision(sets: Sets) -> Sets:
        """Return sets to train on, as they are."""
        return sets

    def check(self, sets: Sets) -> Sets:
        """Check that one object of each set was chosen."""
        targets = check_indicators(sets, "a choice")
        chosen = np.add.reduceat(targets == 0, sets.offsets[:-1])
        wrong = chosen > 1 if self.outside else chosen != 1
        if wrong.any():
            i = int(np.argmax(wrong))
            hint = (
                ""
                if self.outside or chosen[i]
                else " Where nothing may be chosen, outside=True (of DiscreteChooser and compare), or --outside on the "
                "command line."
            )
            raise DataError(
                f"Each set needs one chosen object; set {i}, counted from 0, has {chosen[i]}. For several, use "
                f"SubsetChooser, or --target-kind subset.{hint}"
            )
        return sets

    def informative(self, sets: Sets) -> NDArray[np.bool_]:
        """Which sets are informative: those with an alternative to what was chosen."""
        return np.asarray(sets.sizes > (0 if self.outside else 1))

    def decide(self, scores: NDArray[Any]) -> NDArray[np.int64]:
        """Return ranks by score. With ``outside``, the outside option takes a place of its own among them."""
        ranks = ranks_from_scores(scores)
        return ranks + (scores <= 0) if self.outside else ranks

    def places(self, sets: Sets, scores: NDArray[Any]) -> NDArray[np.int64]:
        """Return the place of the best object of each set; -1 where the outside option is better than all of them."""
        found = np.empty(len(sets), dtype=np.int64)
        for chosen, rows in sets.by_size():
            found[chosen] = scores[rows].argmax(1)
            if self.outside:
                found[chosen] = np.where(scores[rows].max(1) > 0, found[chosen], -1)
        return found

    def probabilities(self, sets: Sets, scores: NDArray[Any]) -> NDArray[np.float64]:
        """Return the softmax of packed scores, in each set."""
        powers, nothing = self._powers(sets, scores)
        total = np.add.reduceat(powers, sets.offsets[:-1]) + nothing
        return np.asarray(powers / np.repeat(total, sets.sizes))

    def probability_of_nothing(self, sets: Sets, scores: NDArray[Any]) -> NDArray[np.float64]:
        """Return the probability of the outside option for each set; 0 without ``outside``."""
        powers, nothing = self._powers(sets, scores)
        return np.asarray(nothing / (np.add.reduceat(powers, sets.offsets[:-1]) + nothing))

    def _powers(self, sets: Sets, scores: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return exp of packed scores and, for each set, of the outside option's, scaled alike to stay finite."""
        highest = np.maximum.reduceat(scores.astype(np.float64), sets.offsets[:-1])
        highest = np.maximum(highest, 0.0) if self.outside else highest
        powers = np.exp(scores - np.repeat(highest, sets.sizes))
        return powers, np.exp(-highest) if self.outside else np.zeros(len(sets))


def _is_flat(y: Any, n_sets: int) -> bool:
    """Whether y has one number a set, not one an object."""
    if hasattr(y, "ndim"):
        return bool(y.ndim == 1 and y.dtype != object)
    return len(y) == n_sets and all(np.ndim(entry) == 0 for entry in y)
