"""The one training loop, for every net and every task.

All randomness is drawn from (seed, epoch), never from a stream that runs along, so the state of a run is
its step, its weights and its optimiser's: a run that is interrupted and resumed equals one that never was.
"""

import contextlib
import copy
import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor

from entourage.errors import CheckpointError, ParameterError, TrainingError
from entourage.nets import Scorer
from entourage.nets.ensemble import Stack
from entourage.tasks.evaluate import mean_over_sets
from entourage.tasks.losses import Loss
from entourage.training import tensor_file as model_file
from entourage.training.batches import Batch, Resident, autocast, predict_packed
from entourage.training.cuda_graphs import CompiledLoss, StepGraphs
from entourage.training.model_check import check_checkpoint
from entourage.training.plan import Plan

__all__ = [
    "EnsembleRun",
    "HeldOut",
    "Judge",
    "Outcome",
    "Run",
    "checkpoint_file",
    "score_not_chosen_by",
    "train",
    "watch",
]

CHECK_EVERY = 25  # steps between looks at the loss: each look waits for the device
CHECKPOINT = "checkpoint.entourage"


@dataclass
class Outcome:
    """What training leaves behind."""

    weights: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    history: list[dict[str, Any]]
    best_score: float | None
    steps: int
    interrupted: bool


class HeldOut(float):
    """A score on held-out sets that also knows those of two halves of them."""

    halves: tuple[float, float]


