"""What held-out sets say of scores: a temperature that makes them probabilities, and thresholds for a stated coverage.

The thresholds are those of split conformal prediction (Vovk et al., 2005). Each held-out set says how probable the
model held what came true. A threshold leaves out what is less probable than all but a share of that, so that the
truth of a new set, drawn as the held-out sets were, is covered at least as often as stated, whatever the model is.

*Choices*: an object is in the prediction set where its probability reaches the threshold, or is the highest of its
set. The outside option is one of the alternatives.

*Rankings*: a place is in the interval of an object where the probability of this place or a better one, and that of
this place or a worse one, both reach the threshold. Tied objects have the average of the places they share; objects
that are not ranked take no part, and places are counted without them. Sets are drawn, not objects: the objects of a
held-out set share its one vote equally (Lee, Barber and Willett, 2023), and the coverage is that of a random object
of a new set.
"""

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from entourage.data.ranks import average_places
from entourage.data.sets import Sets
from entourage.errors import DataError, ParameterError, UserError, check_number
from entourage.tasks import Choice, Ranking, Task
from entourage.tasks.places import expected_places, place_probabilities, place_work
from entourage.tasks.temperature import fit_temperatures
from entourage.training.file_checks import fits, need

__all__ = ["MOST_WORK", "MOST_WORK_IN_FIT", "Calibration"]

MOST_WORK = 2e9  # operations to find the thresholds of places: some seconds
MOST_WORK_IN_FIT = 2e8  # about a second
_LEVELS = 200  # thresholds are kept for the coverages 0.005 to 0.995
_CHUNK = 4_000_000  # numbers in a temporary array
_NOISE = 1e-7  # thresholds are rounded down to multiples of this, more than probabilities are wrong by


