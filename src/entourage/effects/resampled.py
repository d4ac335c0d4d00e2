r"""A model fitted again: to resampled people, and to targets simulated where the truth is known.

What a fitted net shows of context effects differs from the truth in three ways: other people would have chosen
otherwise, another initialisation would have learnt otherwise, and fitting distorts: noise is learnt as context, and
early stopping shrinks what there is. So the net is fitted again, in three kinds of refits:

- ``people``: to the data, each set weighted by how often its *group* (a person) was drawn with replacement. To each
  draw several nets of their own initialisation are fitted, over which every quantity is averaged: of small nets on
  small data, initialisations differ more than people do.
- ``null``: to targets simulated from context-ablated controls (:class:`entourage.nets.context_ablated.Alone`; the
  mean of eight, fitted to resampled groups as well), in which there is no context effect. What the net shows there is
  the reference of quantities that can't be negative.
- ``known``: to targets simulated from the control with the context of the refits to people added, once and several
  times over (`Amplified`). Its effects are known; how much of them comes back says how fitting shrinks.

All are trained at once, as a :class:`~entourage.nets.ensemble.Stack`, and all on resampled groups, so that they
differ in their targets alone. Each chooses its best weights by the groups that were not drawn for it, and never sees
those in a gradient. :func:`calibrated_intervals` puts them together. What that takes for granted: groups are
independent, and the choices within a group are, given what was on offer.
"""

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from scipy.special import stdtrit
from sklearn.base import clone
from torch import Tensor

from entourage.data.resampling import labels_of
from entourage.data.sets import AnySets, Sets
from entourage.errors import DataError, ParameterError, check_number
from entourage.estimators import DiscreteChooser, Ranker, SubsetChooser
from entourage.estimators.net_estimator import NetEstimator
from entourage.estimators.setup import (
    build_scorer,
    categories_of,
    check_net,
    plan_of,
    resident_of,
    standardizer_of,
)
from entourage.estimators.validation_split import FEWEST_TO_HOLD_OUT
from entourage.nets import ContextFree, Scorer
from entourage.nets.context_ablated import Alone
from entourage.nets.ensemble import Stack
from entourage.tasks import Choice, SubsetChoice
from entourage.tasks.losses import Loss
from entourage.training.batches import Batch, Resident
from entourage.training.device import find_device
from entourage.training.loop import Run
from entourage.training.plan import Plan

__all__ = [
    "Amplified",
    "Calibrated",
    "Measured",
    "Refits",
    "calibrated_intervals",
    "object_keys",
    "plackett_luce_scale",
    "refit_resampled",
    "refits_in",
    "resample_groups",
    "seconds_of_refits",
    "simulate_targets",
]

Floats: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Progress: TypeAlias = Callable[[int, int], None]

_AT_ONCE = 2**19  # objects in a batch of all members together, so that memory stays bounded
REFITS, LEAST_REFITS = 16, 8  # draws of people, where nobody says how many
INITIALISATIONS = 3  # for each of them
_TIMED, _TIMED_STEPS = 8, 4  # members and steps by which the time of refits is judged
_TWINS = 8  # context-ablated controls, averaged: one that overfits would simulate too little noise
_PATIENCE = 10  # evaluations without a better score after which a refit ends: all wait for the last
_AMPLITUDES = (1.0, 3.0, 9.0)  # of the context in known truths, to reach what early stopping shrank
_COMPANIES = 16  # over which an object's utility is averaged, to see what is its own
_RECOVERIES = np.geomspace(0.25, 1.0, 25)  # of a large effect; below, an interval would hardly end
_BENDS = np.array([0.0, *np.geomspace(0.01, 10, 31)])  # beside the largest known truth


@dataclass(frozen=True)
class Refits:
    """Models fitted again; see the module.

    Attributes
    ----------
    people : for each draw of groups, the models fitted to it
    null : fitted to targets simulated from the context-ablated control
    truths : models of known context effects
    known : for each of them, the models fitted to targets simulated from it
    groups : how many groups were resampled
    """

    people: list[list[Any]]
    null: list[Any]
    truths: list[Any]
    known: list[list[Any]]
    groups: int

    def measure(self, quantities: Callable[[Any], dict[str, float]]) -> dict[str, "Measured"]:
        """Measure some quantities in all refits."""
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


