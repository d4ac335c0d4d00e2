r"""Does context matter here, and how much? Models with and without it, cross-validated on the same sets.

Each candidate is fitted and judged by cross-validation. In every outer fold the best context-free and
the best context-dependent candidate are chosen by inner folds of the training part alone; the difference
of the two on each set of the fold is the *context gain*. Its mean comes with a bootstrap interval and the
p-value of a sign-flip test.

What the test assumes, and what it doesn't see:

- The units (sets, or groups where they are given) are independent. Sets of one user, season or query are
  not: give ``groups``.
- Per-set differences of one fold come from one pair of fitted models, of which one may be better by the
  luck of its training, and models of different folds share most of their training data. Taken as
  independent, the differences seem surer than they are. Interval and p-value are therefore widened as Nadeau
  and Bengio (2003) propose: the variance of the mean is taken to be
  :math:`\sigma^2 (1/n + 1/n_{\mathrm{train}})` instead of :math:`\sigma^2 / n`, which for five folds makes the
  standard error half as large again. ``python -m benchmarks.calibration.verdict`` measures how often the verdict
  is wrong at these defaults.
- A gain means that these models do better with context than those do without. Where the context-free
  candidates are weaker for other reasons, a smaller net or another loss, context can seem to matter: a
  narrow FETA beats a narrow context-free net of the same width, since it has twice the weights. So each
  context-dependent net needs a context-ablated control, :class:`~entourage.nets.context_ablated.Alone`: the same net
  with the same weights, in which all objects have the same fixed context. The default candidates include
  those controls.
- Models that were still improving when their training ended differ by how fast they learn, which can look like
  context; :attr:`Comparison.still_improving` names them, and :func:`verdict` says so.
"""

import math
import platform
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeAlias, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from entourage.data.encoder import TableColumns
from entourage.data.folds import fold_indices
from entourage.data.resampling import bootstrap_interval, labels_of, sign_flip_p_value, widening_of
from entourage.data.sets import AnySets, Sets, is_frame
from entourage.errors import DataError, UserError, check_choice, check_number
from entourage.estimators.base import SetPredictor
from entourage.estimators.inputs import training_sets
from entourage.selection.candidates import (
    KINDS,
    Candidates,
    check_candidates,
    default_candidates,
    missing_by_default,
    with_outside,
)
from entourage.tasks import task_of
from entourage.tasks.evaluate import metric_of_sets
from entourage.training.parallel import open_pool

__all__ = [
    "KINDS",
    "Candidates",
    "Comparison",
    "compare",
    "default_candidates",
    "refit_chosen",
    "verdict",
    "warnings_of",
]

Floats: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.int64]

LOWER_IS_BETTER = ("ranking_loss",)
LATE_FALL = (
    0.06  # the share of a loss's fall in the last third of the steps from which a training was too short
)

