"""Attraction, compromise and similarity among the alternatives of observed choice sets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from entourage.data.sets import AnySets, Sets
from entourage.effects.estimate import draw_at_most
from entourage.effects.features import Features, spread_of
from entourage.effects.intervals import Measured, Quantity, calibrated_intervals
from entourage.effects.refits import Refits
from entourage.effects.triples import (
    ContextEffect,
    change_beyond_rounding,
    context_effect,
    dominates,
    is_nearer,
    lies_between,
    of_three,
    only_first_dominates,
)
from entourage.effects.utilities import Model, utilities_of
from entourage.errors import ParameterError, check_choice, check_number

__all__ = ["NaturalEffects", "check_better", "natural_effects"]

Floats: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]

_SCREENED = 200_000  # triples screened for cases, drawn at random where there are more
_PER_SET = 500  # triples of a set that are screened where there are many sets
_MUCH_NEARER = (
    1 / 3
)  # a decoy is similar to the competitor where it is so much nearer to it than to the target
_RAISED = 200  # objects of which a feature is raised, to find the better direction
_STEP = 0.1  # by which it is raised, in standard deviations
_CHUNK = 4_000_000  # numbers in a temporary array, so that memory stays bounded


@dataclass(frozen=True)
class NaturalEffects:
    """The three effects over the triples that occur in choice sets.

    Attributes
    ----------
    effects : of "attraction", "compromise" and "similarity"; None without a case
    sets : the number of sets with cases, by effect
    better : the better direction of each feature that was used, "more" or "less"
    slopes : the change of utility with one standard deviation of a feature, where the model gave the direction
    left_out : features that were not used
    refits : each effect in refits, for confidence intervals; empty without refits
    extrapolated : whether there is no set of two, so that the model extrapolates to pairs
    failed : why nothing could be measured; None where it could
    """

    effects: dict[str, ContextEffect | None]
    sets: dict[str, int]
    better: dict[str, str]
    slopes: dict[str, float]
    left_out: list[str]
    refits: dict[str, Measured] = field(default_factory=dict)
    extrapolated: bool = False
    failed: str | None = None

    def quantity(self, name: str, level: float = 0.05) -> Quantity | None:
        """Return the mean shift of an effect and, from refits, its interval of 1 - level; None without a case."""
        effect = self.effects[name]
        if effect is None:
            return None
        found = calibrated_intervals(self.refits, level=level)[name] if name in self.refits else None
        return Quantity.of(effect.shift.value, effect.shift.n, found)

    def _effect_json(self, name: str, level: float) -> dict[str, Any] | None:
        effect, quantity = self.effects[name], self.quantity(name, level)
        if effect is None or quantity is None:
            return None
        entry = quantity.to_json()
        first = {key: entry.pop(key) for key in ("value", "interval", "n")}
        shares = {"before": effect.before, "after": effect.after, "turned": effect.reversal_rate}
        return first | shares | entry | {"sets": self.sets[name]}

    def to_json(self, level: float = 0.05) -> dict[str, Any]:
        """Return everything, ready for JSON; intervals hold 1 - level, and are None without refits."""
        return {
            "failed": self.failed,
            "better": self.better,
            "slopes": self.slopes,
            "left_out": self.left_out,
            "extrapolated": self.extrapolated,
            **{name: self._effect_json(name, level) for name in self.effects},
        }


def natural_effects(
    model: Model,
    sets: AnySets,
    *,
    names: Sequence[str] | None = None,
    ordered: Sequence[int] | None = None,
    marks: Mapping[int, int] | None = None,
    better: Mapping[str, str] | None = None,
    refits: Refits | None = None,
    most_triples: int = 2000,
    random_state: int = 0,
) -> NaturalEffects:
    """Measure attraction, compromise and similarity over the triples that occur in choice sets.

    Three objects A, B, C of a set are a case of

    - attraction, where A dominates C (as good in every feature, better in one), B doesn't, and neither of A and B
      dominates the other;
    - compromise, where A lies between B and C in every feature, strictly in one, and none dominates another;
    - similarity, where C is less than a third as far from B as from A, in standard deviations, and none dominates
      another.

    With two features, if none of three objects dominates another, one always lies between the others. Each case of
    similarity is then also a case of compromise, for another A.

    Each effect is the mean shift of the log-odds of A against B when C is added; positive is the direction of the
    literature. It is a mean over triples, so large sets count more. A model that has never seen pairs extrapolates to
    them; no interval accounts for that.

    Parameters
    ----------
    names : of the features; by default those of the table that the sets came from, else x0, x1, ...
    ordered : the places of features of which more may be better or worse; by default the numbers of the table, else
        all. Constant features are left out.
    marks : of some features by place, the place of the feature that is 1 where the value was missing: objects that
        miss a feature are in no case; by default as the table says
    better : of some features by name, whether "more" or "less" is better. For others the model decides: the sign of
        the mean slope of an object's utility, relative to the others of its set. Features of slope 0 are left out.
    refits : of the model, for confidence intervals (:func:`entourage.effects.refit_resampled`); measured on the same
        triples
    most_triples : the largest number of triples per effect, drawn at random
    random_state : seed of what is drawn

    Examples
    --------
    >>> class Proud:  # one more for each object that it dominates
    ...     def predict_scores(self, sets):
    ...         return np.concatenate([x.sum(1) + (x[:, None] > x).all(2).sum(1) for x in sets.to_list()])
    >>> found = natural_effects(Proud(), [[[1.0, 2.0], [2.0, 1.0], [0.5, 1.5]]])
    >>> found.effects["attraction"].shift.value, found.better
    (1.0, {'x0': 'more', 'x1': 'more'})
    """
    check_number("most_triples", most_triples, least=1, whole=True)
    check_number("random_state", random_state, least=0, whole=True)
    given = of_three(sets, least=1)
    extrapolated = not bool((given.sizes == 2).any())
    given = given[given.sizes >= 3]
    features = Features.of(given, names, ordered, marks)
    rng = np.random.default_rng(random_state)
    varied = features.varied(given)
    signs, slopes = _directions(model, given, varied, better or {}, rng)
    used = {name: i for name, i in varied.items() if name in signs}
    effects: dict[str, ContextEffect | None] = dict.fromkeys(("attraction", "compromise", "similarity"))
    counts = dict.fromkeys(effects, 0)
    measured: dict[str, Measured] = {}
    if len(used) > 1:
        owners, rows = _some_triples(given, rng)
        missing = [features.missing[i] for i in used.values() if i in features.missing]
        whole = np.all(given.objects[:, missing] <= 0, axis=1)  # objects that miss nothing
        known = np.all(whole[rows], axis=1)
        owners, rows = owners[known], rows[known]
        scale = np.array([signs[name] / spread_of(given, i) for name, i in used.items()])
        found = _cases(given.objects[:, list(used.values())] * scale, rows)
        drawn = {name: draw_at_most(cases, most_triples, rng) for name, cases in found.items() if len(cases)}
        for name, some in drawn.items():
            counts[name] = len(np.unique(owners[some]))
            effects[name] = _measured(model, given, owners[some], rows[some])
        if refits is not None and drawn:
            measured = refits.measure(
                lambda one: {
                    name: _measured(one, given, owners[some], rows[some]).shift.value
                    for name, some in drawn.items()
                }
            )
    return NaturalEffects(
        effects,
        counts,
        better={name: "more" if signs[name] > 0 else "less" for name in used},
        slopes=slopes,
        left_out=[name for name in features.names if name not in used],
        refits=measured,
        extrapolated=extrapolated,
        failed=None if len(used) > 1 else _too_few(list(used)),
    )


def _too_few(used: list[str]) -> str:
    count = f"there is one, {used[0]!r}" if used else "there is none"
    return (
        "Attraction, compromise and similarity need two features that are numbers, vary, and have a better direction; "
        f"{count}."
    )


def _directions(
    model: Model, sets: Sets, places: dict[str, int], better: Mapping[str, str], rng: np.random.Generator
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the sign of the better direction of features, where there is one, and the slopes behind it."""
    check_better(better, places)
    signs = {name: 1.0 if direction == "more" else -1.0 for name, direction in better.items()}
    open_ones = [name for name in places if name not in signs]
    found = _slopes(model, sets, [places[name] for name in open_ones], rng)
    slopes = {name: slope for name, slope in zip(open_ones, found, strict=True) if slope}
    return signs | {name: float(np.sign(slope)) for name, slope in slopes.items()}, slopes


