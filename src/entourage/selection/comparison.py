r"""Is there a context effect, and how large is it? Nested cross-validation of models with and without context.

In every outer fold the best context-free and the best context-dependent candidate are chosen by inner folds of the
training sets alone. Their difference on each held-out set is the *context gain*. Its mean comes with a bootstrap
confidence interval and the p-value of a sign-flip test.

Assumptions and limits of the test:

- The units (sets, or groups where they are given) are independent. Sets of one user, season or query are
  not: give ``groups``.
- Per-set differences of one fold come from one pair of fitted models, of which one may be better by the
  luck of its training, and models of different folds share most of their training data. If the differences were
  treated as independent, their variance would be underestimated. Interval and p-value are therefore widened as Nadeau
  and Bengio (2003) propose: the variance of the mean is taken to be
  :math:`\sigma^2 (1/n + 1/n_{\mathrm{train}})` instead of :math:`\sigma^2 / n`, which for five folds makes the
  standard error half as large again. ``python -m benchmarks.calibration.verdict`` measures how often the verdict
  is wrong at these defaults.
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
from entourage.data.resampling import (
    bootstrap_interval,
    fold_indices,
    labels_of,
    sign_flip_p_value,
    widening_of,
)
from entourage.data.sets import AnySets, Sets, is_frame
from entourage.errors import DataError, check_choice, check_number
from entourage.estimators.base import SetPredictor
from entourage.estimators.inputs import training_sets
from entourage.estimators.positions import learnable_sets
from entourage.selection.candidates import (
    KINDS,
    Candidates,
    check_candidates,
    default_candidates,
    missing_by_default,
    with_outside,
)
from entourage.selection.convergence import still_improving
from entourage.selection.fold_fits import (
    FitCandidate,
    FoldFit,
    FoldResult,
    Key,
    mean_over_folds,
    seeded_clone,
)
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
    folds: int = 5,
    inner: int = 3,
    groups: ArrayLike | str | None = None,
    level: float = 0.05,
    resamples: int = 2000,
    random_state: int = 0,
    workers: int = 1,
    steps: int | None = None,
    device: str = "auto",
    on_row: Callable[[dict[str, Any]], None] | None = None,
    **table: Unpack[TableColumns],
) -> "Comparison":
    """Compare context-dependent with context-free models on the same sets.

    :func:`~entourage.selection.verdict.verdict` puts the result into a sentence. Sets that are not informative are left
    out from the start: those that rank no two objects differently; of choices, those of one object, unless there is an
    outside option.

    Parameters
    ----------
    sets : Sets with targets; or a frame, whose columns ``set_id``, ``target``, ``situation``, ... name, as for
        :meth:`entourage.Ranker.fit`; ``kind`` then says what the target is
    candidates : by name, an estimator and its kind, "context-free" or "context"; optional
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
    inner : number of inner folds, by which candidates are chosen; 1 for a single split, a fifth held out
    groups : one label a set, or a column of a frame; sets of one label are in one fold, and resampled together
    level : significance level of the test; intervals are of 1 − level (0.05: 95 %)
    resamples : number of bootstrap samples and of random sign flips
    random_state : seeds the folds, the models and the resampling
    workers : number of fits in parallel, in processes of one thread each
    steps, device : of the nets among the default candidates; those that are named keep their own
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
    check_number("inner", inner, least=1, whole=True)
    check_number("level", level, above=0, below=0.5)
    check_number("resamples", resamples, least=math.ceil(1 / level) - 1, whole=True)
    check_number("random_state", random_state, least=0, whole=True)
    check_number("workers", workers, least=1, whole=True)
    if is_frame(sets):
        table.setdefault("target_kind", kind)
    every_set, _, groups = training_sets(task, sets, None, situation, groups=groups, table=table)
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
        candidates = default_candidates(len(kept), kind, outside=outside, steps=steps, device=device)
        left_out |= missing_by_default(kind)
    check_candidates(candidates)
    if outside:
        candidates, unable = with_outside(candidates)
        left_out |= unable
    rivals = {role: [name for name, (_, its) in candidates.items() if its == role] for role in KINDS}
    to_choose_from = [name for mine in rivals.values() if len(mine) > 1 for name in mine]
    _check_enough(len(kept), labels, folds, inner if to_choose_from else None, level, task.informative_words)

    outer = fold_indices(len(kept), folds, groups=labels, random_state=random_state)
    jobs = []
    for i, (train, test) in enumerate(outer):
        jobs += [FoldFit(name, i, None, train, test) for name in candidates]
        parts = _inner_folds(train, labels, inner, random_state + 1 + i) if to_choose_from else []
        jobs += [FoldFit(name, i, j, *part) for name in to_choose_from for j, part in enumerate(parts)]
    fit = FitCandidate(kept, dict(candidates), tuple(names), random_state, kind, outside)
    results: dict[Key, FoldResult] = {}
    with open_pool(fit, workers) as pool:
        for job, result in pool.run(jobs):
            results[job.key] = result
            if on_row is not None:
                on_row(fit.row(job, result) | {"fits": len(jobs)})

    sign = -1.0 if metric in LOWER_IS_BETTER else 1.0
    chosen = [_choose(rivals, i, jobs, results, metric, sign) for i in range(folds)]
    values = {name: {m: np.full(len(every_set), np.nan) for m in names} for name in candidates}
    differences = np.full(len(every_set), np.nan)
    for i, (_, test) in enumerate(outer):
        for name in candidates:
            for m in names:
                values[name][m][informative[test]] = results[name, i, None].values[m]
        with_context, without = (results[chosen[i][role], i, None] for role in ("context", "context-free"))
        differences[informative[test]] = sign * (with_context.values[metric] - without.values[metric])

    drawing: dict[str, Any] = {"resamples": resamples, "random_state": random_state}

    def interval(of: Floats) -> tuple[float, float]:
        return bootstrap_interval(of, groups, level=level, **drawing)

    gain, widening = mean_over_folds([differences]), widening_of(folds)
    low, high = interval(differences)
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
        interval=(gain - widening * (gain - low), gain + widening * (high - gain)),
        p_value=sign_flip_p_value(differences, groups, widening=widening, **drawing),
        level=level,
        n_sets=len(kept),
        n_groups=None if labels is None else len(np.unique(labels)),
        settings={"folds": folds, "inner": inner, "resamples": resamples, "random_state": random_state},
        seconds=time.perf_counter() - begin,
        versions=_versions(),
        candidates=dict(candidates),
        rows=[fit.row(job, results[job.key]) for job in jobs],
        values=values,
        differences=differences,
    )


