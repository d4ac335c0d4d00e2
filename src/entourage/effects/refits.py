r"""Refits of a model to resampled groups, and to targets simulated with known context effects.

The context effects of a fitted net differ from the truth for three reasons. Other people would have chosen
differently. Another initialisation would have learnt something else. And fitting is biased: noise is learnt as context,
and early stopping shrinks real effects. So the net is fitted again, in three kinds of refits:

- ``people``: to the data, each set weighted by how often its *group* (a person) was drawn with replacement. Several
  nets of different initialisation are fitted to each draw, and quantities are averaged over them: with small nets and
  small data, initialisations differ more than people do.
- ``null``: to targets simulated from context-ablated controls
  (:class:`entourage.nets.context_ablated.ContextAblated`; the mean of eight, also fitted to resampled groups), which
  have no context effect. The values there are the reference for quantities that can't be negative.
- ``known``: to targets simulated from the control with the context of the ``people`` refits added, once and several
  times over (`Amplified`). The effects are known, so these refits show how much fitting shrinks them.

All nets are trained at once, as a :class:`~entourage.nets.ensemble.Stack`, and all on resampled groups, so that they
differ in their targets only. Each keeps the weights with the best score on the groups that were not drawn for it;
these are never in its gradient. :func:`entourage.effects.calibrated_intervals` puts the refits together. Assumptions:
groups are independent, and so are the choices within a group, given the choice sets.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from entourage.data.resampling import labels_of
from entourage.data.sets import AnySets, Sets
from entourage.effects.intervals import Measured
from entourage.effects.refit_nets import MOST_OBJECTS, Progress, Refitter
from entourage.effects.simulate import AMPLITUDES, Amplified, MeanModel, simulate_targets
from entourage.errors import DataError, ParameterError, check_number
from entourage.estimators import DiscreteChooser, Ranker, SubsetChooser
from entourage.estimators.net_estimator import NetEstimator
from entourage.estimators.pretrained_net import is_pretrained
from entourage.nets import ContextFree
from entourage.nets.context_ablated import ContextAblated
from entourage.tasks import Choice, SubsetChoice

__all__ = [
    "LEAST_REFITS",
    "REFITS",
    "Refits",
    "refit_resampled",
    "refits_in",
    "resample_groups",
    "seconds_of_refits",
]

REFITS, LEAST_REFITS = 16, 8  # draws of groups, unless their number is given
INITIALISATIONS = 3  # for each of them
CONTROL_STEPS = 500  # of training the control of a model without a net
_TIMED = 8  # nets that are timed to estimate how long refits take
_CONTROLS = 8  # context-ablated controls, averaged: one that overfits would simulate too little noise


@dataclass(frozen=True)
class Refits:
    """Refits of a model; see the module.

    Attributes
    ----------
    people : for each draw of groups, the models fitted to it
    null : fitted to targets simulated from the context-ablated control
    truths : models of known context effects
    known : for each of them, the models fitted to targets simulated from it
    groups : the number of groups
    """

    people: list[list[Any]]
    null: list[Any]
    truths: list[Any]
    known: list[list[Any]]
    groups: int

    def measure(self, quantities: Callable[[Any], dict[str, float]]) -> dict[str, "Measured"]:
        """Measure quantities in all refits."""
        null, truths = ([quantities(one) for one in part] for part in (self.null, self.truths))
        people, known = (
            [[quantities(one) for one in part] for part in parts] for parts in (self.people, self.known)
        )
        return {
            name: Measured(
                np.array([np.mean([found[name] for found in draw]) for draw in people]),
                np.array([found[name] for found in null]),
                np.array([found[name] for found in truths]),
                np.array([[found[name] for found in part] for part in known]),
            )
            for name in null[0]
        }


def refit_resampled(
    model: Any,
    sets: AnySets,
    *,
    groups: ArrayLike | None = None,
    refits: int = 16,
    random_state: int = 0,
    on_progress: Progress | None = None,
) -> Refits:
    """Refit a model to resampled groups, and to simulated targets; see the module.

    Parameters
    ----------
    model : fitted; a net's estimator, or anything with ``fit(sets, sample_weight=...)``
    sets : with targets
    groups : one label a set, such as who chose; by default each set is its own group
    refits : draws of groups, to each of which three nets are fitted; as many refits without context, and half as many
        to each of three known truths
    random_state : seed of the draws, the initialisations and the simulated targets
    on_progress : called with the number of steps done, and of all steps

    Examples
    --------
    >>> from entourage import FATE, DiscreteChooser
    >>> from entourage.data import make_medoid
    >>> X, ranks = make_medoid(n_sets=60, random_state=0)
    >>> model = DiscreteChooser(FATE(width=8), steps=4, random_state=0).fit(X, ranks.argmin(1))
    >>> found = refit_resampled(model, model.task.sets_of(X, ranks.argmin(1)), refits=2)
    >>> len(found.people), len(found.null), [len(part) for part in found.known]
    (2, 2, [2, 2, 2])
    >>> len(found.people[0])
    3
    """
    check_number("refits", refits, least=2, whole=True)
    check_number("random_state", random_state, least=0, whole=True)
    _check_one_model(model)
    given = Sets.of(sets)
    if given.position is not None or getattr(model, "position_effects_", None) is not None:
        raise ParameterError(
            "Refits learn no effects of positions, and this model did, or these sets have positions. Fit the model "
            "without them, or ask for no refits."
        )
    if given.on_disk:
        raise ParameterError(
            "Refits need sets in memory; these are on disk. Take a sample of them, sets[:10_000]."
        )
    if len(given.objects) > MOST_OBJECTS:
        raise ParameterError(
            f"Refits are for at most {MOST_OBJECTS:,} objects; there are {len(given.objects):,}. Take a sample of the "
            "sets, sets[:10_000]."
        )
    given = model.task.in_single_precision(model.task.check(given))
    labels = np.arange(len(given)) if groups is None else labels_of(groups, len(given))
    rng = np.random.default_rng(random_state)
    each = max(2, refits // 2)
    inits = _initialisations(model)
    refit = Refitter(model, given, (inits + 1) * refits + len(AMPLITUDES) * each, on_progress)

    def drawn(count: int) -> NDArray[np.int64]:
        return np.stack([resample_groups(labels, rng) for _ in range(count)])

    own = np.broadcast_to(_targets(given), (inits * refits, len(given.objects)))
    fitted = refit(own, np.repeat(drawn(refits), inits, axis=0), rng)
    people = [fitted[begin : begin + inits] for begin in range(0, len(fitted), inits)]
    control = _context_free(model, given, drawn(_CONTROLS), rng)
    truths = Amplified.all(control, MeanModel([draw[0] for draw in people]), given, rng)
    generators = [control] * refits + [truth for truth in truths for _ in range(each)]
    targets = np.stack([simulate_targets(one, given, rng) for one in generators])
    again = refit(targets, drawn(len(generators)), rng)
    known = [again[begin : begin + each] for begin in range(refits, len(again), each)]
    return Refits(people, again[:refits], truths, known, int(labels.max()) + 1)


def seconds_of_refits(model: Any, sets: AnySets) -> Callable[[int], float]:
    """Time a few steps of training; return a function that estimates the seconds of a number of refits."""
    _check_one_model(model)
    given = model.task.check(Sets.of(sets))
    rng = np.random.default_rng(0)
    counts = np.stack([resample_groups(np.arange(len(given)), rng) for _ in range(_TIMED)])
    targets = np.broadcast_to(_targets(given), (_TIMED, len(given.objects)))
    refit = Refitter(model, given, _TIMED)
    each, inits = refit.seconds_of_one(targets, counts, rng), _initialisations(model)
    return lambda refits: each * ((inits + 1) * refits + len(AMPLITUDES) * max(2, refits // 2) + _CONTROLS)


def _check_one_model(model: Any) -> None:
    if getattr(model, "blend_", None) is not None:
        raise ParameterError(
            'Refits are of one net, and this model is a blend of several ("auto"). Fit a named model, such as '
            'net="fate", or ask for no refits.'
        )


def _initialisations(model: Any) -> int:
    """Return how many models are fitted to one draw of groups: several nets, or one model without a net."""
    return INITIALISATIONS if _is_trained(model) else 1


def _is_trained(model: Any) -> bool:
    """Whether it is a net that is trained: not the pretrained one, which reads sets again at once."""
    return isinstance(model, NetEstimator) and not is_pretrained(model)


def refits_in(seconds: float, needed: Callable[[int], float]) -> int:
    """Return how many refits some seconds allow: at most `REFITS`, and 0 rather than fewer than `LEAST_REFITS`.

    Examples
    --------
    >>> refits_in(60, lambda refits: 5.0 * refits), refits_in(30, lambda refits: 5.0 * refits)
    (12, 0)
    """
    affordable = [count for count in range(LEAST_REFITS, REFITS + 1) if needed(count) <= seconds]
    return max(affordable, default=0)


def resample_groups(labels: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw as many groups as there are, with replacement; return how often the group of each set was drawn.

    Examples
    --------
    >>> counts = resample_groups(np.array([0, 0, 1, 1, 2, 2]), np.random.default_rng(0))
    >>> counts.reshape(3, 2).tolist()
    [[0, 0], [0, 0], [3, 3]]
    """
    count = int(labels.max()) + 1
    if count < 2:
        raise DataError("Resampling needs at least two groups; there is one.")
    while True:  # at least one group must be held out
        times = rng.multinomial(count, np.full(count, 1 / count))
        if (times == 0).any():
            return np.asarray(times[labels])


def _context_free(model: Any, sets: Sets, counts: NDArray[np.int64], rng: np.random.Generator) -> MeanModel:
    """Fit the context-ablated control to resampled groups; for models without a net, a context-free net."""
    if _is_trained(model):
        control = copy.copy(model)
        control.net_ = ContextAblated(clone(model.net_))
    else:
        kinds: dict[type, type[NetEstimator]] = {Choice: DiscreteChooser, SubsetChoice: SubsetChooser}
        settings: dict[str, Any] = {"outside": True} if getattr(model.task, "outside", False) else {}
        control = kinds.get(type(model.task), Ranker)(steps=CONTROL_STEPS, **settings)
        control.net_, control.categories = ContextFree(width=32), getattr(model, "categories", None)
        control.n_features_in_, control.n_situation_features_in_ = sets.n_features, sets.n_situation_features
    targets = np.broadcast_to(_targets(sets), (len(counts), len(sets.objects)))
    return MeanModel(Refitter(control, sets, len(counts))(targets, counts, rng))


def _targets(sets: Sets) -> NDArray[np.float64]:
    return np.asarray(sets.targets, dtype=np.float64)