def check_better(better: Mapping[str, str], varied: Mapping[str, int]) -> None:
    """Check that the features with a given direction are among the ``varied`` ones."""
    for name, direction in better.items():
        if name not in varied:
            raise ParameterError(
                f"A better direction is for features that are numbers and vary; {name!r} is none of them. Choose from "
                f"{', '.join(map(repr, varied)) or 'other data: there is none'}."
            )
        check_choice(f"better[{name!r}]", direction, ("more", "less"))


def _slopes(model: Model, sets: Sets, features: list[int], rng: np.random.Generator) -> list[float]:
    """Return the mean change of an object's utility, relative to its set, with one standard deviation of a feature."""
    affordable = max(1, _CHUNK // (int(sets.sizes.max()) * sets.n_features))
    drawn = draw_at_most(np.arange(len(sets.objects)), min(_RAISED, affordable), rng)
    owners = np.searchsorted(sets.offsets, drawn, side="right") - 1
    copies = sets[owners]  # one for each object that is raised
    own = copies.offsets[:-1] + drawn - sets.offsets[owners]

    def lead(objects: NDArray[Any]) -> tuple[Floats, Floats]:
        utilities, error = utilities_of(model, copies.with_features(objects, copies.situation))
        others = np.add.reduceat(utilities, copies.offsets[:-1]) - utilities[own]
        return utilities[own] - others / (copies.sizes - 1), error

    before, found = lead(copies.objects), []
    for i in features:
        raised = copies.objects.copy()
        raised[own, i] += _STEP * spread_of(sets, i)
        found.append(float(change_beyond_rounding(*before, *lead(raised)).mean()) / _STEP)
    return found


def _some_triples(sets: Sets, rng: np.random.Generator) -> tuple[Index, Index]:
    """Draw ordered triples of objects of one set: their sets (n,) and their rows (n, 3)."""
    possible = sets.sizes * (sets.sizes - 1) * (sets.sizes - 2)
    most = max(_PER_SET, _SCREENED // len(sets))
    order = rng.permutation(len(sets))
    screened = order[np.cumsum(np.minimum(possible, most)[order]) <= _SCREENED]
    wanted = np.zeros(len(sets), dtype=bool)
    wanted[screened] = True
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
    b = b + (b >= a)  # the b-th of all but a
    c = c + (c >= np.minimum(a, b))
    c = c + (c >= np.maximum(a, b))
    return which, np.stack([a, b, c], axis=1)


def _cases(objects: Floats, rows: Index) -> dict[str, Index]:
    """Return which triples of rows are cases of each effect; see `_kinds`."""
    step = max(1, _CHUNK // (3 * objects.shape[1]))
    begins = range(0, max(1, len(rows)), step)
    parts = [_kinds(*(objects[column] for column in rows[k : k + step].T)) for k in begins]
    return {name: np.flatnonzero(np.concatenate([part[name] for part in parts])) for name in parts[0]}


def _kinds(a: Floats, b: Floats, c: Floats) -> dict[str, Mask]:
    """Return which triples are cases of which effect; more is better, and features have variance 1."""
    traded = ~dominates(a, b) & ~dominates(b, a)
    apart = traded & ~dominates(a, c) & ~dominates(c, a) & ~dominates(b, c) & ~dominates(c, b)
    strictly = ((a - b) * (c - a) > 0).any(1)
    return {
        "attraction": traded & only_first_dominates(a, b, c),
        "compromise": apart & lies_between(a, b, c) & strictly,
        "similarity": apart & is_nearer(a, b, c, _MUCH_NEARER),
    }


def _measured(model: Model, sets: Sets, owners: Index, rows: Index) -> ContextEffect:
    situation = None if sets.situation is None else sets.situation[owners]
    a, b, c = sets.objects[rows.T]
    return context_effect(model, a, b, c, situation=situation, groups=owners)
