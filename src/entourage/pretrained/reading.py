"""STUB of the pretrained net's reading of labelled sets: a ridge logit of standardised columns."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from entourage.data.sets import Sets
from entourage.pretrained.verdict import InstantVerdict
from entourage.tasks import Choice, SubsetChoice, Task
from entourage.tasks.losses import LOSSES, SUBSET_LOSSES
from entourage.training.file_checks import check_weights, forms_of, need, take

__all__ = ["Reading"]

STEPS = 30


@dataclass(frozen=True)
class Reading:
    """What was read of labelled sets."""

    mean: Tensor
    scale: Tensor
    coef: Tensor
    n_features: tuple[int, int]
    n_sets: int

    @classmethod
    def read(
        cls,
        sets: Sets,
        task: Task,
        *,
        weights: NDArray[np.float64] | None = None,
        fine_tune: bool = False,
        random_state: int = 0,
        device: str = "auto",
        tell: Callable[[str], None] | None = None,
    ) -> Self:
        """Read labelled sets."""
        assert sets.targets is not None
        values = torch.from_numpy(_values(sets))
        mean, scale = values.mean(0), values.std(0, correction=0)
        scale = torch.where(scale > 0, scale, 1.0)
        loss = (
            task.find_loss("nll")
            if isinstance(task, Choice)
            else SUBSET_LOSSES["binary"]
            if isinstance(task, SubsetChoice)
            else LOSSES["plackett_luce"]
        )
        own = torch.ones(len(sets), dtype=torch.float64) if weights is None else torch.from_numpy(weights)
        coef = torch.zeros(values.shape[1] + 1, dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.LBFGS([coef], max_iter=STEPS, line_search_fn="strong_wolfe")
        groups = [
            (torch.from_numpy(chosen), torch.from_numpy(rows), torch.from_numpy(sets.targets[rows]))
            for chosen, rows in sets.by_size()
        ]

        def closure() -> Tensor:
            optimizer.zero_grad()
            scores = _linear((values - mean) / scale, coef)
            total = 0.5 * coef.square().sum()
            for chosen, rows, ranks in groups:
                mask = torch.ones(rows.shape, dtype=torch.bool)
                total = total + (own[chosen] * loss(scores[rows], ranks, mask)).sum()
            total.backward()  # type: ignore[no-untyped-call]
            return total

        optimizer.step(closure)  # type: ignore[no-untyped-call]
        if tell is not None:
            tell(f"read {len(sets)} labelled sets")
        return cls(mean, scale, coef.detach(), (sets.n_features, sets.n_situation_features), len(sets))

    def scores(self, sets: Sets, device: str = "auto") -> NDArray[np.float64]:
        """Score all objects, packed."""
        return np.asarray(
            _linear((torch.from_numpy(_values(sets)) - self.mean) / self.scale, self.coef).numpy()
        )

    def verdict(self) -> InstantVerdict:
        """Say what there is of context."""
        return InstantVerdict(0.5, 0.1, (0.0, 0.4), {"attraction": 0.3, "compromise": 0.3, "similarity": 0.3})

    def describe(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Return what a file holds."""
        content = {"n_features": list(self.n_features), "n_sets": self.n_sets}
        return content, {"mean": self.mean, "scale": self.scale, "coef": self.coef}

    @classmethod
    def from_file(cls, content: Any, tensors: dict[str, Tensor]) -> Self:
        """Make it again."""
        first, second = take(content, "n_features", tuple[int, int])
        need(0 < first < 10**6 and 0 <= second < 10**6, "its reading is malformed.")
        like = torch.zeros(first + second + 1, dtype=torch.float64)
        check_weights(tensors, forms_of({"mean": like[1:], "scale": like[1:], "coef": like}), "the reading")
        return cls(**tensors, n_features=(first, second), n_sets=take(content, "n_sets", int, least=1))


def _values(sets: Sets) -> NDArray[np.float64]:
    parts = [np.asarray(sets.objects, dtype=np.float64)]
    if sets.situation is not None:
        parts.append(np.repeat(np.asarray(sets.situation, dtype=np.float64), sets.sizes, axis=0))
    return np.concatenate(parts, axis=1)


def _linear(values: Tensor, coef: Tensor) -> Tensor:
    return values @ coef[:-1] + coef[-1]
