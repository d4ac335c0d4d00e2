"""Targets simulated from models of known context effects."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from entourage.data.sets import Sets
from entourage.tasks import Choice, SubsetChoice

__all__ = ["AMPLITUDES", "Amplified", "MeanModel", "object_keys", "plackett_luce_scale", "simulate_targets"]

Floats: TypeAlias = NDArray[np.float64]

AMPLITUDES = (1.0, 3.0, 9.0)  # of the context in known truths, to reach what early stopping shrank
_CONTEXTS = 16  # over which an object's utility is averaged, for the part that is its own


def simulate_targets(model: Any, sets: Sets, rng: np.random.Generator) -> Floats:
    """Draw targets from a model: (objects,).

    Utilities get Gumbel noise: choices follow a softmax, rankings the Plackett-Luce model. The targets of a set are
    assigned in that order, so that the numbers of ties and of unranked objects stay the same. Utilities of rankings
    have no scale of their own; theirs is the maximum-likelihood one.
    """
    utilities = np.asarray(model.predict_scores(sets), dtype=np.float64)
    targets = np.asarray(sets.targets, dtype=np.float64)
    if isinstance(model.task, SubsetChoice):
        return np.asarray(
            rng.random(len(utilities)) >= model.task.probabilities(sets, utilities), dtype=np.float64
        )
    outside = bool(getattr(model.task, "outside", False))
    if not isinstance(model.task, Choice):
        utilities = utilities * plackett_luce_scale(sets, utilities)
    noisy = utilities + rng.gumbel(size=len(utilities))
    drawn = np.full(len(targets), np.nan)
    for chosen, rows in sets.by_size():
        own = noisy[rows]
        if outside:
            won = (own == own.max(1, keepdims=True)) & (own > rng.gumbel(size=(len(chosen), 1)))
            drawn[rows] = 1.0 - won
            continue
        own = np.where(np.isnan(targets[rows]), -np.inf, own)  # unranked objects stay unranked
        order = np.argsort(-own, axis=1, kind="stable")
        np.put_along_axis(own, order, np.sort(targets[rows], axis=1), axis=1)  # NaN is sorted last
        drawn[rows] = own
    return drawn


class Amplified:
    """A known truth: a context-free model plus ``amplitude`` times the context of another model.

    The context of a model is its utility of an object in its set, less the mean of its utility among the objects of
    some other sets, the same for all objects.
    """

    def __init__(self, control: Any, model: Any, own: dict[bytes, float], amplitude: float) -> None:
        self.control, self.model, self.own, self.amplitude = control, model, own, amplitude
        self.task = control.task

    @classmethod
    def all(cls, control: Any, model: Any, sets: Sets, rng: np.random.Generator) -> list["Amplified"]:
        """Make one for each amplitude; they score the objects of ``sets``, in any set."""
        owners = np.repeat(np.arange(len(sets)), sets.sizes)
        keys = object_keys(sets)
        first = np.unique(keys, return_index=True)[1]
        objects = sets.objects[first][:, None]
        situation = None if sets.situation is None else sets.situation[owners[first]]
        total = np.zeros(len(first))
        contexts = rng.choice(len(sets), min(_CONTEXTS, len(sets)), replace=False)
        for i in contexts:
            others = sets.objects[sets.offsets[i] : sets.offsets[i + 1] - 1]
            context = np.broadcast_to(others, (len(first), *others.shape))
            joined = Sets.from_array(np.concatenate([objects, context], axis=1), None, situation)
            scores = model.predict_scores(joined)
            total += scores.reshape(len(first), -1)[:, 0] / len(contexts)
        own = dict(zip(keys[first].tolist(), total.tolist(), strict=True))
        return [cls(control, model, own, amplitude) for amplitude in AMPLITUDES]

    def predict_scores(self, sets: Sets) -> Floats:
        """Return the utility of each object, packed."""
        seen = self.model.predict_scores(sets)
        own = np.array([self.own[key] for key in object_keys(sets).tolist()])
        return np.asarray(self.control.predict_scores(sets) + self.amplitude * (seen - own), dtype=np.float64)


def object_keys(sets: Sets) -> NDArray[Any]:
    """Return a key of each object, of its features and its situation, as bytes."""
    rows = np.asarray(sets.objects, dtype=np.float64)
    if sets.situation is not None:
        rows = np.concatenate([rows, np.repeat(sets.situation, sets.sizes, axis=0)], axis=1)
    rows = np.ascontiguousarray(rows + 0.0)  # no minus 0
    return rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()


def plackett_luce_scale(sets: Sets, utilities: Floats) -> float:
    """Return the maximum-likelihood scale of utilities under the Plackett-Luce model; ties are not used."""
    targets = np.asarray(sets.targets, dtype=np.float64)
    spread = float(utilities.std()) or 1.0
    parts = []
    for _, rows in sets.by_size():
        known = targets[rows] >= 0  # NaN and -1: not ranked
        order = np.argsort(np.where(known, targets[rows], np.inf), axis=1, kind="stable")
        ranks = np.take_along_axis(np.where(known, targets[rows], np.inf), order, axis=1)
        better = np.zeros(ranks.shape, dtype=bool)
        better[:, :-1] = (ranks[:, :-1] < ranks[:, 1:]) & np.isfinite(
            ranks[:, 1:]
        )  # than all that come later
        better[:, 1:] &= ranks[:, :-1] < ranks[:, 1:]  # and not tied with an earlier one
        ordered = np.take_along_axis(utilities[rows] / spread, order, axis=1)
        parts.append((np.where(np.isfinite(ranks), ordered, -np.inf), better))

    def loss(log_scale: float) -> float:
        total = 0.0
        for ordered, better in parts:
            u = np.exp(log_scale) * ordered
            rest = np.logaddexp.accumulate(u[:, ::-1], axis=1)[:, ::-1]  # of those not yet placed
            total += float((rest[better] - u[better]).sum())
        return total

    return float(np.exp(minimize_scalar(loss, bounds=(-7.0, 5.0), method="bounded").x) / spread)


class MeanModel:
    """The mean utilities of several models."""

    def __init__(self, models: Sequence[Any]) -> None:
        self.models, self.task = models, models[0].task

    def predict_scores(self, sets: Sets) -> Floats:
        """Return the utility of each object, packed."""
        return np.asarray(
            np.mean([one.predict_scores(sets) for one in self.models], axis=0), dtype=np.float64
        )
