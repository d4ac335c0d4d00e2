"""What a third object does to A against B: attraction, compromise, similarity, and the decoy that helps most.

Log-odds are differences of utilities, which is what they mean to `DiscreteChooser`. A `Ranker` that learns strict
orders has utilities without a scale of their own, often larger in pairs than in triples: then much of a shift is
that scale, and it is better to compare two third objects (``instead``), or to look at what turns.

:func:`natural_effects` looks for cases of the three effects among the objects that stand together anyway, and
:func:`decoys_among` for the objects that help or hurt a given one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from entourage.effects import Estimate, Model, of_three, utilities_of
from entourage.errors import DataError, ParameterError, ShapeError, check_choice, check_number
from entourage.intervals import labels_of
from entourage.sets import AnySets, Sets

__all__ = [
    "ContextEffect",
    "Decoy",
    "DecoyMap",
    "DecoysFound",
    "NaturalEffects",
    "attraction",
    "best_decoy",
    "compromise",
    "context_effect",
    "decoy_map",
    "decoys_among",
    "map_features",
    "natural_effects",
    "similarity",
]

Floats: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]

_LOOKED_AT = 200_000  # triples that are looked at in all, drawn at random where there are more
_PER_SET = 500  # triples of a set that are looked at where there are many sets
_MUCH_NEARER = 1 / 3  # a decoy is like the competitor where it is so much nearer to it than to the target
_RAISED = 200  # objects of which a feature is raised, to see which direction is better
_STEP = 0.1  # by which it is raised, in units of its spread
_CHUNK = 4_000_000  # numbers in a temporary array, so that memory stays bounded


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


@dataclass(frozen=True)
class NaturalEffects:
    """The three effects over the triples that sets hold by themselves.

    Attributes
    ----------
    effects : of "attraction", "compromise" and "similarity"; None where there was no case
    sets : in how many sets these cases were
    better : the direction that was taken for better of each feature that took part, "more" or "less"
    slopes : by how much the utility rises with one spread of a feature, where its direction was the model's to say
    left_out : features that took no part
    failed : why nothing could be measured; None where it could
    """

    effects: dict[str, ContextEffect | None]
    sets: dict[str, int]
    better: dict[str, str]
    slopes: dict[str, float]
    left_out: list[str]
    failed: str | None = None

    def to_json(self, level: float = 0.05) -> dict[str, Any]:
        """Return everything, ready for JSON; intervals leave out ``level``."""
        return {
            "failed": self.failed,
            "better": self.better,
            "slopes": self.slopes,
            "left_out": self.left_out,
            **{
                name: None if effect is None else effect.to_json(level) | {"sets": self.sets[name]}
                for name, effect in self.effects.items()
            },
        }


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
    shift = _moved(before, unsure, *_gaps(model, [a, b, c], situation))
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
        _only_first_dominates(sign * t, sign * c, sign * d),
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
        _between(t, c, e), "compromise: the target lies between competitor and extreme in every feature"
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
        _nearer(t / spread, c / spread, d / spread),
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
        return _moved(before, unsure, *_gaps(model, _triples({"A": a, "B": b, "C": c}), about))

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


def _moved(before: Floats, unsure: Floats, after: Floats, unsure_too: Floats) -> Floats:
    """Return by how much gaps change; within rounding they don't."""
    change = after - before
    return np.where(np.abs(change) <= np.maximum(unsure, unsure_too), 0.0, change)


def _dominates(better: Floats, worse: Floats) -> Mask:
    return np.asarray((better >= worse).all(1) & (better > worse).any(1))


def _only_first_dominates(target: Floats, competitor: Floats, decoy: Floats) -> Mask:
    return _dominates(target, decoy) & ~_dominates(competitor, decoy)


def _between(target: Floats, competitor: Floats, extreme: Floats) -> Mask:
    differs = (target != competitor).any(1) & (target != extreme).any(1)
    return np.asarray(((target - competitor) * (extreme - target) >= 0).all(1) & differs)


def _nearer(target: Floats, competitor: Floats, decoy: Floats, share: float = 1.0) -> Mask:
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
    given = Sets.of(sets)
    A, B = given.objects[target], given.objects[competitor]
    if (A == B).all():
        raise DataError(
            "Target and competitor have the same features, so nothing can tell them apart. Choose two that differ."
        )
    tried = _draw(np.arange(len(given.objects)), most_objects, np.random.default_rng(random_state))
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
        return many, abs(float(column[target]) - float(column[competitor])) / _spread(sets, i)

    first, second = sorted(sorted(varied, key=worth)[-2:])
    return first, second


def _first(values: Floats) -> Index:
    """Return the places of negative values, the smallest first."""
    order = np.argsort(values, kind="stable")
    return order[values[order] < 0]


