"""Attraction, compromise and similarity: how a third alternative C changes the preference for A against B.

Log-odds are differences of utilities, as in `DiscreteChooser`. The utilities of a `Ranker` that learns strict orders
have no scale of their own, and are often larger in pairs than in triples: much of a shift can be that scale. Compare
two third alternatives then (``instead``), or look at preference reversals.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from entourage.data.resampling import labels_of
from entourage.data.sets import AnySets, Sets
from entourage.effects.estimate import Estimate
from entourage.effects.utilities import Model, utilities_of
from entourage.errors import DataError, ShapeError

__all__ = [
    "ContextEffect",
    "attraction",
    "broadcast_objects",
    "change_beyond_rounding",
    "compromise",
    "context_effect",
    "dominates",
    "is_nearer",
    "lies_between",
    "of_three",
    "only_first_dominates",
    "similarity",
    "utility_gaps",
]

Floats: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True)
class ContextEffect:
    """The effect of a third alternative C on the preference for A against B.

    Attributes
    ----------
    shift : the increase of the log-odds of A against B when C is added
    before, after : the mean probability of A against B without and with C
    reversal_rate : how often C reverses the preference between A and B
    """

    shift: Estimate
    before: float
    after: float
    reversal_rate: float

    def to_json(self, level: float = 0.05) -> dict[str, Any]:
        """Return the shift with its interval, and the rest; "n" is the number of triples."""
        return self.shift.to_json(level) | {
            "before": self.before,
            "after": self.after,
            "turned": self.reversal_rate,
        }


def of_three(sets: AnySets, least: int | None = None) -> Sets:
    """Check that all sets, or ``least`` of them, have three objects: a pair and a third."""
    given = Sets.of(sets)
    large = given.sizes >= 3
    if large.sum() < (len(given) if least is None else least):
        raise DataError(f"Sets of at least three objects are needed, a pair and a third; got {given!r}.")
    return given


# --- the three effects ------------------------------------------------------------------------------


def context_effect(
    model: Model,
    A: ArrayLike,
    B: ArrayLike,
    C: ArrayLike,
    *,
    instead: ArrayLike | None = None,
    situation: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> ContextEffect:
    r"""Measure the effect of C on A against B: :math:`(U_A - U_B \mid A, B, C) - (U_A - U_B \mid A, B)`.

    Parameters
    ----------
    A, B, C : features of the triples, (n, d) each, or (d,) where it is the same in all
    instead : another third object, (n, d) or (d,), optional
        The effect of C is then measured against this one, rather than against the pair alone: for models that have
        never seen a pair, and for designs in which each of two objects has its decoy.
    situation : (n, situation features), where the model has them
    groups : one label a triple; triples of one label are resampled together

    Examples
    --------
    >>> class Twins:  # identical objects share their value
    ...     def predict_scores(self, sets):
    ...         return np.concatenate([-np.log((x == x[:, None]).all(2).sum(1)) for x in sets.to_list()])
    >>> effect = context_effect(Twins(), [1.0], [0.0], [[0.0], [0.0], [7.0]])
    >>> effect.shift.values.round(3), round(effect.before, 3), round(effect.after, 3)
    (array([0.693, 0.693, 0.   ]), 0.5, 0.611)
    """
    named = {"A": A, "B": B, "C": C} | ({} if instead is None else {"instead": instead})
    a, b, c, *rest = broadcast_objects(named)
    before, error = utility_gaps(model, [a, b, *rest], situation)
    shift = change_beyond_rounding(before, error, *utility_gaps(model, [a, b, c], situation))
    return ContextEffect(
        shift=Estimate(shift, None if groups is None else labels_of(groups, len(a))),
        before=float(expit(before).mean()),
        after=float(expit(before + shift).mean()),
        reversal_rate=float((before * (before + shift) < 0).mean()),
    )


def attraction(
    model: Model,
    target: ArrayLike,
    competitor: ArrayLike,
    decoy: ArrayLike,
    *,
    less_is_better: Sequence[int] = (),
    **options: Any,
) -> ContextEffect:
    """Measure the attraction effect: a decoy dominated by the target, not by the competitor, helps the target.

    Larger features are better, except those at the places ``less_is_better``. ``options`` are those of
    :func:`context_effect`.
    """
    t, c, d = broadcast_objects({"target": target, "competitor": competitor, "decoy": decoy})
    sign = np.ones(t.shape[1])
    sign[list(less_is_better)] = -1.0
    _check_design(
        only_first_dominates(sign * t, sign * c, sign * d),
        "attraction: the target is at least as good as the decoy in every feature and better in one, and the "
        "competitor is not. Name features of which less is better in less_is_better",
    )
    return context_effect(model, t, c, d, **options)


def compromise(
    model: Model, target: ArrayLike, competitor: ArrayLike, extreme: ArrayLike, **options: Any
) -> ContextEffect:
    """Measure the compromise effect: an extreme alternative makes the target the middle one, which helps it.

    The target lies between competitor and extreme in every feature. ``options`` are those of :func:`context_effect`.
    """
    t, c, e = broadcast_objects({"target": target, "competitor": competitor, "extreme": extreme})
    _check_design(
        lies_between(t, c, e), "compromise: the target lies between competitor and extreme in every feature"
    )
    return context_effect(model, t, c, e, **options)


def similarity(
    model: Model, target: ArrayLike, competitor: ArrayLike, decoy: ArrayLike, **options: Any
) -> ContextEffect:
    """Measure the similarity effect: a decoy similar to the competitor takes its share, which helps the target.

    The decoy is nearer to the competitor than to the target. ``options`` are those of :func:`context_effect`.
    """
    t, c, d = broadcast_objects({"target": target, "competitor": competitor, "decoy": decoy})
    spread = np.concatenate([t, c, d]).std(0)
    spread = np.where(spread > 0, spread, 1.0)
    _check_design(
        is_nearer(t / spread, c / spread, d / spread),
        "similarity: the decoy is nearer to the competitor than to the target",
    )
    return context_effect(model, t, c, d, **options)


# --- what makes a triple a case -----------------------------------------------------------------------


def broadcast_objects(named: dict[str, ArrayLike]) -> list[Floats]:
    """Broadcast the objects of n sets to one shape, (n, d)."""
    arrays = {name: np.asarray(values, dtype=np.float64) for name, values in named.items()}
    for name, array in arrays.items():
        if array.ndim not in (1, 2):
            raise ShapeError(f"{name} needs axes (n, features) or (features,); got shape {array.shape}.")
    tables = [np.atleast_2d(array) for array in arrays.values()]
    n = max(len(table) for table in tables)
    if len({table.shape[1] for table in tables}) > 1 or any(len(table) not in (1, n) for table in tables):
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ShapeError(f"All objects need the same features and as many rows, or one; got {shapes}.")
    return [np.broadcast_to(table, (n, table.shape[1])) for table in tables]


def utility_gaps(model: Model, objects: list[Floats], situation: ArrayLike | None) -> tuple[Floats, Floats]:
    """Return U(first) - U(second) in sets of these objects, and the size of its rounding error."""
    X = np.stack(objects, axis=1)  # (n, m, d)
    about = None
    if situation is not None:
        rows = np.asarray(situation)
        about = np.broadcast_to(rows, (len(X), rows.shape[-1])) if len(rows) == 1 else rows
    packed, error = utilities_of(model, Sets.from_array(X, None, about))
    utilities = packed.reshape(len(X), -1)
    return utilities[:, 0] - utilities[:, 1], error


def change_beyond_rounding(
    before: Floats, error_before: Floats, after: Floats, error_after: Floats
) -> Floats:
    """Return the change of gaps; 0 where it is within the rounding error."""
    change = after - before
    return np.where(np.abs(change) <= np.maximum(error_before, error_after), 0.0, change)


def dominates(better: Floats, worse: Floats) -> Mask:
    """Return where one is at least as good in every feature, and better in one."""
    return np.asarray((better >= worse).all(1) & (better > worse).any(1))


def only_first_dominates(target: Floats, competitor: Floats, decoy: Floats) -> Mask:
    """Return where the target dominates the decoy and the competitor doesn't."""
    return dominates(target, decoy) & ~dominates(competitor, decoy)


def lies_between(target: Floats, competitor: Floats, extreme: Floats) -> Mask:
    """Return where the target lies between the two others in every feature, and equals neither."""
    differs = (target != competitor).any(1) & (target != extreme).any(1)
    return np.asarray(((target - competitor) * (extreme - target) >= 0).all(1) & differs)


def is_nearer(target: Floats, competitor: Floats, decoy: Floats, share: float = 1.0) -> Mask:
    """Return where the decoy is less than ``share`` as far from the competitor as from the target."""
    near, far = (np.square(decoy - other).sum(1) for other in (competitor, target))
    return np.asarray(near < share**2 * far)


def _check_design(holds: Mask, definition: str) -> None:
    if not holds.all():
        i = int(np.argmin(holds))
        raise DataError(
            f"Triple {i} is no case of {definition}; or use context_effect, which takes triples of any kind."
        )
