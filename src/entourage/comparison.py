r"""Does context matter here, and how much is it worth? Models with and without it on the same sets.

Each candidate is fitted and judged by cross-validation. In every outer fold the best context-free and
the best context-dependent candidate are chosen by inner folds of the training part alone; what the
second is worth more than the first, on each set of the fold, is the *context gain*. Its mean comes with
a bootstrap interval and the p-value of a sign-flip test.

What the test takes for granted, and what it doesn't see:

- The units (sets, or groups where they are given) are independent. Sets of one user, season or query are
  not: give ``groups``.
- Per-set differences of one fold come from one pair of fitted models, of which one may be better by the
  luck of its training, and models of different folds share most of their training data. Taken as
  independent, the differences seem surer than they are: on 195 simulated data sets without any effect
  of context, an uncorrected test found one in 17. Interval and p-value are therefore widened as Nadeau
  and Bengio (2003) propose: the variance of the mean is taken to be
  :math:`\sigma^2 (1/n + 1/n_{\mathrm{train}})` instead of :math:`\sigma^2 / n`, which for five folds makes the
  standard error half as large again. ``benchmarks/verdict.py`` measures how often the verdict is wrong.
- A gain means that these models do better with context than those do without. Where the context-free
  candidates are weaker for other reasons, a smaller net or another loss, context can seem to matter: a
  narrow FETA beats a narrow context-free net of the same width, since it has twice the weights. So each
  context-dependent net should meet its twin, :class:`Alone`: the same net with the same weights, in
  which the company of an object is the object itself. The default candidates include those twins.
"""

import importlib.util
import math
import multiprocessing
import platform
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri
from sklearn.base import clone

from entourage.axes import Mask, Objects, Scores
from entourage.baselines import LambdaMART, RankSVM
from entourage.errors import DataError, ParameterError, UserError, check_choice, check_number
from entourage.estimators import Ranker
from entourage.metrics import METRICS
from entourage.nets import FATE, FETA, ContextFree, Net, Scorer
from entourage.predictor import SetPredictor
from entourage.sets import AnySets, Seed, Sets
from entourage.tasks import Ranking
from entourage.tuning import fold_indices

__all__ = [
    "KINDS",
    "Alone",
    "Candidates",
    "Comparison",
    "bootstrap_interval",
    "compare",
    "default_candidates",
    "sign_flip_p_value",
    "verdict",
    "widening_of",
]

Floats: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.int64]
Candidates: TypeAlias = Mapping[str, tuple[SetPredictor, str]]

#: What a candidate may be: it scores each object alone, or in the company of its set.
KINDS = ("context-free", "context")

LOWER_IS_BETTER = ("ranking_loss",)
ENUMERATED = 14  # with at most so many units, all 2^14 sign flips are gone through
_CHUNK = 4_000_000  # numbers in a temporary array, so that memory stays bounded

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
}


