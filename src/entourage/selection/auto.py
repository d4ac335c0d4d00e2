"""The automatic model: candidates of all tiers, fitted to folds within a time limit, and blended.

Every candidate (:func:`~entourage.selection.candidates.list_candidates`) is fitted to the training part of each
fold and scores the sets held out from it. Greedy ensemble selection on these scores gives the weights of a blend
(:mod:`entourage.estimators.blend`), in which a candidate is the mean of its fits. In the time that is left, what is in
the blend is fitted to a second division into folds, and these fits join the mean.

The time limit is hard: it is checked while a model trains, and a model whose time is up keeps what it has learnt. A
candidate that could not be fitted to every fold is left out. Within a limit that is never reached, the same seed gives
the same blend.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from entourage.data.decode import place_without_codes
from entourage.data.relative import find_places
from entourage.data.resampling import fold_indices
from entourage.data.sets import Sets
from entourage.errors import DataError, ParameterError, UserError, check_number
from entourage.estimators import NetEstimator
from entourage.estimators.baselines.base import Baseline
from entourage.estimators.blend import Blend, Part, contribution, mixed_scores, sets_for, spread_of
from entourage.estimators.inputs import check_something_to_learn
from entourage.estimators.monotone import find_signs
from entourage.estimators.positions import learnable_sets
from entourage.estimators.pretrained_net import is_pretrained
from entourage.selection.candidates import TIERS, Candidate, list_candidates, missing_by_default, sees_numbers
from entourage.selection.ensemble_selection import select_weights
from entourage.tasks import Task
from entourage.tasks.evaluate import mean_over_sets, metric_of_sets
from entourage.training.deadline import time_is_up, time_left, time_limit
from entourage.training.file_checks import take
from entourage.training.parallel import open_pool
from entourage.training.progress import in_words

__all__ = ["Found", "Plan", "Tried", "fit_blend", "plan_blend"]

Floats: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.int64]

FEW_SETS, MANY_SETS = 2_500, 8_000  # up to which there are 5 folds, and 3; above, a fifth is held out once
MOST_EVALUATED = 3_000  # sets, drawn at random, by which weights are chosen
KEPT_BACK = 0.3  # of the time, for choosing weights, the second division into folds and calibrating
SPARE = 0.03  # of the time, at its end
LONGER = 1.2  # than the first fits took: so much time is needed to fit again
DEFAULT_STEPS = 4000  # of an estimator: then the number of sets says how many


@dataclass
class Tried:
    """A candidate of the automatic choice: what it was worth on sets held out, and in the blend."""

    name: str
    tier: str  # alone, relative or net
    score: float  # NaN where it was not fitted to every fold
    weight: float  # in the blend
    seconds: float
    note: str = ""

    def __str__(self) -> str:
        score = self.note if np.isnan(self.score) else f"{self.score:.4f} on held-out sets"
        beside = f" ({self.note})" if self.note and not np.isnan(self.score) else ""
        return f"{self.name}: {score}{beside}, {self.seconds:.0f} s"

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data; None for a score that is not there."""
        return vars(self) | {"score": None if np.isnan(self.score) else self.score}

    @classmethod
    def from_json(cls, content: Any) -> Self:
        """Make it again from a model file."""
        known = take({"score": None} | content, "score", float | None)
        return cls(
            take(content, "name", str),
            take(content, "tier", str),
            float("nan") if known is None else known,
            take(content, "weight", float),
            take(content, "seconds", float),
            take(content, "note", str),
        )


@dataclass(frozen=True)
class Plan:
    """What will be fitted, and in which time."""

    candidates: list[Candidate]
    folds: list[tuple[Index, Index]]
    again: list[tuple[Index, Index]]  # a second division, for what is in the blend
    metric: str
    seconds: float

    def __str__(self) -> str:
        count = len(self.folds)
        where = f"{count} folds" if count > 1 else "four fifths of the sets"
        again = " and a second division" if self.again else ""
        return (
            f"{len(self.candidates)} candidates ({', '.join(one.name for one in self.candidates)}), each fitted to "
            f"{where}; then a blend by {self.metric} on the sets held out{again}. "
            f"At most {in_words(self.seconds)}."
        )


@dataclass(frozen=True)
class Found:
    """What came of it."""

    blend: Blend
    tried: list[Tried]  # the best first
    metric: str
    sets: Sets  # that were held out, each from the models that score it
    scores: Floats  # of the blend on them
    weights: Floats | None  # of these sets
    best_score: float  # of the blend on them, by the metric
    held_out_score: float  # the same, where half of them chose the weights and the other half is scored


