"""Several fits of one model at once, each to its own targets and counts of sets.

The only file of this package that depends on how an estimator sets up its training, and on how a run is trained.
"""

import copy
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from torch import Tensor

from entourage.data.sets import Sets
from entourage.estimators.net_estimator import NetEstimator
from entourage.estimators.pretrained_net import is_pretrained
from entourage.estimators.setup import (
    build_scorer,
    categories_of,
    check_net,
    plan_of,
    resident_of,
    view_of,
)
from entourage.estimators.validation_split import FEWEST_TO_HOLD_OUT
from entourage.nets import Scorer
from entourage.nets.ensemble import Stack
from entourage.tasks.evaluate import metric_of_sets
from entourage.tasks.losses import Loss
from entourage.training.batches import Batch, Resident
from entourage.training.device import find_device
from entourage.training.loop import Run
from entourage.training.plan import Plan
from entourage.training.progress import History

__all__ = ["MOST_OBJECTS", "Progress", "Refitter"]

Floats: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Progress: TypeAlias = Callable[[int, int], None]

MOST_OBJECTS = 2**24  # a batch holds the row of each object in single precision, exact up to here
_AT_ONCE = 2**19  # objects in a batch of all members together, to bound memory
_PATIENCE = 10  # evaluations without a better score, at most, after which a refit ends
_TIMED_STEPS = 4  # that are timed


class Refitter:
    """Refits a model, several times at once: each member to its own targets and counts of sets.

    Parameters
    ----------
    model : a net's estimator, fitted or with its ``net_`` set; or anything with ``fit(sets, sample_weight=...)``
    sets : all sets, of which each member learns from some
    total : how many members will be fitted, for ``on_progress``
    on_progress : called with the thousandths of members done, and of all
    """

    def __init__(self, model: Any, sets: Sets, total: int, on_progress: Progress | None = None) -> None:
        self.model, self.sets, self.on_progress = model, sets, on_progress or (lambda done, total: None)
        self.done, self.total = 0, total  # members fitted, of how many
        trained = isinstance(model, NetEstimator) and not is_pretrained(model)
        self.trainer = _NetTrainer(model, sets) if trained else None
        # to be fitted again; the pretrained net without calibration, which takes readings of its own
        self.plain = clone(model).set_params(validation=0.0, verbose=False) if is_pretrained(model) else model

    def __call__(self, targets: Floats, counts: NDArray[np.int64], rng: np.random.Generator) -> list[Any]:
        """Return a model for each row of targets (r, objects) and counts (r, n)."""
        seeds = rng.integers(2**31, size=len(counts))
        found: list[Any] = []
        step = 1 if self.trainer is None else self.trainer.at_once
        for begin in range(0, len(counts), step):
            part = slice(begin, begin + step)
            if self.trainer is not None:
                found += self._nets(self.trainer, targets[part], counts[part], seeds[part])
            else:
                given = self.sets.with_targets(targets[begin])
                found.append(clone(self.plain).fit(given, sample_weight=counts[begin].astype(np.float64)))
            self.done += len(counts[part])
            self.on_progress(1000 * self.done, 1000 * self.total)
        return found

    def _nets(
        self, trainer: "_NetTrainer", targets: Floats, counts: NDArray[np.int64], seeds: NDArray[np.int64]
    ) -> list[Any]:
        run = trainer.run(targets, counts, seeds)
        for _ in run.run():
            part = run.step / run.plan.steps
            self.on_progress(round(1000 * (self.done + part * len(seeds))), 1000 * self.total)
        return [trainer.fitted(scorer) for scorer in run.fitted()]

    def seconds_of_one(self, targets: Floats, counts: NDArray[np.int64], rng: np.random.Generator) -> float:
        """Time a few steps of training these members, or one fit; estimate the seconds of one member."""
        begin = time.perf_counter()
        if self.trainer is None:
            self(targets[:1], counts[:1], rng)
            return time.perf_counter() - begin
        run = self.trainer.run(targets, counts, np.arange(len(counts)))
        batches = run.batches(0)
        for i in range(_TIMED_STEPS + 1):
            begin = time.perf_counter() if i == 1 else begin  # the first is slower
            run.one_step(batches[i % len(batches)])
        run.check_losses()
        step = (time.perf_counter() - begin) / _TIMED_STEPS
        begin = time.perf_counter()
        if run.held_out_scores is not None:
            run.held_out_scores(run.stack)
        steps = _expected_steps(self.model, run.plan)
        evaluations = steps / run.plan.evaluate_every
        return (step * steps + evaluations * (time.perf_counter() - begin)) / len(counts)


def _expected_steps(model: Any, plan: Plan) -> int:
    """Estimate when a refit ends: after twice the steps to the best score of the model, and its patience."""
    scored = [row for row in model.history_ if "score" in row]
    if plan.patience is None or not scored:
        return plan.steps
    best = max(scored, key=lambda row: row["score"])["step"]
    return int(min(plan.steps, 2 * best + plan.patience * plan.evaluate_every))