def compare(
    sets: AnySets,
    candidates: Candidates | None = None,
    *,
    metrics: Sequence[str] = ("ranking_accuracy", "spearman", "top1_accuracy", "ndcg"),
    metric: str = "ranking_accuracy",
    folds: int = 5,
    inner: int = 3,
    groups: ArrayLike | None = None,
    level: float = 0.05,
    resamples: int = 2000,
    random_state: int = 0,
    workers: int = 1,
    on_row: Callable[[dict[str, Any]], None] | None = None,
) -> "Comparison":
    """Compare models with and without context on the same sets; :func:`verdict` says what came of it.

    Sets that rank no two objects differently say nothing of any model and are left out from the start.

    Parameters
    ----------
    sets : Sets with targets
    candidates : by name, an estimator and its kind, "context-free" or "context"; optional
        By default :func:`default_candidates`. Every fit is of a clone with a seed of its own, drawn from
        ``random_state``.
    metrics : what to judge every candidate by, names from :data:`entourage.metrics.METRICS`
    metric : the one by which candidates are chosen and the context gain is measured
    folds : how many outer folds, each of which is judged by models that have not seen it
    inner : by how many folds of the training part to choose; 1 for a single split, a fifth held out
    groups : one label a set; sets of one label are never parted, and resampled together
    level : of the test, and what the intervals leave out (0.05: intervals of 95 %)
    resamples : how many, for the bootstrap and for the sign flips
    random_state : seeds the folds, the models and the resampling
    workers : fits side by side, in processes of one thread each
    on_row : told of each fit as it ends: a row of the result, with the number of ``fits`` in all

    Notes
    -----
    The test is one-sided: the claim is that context is worth something. Models that look for context and
    do *worse* are no evidence about context, only of too little data for them. The interval is
    two-sided, since it says how large the gain may be, either way; a p-value between half the level and
    the level therefore goes with an interval that just reaches below 0. The module says what dependence
    between folds does.

    Examples
    --------
    >>> from entourage.baselines import RankSVM
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
    check_choice("metric", metric, METRICS)
    names = list(dict.fromkeys([metric, *metrics]))
    for name in names:
        check_choice("metrics", name, METRICS)
    check_number("folds", folds, least=2, whole=True)
    check_number("inner", inner, least=1, whole=True)
    check_number("level", level, above=0, below=0.5)
    check_number("resamples", resamples, least=math.ceil(1 / level) - 1, whole=True)
    check_number("random_state", random_state, least=0, whole=True)
    check_number("workers", workers, least=1, whole=True)
    everything = Ranking.check(Sets.of(sets))
    telling = np.flatnonzero(Ranking.informative(everything))
    if len(telling) == 0:
        raise DataError(
            "A comparison needs sets that rank two objects differently; none of these does. "
            "Check that the targets are ranks within each set."
        )
    kept = everything[telling]
    labels = None if groups is None else _labels(groups, len(everything))[telling]
    left_out: dict[str, str] = {}
    if candidates is None:
        candidates = default_candidates(len(kept))
        if "LambdaMART" not in candidates:
            left_out["LambdaMART"] = "LightGBM is not installed: run pip install 'entourage[boost]'"
    _check_candidates(candidates)
    rivals = {kind: [name for name, (_, its) in candidates.items() if its == kind] for kind in KINDS}
    open_choices = [name for mine in rivals.values() if len(mine) > 1 for name in mine]
    _check_enough(len(kept), labels, folds, inner if open_choices else None, level)

    outer = fold_indices(len(kept), folds, groups=labels, random_state=random_state)
    jobs = []
    for i, (train, test) in enumerate(outer):
        jobs += [_Job(name, i, None, train, test) for name in candidates]
        parts = _inner_folds(train, labels, inner, random_state + 1 + i) if open_choices else []
        jobs += [_Job(name, i, j, *part) for name in open_choices for j, part in enumerate(parts)]
    bench = _Bench(kept, dict(candidates), tuple(names), random_state)
    judged: dict[tuple[str, int, int | None], _Judged] = {}
    for job, outcome in _run(bench, jobs, workers):
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
        for kind, mine in rivals.items():
            best[kind] = max(mine, key=lambda name: inner_scores.get(name, 0.0))
        chosen.append(best)
        pair = [judged[best[kind], i, None].values[metric] for kind in ("context", "context-free")]
        differences[telling[test]] = sign * (pair[0] - pair[1])

    drawing: dict[str, Any] = {"resamples": resamples, "random_state": random_state}

    def interval(of: Floats) -> tuple[float, float]:
        return bootstrap_interval(of, groups, level=level, **drawing)

    gain, widening = _mean([differences]), widening_of(folds)
    low, high = interval(differences)
    return Comparison(
        metric=metric,
        kinds={name: kind for name, (_, kind) in candidates.items()},
        left_out=left_out,
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
        rows=[bench.row(job, judged[job.key]) for job in jobs],
        values=values,
        differences=differences,
    )


def verdict(comparison: "Comparison") -> str:
    """Say in one sentence whether context matters, how much it is worth, and how sure that is.

    Examples
    --------
    >>> from entourage.baselines import RandomRanker, RankSVM
    >>> from entourage.data import Sets, make_hypervolume
    >>> sets = Sets.of(*make_hypervolume(100, random_state=0))
    >>> candidates = {"A": (RankSVM(), "context-free"), "B": (RandomRanker(), "context")}
    >>> print(verdict(compare(sets, candidates)))
    No evidence that context matters at the 5 % level: ...
    """
    c = comparison
    low, high = c.interval
    name, meaning = _IN_WORDS[c.metric]
    p = "p < 0.001" if c.p_value < 0.001 else f"p = {c.p_value:.3f}"
    with_context = _often([fold["context"] for fold in c.chosen])
    without = _often([fold["context-free"] for fold in c.chosen])
    change = "reduction" if c.metric in LOWER_IS_BETTER else "gain"
    size = f"a {change} of {c.gain:.3f} [{low:.3f}, {high:.3f}] in {name}, {p}, over {c.n_sets:,} sets"
    if c.p_value <= c.level:
        narrow = ", by a narrow margin" if low <= 0 else ""
        worth = f": {meaning.format(100 * c.gain)}" if meaning else ""
        return (
            f"Context matters here{narrow}: objects are ranked better in each other's company "
            f"({with_context}) than alone ({without}), {size}{worth}."
        )
    bound = f"; what context is worth to these models is hardly above {high:.3f}" if high > 0 else ""
    return (
        f"No evidence that context matters at the {100 * c.level:g} % level: ranking objects in each "
        f"other's company ({with_context}) instead of alone ({without}) brings {size}{bound}."
    )


def default_candidates(n_sets: int) -> dict[str, tuple[SetPredictor, str]]:
    """Return the models to compare where none are named, with steps that suit so many sets.

    Context-free are a linear model (RankSVM: convex, so that nothing hangs on a seed or on the number of
    steps), a net, LambdaMART where LightGBM is installed, and the twins of FATE and of FETA: the same
    nets under the same loss, to which every object is shown :class:`Alone`. What FATE and FETA are worth
    more than their twins is then worth of context, not of a larger net.

    Nets train in batches of 64 sets for 60 passes through the data, but for 400 steps at least, below
    which they hardly leave their start, and for 4,000 at most, the default of :class:`entourage.Ranker`.
    They stop earlier by a tenth of their training sets that they hold out.

    Examples
    --------
    >>> for name, (model, kind) in default_candidates(1000).items():
    ...     print(name, "|", kind, "|", getattr(model, "steps", ""))
    linear | context-free |
    ContextFree | context-free | 938
    FATE, alone | context-free | 938
    FETA, alone | context-free | 938
    LambdaMART | context-free |
    FATE | context | 938
    FETA | context | 938
    """
    check_number("n_sets", n_sets, least=1, whole=True)
    batch_size = 64
    steps = min(max(math.ceil(60 * n_sets / batch_size), 400), 4000)

    def net(which: Any) -> Ranker:
        return Ranker(which, steps=steps, batch_size=batch_size)

    candidates: dict[str, tuple[SetPredictor, str]] = {
        "linear": (RankSVM(), "context-free"),
        "ContextFree": (net(ContextFree()), "context-free"),
        "FATE, alone": (net(Alone(FATE())), "context-free"),
        "FETA, alone": (net(Alone(FETA())), "context-free"),
    }
    if importlib.util.find_spec("lightgbm") is not None:
        candidates["LambdaMART"] = (LambdaMART(), "context-free")
    return candidates | {"FATE": (net(FATE()), "context"), "FETA": (net(FETA()), "context")}


class Alone(Net):
    r"""The twin of a net, blind to context: each object is scored in the company of copies of itself.

    .. math:: U_0(x) = U(x, \{x, \ldots, x\})

    It has the weights of the net it is made from, all of them in use, but the score of an object no
    longer depends on the others: what the net is worth more than its twin is worth of context.

    Parameters
    ----------
    net : FATE(), FETA(), ...

    Examples
    --------
    >>> scorer = Alone(FATE(width=8)).build(n_features=2, generator=torch.Generator().manual_seed(0))
    >>> objects = torch.rand(1, 5, 2)
    >>> torch.allclose(scorer(objects)[:, :3], scorer(objects[:, :3]))
    True
    """

    def __init__(self, net: Net) -> None:
        self.net = net

    def build(self, n_features: int, generator: torch.Generator) -> Scorer:
        """Make the module."""
        company = getattr(self.net, "order", 1)  # a FETA of order k looks at k others at a time
        return _AloneScorer(self.net.build(n_features, generator), copies=1 + company)


class _AloneScorer(Scorer):
    def __init__(self, scorer: Scorer, *, copies: int) -> None:
        super().__init__()
        self.scorer, self.copies = scorer, copies
        self.stackable = scorer.stackable

    def forward(self, objects: Objects, mask: Mask | None = None) -> Scores:
        n, m, d = objects.shape
        alike = objects.reshape(n * m, 1, d).expand(-1, self.copies, -1)  # (n m, copies, d)
        there = None if mask is None else mask.reshape(n * m, 1).expand(-1, self.copies)
        scores: torch.Tensor = self.scorer(alike, there)
        return scores[:, 0].reshape(n, m)


# --- the statistics ---------------------------------------------------------------------------------


def bootstrap_interval(
    values: ArrayLike,
    clusters: ArrayLike | None = None,
    *,
    level: float = 0.05,
    resamples: int = 2000,
    random_state: Seed = 0,
) -> tuple[float, float]:
    r"""Return the bootstrap interval of a mean that leaves out ``level``, half of it on either side.

    Values are drawn anew with replacement, whole clusters at a time where those are given. The interval
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
    check_number("level", level, above=0, below=1)
    check_number("resamples", resamples, least=1, whole=True)
    sums, sizes = _units(values, clusters)
    count = len(sums)
    if count < 2:
        raise DataError(
            f"An interval needs at least 2 {'values' if clusters is None else 'clusters'}, to tell "
            f"their spread; there is {count}. Give more data."
        )
    mean = sums.sum() / sizes.sum()
    others = (sums.sum() - sums) / (sizes.sum() - sizes)  # the mean without each unit
    influence = others.mean() - others
    squares = np.square(influence).sum()
    if squares <= (1e-12 * np.abs(sums).max()) ** 2:  # all alike, up to rounding
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
    r"""Return by how much the standard error of a mean over ``folds`` is larger than if its sets were independent.

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

    Were there no difference, each could as well have had the other sign: how often is the sum of all,
    with signs dealt at random, at least as large as it is? Where clusters are given, their sums are
    flipped. At most 14 units are enumerated, and p is exact; otherwise it is ``(b + 1) / (resamples +
    1)`` for ``b`` random flips that reach the sum, which keeps the test valid (Phipson and Smyth, 2010).

    Exact where differences are symmetric about 0 under the hypothesis; for a mean of 0 alone, right in
    the limit of many units.

    Parameters
    ----------
    differences : one a set; NaN is left out
    clusters : one label a set, optional
    alternative : {"greater", "two-sided"}
    widening : how much wider than the flipped sums those of the hypothesis are, for units that are not quite
        independent; see :func:`widening_of`
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


def _units(values: ArrayLike, clusters: ArrayLike | None) -> tuple[Floats, Floats]:
    """Return the sum and the number of defined values of each unit: a cluster, or a value by itself."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise DataError(f"One value a set is needed, an array of one axis; got shape {array.shape}.")
    defined = ~np.isnan(array)
    if clusters is None:
        return array[defined], np.ones(int(defined.sum()))
    labels = _labels(clusters, len(array))[defined]
    labels = np.unique(labels, return_inverse=True)[1]  # a cluster without a defined value is no unit
    sums: Floats = np.bincount(labels, weights=array[defined]).astype(np.float64)
    return sums, np.bincount(labels).astype(np.float64)


