"""Context effects of a fitted model: pairwise influence, preference reversals, IIA and regularity violations.

A model is asked for the utilities of sets, with all alternatives and with one removed. Utilities are defined up to a
shift of the whole set, so only differences within a set count. For a context-free model all quantities are exactly 0:
changes within rounding count as none.

A fitted model with context has values above 0 even where people choose without context, since it also fits noise.
:func:`entourage.effects.effects_report` with ``refits`` gives confidence intervals that account for that.
:func:`entourage.effects.context_test` tests the choices themselves, without a model.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from entourage.data.resampling import labels_of
from entourage.data.sets import AnySets, Sets
from entourage.effects.estimate import Estimate
from entourage.effects.triples import of_three
from entourage.effects.utilities import Model, utilities_of
from entourage.errors import ShapeError
from entourage.estimators.base import without_each
from entourage.tasks import SubsetChoice

__all__ = [
    "Regularity",
    "iia_violation",
    "influence_matrix",
    "measure_removals",
    "regularity_violation",
    "reversal_rate",
]

Floats: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class Regularity:
    """Violations of regularity: how often, and by how much, adding an alternative raises another's probability."""

    rate: Estimate
    amount: Estimate


# --- one alternative is removed -------------------------------------------------------------------


def influence_matrix(model: Model, sets: AnySets) -> Floats:
    r"""Return how the presence of object j changes the utility of object i, for sets of one size: (n, m, m).

    .. math:: I_{ij} = \tilde U(x_i, C) - \tilde U(x_i, C \setminus \{x_j\}),

    where :math:`\tilde U` is the utility less the mean utility of the objects other than j. Each column sums to 0.
    The diagonal is NaN.

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
    """Return the preference-reversal rate when one alternative is removed: a share of all (pair, third).

    Sets of fewer than three objects have no value. ``groups``: one label a set, for dependent sets.
    """
    return _estimates(model, sets, groups)["reversal_rate"]


def iia_violation(model: Model, sets: AnySets, *, groups: ArrayLike | None = None) -> Estimate:
    """Return the mean absolute change of a pair's log-odds when a third alternative is removed.

    It is 0 under independence of irrelevant alternatives (IIA), as for a multinomial logit. The unit is that of the
    model's utilities: log-odds for `DiscreteChooser`, and for a `Ranker` with the loss "plackett_luce".
    """
    return _estimates(model, sets, groups)["iia_violation"]


def regularity_violation(model: Model, sets: AnySets, *, groups: ArrayLike | None = None) -> Regularity:
    """Return how often, and by how much, adding an alternative raises the probability of another.

    Probabilities are the softmax of utilities, with the outside (no-choice) option where the model has one; for
    `SubsetChooser`, their sigmoids. ``rate`` is a share of all pairs (alternative, added alternative), ``amount`` the
    mean increase of probability over all of them, 0 where it falls.
    """
    found = _estimates(model, sets, groups)
    return Regularity(found["regularity_rate"], found["regularity_amount"])


def _estimates(model: Model, sets: AnySets, groups: ArrayLike | None) -> dict[str, Estimate]:
    given = of_three(sets, least=1)
    labels = None if groups is None else labels_of(groups, len(given))
    return {name: Estimate(values, labels) for name, values in measure_removals(model, given)[0].items()}


def measure_removals(model: Model, sets: Sets) -> tuple[dict[str, Floats], Floats]:
    """Return all quantities of each set in one pass, and of each object its mean absolute influence on the others."""
    found = {
        name: np.full(len(sets), np.nan)
        for name in ("reversal_rate", "iia_violation", "regularity_rate", "regularity_amount")
    }
    influence = np.full(len(sets.objects), np.nan)
    for chosen, utilities, changes in _removals(model, sets):
        n, m = utilities.shape
        reversals, changed = np.zeros(n), np.zeros(n)
        first, second = np.triu_indices(m - 1, 1)
        for j in range(m):
            rest = np.delete(np.arange(m), j)
            gaps = utilities[:, rest[first]] - utilities[:, rest[second]]  # (n, pairs)
            shifts = changes[:, rest[first], j] - changes[:, rest[second], j]
            reversals += (gaps * (gaps - shifts) < 0).mean(1) / m
            changed += np.abs(shifts).mean(1) / m
        raised = _probabilities(model, utilities[:, :, None]) - _probabilities(
            model, utilities[:, :, None] - changes
        )
        found["reversal_rate"][chosen] = reversals
        found["iia_violation"][chosen] = changed
        found["regularity_rate"][chosen] = (raised > 1e-9).sum((1, 2)) / (m * (m - 1))
        found["regularity_amount"][chosen] = np.nansum(np.maximum(raised, 0), (1, 2)) / (m * (m - 1))
        rows = sets.offsets[chosen][:, None] + np.arange(m)
        influence[rows] = np.nanmean(np.abs(_centred(changes)), axis=1)
    return found, influence


def _removals(model: Model, sets: Sets) -> Iterator[tuple[Index, Floats, Floats]]:
    """Remove each object from its set: which sets, their utilities (n, m) and how j changes that of i (n, i, j)."""
    whole, error = utilities_of(model, sets)
    for chosen, rows, stay, without in without_each(lambda part: utilities_of(model, part)[0], sets):
        n, m = rows.shape
        utilities = whole[rows]
        changes = np.full((n, m, m), np.nan)
        changes[:, stay, np.arange(m)[:, None]] = utilities[:, stay] - without
        changes[np.abs(changes) <= error[chosen, None, None]] = 0.0
        yield chosen, utilities, changes


def _centred(changes: Floats) -> Floats:
    return np.asarray(changes - np.nanmean(changes, axis=1, keepdims=True))


def _probabilities(model: Model, utilities: Floats) -> Floats:
    """Return choice probabilities along axis 1; NaN for removed objects."""
    task = getattr(model, "task", None)
    if isinstance(task, SubsetChoice):
        return np.asarray(expit(utilities))
    outside = bool(getattr(task, "outside", False))
    highest = np.nanmax(utilities, axis=1, keepdims=True)
    highest = np.maximum(highest, 0.0) if outside else highest
    powers = np.exp(utilities - highest)
    nothing = np.exp(-highest) if outside else 0.0
    return np.asarray(powers / (np.nansum(powers, axis=1, keepdims=True) + nothing))
