"""Several nets of one description trained side by side, their weights stacked.

A small net keeps neither a GPU nor a core busy: most of a step is the cost of starting its kernels. On a CPU one
kernel serves all nets, on a GPU they are branches of one CUDA graph. Each sees its own batches, is clipped,
averaged, judged and stopped on its own, so that it ends where it would have ended alone, up to the rounding of sums.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from sklearn.base import clone
from torch import Tensor

from entourage.errors import ShapeError
from entourage.nets import Scorer
from entourage.nets.ensemble import Stack
from entourage.tasks.losses import Loss
from entourage.training.batches import SCORE_OBJECTS, Batch, Resident, autocast
from entourage.training.loop import Judge, Outcome, Run, watch
from entourage.training.plan import Plan

__all__ = ["can_train_together", "fit_together", "train_together"]


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
    evaluate: Sequence[Judge] | None = None,
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
            "size, and under plans that differ in their seeds alone."
        )
    run = _RunTogether(scorers, loss, data, plans, evaluate)
    interrupted = watch(run, progress=progress)
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
    """A run of several members: where each stands is kept for each."""

    def __init__(
        self,
        scorers: Sequence[Scorer],
        loss: Loss,
        data: Sequence[Resident],
        plans: Sequence[Plan],
        evaluate: Sequence[Judge] | None,
    ) -> None:
        self.members = len(scorers)
        super().__init__(Stack(scorers), loss, _StackedData(data), plans[0], None)  # type: ignore[arg-type]
        self.each = [
            Run(s, loss, d, replace(p, ema=None), None) for s, d, p in zip(scorers, data, plans, strict=True)
        ]
        self.judges = evaluate

    def scores(self, objects: Tensor, mask: Tensor | None) -> Tensor:
        return self.scorer.each(objects).flatten(0, 1)  # type: ignore[operator,no-any-return]

    def epoch(self, epoch: int) -> list[Tensor]:
        parts = [run.epoch(epoch) for run in self.each]
        return [torch.stack(chosen) for chosen in zip(*parts, strict=True)]

    @property
    def finished(self) -> bool:
        return all(run.finished for run in self.each)

    def record(self) -> None:
        stack: Stack = self.scorer if self.average is None else self.average  # type: ignore[assignment]
        scores = self.judged(stack)
        for i, run in enumerate(self.each):
            if not run.finished:
                run.step = self.step
                run.note(self.loss_sum[i].item() / self.loss_count, scores[i], partial(stack.member, i))
        self.loss_sum.zero_()
        self.loss_count = 0

    @torch.no_grad()
    def judged(self, stack: Stack) -> Sequence[float | None]:
        """Return the score of each member: all at once where their held-out sets have one shape and fit."""
        if self.judges is None:
            return [None] * self.members
        data = [judge.data for judge in self.judges]
        stack.eval()
        alike = {(len(d), d.uniform_size) for d in data}
        numbers = self.members * sum(data[0].sizes)
        if len(alike) > 1 or data[0].uniform_size is None or numbers > SCORE_OBJECTS["cuda"]:
            return [judge(stack.scorer(i)) for i, judge in enumerate(self.judges)]
        objects = torch.stack([d.batch(slice(None)).objects for d in data])  # (r, n, m, d)
        with autocast(self.data.device, self.judges[0].precision):
            scores = stack.each(objects).float().flatten(1)
        return [judge.of(own) for judge, own in zip(self.judges, scores, strict=True)]

    def news(self) -> str:
        return f"{self.members} together; the first: {self.each[0].news()}"

    def outcome_of(self, i: int, *, interrupted: bool) -> Outcome:
        """Return what is left of one member."""
        run = self.each[i]
        stack = self.scorer if self.average is None else self.average
        run.scorer.load_state_dict(stack.member(i))  # type: ignore[operator]
        outcome = run.outcome(interrupted=interrupted)
        outcome.optimizer = {
            name: value[i] if value.ndim else value for name, value in self.optimizer_tensors().items()
        }
        return outcome


def fit_together(models: Sequence[Any], data: Sequence[tuple[Any, Any]]) -> None:
    """Fit each model to its ``(X, y)``, all at once; each ends as it would have ended alone.

    Meant for repetitions on fresh data: on a GPU ten small nets side by side cost much less than one after another. The
    models may differ in their ``random_state`` only, and all data must have one shape, with sets of one size;
    where that isn't so, or the net can't be stacked (``FETA(order=2)``, nets with dropout), they are fitted one
    after the other. For an ensemble on one data set there is ``Ranker(members=...)``.

    Examples
    --------
    >>> from entourage import FATE, Ranker
    >>> from entourage.data import make_medoid
    >>> models = [Ranker(FATE(width=16), steps=10, random_state=seed) for seed in range(3)]
    >>> fit_together(models, [make_medoid(n_sets=100, random_state=seed) for seed in range(3)])
    >>> [model.n_steps_ for model in models]
    [10, 10, 10]
    """
    alike = len({repr(clone(model).set_params(random_state=None)) for model in models}) == 1
    first = models[0]
    plain = first.checkpoint is None and first.members == 1 and not isinstance(first.net, str)
    if len(models) > 1 and alike and plain:
        starts = [model._prepare(X, y, None, None) for model, (X, y) in zip(models, data, strict=True)]
        residents, plans = [start.data for start in starts], [start.plan for start in starts]
        if can_train_together(starts[0].scorer, residents, plans):
            judges = [start.judge for start in starts if start.judge is not None]
            outcomes = train_together(
                [start.scorer for start in starts],
                first._loss(),
                residents,
                plans,
                evaluate=judges or None,
                progress=first.verbose,
            )
            for model, start, outcome in zip(models, starts, outcomes, strict=True):
                model._finish(start, outcome)
            return
    for model, (X, y) in zip(models, data, strict=True):
        model.fit(X, y)