def natural_effects(
    model: Model,
    sets: AnySets,
    *,
    names: Sequence[str] | None = None,
    ordered: Sequence[int] | None = None,
    better: Mapping[str, str] | None = None,
    most_triples: int = 2000,
    random_state: int = 0,
) -> NaturalEffects:
    """Measure attraction, compromise and similarity over triples that stand together in a set anyway.

    Three objects A, B, C of a set are a case of

    - attraction, where A dominates C (as good in every feature, better in one), B doesn't, and neither of A and B
      dominates the other;
    - compromise, where A lies between B and C in every feature, strictly in one, and none dominates another;
    - similarity, where C is less than a third as far from B as from A, in units of spread, and none dominates another.

    With two features, one of three objects of which none dominates another always lies between the others: there every
    case of similarity is one of compromise as well, for another A.

    What is measured is how C, when it joins A and B, moves the log-odds of A against B: above 0 is the direction of
    the literature. Triples of one set are resampled together in the intervals. A model that has never seen sets as
    small as pairs and triples may be off in them, and these figures with it.

    Parameters
    ----------
    names : of the features; x0, x1, ... by default
    ordered : the places of features of which more may be better or worse, by default all: no categories. Those that
        don't vary are left out.
    better : of some features by name, whether "more" or "less" is better. For others the model says: the sign of the
        mean slope of an object's utility beside the others of its set, when the feature is raised a little. Those of
        which the model knows no direction are left out.
    most_triples : measure so many triples of an effect at most, drawn at random
    random_state : seeds what is drawn

    Examples
    --------
    >>> class Proud:  # one more for each object that one dominates
    ...     def predict_scores(self, sets):
    ...         return np.concatenate([x.sum(1) + (x[:, None] > x).all(2).sum(1) for x in sets.to_list()])
    >>> found = natural_effects(Proud(), [[[1.0, 2.0], [2.0, 1.0], [0.5, 1.5]]])
    >>> found.effects["attraction"].shift.value, found.better
    (1.0, {'x0': 'more', 'x1': 'more'})
    """
    check_number("most_triples", most_triples, least=1, whole=True)
    check_number("random_state", random_state, least=0, whole=True)
    given = of_three(sets, least=1)
    given = given[given.sizes >= 3]
    called = [f"x{i}" for i in range(given.n_features)] if names is None else list(names)
    if len(called) != given.n_features:
        raise ShapeError(f"names needs one for each of {given.n_features} features; got {len(called)}.")
    rng = np.random.default_rng(random_state)
    places = range(given.n_features) if ordered is None else ordered
    varied = {called[i]: i for i in places if np.ptp(given.objects[:, i]) > 0}
    signs, slopes = _directions(model, given, varied, better or {}, rng)
    used = {name: i for name, i in varied.items() if name in signs}
    effects: dict[str, ContextEffect | None] = dict.fromkeys(("attraction", "compromise", "similarity"))
    counts = dict.fromkeys(effects, 0)
    if len(used) > 1:
        owners, rows = _some_triples(given, rng)
        scale = np.array([signs[name] / _spread(given, i) for name, i in used.items()])
        for name, cases in _cases(given.objects[:, list(used.values())] * scale, rows).items():
            some = _draw(cases, most_triples, rng)
            counts[name] = len(np.unique(owners[some]))
            effects[name] = _measured(model, given, owners[some], rows[some]) if len(some) else None
    return NaturalEffects(
        effects,
        counts,
        better={name: "more" if signs[name] > 0 else "less" for name in used},
        slopes=slopes,
        left_out=[name for name in called if name not in used],
        failed=None if len(used) > 1 else _too_few(list(used)),
    )


def _too_few(used: list[str]) -> str:
    there = f"there is one, {used[0]!r}" if used else "there is none"
    return (
        "Attraction, compromise and similarity need two features that are numbers, vary, and of which the model "
        f"prefers more or less; {there}."
    )