def plan_blend(
    model: NetEstimator,
    sets: Sets,
    *,
    groups: Any = None,
    weights: Floats | None = None,
    random_state: int = 0,
) -> Plan:
    """Say what will be fitted to these sets: with the settings of an estimator, whose net is to be found."""
    task = model.task
    check_number("budget", model.budget, above=0)
    check_something_to_learn(task, sets)
    units = len(sets) if groups is None else len(np.unique(np.asarray(groups)))
    count = 5 if len(sets) <= FEW_SETS else 3 if len(sets) <= MANY_SETS else 1
    informative = task.informative(sets) & (True if weights is None else weights > 0)
    if units < 4:
        raise DataError(
            f"There are too few sets to hold some out ({len(sets)} sets in {units} groups); name a model instead of "
            "auto, such as fate."
        )
    parts = fold_indices(
        len(sets), min(max(count, 2) if count > 1 else 5, units), groups=groups, random_state=random_state
    )
    parts = parts[:1] if count == 1 else parts

    def usable(some: list[tuple[Index, Index]]) -> list[tuple[Index, Index]]:
        return [(train, held) for train, held in some if informative[train].any() and informative[held].any()]

    parts, again = usable(parts), []
    if not parts:
        raise DataError(
            "Too few sets are informative to hold some out; name a model instead of auto, such as fate."
        )
    graded = task.kind == "rank" and sets.worst is not None
    categories = _categories(model, sets)
    codes = [place for place, _ in categories]
    named = find_places(model.relative, sets, codes)  # says what is wrong with them before anything is fitted
    task.find_loss(model.loss)
    listed = list_candidates(
        len(parts[0][0]),
        task.kind,
        pairs=float(np.mean(sets.sizes.astype(np.float64) ** 2)),
        graded=graded,
        outside=bool(task.outside),
        relative=named is not None or sees_numbers(sets, codes),
        steps=model.steps if model.epochs is None and model.steps != DEFAULT_STEPS else None,
        base=model,
    )
    metric = "ndcg@10" if graded else task.searched_by if task.kind != "subset" else "log_likelihood"
    blended = [one for one in listed if one.blended]
    if find_signs(model.monotone, sets, categories):  # what can't be monotone is left out
        nets = [one for one in blended if isinstance(one.model, NetEstimator)]
        blended = [one for one in nets if not is_pretrained(one.model)]
    if named is not None:
        moved = [place_without_codes(place, categories) for place in named]
        for one in blended:
            if not one.model.level_codes and one.model.get_params(deep=False).get("relative"):
                one.model.set_params(relative=moved)
    if count > 1:
        second = fold_indices(len(sets), min(count, units), groups=groups, random_state=random_state + 1)
        again = usable(second) if len(usable(second)) == len(parts) else []
    return Plan(blended, parts, again, metric, model.budget)


def fit_blend(
    model: NetEstimator,
    sets: Sets,
    *,
    groups: Any = None,
    weights: Floats | None = None,
    random_state: int = 0,
    on_plan: Callable[[Plan], None] = lambda plan: None,
    on_try: Callable[[Tried], None] = lambda tried: None,
) -> Found:
    """Fit the candidates and blend them.

    Parameters
    ----------
    model : whose ``net`` is "auto"; its task, its ``budget`` in seconds, ``workers`` and the settings of its nets count
    sets : what to learn from
    groups : one label a set; sets of one group are not parted
    weights : one a set
    random_state : seeds the folds, the models and the choice of weights
    on_plan : told what will be done, before it is
    on_try : told of each candidate as it is done
    """
    with time_limit(model.budget):
        begin = time.monotonic()
        plan = plan_blend(model, sets, groups=groups, weights=weights, random_state=random_state)
        on_plan(plan)
        task, categories = model.task, _categories(model, sets)
        job = _FitFold(
            sets, weights, [*plan.folds, *plan.again], plan.candidates, groups, categories, random_state
        )
        until = begin + (1 - KEPT_BACK) * model.budget
        done: dict[str, list[_Fit]] = {}
        tried: dict[str, Tried] = {}
        with open_pool(job, model.workers) as pool:
            for i, candidate in enumerate(plan.candidates):
                left = until - time.monotonic()
                fits, note = _fit_folds(pool, i, plan, left, first=not done)
                one = Tried(
                    candidate.name,
                    TIERS[candidate.kind],
                    float("nan"),
                    0.0,
                    sum(f.seconds for f in fits),
                    note,
                )
                if fits and not note:
                    done[candidate.name] = fits
                    one.note = "stopped by the time limit" if any(f.out_of_time for f in fits) else ""
                tried[candidate.name] = one
                if candidate.name in done:
                    one.score = _Evaluation(task, sets, weights, plan).mean(
                        _contribution_of(task, sets, plan, fits)
                    )
                on_try(one)
            if not done:
                notes = "; ".join(f"{name}: {one.note}" for name, one in tried.items() if one.note)
                raise UserError(f"No candidate could be fitted. {notes}")
            for name, why in ({} if task.outside else missing_by_default(task.kind)).items():
                tried.setdefault(name, Tried(name, "alone", float("nan"), 0.0, 0.0, why))
            found = _blend(task, sets, weights, plan, done, tried, categories, random_state)
            parts = [_fit_again(pool, part, plan, sets, tried[part.name]) for part in found.blend.parts]
        return replace(found, blend=Blend(task, parts, categories))


