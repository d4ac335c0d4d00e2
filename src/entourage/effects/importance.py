"""Permutation importance within sets: how much worse a model predicts when a column is shuffled.

A column of the objects is shuffled among the objects of its own set: it keeps its values there, but no longer says
which object has which. A column of the situation is shuffled among sets. What is shuffled is a column of the table: a
number with the mark that it was missing, all levels of a category, a code.

Columns that say the same share their importance: shuffling one of them leaves the other to the model, so that both may
seem to matter little.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entourage.data.encoder import TableEncoder
from entourage.data.resampling import bootstrap_interval, labels_of
from entourage.data.sets import AnySets, Sets, is_frame
from entourage.effects.content_order import chunks_of_sets, content_order, in_content_order
from entourage.errors import check_choice, check_number
from entourage.estimators.base import NotFittedError, SetPredictor
from entourage.estimators.inputs import encoder_of, training_sets
from entourage.tasks.evaluate import mean_over_sets, metric_of_sets
from entourage.tasks.ranking_metrics import LOWER_IS_BETTER, Metric

__all__ = ["ColumnImportance", "Importance", "importance"]

Floats: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.int64]

_CHUNK = 4_000_000  # numbers in a temporary array, so that memory stays bounded


@dataclass(frozen=True)
class ColumnImportance:
    """What shuffling one column costs."""

    name: str
    role: str  # "object" or "situation"
    drop: float  # how much worse the metric is, as a mean over sets; negative where it is better
    interval: tuple[float, float]
    constant: bool = (
        False  # the same for all objects of every set (of all sets, for a situation): nothing to shuffle
    )

    @property
    def reaches_zero(self) -> bool:
        """Whether the interval reaches 0: no evidence that the model predicts better by this column."""
        return self.interval[0] <= 0

    @property
    def note(self) -> str:
        """What is to be said about it; nothing where the column matters."""
        if self.constant:
            return "constant within sets" if self.role == "object" else "the same for all sets"
        return "interval reaches 0" if self.reaches_zero else ""


@dataclass(frozen=True)
class Importance:
    """The result of :func:`importance`.

    Attributes
    ----------
    metric : what was measured
    baseline : its mean over sets before anything is shuffled
    columns : the most important first
    repeats : permutations of each column
    level : intervals are of 1 - level
    n_sets : sets in which the metric is defined
    n_groups : that were resampled as a whole; None without groups
    random_state : seed
    """

    metric: str
    baseline: float
    columns: tuple[ColumnImportance, ...]
    repeats: int
    level: float
    n_sets: int
    n_groups: int | None
    random_state: int

    def __getitem__(self, name: str) -> ColumnImportance:
        """Return the importance of the column of this name."""
        found = {column.name: column for column in self.columns}
        return found[check_choice("name", name, found)]

    def __str__(self) -> str:
        """Return a table as text."""
        worse = "rise" if self.metric in LOWER_IS_BETTER else "drop"
        width = max(len("column"), *(len(column.name) for column in self.columns))
        ends = f"{100 * (1 - self.level):g} % interval"
        lines = [
            f"{self.metric}: {self.baseline:.4f} on {self.n_sets:,} sets; {self.repeats} permutations of each column",
            f"{'column':<{width}}  {worse:>8}  {ends:<18}",
        ]
        for column in self.columns:
            low, high = column.interval
            lines.append(
                f"{column.name:<{width}}  {column.drop:>8.4f}  {f'[{low:.4f}, {high:.4f}]':<18}  {column.note}"
            )
        return "\n".join(line.rstrip() for line in lines)

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data, ready for ``json.dumps``."""
        return {
            "metric": self.metric,
            "baseline": self.baseline,
            "repeats": self.repeats,
            "level": self.level,
            "n_sets": self.n_sets,
            "n_groups": self.n_groups,
            "random_state": self.random_state,
            "columns": [
                {
                    "name": column.name,
                    "role": column.role,
                    "drop": column.drop,
                    "interval": list(column.interval),
                    "constant": column.constant,
                    "reaches_zero": column.reaches_zero,
                }
                for column in self.columns
            ],
        }


