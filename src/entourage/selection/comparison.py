r"""Is there a context effect, and how large is it? Nested cross-validation of models with and without context.

There are three kinds of candidates: context-free, relative (the standing of an object in its set) and context (nets of
the whole set). In every outer fold the best of each kind is chosen on training sets alone. On each held-out set, the
difference of the best with any context and the best context-free one is the *context gain*. Its mean comes with a
bootstrap confidence interval and the p-value of a sign-flip test; so does what each kind adds
(:mod:`entourage.selection.tiers`).

Assumptions and limits of the test:

- The units (sets, or groups where they are given) are independent. Sets of one user, season or query are
  not: give ``groups``.
- Per-set differences of one fold come from one pair of fitted models, of which one may be better by the
  luck of its training, and models of different folds share most of their training data. If the differences were
  treated as independent, their variance would be underestimated. Interval and p-value are therefore widened as Nadeau
  and Bengio (2003) propose: the variance of the mean is taken to be
  :math:`\sigma^2 (1/n + 1/n_{\mathrm{train}})` instead of :math:`\sigma^2 / n`, which for five folds makes the
  standard error half as large again. ``python -m benchmarks.calibration.verdict`` and ``python -m benchmarks.real
  --task aslib`` measure how often the verdict is wrong at these defaults.
- A gain means that these context-dependent models are better than those context-free ones. Where the context-free
  candidates are weaker for other reasons, a smaller net or another loss, that can be mistaken for a context effect: a
  narrow FETA beats a narrow context-free net of the same width, since it has twice the weights. So each
  context-dependent net needs a context-ablated control, :class:`~entourage.nets.context_ablated.ContextAblated`: the
  same net with the same weights, in which all objects have the same fixed context. The default candidates include
  those controls.
- Models that were still improving when their training ended differ by how fast they learn, which can be mistaken for
  a context effect; :attr:`Comparison.still_improving` names them, and
  :func:`~entourage.selection.verdict.warnings_of` says so.
"""

import math
import platform
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeAlias, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entourage.data.encoder import TableColumns
from entourage.data.grouping import times_of
from entourage.data.resampling import (
    bootstrap_interval,
    labels_of,
    sign_flip_p_value,
)
from entourage.data.sets import AnySets, Sets, is_frame
from entourage.errors import DataError, ParameterError, check_choice, check_number
from entourage.estimators.base import SetPredictor
from entourage.estimators.blend import sets_for
from entourage.estimators.inputs import training_sets
from entourage.estimators.positions import learnable_sets
from entourage.selection.candidates import (
    KINDS,
    Candidates,
    check_candidates,
    default_candidates,
    missing_by_default,
    sees_numbers,
    with_outside,
)
from entourage.selection.convergence import still_improving
from entourage.selection.fold_fits import (
    FitCandidate,
    FoldFit,
    FoldResult,
    Key,
    groups_for,
    mean_over_folds,
    seeded_clone,
)
from entourage.selection.folds import check_enough, inner_folds_for, moments_of, outer_folds
from entourage.selection.plan_words import describe_plan
from entourage.selection.tiers import ANY_CONTEXT, Step, choose_by_tier, rivals_of, steps_of
from entourage.selection.verdict import verdict, warnings_of
from entourage.tasks import task_of
from entourage.tasks.ranking_metrics import LOWER_IS_BETTER
from entourage.training.parallel import open_pool

__all__ = ["Comparison", "compare", "refit_chosen"]

Floats: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.int64]


