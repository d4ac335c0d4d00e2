"""Pretraining: draw worlds from the prior, let the net read some of their sets, and score it on the others.

One step draws a shape (sets, objects, columns, task), worlds of that shape, and reads all of them at once, so nothing
is padded but in ragged worlds. Weights are averaged (EMA); the average is what is kept, and what a later call starts
from, with a fresh optimiser and a short warm-up.
"""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from entourage.nets.prior_fitted import SHARES, TASK_KINDS, Memory, PriorFittedNet, Seen, label_views
from entourage.pretrained.inputs import learn
from entourage.pretrained.ridge import Comparisons
from entourage.pretraining.prior import Shape, Worlds, draw_worlds

__all__ = ["Lesson", "Plan", "Reading", "append_line", "pretrain"]

SIZES = {2: 0.12, 3: 0.24, 4: 0.16, 5: 0.16, 6: 0.12, 8: 0.08, 12: 0.07, 20: 0.05}  # objects of a set
LABELLED = {8: 0.08, 16: 0.15, 32: 0.18, 64: 0.18, 128: 0.17, 256: 0.15, 512: 0.07, 1024: 0.02}
COLUMNS = {1: 0.03, 2: 0.15, 3: 0.13, 4: 0.13, 6: 0.18, 8: 0.14, 12: 0.12, 18: 0.07, 26: 0.05}
TASKS = {"choice": 0.66, "ranking": 0.22, "subset": 0.12}
RAGGED = 0.25
MOST_LABELLED = 4_096  # objects of a world
EASY_UTILITIES = (1.0, 8.0)
AT_ONCE = 4  # steps whose worlds are drawn together
TELL = 250  # steps between two lines
CLIP = 1.0  # the largest norm of a gradient
SHARE_WEIGHT, EFFECT_WEIGHT = 0.1, 0.05  # of the verdict in the loss


@dataclass(frozen=True)
class Plan:
    """How long, how much at once, how fast.

    Parameters
    ----------
    seconds : of training
    objects : at most, in one step
    cells : at most, in one step
    queries : sets of each world that are scored
    learning_rate, warmup : the highest, and the steps to it
    decay : the part of the time in which the learning rate falls to 0, at the end
    average : of weights, over about 1 / (1 - average) steps
    unaided : the part of worlds in which the net sees nothing of the ridge logits, not even an order of columns, so
        that it must learn to infer by itself
    easy : whether worlds are small, choices and strong, to begin with
    """

    seconds: float
    objects: int = 48_000
    cells: int = 400_000
    queries: int = 64
    learning_rate: float = 6e-4
    warmup: int = 300
    decay: float = 0.0
    average: float = 0.999
    unaided: float = 0.4
    easy: bool = False
    seed: int = 0


@dataclass(frozen=True)
class Reading:
    """What a net makes of worlds: its memory of their labelled sets, utilities of the others, and what was there."""

    memory: Memory
    utilities: Tensor  # (W, queries, m)
    lesson: "Lesson"

    def gains(self) -> Tensor:
        """Return the expected log-likelihood of each scored set, less that of a uniform choice (W, queries).

        Of rankings, that of the first object. What is expected is known, since the worlds are simulated: labels of
        scored sets would only add noise.
        """
        return _expected_gains(self.utilities, self.lesson)

    def ranking_gains(self) -> Tensor:
        """Return the log-likelihood of each ranking, less that of a uniform one, and what it could be (W, queries)."""
        made = Comparisons.of(self.lesson.ranks, self.lesson.mask)
        stakes = (made.chosen * made.among.sum(-1).clamp_min(1).log()).sum(-1)
        return made.gains(self.utilities.unsqueeze(1)).squeeze(1).sum() / stakes.sum().clamp_min(1e-6)