def _labels(groups: ArrayLike, n_sets: int) -> Index:
    labels = np.asarray(groups)
    if labels.shape != (n_sets,):
        raise DataError(f"groups needs one label a set, shape {(n_sets,)}; got {labels.shape}.")
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def _chunks(resamples: int, count: int) -> Iterator[int]:
    step = max(1, _CHUNK // count)
    return (min(step, resamples - start) for start in range(0, resamples, step))


def _mean(values: Sequence[Floats]) -> float:
    return float(np.nanmean(np.concatenate(values)))


def _often(names: Sequence[str]) -> str:
    """Name what was chosen most often, and how often where not always."""
    name, times = Counter(names).most_common(1)[0]
    return name if times == len(names) else f"{name} in {times} of {len(names)} folds"


# --- what is compared -------------------------------------------------------------------------------


def _check_candidates(candidates: Candidates) -> None:
    for name, entry in candidates.items():
        if not (isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], SetPredictor)):
            raise ParameterError(
                f"Candidate {name!r} needs an estimator and its kind, such as (Ranker(FATE()), "
                f"'context'); got {entry!r}."
            )
        check_choice(f"the kind of {name!r}", entry[1], KINDS)
    missing = set(KINDS) - {kind for _, kind in candidates.values()}
    if missing:
        raise ParameterError(
            f"A comparison needs a candidate of either kind; there is no "
            f"{' and no '.join(sorted(missing))} one. Add it to candidates."
        )