def compare(
    sets: AnySets,
    candidates: Candidates | None = None,
    *,
    situation: Sequence[str] | None = None,
    metrics: Sequence[str] = ("ranking_accuracy", "spearman", "top1_accuracy", "ndcg"),
    metric: str | None = None,
    kind: str = "rank",
    outside: bool = False,
    models: Sequence[str] | None = None,
    folds: int = 5,
    inner: int | None = None,
    groups: ArrayLike | str | None = None,
    times: ArrayLike | str | None = None,
    budget: float | None = None,
    level: float = 0.05,
    resamples: int = 2000,
    random_state: int = 0,
    workers: int = 1,
    steps: int | None = None,
    device: str = "auto",
    on_plan: Callable[[str], None] | None = None,
    on_row: Callable[[dict[str, Any]], None] | None = None,
    **table: Unpack[TableColumns],
) -> "Comparison":
    """Compare context-free, relative and context-dependent models on the same sets.

    :func:`~entourage.selection.verdict.verdict` puts the result into a sentence. Sets that are not informative are left
    out from the start: those that rank no two objects differently; of choices, those of one object, unless there is an
    outside option.

    Parameters
    ----------
    sets : Sets with targets; or a frame, whose columns ``set_id``, ``target``, ``situation``, ... name, as for
        :meth:`entourage.Ranker.fit`; ``kind`` then says what the target is
    candidates : by name, an estimator and its kind, "context-free", "relative" or "context"; optional
        By default :func:`~entourage.selection.candidates.default_candidates`. Every fit is of a clone with a seed of
        its own, drawn from ``random_state``.
    metrics : metrics to report of every candidate, names from :data:`entourage.metrics.METRICS` or of the task
    metric : the one by which candidates are chosen and the context gain is measured; by default ranking_accuracy,
        for choices log_likelihood, for choices of some f1
    kind : what targets are, "rank", "choice" or "subset" (:data:`entourage.tasks.TASKS`)
    outside : whether there is an outside option, for ``kind`` "choice": a set in which nothing was chosen. Each
        `DiscreteChooser` is given that option; candidates that can't have it are left out, and ``left_out`` of the
        result says so. Metrics of rankings leave out the sets in which nothing was chosen.
    folds : number of outer folds; models are evaluated on the fold that they were not fitted to
    inner : number of inner folds, by which candidates are chosen; 1 for a single split, a fifth held out; 0 sets
        a fifth of the training sets aside for it, so that each candidate is fitted once. By default 1 for up to
        1,500 sets, and 0 for more
    groups : one label a set, or a column of a frame; sets of one label are in one fold, and resampled together. With
        ``times``, which say what is in a fold, they are only resampled together
    times : one number or date a set, or a column of a frame: folds are then forward in time, each model learning from
        earlier sets than those it is evaluated on
    budget : seconds that all fits may take. It is checked while models train, and those whose time is up keep what
        they have learnt; the result says which
    level : significance level of the test; intervals are of 1 − level (0.05: 95 %)
    resamples : number of bootstrap samples and of random sign flips
    random_state : seeds the folds, the models and the resampling
    workers : number of fits in parallel, in processes of one thread each
    steps, device : of the nets among the default candidates; those that are named keep their own
    models : names of default candidates, instead of all of them
    on_plan : told what will be done, before it is
    on_row : called with each fit as it ends: a row of the result, with the number of ``fits`` in all

    Notes
    -----
    The test is one-sided: the alternative hypothesis is that context helps. Context-dependent models that
    do *worse* are no evidence about context, only of too little data for them. The interval is
    two-sided, since it says how large the gain may be, either way; a p-value between half the level and
    the level therefore goes with an interval that just reaches below 0. The module documentation says how dependence
    between folds is accounted for.

    Examples
    --------
    >>> from entourage import FATE, Ranker
    >>> from entourage.estimators.baselines import RankSVM
    >>> from entourage.data import Sets, make_medoid
    >>> candidates = {
    ...     "linear": (RankSVM(), "context-free"),
    ...     "FATE": (Ranker(FATE(width=16), steps=100, batch_size=64), "context"),
    ... }
    >>> result = compare(Sets.of(*make_medoid(150, random_state=0)), candidates, folds=3)
    >>> result.gain > 0.05, result.p_value <= 0.05
    (True, True)
    """
    begin = time.perf_counter()
    task = task_of(kind, outside=outside)
    metric = check_choice("metric", task.searched_by if metric is None else metric, task.metrics)
    names = list(dict.fromkeys([metric, *metrics]))
    for name in names:
        check_choice("metrics", name, task.metrics)
    check_number("folds", folds, least=2, whole=True)
    if inner is not None:
        check_number("inner", inner, least=0, whole=True)
    if budget is not None:
        check_number("budget", budget, above=0)
    check_number("level", level, above=0, below=0.5)
    check_number("resamples", resamples, least=math.ceil(1 / level) - 1, whole=True)
    check_number("random_state", random_state, least=0, whole=True)
    check_number("workers", workers, least=1, whole=True)
    if is_frame(sets):
        table.setdefault("target_kind", kind)
    every_set, when, groups = _read(task, sets, situation, groups, times, table)
    informative = np.flatnonzero(task.informative(every_set))
    if len(informative) == 0:
        raise DataError(
            f"A comparison needs {task.informative_words}; there are none. Check the targets, and which objects make "
            "a set."
        )
    kept = every_set[informative]
    labels = None if groups is None else labels_of(groups, len(every_set))[informative]
    if outside:
        _check_some_chosen(kept, labels)
    left_out: dict[str, str] = {}
    if candidates is None:
        candidates = default_candidates(
            math.ceil(0.8 * len(kept)),
            kind,
            pairs=float(np.mean(kept.sizes.astype(np.float64) ** 2)),
            outside=outside,
            relative=sees_numbers(
                kept, [] if kept.encoder is None else [p for p, _ in kept.encoder.categories]
            ),
            steps=steps,
            device=device,
            names=models,
        )
        left_out |= missing_by_default(kind) if models is None else {}
    check_candidates(candidates)
    if outside:
        candidates, unable = with_outside(candidates)
        left_out |= unable
    rivals = rivals_of({name: its for name, (_, its) in candidates.items()})
    to_choose_from = list(dict.fromkeys(name for mine in rivals.values() if len(mine) > 1 for name in mine))
    splits = (inner_folds_for(len(kept)) if inner is None else inner) if to_choose_from else None
    check_enough(len(kept), labels, folds, splits, level, task.informative_words)
    moments = None if when is None else moments_of(when, len(every_set))[informative]
    outer = outer_folds(len(kept), folds, splits, labels=labels, times=moments, random_state=random_state)
    jobs: list[FoldFit] = []
    for (
        name
    ) in candidates:  # those that are quick first, so that what they leave of a budget is for the others
        for i, fold in enumerate(outer):
            jobs.append(FoldFit(name, i, None, fold.train, fold.test, fold.aside, len(jobs)))
            for j, part in enumerate(fold.inner if name in to_choose_from else []):
                jobs.append(FoldFit(name, i, j, *part, place=len(jobs)))
    if on_plan is not None:
        on_plan(describe_plan(candidates, folds, splits, len(jobs), kept, workers, budget))
    fit = FitCandidate(
        kept,
        dict(candidates),
        tuple(names),
        random_state,
        kind,
        outside,
        fits=len(jobs),
        workers=workers,
        deadline=math.inf if budget is None else time.time() + budget,
        labels=labels,
    )
    results: dict[Key, FoldResult] = {}
    with open_pool(fit, workers) as pool:
        for job, result in pool.run(jobs):
            results[job.key] = result
            if on_row is not None:
                on_row(fit.row(job, result) | {"fits": len(jobs)})

    sign = -1.0 if metric in LOWER_IS_BETTER else 1.0
    chosen = [choose_by_tier(rivals, _ChosenBy(i, jobs, results, metric, sign)) for i in range(folds)]
    values = {name: {m: np.full(len(every_set), np.nan) for m in names} for name in candidates}
    for i, fold in enumerate(outer):
        for name in candidates:
            for m in names:
                values[name][m][informative[fold.test]] = results[name, i, None].values[m]

    def difference(tier: str, other: str) -> Floats:
        found = np.full(len(every_set), np.nan)
        for i, fold in enumerate(outer):
            ours, theirs = (results[chosen[i][role], i, None].values[metric] for role in (tier, other))
            found[informative[fold.test]] = sign * (ours - theirs)
        return found

    drawing: dict[str, Any] = {"resamples": resamples, "random_state": random_state}

    def interval(of: Floats) -> tuple[float, float]:
        return bootstrap_interval(of, groups, level=level, **drawing)

    tested, trained = sum(len(fold.test) for fold in outer), np.mean([len(fold.train) for fold in outer])
    widening = math.sqrt(1 + tested / float(trained))

    def judge(of: Floats) -> tuple[float, tuple[float, float], float]:
        mean, (low, high) = mean_over_folds([of]), interval(of)
        p = sign_flip_p_value(of, groups, widening=widening, **drawing)
        return mean, (mean - widening * (mean - low), mean + widening * (high - mean)), p

    differences = difference(ANY_CONTEXT, "context-free")
    gain, around, p_value = judge(differences)
    curves = {name: [results[job.key].curve for job in jobs if job.name == name] for name in candidates}
    return Comparison(
        metric=metric,
        target_kind=kind,
        outside=outside,
        kinds={name: role for name, (_, role) in candidates.items()},
        left_out=left_out,
        still_improving=still_improving(curves),
        means={name: {m: mean_over_folds([values[name][m]]) for m in names} for name in candidates},
        intervals={name: {m: interval(values[name][m]) for m in names} for name in candidates},
        chosen=chosen,
        gain=gain,
        interval=around,
        p_value=p_value,
        steps=steps_of(chosen, difference, judge),
        out_of_time={name: late for name in candidates if (late := _stopped(name, jobs, results))},
        first_fold=(informative[outer[0].train], informative[outer[0].test]),
        level=level,
        n_sets=len(kept),
        n_groups=None if labels is None else len(np.unique(labels[~np.isnan(differences[informative])])),
        labels=None if groups is None else labels_of(groups, len(every_set)),
        settings={
            "folds": folds,
            "inner": splits,
            "forward_in_time": when is not None,
            "resamples": resamples,
            "random_state": random_state,
        },
        seconds=time.perf_counter() - begin,
        versions=_versions(),
        candidates=dict(candidates),
        rows=[fit.row(job, results[job.key]) for job in jobs],
        values=values,
        differences=differences,
    )


