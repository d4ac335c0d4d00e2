"""A training step made of fewer kernels by `torch.compile`, where it pays for the start-up."""

import warnings
from collections.abc import Callable
from types import FunctionType

import torch
from torch import Tensor

__all__ = ["CompiledLoss"]


class CompiledLoss:
    """The loss of a batch as `torch.compile` makes it: of tensors (or None); returns None once compilation has failed.

    Parameters
    ----------
    loss : the loss of each set
    """

    def __init__(self, loss: Callable[..., Tensor]) -> None:
        self.possible = True

        def values(*inputs: Tensor | None) -> Tensor:
            return loss(*inputs)

        # what was compiled is kept by code object, a few for each: every run has its own
        own = FunctionType(values.__code__.replace(), values.__globals__, "values", None, values.__closure__)
        self.work: Callable[..., Tensor] = torch.compile(own, dynamic=False)

    def __call__(self, *inputs: Tensor | None) -> Tensor | None:
        """Return the loss of each set."""
        if not self.possible:
            return None
        try:
            return self.work(*inputs)
        except (
            Exception
        ) as error:  # whatever a compiler may raise; what the loss raises comes again without it
            self.possible = False
            reason = (str(error).strip() or repr(error)).splitlines()[0]
            warnings.warn(
                f"This net and loss can't be compiled ({reason}); training continues uncompiled, more slowly.",
                stacklevel=2,
            )
            return None