@dataclass(frozen=True)
class Calibration:
    """What held-out sets say of the scores of a model.

    Attributes
    ----------
    temperature : the softmax of scores divided by it is the probability of the first place; None for choices
    choice_thresholds : for the coverages 0.005, 0.010 to 0.995; of choices only. 0: every object is needed
    place_thresholds : the same for places; of rankings only. Empty where sets are so large that places take too long
    n_sets : how many sets the thresholds are from
    place_temperature : scores divided by it are utilities of the Plackett-Luce model of all places; None where it is
        that of the first place, as in files of earlier versions

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> utilities = rng.normal(size=(500, 4))
    >>> ranks = (-utilities - rng.gumbel(size=(500, 4))).argsort(1).argsort(1)
    >>> sets = Sets.from_array(np.zeros((500, 4, 1)), ranks)
    >>> found = Calibration.fit(Ranking(), sets, 10 * utilities.ravel())
    >>> round(found.temperature), round(found.place_temperature), found.n_sets
    (9, 10, 500)
    >>> low, high = found.place_intervals(sets, 10 * utilities.ravel(), 0.9)
    >>> covered = (low <= ranks.ravel()) & (ranks.ravel() <= high)
    >>> bool(covered.mean() >= 0.9)
    True
    """

    temperature: float | None
    choice_thresholds: Sequence[float]
    place_thresholds: Sequence[float]
    n_sets: int
    place_temperature: float | None = None

    @classmethod
    def fit(
        cls,
        task: Task,
        sets: Sets,
        scores: NDArray[Any],
        weights: NDArray[Any] | None = None,
        *,
        most_work: float = MOST_WORK,
    ) -> Self:
        """Learn from sets that were not trained on.

        Parameters
        ----------
        task : `Ranking()` or `Choice()`
        sets : with targets
        scores : of all objects, packed
        weights : how much each set counts; only ratios matter, and a set of weight 0 is left out
        most_work : a limit for the places of rankings. Beyond it a random part of the sets is taken for
            the thresholds
        """
        if not isinstance(task, Choice | Ranking):
            raise ParameterError("Only rankings and choices of one object can be calibrated.")
        if len(scores) != len(sets.objects):
            raise ParameterError(
                f"One score for each of {len(sets.objects)} objects is needed; got {len(scores)}."
            )
        sets = task.check(sets)
        own = np.ones(len(sets)) if weights is None else np.asarray(weights, dtype=np.float64)
        if isinstance(task, Choice):
            used = np.flatnonzero(task.informative(sets) & (own > 0))
            _check_some(used, "no set has two objects")
            values = _choice_conformity(task, sets, scores)[used]
            return cls(None, _thresholds(values, own[used] / own[used].mean()), (), len(used))
        ranked = np.add.reduceat(~np.isnan(_targets(sets)), sets.offsets[:-1])
        used = np.flatnonzero((ranked > 1) & (own > 0))
        _check_some(used, "no set has two ranked objects")
        temperatures = fit_temperatures(sets, scores, own)
        found = cls(temperatures.first, (), (), len(used), temperatures.all)
        used = _affordable(used, place_work(sets.sizes[used]), most_work)
        if len(used) == 0:
            return found
        if len(used) < len(sets):  # a copy of all features is not needed otherwise
            part, taken = sets[used], scores[_rows_of(sets, used)]
        else:
            part, taken = sets, scores
        tails = found._place_conformity(part, taken)
        share = own[used] / own[used].mean()
        known = ~np.isnan(tails)
        masses = np.repeat(share / ranked[used], part.sizes)
        return replace(found, place_thresholds=_thresholds(tails[known], masses[known]), n_sets=len(used))

    # --- rankings -------------------------------------------------------------------------------

    def first_place(self, sets: Sets, scores: NDArray[Any]) -> NDArray[np.float64]:
        """Return the probability of the first place for each object, packed."""
        powers = np.exp(_utilities(sets, scores, self.temperature))
        return np.asarray(powers / np.repeat(np.add.reduceat(powers, sets.offsets[:-1]), sets.sizes))

    def expected_places(self, sets: Sets, scores: NDArray[Any]) -> NDArray[np.float64]:
        """Return the expected place of each object, packed; 0 = best."""
        utilities, found = self._place_utilities(sets, scores), np.empty(len(scores))
        for _, rows in sets.by_size():
            found[rows] = expected_places(utilities[rows])
        return found

    def places(self, sets: Sets, scores: NDArray[Any]) -> Iterator[tuple[NDArray[np.int64], NDArray[Any]]]:
        """Yield some sets of one size at a time: the rows of their objects (n, m), and probabilities (n, m, m)."""
        utilities = self._place_utilities(sets, scores)
        for rows in _chunks(sets):
            yield rows, place_probabilities(utilities[rows])

    def place_intervals(
        self, sets: Sets, scores: NDArray[Any], coverage: float
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the lowest and the highest place of each object, packed."""
        if not self.place_thresholds:
            raise UserError(
                "There are no intervals of places: no sets were held out, or they were too large for it. Call "
                "calibrate(X, y) with sets that were not used for training, and are not that large."
            )
        threshold = min(self._threshold(self.place_thresholds, coverage), 0.5 - _NOISE)  # the median stays
        low, high = np.empty(len(scores), dtype=np.int64), np.empty(len(scores), dtype=np.int64)
        for rows, probabilities in self.places(sets, scores):
            up_to, from_on = _tails(probabilities)
            low[rows] = (up_to >= threshold).argmax(2)
            high[rows] = rows.shape[1] - 1 - (from_on >= threshold)[:, :, ::-1].argmax(2)
        return low, np.maximum(low, high)

    def _place_utilities(self, sets: Sets, scores: NDArray[Any]) -> NDArray[np.float64]:
        """Return packed utilities of the Plackett-Luce model of all places."""
        return _utilities(
            sets, scores, self.temperature if self.place_temperature is None else self.place_temperature
        )

    def _place_conformity(self, sets: Sets, scores: NDArray[Any]) -> NDArray[np.float64]:
        """Return the smaller tail probability of each object's true place, packed; NaN where it is not ranked."""
        utilities, targets = self._place_utilities(sets, scores), _targets(sets)
        found = np.full(len(targets), np.nan)
        for rows in _chunks(sets):
            known = ~np.isnan(targets[rows])
            true = np.where(known, average_places(targets[rows], known), 0.0)
            up_to, from_on = _tails(place_probabilities(utilities[rows], known))
            below, above = (
                np.take_along_axis(tail, side(true).astype(np.int64)[:, :, None], 2)[:, :, 0]
                for tail, side in ((up_to, np.floor), (from_on, np.ceil))
            )
            found[rows] = np.where(known, np.minimum(below, above), np.nan)
        return found

    # --- choices --------------------------------------------------------------------------------

    def choice_sets(
        self, task: Choice, sets: Sets, scores: NDArray[Any], coverage: float
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which objects are in the prediction set, packed, and for each set whether the outside option is."""
        if not self.choice_thresholds:
            raise UserError("A calibration of rankings has no prediction sets for choices.")
        threshold = self._threshold(self.choice_thresholds, coverage)
        p, nothing = task.probabilities(sets, scores), task.probability_of_nothing(sets, scores)
        best = np.maximum(np.maximum.reduceat(p, sets.offsets[:-1]), nothing)
        inside = (p >= threshold) | (p >= np.repeat(best, sets.sizes))
        return inside, ((nothing >= threshold) | (nothing >= best)) & task.outside

    # --- both -----------------------------------------------------------------------------------

    def _threshold(self, thresholds: Sequence[float], coverage: float) -> float:
        """Return the threshold for a coverage, or the next one above; 0, with a warning, where none is enough."""
        check_number("coverage", coverage, above=0, below=1)
        level = math.ceil(coverage * _LEVELS - 1e-6)
        found = thresholds[level - 1] if level < _LEVELS else 0.0
        if found <= 0.0:
            needed = math.ceil(1 / (1 - coverage) - 1e-9) - 1
            why = (
                f"needs at least {needed} sets to calibrate with, and there were {self.n_sets}"
                if needed > self.n_sets
                else "needs everything that has a probability at all"
            )
            warnings.warn(
                f"A coverage of {coverage:g} {why}: nothing is left out. Call calibrate(X, y) with more sets.",
                stacklevel=4,
            )
        return found

    def to_json(self) -> dict[str, Any]:
        """Return what a model file keeps."""
        return asdict(self) | {
            name: list(getattr(self, name)) for name in ("choice_thresholds", "place_thresholds")
        }

    @classmethod
    def from_json(cls, content: Any) -> Self | None:
        """Make it again from a model file, if it can be; None where there is none, as in earlier files."""
        if content is None:
            return None
        need(fits(content, cls), "'calibration' is not what a model learns from held-out sets.")
        temperature, of_places = content["temperature"], content.get("place_temperature")
        need(
            all(t is None or (math.isfinite(t) and t > 0) for t in (temperature, of_places)),
            "its temperature must be above 0.",
        )
        thresholds = [content[name] for name in ("choice_thresholds", "place_thresholds")]
        right = all(
            len(own) in (0, _LEVELS - 1) and all(0 <= value <= 1 for value in own) for own in thresholds
        )
        need(right and content["n_sets"] > 0, "the thresholds of its calibration are no probabilities.")
        need((temperature is None) == bool(thresholds[0]), "its calibration is of choices and of rankings.")
        choices, places = (tuple(map(float, own)) for own in thresholds)
        return cls(temperature, choices, places, content["n_sets"], of_places)


def _utilities(sets: Sets, scores: NDArray[Any], temperature: float | None) -> NDArray[np.float64]:
    """Return packed scores divided by a temperature, the best of each set 0."""
    if temperature is None:
        raise UserError("A calibration of choices has no temperature.")
    values = scores.astype(np.float64)
    values -= np.repeat(np.maximum.reduceat(values, sets.offsets[:-1]), sets.sizes)
    return np.maximum(values / temperature, -1e12)


def _check_some(used: NDArray[np.int64], what: str) -> None:
    if len(used) == 0:
        raise DataError(f"There is nothing to calibrate with: {what} (and a weight above 0).")


def _targets(sets: Sets) -> NDArray[np.float64]:
    if sets.targets is None:
        raise DataError("Targets are needed to calibrate: pass y, or Sets with targets.")
    return np.asarray(sets.targets, dtype=np.float64)


def _rows_of(sets: Sets, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows of the objects of some sets."""
    return np.concatenate([np.arange(sets.offsets[i], sets.offsets[i + 1]) for i in chosen])


def _affordable(used: NDArray[np.int64], work: NDArray[np.float64], most: float) -> NDArray[np.int64]:
    """Return all sets, or as many, at random, as take no more than the work allowed."""
    if work.sum() <= most:
        return used
    count = int(
        most / work.mean()
    )  # a number that depends on no single set, so that a part is like the whole
    return np.sort(np.random.default_rng(len(used)).permutation(used)[:count])


def _chunks(sets: Sets) -> Iterator[NDArray[np.int64]]:
    """Yield the rows of some sets of one size at a time, (n, m)."""
    for _, rows in sets.by_size():
        step = max(1, _CHUNK // rows.shape[1] ** 2)
        for begin in range(0, len(rows), step):
            yield rows[begin : begin + step]


def _tails(probabilities: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the probabilities of each place or a better one, and of each place or a worse one."""
    up_to = np.cumsum(probabilities, axis=2)
    from_on = np.cumsum(probabilities[:, :, ::-1], axis=2)[:, :, ::-1]
    return up_to, from_on


def _choice_conformity(task: Choice, sets: Sets, scores: NDArray[Any]) -> NDArray[np.float64]:
    """Return for each set the probability of what was chosen, 1 where it is the highest: that is always included."""
    p, nothing = task.probabilities(sets, scores), task.probability_of_nothing(sets, scores)
    chosen = _targets(sets) == 0
    own = np.add.reduceat(np.where(chosen, p, 0.0), sets.offsets[:-1])
    own = np.where(np.logical_or.reduceat(chosen, sets.offsets[:-1]), own, nothing)
    best = np.maximum(np.maximum.reduceat(p, sets.offsets[:-1]), nothing)
    return np.where(own >= best, 1.0, own)


def _thresholds(values: NDArray[np.float64], masses: NDArray[np.float64]) -> tuple[float, ...]:
    """Return the threshold for each coverage: the highest that leaves out no more than 1 - coverage.

    A new set has the mass 1, like a held-out set has on average, and might be left out by any threshold.
    """
    order = np.argsort(values, kind="stable")
    ordered = np.maximum(np.floor(values[order] / _NOISE - 1), 0.0) * _NOISE  # rounded down, for the noise
    total = masses.sum() + 1.0
    left_out = (np.concatenate([[0.0], np.cumsum(masses[order])[:-1]]) + 1.0) / total  # below each value
    coverages = np.arange(1, _LEVELS) / _LEVELS
    count = np.searchsorted(left_out, 1.0 - coverages + 1e-12, side="right")  # values that may be thresholds
    return tuple(np.where(count > 0, ordered[np.maximum(count - 1, 0)], 0.0).round(7).tolist())
