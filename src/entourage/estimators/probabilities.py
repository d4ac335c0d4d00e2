"""What a calibrated estimator predicts beyond scores: probabilities of places, intervals of places, prediction sets."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entourage.data.sets import AnySets, Sets
from entourage.errors import UserError
from entourage.estimators.base import OneChoicePredictor, SetPredictor
from entourage.estimators.calibration import MOST_WORK_IN_FIT, Calibration
from entourage.estimators.inputs import given_sets

__all__ = ["CalibratedChooser", "CalibratedPredictor", "CalibratedRanker"]


class CalibratedPredictor(SetPredictor):
    """An estimator whose scores are calibrated on sets that it was not trained on."""

    calibration_: Calibration | None = None

    def calibrate(
        self,
        X: AnySets,
        y: Any = None,
        *,
        situation: ArrayLike | None = None,
        sample_weight: ArrayLike | str | None = None,
    ) -> Self:
        """Learn probabilities and coverage from sets that were not used for training.

        `fit` calibrates on the sets that it holds out for early stopping. By them the weights were chosen, which
        makes them a little optimistic; fresh sets are not. A ranker learns its temperature and the thresholds of
        place intervals; a chooser the thresholds of prediction sets, and its probabilities stay as they are.

        Parameters
        ----------
        X, y, situation, sample_weight : as in `fit`; a table needs the target column that the model learnt from
        """
        sets, weights = self._evaluation_sets(X, y, situation, sample_weight)
        self.calibration_ = Calibration.fit(self.task, sets, self._checked_scores(sets), weights)
        return self

    def _calibrate_in_fit(
        self, sets: Sets, held_out: NDArray[np.int64] | None, weights: NDArray[Any] | None
    ) -> None:
        """Calibrate on those sets that were held out, where there are such."""
        self.calibration_ = None
        if held_out is None:
            return
        kept, own = sets[held_out], None if weights is None else weights[held_out]
        scores = self._checked_scores(kept)
        self.calibration_ = Calibration.fit(self.task, kept, scores, own, most_work=MOST_WORK_IN_FIT)

    def _learn_from_held_out(
        self, sets: Sets, scores: NDArray[Any], weights: NDArray[np.float64] | None
    ) -> None:
        """Calibrate a blend, on sets that none of the models that score them learnt from."""
        self.calibration_ = Calibration.fit(self.task, sets, scores, weights, most_work=MOST_WORK_IN_FIT)

    def _calibrated(self) -> Calibration:
        """Return what was learnt from held-out sets, or raise an error."""
        self._check_fitted()
        if self.calibration_ is None:
            raise UserError(
                f"This {type(self).__name__} is not calibrated: no sets were held out when it was fitted (with "
                "validation=0, fewer than 20 sets, partial_fit), or its file is of an earlier version. Call "
                "model.calibrate(X, y) with sets that were not used for training."
            )
        return self.calibration_


class CalibratedRanker(CalibratedPredictor):
    """A ranker with probabilities, those of the Plackett-Luce model; see :mod:`entourage.tasks.places`."""

    @property
    def temperature_(self) -> float | None:
        """By what scores are divided for probabilities of the first place; None where nothing was held out."""
        return None if self.calibration_ is None else self.calibration_.temperature

    def predict_proba(self, X: AnySets, *, situation: ArrayLike | None = None) -> Any:
        """Return the probability of the first place for each object, in the form of the input.

        They sum to 1 in each set: the softmax of scores divided by ``temperature_``, which is learnt from sets that
        were held out (see `calibrate`).
        """
        calibration = self._calibrated()
        given = given_sets(self, X, situation)
        return given.back(calibration.first_place(given.sets, self._checked_scores(given.sets)))

    def predict_places(self, X: AnySets, *, situation: ArrayLike | None = None) -> Any:
        """Return the probability of each place for each object: ``(n, m, m)``, place 0 = best in the last axis.

        For a list, and for `Sets` of several sizes, a list of ``(m, m)`` arrays. For a table an array with a row
        for each of its rows, in their order, and a column for each place, 0 beyond the size of the set.

        These follow from one temperature for all places. The first place has one of its own in `predict_proba`, which
        is to be preferred to the first column.
        """
        calibration = self._calibrated()
        given = given_sets(self, X, situation)
        sets, scores = given.sets, self._checked_scores(given.sets)
        packed = np.zeros((len(sets.objects), int(sets.sizes.max())))
        for rows, found in calibration.places(sets, scores):
            packed[rows, : rows.shape[1]] = found
        if given.is_table:
            return given.back(packed)
        if sets.uniform_size is None or isinstance(X, list | tuple):
            return [own[:, : len(own)].copy() for own in sets.unpack(packed)]
        return packed.reshape(len(sets), -1, packed.shape[1])

    def predict_expected_places(self, X: AnySets, *, situation: ArrayLike | None = None) -> Any:
        """Return the expected place of each object, 0 = best, in the form of the input."""
        calibration = self._calibrated()
        given = given_sets(self, X, situation)
        return given.back(calibration.expected_places(given.sets, self._checked_scores(given.sets)))

    def predict_place_intervals(
        self, X: AnySets, coverage: float = 0.9, *, situation: ArrayLike | None = None
    ) -> tuple[Any, Any]:
        """Return the lowest and the highest place of each object, 0 = best, each in the form of the input.

        In a new set, the interval of a random object holds its place with a probability of at least ``coverage``,
        if sets are drawn as those that the model was calibrated on (see `calibrate`): conformal intervals from
        `predict_places` (:mod:`entourage.estimators.calibration`). Where there were too few sets for this coverage
        (fewer than 9 for 0.9, 19 for 0.95), an interval has all places, with a warning.
        """
        calibration = self._calibrated()
        given = given_sets(self, X, situation)
        low, high = calibration.place_intervals(given.sets, self._checked_scores(given.sets), coverage)
        return given.back(low), given.back(high)

    def columns(self, sets: Sets, scores: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Return what a table of predictions has a column for, packed; with the probability of the first place."""
        plain = super().columns(sets, scores)
        if self.calibration_ is None:
            return plain
        return {"probability": self.calibration_.first_place(sets, scores)} | plain


class CalibratedChooser(OneChoicePredictor, CalibratedPredictor):
    """A chooser with prediction sets."""

    def predict_sets(
        self,
        X: AnySets,
        coverage: float = 0.9,
        *,
        situation: ArrayLike | None = None,
        return_nothing: bool = False,
    ) -> Any:
        """Return which objects are in the prediction set: True or False, in the form of the input.

        It holds what is chosen from a new set with a probability of at least ``coverage``, if sets are drawn as
        those that the model was calibrated on (see `calibrate`): split conformal prediction
        (:mod:`entourage.estimators.calibration`). The most probable alternative is always in it. Where there were
        too few sets for this coverage (fewer than 9 for 0.9, 19 for 0.95), everything is, with a warning.

        With an outside option, choosing nothing may be in the prediction set, too, even by itself: then no object is.
        ``return_nothing`` returns as a second value whether it is: one a set; for a table, one a row.
        """
        calibration = self._calibrated()
        given = given_sets(self, X, situation)
        inside, nothing = calibration.choice_sets(
            self.task, given.sets, self._checked_scores(given.sets), coverage
        )
        if not return_nothing:
            return given.back(inside)
        rows = given.back(np.repeat(nothing, given.sets.sizes)) if given.is_table else nothing
        return given.back(inside), rows