_IN_WORDS = {  # what a metric is called in a sentence, and what a gain of it means
    "ranking_accuracy": ("0/1-ranking accuracy", "of 100 pairs about {:.1f} more are ordered rightly"),
    "ranking_loss": ("0/1-ranking loss", "of 100 pairs about {:.1f} fewer are ordered wrongly"),
    "zero_one_accuracy": ("0/1-accuracy", "of 100 sets about {:.1f} more are ordered all rightly"),
    "top1_accuracy": ("top-1 accuracy", "in about {:.1f} more of 100 sets the best object comes first"),
    "spearman": ("Spearman correlation", ""),
    "kendall_tau": ("Kendall's tau", ""),
    "ndcg": ("NDCG", ""),
    "ndcg@10": ("NDCG@10", ""),
    "reciprocal_rank": ("reciprocal rank", ""),
    "expected_reciprocal_rank": ("expected reciprocal rank", ""),
    "average_precision": ("average precision", ""),
    "accuracy": ("accuracy", "of 100 choices about {:.1f} more are foreseen"),
    "log_likelihood": ("log-likelihood of a choice", ""),
    "f1": ("F1", ""),
    "subset_accuracy": ("subset accuracy", "of 100 subsets about {:.1f} more are all right"),
    "hamming_accuracy": ("share of objects", "of 100 objects about {:.1f} more are rightly chosen or left"),
    "informedness": ("informedness", ""),
}


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
    """Compare models with and without context on the same sets; :func:`verdict` says what came of it.

    Sets that rank no two objects differently say nothing of any model and are left out from the start; of choices,
    those of one object, unless it could have been left, too (``outside``).

    Parameters
    ----------
    sets : Sets with targets; or a frame, whose columns ``set_id``, ``target``, ``situation``, ... name, as for
        :meth:`entourage.Ranker.fit`; ``kind`` then says what the target is
    candidates : by name, an estimator and its kind, "context-free" or "context"; optional
        By default :func:`default_candidates`. Every fit is of a clone with a seed of its own, drawn from
        ``random_state``.
    metrics : what to judge every candidate by, names from :data:`entourage.metrics.METRICS` or of the task
    metric : the one by which candidates are chosen and the context gain is measured; by default ranking_accuracy,
        for choices log_likelihood, for choices of some f1
    kind : what targets are, "rank", "choice" or "subset" (:data:`entourage.tasks.TASKS`)
    outside : whether a set may end without a choice, for ``kind`` "choice". Each `DiscreteChooser` is given the option
        of choosing nothing; candidates that can't have it are left out, and ``left_out`` of the result says so.
        Metrics of rankings leave out the sets in which nothing was chosen.
    folds : how many outer folds, each of which is judged by models that have not seen it
    inner : by how many folds of the training part to choose; 1 for a single split, a fifth held out
    groups : one label a set, or a column of a frame; sets of one label are never parted, and resampled together
    level : of the test, and what the intervals leave out (0.05: intervals of 95 %)
    resamples : how many, for the bootstrap and for the sign flips
    random_state : seeds the folds, the models and the resampling
    workers : fits side by side, in processes of one thread each
    steps, device : of the nets among the default candidates; those that are named keep their own
    on_row : told of each fit as it ends: a row of the result, with the number of ``fits`` in all

    Notes
    -----
    The test is one-sided: the claim is that context helps. Models that use context and
    do *worse* are no evidence about context, only of too little data for them. The interval is
    two-sided, since it says how large the gain may be, either way; a p-value between half the level and
    the level therefore goes with an interval that just reaches below 0. The module says what dependence
    between folds does.

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
    everything, _, groups = training_sets(task, sets, None, situation, groups=groups, table=table)
    telling = np.flatnonzero(task.informative(everything))
    if len(telling) == 0:
        raise DataError(
            f"A comparison needs {task.telling}; there are none. Check the targets, and which objects make a set."
        )
    kept = everything[telling]
    labels = None if groups is None else labels_of(groups, len(everything))[telling]
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
    rivals = {sight: [name for name, (_, its) in candidates.items() if its == sight] for sight in KINDS}
    open_choices = [name for mine in rivals.values() if len(mine) > 1 for name in mine]
    _check_enough(len(kept), labels, folds, inner if open_choices else None, level, task.telling)

    outer = fold_indices(len(kept), folds, groups=labels, random_state=random_state)
    jobs = []
    for i, (train, test) in enumerate(outer):
        jobs += [_Job(name, i, None, train, test) for name in candidates]
        parts = _inner_folds(train, labels, inner, random_state + 1 + i) if open_choices else []
        jobs += [_Job(name, i, j, *part) for name in open_choices for j, part in enumerate(parts)]
    bench = _Bench(kept, dict(candidates), tuple(names), random_state, kind, outside)
    judged: dict[tuple[str, int, int | None], _Judged] = {}
    with open_pool(bench, workers) as pool:
        for job, outcome in pool.run(jobs):
            judged[job.key] = outcome
            if on_row is not None:
                on_row(bench.row(job, outcome) | {"fits": len(jobs)})

    values = {name: {m: np.full(len(everything), np.nan) for m in names} for name in candidates}
    differences = np.full(len(everything), np.nan)
    chosen = []
    sign = -1.0 if metric in LOWER_IS_BETTER else 1.0
    for i, (_, test) in enumerate(outer):
        for name in candidates:
            for m in names:
                values[name][m][telling[test]] = judged[name, i, None].values[m]
        inner_scores = {
            name: sign * _mean([judged[job.key].values[metric] for job in jobs if job.is_inner(name, i)])
            for name in open_choices
        }
        best = {}
        for sight, mine in rivals.items():
            best[sight] = max(mine, key=lambda name: inner_scores.get(name, 0.0))
        chosen.append(best)
        pair = [judged[best[sight], i, None].values[metric] for sight in ("context", "context-free")]
        differences[telling[test]] = sign * (pair[0] - pair[1])

    drawing: dict[str, Any] = {"resamples": resamples, "random_state": random_state}

    def interval(of: Floats) -> tuple[float, float]:
        return bootstrap_interval(of, groups, level=level, **drawing)

    gain, widening = _mean([differences]), widening_of(folds)
    low, high = interval(differences)
    return Comparison(
        metric=metric,
        target_kind=kind,
        outside=outside,
        kinds={name: sight for name, (_, sight) in candidates.items()},
        left_out=left_out,
        still_improving=_still_improving(jobs, judged),
        means={name: {m: _mean([values[name][m]]) for m in names} for name in candidates},
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
        rows=[bench.row(job, judged[job.key]) for job in jobs],
        values=values,
        differences=differences,
    )


def verdict(comparison: "Comparison") -> str:
    """Say in one sentence whether there is a significant context effect, how large, and how sure that is.

    Examples
    --------
    >>> from entourage.estimators.baselines import RandomRanker, RankSVM
    >>> from entourage.data import Sets, make_hypervolume
    >>> sets = Sets.of(*make_hypervolume(100, random_state=0))
    >>> candidates = {"A": (RankSVM(), "context-free"), "B": (RandomRanker(), "context")}
    >>> print(verdict(compare(sets, candidates)))
    No significant context effect: B − A = ..., 95 % CI [...], p = 0.99..., n = 100 sets (0/1-ranking accuracy).
    """
    c = comparison
    significant = c.p_value <= c.level
    low, high = (_signed(end) for end in c.interval)
    name, meaning = _IN_WORDS[c.metric]
    p = "p < 0.001" if c.p_value < 0.001 else f"p = {c.p_value:.3f}"
    with_context = _often([fold["context"] for fold in c.chosen])
    without = _often([fold["context-free"] for fold in c.chosen])
    n = f"n = {int((~np.isnan(c.differences)).sum()):,} sets"
    if c.n_groups is not None:
        n += f" in {c.n_groups:,} groups"
    fewer = ", by which it is lower" if c.metric in LOWER_IS_BETTER else ""
    closely = " (narrowly: the interval is two-sided, the test one-sided)" * (
        significant and c.interval[0] <= 0
    )
    gained = f": {meaning.format(100 * c.gain)}" if significant and meaning else ""
    return (
        f"{'Significant' if significant else 'No significant'} context effect{closely}: {with_context} − {without} = "
        f"{_signed(c.gain, plus=True)}, {100 * (1 - c.level):g} % CI [{low}, {high}], {p}, {n} ({name}{fewer}){gained}."
    )


def warnings_of(comparison: "Comparison") -> list[str]:
    """Return what a reader of the verdict must know besides: candidates left out, training that was too short."""
    told = [f"{name} was left out: {why}." for name, why in comparison.left_out.items()]
    if comparison.still_improving:
        names = list(comparison.still_improving)
        who = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
        verb = "was" if len(names) == 1 else "were"
        steps = max(comparison.still_improving.values())
        told.append(
            f"{who} {verb} still improving when training ended ({steps:,} steps): a short training can look like "
            "context; give more steps (--steps)."
        )
    return told


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
        model = clone(c.candidates[name][0])
        if "random_state" in model.get_params(deep=False):
            place = list(c.candidates).index(name)
            after_all_folds = c.settings["folds"]
            model.set_params(random_state=_seed_of(c.settings["random_state"], place, after_all_folds, 0))
        fitted[kind] = model.fit(Sets.of(sets))
    return fitted


def _signed(value: float, *, plus: bool = False) -> str:
    """Write three digits, with a minus sign that is one."""
    return f"{value:{'+' if plus else ''}.3f}".replace("-", "−")


def _mean(values: Sequence[Floats]) -> float:
    together = np.concatenate(values)
    return float("nan") if np.isnan(together).all() else float(np.nanmean(together))


def _often(names: Sequence[str]) -> str:
    """Name what was chosen most often, and how often where not always."""
    name, times = Counter(names).most_common(1)[0]
    return name if times == len(names) else f"{name} ({times} of {len(names)} folds)"


# --- what is compared -------------------------------------------------------------------------------


def _check_some_chosen(sets: Sets, labels: Index | None) -> None:
    """See that there is a choice in two sets, or groups, for the metrics that order the objects."""
    some = np.logical_or.reduceat(sets.targets == 0, sets.offsets[:-1])
    came = int(some.sum()) if labels is None else len(np.unique(labels[some]))
    if came < 2:
        what = "sets" if labels is None else "groups of sets"
        raise DataError(
            f"A comparison needs at least 2 {what} in which something was chosen; there {'is' if came == 1 else 'are'} "
            f"{came}. Check the targets."
        )


def _check_enough(
    n: int, labels: Index | None, folds: int, inner: int | None, level: float, telling: str
) -> None:
    """See that every fold can be filled, and that the test can reach its level at all."""
    came = n if labels is None else len(np.unique(labels))
    what = telling if labels is None else f"groups of {telling}"
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
    return [(train[fit], train[judge]) for fit, judge in (parts[:1] if inner == 1 else parts)]


@dataclass(frozen=True)
class _Job:
    """One fit: which candidate, on which sets, judged by which others."""

    name: str
    fold: int
    inner: int | None  # None for the fit on the whole training part
    train: Index
    test: Index

    @property
    def key(self) -> tuple[str, int, int | None]:
        return self.name, self.fold, self.inner

    def is_inner(self, name: str, fold: int) -> bool:
        return (self.name, self.fold) == (name, fold) and self.inner is not None


@dataclass(frozen=True)
class _Judged:
    """What came of a fit: each metric of each set it was judged by."""

    values: dict[str, Floats]
    seconds: float
    curve: Floats  # how a net learnt, see _learning_curve


@dataclass(frozen=True)
class _Bench:
    """Everything a fit needs, sent to each worker once."""

    sets: Sets
    candidates: dict[str, tuple[SetPredictor, str]]
    metrics: tuple[str, ...]
    random_state: int
    kind: str
    outside: bool

    def __call__(self, job: _Job) -> _Judged:
        begin = time.perf_counter()
        model = clone(self.candidates[job.name][0])
        if "random_state" in model.get_params(deep=False):
            model.set_params(random_state=self._seed(job))
        try:
            model.fit(self.sets[job.train])
            test = self.sets[job.test]
            scores = model.predict_scores(test)
        except UserError as error:
            raise type(error)(f"{job.name}, fold {job.fold + 1}: {error}") from error
        task = task_of(self.kind, outside=self.outside)
        known = task.metrics | model.task.metrics  # its own first: a threshold counts
        values = {name: metric_of_sets(known[name], test, scores) for name in self.metrics}
        return _Judged(values, time.perf_counter() - begin, _learning_curve(model))

    def row(self, job: _Job, outcome: _Judged) -> dict[str, Any]:
        return {
            "candidate": job.name,
            "kind": self.candidates[job.name][1],
            "fold": job.fold,
            "inner": job.inner,
            "learnt_from": len(job.train),
            "judged_by": len(job.test),
            "means": {name: _mean([values]) for name, values in outcome.values.items()},
            "seconds": round(outcome.seconds, 3),
        }

    def _seed(self, job: _Job) -> int:
        place = list(self.candidates).index(job.name)
        return _seed_of(self.random_state, place, job.fold, 0 if job.inner is None else job.inner + 1)


def _seed_of(*entropy: int) -> int:
    """Draw a seed of its own for each fit, whichever worker does it and when."""
    return int(np.random.default_rng(entropy).integers(2**31))


def _learning_curve(model: SetPredictor) -> Floats:
    """Return steps, training loss and score of the held-out sets, (evaluations, 3); none where nothing is held out."""
    history = [row for row in getattr(model, "history_", []) if "score" in row]
    return np.array([[row["step"], row["loss"], row["score"]] for row in history]).reshape(-1, 3)


def _still_improving(
    jobs: Sequence[_Job], judged: dict[tuple[str, int, int | None], _Judged]
) -> dict[str, int]:
    """Return the candidates that were still improving as their training ended, and after how many steps that was.

    Both must hold: in two fifths of a candidate's fits, more than by chance, the best held-out score came in the last
    third of the steps, so they don't overfit yet; and the training loss fell there by a share of its whole fall that
    matters, and that is beyond noise: more than two standard errors over the fits. A held-out score alone is too
    noisy, since small data hold out a handful of sets.
    """
    found = {}
    for name in dict.fromkeys(job.name for job in jobs):
        curves = [judged[job.key].curve for job in jobs if job.name == name]
        curves = [curve for curve in curves if len(curve) >= 6]
        if len(curves) < 2:
            continue
        late, falls = [], []
        for steps, losses, scores in (curve.T for curve in curves):
            part = steps / steps[-1]
            late.append(part[scores.argmax()] > 2 / 3)
            before, after = losses[(part > 1 / 2) & (part <= 2 / 3)], losses[part > 5 / 6]
            whole = losses[0] - after.mean()
            falls.append((before.mean() - after.mean()) / whole if len(before) and whole > 0 else 0.0)
        error = float(np.std(falls, ddof=1)) / math.sqrt(len(falls))
        if np.mean(late) >= 0.4 and np.mean(falls) > max(2 * error, LATE_FALL):
            found[name] = int(max(curve[-1, 0] for curve in curves))
    return found


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in ("entourage", "numpy", "scikit-learn", "torch", "lightgbm"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # an extra that is not there, or a checkout that is not installed
            continue
    return found


# --- the result -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """What :func:`compare` found; :func:`verdict` puts it into a sentence."""

    metric: str  # by which was chosen, and of which the gain is
    target_kind: str  # what targets are: "rank", "relevance", "choice" or "subset"
    outside: bool  # whether a set might end without a choice
    kinds: dict[str, str]  # of each candidate, by name
    left_out: dict[str, str]  # candidates that could not take part, and why
    still_improving: dict[str, int]  # candidates whose training was too short, and of how many steps it was
    means: dict[str, dict[str, float]]  # by candidate, then by metric
    intervals: dict[str, dict[str, tuple[float, float]]]
    chosen: list[dict[str, str]]  # for each outer fold the best of either kind, by its inner folds
    gain: float  # mean per-set difference of those two; positive where context is worth something
    interval: tuple[float, float]
    p_value: float  # one-sided
    level: float
    n_sets: int  # that say anything, such as rank two objects differently; the others took no part
    n_groups: int | None
    settings: dict[str, Any]
    seconds: float
    versions: dict[str, str]
    candidates: dict[str, tuple[SetPredictor, str]] = field(repr=False)  # by name, as they were compared
    rows: list[dict[str, Any]] = field(repr=False)  # one a fit
    values: dict[str, dict[str, Floats]] = field(repr=False)  # of each set, NaN where undefined
    differences: Floats = field(repr=False)  # what context is worth on each set, NaN where undefined

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