@dataclass(frozen=True)
class _Fit:
    model: Any
    scores: NDArray[Any]  # of the sets held out
    seconds: float
    out_of_time: bool


@dataclass(frozen=True)
class _FitFold:
    """Fits a candidate to one fold; carries all that a worker needs."""

    sets: Sets
    weights: Floats | None
    folds: list[tuple[Index, Index]]
    candidates: list[Candidate]
    groups: Any
    categories: list[tuple[int, int]]
    random_state: int

    def __call__(self, job: tuple[int, int, float]) -> _Fit | str:
        which, fold, seconds = job
        begin = time.monotonic()
        model = clone(self.candidates[which].model)
        if "random_state" in model.get_params(deep=False):
            seed = np.random.default_rng([self.random_state, which, fold]).integers(2**31)
            model.set_params(random_state=int(seed))
        train, held_out = self.folds[fold]
        own = None if self.weights is None else self.weights[train]
        seen = learnable_sets(model, sets_for(model, self.sets, self.categories))
        try:
            with time_limit(max(seconds, 0.0)):
                if self.groups is not None and isinstance(model, NetEstimator | Baseline):
                    model.fit(seen[train], sample_weight=own, groups=np.asarray(self.groups)[train])
                else:
                    model.fit(seen[train], sample_weight=own)
                out_of_time = time_is_up()
            scores = model.predict_scores(seen[held_out].with_position(None))
        except ParameterError:
            raise  # a wrong setting: without this candidate the blend would not be what was asked for
        except UserError as error:
            return str(error)
        if isinstance(model, NetEstimator):
            model.optimizer_state_ = {}  # it is trained no further
        return _Fit(model, scores, time.monotonic() - begin, out_of_time)