@dataclass(frozen=True)
class Measured:
    """A quantity in refits: to people (b draws), without context (b,), in known truths (j,) and their refits (j, k)."""

    people: Floats
    null: Floats
    truths: Floats
    known: Floats


@dataclass(frozen=True)
class Calibrated:
    """An estimate corrected by what refits show where the truth is known; see :func:`calibrated_intervals`.

    Attributes
    ----------
    estimate, interval : of the quantity in the population of groups
    refits : the mean of the refits to resampled groups, uncorrected
    reference, reference_quantile : the mean of the refits to targets without context, and the quantile 1 - level
    """

    estimate: float
    interval: tuple[float, float]
    refits: float
    reference: float
    reference_quantile: float


def refit_resampled(
    model: Any,
    sets: AnySets,
    *,
    groups: ArrayLike | None = None,
    refits: int = 16,
    random_state: int = 0,
    on_progress: Progress | None = None,
) -> Refits:
    """Fit a model again to resampled groups, and to simulated targets; see the module.

    Parameters
    ----------
    model : fitted; a net's estimator, or anything with ``fit(sets, sample_weight=...)``
    sets : with targets
    groups : one label a set, such as who chose; by default each set is its own
    refits : draws of groups, to each of which three nets are fitted; as many refits without context, and half as many
        of each of three known truths
    on_progress : told how many steps are done, of how many at most

    Examples
    --------
    >>> from entourage import FATE, DiscreteChooser
    >>> from entourage.data import make_medoid
    >>> X, ranks = make_medoid(n_sets=60, random_state=0)
    >>> model = DiscreteChooser(FATE(width=8), steps=10, random_state=0).fit(X, ranks.argmin(1))
    >>> found = refit_resampled(model, model.task.sets_of(X, ranks.argmin(1)), refits=3)
    >>> len(found.people), len(found.null), [len(part) for part in found.known]
    (3, 3, [2, 2, 2])
    >>> len(found.people[0])
    3
    """
    check_number("refits", refits, least=2, whole=True)
    check_number("random_state", random_state, least=0, whole=True)
    given = Sets.of(sets)
    if given.on_disk:
        raise ParameterError(
            "Refits need sets in memory; these are on disk. Take a sample of them, sets[:10_000]."
        )
    given = model.task.in_single_precision(model.task.check(given))
    labels = np.arange(len(given)) if groups is None else labels_of(groups, len(given))
    rng = np.random.default_rng(random_state)
    each = max(2, refits // 2)
    inits = INITIALISATIONS if isinstance(model, NetEstimator) else 1
    refit = _Refit(model, given, (inits + 1) * refits + len(_AMPLITUDES) * each, on_progress)

    def drawn(count: int) -> NDArray[np.int64]:
        return np.stack([resample_groups(labels, rng) for _ in range(count)])

    own = np.broadcast_to(_targets(given), (inits * refits, len(given.objects)))
    fitted = refit(own, np.repeat(drawn(refits), inits, axis=0), rng)
    people = [fitted[begin : begin + inits] for begin in range(0, len(fitted), inits)]
    twin = _context_free(model, given, drawn(_TWINS), rng)
    truths = Amplified.all(twin, _Mean([draw[0] for draw in people]), given, rng)
    generators = [twin] * refits + [truth for truth in truths for _ in range(each)]
    targets = np.stack([simulate_targets(one, given, rng) for one in generators])
    again = refit(targets, drawn(len(generators)), rng)
    known = [again[begin : begin + each] for begin in range(refits, len(again), each)]
    return Refits(people, again[:refits], truths, known, int(labels.max()) + 1)


def seconds_of_refits(model: Any, sets: AnySets) -> Callable[[int], float]:
    """Time a few steps of training; return about how many seconds some refits take."""
    given = model.task.check(Sets.of(sets))
    rng = np.random.default_rng(0)
    counts = np.stack([resample_groups(np.arange(len(given)), rng) for _ in range(_TIMED)])
    targets = np.broadcast_to(_targets(given), (_TIMED, len(given.objects)))
    refit = _Refit(model, given, _TIMED, None)
    begin = time.perf_counter()
    if not refit.of_net:
        refit(targets[:1], counts[:1], rng)
        each = time.perf_counter() - begin
    else:
        run = refit.run(targets, counts, np.arange(_TIMED))
        batches = run.batches(0)
        for i in range(_TIMED_STEPS + 1):
            begin = time.perf_counter() if i == 1 else begin  # the first is slower
            run.one_step(batches[i % len(batches)])
        run.check_losses()
        step = (time.perf_counter() - begin) / _TIMED_STEPS
        begin = time.perf_counter()
        if run.judges is not None:
            run.judges(run.update.scorer)  # type: ignore[arg-type]
        steps = _expected_steps(model, run.plan)
        looks = steps / run.plan.evaluate_every
        each = (step * steps + looks * (time.perf_counter() - begin)) / _TIMED
    inits = INITIALISATIONS if refit.of_net else 1
    return lambda refits: each * ((inits + 1) * refits + len(_AMPLITUDES) * max(2, refits // 2) + _TWINS)


def _expected_steps(model: Any, plan: Plan) -> int:
    """Return about when a refit ends: when it is twice as far as the model was at its best, and has waited."""
    scored = [row for row in model.history_ if "score" in row]
    if plan.patience is None or not scored:
        return plan.steps
    best = max(scored, key=lambda row: row["score"])["step"]
    return int(min(plan.steps, 2 * best + plan.patience * plan.evaluate_every))


def refits_in(seconds: float, needed: Callable[[int], float]) -> int:
    """Return how many refits fit into some seconds: `REFITS` at most, and none rather than fewer than `LEAST_REFITS`.

    Examples
    --------
    >>> refits_in(60, lambda refits: 5.0 * refits), refits_in(30, lambda refits: 5.0 * refits)
    (12, 0)
    """
    fitting = [count for count in range(LEAST_REFITS, REFITS + 1) if needed(count) <= seconds]
    return max(fitting, default=0)


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
        raise DataError("Resampling needs at least two groups, to tell how they differ; there is one.")
    while True:  # at least one group must be left to judge by
        times = rng.multinomial(count, np.full(count, 1 / count))
        if (times == 0).any():
            return np.asarray(times[labels])


def simulate_targets(model: Any, sets: Sets, rng: np.random.Generator) -> Floats:
    """Draw targets as a model would have people choose or rank: (objects,).

    Utilities with Gumbel noise decide: one choice is a softmax, a ranking is Plackett-Luce. The targets of a set are
    dealt out in that order, so that ties and unranked objects stay as many as they are. Utilities of rankings have no
    scale of their own; they get the one by which the rankings at hand are most probable.
    """
    utilities = np.asarray(model.predict_scores(sets), dtype=np.float64)
    targets = _targets(sets)
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
    """A known truth: a context-free model with the context of another added, ``amplitude`` times over.

    The context of a model is what its utility of an object in its set has beside the mean of its utility in the
    company of some other sets, the same for all objects.
    """

    def __init__(self, alone: Any, seeing: Any, own: dict[bytes, float], amplitude: float) -> None:
        self.alone, self.seeing, self.own, self.amplitude = alone, seeing, own, amplitude
        self.task = alone.task

    @classmethod
    def all(cls, alone: Any, seeing: Any, sets: Sets, rng: np.random.Generator) -> list["Amplified"]:
        """Make one for each amplitude; they know the objects of ``sets``, in any company."""
        owners = np.repeat(np.arange(len(sets)), sets.sizes)
        keys = object_keys(sets)
        first = np.unique(keys, return_index=True)[1]
        objects = sets.objects[first][:, None]
        situation = None if sets.situation is None else sets.situation[owners[first]]
        total = np.zeros(len(first))
        companies = rng.choice(len(sets), min(_COMPANIES, len(sets)), replace=False)
        for i in companies:
            others = sets.objects[sets.offsets[i] : sets.offsets[i + 1] - 1]
            company = np.broadcast_to(others, (len(first), *others.shape))
            joined = Sets.from_array(np.concatenate([objects, company], axis=1), None, situation)
            scores = seeing.predict_scores(joined)
            total += scores.reshape(len(first), -1)[:, 0] / len(companies)
        own = dict(zip(keys[first].tolist(), total.tolist(), strict=True))
        return [cls(alone, seeing, own, amplitude) for amplitude in _AMPLITUDES]

    def predict_scores(self, sets: Sets) -> Floats:
        """Return the utility of each object, packed."""
        seen = self.seeing.predict_scores(sets)
        own = np.array([self.own[key] for key in object_keys(sets).tolist()])
        return np.asarray(self.alone.predict_scores(sets) + self.amplitude * (seen - own), dtype=np.float64)


def object_keys(sets: Sets) -> NDArray[Any]:
    """Return for each object what tells it from others: its features and its situation, as bytes."""
    rows = np.asarray(sets.objects, dtype=np.float64)
    if sets.situation is not None:
        rows = np.concatenate([rows, np.repeat(sets.situation, sets.sizes, axis=0)], axis=1)
    rows = np.ascontiguousarray(rows + 0.0)  # no minus 0
    return rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()


def plackett_luce_scale(sets: Sets, utilities: Floats) -> float:
    """Return the factor of utilities by which choices or rankings are most probable; ties say nothing."""
    targets = _targets(sets)
    spread = float(utilities.std()) or 1.0
    parts = []
    for _, rows in sets.by_size():
        known = ~np.isnan(targets[rows])
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


class _Mean:
    """The mean utilities of several models."""

    def __init__(self, models: Sequence[Any]) -> None:
        self.models, self.task = models, models[0].task

    def predict_scores(self, sets: Sets) -> Floats:
        """Return the utility of each object, packed."""
        return np.asarray(
            np.mean([one.predict_scores(sets) for one in self.models], axis=0), dtype=np.float64
        )


def _context_free(model: Any, sets: Sets, counts: NDArray[np.int64], rng: np.random.Generator) -> _Mean:
    """Fit the context-ablated control to resampled groups; of models without a net, a net without context."""
    if isinstance(model, NetEstimator):
        control = copy.copy(model)
        control.net_ = Alone(clone(model.net_))
    else:
        kinds: dict[type, type[NetEstimator]] = {Choice: DiscreteChooser, SubsetChoice: SubsetChooser}
        settings: dict[str, Any] = {"outside": True} if getattr(model.task, "outside", False) else {}
        control = kinds.get(type(model.task), Ranker)(steps=500, **settings)
        control.net_ = ContextFree(width=32)
        control.n_features_in_, control.n_situation_features_in_ = sets.n_features, sets.n_situation_features
    targets = np.broadcast_to(_targets(sets), (len(counts), len(sets.objects)))
    return _Mean(_Refit(control, sets, len(counts), None)(targets, counts, rng))


def _plain(model: NetEstimator) -> NetEstimator:
    """Return an unfitted model of the same settings, of one member, that writes and shows nothing."""
    plain: NetEstimator = clone(model).set_params(
        net=clone(model.net_),
        members=1,
        checkpoint=None,
        verbose=False,
        compile=False,
        random_state=0,
        patience=None if model.patience is None else min(model.patience, _PATIENCE),
    )
    return plain


def _targets(sets: Sets) -> Floats:
    return np.asarray(sets.targets, dtype=np.float64)


# --- training -------------------------------------------------------------------------------------


class _Refit:
    """Fits a model again, several times at once: each member to its own targets and counts of sets."""

    def __init__(self, model: Any, sets: Sets, total: int, on_progress: Progress | None) -> None:
        self.model, self.sets, self.tell = model, sets, on_progress or (lambda done, total: None)
        self.done, self.total = 0, total  # members fitted, of how many
        self.of_net = isinstance(model, NetEstimator)
        if self.of_net:
            self.plain = _plain(model)
            known = getattr(model, "categories_", None)  # a control is not fitted
            self.categories = categories_of(self.plain, sets) if known is None else known
            self.standardise = standardizer_of(self.plain, sets, None, self.categories)

    def __call__(self, targets: Floats, counts: NDArray[np.int64], rng: np.random.Generator) -> list[Any]:
        """Return a model for each row of targets (r, objects) and counts (r, n)."""
        seeds = rng.integers(2**31, size=len(counts))
        found: list[Any] = []
        step = self._together() if self.of_net else 1
        for begin in range(0, len(counts), step):
            part = slice(begin, begin + step)
            if self.of_net:
                found += self._nets(targets[part], counts[part], seeds[part])
            else:
                given = self.sets.with_targets(targets[begin])
                found.append(clone(self.model).fit(given, sample_weight=counts[begin].astype(np.float64)))
            self.done += len(counts[part])
            self.tell(1000 * self.done, 1000 * self.total)
        return found

    def _together(self) -> int:
        """How many members fit into memory side by side."""
        in_batch = min(self.plain.batch_size, len(self.sets)) * int(self.sets.sizes.max())
        return max(1, _AT_ONCE // in_batch)

    def _nets(self, targets: Floats, counts: NDArray[np.int64], seeds: NDArray[np.int64]) -> list[Any]:
        run = self.run(targets, counts, seeds)
        for _ in run.run():
            part = run.step / run.plan.steps
            self.tell(round(1000 * (self.done + part * len(seeds))), 1000 * self.total)
        return [self._fitted(scorer) for scorer in run.fitted()]

    def run(self, targets: Floats, counts: NDArray[np.int64], seeds: NDArray[np.int64]) -> "_ResampledRun":
        """Lay out a run of nets, one for each row."""
        device = find_device(self.plain.device)
        net = check_net(self.plain.net)
        scorers = [
            build_scorer(self.plain, net, self.standardise, self.categories, int(seed)) for seed in seeds
        ]
        data, everything = _laid_out(self.plain, self.standardise(self.sets), device)
        plan = plan_of(self.plain, data, int(seeds[0]), scorers[0])
        judge = _Judges(self.plain.task, self.sets, targets, counts == 0, everything)
        return _ResampledRun(
            scorers,
            self.plain.task.find_loss(self.plain.loss),
            data,
            plan,
            targets,
            counts,
            judge if self.plain.validation else None,
        )

    def _fitted(self, scorer: Scorer) -> Any:
        one = copy.copy(self.model)
        one.members, one.scorer_, one._standardise = 1, scorer, self.standardise
        return one


def _laid_out(plain: NetEstimator, sets: Sets, device: torch.device) -> tuple[Resident, Resident]:
    """Return what is trained on, and the same sets whole.

    Every member has targets and weights of its own. What a batch holds in their place is where to find them: the row
    of each object, and the number of each set.
    """
    rows = sets.with_targets(np.arange(len(sets.objects), dtype=np.float64))
    data = resident_of(plain, rows, device, np.arange(len(sets)))
    return data, Resident(rows, device)


class _Judges:
    """The score of each member on the sets that it doesn't learn from."""

    def __init__(self, task: Any, sets: Sets, targets: Floats, held_out: Mask, data: Resident) -> None:
        self.sets, self.targets, self.held_out, self.data, self.task = sets, targets, held_out, data, task
        self.enough = [
            int((task.informative(sets.with_targets(own)) & out).sum())
            >= min(FEWEST_TO_HOLD_OUT, len(sets) // 10)
            for own, out in zip(targets, held_out, strict=True)
        ]

    @torch.no_grad()
    def __call__(self, stack: Stack) -> list[float | None]:
        stack.eval()
        packed = _each_packed(stack, self.data).cpu().numpy()  # (r, objects)
        members = len(packed)
        values = np.full((members, len(self.sets)), np.nan)
        for chosen, rows in self.sets.by_size():
            m = rows.shape[1]
            found = self.task.criterion(
                packed[:, rows].reshape(-1, m), self.targets[:, rows].reshape(-1, m), per_set=True
            )
            values[:, chosen] = np.reshape(found, (members, -1))
        values[~self.held_out] = np.nan
        known = ~np.isnan(values)
        means = np.where(known, values, 0.0).sum(1) / np.maximum(known.sum(1), 1)
        return [float(mean) if enough else None for mean, enough in zip(means, self.enough, strict=True)]


def _each_packed(stack: Stack, data: Resident) -> Tensor:
    """Score all objects with each member, packed: (r, objects)."""
    result = torch.empty(stack.members, int(data.sizes.sum()), device=data.device)
    step = max(1, _AT_ONCE // (stack.members * int(data.sizes.max())))
    order = np.argsort(data.sizes, kind="stable")  # so that there is little padding
    for begin in range(0, len(order), step):
        batch = data.batch(torch.from_numpy(order[begin : begin + step]).to(data.home))
        rows = batch.targets[batch.present].long()  # type: ignore[index]
        result[:, rows] = stack.each(batch.objects, batch.mask).float()[:, batch.present]
    return result


class _ResampledRun(Run):
    """A run of several members on the same batches, each with targets and weights of its own.

    Each keeps the weights with the best score on the sets it doesn't learn from, and is done when it has not become
    better for long.
    """

    def __init__(
        self,
        scorers: Sequence[Scorer],
        loss: Loss,
        data: Resident,
        plan: Plan,
        targets: Floats,
        counts: NDArray[np.int64],
        judges: _Judges | None,
    ) -> None:
        self.members = len(scorers)
        super().__init__(Stack(scorers).to(data.device), loss, data, plan, widen=self.widen)
        self.own_targets = torch.from_numpy(np.asarray(targets, dtype=np.float32)).to(
            data.device
        )  # (r, objects)
        means = counts.mean(1, keepdims=True)
        self.own_weights = torch.from_numpy((counts / means).astype(np.float32)).to(data.device)  # (r, n)
        self.judges = judges
        self.bests: list[float | None] = [None] * self.members
        self.kept: list[dict[str, Tensor] | None] = [None] * self.members
        self.waited = [0] * self.members

    def widen(self, batch: Batch) -> Batch:
        """Give every member its own targets and weights."""
        rows = torch.where(batch.present, batch.targets, 0.0).long()  # type: ignore[arg-type]
        targets = torch.where(batch.present, self.own_targets[:, rows], torch.nan).flatten(0, 1)
        weights = self.own_weights[:, batch.weights.long()].flatten()  # type: ignore[union-attr]
        wide = Batch(batch.objects, batch.mask, targets, weights)
        wide.present = batch.present.repeat(self.members, 1)
        return wide

    @property
    def finished(self) -> bool:
        patience = self.plan.patience
        return patience is not None and all(waited >= patience for waited in self.waited)

    def record(self) -> None:
        self.forget_losses()
        if self.judges is None:
            return
        stack: Stack = self.update.learnt  # type: ignore[assignment]
        for i, score in enumerate(self.judges(stack)):
            best = self.bests[i]
            done = self.plan.patience is not None and self.waited[i] >= self.plan.patience
            if score is None or done:
                continue
            self.waited[i] += 1
            if best is None or score > best:
                self.bests[i], self.kept[i], self.waited[i] = score, stack.member(i), 0

    def fitted(self) -> list[Scorer]:
        """Return each member with its best weights; with its last ones where it had nothing to be judged by."""
        self.update.scorer.draw_from(None)
        stack: Stack = self.update.learnt  # type: ignore[assignment]
        found = []
        for i in range(self.members):
            one = stack.scorer(i)
            best = self.kept[i]
            if best is not None:
                one.load_state_dict(best)
            found.append(one)
        return found


# --- intervals ------------------------------------------------------------------------------------


def calibrated_intervals(
    measured: Mapping[str, Measured],
    *,
    least: float = -np.inf,
    most: float = np.inf,
    level: float = 0.05,
) -> dict[str, Calibrated]:
    r"""Return confidence intervals of quantities of one unit, from what refits show of them.

    Beside the mean :math:`r_0` of the refits without context, an effect of size :math:`\theta` comes back as
    :math:`h(\theta) = \beta\,\theta^2 / (\theta + \kappa)`: small ones hardly (early stopping takes them for noise, or
    noise hides them), large ones by the share :math:`\beta`. Both are fitted to the refits of known truths, of all
    quantities together. With the mean :math:`\bar v` and the spread :math:`s` of the refits to resampled groups, the
    estimate is :math:`h^{-1}(\bar v - r_0)`, and the interval ends at :math:`h^{-1}(\bar v - r_0 \pm t\,s)`.

    Known truths are made of what nets have learnt, and so are easier for nets than what people do: in
    ``benchmarks.calibration.effects`` estimates come to half to three quarters of a known effect. The end that is
    farther from 0 than the estimate therefore allows for as much shrinkage again. Effects of a form that the net can't
    learn from so few data at all no interval of its refits covers.

    Parameters
    ----------
    measured : what the refits show, by the names of quantities
    least, most : what the quantities can be
    level : what the intervals leave out
    """
    check_number("level", level, above=0, below=1)
    recovery, bend = _recovery(list(measured.values()))
    found = {}
    for name, one in measured.items():
        reference = float(one.null.mean())
        shown = float(one.people.mean())
        spread = float(np.sqrt(one.people.var(ddof=1) + one.null.var(ddof=1) / len(one.null)))
        half = float(stdtrit(len(one.people) - 1, 1 - level / 2)) * spread
        beside = shown - reference
        ends = [
            _undone(beside - half, recovery, bend, times=1 if beside > half else 2),
            _undone(beside, recovery, bend),
            _undone(beside + half, recovery, bend, times=1 if beside < -half else 2),
        ]
        low, middle, high = (min(max(end, least), most) for end in ends)
        found[name] = Calibrated(
            middle, (low, high), shown, reference, float(np.quantile(one.null, 1 - level))
        )
    return found


def _recovery(measured: Sequence[Measured]) -> tuple[float, float]:
    """Return the share in which large effects come back, and the size about which smaller ones don't."""
    truth, shown, weight = [], [], []
    for one in measured:
        noise = one.null.var(ddof=1) / len(one.null)
        truth.append(np.abs(one.truths))
        shown.append(np.where(one.truths < 0, -1.0, 1.0) * (one.known.mean(1) - one.null.mean()))
        weight.append(1 / np.maximum(noise + one.known.var(1, ddof=1) / one.known.shape[1], 1e-12))
    x, y, w = (np.concatenate(part) for part in (truth, shown, weight))
    if not x.any():
        return 1.0, 0.0
    recovery, bend = _RECOVERIES[:, None, None], (_BENDS * x.max())[:, None]
    losses = (w * np.square(recovery * x * x / np.maximum(x + bend, 1e-12) - y)).sum(2)  # (recoveries, bends)
    i, j = np.unravel_index(int(np.argmin(losses)), losses.shape)
    return float(_RECOVERIES[i]), float(_BENDS[j] * x.max())


def _undone(shown: float, recovery: float, bend: float, times: int = 1) -> float:
    """Return the effect that comes back as ``shown`` where it shrinks so many times."""
    y = abs(shown)
    if y == 0:
        return 0.0
    low, high = 0.0, y / recovery**times + 2**times * bend  # there the effect comes back as more than shown
    while high * (recovery * high / (high + bend)) ** times < y:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        less = middle * (recovery * middle / (middle + bend)) ** times < y
        low, high = (middle, high) if less else (low, middle)
    return float(np.copysign(high, shown))
