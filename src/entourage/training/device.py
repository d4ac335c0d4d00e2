"""Where to compute, and in which precision."""

import contextlib
import functools
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from entourage.errors import ParameterError
from entourage.nets import Scorer

__all__ = ["autocast", "find_device", "placed"]

AnyScorer = TypeVar("AnyScorer", bound=Scorer)

_CPU = torch.device("cpu")


def find_device(device: str) -> torch.device:
    """Return the device of this name; "auto" is the GPU where there is one."""
    if device == "cpu":
        return _CPU
    if device == "auto":
        return _best_device()
    try:
        found = torch.device(device)
        torch.empty(0, device=found)
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise ParameterError(f"device={device!r} can't be used here: {reason}. Try device='cpu'.") from None
    return found


@functools.cache
def _best_device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def placed(scorer: AnyScorer, device: torch.device) -> AnyScorer:
    """Return a net on a device, moved unless it is there: a look at its first weight is quicker than `to`."""
    weight = _first_weight(scorer)
    if weight is not None and weight.device == device:
        return scorer
    return scorer.to(device)


def _first_weight(module: nn.Module) -> Tensor | None:
    """Return the first weight of a module; None where it has none."""
    for weight in module._parameters.values():
        if weight is not None:
            return weight
    for child in module._modules.values():
        found = None if child is None else _first_weight(child)
        if found is not None:
            return found
    return None


def autocast(device: torch.device, precision: str) -> contextlib.AbstractContextManager[Any]:
    """Compute nets in this precision."""
    if precision == "float32":
        return contextlib.nullcontext()
    return torch.autocast(device.type, dtype=torch.bfloat16)
