"""How an estimator uses the pretrained net (:mod:`entourage.pretrained`): what it is given, and what comes back.

``fit`` reads the labelled sets; nothing is trained. Codes of levels become indicators, and positions are left out.

``net="pretrained_ablated"`` is the context-ablated control: every object is scored among the same few reference
objects, so what the net gains over it is due to context, not to what it learnt before.
"""

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from entourage.data.decode import without_codes
from entourage.data.resampling import fold_indices
from entourage.data.sets import Sets
from entourage.errors import DataError, ParameterError, check_number
from entourage.estimators.validation_split import FEWEST_TO_HOLD_OUT
from entourage.pretrained import Reading
from entourage.tasks import Task

if TYPE_CHECKING:
    from entourage.estimators.net_estimator import NetEstimator

__all__ = [
    "PRETRAINED",
    "HeldOut",
    "as_read",
    "check_pretrained",
    "draw_reference",
    "is_pretrained",
    "read_sets",
    "scores_held_out",
    "scores_of_reading",
]

Floats: TypeAlias = NDArray[np.float64]
Categories: TypeAlias = Sequence[tuple[int, int]]

#: The names by which an estimator is given the pretrained net, and its context-ablated control.
PRETRAINED = ("pretrained", "pretrained_ablated")

FEW_SETS = 300  # up to which calibration has every set held out once; above, a fifth of them
FOLDS, FEWER_FOLDS = 5, 3  # of up to so many sets, and of more: each fold is a reading
READ_QUICKLY = 100
REFERENCES = 4  # sets of reference objects of the control
AT_ONCE = 4_000_000  # numbers that it scores at once, so that memory stays bounded


class HeldOut(NamedTuple):
    """Sets that were held out, their scores, packed, and their weights."""

    sets: Sets
    scores: Floats
    weights: Floats | None


def is_pretrained(model: Any) -> bool:
    """Whether a model is an estimator of the pretrained net, fitted or not."""
    net = getattr(model, "net", None)
    return isinstance(net, str) and net in PRETRAINED


def check_pretrained(model: "NetEstimator", sets: Sets) -> None:
    """See that nothing was asked for that the pretrained net can't do."""
    if sets.on_disk:
        raise DataError(
            "The pretrained net reads sets in memory, a few thousand at most; these are on disk. Take a sample, "
            "sets[:5_000], or name a net that is trained, such as fate."
        )
    defaults = {name: one.default for name, one in inspect.signature(type(model)).parameters.items()}
    refused = {
        "members": (model.members != 1, "there is one such net"),
        "relative": (model.relative is not False, "it sees every column relative to its set already"),
        "monotone": (bool(model.monotone), "nothing in it guarantees a sign"),
        "subset_size": (model.subset_size is not None, "it reads whole sets"),
        "checkpoint": (model.checkpoint is not None, "there is no training to resume"),
        "loss": (model.loss not in (defaults["loss"], None), "it is not trained"),  # None: from a file
        "steps": (model.steps != defaults["steps"], "it has a number of its own where it is fine-tuned"),
    }
    for name, (given, why) in refused.items():
        if given:
            raise ParameterError(
                f'{name} plays no part with net="pretrained": {why}. Leave {name} out, or name a net that is trained, '
                "such as fate."
            )
    if not isinstance(model.fine_tune, bool):
        raise ParameterError(f"fine_tune must be True or False; got {model.fine_tune!r}.")
    check_number("validation", model.validation, least=0, below=1)


def as_read(sets: Sets, categories: Categories) -> Sets:
    """Return sets as the pretrained net takes them: numbers alone."""
    return without_codes(sets, categories).with_position(None)


def read_sets(
    task: Task,
    sets: Sets,
    weights: Floats | None,
    categories: Categories,
    *,
    groups: Any = None,
    fine_tune: bool = False,
    interactions: bool = True,
    seed: int = 0,
    device: str = "auto",
    tell: Callable[[str], None] | None = None,
) -> Reading:
    """Read those of the labelled sets that are informative."""
    used = task.informative(sets)
    return Reading.read(
        as_read(sets[used], categories),
        task,
        weights=None if weights is None else weights[used] / weights[used].mean(),
        groups=None if groups is None else np.asarray(groups)[used],
        fine_tune=fine_tune,
        interactions=interactions,
        random_state=seed,
        device=device,
        tell=tell,
    )