@dataclass(frozen=True)
class _Span:
    """The numbers that a column of the table became: a stretch of an object's features, or of the situation."""

    name: str
    role: str
    begin: int
    end: int


def importance(
    model: SetPredictor,
    X: AnySets,
    y: Any = None,
    *,
    situation: ArrayLike | None = None,
    metric: str | None = None,
    repeats: int = 5,
    groups: ArrayLike | str | None = None,
    sample_weight: ArrayLike | str | None = None,
    level: float = 0.05,
    random_state: int = 0,
    on_scoring: Callable[[int, int], None] | None = None,
) -> Importance:
    r"""Return how much worse a fitted model predicts when one column is shuffled within sets.

    With :math:`q_i` the metric on set i and :math:`q_{ir}^c` that after the r-th permutation of column c, the
    importance of c is the mean over sets of

    .. math:: \frac{1}{R} \sum_{r=1}^{R} (q_i - q_{ir}^c),

    with the opposite sign for metrics that are better when lower. Its interval comes from resampling sets, or groups.

    Give sets that the model has not learnt from: on its training sets a model seems to need what it has overfitted.
    Sets of one object, and columns that are the same for all objects of a set, have nothing to shuffle: exactly 0. The
    intervals are of one column each, and of this model: they say nothing about what another model would need.

    Parameters
    ----------
    model : any fitted estimator: nets, baselines, choice models, blends
    X, y, situation : sets with targets, as `fit` takes them; a table needs the target that the model learnt from
    metric : by default the one that models of the task are compared by
    repeats : permutations of each column
    groups : one label a set, or a column of a table; sets of one label are resampled together
    sample_weight : one a set, or a column of a table; sets of weight 0 are left out
    level : significance level α; intervals are of 1 - level
    random_state : seed of permutations and resampling. The order of sets, and of objects in them, has no effect.
    on_scoring : called with how much has been scored and with how much there is in all: at first (0, all)

    Examples
    --------
    >>> from entourage.baselines import RankSVM
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 5, 2))
    >>> y = (-X[:, :, 1]).argsort(1).argsort(1)  # more of the second feature is better; the first is noise
    >>> found = importance(RankSVM().fit(X[:50], y[:50]), X[50:], y[50:])
    >>> [column.name for column in found.columns], found["x1"].drop > 0.4, found["x0"].reaches_zero
    (['x1', 'x0'], True, True)
    """
    if not hasattr(model, "n_features_in_"):
        raise NotFittedError(f"This {type(model).__name__} is not fitted yet; call fit(X, y) first.")
    task = model.task
    metric = check_choice("metric", task.searched_by if metric is None else metric, task.metrics)
    check_number("repeats", repeats, least=1, whole=True)
    check_number("level", level, above=0, below=1)
    check_number("random_state", random_state, least=0, whole=True)
    encoder = encoder_of(model) if is_frame(X) else None
    sets, weights, groups = training_sets(
        task, X, y, situation, sample_weight=sample_weight, groups=groups, encoder=encoder
    )
    labels = None if groups is None else labels_of(groups, len(sets))
    order = content_order(sets, labels, weights)
    if weights is not None:
        order = order[weights[order] > 0]  # they lend no situation either
        weights = weights[order]
    if labels is not None:
        labels = _by_appearance(labels[order])
    spans = _spans(model, sets)
    before, drops, constant = _drops(
        model, sets, order, spans, task.metrics[metric], repeats, random_state, on_scoring
    )
    sign = -1.0 if metric in LOWER_IS_BETTER else 1.0
    columns = [
        ColumnImportance(
            span.name,
            span.role,
            drop=mean_over_sets(sign * mine, weights),
            interval=bootstrap_interval(
                sign * mine, labels, weights=weights, level=level, random_state=random_state
            ),
            constant=bool(same),
        )
        for span, mine, same in zip(spans, drops, constant, strict=True)
    ]
    return Importance(
        metric=metric,
        baseline=mean_over_sets(before, weights),
        columns=tuple(sorted(columns, key=lambda column: -column.drop)),
        repeats=repeats,
        level=level,
        n_sets=int((~np.isnan(before)).sum()),
        n_groups=None if labels is None else len(np.unique(labels[~np.isnan(before)])),
        random_state=random_state,
    )


