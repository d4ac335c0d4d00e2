"""What a third object does to A against B: attraction, compromise, similarity, and the decoy that helps most.

Log-odds are differences of utilities, which is what they mean to `DiscreteChooser`. A `Ranker` that learns strict
orders has utilities without a scale of their own, often larger in pairs than in triples: then much of a shift is
that scale, and it is better to compare two third objects (``instead``), or to look at what turns.

:func:`decoys_among` looks for the objects that help or hurt a given one; for cases of the three effects among objects
that stand together anyway there is :mod:`entourage.effects.observed`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from entourage.data.resampling import labels_of
from entourage.data.sets import AnySets, Sets
from entourage.effects.leave_one_out import Estimate, Model, utilities_of
from entourage.errors import DataError, ParameterError, ShapeError, check_number

__all__ = [
    "ContextEffect",
    "Decoy",
    "DecoyMap",
    "DecoysFound",
    "attraction",
    "best_decoy",
    "compromise",
    "context_effect",
    "decoy_map",
    "decoys_among",
    "map_features",
    "similarity",
]

Floats: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True)
class ContextEffect:
    """What a third object does to A against B.

    Attributes
    ----------
    shift : by how much it raises the log-odds of A against B
    before, after : the mean probability of A against B without and with it
    turned : how often it turns their order round
    """

    shift: Estimate
    before: float
    after: float
    turned: float

    def to_json(self, level: float = 0.05) -> dict[str, Any]:
        """Return the shift with its interval, and the rest; "n" is the number of triples."""
        return self.shift.to_json(level) | {"before": self.before, "after": self.after, "turned": self.turned}


@dataclass(frozen=True)
class Decoy:
    """A third object and what it does to A against B: the log-odds without and with it, and their difference."""

    features: Floats
    shift: float
    before: float
    after: float
    candidate: int | None = None  # its row, where candidates were given


@dataclass(frozen=True)
class DecoyMap:
    """What C does to A against B everywhere on a grid: the places, the shifts (y, x), the log-odds without C."""

    x: Floats
    y: Floats
    shifts: Floats
    before: float


@dataclass(frozen=True)
class DecoysFound:
    """Which objects, as a third, help A against B most, and which hurt it most; ``candidate`` is an object's place.

    ``before`` are the log-odds without any; ``tried`` is how many objects were tried; ``situation`` is that of A's set.
    """

    helps: list[Decoy]
    hurts: list[Decoy]
    before: float
    tried: int
    situation: NDArray[Any] | None = None


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
    r"""Measure what C does to A against B: :math:`(U_A - U_B \mid A, B, C) - (U_A - U_B \mid A, B)`.

    Parameters
    ----------
    A, B, C : features of the triples, (n, d) each, or (d,) where it is the same in all
    instead : another third object, (n, d) or (d,), optional
        What C does is then measured against it, rather than against no third object: for models that have never
        seen a pair, and for designs in which each of two objects has its decoy.
    situation : (n, situation features), where the model knows situations
    groups : one label a triple; triples of one label are resampled together

    Examples
    --------
    >>> class Twins:  # each object shares its value with those like it
    ...     def predict_scores(self, sets):
    ...         return np.concatenate([-np.log((x == x[:, None]).all(2).sum(1)) for x in sets.to_list()])
    >>> effect = context_effect(Twins(), [1.0], [0.0], [[0.0], [0.0], [7.0]])
    >>> effect.shift.values.round(3), round(effect.before, 3), round(effect.after, 3)
    (array([0.693, 0.693, 0.   ]), 0.5, 0.611)
    """
    named = {"A": A, "B": B, "C": C} | ({} if instead is None else {"instead": instead})
    a, b, c, *rest = _triples(named)
    before, unsure = _gaps(model, [a, b, *rest], situation)
    shift = moved(before, unsure, *_gaps(model, [a, b, c], situation))
    return ContextEffect(
        shift=Estimate(shift, None if groups is None else labels_of(groups, len(a))),
        before=float(expit(before).mean()),
        after=float(expit(before + shift).mean()),
        turned=float((before * (before + shift) < 0).mean()),
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
    """Measure the attraction effect: a decoy that the target dominates, and the competitor doesn't, helps the target.

    Larger features are better, but for those at the places ``less_is_better``. ``options`` are those of
    :func:`context_effect`.
    """
    t, c, d = _triples({"target": target, "competitor": competitor, "decoy": decoy})
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
    """Measure the compromise effect: an extreme makes the target the middle, which helps it.

    The target lies between competitor and extreme in every feature. ``options`` are those of :func:`context_effect`.
    """
    t, c, e = _triples({"target": target, "competitor": competitor, "extreme": extreme})
    _check_design(
        lies_between(t, c, e), "compromise: the target lies between competitor and extreme in every feature"
    )
    return context_effect(model, t, c, e, **options)


def similarity(
    model: Model, target: ArrayLike, competitor: ArrayLike, decoy: ArrayLike, **options: Any
) -> ContextEffect:
    """Measure the similarity effect: a decoy like the competitor takes from the competitor, which helps the target.

    The decoy is nearer to the competitor than to the target. ``options`` are those of :func:`context_effect`.
    """
    t, c, d = _triples({"target": target, "competitor": competitor, "decoy": decoy})
    spread = np.concatenate([t, c, d]).std(0)
    spread = np.where(spread > 0, spread, 1.0)
    _check_design(
        is_nearer(t / spread, c / spread, d / spread),
        "similarity: the decoy is nearer to the competitor than to the target",
    )
    return context_effect(model, t, c, d, **options)


def best_decoy(
    model: Model,
    A: ArrayLike,
    B: ArrayLike,
    *,
    candidates: ArrayLike | None = None,
    bounds: ArrayLike | None = None,
    situation: ArrayLike | None = None,
    points: int = 1024,
    rounds: int = 12,
    random_state: int = 0,
) -> Decoy:
    """Find the third object that helps A against B most: among candidates, or anywhere in a box.

    In a box, ``points`` are spread evenly (a Latin hypercube), and then ``rounds`` times a quarter as many are
    drawn around the eight best, ever nearer. The same seed gives the same decoy. That no other is better is
    likely, not certain.

    Parameters
    ----------
    A, B : the features of two objects, (d,)
    candidates : (candidates, d); give either these
    bounds : or the smallest and the largest value of each feature, (2, d)
    situation : (situation features,), where the model knows situations
    points, rounds, random_state : of the search in a box

    Examples
    --------
    >>> class Twins:
    ...     def predict_scores(self, sets):
    ...         return np.concatenate([-np.log((x == x[:, None]).all(2).sum(1)) for x in sets.to_list()])
    >>> best_decoy(Twins(), [1.0], [0.0], candidates=[[3.0], [0.0]]).candidate
    1
    """
    if (candidates is None) == (bounds is None):
        raise ParameterError("Give either candidates, the objects to try, or bounds, the box to search.")
    before, shifts = _against(model, A, B, situation)
    if candidates is not None:
        tried = np.atleast_2d(np.asarray(candidates, dtype=np.float64))
        values = shifts(tried)
    else:
        tried, values = _search(shifts, _box(bounds, np.size(A)), points, rounds, random_state)
    best = int(np.argmax(values))
    return Decoy(
        features=tried[best],
        shift=float(values[best]),
        before=before,
        after=before + float(values[best]),
        candidate=None if candidates is None else best,
    )


def decoy_map(
    model: Model,
    A: ArrayLike,
    B: ArrayLike,
    bounds: ArrayLike,
    *,
    features: tuple[int, int] = (0, 1),
    others: ArrayLike | None = None,
    points: int = 81,
    situation: ArrayLike | None = None,
) -> DecoyMap:
    """Return how C helps A against B at every place of a grid in two features.

    ``bounds``, (2, 2), is the box of these two; the other features of C are ``others``, (d,), by default half way
    between A and B.
    """
    check_number("points", points, least=2, whole=True)
    low, high = _box(bounds, 2)
    before, shifts = _against(model, A, B, situation)
    rest = (np.ravel(A) + np.ravel(B)) / 2 if others is None else np.asarray(others, dtype=np.float64)
    if len(set(features)) != 2 or not set(features) <= set(range(np.size(A))):
        raise ParameterError(f"features needs two places from 0 to {np.size(A) - 1}; got {features}.")
    x, y = (np.linspace(low[i], high[i], points) for i in (0, 1))
    c = np.tile(rest, (points * points, 1))
    c[:, features[0]], c[:, features[1]] = (part.ravel() for part in np.meshgrid(x, y))
    return DecoyMap(x, y, shifts(c).reshape(points, points), before)


def _against(
    model: Model, A: ArrayLike, B: ArrayLike, situation: ArrayLike | None
) -> tuple[float, Callable[[Floats], Floats]]:
    """Return the log-odds of one A against one B, and what each of many C adds to them."""
    a, b = _triples({"A": A, "B": B})
    if len(a) != 1:
        raise ShapeError(f"A decoy is for one A and one B, (features,) each; got {len(a)} of them.")
    about = None if situation is None else np.atleast_2d(np.asarray(situation))
    before, unsure = _gaps(model, [a, b], about)

    def shifts(c: Floats) -> Floats:
        return moved(before, unsure, *_gaps(model, _triples({"A": a, "B": b, "C": c}), about))

    return float(before[0]), shifts


def _search(
    worth: Callable[[Floats], Floats], box: tuple[Floats, Floats], points: int, rounds: int, random_state: int
) -> tuple[Floats, Floats]:
    """Return what was tried last, the best of all first, and its worth."""
    check_number("points", points, least=8, whole=True)
    check_number("rounds", rounds, least=0, whole=True)
    check_number("random_state", random_state, least=0, whole=True)
    low, high = box
    rng = np.random.default_rng(random_state)
    order = rng.permuted(
        np.tile(np.arange(points), (len(low), 1)), axis=1
    ).T  # a Latin hypercube: (points, d)
    tried = low + (high - low) * (order + rng.random(order.shape)) / points
    values = worth(tried)
    for i in range(rounds):
        best = np.argsort(-values, kind="stable")[:8]
        drawn = rng.normal(scale=0.15 * 0.6**i, size=(max(1, points // 32), 8, len(low)))
        near = np.clip(tried[best] + (high - low) * drawn, low, high).reshape(-1, len(low))
        tried, values = np.concatenate([tried[best], near]), np.concatenate([values[best], worth(near)])
    return tried, values


def _box(bounds: Any, n_features: int) -> tuple[Floats, Floats]:
    box = np.asarray(bounds, dtype=np.float64)
    if box.shape != (2, n_features):
        raise ShapeError(
            f"bounds needs the smallest and the largest value of each feature, shape {(2, n_features)}; "
            f"got {box.shape}."
        )
    if np.array_equal(box[0], box[1]):
        raise ParameterError(
            "bounds holds the smallest values of all features, then the largest, such as [[0, 0], [1, 1]]; these are "
            f"the same, {box[0].tolist()}: a single point."
        )
    if not np.isfinite(box).all() or (box[0] > box[1]).any():
        raise ParameterError("bounds needs finite numbers, the smallest value of a feature first.")
    return box[0], box[1]


def _triples(named: dict[str, ArrayLike]) -> list[Floats]:
    """Bring the objects of n sets to one shape, (n, d)."""
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


def _gaps(model: Model, objects: list[Floats], situation: ArrayLike | None) -> tuple[Floats, Floats]:
    """Return U(first) - U(second) in sets of these objects, and how much of it is rounding."""
    X = np.stack(objects, axis=1)  # (n, m, d)
    about = None
    if situation is not None:
        rows = np.asarray(situation)
        about = np.broadcast_to(rows, (len(X), rows.shape[-1])) if len(rows) == 1 else rows
    packed, rounding = utilities_of(model, Sets.from_array(X, None, about))
    utilities = packed.reshape(len(X), -1)
    return utilities[:, 0] - utilities[:, 1], rounding * np.abs(utilities).max(1)


def moved(before: Floats, unsure: Floats, after: Floats, unsure_too: Floats) -> Floats:
    """Return by how much gaps change; within rounding they don't."""
    change = after - before
    return np.where(np.abs(change) <= np.maximum(unsure, unsure_too), 0.0, change)


