"""Where to compute, and in which precision."""

import contextlib
from typing import Any

import torch

from entourage.errors import ParameterError

__all__ = ["autocast", "find_device"]


def find_device(device: str) -> torch.device:
    """Return the device of this name; "auto" is the GPU where there is one."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        found = torch.device(device)
        torch.empty(0, device=found)
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise ParameterError(f"device={device!r} can't be used here: {reason}. Try device='cpu'.") from None
    return found


def autocast(device: torch.device, precision: str) -> contextlib.AbstractContextManager[Any]:
    """Compute nets in this precision."""
    if precision == "float32":
        return contextlib.nullcontext()
    return torch.autocast(device.type, dtype=torch.bfloat16)