def refit_chosen(comparison: "Comparison", sets: AnySets) -> dict[str, SetPredictor]:
    """Fit the candidate of each kind that was chosen most often once more, to all sets; return them by kind.

    Seeds are derived from the comparison's ``random_state``: the same comparison gives the same models.

    Examples
    --------
    >>> from entourage.estimators.baselines import RandomRanker, RankSVM
    >>> from entourage.data import Sets, make_hypervolume
    >>> sets = Sets.of(*make_hypervolume(100, random_state=0))
    >>> found = compare(sets, {"A": (RankSVM(), "context-free"), "B": (RandomRanker(), "context")}, folds=2)
    >>> {kind: type(model).__name__ for kind, model in refit_chosen(found, sets).items()}
    {'context-free': 'RankSVM', 'context': 'RandomRanker'}
    """
    c = comparison
    fitted = {}
    for kind in [kind for kind in KINDS if kind in c.chosen[0]]:
        name = c.most_chosen(kind)
        place, after_all_folds = list(c.candidates).index(name), c.settings["folds"]
        model = seeded_clone(c.candidates[name][0], c.settings["random_state"], place, after_all_folds, 0)
        given = Sets.of(sets)
        seen = sets_for(model, given, [] if given.encoder is None else given.encoder.categories)
        fitted[kind] = model.fit(learnable_sets(model, seen), **groups_for(model, c.labels))
    return fitted


