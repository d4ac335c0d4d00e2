"""Panels: the choices of a person are one contribution to the likelihood, and tell what the person will choose."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entourage.choice.base import ChoiceModel
from entourage.choice.batches import Batches
from entourage.choice.likelihood import Floats, Index, Packed
from entourage.data.grouping import labels_of_sets
from entourage.data.sets import AnySets, Sets, is_frame
from entourage.errors import DataError, ParameterError, ShapeError
from entourage.estimators.inputs import Given, encoder_of, given_sets

__all__ = ["Panel", "PanelModel"]

MOST_BELIEFS = 20_000_000  # numbers that are kept of all people; beyond, nothing is


@dataclass(frozen=True, eq=False)
class Panel(Packed):
    """Objects, the sets of a person side by side."""

    order: Index  # the place of each set in the input, (n,)
    shift: Index  # how far each set moved, in objects, (n,)
    heads: Index  # the first set of each person, and the end, (g + 1,)

    @staticmethod
    def arrange(sets: Sets, people: Index) -> tuple[Floats, Index, Index, Index, Index]:
        """Return the fields of a panel: objects less the mean of their set, and how the sets of people lie."""
        order = np.argsort(people, kind="stable")
        offsets = np.append(0, np.cumsum(sets.sizes[order]))
        shift = offsets[:-1] - sets.offsets[order]
        rows = np.arange(len(sets.objects)) - np.repeat(shift, sets.sizes[order])
        heads = np.append(0, np.cumsum(np.bincount(people)))
        features = Packed.centred(sets).features
        return features[rows] if shift.any() else features, offsets, order, shift, heads

    def rows_of(self, chosen: Index) -> Index:
        """Return where the chosen objects of the input are, set by set of the panel."""
        return np.asarray(chosen[self.order] + self.shift)

    @property
    def ends(self) -> Index:
        """Where the rows of each person end, from 0 on, (g + 1,)."""
        return np.asarray(self.offsets[self.heads])

    def part(self, start: int, stop: int) -> Self:
        """Return some of the people, from ``start`` to ``stop``, their sets in the order of the panel."""
        first, last = int(self.heads[start]), int(self.heads[stop])
        sets, heads = np.arange(last - first), self.heads[start : stop + 1] - first
        return replace(super().part(first, last), order=sets, shift=np.zeros_like(sets), heads=heads)

    def chosen_in(self, rows: Index, start: int, stop: int) -> Index:
        """Return what some of the people chose, given what `rows_of` returned for all."""
        first, last = int(self.heads[start]), int(self.heads[stop])
        return super().chosen_in(rows, first, last)


class PanelModel(ChoiceModel):
    """A choice model whose decision makers differ, and of whom some are known by their choices.

    Attributes
    ----------
    people_ : where ``fit`` was given ``groups``, their labels, ascending
    beliefs_ : the probability of each class, or draw, given the choices of a person, (people, classes or draws);
        only where ``groups`` was given, and of at most 20 million numbers
    """

    _panel = True
    people_: list[Any] | None = None

    def predict_scores(
        self,
        X: AnySets,
        *,
        situation: ArrayLike | None = None,
        people: ArrayLike | str | None = None,
    ) -> Any:
        """Return the logarithm of the probability of each object, but for a constant; see `predict_proba`."""
        if people is None:
            return super().predict_scores(X, situation=situation)
        given, scores = self._scores_of_people(X, situation, people)
        return given.back(scores)

    def predict_proba(
        self,
        X: AnySets,
        *,
        situation: ArrayLike | None = None,
        people: ArrayLike | str | None = None,
    ) -> Any:
        """Return the probability that each object is chosen, in the form of the input.

        ``people`` are the labels that ``groups`` of ``fit`` had, one a set, or the column of a table that holds them:
        what a person chose before then tells what they will choose. People who are not known are predicted as new
        ones, as all are without ``people``.
        """
        if people is None:
            return super().predict_proba(X, situation=situation)
        given, scores = self._scores_of_people(X, situation, people)
        return given.back(self.task.probabilities(given.sets, scores))

    def predict(
        self,
        X: AnySets,
        *,
        situation: ArrayLike | None = None,
        people: ArrayLike | str | None = None,
    ) -> NDArray[np.int64]:
        """Return the place of the most probable object of each set; of a table, 1 for its row. See `predict_proba`."""
        if people is None:
            return super().predict(X, situation=situation)
        given, scores = self._scores_of_people(X, situation, people)
        places = np.asarray(self.task.places(given.sets, scores))
        if not given.is_table:
            return places
        chosen = np.zeros(len(given.sets.objects), dtype=np.int64)
        chosen[given.sets.offsets[:-1] + places] = 1
        return np.asarray(given.back(chosen))

    @property
    def individual_coefficients_(self) -> Floats:
        """Return the mean coefficients of each person given their choices, (people, columns); see ``people_``."""
        self._check_fitted()
        self._check_known()
        return self._individual()

    @abstractmethod
    def _individual(self) -> Floats:
        """Return the mean coefficients of each person given their choices, (g, d)."""

    @abstractmethod
    def _beliefs(self, packed: Any, chosen: Index) -> Floats:
        """Return the probability of each class, or draw, given the choices of each person of a batch, (g, r)."""

    @abstractmethod
    def _scores_given(self, sets: Sets, person: Index) -> Floats:
        """Return packed log-probabilities; of each set the place of its person in ``people_``, -1 for a new one."""

    @property
    def _width(self) -> int:
        """How many classes, or draws, there are of each person."""
        raise NotImplementedError

    def _know_people(self, groups: Any, data: Batches) -> None:
        for name in ("people_", "beliefs_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        if groups is None or self.n_groups_ * self._width > MOST_BELIEFS:
            return
        self.people_ = [_label(one) for one in np.unique(np.asarray(groups)).tolist()]
        self.beliefs_ = np.concatenate([self._beliefs(batch.packed, batch.chosen) for batch in data])

    def _check_known(self) -> None:
        if self.people_ is None:
            raise ParameterError(
                "No person is known: give fit the decision maker of each set as groups (up to 20 million draws of all "
                "people together are kept)."
            )

    def _scores_of_people(self, X: Any, situation: Any, people: Any) -> tuple[Given, Floats]:
        self._check_fitted()
        self._check_known()
        given = given_sets(self, X, situation)
        if isinstance(people, str):
            if not is_frame(X):
                raise ParameterError(
                    f"people={people!r} names a column, but X is no table. Pass one label a set."
                )
            packed = encoder_of(self)(X, with_target=False)
            own = labels_of_sets(X, packed, people)
        else:
            own = np.asarray(people).tolist()
            if np.asarray(people).shape != (len(given.sets),):
                raise ShapeError(
                    f"people needs one label a set, shape {(len(given.sets),)}; got {np.asarray(people).shape}."
                )
        places = {label: i for i, label in enumerate(self.people_ or [])}
        person = np.array([places.get(_label(label), -1) for label in own], dtype=np.int64)
        if (person < 0).all():
            raise DataError(
                f"None of these people was learnt from; the first is {own[0]!r}, known are "
                f"{', '.join(map(repr, list(places)[:3]))} and others. Leave people out to predict for new people."
            )
        self._check_features(given.sets)
        return given, self._scores_given(self._seen(given.sets), person)


def _label(value: Any) -> Any:
    """Bring a label into what a file can hold."""
    return value if isinstance(value, int | str | float) and not isinstance(value, bool) else str(value)
