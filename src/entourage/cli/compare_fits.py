"""The models that are fitted for the page of a comparison, and what they say of the table."""

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from entourage.cli.options import TrainingTable
from entourage.data.sets import Sets
from entourage.effects import Importance, importance
from entourage.effects.influence import influential_objects
from entourage.estimators import NetEstimator
from entourage.estimators.blend import sets_for
from entourage.estimators.calibration import Calibration
from entourage.selection import Comparison, fit_best_held_out, refit_chosen
from entourage.selection.tiers import ANY_CONTEXT
from entourage.tasks import Choice

__all__ = ["PageFits", "Reliability", "fit_for_page", "influence_words"]

Floats: TypeAlias = NDArray[np.float64]

MOST_SETS = 2000  # by which importance and reliability are measured
LEAST_SETS = 20  # for reliability


@dataclass(frozen=True)
class Reliability:
    """Probabilities of objects, and whether they came true."""

    probabilities: Floats
    outcomes: NDArray[np.bool_]
    outcome: str  # "chosen" or "first"
    words: str  # of which sets


@dataclass(frozen=True)
class PageFits:
    """What the page shows of fitted models.

    Attributes
    ----------
    models : the chosen model of each tier, fitted to the whole table
    nets : those of them that are nets, by name
    influenced, influences : the chosen model with context, and the objects of the table by their influence on it
    best : the candidate with the best mean, as fitted in the first outer fold
    importance, reliability : of that model on its held-out sets
    """

    models: dict[str, Any]
    nets: dict[str, Any]
    influenced: str
    influences: list[dict[str, Any]]
    best: str
    importance: Importance | None = None
    reliability: Reliability | None = None

    def with_context(self, comparison: Comparison) -> list[tuple[str, Any]]:
        """Return the models that see context, with their names: the chosen one first, then nets."""
        kinds = [comparison.kinds[comparison.most_chosen(ANY_CONTEXT)], "context", "relative"]
        return [
            (comparison.most_chosen(kind), self.models[kind])
            for kind in dict.fromkeys(kinds)
            if kind in self.models
        ]

    def without_context(self, comparison: Comparison) -> tuple[str, Any]:
        """Return the chosen model that scores each object alone, with its name."""
        return comparison.most_chosen("context-free"), self.models["context-free"]


def influence_words(entry: dict[str, Any]) -> str:
    """Say what the removal of an influential object does."""
    return f"Without the selected object, {entry['reversal_rate']:.1%} of the preferences between the others reverse."


def fit_for_page(comparison: Comparison, training: TrainingTable, *, random_state: int = 0) -> PageFits:
    """Fit the chosen models to the whole table, and the best one once more to its first outer fold."""
    sets = training.packed.sets
    refitted = refit_chosen(comparison, sets)
    chosen = {kind: comparison.most_chosen(kind) for kind in refitted}
    wanted = comparison.kinds[comparison.most_chosen(ANY_CONTEXT)]
    model: Any = refitted[wanted]
    best, fitted, held_out = fit_best_held_out(comparison, sets)
    which = np.sort(np.random.default_rng(random_state).permutation(held_out)[:MOST_SETS])
    some = _seen(fitted, sets)[which]
    task: Any = fitted.task
    known = (
        comparison.metric if comparison.metric in task.metrics else None
    )  # a ranker of choices has its own
    return PageFits(
        models=refitted,
        nets={chosen[kind]: one for kind, one in refitted.items() if isinstance(one, NetEstimator)},
        influenced=chosen[wanted],
        influences=influential_objects(model, replace(training.packed, sets=_seen(model, sets))),
        best=best,
        importance=importance(
            fitted,
            some,
            metric=known,
            groups=None if training.groups is None else training.groups[which],
            level=comparison.level,
            random_state=random_state,
        ),
        reliability=_reliability(fitted, some, comparison),
    )


def _seen(model: Any, sets: Sets) -> Sets:
    return sets_for(model, sets, [] if sets.encoder is None else sets.encoder.categories)


def _reliability(fitted: Any, some: Sets, comparison: Comparison) -> Reliability | None:
    """Return how far probabilities can be trusted: those of the choice, or of the first place."""
    if comparison.target_kind == "subset" or len(some) < LEAST_SETS:
        return None
    task, scores = fitted.task, fitted.predict_scores(some)
    if isinstance(task, Choice):
        shown, p, outcome = some, task.probabilities(some, scores), "chosen"
        words = "These are the choices of sets held out from it."
    else:
        half = np.arange(len(some)) % 2 == 0
        rows = np.repeat(half, some.sizes)
        if not task.informative(some[half]).any():
            return None
        shown, outcome = some[~half], "first"
        p = Calibration.fit(task, some[half], scores[rows]).first_place(shown, scores[~rows])
        words = (
            "The temperature of its scores is from half of the sets held out from it; these are the others."
        )
    targets: Any = shown.targets
    first = np.repeat(np.fmin.reduceat(targets, shown.offsets[:-1]), shown.sizes) == targets
    single = np.repeat(
        np.add.reduceat(first, shown.offsets[:-1]) == 1, shown.sizes
    )  # no ties for the first place
    return Reliability(p[single], first[single], outcome, words) if single.any() else None