@dataclass(frozen=True)
class Lesson:
    """Worlds as a net sees them, and what is known of those sets that it must score."""

    task: str
    seen: Seen
    labels: Tensor
    columns: Tensor
    table: Tensor
    ranks: Tensor
    mask: Tensor | None
    share: Tensor
    effects: Tensor
    aims: Tensor  # (W, queries, m), probabilities in the true world

    @classmethod
    @torch.no_grad()
    def of(cls, worlds: Worlds, task: str, labelled: int) -> "Lesson":
        """Label the first sets of each world."""
        ranks = worlds.labels if task == "ranking" else 1 - worlds.labels
        known = ranks[:, :labelled]
        first, rest = (None, None) if worlds.mask is None else worlds.mask.tensor_split([labelled], 1)
        knowledge, seen = learn(worlds.values, known, worlds.mask)
        return cls(
            task,
            seen,
            label_views(known, first, task == "subset"),
            knowledge.columns,
            knowledge.table,
            ranks[:, labelled:],
            rest,
            worlds.share,
            worlds.effects,
            worlds.probabilities[:, labelled:],
        )

    def parts(self, count: int) -> Iterator["Lesson"]:
        """Cut it into so many lessons, by worlds."""
        each = -(-len(self.share) // count)
        for start in range(0, len(self.share), each):
            some = slice(start, start + each)

            def cut(value: Any, some: slice = some) -> Any:
                if value is None or isinstance(value, str):
                    return value
                return Seen(*(cut(t) for t in value)) if isinstance(value, Seen) else value[some]

            yield Lesson(*(cut(getattr(self, field.name)) for field in fields(self)))

    @torch.no_grad()
    def unaided(self, share: float, generator: torch.Generator) -> "Lesson":
        """Hide the ridge logits in a share of the worlds, and with them the order and the signs of the columns."""
        w, d = self.columns.shape[:2]
        device = self.columns.device
        hidden = torch.rand(w, generator=generator, device=device) < share
        order = torch.rand(w, d, generator=generator, device=device).argsort(1)
        order = torch.where(hidden[:, None], order, torch.arange(d, device=device))
        sign = 1 - 2 * (torch.rand(w, d, generator=generator, device=device) < 0.5).float()
        sign = torch.where(hidden[:, None], sign, 1.0)[:, None, None, :, None]
        cells = self.seen.cells.gather(3, order[:, None, None, :, None].expand_as(self.seen.cells)) * sign
        shown = (~hidden).float()
        columns = self.columns.gather(1, order.unsqueeze(-1).expand_as(self.columns))
        columns = torch.cat([columns[..., :2], columns[..., 2:] * shown[:, None, None]], -1)
        columns[..., 1] = columns[..., 1] * sign[:, 0, 0, :, 0]
        gains = self.table.shape[1] - 3
        table = torch.cat([self.table[:, :gains] * shown[:, None], self.table[:, gains:]], -1)
        seen = Seen(cells, self.seen.base * shown[:, None, None, None], self.seen.mask)
        return replace(self, seen=seen, columns=columns, table=table)

    def read_by(self, net: PriorFittedNet) -> Reading:
        """Let a net read the labelled sets, and score the others."""
        task = TASK_KINDS.index(self.task)
        memory, utilities = net.read(self.seen, self.labels, self.columns, self.table, task)
        return Reading(memory, utilities, self)

    def stakes(self) -> Tensor:
        """Return what is at stake in each scored set: minus the log-likelihood of a uniform choice (W, queries)."""
        count = (
            torch.full_like(self.aims[..., 0], self.aims.shape[-1])
            if self.mask is None
            else self.mask.sum(-1)
        )
        return count * np.log(2.0) if self.task == "subset" else count.float().log()

    def ideal(self) -> Tensor:
        """Return the gain of the oracle, in expectation (W, queries)."""
        if self.task == "subset":
            return _expected_gains(self.aims.clamp(1e-6, 1 - 1e-6).logit(), self)
        return _expected_gains(self.aims.clamp_min(1e-9).log(), self)


def _expected_gains(utilities: Tensor, lesson: Lesson) -> Tensor:
    aims, mask = lesson.aims, lesson.mask
    if lesson.task == "subset":
        gain = np.log(2.0) - F.binary_cross_entropy_with_logits(utilities, aims, reduction="none")
        return (gain if mask is None else gain * mask).sum(-1)
    if mask is not None:
        utilities = utilities.masked_fill(~mask, -1e4)
    return (aims * utilities.log_softmax(-1)).sum(-1) + lesson.stakes()


def loss_of(reading: Reading, lesson: Lesson) -> Tensor:
    """Return the loss: of the scored sets, relative to a uniform choice, and of the verdict."""
    main = 1 - reading.gains().sum() / lesson.stakes().sum()
    if lesson.task == "ranking":
        main = (main + 1 - reading.ranking_gains()) / 2
    borders = torch.tensor(SHARES[1:-1], device=lesson.share.device)
    bins = torch.where(lesson.share > 0, torch.bucketize(lesson.share, borders) + 1, 0)
    share = F.cross_entropy(reading.memory.verdict.share, bins)
    effects = F.binary_cross_entropy_with_logits(reading.memory.verdict.effects, lesson.effects.float())
    return main + SHARE_WEIGHT * share + EFFECT_WEIGHT * effects


def draw_shape(plan: Plan, random: np.random.Generator) -> tuple[Shape, int]:
    """Draw the shape of the worlds of a step, and how many of their sets are labelled."""
    m, k, d, task = (_draw(table, random) for table in (SIZES, LABELLED, COLUMNS, TASKS))
    ragged = m > 2 and random.random() < RAGGED
    d = int(max(1, d + random.integers(-(d // 4), d // 4 + 1)))
    if plan.easy:
        m, k, d, task, ragged = min(m, 4), min(max(k, 32), 256), min(d, 3), "choice", False
    k = max(8, min(k, MOST_LABELLED // m))
    of_world = (k + plan.queries) * m
    count = max(1, min(plan.objects // of_world, plan.cells // (of_world * d), 512))
    utilities = EASY_UTILITIES if plan.easy else Shape.utilities
    return Shape(count, k + plan.queries, m, d, task, ragged, utilities), k


def _draw(table: dict[Any, float], random: np.random.Generator) -> Any:
    shares = np.array(list(table.values()))
    return list(table)[int(random.choice(len(table), p=shares / shares.sum()))]


def pretrain(
    net: PriorFittedNet,
    plan: Plan,
    device: torch.device,
    tell: Callable[[dict[str, Any]], None],
) -> dict[str, Tensor]:
    """Train for so many seconds; return the averaged weights."""
    net = net.to(device).train()
    torch.backends.cuda.enable_cudnn_sdp(False)  # it makes a plan for every new shape, for a second
    random = np.random.default_rng(plan.seed)
    generator = torch.Generator(device).manual_seed(plan.seed)
    optimizer = _optimizer(net, plan)
    average = [p.detach().clone() for p in net.parameters()]
    started, step, kept = time.perf_counter(), 0, []
    lessons: list[Lesson] = []
    while (spent := time.perf_counter() - started) < plan.seconds:
        rate = plan.learning_rate * min(1.0, (step + 1) / plan.warmup)
        if plan.decay > 0:
            rate *= min(1.0, max(0.0, (1 - spent / plan.seconds) / plan.decay))
        if not lessons:
            shape, labelled = draw_shape(plan, random)
            worlds = draw_worlds(replace(shape, worlds=AT_ONCE * shape.worlds), generator)
            lesson = Lesson.of(worlds, shape.task, labelled)
            lessons = list(lesson.unaided(1.0 if plan.easy else plan.unaided, generator).parts(AT_ONCE))
        lesson = lessons.pop()
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            reading = lesson.read_by(net)
        loss = loss_of(reading, lesson)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.get_total_norm([p.grad for p in net.parameters() if p.grad is not None])
        optimizer.grad_scale = (norm / CLIP).clamp_min(1.0)  # by which the fused optimiser divides
        optimizer.found_inf = (
            ~norm.isfinite()
        ).float()  # then it leaves the step out; nobody waits for the device
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        step += 1
        decay = min(plan.average, step / (step + 10))
        torch._foreach_lerp_(average, [p.detach() for p in net.parameters()], 1 - decay)
        kept.append(_row(reading, lesson, loss))
        if step % TELL == 0 or time.perf_counter() - started >= plan.seconds:
            tell({"step": step, "seconds": round(spent, 1), **_summary(kept)})
            kept = []
    names = [name for name, _ in net.named_parameters()]
    return {name: value.cpu() for name, value in zip(names, average, strict=True)}


def _optimizer(net: nn.Module, plan: Plan) -> Any:
    matrices = [p for p in net.parameters() if p.ndim == 2]
    others = [p for p in net.parameters() if p.ndim != 2]
    groups = [{"params": matrices, "weight_decay": 0.02}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=plan.learning_rate, betas=(0.9, 0.98), fused=True)


@torch.no_grad()
def _row(reading: Reading, lesson: Lesson, loss: Tensor) -> tuple[Any, Tensor]:
    """Return what is kept of a step, without waiting for the device."""
    gain = reading.gains().sum()
    key = (lesson.task, lesson.labels.shape[1], lesson.labels.shape[2])
    return key, torch.stack([loss.detach(), gain / lesson.stakes().sum(), gain, lesson.ideal().sum()])


def _summary(kept: list[tuple[Any, Tensor]]) -> dict[str, Any]:
    """Return the mean loss, and which part of the oracle's gain was reached: in all, by task, sets and objects."""
    values = torch.stack([value for _, value in kept]).double().cpu().numpy()
    keys = [key for key, _ in kept]

    def reached(rows: list[int]) -> float:
        return round(float(values[rows, 2].sum() / max(values[rows, 3].sum(), 1e-9)), 4)

    groups: dict[str, list[int]] = {}
    for i, (task, labelled, objects) in enumerate(keys):
        for name in (task, f"N={labelled}", f"m={objects}"):
            groups.setdefault(name, []).append(i)
    every = list(range(len(keys)))
    return {
        "loss": round(float(np.nanmean(values[:, 0])), 5),
        "left out": int(np.isnan(values[:, 0]).sum()),
        "gain": round(float(np.nanmean(values[:, 1])), 5),
        "reached": reached(every),
        "by": {name: reached(rows) for name, rows in sorted(groups.items())},
    }


def append_line(path: Path, row: dict[str, Any]) -> None:
    """Append a row to a log."""
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")
