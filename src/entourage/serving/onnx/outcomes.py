"""What is made of scores in a graph: probabilities, and what is chosen."""

from typing import Any

import torch
from torch import Tensor, nn

from entourage.serving.onnx.scorer import doubles
from entourage.tasks import Choice, SubsetChoice

__all__ = ["Outcome", "choice_probabilities", "subset_probabilities"]

LOWEST = -1e12  # of utilities of rankings, as in entourage.estimators.calibration


class Outcome(nn.Module):
    """Scores to all outputs of a model, in the order of ``names``; 0 in the padding.

    Choice: the probability that an object is chosen and, with an outside option, that none is. Subset choice: the
    probability that an object is chosen, and whether it is. Ranking: the probability of the first place, where the
    model is calibrated.
    """

    divisor: Tensor
    border: Tensor

    def __init__(self, model: Any) -> None:
        super().__init__()
        task = model.task
        calibration = getattr(model, "calibration_", None)
        self.kind, self.temperature = "rank", None if calibration is None else calibration.temperature
        self.outside, self.threshold = False, 0.0
        if isinstance(task, Choice):
            self.kind, self.outside = "choice", task.outside
        elif isinstance(task, SubsetChoice):
            self.kind, self.threshold = "subset", float(task.threshold)
        self.register_buffer("divisor", doubles(self.temperature or 1.0))
        self.register_buffer("border", doubles(self.threshold))
        self.names = ["scores"]
        if self.kind != "rank" or self.temperature is not None:
            self.names.append("probabilities")
        if self.outside:
            self.names.append("probability_of_nothing")
        if self.kind == "subset":
            self.names.append("chosen")

    def forward(self, scores: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
        """Return the outputs, given scores ``(n, m)``."""
        scores = torch.where(mask, scores, 0.0)
        if self.kind == "choice":
            probabilities, nothing = choice_probabilities(scores, mask, outside=self.outside)
            return (scores, probabilities, nothing) if self.outside else (scores, probabilities)
        if self.kind == "subset":
            probabilities = torch.where(mask, subset_probabilities(scores), 0.0)
            return scores, probabilities, (scores > self.border) & mask
        if self.temperature is None:
            return (scores,)
        highest = torch.where(mask, scores, -torch.inf).amax(1, keepdim=True)
        utilities = (torch.where(mask, scores - highest, 0.0) / self.divisor).clamp(min=LOWEST)
        powers = torch.where(mask, torch.exp(utilities), 0.0)
        total = powers.sum(1, keepdim=True)
        return scores, powers / torch.where(total > 0, total, 1.0)

    def about(self) -> dict[str, Any]:
        """Return what a user of the graph may want to know, for its metadata."""
        found: dict[str, Any] = {"task": self.kind}
        if self.kind == "choice":
            found["outside"] = self.outside
        elif self.kind == "subset":
            found["threshold"] = self.threshold
        elif self.temperature is not None:
            found["temperature"] = self.temperature
        return found


def choice_probabilities(scores: Tensor, mask: Tensor, *, outside: bool) -> tuple[Tensor, Tensor]:
    """Return the softmax over each set, (n, m), 0 in the padding, and the probability of the outside option, (n,)."""
    highest = torch.where(mask, scores, -torch.inf).amax(1, keepdim=True)
    highest = highest.clamp(min=0.0) if outside else torch.where(mask.any(1, keepdim=True), highest, 0.0)
    powers = torch.where(mask, torch.exp(torch.where(mask, scores - highest, 0.0)), 0.0)
    nothing = torch.exp(-highest) if outside else torch.zeros_like(highest)
    total = powers.sum(1, keepdim=True) + nothing
    total = torch.where(total > 0, total, 1.0)
    return powers / total, (nothing / total).squeeze(1)


def subset_probabilities(scores: Tensor) -> Tensor:
    """Return the sigmoid."""
    return 0.5 * (1.0 + torch.tanh(0.5 * scores))
