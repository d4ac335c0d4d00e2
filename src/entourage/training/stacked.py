"""Several nets of one description trained side by side, their weights stacked.

A small net keeps neither a GPU nor a core busy: most of a step is the cost of starting its kernels. On a CPU one
kernel serves all nets, on a GPU they are branches of one CUDA graph. Each has its own batches, clipping, average of
weights, evaluation and early stopping, so that the result is that of training it by itself, up to the rounding of
sums.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from entourage.errors import ShapeError
from entourage.nets import Scorer
from entourage.nets.ensemble import Stack
from entourage.tasks.losses import Loss
from entourage.training.batches import SCORE_OBJECTS, Batch, Resident
from entourage.training.device import autocast
from entourage.training.held_out import HeldOutEvaluation
from entourage.training.loop import Outcome, Run, run_with_progress
from entourage.training.plan import Plan
from entourage.training.progress import History

__all__ = ["can_train_together", "train_together"]


def can_train_together(scorer: Scorer, data: Sequence[Resident], plans: Sequence[Plan]) -> bool:
    """Whether nets like this can be stacked, on these data: sets of one size, as many in each, one plan.

    Nets with dropout are not: what each leaves out would depend on how many there are.
    """
    shapes = {(d.uniform_size, len(d), d.weights is None, d.situation is None) for d in data}
    return (
        scorer.stackable
        and not scorer.drops_out
        and len(shapes) == 1
        and data[0].uniform_size is not None
        and len({replace(plan, seed=0) for plan in plans}) == 1
    )


def train_together(
    scorers: Sequence[Scorer],
    loss: Loss,
    data: Sequence[Resident],
    plans: Sequence[Plan],
    *,
    evaluate: Sequence[HeldOutEvaluation] | None = None,
    progress: bool = False,
) -> list[Outcome]:
    """Train each scorer on its data under its plan, all at once; see :func:`entourage.training.loop.train`.

    Parameters
    ----------
    scorers : nets of one description, on the device of ``data``
    loss : see :mod:`entourage.losses`
    data : what each learns from
    plans : one each; they may differ in their seeds only
    evaluate : the score of each, higher is better, by which its best weights are kept
    progress : whether to show a bar
    """
    if not can_train_together(scorers[0], data, plans):
        raise ShapeError(
            "Only nets of one description can be trained together, on data of one shape with sets of one "
            "size, and under plans that differ only in their seeds."
        )
    run = _RunTogether(scorers, loss, data, plans, evaluate)
    interrupted = run_with_progress(run, progress=progress)
    return [run.outcome_of(i, interrupted=interrupted) for i in range(len(scorers))]


class _StackedData:
    """The sets of all members, of which a batch is one gather."""

    def __init__(self, data: Sequence[Resident]) -> None:
        self.each = data
        self.device, self.home = data[0].device, data[0].home
        self.objects = torch.stack([d.objects for d in data])  # (r, n, m, d)
        self.targets = torch.stack([d.targets for d in data if d.targets is not None])  # (r, n, m)
        self.situation = (
            None if data[0].situation is None else torch.stack([d.situation for d in data])  # type: ignore[misc]
        )
        self.weights = None if data[0].weights is None else torch.stack([d.weights for d in data])  # type: ignore[misc]
        self.members = torch.arange(len(data), device=self.home)[:, None]
        self.gathers_by_index = data[0].gathers_by_index

    def sets_in_batch(self, batch_size: int) -> int:
        """How many sets of each member go into a batch."""
        return self.each[0].sets_in_batch(batch_size)

    def n_batches(self, batch_size: int) -> int:
        """How many batches an epoch has."""
        return self.each[0].n_batches(batch_size)

    def batch(self, chosen: Tensor) -> Batch:
        """Gather the sets ``chosen (r, n)``; targets and weights of all members one after the other."""
        objects = self.objects[self.members, chosen]  # (r, n, m, d)
        if self.situation is not None:
            shared = self.situation[self.members, chosen][:, :, None].expand(-1, -1, objects.shape[2], -1)
            objects = torch.cat([objects, shared], dim=3)
        targets = self.targets[self.members, chosen].flatten(0, 1).to(self.device)
        weights = (
            None if self.weights is None else self.weights[self.members, chosen].flatten().to(self.device)
        )
        return Batch(objects.to(self.device), None, targets, weights)


class _RunTogether(Run):
    """A run of several members, each on its own data: where each stands is kept for each."""

    def __init__(
        self,
        scorers: Sequence[Scorer],
        loss: Loss,
        data: Sequence[Resident],
        plans: Sequence[Plan],
        evaluate: Sequence[HeldOutEvaluation] | None,
    ) -> None:
        self.stack = Stack(scorers)
        super().__init__(self.stack, loss, _StackedData(data), plans[0], widen=lambda batch: batch)  # type: ignore[arg-type]
        self.scorers, self.each, self.plans, self.evaluations = scorers, data, plans, evaluate
        self.histories = [History() for _ in scorers]
        self.steps = [0] * len(scorers)  # of each, at its last evaluation

    def batches(self, epoch: int) -> list[Tensor]:
        parts = [
            data.epoch(plan.batch_size, np.random.default_rng([plan.seed, epoch]))
            for data, plan in zip(self.each, self.plans, strict=True)
        ]
        return [torch.stack(chosen) for chosen in zip(*parts, strict=True)]

    @property
    def finished(self) -> bool:
        return all(history.stopped_improving(self.plan.patience) for history in self.histories)

    def record(self) -> None:
        stack: Stack = self.update.learnt  # type: ignore[assignment]
        scores = self._evaluate_each(stack)
        rate = self.plan.rate(self.step - 1)
        for i, history in enumerate(self.histories):
            if not history.stopped_improving(self.plan.patience):
                self.steps[i] = self.step
                loss = self.loss_sum[i].item() / self.loss_count
                history.add(self.step, rate, loss, scores[i], partial(stack.member, i))
        self.forget_losses()

    @torch.no_grad()
    def _evaluate_each(self, stack: Stack) -> Sequence[float | None]:
        """Return the score of each member: all at once where their held-out sets have one shape and fit."""
        if self.evaluations is None:
            return [None] * stack.members
        data = [evaluation.data for evaluation in self.evaluations]
        stack.eval()
        alike = {(len(d), d.uniform_size) for d in data}
        numbers = stack.members * sum(data[0].sizes)
        if len(alike) > 1 or data[0].uniform_size is None or numbers > SCORE_OBJECTS["cuda"]:
            return [evaluate(stack.scorer(i)) for i, evaluate in enumerate(self.evaluations)]
        objects = torch.stack([d.batch(slice(None)).objects for d in data])  # (r, n, m, d)
        with autocast(self.data.device, self.evaluations[0].precision):
            scores = stack.each(objects).float().flatten(1)
        return [evaluate.of(own) for evaluate, own in zip(self.evaluations, scores, strict=True)]

    def summary(self) -> str:
        return f"{len(self.histories)} together; the first: {self.histories[0].summary()}"

    def outcome_of(self, i: int, *, interrupted: bool) -> Outcome:
        """Return the results of one member."""
        history, stack = self.histories[i], self.update.learnt
        self.scorers[i].draw_from(None)
        last = {name: value.detach().clone() for name, value in stack.member(i).items()}  # type: ignore[operator]
        return Outcome(
            weights=last if history.best_weights is None else history.best_weights,
            optimizer={
                name: value[i] if value.ndim else value
                for name, value in self.update.optimizer_tensors().items()
            },
            history=history.rows,
            best_score=history.best_score,
            steps=self.steps[i],
            interrupted=interrupted,
            out_of_time=self.out_of_time,
        )