def dominates(better: Floats, worse: Floats) -> Mask:
    """Say where one is at least as good in every feature, and better in one."""
    return np.asarray((better >= worse).all(1) & (better > worse).any(1))


def only_first_dominates(target: Floats, competitor: Floats, decoy: Floats) -> Mask:
    """Say where the target dominates the decoy and the competitor doesn't."""
    return dominates(target, decoy) & ~dominates(competitor, decoy)


def lies_between(target: Floats, competitor: Floats, extreme: Floats) -> Mask:
    """Say where the target is between the two others in every feature, and equal to neither."""
    differs = (target != competitor).any(1) & (target != extreme).any(1)
    return np.asarray(((target - competitor) * (extreme - target) >= 0).all(1) & differs)


def is_nearer(target: Floats, competitor: Floats, decoy: Floats, share: float = 1.0) -> Mask:
    """Say where the decoy is less than ``share`` as far from the competitor as from the target."""
    near, far = (np.square(decoy - other).sum(1) for other in (competitor, target))
    return np.asarray(near < share**2 * far)


def _check_design(holds: Mask, what: str) -> None:
    if not holds.all():
        i = int(np.argmin(holds))
        raise DataError(
            f"Triple {i} is no case of {what}; or use context_effect, which takes triples of any kind."
        )


