"""The one training loop, for every net and every task.

All randomness is drawn from (seed, epoch), never from a running stream, so the state of a run is
its step, its weights and its optimiser's: a run that is interrupted and resumed equals one that never was.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor

from entourage.errors import TrainingError
from entourage.nets import Scorer
from entourage.tasks.losses import Loss
from entourage.training import checkpoint as checkpoints
from entourage.training.allocator import keep_freed_memory
from entourage.training.batches import Batch, Resident
from entourage.training.plan import Plan
from entourage.training.processes import processes_here
from entourage.training.progress import History, training_bar
from entourage.training.update import Update

__all__ = ["Outcome", "Run", "run_with_progress", "train"]

CHECK_EVERY = 25  # steps between checks of the loss: each waits for the device


@dataclass
class Outcome:
    """The results of training."""

    weights: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    history: list[dict[str, Any]]
    best_score: float | None
    steps: int
    interrupted: bool
    out_of_time: bool = False  # whether a time limit ended it


def train(
    scorer: Scorer,
    loss: Loss,
    data: Resident,
    plan: Plan,
    *,
    evaluate: Callable[[Scorer], float] | None = None,
    optimizer_state: dict[str, Tensor] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    fingerprint: str = "",
    progress: bool = False,
) -> Outcome:
    """Train ``scorer`` in place and return the best weights with the history of the run.

    Parameters
    ----------
    scorer : the net, on the device of ``data``
    loss : see :mod:`entourage.losses`
    data : what to learn from
    plan : how
    evaluate : the score, higher is better, by which the best weights are kept and training stops early;
        without it the last weights are kept
    optimizer_state : from an earlier outcome, to continue with
    checkpoint : a folder; a run found there is resumed, with the same result as an uninterrupted run
    fingerprint : of data and settings; a checkpoint of another run is refused
    progress : whether to show a bar
    """
    run = Run(scorer, loss, data, plan, evaluate)
    if optimizer_state is not None:
        run.update.load_optimizer(optimizer_state)
    if checkpoint is None:
        return run.outcome(interrupted=run_with_progress(run, progress=progress))
    processes = processes_here()
    file, identity = checkpoints.checkpoint_file(checkpoint), checkpoints.identity_of(plan, fingerprint)
    if file.exists():
        run.step = checkpoints.restore(file, identity, run.update, run.history)
    processes.check_same(
        "The step at which the run goes on (its checkpoint)", run.step
    )  # before it is replaced

    def keep() -> None:
        if processes.first:
            checkpoints.save(file, identity, run.update, run.history, run.step)

    return run.outcome(interrupted=run_with_progress(run, progress=progress, keep=keep))


def run_with_progress(run: "Run", *, progress: bool, keep: Callable[[], None] = lambda: None) -> bool:
    """Train to the end with a progress bar, or until Ctrl-C; return whether training was interrupted.

    ``keep`` is called whenever the state is complete.
    """
    with training_bar(run.plan.steps, progress) as show:
        show(run.step, run.summary())
        try:
            for complete in run.run():
                show(run.step, run.summary())
                if complete:
                    keep()
        except KeyboardInterrupt:
            return True
    return False


class Run:
    """A run of training: the order of batches, and what is checked and evaluated after them.

    Parameters
    ----------
    scorer, loss, data, plan : see `train`
    evaluate : the score of a net on held-out sets, optional
    widen : see `Update`
    """

    def __init__(
        self,
        scorer: Scorer,
        loss: Loss,
        data: Resident,
        plan: Plan,
        evaluate: Callable[[Scorer], float] | None = None,
        widen: Callable[[Batch], Batch] | None = None,
    ) -> None:
        self.data, self.plan, self.evaluate = data, plan, evaluate
        self.update = Update(scorer, loss, data, plan, widen)
        self.history = History()
        if data.device.type == "cpu":
            keep_freed_memory()
        self.processes = processes_here()
        self.step = 0
        self.out_of_time = False  # see entourage.training.deadline
        self.recent: list[Tensor] = []  # losses since the last check
        self.loss_sum = torch.zeros(self.update.members, dtype=torch.float64)  # since the last evaluation
        self.loss_count = 0

    def run(self) -> Iterator[bool]:
        """Train to the end; yields after every check of the loss, True where the state is complete."""
        plan = self.plan
        length = self.data.n_batches(plan.batch_size)
        while self.step < plan.steps and not self.finished:
            epoch, begin = divmod(self.step, length)
            for chosen in self.batches(epoch)[begin:]:
                self.one_step(chosen)
                self.out_of_time = self.step < plan.steps and self.processes.time_is_up()
                last = self.step == plan.steps or self.out_of_time
                if last or plan.evaluates_after(self.step):
                    self.check_losses()
                    if last and not self.update.scores_are_finite(self.data.batch(chosen)):
                        self.fail("The scores became infinite or NaN", self.step)
                    self.record()
                    yield True
                    if last or self.finished:
                        return
                elif len(self.recent) == CHECK_EVERY:
                    self.check_losses()
                    yield False

    def batches(self, epoch: int) -> list[Tensor]:
        """Split the sets into the shuffled batches of an epoch."""
        return self.data.epoch(self.plan.batch_size, np.random.default_rng([self.plan.seed, epoch]))

    def one_step(self, chosen: Tensor) -> None:
        """Do a step on the chosen sets."""
        objective = self.update(chosen, self.step)
        self.step += 1
        self.recent.append(objective)

    @property
    def finished(self) -> bool:
        """Whether the score has not risen for so long that it is time to stop."""
        return self.history.stopped_improving(self.plan.patience)

    def check_losses(self) -> None:
        """Check that the losses since the last check are numbers."""
        values = torch.stack(self.recent).double().cpu()  # (steps, members)
        bad = ~values.isfinite()
        if bad.any():
            first = int(bad.any(1).int().argmax())
            found = values[first][bad[first]][0].item()
            self.fail(f"The loss became {found}", self.step - len(values) + first + 1)
        self.loss_sum += values.sum(0)
        self.loss_count += len(values)
        self.recent.clear()

    def fail(self, what: str, step: int) -> NoReturn:
        """Raise an error that says what happened, when, and what to do about it."""
        raise TrainingError(
            f"{what} in step {step} of {self.plan.steps}, at a learning rate of "
            f"{self.plan.rate(step - 1):.3g}; no model was kept. Lower the learning rate, clip gradients "
            "harder (clip=0.1), or check for extreme features."
        )

    def record(self) -> None:
        """Evaluate, and keep the weights if they are the best so far."""
        update = self.update
        score = None if self.evaluate is None else self.evaluate(update.learnt)
        loss = self.loss_sum.mean().item() / self.loss_count
        self.history.add(self.step, self.plan.rate(self.step - 1), loss, score, update.weights)
        self.forget_losses()

    def forget_losses(self) -> None:
        """Begin to sum losses anew, after an evaluation."""
        self.loss_sum.zero_()
        self.loss_count = 0

    def summary(self) -> str:
        """Return the progress in a few words."""
        return self.history.summary()

    def outcome(self, *, interrupted: bool) -> Outcome:
        """Return the results of the run."""
        self.update.scorer.draw_from(None)
        self.update.scorer.sum_statistics_by(None)
        best = self.history.best_weights
        weights = self.update.weights() if best is None else best
        if self.processes.several and not interrupted:
            sums = [float(value.double().sum()) for value in weights.values()]
            self.processes.check_same("The sum of the learnt weights", sums)
        return Outcome(
            weights=weights,
            optimizer=self.update.optimizer_tensors(),
            history=self.history.rows,
            best_score=self.history.best_score,
            steps=self.step,
            interrupted=interrupted,
            out_of_time=self.out_of_time,
        )