def scores_of_reading(
    reading: Reading,
    task: Task,
    sets: Sets,
    categories: Categories,
    *,
    device: str = "auto",
    reference: Sets | None = None,
) -> Floats:
    """Score all objects of sets, packed; of the control, each among the objects of ``reference``."""
    plain = partial(scores_of_reading, reading, task, categories=categories, device=device)
    if reference is not None:
        return _ablated_scores(plain, task, sets, reference)
    return np.asarray(reading.scores(as_read(sets, categories), device), dtype=np.float64)


def draw_reference(sets: Sets, seed: int) -> Sets:
    """Draw the sets whose objects are the fixed context of the control."""
    some = np.flatnonzero(sets.sizes > 1)
    if len(some) == 0:
        raise DataError("The context-ablated control needs a set of two objects; every set has one.")
    drawn = np.random.default_rng([seed, 2**34]).permutation(some)[:REFERENCES]
    found = sets[np.sort(drawn)]
    return Sets(found.objects, found.offsets)


def scores_held_out(
    task: Task,
    sets: Sets,
    weights: Floats | None,
    categories: Categories,
    *,
    groups: Any = None,
    fine_tune: bool = False,
    seed: int = 0,
    device: str = "auto",
    ablated: bool = False,
) -> HeldOut | None:
    """Score sets by readings of others, to calibrate by; None where there are too few.

    Of up to 100 sets each is held out once, in five folds; of up to 300, in three. Of more, and with fine-tuning, a
    fifth of them is.
    """
    units = len(sets) if groups is None else len(np.unique(np.asarray(groups)))
    informative = task.informative(sets)
    if int(informative.sum()) < FEWEST_TO_HOLD_OUT or units < FOLDS:
        return None
    once = fine_tune or len(sets) > FEW_SETS
    count = FOLDS if once or len(sets) <= READ_QUICKLY else FEWER_FOLDS
    folds = fold_indices(len(sets), count, groups=groups, random_state=seed)
    chosen, found = [], []
    for train, held in folds[:1] if once else folds:
        if not informative[train].any() or not informative[held].any():
            return None
        own = None if weights is None else weights[train]
        labels = None if groups is None else np.asarray(groups)[train]
        how: Any = {"fine_tune": fine_tune, "seed": seed, "device": device}
        reading = read_sets(task, sets[train], own, categories, groups=labels, **how)
        chosen.append(held)
        reference = draw_reference(sets[train], seed) if ablated else None
        scores = scores_of_reading(reading, task, sets[held], categories, device=device, reference=reference)
        found.append(scores)
    which = np.concatenate(chosen)
    return HeldOut(sets[which], np.concatenate(found), None if weights is None else weights[which])


def _ablated_scores(score: Callable[[Sets], Floats], task: Task, sets: Sets, reference: Sets) -> Floats:
    """Score each object in the fixed contexts, and average; relative to them where only differences count."""
    situation = None if sets.situation is None else np.repeat(sets.situation, sets.sizes, axis=0)
    total = np.zeros(len(sets.objects))
    for context in reference.to_list():
        m, others = len(context), context[:-1]  # with the object, as many as the set had
        step = max(1, AT_ONCE // context.size)
        for begin in range(0, len(total), step):
            part = slice(begin, begin + step)
            mine = sets.objects[part, None]
            count = len(mine)
            objects = np.concatenate([mine, np.broadcast_to(others, (count, *others.shape))], axis=1)
            given = None if situation is None else situation[part]
            own = score(Sets(objects.reshape(count * m, -1), np.arange(count + 1) * m, None, given))
            own = own.reshape(count, m)
            total[part] += own[:, 0] - (own[:, 1:].mean(1) if task.only_differences else 0.0)
    return total / len(reference)