# --- among the objects of sets --------------------------------------------------------------------


def decoys_among(
    model: Model,
    sets: AnySets,
    target: int,
    competitor: int,
    *,
    shown: int = 5,
    most_objects: int = 10_000,
    random_state: int = 0,
) -> DecoysFound:
    """Find the objects of sets that, as a third, help one of them against another most, and that hurt it most.

    An object that occurs more than once is tried once; ``target`` and ``competitor`` are not tried, nor is what is
    the same as one of them. An object that changes nothing neither helps nor hurts.

    Parameters
    ----------
    target, competitor : places among ``sets.objects``; of one set or of two. The situation is that of the target.
    shown : how many to return of either kind
    most_objects : try so many objects at most, drawn at random

    Examples
    --------
    >>> class Twins:
    ...     def predict_scores(self, sets):
    ...         return np.concatenate([-np.log((x == x[:, None]).all(2).sum(1)) for x in sets.to_list()])
    >>> found = decoys_among(Twins(), [[[0.0, 1.0], [1.0, 0.0], [5.0, 5.0]]], 0, 1)
    >>> found.tried, found.helps, found.hurts
    (1, [], [])
    """
    check_number("most_objects", most_objects, least=1, whole=True)
    check_number("random_state", random_state, least=0, whole=True)
    check_number("shown", shown, least=0, whole=True)
    given = Sets.of(sets)
    for name, place in (("target", target), ("competitor", competitor)):
        check_number(name, place, least=0, most=len(given.objects) - 1, whole=True)
    A, B = given.objects[target], given.objects[competitor]
    if (A == B).all():
        raise DataError(
            "Target and competitor have the same features, so nothing can tell them apart. Choose two that differ."
        )
    tried = draw_some(np.arange(len(given.objects)), most_objects, np.random.default_rng(random_state))
    tried = np.sort(tried[np.unique(given.objects[tried], axis=0, return_index=True)[1]])
    objects = given.objects[tried]
    others = (objects != A).any(1) & (objects != B).any(1)
    if not others.any():
        raise DataError("There is no third object to try: all are the same as the target or the competitor.")
    tried, objects = tried[others], objects[others]
    owner = int(np.searchsorted(given.offsets, target, side="right")) - 1
    situation = None if given.situation is None else given.situation[owner]
    before, shifts = _against(model, A, B, situation)
    values = shifts(objects)

    def some(order: Index) -> list[Decoy]:
        return [
            Decoy(objects[i], float(values[i]), before, before + float(values[i]), int(tried[i]))
            for i in order[:shown]
        ]

    return DecoysFound(some(_first(-values)), some(_first(values)), before, len(tried), situation)


def map_features(sets: Sets, target: int, competitor: int, among: Sequence[int]) -> tuple[int, int] | None:
    """Return the two features in which two objects differ most, in units of spread; None where fewer than two vary.

    Features of only two values come last: there is little to see between them.
    """
    varied = [i for i in among if np.ptp(sets.objects[:, i]) > 0]
    if len(varied) < 2:
        return None

    def worth(i: int) -> tuple[bool, float]:
        column = sets.objects[:, i]
        many = bool(((column > column.min()) & (column < column.max())).any())
        return many, abs(float(column[target]) - float(column[competitor])) / spread_of(sets, i)

    first, second = sorted(sorted(varied, key=worth)[-2:])
    return first, second


def _first(values: Floats) -> Index:
    """Return the places of negative values, the smallest first."""
    order = np.argsort(values, kind="stable")
    return order[values[order] < 0]


def draw_some(places: Index, most: int, rng: np.random.Generator) -> Index:
    """Return all of the places, or ``most`` of them drawn at random, in order."""
    return places if len(places) <= most else np.sort(rng.choice(places, most, replace=False))


def spread_of(sets: Sets, feature: int) -> float:
    """Return the standard deviation of a feature over all objects."""
    return float(sets.objects[:, feature].std(dtype=np.float64))
