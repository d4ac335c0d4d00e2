"""What a target means, what is done with scores, and how the result is judged.

In `Sets` every target is a rank: 0 = best. A choice knows two of them, 0 for what was chosen and 1 for the rest, so
that what can rank can be judged on choices, too.
"""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entourage.data.ranks import ranks_from_scores
from entourage.data.sets import AnySets, Sets
from entourage.errors import DataError, ParameterError, ShapeError, check_choice
from entourage.tasks.choice_metrics import (
    choice_accuracy,
    f1,
    hamming_accuracy,
    informedness,
    log_likelihood,
    subset_accuracy,
    subset_log_likelihood,
)
from entourage.tasks.evaluate import mean_over_sets, metric_of_sets
from entourage.tasks.losses import CHOICE_LOSSES, LOSSES, SUBSET_LOSSES
from entourage.tasks.ranking_metrics import METRICS, Metric, ranking_accuracy

__all__ = ["TASKS", "Choice", "Ranking", "SubsetChoice", "task_of"]


class Ranking:
    """Targets are ranks: 0 = best, equal = tied, NaN or -1 = not ranked."""

    kind = "rank"  # what the target of a table is, unless it is said
    losses = LOSSES
    only_differences = True  # whether a shift of all scores of a set means nothing
    metric: Metric = staticmethod(ranking_accuracy)
    criterion: Metric = staticmethod(ranking_accuracy)
    metrics = METRICS
    main, words, criterion_words = "ranking_accuracy", "0/1-ranking accuracy", "0/1-ranking accuracy"
    searched_by, searched_words = (
        "ranking_accuracy",
        words,
    )  # by which models are compared and settings searched for
    decide = staticmethod(ranks_from_scores)
    telling = "sets that rank two objects differently"  # what `informative` finds, in words
    nothing = (
        "No set ranks two objects differently, so there is nothing to learn. "
        "Check that y holds ranks within each set."
    )

    @staticmethod
    def sets_of(X: AnySets, y: Any = None, situation: ArrayLike | None = None) -> Sets:
        """Make sets of whatever came."""
        return Sets.of(X, y, situation)

    @staticmethod
    def check(sets: Sets) -> Sets:
        """Return the sets with unranked objects as NaN; say what is wrong with other targets."""
        if sets.targets is None:
            raise DataError("Ranks are needed: pass y, or Sets with targets.")
        targets = np.where(sets.targets == -1, np.nan, sets.targets)
        strange = (targets < 0) | np.isinf(targets)
        if strange.any():
            row = int(np.argmax(strange))
            i = int(np.searchsorted(sets.offsets, row, side="right")) - 1
            raise DataError(
                "Ranks must be 0 or larger (0 = best), or NaN or -1 where an object is not ranked; "
                f"set {i}, object {row - sets.offsets[i]} has {targets[row]:g}. "
                "For relevance grades, larger = better, pass grades.max() - grades."
            )
        return sets.with_targets(targets, worst=sets.worst)

    @staticmethod
    def in_single_precision(sets: Sets) -> Sets:
        """Return sets to train on: ranks finer than float32 can tell become places, since only their order counts."""
        targets: NDArray[Any] = sets.targets.copy()  # type: ignore[union-attr]
        with np.errstate(over="ignore"):
            rounded = targets.astype(np.float32)
        if not (rounded != targets)[~np.isnan(targets)].any():
            return sets
        for _, rows in sets.by_size():
            ranks = ranks_from_scores(-targets[rows], ~np.isnan(targets[rows]))
            targets[rows] = np.where(ranks < 0, np.nan, ranks)
        return sets.with_targets(targets)

    @staticmethod
    def informative(sets: Sets) -> NDArray[np.bool_]:
        """Which sets say anything: they rank two objects differently."""
        targets: NDArray[Any] = sets.targets  # type: ignore[assignment]
        starts = sets.offsets[:-1]
        low = np.minimum.reduceat(np.where(np.isnan(targets), np.inf, targets), starts)
        high = np.maximum.reduceat(np.where(np.isnan(targets), -np.inf, targets), starts)
        return np.asarray(low < high)