def _check_some_chosen(sets: Sets, labels: Index | None) -> None:
    """Check that there is a choice in two sets, or groups, for the metrics that order the objects."""
    some = np.logical_or.reduceat(sets.targets == 0, sets.offsets[:-1])
    came = int(some.sum()) if labels is None else len(np.unique(labels[some]))
    if came < 2:
        what = "sets" if labels is None else "groups of sets"
        raise DataError(
            f"A comparison needs at least 2 {what} in which something was chosen; there {'is' if came == 1 else 'are'} "
            f"{came}. Check the targets."
        )


def _read(task: Any, sets: Any, situation: Any, groups: Any, times: Any, table: Any) -> tuple[Sets, Any, Any]:
    """Make checked sets, with a time and a group for each."""
    columns: Any = dict(table)
    if isinstance(times, str):
        if not is_frame(sets):
            raise ParameterError(
                f"times={times!r} names a column, but there is no table. Pass one entry a set."
            )
        if columns.get("features") is None:  # nor is it a feature
            ignored = columns.get("ignore") or []
            columns["ignore"] = [*([ignored] if isinstance(ignored, str) else ignored), times]
    found, _, labels = training_sets(task, sets, None, situation, groups=groups, table=columns, codes=True)
    if isinstance(times, str):
        packed = found.encoder(sets, with_target=False)
        times = times_of(sets, packed, times)
    return found, times, labels


class _ChosenBy:
    """The score by which a candidate is chosen in an outer fold: on inner folds, or on sets that were set aside."""

    def __init__(
        self, fold: int, jobs: Sequence[FoldFit], results: Mapping[Key, FoldResult], metric: str, sign: float
    ) -> None:
        self.fold, self.jobs, self.results, self.metric, self.sign = fold, jobs, results, metric, sign

    def __call__(self, name: str) -> float:
        aside = self.results[name, self.fold, None].aside
        if aside is not None:
            return self.sign * mean_over_folds([aside])
        inner = [job.key for job in self.jobs if job.is_inner(name, self.fold)]
        return self.sign * mean_over_folds([self.results[key].values[self.metric] for key in inner])


