"""Which set to offer: the assortment of the largest revenue, share or consumer surplus."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from entourage.decisions.assortment_problem import AssortmentProblem, make_problem
from entourage.decisions.candidates import candidates_of, numbers_of_objects
from entourage.decisions.fractional import Found, best_of_logit, best_of_nests
from entourage.decisions.intervals import Estimate, intervals_of
from entourage.decisions.market import Market, market_of
from entourage.decisions.search import Progress, branch_and_bound, count_sets, enumerate_sets, exchange
from entourage.decisions.structure import Structure, structure_of
from entourage.errors import ParameterError, check_choice, check_number
from entourage.training.progress import in_words

__all__ = ["METHODS", "MOST_SETS", "Assortment", "best_assortment", "seconds_to_enumerate"]

Floats: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.int64]

METHODS = ("auto", "enumeration", "greedy")
MOST_SETS = 1 << 21  # sets times situations that "auto" enumerates
_AGREE = (
    1e-4  # by how much the closed form and the model may differ, relative: nets compute in single precision
)
_LONG = 1 << 15  # sets times situations that take a while


@dataclass(frozen=True, eq=False)
class Assortment:
    """The best set found, and what is known of it.

    Attributes
    ----------
    objects : positions of its objects, ascending; of a table with several sets, positions in the first of them
    value : its expected revenue, its share, or its consumer surplus (logsum), on average over situations
    method : how it was found
    exact : whether it is proven to be the best
    bound : no set is better than this; None where no bound is known
    objective : "revenue", "share" or "surplus"
    probabilities : how often each of its objects is chosen, on average over situations
    outside : how often nothing is chosen; None without an outside option
    evaluated : how many sets were evaluated
    by_size : the largest value of each size, where all sets were enumerated
    worth : the value of a choice of each of its objects, on average over situations
    labels : what its objects are called, where a column says so
    notes : what a reader should know besides
    interval : of the value of this set, by :func:`entourage.decisions.intervals_of`. The set was chosen for its value
        in the same model, which is optimistic; the interval doesn't account for that.
    """

    objects: Index
    value: float
    method: str
    exact: bool
    bound: float | None
    objective: str
    probabilities: Floats
    outside: float | None
    evaluated: int
    by_size: dict[int, float] = field(default_factory=dict)
    worth: Floats = field(default_factory=lambda: np.zeros(0))
    labels: list[Any] | None = None
    notes: tuple[str, ...] = ()
    interval: Estimate | None = None

    @property
    def gap(self) -> float | None:
        """How much better another set may be, relative to the bound; None where no bound is known."""
        if self.bound is None:
            return None
        return 0.0 if self.bound == self.value else (self.bound - self.value) / abs(self.bound)

    def to_frame(self) -> pa.Table:
        """Return an Arrow table with a row for each object of the set."""
        columns: dict[str, Any] = {"object": self.objects}
        if self.labels is not None:
            columns["label"] = [str(label) for label in self.labels]
        return pa.table(columns | {"value": self.worth, "probability": self.probabilities})

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON types."""
        return {
            "objects": self.objects.tolist(),
            "labels": None if self.labels is None else [str(label) for label in self.labels],
            "objective": self.objective,
            "value": self.value,
            "method": self.method,
            "exact": self.exact,
            "bound": self.bound,
            "probabilities": self.probabilities.tolist(),
            "outside": self.outside,
            "interval": None if self.interval is None else [self.interval.low, self.interval.high],
            "evaluated": self.evaluated,
            "by_size": {str(size): value for size, value in self.by_size.items()},
            "notes": list(self.notes),
        }

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Write a figure, by the extension of the file: choice probabilities, and the largest value of each size."""
        from entourage.decisions.assortment_plot import draw_assortment

        draw_assortment(self).savefig(path)

    def __str__(self) -> str:
        names = self.objects.tolist() if self.labels is None else self.labels
        shown = ", ".join(str(name) for name in names[:20]) + (", ..." if len(names) > 20 else "")
        many = "1 object" if len(names) == 1 else f"{len(names)} objects"
        sure = "" if self.interval is None else f" [{self.interval.low:.6g}, {self.interval.high:.6g}]"
        lines = [
            f"Best set by {self.objective}: {self.value:.6g}{sure}, {many}: {shown or 'none'}",
            f"Found by {self.method}: {_certainty(self)}",
            *self.notes,
        ]
        return "\n".join(lines)


def _certainty(found: Assortment) -> str:
    if found.exact:
        return "no set is better."
    if found.bound is None:
        return "a better set may exist; no bound is known."
    return f"a better set may exist, of at most {found.bound:.6g} (gap {100 * (found.gap or 0.0):.2g} %)."


def best_assortment(
    model: Any,
    objects: Any,
    value: Any = None,
    *,
    size: int | tuple[int, int] | None = None,
    required: Any = None,
    forbidden: Any = None,
    objective: str = "revenue",
    situations: Any = None,
    weights: ArrayLike | None = None,
    object_id: str | None = None,
    method: str = "auto",
    most_sets: int = MOST_SETS,
    restarts: int = 8,
    random_state: int = 0,
    intervals: str = "auto",
    refits: Sequence[Any] | None = None,
    level: float = 0.05,
    on_interrupt: str = "raise",
    on_progress: Progress | None = None,
    verbose: bool = False,
) -> Assortment:
    r"""Find the set to offer: the one of the largest expected revenue, share or consumer surplus.

    The revenue of a set S is :math:`\sum_{i \in S} v_i P_i(S)`, on average over the situations. How the best set is
    found depends on the model, and ``method`` of the result says it:

    - Logit (`MultinomialLogit`, `ContextFree` nets), one situation: exact. Without binding limits on size, it is
      revenue-ordered; with them, fractional programming. Several situations: branch and bound, exact where it ends.
    - `NestedLogit`, one situation: exact, nest by nest: revenue-ordered (dissimilarities up to 1), or enumerated.
    - Other models, context effects included: all sets are evaluated where there are at most ``most_sets``: exact.
      Else a greedy search with exchanges and restarts, without a guarantee.

    Without an outside option, something is always chosen: the revenue of a set is then the mean value of what is
    chosen, and often a single object has the largest. If the model learnt of choosing nothing as an object of its own,
    name it in ``required``, with value 0.

    Parameters
    ----------
    model : a fitted model with choice probabilities; see :class:`entourage.decisions.Market`
    objects : frame or array
        What may be offered: a frame with a row for each object; an array (m, d); (s, m, d) where features depend on the
        situation; or a frame of several sets, the situations, with ``object_id``.
    value : str or array, optional
        What a choice of each object is worth: a column, or an array (m,), or (s, m) by situation. With "share": 1 for
        objects whose share counts, 0 for others; by default all count. With "surplus" there is none.
    size : int or (int, int), optional
        The largest size of a set, or the least and the largest; required objects count. By default any from 1 on. 0
        as the least allows offering nothing.
    required, forbidden : positions of objects, or a mask; labels, where ``object_id`` is given
    objective : {"revenue", "share", "surplus"}
        Surplus is the logsum, where it is identified (:meth:`entourage.decisions.Market.logsum`).
    situations : array (s, k) or frame, optional
        Features of the situations in which the set is offered.
    weights : array (s,), optional
        How often each situation occurs; by default all alike.
    object_id : str, optional
        The column that names the objects.
    method : {"auto", "enumeration", "greedy"}
    most_sets : int
        So many sets, times situations, are enumerated at most by "auto".
    restarts, random_state : int
        Of the greedy search: random starts, and their seed.
    intervals, refits, level : of the value of the set found, as of :func:`entourage.decisions.intervals_of`
    on_interrupt : {"raise", "keep"}
        What Ctrl-C does: raise, or return the best set so far.
    on_progress : callable, optional
        Called with how many sets (starts, branches) are done, and of how many.
    verbose : bool
        Show the expected time and a progress bar.

    Examples
    --------
    >>> import numpy as np
    >>> from entourage.choice import MultinomialLogit
    >>> from entourage.decisions import best_assortment
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 4, 1))
    >>> model = MultinomialLogit().fit(X, (X[..., 0] + rng.gumbel(size=(1000, 4))).argmax(1))
    >>> objects = [[0.0], [1.0], [-1.0], [0.5]]  # the first: buy nothing
    >>> found = best_assortment(model, objects, [0.0, 3.0, 9.0, 1.0], required=[0])
    >>> found.objects, round(found.value, 1), found.method
    (array([0, 1, 2]), 2.8, 'revenue-ordered')
    """
    check_choice("method", method, METHODS)
    check_choice("on_interrupt", on_interrupt, ["raise", "keep"])
    check_number("most_sets", most_sets, least=1, whole=True)
    check_number("restarts", restarts, least=0, whole=True)
    check_number("random_state", random_state, least=0, whole=True)
    market = market_of(model)
    if market.kind == "subset" and objective == "share":
        raise ParameterError(
            "Several objects of a set may be chosen by this model (SubsetChooser), so shares don't sum to 1; "
            'choose objective="revenue", with value 1 for the expected number of choices.'
        )
    candidates = candidates_of(market.model, objects, situations, object_id)
    worth = None if value is None else numbers_of_objects(value, candidates, "value")
    problem = make_problem(
        market,
        candidates,
        value=worth,
        objective=objective,
        size=size,
        required=required,
        forbidden=forbidden,
        weights=weights,
    )
    search: dict[str, Any] = {"restarts": restarts, "random_state": random_state}
    keep = on_interrupt == "keep"
    with _bar(verbose, on_progress) as show:
        found = _closed_form(problem, show, keep) if method == "auto" else None
        stopped = found is not None and "interrupted" in found.method
        if (found is None or not found.exact) and not stopped:
            small = count_sets(problem) * problem.n_situations <= most_sets
            if method == "enumeration" or (method == "auto" and small):
                if verbose and count_sets(problem) * problem.n_situations > _LONG:
                    _tell_time(problem)
                found = enumerate_sets(problem, show, keep=keep)
            else:
                found = _improve(problem, found, show, keep, search)
    assert found is not None

    def measure(other: Market) -> dict[str, float]:
        return {"value": replace(problem, market=other).value_of(found.objects)}

    sure = intervals_of(
        market,
        measure,
        method=intervals,
        refits=refits,
        level=level,
        bounds=_range(problem, found.objects),
        random_state=random_state,
    )["value"]
    return replace(_result(problem, found, candidates.labels), interval=None if sure.low is None else sure)


def _range(problem: AssortmentProblem, objects: Index) -> dict[str, tuple[float, float]] | None:
    """Return between which values every model must be."""
    if problem.objective == "surplus" or problem.market.kind == "subset" or len(objects) == 0:
        return None
    worth = problem.values_of_situations[:, objects]
    low, high = problem.weights @ worth.min(1), problem.weights @ worth.max(1)
    return {
        "value": (min(float(low), 0.0), max(float(high), 0.0))
        if problem.outside
        else (float(low), float(high))
    }


def _improve(
    problem: AssortmentProblem, found: Found | None, show: Progress | None, keep: bool, search: dict[str, Any]
) -> Found:
    """Search greedily, from what was found before, too."""
    if found is None or len(found.objects) == 0:
        bound = None if found is None else found.bound
        return replace(exchange(problem, on_progress=show, keep=keep, **search), bound=bound)
    better = exchange(problem, on_progress=show, keep=keep, starts=[found.objects], **search)
    return replace(better, bound=found.bound, method=f"{found.method}; {better.method}".removeprefix("; "))


def _closed_form(problem: AssortmentProblem, show: Progress | None, keep: bool) -> Found | None:
    """Solve logit and nested logit exactly, or bound them; None where the model is another."""
    structure = structure_of(problem)
    if structure is None:
        return None
    found = _logit(structure, problem, show, keep) if structure.is_logit else _nests(structure, problem)
    if found is None or not found.exact:
        return found
    value = _value_by(structure, problem, found.objects)
    told = problem.value_of(found.objects)
    return found if abs(value - told) <= _AGREE * max(abs(value), abs(told), 1e-12) else None


def _value_by(structure: Structure, problem: AssortmentProblem, objects: Index) -> float:
    """Return the value of a set by the closed form."""
    nest, total = structure.nest[objects], 0.0
    for i, weight in enumerate(problem.weights):
        w, v = structure.weights[i][objects], problem.values_of_situations[i][objects]
        above, below = 0.0, float(structure.nothing[i])
        for k in np.unique(nest):
            own, whole = nest == k, structure.weights[i][structure.nest == k].sum()
            mass = whole * (w[own].sum() / whole) ** structure.dissimilarity[k]
            above, below = above + mass * (w[own] @ v[own]) / w[own].sum(), below + mass
        if problem.objective == "surplus":
            total += weight * (structure.logsum[i] + np.log(below))
        else:
            total += weight * above / below
    return float(total)


def _logit(structure: Structure, problem: AssortmentProblem, show: Progress | None, keep: bool) -> Found:
    m = problem.candidates.m
    inside, allowed = (np.isin(np.arange(m), which) for which in (problem.required, problem.free))
    if problem.n_situations > 1:
        _, sets = best_of_logit(structure, problem, inside, allowed)
        return branch_and_bound(
            structure, problem, start=np.flatnonzero(sets[0]), on_progress=show, keep=keep
        )
    needed = len(problem.required)
    unlimited = problem.with_limits(needed, needed + len(problem.free))
    _, sets = best_of_logit(structure, problem, inside, allowed)
    _, without = best_of_logit(structure, unlimited, inside, allowed)
    objects = np.flatnonzero(sets[0])
    if problem.objective == "surplus":
        return Found(objects, "largest utilities")
    same = problem.low <= int(without[0].sum()) <= problem.high
    return Found(objects, "revenue-ordered" if same else "fractional programming (logit with limits on size)")


def _nests(structure: Structure, problem: AssortmentProblem) -> Found | None:
    alone = [best_of_nests(structure, problem, i) for i in range(problem.n_situations)]
    if problem.n_situations == 1 and alone[0] is not None:
        return Found(alone[0][1], alone[0][2])
    needed = len(problem.required)
    loose = problem.with_limits(needed, needed + len(problem.free))
    tops = [a or best_of_nests(structure, loose, i) for i, a in enumerate(alone)]
    if any(top is None for top in tops):
        return None
    bound = float(problem.weights @ [top[0] for top in tops if top is not None])
    return Found(np.zeros(0, dtype=np.int64), "", exact=False, bound=bound)


def _result(problem: AssortmentProblem, found: Found, labels: list[Any] | None) -> Assortment:
    value = problem.value_of(found.objects)
    p, nothing = problem.shares(found.objects)
    bound = value if found.exact else None if found.bound is None else max(found.bound, value)
    return Assortment(
        found.objects,
        value,
        found.method,
        found.exact,
        bound,
        problem.objective,
        p,
        nothing if problem.outside else None,
        found.evaluated,
        found.by_size or {},
        (problem.weights @ problem.values_of_situations)[found.objects],
        None if labels is None else [labels[i] for i in found.objects],
        _notes(problem.market, problem),
    )


def _notes(market: Market, problem: AssortmentProblem) -> tuple[str, ...]:
    notes = []
    if market.kind == "subset":
        notes.append("Several objects of a set may be chosen: revenue is the expected sum of their values.")
    elif not problem.outside and problem.objective != "surplus":
        notes.append(
            "The model has no outside option: something of the set is always chosen, and revenue is the mean value of "
            "what is chosen."
            if problem.objective == "revenue"
            else "The model has no outside option: shares are of those who choose something."
        )
    if problem.objective == "surplus" and market.logsum_note is not None:
        notes.append(market.logsum_note)
    if market.kind == "ranking":
        notes.append("Probabilities are those of the first place of a ranking.")
    return tuple(notes)


def seconds_to_enumerate(problem: AssortmentProblem, sets_each: int = 1024) -> float:
    """Return about how many seconds the evaluation of all sets takes, from a few sets of three sizes."""
    sizes = sorted({problem.low or 1, (problem.low + problem.high) // 2 or 1, problem.high})
    everything = np.concatenate([problem.required, problem.free])
    seconds = []
    for size in sizes:
        rows = np.broadcast_to(np.sort(everything[:size]), (sets_each, size))
        taken = []
        for _ in range(2):  # the first one warms up
            start = time.perf_counter()
            problem.values(rows)
            taken.append(time.perf_counter() - start)
        seconds.append(min(taken) / sets_each)
    total = 0.0
    for size in range(problem.low, problem.high + 1):
        one = problem.with_limits(size, size)
        total += count_sets(one) * float(np.interp(size, sizes, seconds))
    return total


def _tell_time(problem: AssortmentProblem) -> None:
    from rich.console import Console

    words = in_words(seconds_to_enumerate(problem))
    Console(stderr=True).print(f"{count_sets(problem):,} sets to evaluate: about {words}.", soft_wrap=True)


@contextmanager
def _bar(verbose: bool, on_progress: Progress | None) -> Iterator[Progress | None]:
    """Show a bar on the error stream, where that is asked for."""
    if not verbose:
        yield on_progress
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    console = Console(stderr=True)
    progress = Bars(TextColumn("sets"), BarColumn(), TimeRemainingColumn(), console=console, transient=True)
    bar = progress.add_task("sets", total=None)

    def show(done: int, total: int) -> None:
        if not progress.live.is_started:
            progress.start()
        progress.update(bar, completed=done, total=total)
        if on_progress is not None:
            on_progress(done, total)

    try:
        yield show
    finally:
        if progress.live.is_started:
            progress.stop()
