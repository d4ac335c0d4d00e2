"""Several processes that train one net together: which of them this is, and what they exchange.

Every process holds the same net and does the same steps; each computes the loss of its share of a batch, and the
gradients are added up. One process is the normal case: nothing is exchanged then. The process group is torch's
(:mod:`torch.distributed`); :func:`entourage.distributed.processes` joins it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, distributed

from entourage.errors import DataError, UserError
from entourage.training.deadline import time_is_up, time_left

__all__ = ["ALONE", "GradientSum", "Processes", "processes_here", "train_in"]

T = TypeVar("T")


@dataclass(frozen=True)
class Processes:
    """The processes that train together.

    Attributes
    ----------
    rank : the number of this process; 0 writes files and shows progress
    count : how many there are

    Examples
    --------
    >>> torch.arange(5)[Processes(rank=1, count=2).share(5)]
    tensor([1, 3])
    """

    rank: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """Whether this process writes files and shows progress."""
        return self.rank == 0

    @property
    def several(self) -> bool:
        """Whether there are others."""
        return self.count > 1

    def share(self, size: int) -> slice:
        """Return which of so many are this process's, in a list that is sorted by size: every so many-th."""
        return slice(self.rank, size, self.count)

    def sum(self, values: Tensor) -> Tensor:
        """Add up a tensor over all processes, in place; return it."""
        if self.several:
            distributed.all_reduce(values)
        return values

    def differentiable_sum(self, values: Tensor) -> Tensor:
        """Add up a tensor over all processes, with gradients that are added up on the way back."""
        total: Tensor = _Sum.apply(values)  # type: ignore[no-untyped-call]
        return total

    def from_first(self, value: Any) -> Any:
        """Return what the first process has: a number, or small plain data."""
        if not self.several:
            return value
        held = [value]
        distributed.broadcast_object_list(held, src=0)
        return held[0]

    def check_same(self, what: str, value: Any) -> None:
        """Raise an error in all processes where they differ in a value; all wait for each other here."""
        if not self.several:
            return
        found: list[Any] = [None] * self.count
        distributed.all_gather_object(found, value)
        for rank, other in enumerate(found):
            if other != found[0]:
                raise DataError(
                    f"{what} differs between the processes: {found[0]!r} in process 0, {other!r} in process {rank}. "
                    "All have to be given the same data and settings, in the same order."
                )

    def first_does(self, work: Callable[[], T]) -> T:
        """Let the first process do something for which the others wait; its result, or its error, is that of all."""
        failed: UserError | None = None
        found: Any = None
        if self.first:
            try:
                found = work()
            except UserError as error:
                failed = error
        failed, found = self.from_first((failed, found))
        if failed is not None:
            raise failed
        return cast("T", found)

    def time_is_up(self) -> bool:
        """Whether the time limit has passed, where there is one: by the clock of the first process."""
        if not self.several or time_left() == float("inf"):
            return time_is_up()
        return bool(self.from_first(time_is_up()))


class GradientSum:
    """Adds up gradients over all processes, in one message with the objective.

    The message is kept from step to step: made anew, it would lie between what a step frees, and the memory of each
    step would be asked of the system again.

    Parameters
    ----------
    processes : which
    parameters : whose gradients are meant; those without one have none in any process
    members : how many numbers the objective has
    """

    def __init__(self, processes: Processes, parameters: Sequence[Tensor], members: int) -> None:
        self.processes, self.parameters = processes, parameters
        sizes = [p.numel() for p in parameters]
        self.message = parameters[0].new_zeros(sum(sizes) + members)
        *parts, self.objective = self.message.split_with_sizes([*sizes, members])
        self.parts = [part.view_as(p) for part, p in zip(parts, parameters, strict=True)]

    def __call__(self, objective: Tensor) -> Tensor:
        """Replace each gradient by the sum; return that of the objectives."""
        found = [
            (part, p.grad) for part, p in zip(self.parts, self.parameters, strict=True) if p.grad is not None
        ]
        parts, gradients = [part for part, _ in found], [gradient for _, gradient in found]
        torch._foreach_copy_([*parts, self.objective], [*gradients, objective.detach()])
        self.processes.sum(self.message)
        torch._foreach_copy_(gradients, parts)
        total: Tensor = self.objective.to(objective.dtype, copy=True)
        return total


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        total = values.clone()
        distributed.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Tensor:
        total: Tensor = gradients[0].clone()
        distributed.all_reduce(total)
        return total


ALONE = Processes()
_here: ContextVar[Processes] = ContextVar("processes", default=ALONE)


def processes_here() -> Processes:
    """Return the processes that train together in this context; :data:`ALONE` unless it was said otherwise."""
    return _here.get()


@contextmanager
def train_in(processes: Processes) -> Iterator[Processes]:
    """Let every fit inside be shared by these processes; :data:`ALONE` for none."""
    token = _here.set(processes)
    try:
        yield processes
    finally:
        _here.reset(token)