def _stopped(name: str, jobs: Sequence[FoldFit], results: Mapping[Key, FoldResult]) -> int:
    """Return how many fits of a candidate the budget ended."""
    return sum(results[job.key].out_of_time for job in jobs if job.name == name)


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in ("entourage", "numpy", "scikit-learn", "torch", "lightgbm"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # an extra that is not there, or a checkout that is not installed
            continue
    return found


@dataclass(frozen=True)
class Comparison:
    """The result of :func:`compare`; :func:`~entourage.selection.verdict.verdict` puts it into a sentence."""

    metric: str  # by which candidates were chosen and the gain is measured
    target_kind: str  # what targets are: "rank", "relevance", "choice" or "subset"
    outside: bool  # whether there is an outside option
    kinds: dict[str, str]  # of each candidate, by name
    left_out: dict[str, str]  # candidates that could not take part, and why
    still_improving: dict[str, int]  # candidates whose training was too short, and of how many steps it was
    means: dict[str, dict[str, float]]  # by candidate, then by metric
    intervals: dict[str, dict[str, tuple[float, float]]]
    chosen: list[dict[str, str]]  # for each outer fold the best of each kind, and of unions of kinds
    gain: float  # mean difference of the best with any context and the best without; positive where context helps
    interval: tuple[float, float]
    p_value: float  # one-sided
    steps: dict[str, Step]  # what each tier adds, "relative" and "net"; none without relative candidates
    out_of_time: dict[str, int]  # candidates that the budget stopped, and in how many fits
    level: float
    n_sets: int  # that are informative, such as rank two objects differently; the others took no part
    n_groups: int | None
    settings: dict[str, Any]
    seconds: float
    versions: dict[str, str]
    candidates: dict[str, tuple[SetPredictor, str]] = field(repr=False)  # by name, as they were compared
    rows: list[dict[str, Any]] = field(repr=False)  # one a fit
    values: dict[str, dict[str, Floats]] = field(repr=False)  # of each set, NaN where undefined
    differences: Floats = field(repr=False)  # the context gain on each set, NaN where undefined
    labels: Index | None = field(repr=False)  # the group of each set
    first_fold: tuple[Index, Index] = field(
        repr=False
    )  # which sets were learnt from in it, and which held out

    @property
    def names(self) -> list[str]:
        """The candidates, in their order."""
        return list(self.kinds)

    def most_chosen(self, kind: str) -> str:
        """Return the candidate of a kind that was chosen in the most folds."""
        return Counter(fold[kind] for fold in self.chosen).most_common(1)[0][0]

    def to_json(self, *, per_set: bool = False) -> dict[str, Any]:
        """Return everything as plain data, ready for ``json.dumps``; ``per_set`` adds each set's values.

        What is undefined is None there, since JSON has no NaN.
        """
        plain: dict[str, Any] = {
            "verdict": verdict(self),
            "metric": self.metric,
            "target_kind": self.target_kind,
            "outside": self.outside,
            "kinds": dict(self.kinds),
            "left_out": dict(self.left_out),
            "still_improving": dict(self.still_improving),
            "warnings": warnings_of(self),
            "means": {name: dict(means) for name, means in self.means.items()},
            "intervals": {
                name: {metric: list(ends) for metric, ends in mine.items()}
                for name, mine in self.intervals.items()
            },
            "chosen": [dict(fold) for fold in self.chosen],
            "gain": self.gain,
            "interval": list(self.interval),
            "p_value": self.p_value,
            "steps": {name: step.to_json() for name, step in self.steps.items()},
            "out_of_time": dict(self.out_of_time),
            "level": self.level,
            "n_sets": self.n_sets,
            "n_groups": self.n_groups,
            "settings": dict(self.settings),
            "seconds": round(self.seconds, 1),
            "versions": dict(self.versions),
            "rows": [
                row | {"means": {m: None if math.isnan(mean) else mean for m, mean in row["means"].items()}}
                for row in self.rows
            ],
        }
        if per_set:
            plain["values"] = {
                name: {metric: _plain(values) for metric, values in mine.items()}
                for name, mine in self.values.items()
            }
            plain["differences"] = _plain(self.differences)
        return plain


def _plain(values: Floats) -> list[float | None]:
    return [None if math.isnan(value) else value for value in values.tolist()]