def _check_enough(n: int, labels: Index | None, folds: int, inner: int | None, level: float) -> None:
    """See that every fold can be filled, and that the test can reach its level at all."""
    came = n if labels is None else len(np.unique(labels))
    what = "sets that rank two objects differently" if labels is None else "groups of such sets"
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


@dataclass(frozen=True)
class _Bench:
    """Everything a fit needs, sent to each worker once."""

    sets: Sets
    candidates: dict[str, tuple[SetPredictor, str]]
    metrics: tuple[str, ...]
    random_state: int

    def run(self, job: _Job) -> _Judged:
        begin = time.perf_counter()
        model = clone(self.candidates[job.name][0])
        if "random_state" in model.get_params(deep=False):
            model.set_params(random_state=self._seed(job))
        try:
            model.fit(self.sets[job.train])
            if getattr(model, "interrupted_", False):  # a Ranker keeps what it has at Ctrl-C
                raise KeyboardInterrupt
            test = self.sets[job.test]
            scores = model.predict_scores(test)
        except UserError as error:
            raise type(error)(f"{job.name}, fold {job.fold + 1}: {error}") from error
        values = {name: np.full(len(test), np.nan) for name in self.metrics}
        for chosen, rows in test.by_size():
            for name in self.metrics:
                truth = test.targets[rows]  # type: ignore[index]
                values[name][chosen] = METRICS[name](scores[rows], truth, per_set=True)
        return _Judged(values, time.perf_counter() - begin)

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
        """Draw a seed of its own for each fit, whichever worker does it and when."""
        place = list(self.candidates).index(job.name)
        entropy = [self.random_state, place, job.fold, 0 if job.inner is None else job.inner + 1]
        return int(np.random.default_rng(entropy).integers(2**31))


