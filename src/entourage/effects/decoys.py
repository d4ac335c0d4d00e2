"""Decoys: the third alternative that helps A against B most, among candidates, in a box or in a table.

The effect of a given third alternative is :func:`entourage.effects.context_effect`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from entourage.data.sets import AnySets, Sets
from entourage.effects.estimate import draw_at_most
from entourage.effects.features import Features, spread_of
from entourage.effects.triples import broadcast_objects, change_beyond_rounding, utility_gaps
from entourage.effects.utilities import Model
from entourage.errors import DataError, ParameterError, ShapeError, check_number

__all__ = [
    "Decoy",
    "DecoyMap",
    "DecoysFound",
    "PairDecoys",
    "best_decoy",
    "decoy_map",
    "decoys_among",
    "decoys_of_pair",
    "map_features",
]

Floats: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class Decoy:
    """A third object, the log-odds of A against B without and with it, and their difference."""

    features: Floats
    shift: float
    before: float
    after: float
    candidate: int | None = None  # its row, where candidates were given


@dataclass(frozen=True)
class DecoyMap:
    """The effect of a third object C on A against B, everywhere on a grid in two features.

    Attributes
    ----------
    x, y : the values of the two features
    shifts : the increase of the log-odds of A against B when C is added there, (y, x)
    before : the log-odds without C
    A, B : the two features of A and of B
    names : of the two features
    """

    x: Floats
    y: Floats
    shifts: Floats
    before: float
    A: Floats
    B: Floats
    names: tuple[str, str]


@dataclass(frozen=True)
class DecoysFound:
    """The objects that, as a third, help A against B most, and those that hurt it most.

    Attributes
    ----------
    helps, hurts : the strongest first; ``candidate`` is the place among the objects
    before : the log-odds of A against B alone
    tried : how many objects were tried
    situation : of A's set
    """

    helps: list[Decoy]
    hurts: list[Decoy]
    before: float
    tried: int
    situation: NDArray[Any] | None = None


@dataclass(frozen=True)
class PairDecoys:
    """The objects that, as a third, help one row of a table against another, and where others would.

    Attributes
    ----------
    row, against : the two rows
    found : the objects that help and that hurt, by their places among the objects
    map : where a third object would help; None where fewer than two features vary
    """

    row: int
    against: int
    found: DecoysFound
    map: DecoyMap | None

    @property
    def probability(self) -> float:
        """Of preferring the row where there are only these two."""
        return float(expit(self.found.before))

    def to_json(self, rows: Index) -> dict[str, Any]:
        """Return everything but the shifts of the map, ready for JSON; ``rows`` are those of the objects."""

        def decoy(one: Decoy) -> dict[str, Any]:
            before, after = float(expit(one.before)), float(expit(one.after))
            return {"row": int(rows[one.candidate]), "shift": one.shift, "before": before, "after": after}

        return {
            "row": self.row,
            "against": self.against,
            "log_odds": self.found.before,
            "probability": self.probability,
            "tried": self.found.tried,
            "map": None if self.map is None else list(self.map.names),
            "helps": [decoy(one) for one in self.found.helps],
            "hurts": [decoy(one) for one in self.found.hurts],
        }


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

    In a box, ``points`` are spread evenly (a Latin hypercube). Then, ``rounds`` times, a quarter as many are drawn
    around the eight best, ever nearer. The same seed gives the same decoy. The optimum is not guaranteed.

    Parameters
    ----------
    A, B : the features of two objects, (d,)
    candidates : (candidates, d); give either these
    bounds : or the smallest and the largest value of each feature, (2, d)
    situation : (situation features,), where the model has them
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
    names: tuple[str, str] = ("first feature", "second feature"),
    others: ArrayLike | None = None,
    points: int = 81,
    situation: ArrayLike | None = None,
) -> DecoyMap:
    """Return how much C helps A against B, at every point of a grid in two features.

    Parameters
    ----------
    A, B : the features of two objects, (d,)
    bounds : the smallest and the largest value of the two features, (2, 2)
    features, names : the places of the two features, and their names
    others : all features of C, (d,), of which the two are replaced; by default half way between A and B
    points : of the grid, in each direction
    situation : (situation features,), where the model has them
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
    a, b = (np.asarray(one, dtype=np.float64).ravel()[list(features)] for one in (A, B))
    return DecoyMap(x, y, shifts(c).reshape(points, points), before, a, b, names)


def _against(
    model: Model, A: ArrayLike, B: ArrayLike, situation: ArrayLike | None
) -> tuple[float, Callable[[Floats], Floats]]:
    """Return the log-odds of one A against one B, and a function that gives their shift for each of many C."""
    a, b = broadcast_objects({"A": A, "B": B})
    if len(a) != 1:
        raise ShapeError(f"A decoy is for one A and one B, (features,) each; got {len(a)} of them.")
    about = None if situation is None else np.atleast_2d(np.asarray(situation))
    before, error = utility_gaps(model, [a, b], about)

    def shifts(c: Floats) -> Floats:
        return change_beyond_rounding(
            before, error, *utility_gaps(model, broadcast_objects({"A": a, "B": b, "C": c}), about)
        )

    return float(before[0]), shifts


