"""Context effects of a fitted model: pairwise influence, preference reversals, IIA and regularity violations.

Everything here asks a model only for the utilities of sets, with all alternatives and with one removed; adding one is
the business of :mod:`entourage.effects.decoys`. Utilities mean something up to a shift of the whole set, so only
differences within a set count. A context-free model has no influence, reverses no preference and violates nothing:
all figures are exactly 0, since changes within rounding are taken for none.

Any other model that was fitted to data has figures above 0, even where people choose without context, since it learns
noise as well. :func:`effects_report` with ``refits`` (:mod:`entourage.effects.refits`) gives confidence intervals
that take that into account.

:func:`context_test` asks the choices themselves, without a model.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from entourage.data.resampling import labels_of
from entourage.data.sets import AnySets, Sets
from entourage.effects.context_test import context_test
from entourage.effects.estimate import Estimate
from entourage.effects.intervals import from_refits
from entourage.effects.refits import Refits
from entourage.effects.triples import of_three
from entourage.effects.utilities import Model, utilities_of
from entourage.errors import DataError, ShapeError, check_number
from entourage.estimators.base import without_each
from entourage.tasks import SubsetChoice

__all__ = [
    "Regularity",
    "effects_report",
    "iia_violation",
    "influence_matrix",
    "regularity_violation",
    "reversal_rate",
]

Floats: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.int64]

_SHOWN = 10  # objects that a report names
_LARGEST_SHOWN = 30  # objects of a set whose matrix a report gives


@dataclass(frozen=True)
class Regularity:
    """Violations of regularity: how often, and by how much, adding an alternative raises another's probability."""

    rate: Estimate
    amount: Estimate


# --- one object leaves ----------------------------------------------------------------------------


def influence_matrix(model: Model, sets: AnySets) -> Floats:
    r"""Return how the presence of object j moves the utility of object i, for sets of one size: (n, m, m).

    .. math:: I_{ij} = \tilde U(x_i, C) - \tilde U(x_i, C \setminus \{x_j\}),

    where :math:`\tilde U` is the utility less the mean utility of the objects other than j. Each column sums to
    0: an object helps some at the cost of others. NaN on the diagonal.

    Examples
    --------
    >>> class Middle:  # the nearer to the mean of the set, the better
    ...     def predict_scores(self, sets):
    ...         means = np.add.reduceat(sets.objects[:, 0], sets.offsets[:-1]) / sets.sizes
    ...         return -np.abs(sets.objects[:, 0] - np.repeat(means, sets.sizes))
    >>> influence_matrix(Middle(), [[[0.0], [1.0], [5.0]]]).round(2)[0]
    array([[ nan,  0.5, -0.5],
           [ 1. ,  nan,  0.5],
           [-1. , -0.5,  nan]])
    """
    given = of_three(sets)
    if given.uniform_size is None:
        raise ShapeError(
            f"A matrix needs sets of one size; got {given!r}. Take those of one size: "
            "sets[sets.sizes == sets.sizes[0]]."
        )
    parts = [_centred(changes) for _, _, changes in _removals(model, given)]
    return np.concatenate(parts)


def reversal_rate(model: Model, sets: AnySets, *, groups: ArrayLike | None = None) -> Estimate:
    """Return the preference-reversal rate when one alternative is removed: the share of all (pair, third).

    Sets of fewer than three objects say nothing. ``groups``: one label a set, for dependent sets.
    """
    return _estimates(model, sets, groups)["reversal_rate"]


def iia_violation(model: Model, sets: AnySets, *, groups: ArrayLike | None = None) -> Estimate:
    """Return by how much the log-odds of a pair change, on average, when a third object leaves.

    Independence of irrelevant alternatives, which a multinomial logit has, is 0. In units of the model's utilities:
    they are log-odds for `DiscreteChooser`, and for a `Ranker` with the loss "plackett_luce".
    """
    return _estimates(model, sets, groups)["iia_violation"]


def regularity_violation(model: Model, sets: AnySets, *, groups: ArrayLike | None = None) -> Regularity:
    """Return how often, and by how much, adding an alternative raises the probability of another.

    Probabilities are the softmax of utilities, with the option of nothing where the model has one; for
    `SubsetChooser`, their sigmoids. ``rate`` is a share of all pairs (who was there, who joined), ``amount`` the mean
    over all of them of what is gained, 0 where something is lost.
    """
    found = _estimates(model, sets, groups)
    return Regularity(found["regularity_rate"], found["regularity_amount"])