def _run(bench: _Bench, jobs: Sequence[_Job], workers: int) -> Iterator[tuple[_Job, _Judged]]:
    if workers == 1:
        yield from ((job, bench.run(job)) for job in jobs)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        workers, mp_context=context, initializer=_start_worker, initargs=(bench,)
    ) as pool:
        try:
            futures = {pool.submit(_run_in_worker, job): job for job in jobs}
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


_worker: _Bench | None = None


def _start_worker(bench: _Bench) -> None:
    global _worker
    torch.set_num_threads(1)
    _worker = bench


def _run_in_worker(job: _Job) -> _Judged:
    return _worker.run(job)  # type: ignore[union-attr]


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
    kinds: dict[str, str]  # of each candidate, by name
    left_out: dict[str, str]  # candidates that could not take part, and why
    means: dict[str, dict[str, float]]  # by candidate, then by metric
    intervals: dict[str, dict[str, tuple[float, float]]]
    chosen: list[dict[str, str]]  # for each outer fold the best of either kind, by its inner folds
    gain: float  # mean per-set difference of those two; positive where context is worth something
    interval: tuple[float, float]
    p_value: float  # one-sided
    level: float
    n_sets: int  # that rank two objects differently; the others took no part
    n_groups: int | None
    settings: dict[str, Any]
    seconds: float
    versions: dict[str, str]
    rows: list[dict[str, Any]] = field(repr=False)  # one a fit
    values: dict[str, dict[str, Floats]] = field(repr=False)  # of each set, NaN where undefined
    differences: Floats = field(repr=False)  # what context is worth on each set, NaN where undefined

    @property
    def names(self) -> list[str]:
        """The candidates, in their order."""
        return list(self.kinds)

    def to_json(self, *, per_set: bool = False) -> dict[str, Any]:
        """Return everything as plain data, ready for ``json.dumps``; ``per_set`` adds each set's values.

        What is undefined is None there, since JSON has no NaN.
        """
        plain: dict[str, Any] = {
            "verdict": verdict(self),
            "metric": self.metric,
            "kinds": dict(self.kinds),
            "left_out": dict(self.left_out),
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
            "rows": [dict(row) for row in self.rows],
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