def _by_appearance(labels: Index) -> Index:
    """Return labels numbered by their first appearance."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


def _spans(model: SetPredictor, sets: Sets) -> list[_Span]:
    """Return which numbers belong to one column."""
    known: TableEncoder | None = sets.encoder
    if known is None and model.table_ is not None:
        known = encoder_of(model)
    found = []
    for role, width in (("object", sets.n_features), ("situation", sets.n_situation_features)):
        if known is None:
            short = "x" if role == "object" else "situation "
            found += [_Span(f"{short}{i}", role, i, i + 1) for i in range(width)]
            continue
        at = 0
        for column in known.columns:
            if column.role == role:
                found.append(_Span(column.name, role, at, at + column.width))
                at += column.width
    return found


def _drops(
    model: SetPredictor,
    sets: Sets,
    order: Index,
    spans: list[_Span],
    metric: Metric,
    repeats: int,
    random_state: int,
    on_scoring: Callable[[int, int], None] | None,
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Return the metric of each set, its mean drop by column, (columns, sets), and which columns are constant.

    The same sets are scored together before and after, so that what a model doesn't use changes no bit.
    """
    before = np.empty(len(order))
    drops = np.zeros((len(spans), len(order)))
    constant = np.ones(len(spans), dtype=bool)
    lenders = [np.random.default_rng([random_state, r]).permutation(len(order)) for r in range(repeats)]
    chunks = chunks_of_sets(sets.sizes[order], max(1, _CHUNK // max(1, sets.n_features)))
    done, total = 0, len(chunks) * (1 + repeats * len(spans))
    if on_scoring is not None:
        on_scoring(done, total)
    for number, (begin, end) in enumerate(chunks):
        here = slice(begin, end)
        part = in_content_order(sets[order[here]])
        before[here] = metric_of_sets(metric, part, model.predict_scores(part))
        owner = np.repeat(np.arange(len(part)), part.sizes)
        shuffles = [
            np.lexsort((np.random.default_rng([random_state, r, number + 1]).random(len(owner)), owner))
            for r in range(repeats)
        ]
        drops[:, here] = np.where(np.isnan(before[here]), np.nan, 0.0)
        done += 1
        for c, span in enumerate(spans):
            varies = _varies(part, sets, span)
            constant[c] &= not varies
            for r in range(repeats):
                if varies:
                    lent = None if sets.situation is None else sets.situation[order[lenders[r][here]]]
                    shuffled = _shuffled(part, span, shuffles[r], lent)
                    after = metric_of_sets(metric, part, model.predict_scores(shuffled))
                    drops[c, here] += (before[here] - after) / repeats
                done += 1
                if on_scoring is not None:
                    on_scoring(done, total)
    return before, drops, constant


def _varies(part: Sets, sets: Sets, span: _Span) -> bool:
    """Whether there is anything to shuffle: among the objects of a set in this part, or among all sets."""
    if span.role == "situation":
        values = sets.situation[:, span.begin : span.end]  # type: ignore[index]
        return bool((values != values[:1]).any())
    values = part.objects[:, span.begin : span.end]
    return bool((values != np.repeat(values[part.offsets[:-1]], part.sizes, axis=0)).any())


def _shuffled(part: Sets, span: _Span, rows: Index, lent: NDArray[Any] | None) -> Sets:
    """Return sets with one column taken from other objects of the set (rows), or from the situation of other sets."""
    mine = slice(span.begin, span.end)
    if span.role == "situation":
        situation = np.array(part.situation)
        situation[:, mine] = lent[:, mine]  # type: ignore[index]
        return part.with_features(part.objects, situation)
    objects = part.objects.copy()
    objects[:, mine] = objects[rows, mine]
    return part.with_features(objects, part.situation)