class Choice:
    """One object was chosen: it has rank 0, the others 1. With ``outside``, nothing may have been.

    Not choosing has utility 0.
    """

    kind = "choice"
    losses = CHOICE_LOSSES
    main, words, criterion_words = "accuracy", "accuracy", "mean log-likelihood"
    searched_by, searched_words = "log_likelihood", criterion_words
    nothing = "No set has two objects and a chosen one, so there is nothing to learn. Check that y says who was chosen."

    def __init__(self, *, outside: bool = False) -> None:
        self.outside = outside
        self.only_differences = not outside
        self.telling = "sets" if outside else "sets of at least two objects"
        self.metric: Metric = partial(choice_accuracy, outside=outside)
        self.criterion: Metric = partial(log_likelihood, outside=outside)
        self.metrics = {"accuracy": self.metric, "log_likelihood": self.criterion} | METRICS

    def sets_of(self, X: AnySets, y: Any = None, situation: ArrayLike | None = None) -> Sets:
        """Make sets of whatever came; y holds places of the chosen objects, or rows of 0 and 1."""
        if y is None:
            return Sets.of(X, None, situation)
        sets = Sets.of(X, None, situation)
        if not _is_flat(y, len(sets)):
            return _with_indicators(X, y, situation)
        places = np.asarray(y)
        if places.dtype.kind not in "biuf":
            raise DataError(
                f"y holds the place of the chosen object in each set, a whole number; got {places.dtype}. Look up "
                "where in its set each stands."
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
        """See that one object of each set was chosen."""
        targets = _check_two_places(sets, "a choice")
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
                f"One object of a set is chosen; in set {i} it is {chosen[i]}. For several there is SubsetChooser, or "
                f"--target-kind subset.{hint}"
            )
        return sets

    def informative(self, sets: Sets) -> NDArray[np.bool_]:
        """Which sets say anything: there was something else to choose."""
        return np.asarray(sets.sizes > (0 if self.outside else 1))

    def decide(self, scores: NDArray[Any]) -> NDArray[np.int64]:
        """Return ranks: who would be chosen first. With ``outside``, nothing has a place of its own among them."""
        ranks = ranks_from_scores(scores)
        return ranks + (scores <= 0) if self.outside else ranks

    def places(self, sets: Sets, scores: NDArray[Any]) -> NDArray[np.int64]:
        """Return the place of the best object of each set; -1 where all are worse than nothing."""
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
        """Return for each set how probable it is that nothing is chosen; 0 without ``outside``."""
        powers, nothing = self._powers(sets, scores)
        return np.asarray(nothing / (np.add.reduceat(powers, sets.offsets[:-1]) + nothing))

    def _powers(self, sets: Sets, scores: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return e to the power of packed scores and, for each set, of nothing's, scaled alike to stay finite."""
        highest = np.maximum.reduceat(scores.astype(np.float64), sets.offsets[:-1])
        highest = np.maximum(highest, 0.0) if self.outside else highest
        powers = np.exp(scores - np.repeat(highest, sets.sizes))
        return powers, np.exp(-highest) if self.outside else np.zeros(len(sets))


class SubsetChoice:
    """Some objects were chosen: they have rank 0, the others 1."""

    kind = "subset"
    losses = SUBSET_LOSSES
    only_differences = False
    main, words, criterion_words = "f1", "F1", "mean log-likelihood of an object"
    searched_by, searched_words = "f1", words
    criterion: Metric = staticmethod(subset_log_likelihood)
    telling = "sets"
    nothing = "There is no object, so there is nothing to learn."

    def __init__(self, *, threshold: float = 0.0) -> None:
        self.threshold = threshold
        self.metric: Metric = partial(f1, threshold=threshold)
        self.metrics = {
            "f1": self.metric,
            "subset_accuracy": partial(subset_accuracy, threshold=threshold),
            "hamming_accuracy": partial(hamming_accuracy, threshold=threshold),
            "informedness": partial(informedness, threshold=threshold),
        } | METRICS

    @staticmethod
    def sets_of(X: AnySets, y: Any = None, situation: ArrayLike | None = None) -> Sets:
        """Make sets of whatever came; y holds rows of 0 and 1."""
        return Sets.of(X, None, situation) if y is None else _with_indicators(X, y, situation)

    @staticmethod
    def in_single_precision(sets: Sets) -> Sets:
        """Return sets to train on, as they are."""
        return sets

    @staticmethod
    def check(sets: Sets) -> Sets:
        """See that targets say who was chosen."""
        _check_two_places(sets, "a choice of some")
        return sets

    @staticmethod
    def informative(sets: Sets) -> NDArray[np.bool_]:
        """Which sets say anything: all do."""
        return np.ones(len(sets), dtype=bool)

    def decide(self, scores: NDArray[Any]) -> NDArray[np.int64]:
        """Return 1 for chosen objects, 0 for the others."""
        return np.asarray(scores > self.threshold).astype(np.int64)

    @staticmethod
    def probabilities(sets: Sets, scores: NDArray[Any]) -> NDArray[np.float64]:
        """Return the sigmoid of packed scores."""
        return np.asarray(0.5 * (1.0 + np.tanh(0.5 * scores.astype(np.float64))))

    @staticmethod
    def best_threshold(sets: Sets, scores: NDArray[Any], weights: NDArray[Any] | None = None) -> float:
        """Return the threshold with the best mean F1, among quantiles of the scores, and 0."""
        values = scores.astype(np.float64)
        candidates = np.concatenate([[0.0], np.quantile(values, np.linspace(0.005, 0.995, 199))])
        means = [
            mean_over_sets(metric_of_sets(partial(f1, threshold=float(t)), sets, scores), weights)
            for t in candidates
        ]
        return float(candidates[int(np.argmax(means))])


#: The task of each kind of target that a table may have.
TASKS: dict[str, Any] = {
    "rank": Ranking(),
    "relevance": Ranking(),
    "choice": Choice(),
    "subset": SubsetChoice(),
}


def task_of(kind: str, *, outside: bool = False) -> Any:
    """Return the task of a kind of target; with ``outside``, nothing may have been chosen.

    Examples
    --------
    >>> task_of("choice", outside=True).outside
    True
    """
    task = TASKS[check_choice("kind", kind, TASKS)]
    if not outside:
        return task
    if kind != "choice":
        raise ParameterError(
            f'outside=True is about choices of one: it goes with kind="choice"; got {kind!r}.'
        )
    return Choice(outside=True)


def _is_flat(y: Any, n_sets: int) -> bool:
    """Whether y has one number a set, not one an object."""
    if hasattr(y, "ndim"):
        return bool(y.ndim == 1 and y.dtype != object)
    return len(y) == n_sets and all(np.ndim(entry) == 0 for entry in y)


def _with_indicators(X: AnySets, y: Any, situation: ArrayLike | None) -> Sets:
    sets = Sets.of(X, [np.asarray(row, dtype=np.float64) for row in y], situation)
    given: NDArray[Any] = sets.targets  # type: ignore[assignment]
    strange = ~np.isin(given, (0.0, 1.0))
    if strange.any():
        at = int(np.argmax(strange))
        i = int(np.searchsorted(sets.offsets, at, side="right")) - 1
        raise DataError(f"y holds 1 for chosen objects and 0 for the others; set {i} has {given[at]:g}.")
    return sets.with_targets(1.0 - given, worst=1.0)


def _check_two_places(sets: Sets, what: str) -> NDArray[Any]:
    if sets.targets is None:
        raise DataError(
            "Choices are needed: pass y, or Sets with targets (0 for chosen objects, 1 for the others)."
        )
    strange = ~np.isin(sets.targets, (0.0, 1.0))
    if strange.any():
        at = int(np.argmax(strange))
        i = int(np.searchsorted(sets.offsets, at, side="right")) - 1
        raise DataError(
            f"The targets of {what} are 0 for chosen objects and 1 for the others; set {i} has "
            f"{sets.targets[at]:g}. Rankings are for Ranker."
        )
    return sets.targets
