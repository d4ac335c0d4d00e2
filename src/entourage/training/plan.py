"""How to train: the settings of a run, checked, with what follows from them."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from entourage.errors import check_choice, check_number

__all__ = ["Plan"]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How to train: see the parameters of :class:`entourage.Ranker`."""

    steps: int
    batch_size: int
    optimizer: str
    learning_rate: float
    momentum: float
    schedule: str
    warmup: float
    weight_decay: float
    l1: float
    l2: float
    clip: float | None
    ema: float | None
    evaluate_every: int
    patience: int | None
    precision: str
    compile: bool = False
    evaluate_early: bool = False
    seed: int

    def __post_init__(self) -> None:
        check_number("steps", self.steps, least=1, whole=True)
        check_number("batch_size", self.batch_size, least=1, whole=True)
        check_choice("optimizer", self.optimizer, ["adamw", "sgd"])
        check_number("learning_rate", self.learning_rate, above=0)
        check_number("momentum", self.momentum, least=0, below=1)
        check_choice("schedule", self.schedule, ["cosine", "constant"])
        check_number("warmup", self.warmup, least=0, most=1)
        for name in ("weight_decay", "l1", "l2"):
            check_number(name, getattr(self, name), least=0)
        if self.clip is not None:
            check_number("clip", self.clip, above=0)
        if self.ema is not None:
            check_number("ema", self.ema, above=0, below=1)
        check_number("evaluate_every", self.evaluate_every, least=1, whole=True)
        if self.patience is not None:
            check_number("patience", self.patience, least=1, whole=True)
        check_choice("precision", self.precision, ["float32", "bfloat16"])

    def evaluates_after(self, step: int) -> bool:
        """Whether held-out sets are evaluated after so many steps; early, too: small data overfit quickly."""
        every = self.evaluate_every
        early = self.evaluate_early and step in (every // 8, every // 4, every // 2)
        return early or step % every == 0

    def rate(self, step: int) -> float:
        """Return the learning rate of a step: linear warm-up, then cosine decay to 0, or constant."""
        warm_steps = self.warmup * self.steps
        if step < warm_steps:
            return self.learning_rate * (step + 1) / (warm_steps + 1)
        if self.schedule == "constant":
            return self.learning_rate
        done = (step - warm_steps) / max(1.0, self.steps - warm_steps)
        return self.learning_rate * 0.5 * (1 + math.cos(math.pi * done))

    def make_optimizer(self, parameters: list[Any], matrices: list[Any], rate: Any) -> torch.optim.Optimizer:
        """Return the optimiser, at a rate that is a number or a tensor.

        Weight decay is for matrices; biases and scales of norms are exempt.
        """
        chosen = {id(p) for p in matrices}
        groups = [
            {"params": matrices, "weight_decay": self.weight_decay},
            {"params": [p for p in parameters if id(p) not in chosen], "weight_decay": 0.0},
        ]
        if self.optimizer == "sgd":
            return torch.optim.SGD(
                groups, lr=rate, momentum=self.momentum, nesterov=self.momentum > 0, fused=True
            )
        return torch.optim.AdamW(groups, lr=rate, fused=True, capturable=isinstance(rate, Tensor))
