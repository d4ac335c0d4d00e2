"""Everything that is known of the context effects of a model on some sets, in one frozen dataclass.

The command ``entourage effects``, its page, its pictures and its JSON read an :class:`EffectsReport`;
:func:`effects_report` makes it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entourage.data.frames import arrow_table
from entourage.data.grouping import groups_of
from entourage.data.resampling import labels_of
from entourage.data.sets import AnySets, Sets, is_frame
from entourage.effects.context_test import FirstChoiceTest, first_choice_test
from entourage.effects.decoys import PairDecoys, decoys_of_pair
from entourage.effects.estimate import draw_at_most
from entourage.effects.features import Features
from entourage.effects.intervals import Quantity, calibrated_intervals
from entourage.effects.leave_one_out import influence_matrix, measure_removals
from entourage.effects.menus import Menu, Share, repeated_menus
from entourage.effects.observed import NaturalEffects, check_better, natural_effects
from entourage.effects.refit_nets import Progress
from entourage.effects.refits import Refits, refit_resampled
from entourage.effects.triples import of_three
from entourage.effects.utilities import Model
from entourage.errors import DataError, ParameterError, check_number
from entourage.estimators.inputs import encoder_of

__all__ = ["QUANTITIES", "EffectsReport", "InfluentialObject", "effects_report"]

Floats: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.int64]

#: The quantities of a report that have to do with removing one alternative.
QUANTITIES = ("reversal_rate", "iia_violation", "regularity_rate", "regularity_amount")

_SHOWN = 10  # objects that a report names
_LARGEST_SHOWN = 30  # objects of a set whose matrix a report gives


@dataclass(frozen=True)
class InfluentialObject:
    """An object that changes the utilities of the others of its set.

    Attributes
    ----------
    set, place : the number of its set, and where it stands in it
    moves : the mean absolute change of the others' utilities when it is added
    """

    set: int
    place: int
    moves: float


@dataclass(frozen=True, eq=False)
class EffectsReport:
    """The context effects of a model on some sets.

    Attributes
    ----------
    model : its settings
    sets, sets_seen : how many there are, and how many were measured
    smallest, largest : the sizes of the measured sets
    level : the significance level: intervals hold 1 - level
    groups : how many groups were resampled; None without refits
    resampled : whether these are single "sets" or "groups"
    reversal_rate : preference reversals when one alternative is removed
    iia_violation : change of a pair's log-odds when a third alternative is removed
    regularity_rate, regularity_amount : how often, and by how much, adding an alternative raises the probability of
        another
    strongest : the most influential objects, the first one first
    matrix : the influence matrix of the set of the first of them, None where it is too large
    context_test : of the choices, or of the first places of rankings; None where there are no targets or no draws
    no_intervals : why there are no confidence intervals; None where there are
    natural_effects : attraction, compromise and similarity among the alternatives of the sets
    menus : choice sets that were offered repeatedly
    pair : which objects, as a third, help one object against another; None where none was asked for
    rows : of each object its row in the table; its place among the objects where there is no table
    """

    model: str
    sets: int
    sets_seen: int
    smallest: int
    largest: int
    level: float
    groups: int | None
    resampled: str
    reversal_rate: Quantity
    iia_violation: Quantity
    regularity_rate: Quantity
    regularity_amount: Quantity
    strongest: list[InfluentialObject]
    matrix: Floats | None
    context_test: FirstChoiceTest | None
    no_intervals: str | None
    natural_effects: NaturalEffects
    menus: list[Menu]
    pair: PairDecoys | None
    rows: Index

    def row_of(self, share: Share) -> int | None:
        """Return the row of an alternative of a repeated choice set; None for choosing nothing."""
        return None if share.place is None else int(self.rows[share.place])

    def name_of(self, share: Share) -> str:
        """Return the name of an alternative of a repeated choice set: its row."""
        row = self.row_of(share)
        copies = f" ({share.copies} copies)" if share.copies > 1 else ""
        return "nothing" if row is None else f"row {row}{copies}"

    def to_json(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        matrix = None
        if self.matrix is not None:
            matrix = [[None if np.isnan(entry) else entry for entry in row] for row in self.matrix.tolist()]
        return {
            "model": self.model,
            "sets": self.sets,
            "sets_seen": self.sets_seen,
            "smallest": self.smallest,
            "largest": self.largest,
            "level": self.level,
            "groups": self.groups,
            "resampled": self.resampled,
            **{name: getattr(self, name).to_json() for name in QUANTITIES},
            "strongest": [vars(one) for one in self.strongest],
            "matrix": matrix,
            "context_test": None if self.context_test is None else self.context_test.to_json(),
            "no_intervals": self.no_intervals,
            "natural_effects": self.natural_effects.to_json(self.level),
            "menus": [
                {"n": menu.n, "shares": list(map(self._share_json, menu.shares))} for menu in self.menus
            ],
            "pair": None if self.pair is None else self.pair.to_json(self.rows),
        }

    def _share_json(self, share: Share) -> dict[str, Any]:
        kept = {key: value for key, value in vars(share).items() if key != "place"}
        ends = list(share.interval)
        return kept | {"interval": ends, "row": self.row_of(share), "name": self.name_of(share)}


def effects_report(
    model: Model,
    sets: AnySets,
    *,
    groups: ArrayLike | str | None = None,
    refits: Refits | int | None = None,
    better: Mapping[str, str] | None = None,
    pair: tuple[int, int] | None = None,
    map_names: tuple[str, str] | None = None,
    rows: ArrayLike | None = None,
    most_sets: int = 500,
    most_triples: int = 2000,
    level: float = 0.05,
    draws: int = 199,
    random_state: int = 0,
    on_progress: Progress | None = None,
) -> EffectsReport:
    """Measure all context effects of a model on some sets: what ``entourage effects`` prints.

    Parameters
    ----------
    model : a fitted model, or anything with ``predict_scores``
    sets : arrays, lists or `Sets`; or, for a model that was fitted to a table, a table
    groups : one label a set, such as who chose; of a table, the name of a column. Groups are resampled for the
        intervals, and their tastes may differ in the context test
    refits : confidence intervals need refits of the model: how many (see :func:`entourage.effects.refit_resampled`),
        or the refits themselves. Without them there are no intervals. A number needs sets with targets
    better : of some features by name, whether "more" or "less" is better; for others the model decides
    pair : two objects, by row: look for decoys that help the first against the second
    map_names : the two features of the map of where a decoy helps; by default those in which the pair differs most
    rows : of each object its row, where these are no places among the objects; a table knows its own
    most_sets : measure so many sets, drawn at random
    most_triples : and so many triples for each of attraction, compromise and similarity
    level : the significance level: intervals hold 1 - level
    draws : of the context test of the choices (or the first places of rankings), on all sets; 0 for no test
    random_state : seeds everything that is drawn
    on_progress : of refits, told how many steps are done, of how many

    Examples
    --------
    >>> class Middle:  # the nearer to the mean of the set, the better
    ...     def predict_scores(self, sets):
    ...         means = np.add.reduceat(sets.objects, sets.offsets[:-1]) / sets.sizes[:, None]
    ...         return -np.abs(sets.objects - np.repeat(means, sets.sizes, axis=0)).sum(1)
    >>> report = effects_report(Middle(), np.random.default_rng(0).normal(size=(50, 4, 2)), pair=(0, 1))
    >>> report.reversal_rate.value > 0.1, report.reversal_rate.interval, report.no_intervals
    (True, None, 'No refits, so no confidence intervals.')
    >>> report.to_json()["natural_effects"]["attraction"]["n"] == report.natural_effects.effects["attraction"].shift.n
    True
    """
    check_number("most_sets", most_sets, least=1, whole=True)
    check_number("level", level, above=0, below=1)
    check_number("draws", draws, least=0, whole=True)
    check_number("random_state", random_state, least=0, whole=True)
    given, rows, groups = _given(model, sets, rows, groups)
    of_three(given, least=1)
    labels = None if groups is None else labels_of(groups, len(given))
    features = Features.of(given)
    check_better(better or {}, features.varied(given[given.sizes >= 3]))
    found_pair = None
    if pair is not None:  # before anything that takes long
        found_pair = decoys_of_pair(
            model, given, *pair, rows=rows, map_names=map_names, random_state=random_state
        )
    elif map_names is not None:
        raise ParameterError("A map is of a pair; give pair=(row, against), or leave map_names out.")
    if refits is not None and not isinstance(refits, Refits):
        refits = refit_resampled(
            model, given, groups=labels, refits=refits, random_state=random_state, on_progress=on_progress
        )
    natural = natural_effects(
        model,
        given,
        better=better,
        refits=refits,
        most_triples=most_triples,
        random_state=random_state,
    )
    drawn = draw_at_most(np.flatnonzero(given.sizes >= 3), most_sets, np.random.default_rng(random_state))
    seen = given[drawn]
    values, pull = measure_removals(model, seen)
    strongest = _strongest(pull, seen, drawn)
    tested = None
    if given.targets is not None and draws > 0:
        tested = first_choice_test(given, groups=labels, draws=draws, random_state=random_state)
    return EffectsReport(
        model=" ".join(repr(model).split()),
        sets=len(given),
        sets_seen=len(seen),
        smallest=int(seen.sizes.min()),
        largest=int(seen.sizes.max()),
        level=level,
        groups=None if refits is None else refits.groups,
        resampled="sets" if refits is not None and refits.groups == len(given) else "groups",
        **_quantities(values, refits, seen, level),
        strongest=strongest,
        matrix=_matrix(model, given[strongest[0].set]),
        context_test=tested,
        no_intervals="No refits, so no confidence intervals." if refits is None else None,
        natural_effects=natural,
        menus=repeated_menus(model, given, level=level),
        pair=found_pair,
        rows=rows,
    )


def _given(model: Any, sets: Any, rows: ArrayLike | None, groups: Any) -> tuple[Sets, Index, Any]:
    """Return sets, the row of each object, and the groups; a table as the model learnt to read it."""
    if not is_frame(sets):
        if isinstance(groups, str):
            raise ParameterError(
                f"groups={groups!r} names a column, but there is no table. Pass one label a set."
            )
        given = Sets.of(sets)
        order = np.arange(len(given.objects)) if rows is None else np.asarray(rows, dtype=np.int64)
        if order.shape != (len(given.objects),):
            raise DataError(
                f"rows needs one for each of {len(given.objects)} objects; got shape {order.shape}."
            )
        return given, order, groups
    if rows is not None:
        raise ParameterError("A table knows its rows; leave rows out.")
    encoder = encoder_of(model)
    packed = encoder(sets, with_target=encoder.target in arrow_table(sets).column_names)
    if isinstance(groups, str):
        groups = groups_of(sets, packed, groups)
    return packed.sets, packed.order, groups


def _quantities(
    values: Mapping[str, Floats], refits: Refits | None, seen: Sets, level: float
) -> dict[str, Quantity]:
    """Return the means over sets of what removing an alternative changes, with what refits make of them."""
    measured = {} if refits is None else refits.measure(lambda one: _means(measure_removals(one, seen)[0]))
    found = {}
    for name, value in _means(values).items():
        calibrated = None
        if name in measured:
            most = np.inf if name == "iia_violation" else 1.0
            calibrated = calibrated_intervals({name: measured[name]}, least=0.0, most=most, level=level)[name]
        found[name] = Quantity.of(value, int((~np.isnan(values[name])).sum()), calibrated)
    return found


def _means(values: Mapping[str, Floats]) -> dict[str, float]:
    return {name: float(np.nanmean(own)) for name, own in values.items()}


def _strongest(pull: Floats, seen: Sets, numbers: Index) -> list[InfluentialObject]:
    """Return the objects that change the utilities of others most; ``numbers`` are those of the sets."""
    found = []
    for row in np.argsort(-pull, kind="stable")[:_SHOWN]:
        i = int(np.searchsorted(seen.offsets, row, side="right")) - 1
        found.append(InfluentialObject(int(numbers[i]), int(row - seen.offsets[i]), float(pull[row])))
    return found


def _matrix(model: Model, one: Sets) -> Floats | None:
    if one.uniform_size is None or one.uniform_size > _LARGEST_SHOWN:
        return None
    return np.asarray(influence_matrix(model, one)[0])
