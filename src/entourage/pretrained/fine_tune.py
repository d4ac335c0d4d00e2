"""Fine-tuning: the pretrained net is trained on for some steps, on the labelled sets of one table.

Each step reads some of the sets and scores others. A fifth of the sets is held out; the weights that score them best
are kept, those of the package if no others do.
"""

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from entourage.nets.prior_fitted import TASK_KINDS, PriorFittedNet, label_views
from entourage.pretrained.inputs import learn
from entourage.pretrained.ridge import Comparisons

__all__ = ["LabelledTensors", "fine_tune"]

Floats: TypeAlias = NDArray[np.float64]

STEPS, EVERY, PATIENCE = 200, 20, 4  # steps; between two evaluations; evaluations without a better one
LEARNING_RATE, WARMUP = 1e-4, 20
HELD_OUT = 0.2
FEWEST = 20  # sets; with fewer nothing is tuned
READ, SCORED = 2_000, 400  # objects in a step, at most


@dataclass(frozen=True)
class LabelledTensors:
    """Labelled sets as tensors.

    Parameters
    ----------
    kind : a name of `TASK_KINDS`
    values : (n, m, d)
    ranks : (n, m), NaN in the padding
    mask : (n, m) bool, or None
    weights : (n,), or None
    """

    kind: str
    values: Tensor
    ranks: Tensor
    mask: Tensor | None
    weights: Tensor | None

    def take(self, rows: Tensor) -> "LabelledTensors":
        """Return some of the sets."""
        return LabelledTensors(
            self.kind,
            self.values[rows],
            self.ranks[rows],
            None if self.mask is None else self.mask[rows],
            None if self.weights is None else self.weights[rows],
        )

    def __len__(self) -> int:
        return len(self.values)


def fine_tune(
    net: PriorFittedNet,
    table: LabelledTensors,
    *,
    seed: int = 0,
    groups: NDArray[np.int64] | None = None,
    steps: int = STEPS,
    tell: Callable[[str], None] | None = None,
) -> tuple[PriorFittedNet, int]:
    """Return a copy of the net that was trained on for at most ``steps``, and the step of its weights.

    Parameters
    ----------
    net : that of the package; it stays as it is
    table : labelled sets
    seed : of what is held out, read and scored
    groups : one a set; sets of one group are held out together
    tell : is told how long it will take, and what came of it
    """
    random = np.random.default_rng(seed)
    inside, outside = _split(len(table), groups, random)
    if len(table) < FEWEST or len(outside) == 0:
        return net, 0
    train, held_out = table.take(inside), table.take(outside)
    tuned = copy.deepcopy(net).train().requires_grad_(True)
    optimizer = torch.optim.AdamW(tuned.parameters(), lr=LEARNING_RATE, weight_decay=0.0, betas=(0.9, 0.98))
    best, best_step, best_weights = (
        _held_out_gain(tuned, train, held_out),
        0,
        copy.deepcopy(tuned.state_dict()),
    )
    started, worse = time.perf_counter(), 0
    for step in range(1, steps + 1):
        read, scored = _draw(train, random)
        loss = -_gains(tuned, train.take(read), train.take(scored)).mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(tuned.parameters(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = LEARNING_RATE * min(1.0, step / WARMUP) * (1 - step / (steps + 1))
        optimizer.step()
        if step == 3 and tell is not None:
            each = (time.perf_counter() - started) / 3
            tell(
                f"fine-tuning: up to {steps} steps of {each:.2f} s, about {1.2 * each * steps:.0f} s at most; "
                "as long again, without a part of the sets, to calibrate by these"
            )
        if step % EVERY == 0:
            gain = _held_out_gain(tuned, train, held_out)
            if gain > best:
                best, best_step, best_weights, worse = gain, step, copy.deepcopy(tuned.state_dict()), 0
            else:
                worse += 1
                if worse == PATIENCE:
                    break
    if tell is not None:
        tell(f"fine-tuned: {best_step} steps; held out, {best:.4f} above a uniform choice")
    if best_step == 0:
        return net, 0
    tuned.load_state_dict(best_weights)
    return tuned.eval().requires_grad_(False), best_step


def _split(n: int, groups: NDArray[np.int64] | None, random: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Return which sets are trained on and which are held out."""
    codes = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]
    order = random.permutation(int(codes.max()) + 1)
    held_out = np.isin(codes, order[: round(HELD_OUT * len(order))])
    return torch.as_tensor(np.flatnonzero(~held_out)), torch.as_tensor(np.flatnonzero(held_out))


def _draw(train: LabelledTensors, random: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Draw which sets are read in a step, and which are scored."""
    m = train.values.shape[1]
    order = torch.as_tensor(random.permutation(len(train)))
    scored = max(1, min(len(train) // 3, SCORED // m))
    most = max(1, min(len(train) - scored, READ // m))
    read = int(random.integers(max(1, most // 2), most + 1))
    return order[scored : scored + read], order[:scored]


def _gains(net: PriorFittedNet, read: LabelledTensors, scored: LabelledTensors) -> Tensor:
    """Return the log-likelihood of each scored set, less that of a uniform choice, having read the others (n,)."""
    known, task = read.ranks[None], TASK_KINDS.index(read.kind)
    mask = None if read.mask is None or scored.mask is None else torch.cat([read.mask, scored.mask])[None]
    with torch.no_grad():
        knowledge, seen = learn(
            torch.cat([read.values, scored.values])[None],
            known,
            mask,
            None if read.weights is None else read.weights[None],
        )
        labels = label_views(known, None if read.mask is None else read.mask[None], read.kind == "subset")
    log_weights = None if read.weights is None else read.weights[None].log()
    _, utilities = net.read(seen, labels, knowledge.columns, knowledge.table, task, log_weights)
    if read.kind == "subset":
        loss = binary_cross_entropy_with_logits(utilities[0], (scored.ranks == 0).float(), reduction="none")
        gains: Tensor = np.log(2.0) - loss
        gains = (gains if scored.mask is None else gains * scored.mask).sum(-1)
    else:
        real = None if scored.mask is None else scored.mask[None]
        gains = Comparisons.of(scored.ranks[None], real).gains(utilities.unsqueeze(1))[0, 0]
    return gains if scored.weights is None else gains * scored.weights


@torch.no_grad()
def _held_out_gain(net: PriorFittedNet, train: LabelledTensors, held_out: LabelledTensors) -> float:
    most = max(1, 2 * READ // train.values.shape[1])
    few = train if len(train) <= most else train.take(torch.arange(most))
    net.eval()
    gain = float(_gains(net, few, held_out).mean())
    net.train()
    return gain
