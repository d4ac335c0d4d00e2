"""One step of training: the loss of a batch, and the update of the weights and of their average."""

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from entourage.errors import ParameterError
from entourage.nets import Scorer
from entourage.nets.ensemble import Stack
from entourage.tasks.losses import Loss
from entourage.training.batches import Batch, Resident
from entourage.training.compiled import CompiledLoss
from entourage.training.cuda_graphs import StepGraphs
from entourage.training.device import autocast
from entourage.training.plan import Plan
from entourage.training.processes import GradientSum, processes_here

__all__ = ["Update", "repeat_for_members"]


class Update:
    """A net and its optimiser, and what one step does to them.

    Of a `Stack` of nets, each member has its own loss and gradient.

    Parameters
    ----------
    scorer : the net, or a stack of nets
    loss : see :mod:`entourage.losses`
    data : where batches come from
    plan : how to train
    widen : gives a batch of a stack the targets and weights of all members, one after the other; by default each
        member has those of the batch
    """

    def __init__(
        self,
        scorer: Scorer,
        loss: Loss,
        data: Resident,
        plan: Plan,
        widen: Callable[[Batch], Batch] | None = None,
    ) -> None:
        self.scorer, self.loss, self.data, self.plan = scorer, loss, data, plan
        self.stacked = isinstance(scorer, Stack)
        self.members = scorer.members if isinstance(scorer, Stack) else 1
        self.widen = partial(repeat_for_members, members=self.members) if widen is None else widen
        self.processes = processes_here()
        if self.processes.several:
            scorer.sum_statistics_by(self.processes.differentiable_sum)
        self.parameters: list[Tensor] = list(scorer.parameters())
        if self.processes.several:
            with torch.no_grad():
                self.sum_gradients = GradientSum(self.processes, self.parameters, self.members)
        self.matrices = [p for p in self.parameters if p.ndim > 1 + self.stacked]
        # steps are recorded on a GPU where one process takes them: what is exchanged is not
        on_gpu = data.device.type == "cuda" and not self.processes.several
        self.rate = torch.tensor(plan.learning_rate, device=data.device)
        self.ema_weight: Tensor | float = torch.zeros((), device=data.device) if on_gpu else 0.0
        rate: Any = self.rate if on_gpu else plan.learning_rate
        self.optimizer = plan.make_optimizer(self.parameters, self.matrices, rate)
        self.average = copy.deepcopy(scorer) if plan.ema is not None else None
        if self.average is not None:
            self.averages: list[Tensor] = list(self.average.parameters())
            self.buffers = list(zip(self.average.buffers(), scorer.buffers(), strict=True))
        self.generator = torch.Generator(data.device) if scorer.drops_out else None
        scorer.draw_from(self.generator)
        clear = partial(self.optimizer.zero_grad, set_to_none=True)
        self.graphs = None
        if on_gpu:
            self.graphs = StepGraphs(self._recorded_work, clear, data.device, self.generator)
            if not scorer.stackable:
                self.graphs.give_up("what it computes depends on the values of the features")
        self.compiled = CompiledLoss(self._scored_loss) if plan.compile else None
        self.full_batch = self.members * data.sets_in_batch(plan.batch_size)

    @property
    def learnt(self) -> Scorer:
        """The net with the weights to keep: the averaged ones where there are such."""
        return self.scorer if self.average is None else self.average

    def weights(self) -> dict[str, Tensor]:
        """Return a copy of the weights to keep."""
        return {name: value.detach().clone() for name, value in self.learnt.state_dict().items()}

    def __call__(self, chosen: Tensor, step: int) -> Tensor:
        """Do a step on the chosen sets; return the objective of each member."""
        plan = self.plan
        rate = plan.rate(step)
        decay = min(plan.ema or 0.0, (2 + step) / (11 + step))
        if not self.scorer.training:
            self.scorer.train()
        if self.generator is not None:
            self.generator.manual_seed((plan.seed * 1_000_003 + step) % 2**63)
        if self.graphs is None:
            for group in self.optimizer.param_groups:
                group["lr"] = rate
            self.ema_weight = 1 - decay
            if self.processes.several:
                return self._work_together(chosen)
            return self.work(self.data.batch(chosen))
        self.rate.fill_(rate)
        self.ema_weight.fill_(1 - decay)  # type: ignore[union-attr]
        return self.graphs(*self._inputs(chosen))

    def _inputs(self, chosen: Tensor) -> list[Tensor | None]:
        """Return what a recorded step reads: which sets, where it can gather them itself, else the batch."""
        if self.data.gathers_by_index:
            return [chosen]
        batch = self.data.batch(chosen)
        return [batch.objects, batch.mask, batch.targets, batch.weights]

    def _recorded_work(self, *inputs: Tensor | None) -> Tensor:
        """Do the work of a step from what `_inputs` gave."""
        if len(inputs) == 1:
            return self.work(self.data.batch(inputs[0]))  # type: ignore[arg-type]
        return self.work(Batch(*inputs))  # type: ignore[arg-type]

    def work(self, batch: Batch) -> Tensor:
        """Loss, gradient, update, average; return the objective of each member."""
        if self.stacked:
            batch = self.widen(batch)
        objective = self._objective(batch)
        self.optimizer.zero_grad(set_to_none=True)
        objective.sum().backward()  # type: ignore[no-untyped-call]
        return self._step(objective.detach())

    def _work_together(self, chosen: Tensor) -> Tensor:
        """Do a step of which every process takes a share of the sets; the gradient is that of the whole batch."""
        total = len(chosen)
        share = self.processes.share(total)
        nothing = (
            share.start >= total
        )  # then a set of which nothing is seen: others wait for what is exchanged
        if nothing:
            share = slice(0, 1)
        self.scorer.draw_for(total, share)
        batch = self.data.batch(chosen[share], like=chosen)
        if nothing:
            batch.mask = torch.zeros_like(batch.present)
            batch.present = batch.mask
        count = 0 if nothing else len(batch.present)
        if self.stacked:
            batch = self.widen(batch)
        objective = self._objective(batch, share=count / total)
        self.optimizer.zero_grad(set_to_none=True)
        objective.sum().backward()  # type: ignore[no-untyped-call]
        return self._step(self.sum_gradients(objective))

    def _step(self, objective: Tensor) -> Tensor:
        """Update the weights by their gradients."""
        plan = self.plan
        if plan.clip is not None:
            self._clip(plan.clip)
        self.optimizer.step()
        if self.average is not None:
            self._update_ema()
        return objective

    def _objective(self, batch: Batch, share: float = 1.0) -> Tensor:
        """Return the mean loss of each member, with penalties; of a share of a batch, what it adds to these."""
        value = self._losses(batch)
        n_sets = len(batch.present)
        if not isinstance(value, Tensor) or not value.requires_grad:
            raise ParameterError(
                f"The loss must return a tensor computed from the scores; it returned {value!r}."
            )
        if value.shape == (n_sets,):
            value = value if batch.weights is None else value * batch.weights
            value = value.view(self.members, -1).mean(1)
        elif value.ndim > 0 or batch.weights is not None or self.stacked:
            reason = "when nets are trained together" if self.stacked else "when sets are weighted"
            raise ParameterError(
                f"The loss must return one value for each of the {n_sets} sets of a batch"
                + (f" {reason}" if value.ndim == 0 else ", or their mean")
                + f"; it returned shape {tuple(value.shape)}."
            )
        objective = value.view(self.members)
        if share < 1:
            objective = (
                objective * share if share > 0 else torch.where(objective.isfinite(), objective * 0, 0.0)
            )
            if not self.processes.first:
                return objective
        for factor, penalty in ((self.plan.l1, torch.abs), (self.plan.l2, torch.square)):
            if factor:
                for p in self.matrices:
                    objective = objective + factor * penalty(p).view(self.members, -1).sum(1)
        return objective

    def _losses(self, batch: Batch) -> Tensor:
        """Return the loss of each set of a batch."""
        inputs = batch.objects, batch.mask, batch.targets, batch.present
        if self.compiled is not None and len(batch.present) == self.full_batch:
            value = self.compiled(*inputs)
            if value is not None:
                return value
        return self._scored_loss(*inputs)  # type: ignore[arg-type]

    def _scored_loss(self, objects: Tensor, mask: Tensor | None, targets: Tensor, present: Tensor) -> Tensor:
        """Score the sets, and return the loss of each."""
        with autocast(self.data.device, self.plan.precision):
            scores = self.scores(objects, mask)
        return self.loss(scores.to(torch.promote_types(scores.dtype, torch.float32)), targets, present)

    def scores(self, objects: Tensor, mask: Tensor | None) -> Tensor:
        """Score a batch: ``(n, m)``, or ``(members n, m)``."""
        if isinstance(self.scorer, Stack):
            return self.scorer.each(objects, mask).flatten(0, 1)
        scores: Tensor = self.scorer(objects, mask)
        return scores

    @torch.no_grad()
    def scores_are_finite(self, batch: Batch) -> bool:
        """Whether the weights, as they are now, score a batch by numbers."""
        self.scorer.eval()
        return bool(self.scores(batch.objects, batch.mask).isfinite().all())

    def _clip(self, most: float) -> None:
        """Shorten the gradient of each member where it is longer than ``most``."""
        if not self.stacked:
            torch.nn.utils.clip_grad_norm_(self.parameters, most)
            return
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in gradients]).norm(dim=0)  # (members,)
        factors = (most / (norms + 1e-6)).clamp(max=1.0)
        for g in gradients:
            g.mul_(factors.view(-1, *[1] * (g.ndim - 1)))

    @torch.no_grad()
    def _update_ema(self) -> None:
        """Move the average of the weights a little towards the present ones."""
        if isinstance(self.ema_weight, Tensor):
            steps = torch._foreach_sub(self.parameters, self.averages)
            torch._foreach_mul_(steps, self.ema_weight)
            torch._foreach_add_(self.averages, steps)
        else:
            torch._foreach_lerp_(self.averages, self.parameters, self.ema_weight)
        for old, new in self.buffers:
            old.copy_(new)

    def optimizer_tensors(self) -> dict[str, Tensor]:
        """Return the optimiser's state, flat."""
        return {
            f"{i}.{name}": value
            for i, state in self.optimizer.state_dict()["state"].items()
            for name, value in state.items()
            if isinstance(value, Tensor)
        }

    def load_optimizer(self, tensors: dict[str, Tensor]) -> None:
        """Set the optimiser's state from what `optimizer_tensors` gave."""
        whole = self.optimizer.state_dict()
        whole["state"] = {}
        for key, value in tensors.items():
            i, name = key.split(".", 1)
            whole["state"].setdefault(int(i), {})[name] = value.clone()
        if (
            tensors and self.plan.optimizer == "sgd"
        ):  # fused takes momentum of all or of none: 0 where none is yet
            for place, p in enumerate(self.counted):
                whole["state"].setdefault(place, {"momentum_buffer": torch.zeros_like(p)})
        self.optimizer.load_state_dict(whole)
        if self.graphs is not None:  # the rate that steps read
            for group in self.optimizer.param_groups:
                group["lr"] = self.rate

    @property
    def counted(self) -> list[Tensor]:
        """The parameters, as the optimiser counts them."""
        return [p for group in self.optimizer.param_groups for p in group["params"]]


def repeat_for_members(batch: Batch, *, members: int) -> Batch:
    """Give every member of a stack the same targets and weights."""
    weights = None if batch.weights is None else batch.weights.repeat(members)
    wide = Batch(batch.objects, batch.mask, batch.targets.repeat(members, 1), weights)  # type: ignore[union-attr]
    wide.present = batch.present.repeat(members, 1)
    return wide