def _directions(
    model: Model, sets: Sets, places: dict[str, int], better: Mapping[str, str], rng: np.random.Generator
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the sign of the better direction of features, where there is one, and the slopes that were asked."""
    signs = _given_signs(better, list(places))
    asked = [name for name in places if name not in signs]
    found = _slopes(model, sets, [places[name] for name in asked], rng)
    slopes = {name: slope for name, slope in zip(asked, found, strict=True) if slope}
    return signs | {name: float(np.sign(slope)) for name, slope in slopes.items()}, slopes


def _given_signs(better: Mapping[str, str], known: list[str]) -> dict[str, float]:
    for name, direction in better.items():
        if name not in known:
            raise ParameterError(
                f"A better direction is for features that are numbers and vary; {name!r} is none of them. Choose from "
                f"{', '.join(map(repr, known)) or 'other data: there is none'}."
            )
        check_choice(f"better[{name!r}]", direction, ("more", "less"))
    return {name: 1.0 if direction == "more" else -1.0 for name, direction in better.items()}


def _draw(places: Index, most: int, rng: np.random.Generator) -> Index:
    """Return all of the places, or ``most`` of them drawn at random, in order."""
    return places if len(places) <= most else np.sort(rng.choice(places, most, replace=False))


def _spread(sets: Sets, feature: int) -> float:
    return float(sets.objects[:, feature].std(dtype=np.float64))


def _slopes(model: Model, sets: Sets, features: list[int], rng: np.random.Generator) -> list[float]:
    """Return by how much one spread more of a feature raises an object beside the others of its set, on average."""
    fitting = max(1, _CHUNK // (int(sets.sizes.max()) * sets.n_features))
    drawn = _draw(np.arange(len(sets.objects)), min(_RAISED, fitting), rng)
    owners = np.searchsorted(sets.offsets, drawn, side="right") - 1
    copies = sets[owners]  # one for each object that is raised
    own = copies.offsets[:-1] + drawn - sets.offsets[owners]

    def lead(objects: NDArray[Any]) -> tuple[Floats, Floats]:
        utilities, rounding = utilities_of(model, copies.with_features(objects, copies.situation))
        others = np.add.reduceat(utilities, copies.offsets[:-1]) - utilities[own]
        largest = np.maximum.reduceat(np.abs(utilities), copies.offsets[:-1])
        return utilities[own] - others / (copies.sizes - 1), rounding * largest

    before, found = lead(copies.objects), []
    for i in features:
        raised = copies.objects.copy()
        raised[own, i] += _STEP * _spread(sets, i)
        found.append(float(_moved(*before, *lead(raised)).mean()) / _STEP)
    return found


def _some_triples(sets: Sets, rng: np.random.Generator) -> tuple[Index, Index]:
    """Draw triples of objects that share a set, in any order: their sets (n,) and their rows (n, 3)."""
    possible = sets.sizes * (sets.sizes - 1) * (sets.sizes - 2)
    most = max(_PER_SET, _LOOKED_AT // len(sets))
    order = rng.permutation(len(sets))
    looked_at = order[np.cumsum(np.minimum(possible, most)[order]) <= _LOOKED_AT]
    wanted = np.zeros(len(sets), dtype=bool)
    wanted[looked_at] = True
    owners, rows = [], []
    for chosen, members in sets.by_size():
        mine = wanted[chosen]
        if mine.any():
            which, places = _places(int(mine.sum()), members.shape[1], most, rng)
            owners.append(chosen[mine][which])
            rows.append(members[mine][which[:, None], places])
    return np.concatenate(owners), np.concatenate(rows)


def _places(n: int, m: int, most: int, rng: np.random.Generator) -> tuple[Index, Index]:
    """Return triples of places in n sets of m, all or ``most`` at random: the sets (k,) and the places (k, 3)."""
    possible = m * (m - 1) * (m - 2)
    numbers = (
        np.tile(np.arange(possible), (n, 1)) if possible <= most else rng.integers(possible, size=(n, most))
    )
    which, number = np.divmod(np.unique(numbers + possible * np.arange(n)[:, None]), possible)  # none twice
    a, number = np.divmod(number, (m - 1) * (m - 2))
    b, c = np.divmod(number, m - 2)
    b = b + (b >= a)  # the b-th of those who are not a
    c = c + (c >= np.minimum(a, b))
    c = c + (c >= np.maximum(a, b))
    return which, np.stack([a, b, c], axis=1)


def _cases(objects: Floats, rows: Index) -> dict[str, Index]:
    """Return which triples of rows are cases of each effect; see `_kinds`."""
    step = max(1, _CHUNK // (3 * objects.shape[1]))
    parts = [_kinds(*(objects[column] for column in rows[k : k + step].T)) for k in range(0, len(rows), step)]
    return {name: np.flatnonzero(np.concatenate([part[name] for part in parts])) for name in parts[0]}


def _kinds(a: Floats, b: Floats, c: Floats) -> dict[str, Mask]:
    """Say which triples are cases of which effect; more is better, and spreads are alike."""
    traded = ~_dominates(a, b) & ~_dominates(b, a)
    apart = traded & ~_dominates(a, c) & ~_dominates(c, a) & ~_dominates(b, c) & ~_dominates(c, b)
    strictly = ((a - b) * (c - a) > 0).any(1)
    return {
        "attraction": traded & _only_first_dominates(a, b, c),
        "compromise": apart & _between(a, b, c) & strictly,
        "similarity": apart & _nearer(a, b, c, _MUCH_NEARER),
    }


def _measured(model: Model, sets: Sets, owners: Index, rows: Index) -> ContextEffect:
    situation = None if sets.situation is None else sets.situation[owners]
    a, b, c = sets.objects[rows.T]
    return context_effect(model, a, b, c, situation=situation, groups=owners)