def _fit_again(pool: Any, part: Part, plan: Plan, sets: Sets, tried: Tried) -> Part:
    """Add fits to the second division into folds, if there is time for all of them."""
    count = len(plan.again)
    each = (time_left() - SPARE * plan.seconds) / -(-count // min(pool.workers, count)) if count else 0.0
    if each < LONGER * tried.seconds / len(plan.folds):
        return part
    which = [one.name for one in plan.candidates].index(part.name)
    jobs = [(which, len(plan.folds) + fold, each) for fold in range(count)]
    fits = {job[1] - len(plan.folds): fit for job, fit in pool.run(jobs)}
    if any(isinstance(fit, str) or fit.out_of_time for fit in fits.values()):
        return part
    tried.seconds += sum(fit.seconds for fit in fits.values())
    models, scales = list(part.models), list(part.scales)
    for fold, (_, held) in enumerate(plan.again):
        models.append(fits[fold].model)
        scales.append(spread_of(sets[held], fits[fold].scores))
    return Part(part.name, part.weight, models, scales)


def _fit_folds(pool: Any, which: int, plan: Plan, left: float, *, first: bool) -> tuple[list[_Fit], str]:
    """Fit a candidate to all folds in the time that is left; return why not, where it could not be."""
    count = len(plan.folds)
    if left <= 0 and not first:
        return [], "not tried: the time was up"
    at_once = min(pool.workers, count)
    share = left / max(1, min(3, len(plan.candidates) - which))  # later candidates shall have a chance
    each = max(share / -(-count // at_once), 0.0)
    fits = {}
    for (_, fold, _), fit in pool.run([(which, fold, each) for fold in range(count)]):
        if isinstance(fit, str):
            return [], fit
        fits[fold] = fit
    return [fits[fold] for fold in range(count)], ""


def _categories(model: NetEstimator, sets: Sets) -> list[tuple[int, int]]:
    if model.categories is not None:
        return [(place, levels) for place, levels in model.categories]
    return [] if sets.encoder is None else list(sets.encoder.categories)


def _held_out(plan: Plan) -> Index:
    return np.concatenate([held for _, held in plan.folds])


def _contribution_of(task: Task, sets: Sets, plan: Plan, fits: list[_Fit]) -> Floats:
    """Return what a candidate adds to a mix on all sets held out, packed, in the order of `_held_out`."""
    parts = []
    for (_, held), fit in zip(plan.folds, fits, strict=True):
        some = sets[held]
        parts.append(contribution(task, some, fit.scores, spread_of(some, fit.scores)))
    return np.concatenate(parts)


class _Evaluation:
    """How good a mix is on the sets held out, or on some of them."""

    def __init__(self, task: Task, sets: Sets, weights: Floats | None, plan: Plan) -> None:
        chosen = _held_out(plan)
        self.task, self.sets = task, sets[chosen]
        self.weights = np.ones(len(chosen)) if weights is None else weights[chosen]
        self.metric = task.criterion if task.kind == "subset" else task.metrics[plan.metric]
        informative = np.flatnonzero(task.informative(self.sets) & (self.weights > 0))
        drawn = np.random.default_rng(len(chosen)).permutation(informative)[:MOST_EVALUATED]
        self.used = np.sort(drawn)
        self.rows = np.concatenate([np.arange(*self.sets.offsets[i : i + 2]) for i in self.used])
        self.some = self.sets[self.used]

    def values(self, mix: Floats) -> Floats:
        """Return the metric of each of the sets used, for a mix on them."""
        return metric_of_sets(self.metric, self.some, mixed_scores(self.task, self.some, mix))

    def mean(self, mix: Floats) -> float:
        """Return the mean for a mix on all sets held out."""
        return mean_over_sets(self.values(mix[self.rows]), self.weights[self.used])


def _blend(
    task: Task,
    sets: Sets,
    weights: Floats | None,
    plan: Plan,
    done: dict[str, list[_Fit]],
    tried: dict[str, Tried],
    categories: list[tuple[int, int]],
    random_state: int,
) -> Found:
    evaluation = _Evaluation(task, sets, weights, plan)
    all_parts = {name: _contribution_of(task, sets, plan, fits) for name, fits in done.items()}
    used = {name: own[evaluation.rows] for name, own in all_parts.items()}
    own_weights = evaluation.weights[evaluation.used]
    shares = select_weights(used, evaluation.values, own_weights, random_state)
    for name, share in shares.items():
        tried[name].weight = share
    parts = []
    for name, share in shares.items():
        scales = [
            spread_of(sets[held], fit.scores) for (_, held), fit in zip(plan.folds, done[name], strict=True)
        ]
        parts.append(Part(name, share, [fit.model for fit in done[name]], scales))
    mix = sum(
        (share * all_parts[name] for name, share in shares.items()), np.zeros(len(evaluation.sets.objects))
    )
    halves = []
    order = np.random.default_rng([random_state, 2]).permutation(len(evaluation.used))
    for half in (order[: len(order) // 2], order[len(order) // 2 :]):
        if len(done) == 1 or time_left() < 0.02 * plan.seconds:
            chosen = shares
        else:
            mine = np.zeros(len(order))
            mine[half] = own_weights[half]
            chosen = select_weights(used, evaluation.values, mine, random_state) if mine.any() else shares
        other = np.setdiff1d(order, half)
        values = evaluation.values(
            sum((s * used[name] for name, s in chosen.items()), np.zeros(len(evaluation.rows)))
        )
        halves.append(mean_over_sets(values[other], own_weights[other]))
    return Found(
        blend=Blend(task, parts, categories),
        tried=sorted(tried.values(), key=lambda one: (np.isnan(one.score), -one.score)),
        metric=plan.metric,
        sets=evaluation.sets,
        scores=mixed_scores(task, evaluation.sets, mix),
        weights=None if weights is None else evaluation.weights,
        best_score=evaluation.mean(mix),
        held_out_score=float(np.nanmean(halves)),
    )