def _search(
    shifts: Callable[[Floats], Floats],
    box: tuple[Floats, Floats],
    points: int,
    rounds: int,
    random_state: int,
) -> tuple[Floats, Floats]:
    """Return the objects of the last round, which hold the best of all, and their shifts."""
    check_number("points", points, least=8, whole=True)
    check_number("rounds", rounds, least=0, whole=True)
    check_number("random_state", random_state, least=0, whole=True)
    low, high = box
    rng = np.random.default_rng(random_state)
    order = rng.permuted(
        np.tile(np.arange(points), (len(low), 1)), axis=1
    ).T  # a Latin hypercube: (points, d)
    tried = low + (high - low) * (order + rng.random(order.shape)) / points
    values = shifts(tried)
    for i in range(rounds):
        best = np.argsort(-values, kind="stable")[:8]
        drawn = rng.normal(scale=0.15 * 0.6**i, size=(max(1, points // 32), 8, len(low)))
        near = np.clip(tried[best] + (high - low) * drawn, low, high).reshape(-1, len(low))
        tried, values = np.concatenate([tried[best], near]), np.concatenate([values[best], shifts(near)])
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


# --- decoys among the objects of sets -------------------------------------------------------------


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

    Identical objects are tried once. Objects identical to ``target`` or ``competitor`` are not tried. An object
    without effect is in neither list.

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
            "Target and competitor have the same features, so no model can tell them apart. Choose two that differ."
        )
    tried = draw_at_most(np.arange(len(given.objects)), most_objects, np.random.default_rng(random_state))
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


def decoys_of_pair(
    model: Model,
    sets: Sets,
    row: int,
    against: int,
    *,
    rows: Index,
    map_names: tuple[str, str] | None = None,
    random_state: int = 0,
) -> PairDecoys:
    """Find the objects of sets that help one of them against another, and map where others would.

    The third object of the map has the numbers half way between the two, and the categories of the first.

    Parameters
    ----------
    row, against : two of ``rows``
    rows : of each object its row
    map_names : the features of the map; by default those of :func:`map_features`
    """
    if row == against:
        raise ParameterError(f"A pair needs two different rows; both are {row}.")
    target, competitor = (_place_of(one, rows) for one in (row, against))
    known = Features.of(sets)
    mapped = _two_features(sets, target, competitor, known, map_names)
    found = decoys_among(model, sets, target, competitor, random_state=random_state)
    if mapped is None:
        return PairDecoys(row, against, found, None)
    A, B = sets.objects[[target, competitor]].astype(np.float64)
    others = A.copy()
    others[known.ordered] = (A[known.ordered] + B[known.ordered]) / 2
    others[list(known.missing.values())] = 0.0  # a third object with numbers misses none
    columns = sets.objects[:, list(mapped)]
    where = decoy_map(
        model,
        A,
        B,
        [columns.min(0), columns.max(0)],
        features=mapped,
        names=(known.names[mapped[0]], known.names[mapped[1]]),
        others=others,
        situation=found.situation,
    )
    return PairDecoys(row, against, found, where)


def _place_of(row: int, rows: Index) -> int:
    places = np.flatnonzero(rows == row)
    if len(places) == 0:
        raise DataError(
            f"A row of the table is a number from 0 to {len(rows) - 1:,}; got {row:,}. Give one of these."
        )
    return int(places[0])


def _two_features(
    sets: Sets, target: int, competitor: int, known: Features, names: tuple[str, str] | None
) -> tuple[int, int] | None:
    """Return the places of the features of a map."""
    if names is None:
        return map_features(sets, target, competitor, known.ordered)
    varied = known.varied(sets)
    wrong = [name for name in names if name not in varied]
    if wrong or len(set(names)) != 2 or len(names) != 2:
        came = repr(wrong[0]) if wrong else f"{names[0]!r} twice"
        raise ParameterError(
            f"A map needs two different features that are numbers and vary in the table; got {came}. "
            f"Choose from {', '.join(map(repr, varied)) or 'another table: there is none'}."
        )
    return varied[names[0]], varied[names[1]]


def map_features(sets: Sets, target: int, competitor: int, among: Sequence[int]) -> tuple[int, int] | None:
    """Return the two features in which two objects differ most, in units of spread; None where fewer than two vary.

    Features of two values come last: nothing lies between them.
    """
    varied = [i for i in among if np.ptp(sets.objects[:, i]) > 0]
    if len(varied) < 2:
        return None

    def rank(i: int) -> tuple[bool, float]:
        column = sets.objects[:, i]
        many = bool(((column > column.min()) & (column < column.max())).any())
        return many, abs(float(column[target]) - float(column[competitor])) / spread_of(sets, i)

    first, second = sorted(sorted(varied, key=rank)[-2:])
    return first, second


def _first(values: Floats) -> Index:
    """Return the places of negative values, the smallest first."""
    order = np.argsort(values, kind="stable")
    return order[values[order] < 0]