class _NetTrainer:
    """How a net's estimator sets up its training: all that is taken from its inside."""

    def __init__(self, model: NetEstimator, sets: Sets) -> None:
        self.model, self.sets = model, sets
        self.plain: NetEstimator = clone(model).set_params(  # of one member, silent
            net=clone(model.net_),
            members=1,
            checkpoint=None,
            verbose=False,
            compile=False,
            random_state=0,
            patience=None if model.patience is None else min(model.patience, _PATIENCE),
        )
        known = getattr(model, "categories_", None)  # a control is not fitted
        self.categories = categories_of(self.plain, sets) if known is None else known
        self.view = view_of(self.plain, sets, None, self.categories)

    @property
    def at_once(self) -> int:
        """How many members fit into memory at once."""
        in_batch = min(self.plain.batch_size, len(self.sets)) * int(self.sets.sizes.max())
        return max(1, _AT_ONCE // in_batch)

    def run(self, targets: Floats, counts: NDArray[np.int64], seeds: NDArray[np.int64]) -> "_ResampledRun":
        """Prepare a run of nets, one for each row of targets and counts.

        Every member has its own targets and weights. A batch holds where to find them: the row of each object in
        place of its target, and the number of each set in place of its weight.
        """
        plain, device = self.plain, find_device(self.plain.device)
        net = check_net(plain.net)
        scorers = [build_scorer(plain, net, self.view, self.categories, int(seed)) for seed in seeds]
        rows = self.view(self.sets).with_targets(np.arange(len(self.sets.objects), dtype=np.float64))
        data = resident_of(plain, rows, device, np.arange(len(rows)))
        plan = plan_of(plain, data, int(seeds[0]), scorers[0])
        held_out_scores = None
        if plain.validation and (counts == 0).any():
            held_out_scores = _HeldOutScores(
                plain.task, self.sets, targets, counts == 0, Resident(rows, device)
            )
        return _ResampledRun(
            scorers, plain.task.find_loss(plain.loss), data, plan, targets, counts, held_out_scores
        )

    def fitted(self, scorer: Scorer) -> NetEstimator:
        """Return the model with another net."""
        one = copy.copy(self.model)
        one.members, one.scorer_, one.view_ = 1, scorer, self.view
        return one


class _HeldOutScores:
    """The score of each member on the sets that were not drawn for it.

    The held-out sets of all members, each with the member's own targets, are evaluated together.
    """

    def __init__(self, task: Any, sets: Sets, targets: Floats, held_out: Mask, data: Resident) -> None:
        self.task, self.data, self.held_out = task, data, held_out
        self.enough = [
            int((task.informative(sets.with_targets(own)) & out).sum())
            >= min(FEWEST_TO_HOLD_OUT, len(sets) // 10)
            for own, out in zip(targets, held_out, strict=True)
        ]
        member, number = np.nonzero(held_out)  # of each held-out set: the member, and its number
        sizes = sets.sizes[number]
        offsets = np.append(0, np.cumsum(sizes))
        begins = member * len(sets.objects) + sets.offsets[number] - offsets[:-1]
        rows = np.repeat(begins, sizes) + np.arange(offsets[-1])
        self.rows = rows  # of the objects of held-out sets, among all (r, objects)
        self.sets = Sets(np.zeros((len(self.rows), 1)), offsets, targets.ravel()[rows])

    @torch.no_grad()
    def __call__(self, stack: Stack) -> list[float | None]:
        stack.eval()
        packed = _each_packed(stack, self.data).cpu().numpy().ravel()[self.rows]
        values = np.full(self.held_out.shape, np.nan)
        values[self.held_out] = metric_of_sets(self.task.criterion, self.sets, packed)
        known = ~np.isnan(values)
        # not mean_over_sets: equal accuracies are ordered by rounding, and refits must stay the same to the bit
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


class _OwnTargets:
    """Gives every member of a stack its own targets and weights; a batch says where to find them."""

    def __init__(self, targets: Floats, counts: NDArray[np.int64], device: torch.device) -> None:
        weights = (counts / counts.mean(1, keepdims=True)).astype(np.float32)
        self.targets = torch.from_numpy(targets.astype(np.float32)).to(device)  # (r, objects)
        self.weights = torch.from_numpy(weights).to(device)  # (r, n)

    def __call__(self, batch: Batch) -> Batch:
        rows = torch.where(batch.present, batch.targets, 0.0).long()  # type: ignore[arg-type]
        targets = torch.where(batch.present, self.targets[:, rows], torch.nan).flatten(0, 1)
        weights = self.weights[:, batch.weights.long()].flatten()  # type: ignore[union-attr]
        wide = Batch(batch.objects, batch.mask, targets, weights)
        wide.present = batch.present.repeat(len(self.targets), 1)
        return wide


class _ResampledRun(Run):
    """A run of several members on the same batches, each with its own targets and weights.

    Each keeps the weights with the best score on its held-out sets, and stops after ``patience`` evaluations without
    a better one.
    """

    def __init__(
        self,
        scorers: Sequence[Scorer],
        loss: Loss,
        data: Resident,
        plan: Plan,
        targets: Floats,
        counts: NDArray[np.int64],
        held_out_scores: _HeldOutScores | None,
    ) -> None:
        self.stack = Stack(scorers).to(data.device)
        super().__init__(self.stack, loss, data, plan, widen=_OwnTargets(targets, counts, data.device))
        self.held_out_scores = held_out_scores
        self.histories = [History() for _ in scorers]

    @property
    def finished(self) -> bool:
        return all(history.stopped_improving(self.plan.patience) for history in self.histories)

    def record(self) -> None:
        losses = self.loss_sum / self.loss_count
        self.forget_losses()
        if self.held_out_scores is None:
            return
        stack: Stack = self.update.learnt  # type: ignore[assignment]
        rate = self.plan.rate(self.step - 1)
        scores = self.held_out_scores(stack)
        for i, (history, score) in enumerate(zip(self.histories, scores, strict=True)):
            if score is not None and not history.stopped_improving(self.plan.patience):
                history.add(self.step, rate, losses[i].item(), score, partial(stack.member, i))

    def fitted(self) -> list[Scorer]:
        """Return each member with its best weights; with its last ones where nothing was held out."""
        self.stack.draw_from(None)
        stack: Stack = self.update.learnt  # type: ignore[assignment]
        found = []
        for i, history in enumerate(self.histories):
            one = stack.scorer(i)
            if history.best_weights is not None:
                one.load_state_dict(history.best_weights)
            found.append(one)
        return found