def _estimates(model: Model, sets: AnySets, groups: ArrayLike | None) -> dict[str, Estimate]:
    given = of_three(sets, least=1)
    labels = None if groups is None else labels_of(groups, len(given))
    return {name: Estimate(values, labels) for name, values in _measure(model, given)[0].items()}


def _measure(model: Model, sets: Sets) -> tuple[dict[str, Floats], Floats]:
    """Return all figures of each set in one pass, and of each object how much it moves the others on average."""
    figures = {
        name: np.full(len(sets), np.nan)
        for name in ("reversal_rate", "iia_violation", "regularity_rate", "regularity_amount")
    }
    pull = np.full(len(sets.objects), np.nan)
    for chosen, utilities, changes in _removals(model, sets):
        n, m = utilities.shape
        turned, moved = np.zeros(n), np.zeros(n)
        first, second = np.triu_indices(m - 1, 1)
        for j in range(m):
            rest = np.delete(np.arange(m), j)
            gaps = utilities[:, rest[first]] - utilities[:, rest[second]]  # (n, pairs)
            shifts = changes[:, rest[first], j] - changes[:, rest[second], j]
            turned += (gaps * (gaps - shifts) < 0).mean(1) / m
            moved += np.abs(shifts).mean(1) / m
        raised = _chances(model, utilities[:, :, None]) - _chances(model, utilities[:, :, None] - changes)
        figures["reversal_rate"][chosen] = turned
        figures["iia_violation"][chosen] = moved
        figures["regularity_rate"][chosen] = (raised > 1e-9).sum((1, 2)) / (m * (m - 1))
        figures["regularity_amount"][chosen] = np.nansum(np.maximum(raised, 0), (1, 2)) / (m * (m - 1))
        rows = sets.offsets[chosen][:, None] + np.arange(m)
        pull[rows] = np.nanmean(np.abs(_centred(changes)), axis=1)
    return figures, pull


def _removals(model: Model, sets: Sets) -> Iterator[tuple[Index, Floats, Floats]]:
    """Leave each object out of its set: which sets, their utilities (n, m) and what j changes for i (n, i, j)."""
    whole, rounding = utilities_of(model, sets)
    for chosen, rows, stay, without in without_each(lambda part: utilities_of(model, part)[0], sets):
        n, m = rows.shape
        utilities = whole[rows]
        changes = np.full((n, m, m), np.nan)
        changes[:, stay, np.arange(m)[:, None]] = utilities[:, stay] - without
        largest = np.abs(utilities).max(1)[:, None, None]
        changes[np.abs(changes) <= rounding * largest] = 0.0
        yield chosen, utilities, changes


def _centred(changes: Floats) -> Floats:
    return np.asarray(changes - np.nanmean(changes, axis=1, keepdims=True))


def _chances(model: Model, utilities: Floats) -> Floats:
    """Return the probabilities of being chosen along axis 1; NaN for who isn't there."""
    task = getattr(model, "task", None)
    if isinstance(task, SubsetChoice):
        return np.asarray(expit(utilities))
    outside = bool(getattr(task, "outside", False))
    highest = np.nanmax(utilities, axis=1, keepdims=True)
    highest = np.maximum(highest, 0.0) if outside else highest
    powers = np.exp(utilities - highest)
    nothing = np.exp(-highest) if outside else 0.0
    return np.asarray(powers / (np.nansum(powers, axis=1, keepdims=True) + nothing))


# --- everything at once ---------------------------------------------------------------------------