class Judge:
    """What a net is worth on held-out sets, as much as each weighs: higher is better.

    Parameters
    ----------
    data : the held-out sets
    values : packed scores to a value for each set, NaN where it has none
    precision : of the net
    weights : one a set, optional
    seed : parts the sets into two halves, each of which can be judged by what the other chose
    """

    def __init__(
        self,
        data: Resident,
        values: Callable[[NDArray[Any]], NDArray[np.float64]],
        precision: str,
        *,
        weights: NDArray[Any] | None = None,
        seed: int = 0,
    ) -> None:
        self.data, self.values, self.precision, self.weights = data, values, precision, weights
        order = np.random.default_rng([seed, 2**34]).permutation(len(data))
        self.halves = np.split(order, [len(order) // 2])

    def __call__(self, scorer: Scorer) -> float:
        """Score the sets, and judge the scores."""
        with autocast(self.data.device, self.precision):
            return self.of(predict_packed(scorer, self.data))

    def of(self, scores: Tensor) -> float:
        """Judge packed scores."""
        packed = scores.cpu().numpy()
        if not np.isfinite(packed).all():
            raise TrainingError(
                "The scores of held-out sets became infinite or NaN; no model was kept. Lower the "
                "learning rate, or look for extreme features."
            )
        values = self.values(packed)
        found = HeldOut(mean_over_sets(values, self.weights))
        first, second = (
            mean_over_sets(values[half], None if self.weights is None else self.weights[half])
            for half in self.halves
        )
        found.halves = first, second
        return found


def score_not_chosen_by(history: list[dict[str, Any]]) -> float | None:
    """Return the score on held-out sets that didn't choose: each half where the other half was best.

    The best score of all evaluations is too high: of pure noise, some evaluation looks good. None where nothing was
    held out, or one half says nothing.

    Examples
    --------
    >>> score_not_chosen_by([{"halves": [0.9, 0.4]}, {"halves": [0.5, 0.6]}])  # (0.4 + 0.5) / 2
    0.45
    """
    pairs = np.array([row["halves"] for row in history if "halves" in row])
    if len(pairs) == 0 or not np.isfinite(pairs).all():
        return None
    first, second = pairs.T
    return float((second[first.argmax()] + first[second.argmax()]) / 2)


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
    """Train ``scorer`` in place and return the best weights with the story of the run.

    Parameters
    ----------
    scorer : the net, on the device of ``data``
    loss : see :mod:`entourage.losses`
    data : what to learn from
    plan : how
    evaluate : the score, higher is better, by which the best weights are kept and training stops early;
        without it the last weights are kept
    optimizer_state : from an earlier outcome, to go on with
    checkpoint : a folder; a run found there goes on, to the same end as if it had never been interrupted
    fingerprint : of data and settings; a checkpoint of another run is refused
    progress : whether to show a bar
    """
    others = (loss, data, plan, evaluate)
    run = EnsembleRun(scorer, *others) if isinstance(scorer, Stack) else Run(scorer, *others)
    if optimizer_state is not None:
        run.load_optimizer(optimizer_state)
    file, identity = None, ""
    if checkpoint is not None:
        file, identity = checkpoint_file(checkpoint), _identity(plan, fingerprint)
        if file.exists():
            run.restore(file, identity)

    def keep() -> None:
        if file is not None:
            run.save(file, identity)

    return run.outcome(interrupted=watch(run, progress=progress, keep=keep))


def watch(run: "Run", *, progress: bool, keep: Callable[[], None] = lambda: None) -> bool:
    """Let a run go to its end under a bar, or until Ctrl-C; return whether that came.

    ``keep`` is called whenever the state is complete.
    """
    with _bar(run.plan.steps, progress) as show:
        show(run)
        try:
            for done in run.go():
                show(run)
                if done:
                    keep()
        except KeyboardInterrupt:
            return True
    return False


def checkpoint_file(folder: str | os.PathLike[str]) -> Path:
    """Return where the state of a run is kept, in a folder that is made where it is missing."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CheckpointError(f"{folder} can't be a folder for checkpoints: {error.strerror}.") from error
    return Path(folder) / CHECKPOINT


class Run:
    """A run of training and all its state."""

    members = 1  # nets trained side by side

    def __init__(
        self,
        scorer: Scorer,
        loss: Loss,
        data: Resident,
        plan: Plan,
        evaluate: Callable[[Scorer], float] | None,
    ) -> None:
        self.scorer, self.loss, self.data, self.plan, self.evaluate = scorer, loss, data, plan, evaluate
        self.parameters: list[Tensor] = list(scorer.parameters())
        self.matrices = [p for p in self.parameters if p.ndim > 1 + (self.members > 1)]
        on_gpu = data.device.type == "cuda"
        self.rate = torch.tensor(plan.learning_rate, device=data.device)
        self.toward: Tensor | float = torch.zeros((), device=data.device) if on_gpu else 0.0
        rate: Any = self.rate if on_gpu else plan.learning_rate
        self.optimizer = plan.make_optimizer(self.parameters, self.matrices, rate)
        self.average = copy.deepcopy(scorer) if plan.ema is not None else None
        if self.average is not None:
            self.averages: list[Tensor] = list(self.average.parameters())
            self.buffers = list(zip(self.average.buffers(), scorer.buffers(), strict=True))
        self.generator = torch.Generator(data.device) if scorer.drops_out else None
        scorer.draw_from(self.generator)
        forget = partial(self.optimizer.zero_grad, set_to_none=True)
        self.graphs = None
        if on_gpu:
            self.graphs = StepGraphs(self.recorded_work, forget, data.device, self.generator)
            if not scorer.stackable:
                self.graphs.give_up("what it computes depends on the values of the features")
        self.compiled = CompiledLoss(self.scored_loss) if plan.compile else None
        self.full = self.members * data.sets_in_batch(plan.batch_size)
        self.step = 0
        self.recent: list[Tensor] = []  # losses since the last look
        self.loss_sum = torch.zeros(self.members, dtype=torch.float64)  # since the last evaluation
        self.loss_count = 0
        self.history: list[dict[str, Any]] = []
        self.best_score: float | None = None
        self.best_weights: dict[str, Tensor] | None = None
        self.since_best = 0

    # --- the loop -------------------------------------------------------------------------------

    def go(self) -> Iterator[bool]:
        """Train to the end; yields after every look at the loss, True where the state is complete."""
        plan = self.plan
        length = self.data.n_batches(plan.batch_size)
        while self.step < plan.steps and not self.finished:
            epoch, begin = divmod(self.step, length)
            for chosen in self.epoch(epoch)[begin:]:
                self.one_step(chosen)
                last = self.step == plan.steps
                if last or plan.looks_after(self.step):
                    self.look()
                    if last:
                        self.check_scores(self.data.batch(chosen))
                    self.record()
                    yield True
                    if last or self.finished:
                        return
                elif len(self.recent) == CHECK_EVERY:
                    self.look()
                    yield False

    def epoch(self, epoch: int) -> list[Tensor]:
        """Part the sets into shuffled batches."""
        return self.data.epoch(self.plan.batch_size, np.random.default_rng([self.plan.seed, epoch]))

    @property
    def finished(self) -> bool:
        """Whether the score has not risen for so long that it is time to stop."""
        return self.plan.patience is not None and self.since_best >= self.plan.patience

    def one_step(self, chosen: Tensor) -> None:
        """One batch: loss, gradient, update."""
        plan = self.plan
        rate = plan.rate(self.step)
        decay = min(plan.ema or 0.0, (2 + self.step) / (11 + self.step))
        if not self.scorer.training:
            self.scorer.train()
        if self.generator is not None:
            self.generator.manual_seed((plan.seed * 1_000_003 + self.step) % 2**63)
        if self.graphs is None:
            for group in self.optimizer.param_groups:
                group["lr"] = rate
            self.toward = 1 - decay
            objective = self.work(self.data.batch(chosen))
        else:
            self.rate.fill_(rate)
            self.toward.fill_(1 - decay)  # type: ignore[union-attr]
            objective = self.graphs(*self.inputs(chosen))
        self.step += 1
        self.recent.append(objective)

    def inputs(self, chosen: Tensor) -> list[Tensor | None]:
        """Return what a recorded step reads: which sets, where it can gather them itself, else the batch."""
        if self.data.gathers_by_index:
            return [chosen]
        batch = self.data.batch(chosen)
        return [batch.objects, batch.mask, batch.targets, batch.weights]

    def recorded_work(self, *inputs: Tensor | None) -> Tensor:
        """Do the work of a step from what `inputs` gave."""
        if len(inputs) == 1:
            return self.work(self.data.batch(inputs[0]))  # type: ignore[arg-type]
        return self.work(Batch(*inputs))  # type: ignore[arg-type]

    def work(self, batch: Batch) -> Tensor:
        """Loss, gradient, update, average; return the objective of each member."""
        plan = self.plan
        value = self.values(batch)
        if not isinstance(value, Tensor) or not value.requires_grad:
            raise ParameterError(
                f"The loss must return a tensor computed from the scores; it returned {value!r}."
            )
        if value.shape == batch.there.shape[:1]:
            value = value if batch.weights is None else value * batch.weights
            value = value.view(self.members, -1).mean(1)
        elif value.ndim > 0 or batch.weights is not None or self.members > 1:
            reason = "when sets are weighted" if self.members == 1 else "when nets are trained together"
            raise ParameterError(
                f"The loss must return one value for each of the {len(batch.there)} sets of a batch"
                + (f" {reason}" if value.ndim == 0 else ", or their mean")
                + f"; it returned shape {tuple(value.shape)}."
            )
        objective = value.view(self.members)
        for factor, penalty in ((plan.l1, torch.abs), (plan.l2, torch.square)):
            if factor:
                for p in self.matrices:
                    objective = objective + factor * penalty(p).view(self.members, -1).sum(1)
        self.optimizer.zero_grad(set_to_none=True)
        objective.sum().backward()  # type: ignore[no-untyped-call]
        if plan.clip is not None:
            self.clip(plan.clip)
        self.optimizer.step()
        if self.average is not None:
            self.follow()
        return objective.detach()

    def values(self, batch: Batch) -> Tensor:
        """Return the loss of each set of a batch."""
        inputs = batch.objects, batch.mask, batch.targets, batch.there
        if self.compiled is not None and len(batch.there) == self.full:
            value = self.compiled(*inputs)
            if value is not None:
                return value
        return self.scored_loss(*inputs)  # type: ignore[arg-type]

    def scored_loss(self, objects: Tensor, mask: Tensor | None, targets: Tensor, there: Tensor) -> Tensor:
        """Score the sets, and return the loss of each."""
        with autocast(self.data.device, self.plan.precision):
            scores = self.scores(objects, mask)
        return self.loss(scores.float(), targets, there)

    def scores(self, objects: Tensor, mask: Tensor | None) -> Tensor:
        """Score a batch: ``(n, m)``, or ``(members n, m)``."""
        scores: Tensor = self.scorer(objects, mask)
        return scores

    def clip(self, most: float) -> None:
        """Shorten the gradient of each member where it is longer than ``most``."""
        if self.members == 1:
            torch.nn.utils.clip_grad_norm_(self.parameters, most)
            return
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in gradients]).norm(dim=0)  # (members,)
        factors = (most / (norms + 1e-6)).clamp(max=1.0)
        for g in gradients:
            g.mul_(factors.view(-1, *[1] * (g.ndim - 1)))

    @torch.no_grad()
    def follow(self) -> None:
        """Move the average of the weights a little towards the present ones."""
        if isinstance(self.toward, Tensor):
            steps = torch._foreach_sub(self.parameters, self.averages)
            torch._foreach_mul_(steps, self.toward)
            torch._foreach_add_(self.averages, steps)
        else:
            torch._foreach_lerp_(self.averages, self.parameters, self.toward)
        for old, new in self.buffers:
            old.copy_(new)

    def look(self) -> None:
        """Check that the losses since the last look are numbers."""
        values = torch.stack(self.recent).double().cpu()  # (steps, members)
        bad = ~values.isfinite()
        if bad.any():
            first = int(bad.any(1).int().argmax())
            news = values[first][bad[first]][0].item()
            self.fail(f"The loss became {news}", self.step - len(values) + first + 1)
        self.loss_sum += values.sum(0)
        self.loss_count += len(values)
        self.recent.clear()

    def fail(self, what: str, step: int) -> NoReturn:
        """Say what happened, when, and what to do about it."""
        raise TrainingError(
            f"{what} in step {step} of {self.plan.steps}, at a learning rate of "
            f"{self.plan.rate(step - 1):.3g}; no model was kept. Lower the learning rate, clip gradients "
            "harder (clip=0.1), or look for extreme features."
        )

    @torch.no_grad()
    def check_scores(self, batch: Batch) -> None:
        """See that the last step has not left weights behind that score no numbers."""
        self.scorer.eval()
        if not self.scores(batch.objects, batch.mask).isfinite().all():
            self.fail("The scores became infinite or NaN", self.step)

    def record(self) -> None:
        """Evaluate, and keep the weights if they are the best so far."""
        score = None
        if self.evaluate is not None:
            score = self.evaluate(self.scorer if self.average is None else self.average)
        self.note(self.loss_sum.mean().item() / self.loss_count, score, self.weights)
        self.loss_sum.zero_()
        self.loss_count = 0

    def note(self, loss: float, score: float | None, weights: Callable[[], dict[str, Tensor]]) -> None:
        """Write down how it goes, and keep the weights if the score is the best so far."""
        row: dict[str, Any] = {
            "step": float(self.step),
            "learning_rate": self.plan.rate(self.step - 1),
            "loss": loss,
        }
        if score is not None:
            row["score"] = float(score)
            if isinstance(score, HeldOut) and np.isfinite(score.halves).all():
                row["halves"] = list(score.halves)
            self.since_best += 1
            if self.best_score is None or score > self.best_score:
                self.best_score, self.best_weights, self.since_best = float(score), weights(), 0
        self.history.append(row)

    def news(self) -> str:
        """How it goes, in a few words."""
        news = f"loss {self.history[-1]['loss']:.4f}" if self.history else ""
        return news if self.best_score is None else f"{news}, best {self.best_score:.4f}"

    def outcome(self, *, interrupted: bool) -> Outcome:
        """Return what is left when it is over."""
        self.scorer.draw_from(None)
        return Outcome(
            weights=self.best_weights if self.best_weights is not None else self.weights(),
            optimizer=self.optimizer_tensors(),
            history=self.history,
            best_score=self.best_score,
            steps=self.step,
            interrupted=interrupted,
        )

    def weights(self) -> dict[str, Tensor]:
        """Return a copy of the weights to keep: the averaged ones where there are such."""
        source = self.scorer if self.average is None else self.average
        return {name: value.detach().clone() for name, value in source.state_dict().items()}

    # --- saving and going on --------------------------------------------------------------------

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
            counted = [p for group in self.optimizer.param_groups for p in group["params"]]
            for place, p in enumerate(counted):
                whole["state"].setdefault(place, {"momentum_buffer": torch.zeros_like(p)})
        self.optimizer.load_state_dict(whole)
        if self.graphs is not None:  # the rate that steps read
            for group in self.optimizer.param_groups:
                group["lr"] = self.rate

    def save(self, path: Path, identity: str) -> None:
        """Write the whole state."""
        tensors = _prefixed("net", self.scorer.state_dict()) | _prefixed(
            "optimizer", self.optimizer_tensors()
        )
        if self.average is not None:
            tensors |= _prefixed("average", self.average.state_dict())
        if self.best_weights is not None:
            tensors |= _prefixed("best", self.best_weights)
        content = {
            "identity": identity,
            "seed": self.plan.seed,
            "step": self.step,
            "history": self.history,
            "best_score": self.best_score,
            "since_best": self.since_best,
        }
        model_file.write(path, "checkpoint", content, tensors)

    def restore(self, path: Path, identity: str) -> None:
        """Go back to a saved state, if it is one of this very run."""
        content, tensors = model_file.read(path, "checkpoint")
        if content.get("identity") != identity:
            raise CheckpointError(
                f"{path} belongs to a run with other data or settings. Take an empty folder, or delete that "
                "file to start anew."
            )
        counted = [p for group in self.optimizer.param_groups for p in group["params"]]
        weights, averaged = self.scorer.state_dict(), self.average is not None
        check_checkpoint(path, content, tensors, weights, counted, averaged=averaged)
        self.scorer.load_state_dict(_without("net", tensors))
        self.load_optimizer(_without("optimizer", tensors))
        if self.average is not None:
            self.average.load_state_dict(_without("average", tensors))
        self.step, self.history = content["step"], content["history"]
        self.best_score, self.since_best = content["best_score"], content["since_best"]
        best = _without("best", tensors)
        self.best_weights = {k: v.to(self.data.device) for k, v in best.items()} if best else None


class EnsembleRun(Run):
    """A run of an ensemble: each member has its own gradient, on the same batches; they are judged by their mean."""

    def __init__(self, scorer: Stack, *others: Any) -> None:
        self.members = scorer.members
        super().__init__(scorer, *others)

    def work(self, batch: Batch) -> Tensor:
        """Let every member learn from the batch."""
        weights = None if batch.weights is None else batch.weights.repeat(self.members)
        wide = Batch(batch.objects, batch.mask, batch.targets.repeat(self.members, 1), weights)  # type: ignore[union-attr]
        wide.there = batch.there.repeat(self.members, 1)
        return super().work(wide)

    def scores(self, objects: Tensor, mask: Tensor | None) -> Tensor:
        """Score a batch with every member: ``(members n, m)``."""
        return self.scorer.each(objects, mask).flatten(0, 1)  # type: ignore[operator,no-any-return]


def _prefixed(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}.{name}": value for name, value in tensors.items()}


def _without(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {k.removeprefix(f"{prefix}."): v for k, v in tensors.items() if k.startswith(f"{prefix}.")}


def _identity(plan: Plan, fingerprint: str) -> str:
    content = [model_file.FORMAT, asdict(plan), fingerprint]
    return hashlib.sha256(model_file.to_json(content).encode()).hexdigest()


@contextlib.contextmanager
def _bar(steps: int, visible: bool) -> Iterator[Callable[[Run], None]]:
    """Show a bar on the error stream, with the loss and the best score."""
    columns = (
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[news]}"),
    )
    with Progress(*columns, console=Console(stderr=True), disable=not visible) as progress:
        bar = progress.add_task("training", total=steps, news="")

        def show(run: Run) -> None:
            progress.update(bar, completed=run.step, news=run.news())

        yield show