def refit_chosen(comparison: "Comparison", sets: AnySets) -> dict[str, SetPredictor]:
    """Fit the candidate of either kind that was chosen most often once more, to all sets; return them by kind.

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
    for kind in KINDS:
        name = c.most_chosen(kind)
        place, after_all_folds = list(c.candidates).index(name), c.settings["folds"]
        model = seeded_clone(c.candidates[name][0], c.settings["random_state"], place, after_all_folds, 0)
        fitted[kind] = model.fit(learnable_sets(model, Sets.of(sets)))
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


def _check_enough(
    n: int, labels: Index | None, folds: int, inner: int | None, level: float, units: str
) -> None:
    """Check that every fold can be filled, and that the test can reach its level at all."""
    came = n if labels is None else len(np.unique(labels))
    what = units if labels is None else f"groups of {units}"
    parts = 0 if inner is None else 5 if inner == 1 else inner
    needed = folds
    while needed - math.ceil(needed / folds) < parts:  # what the smallest training part is left with
        needed += 1
    if came < needed:
        choice = "" if inner is None else f", each with {parts} inner ones,"
        raise DataError(
            f"{folds} outer folds{choice} need at least {needed} {what}; there are {came}. "
            "Take fewer folds, or collect more data."
        )
    needed = math.ceil(math.log2(1 / level))
    if came < needed:
        raise DataError(
            f"A test at the {100 * level:g} % level needs at least {needed} {what}; there are {came}, "
            f"with which p is never below {0.5**came:g}. Collect more data, or take another level."
        )


def _inner_folds(
    train: Index, labels: Index | None, inner: int, random_state: int
) -> list[tuple[Index, Index]]:
    mine = None if labels is None else labels[train]
    parts = fold_indices(len(train), 5 if inner == 1 else inner, groups=mine, random_state=random_state)
    return [(train[fit], train[test]) for fit, test in (parts[:1] if inner == 1 else parts)]


def _choose(
    rivals: Mapping[str, Sequence[str]],
    fold: int,
    jobs: Sequence[FoldFit],
    results: Mapping[Key, FoldResult],
    metric: str,
    sign: float,
) -> dict[str, str]:
    """Return the best candidate of either kind by the inner folds of an outer one; a single one needs none."""

    def inner_score(name: str) -> float:
        mine = [results[job.key].values[metric] for job in jobs if job.is_inner(name, fold)]
        return sign * mean_over_folds(mine)

    return {
        role: max(names, key=inner_score) if len(names) > 1 else names[0] for role, names in rivals.items()
    }


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
    chosen: list[dict[str, str]]  # for each outer fold the best of either kind, by its inner folds
    gain: float  # mean per-set difference of those two; positive where the context-dependent one is better
    interval: tuple[float, float]
    p_value: float  # one-sided
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