def effects_report(
    model: Model,
    sets: AnySets,
    *,
    groups: ArrayLike | None = None,
    refits: Refits | None = None,
    most_sets: int = 500,
    level: float = 0.05,
    draws: int = 199,
    random_state: int = 0,
) -> dict[str, Any]:
    """Return the context effects of a model on these sets, ready for JSON.

    Parameters
    ----------
    groups : one label a set, such as who chose: for the test of the choices themselves. Those of the intervals are
        given to :func:`entourage.effects.refit_resampled`
    refits : of the model, for confidence intervals; without them there are none
    most_sets : measure so many sets, drawn at random
    level : what the intervals leave out
    draws : of the test of the choices themselves (or the first places of rankings), on all sets; 0 for no test
    random_state : seeds both

    Returns
    -------
    dict with "reversal_rate", "iia_violation", "regularity_rate", "regularity_amount", each with the "value" of the
    model, "n" sets, and from refits (None without) "refits", their mean, "reference", their mean where there is no
    context effect, "reference_quantile", "estimate", what that comes to in the population, and its "interval";
    "groups", how many were resampled; "strongest", the objects that move the others most; "matrix", the influences in
    the set of the first of them, where it is not too large; "context_test", None where there are no targets or no
    draws, with "left_out", how many sets took no part because they have "one_object", because "nothing" was chosen or
    ranked in them, or because "several" were chosen or share the first place. A test that can't be done says why, in
    "failed".
    """
    check_number("most_sets", most_sets, least=1, whole=True)
    check_number("level", level, above=0, below=1)
    check_number("draws", draws, least=0, whole=True)
    check_number("random_state", random_state, least=0, whole=True)
    given = of_three(sets, least=1)
    telling = np.flatnonzero(given.sizes >= 3)
    if len(telling) > most_sets:
        drawn = np.random.default_rng(random_state).choice(len(telling), most_sets, replace=False)
        telling = telling[np.sort(drawn)]
    seen = given[telling]
    figures, pull = _measure(model, seen)
    labels = None if groups is None else labels_of(groups, len(given))
    measured = {} if refits is None else refits.measure(lambda one: _means(one, seen))
    entries = {
        name: {"value": float(np.nanmean(values)), "n": int((~np.isnan(values)).sum())}
        | from_refits(
            {name: measured[name]} if measured else {},
            name,
            level,
            least=0.0,
            most=np.inf if name == "iia_violation" else 1.0,
        )
        for name, values in figures.items()
    }
    strongest = []
    for row in np.argsort(-pull, kind="stable")[:_SHOWN]:
        i = int(np.searchsorted(seen.offsets, row, side="right")) - 1
        strongest.append(
            {"set": int(telling[i]), "place": int(row - seen.offsets[i]), "moves": float(pull[row])}
        )
    return {
        "model": " ".join(repr(model).split()),
        "sets": len(given),
        "sets_seen": len(seen),
        "smallest": int(seen.sizes.min()),
        "largest": int(seen.sizes.max()),
        "level": level,
        "groups": None if refits is None else refits.groups,
        "resampled": "sets" if refits is not None and refits.groups == len(given) else "groups",
        **entries,
        "strongest": strongest,
        "matrix": _shown_matrix(model, given[strongest[0]["set"]]),
        "context_test": None
        if given.targets is None or draws == 0
        else _tested(given, labels, draws, random_state),
    }


def _means(model: Model, sets: Sets) -> dict[str, float]:
    return {name: float(np.nanmean(values)) for name, values in _measure(model, sets)[0].items()}


def _choices(sets: Sets) -> tuple[Sets, NDArray[np.bool_], dict[str, int]]:
    """Return the sets with 0 for who was chosen or came first, in which of them that is one, and why not in others."""
    starts = sets.offsets[:-1]
    targets: Floats = sets.targets  # type: ignore[assignment]
    known = targets >= 0  # NaN and -1: not ranked
    places = np.where(known, targets, np.inf)
    best = np.minimum.reduceat(places, starts)  # ranks may begin at 1, and later where grades are few
    first = known & (places == np.repeat(best, sets.sizes))
    several = np.add.reduceat(first, starts, dtype=np.int64) > 1
    nothing = np.isinf(best)
    if np.isin(targets, (0.0, 1.0)).all():  # choices: who was not chosen has rank 1
        nothing |= best == 1
    single = sets.sizes == 1
    left_out = {
        "one_object": int(single.sum()),
        "nothing": int((nothing & ~single).sum()),
        "several": int((several & ~nothing & ~single).sum()),
    }
    telling = ~(single | nothing | several)
    chosen = sets.with_targets(np.where(first, 0.0, 1.0))
    return chosen, telling, {reason: count for reason, count in left_out.items() if count}


def _tested(sets: Sets, groups: Index | None, draws: int, random_state: int) -> dict[str, Any]:
    chosen, telling, left_out = _choices(sets)
    options: dict[str, Any] = {"draws": draws, "random_state": random_state}
    if groups is not None:
        options["groups"] = groups[telling]
    try:
        if not telling.any():
            raise DataError(
                "The test needs sets of at least two objects, of which one was chosen or came first; there is none."
            )
        found = dict(vars(context_test(chosen[telling], **options)))
        found["assumptions"] = list(found["assumptions"])
    except DataError as error:
        found = {"failed": str(error)}
    return found | {"left_out": left_out}


def _shown_matrix(model: Model, one: Sets) -> list[list[float | None]] | None:
    if one.uniform_size is None or one.uniform_size > _LARGEST_SHOWN:
        return None
    matrix = influence_matrix(model, one)[0]
    return [[None if np.isnan(entry) else float(entry) for entry in row] for row in matrix]
