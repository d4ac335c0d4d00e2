"""Joining the other processes of a launch: torchrun, or any launcher that sets the variables of torch's rendezvous."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import torch
from torch import distributed

from entourage.errors import ParameterError, UserError
from entourage.training.parallel import Future, Pool, use_engine
from entourage.training.processes import ALONE, Processes, processes_here, train_in

__all__ = ["OWN_STORE", "launched_processes", "processes"]

J = TypeVar("J")
R = TypeVar("R")

# with torch 2.13 processes that are started again find the addresses of those that have died, unless this is 1
OWN_STORE = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE"
# for which processes wait for each other: the first one may write features to disk for hours. One that has died is
# noticed before; torch's own limit is 30 minutes, 10 of nccl
LONGEST = timedelta(days=1)
NEEDED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def launched_processes() -> int:
    """Return how many processes a launcher such as torchrun has started of this program; 1 without one."""
    if not all(name in os.environ for name in NEEDED):
        return 1
    return int(os.environ["WORLD_SIZE"])


@contextmanager
def processes() -> Iterator[Processes]:
    """Let every fit inside be shared by all processes of the launch.

    Every process runs the same program on the same data. A net is trained by all: each computes the gradient of its
    share of the sets of a batch. The folds of :func:`entourage.selection.cross_validate` are spread over the
    processes. The result is the same in all of them; ``first`` says which one should write and print.

    The process group is the one that the program has initialised; else it is made from the variables RANK,
    WORLD_SIZE, MASTER_ADDR and MASTER_PORT, with gloo on CPUs and nccl on GPUs, and ended with the block. Without
    a launch there is one process, and the block changes nothing.

    Examples
    --------
    >>> with processes() as here:
    ...     here.count, here.first
    (1, True)
    """
    own = False
    if not distributed.is_initialized():
        if launched_processes() == 1:
            yield ALONE
            return
        _check_restart()
        if torch.cuda.is_available():
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
            distributed.init_process_group("cpu:gloo,cuda:nccl", timeout=LONGEST)
        else:
            distributed.init_process_group("gloo", timeout=LONGEST)
        own = True
    here = Processes(distributed.get_rank(), distributed.get_world_size())
    try:
        with train_in(here), use_engine(_ProcessesEngine() if here.several else None):
            yield here
    finally:
        if own:
            distributed.destroy_process_group()


def _check_restart() -> None:
    """Refuse a restart of torchrun that would wait for processes that are gone."""
    again = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0
    if again and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        raise UserError(
            f"torchrun started the processes again, but torch {torch.__version__} lets them meet where those before "
            f"them did, and they would wait for these for ever. Set {OWN_STORE}=1 for torchrun."
        )


class _ProcessesEngine:
    """Runs the jobs of a pool on the processes of the launch."""

    def open_pool(self, work: Callable[[J], R], workers: int) -> Pool[J, R]:
        """Open a pool; ``workers`` is the number of processes, whatever was asked for."""
        here = processes_here()
        if not here.several:
            raise ParameterError("This job runs in one of several processes, and can't start others.")
        return _Spread(work, here)


class _Spread(Pool[J, R]):
    """Every process does each so many-th job, alone, and all receive all results."""

    def __init__(self, work: Callable[[J], R], here: Processes) -> None:
        super().__init__(work, here.count)
        self.here = here

    def submit(self, job: J) -> "Future[R]":
        """Refuse a single job: all processes have to know all jobs beforehand."""
        raise UserError(
            "Several processes of a launch share the training of a net and the folds of cross_validate. Run tune and "
            "compare in one process, with workers=."
        )

    def run(self, jobs: Sequence[J]) -> Iterator[tuple[J, R]]:
        """Run all jobs; yield each with its result, in their order."""
        yield from zip(jobs, self.map(jobs), strict=True)

    def map(self, jobs: Sequence[J]) -> Iterator[R]:
        """Run all jobs; yield their results in the order of the jobs. An error in any is raised in all."""
        mine: list[tuple[bool, Any]] = []
        for job in jobs[self.here.share(len(jobs))]:
            try:
                with train_in(ALONE), use_engine(None):
                    mine.append((True, self.work(job)))
            except Exception as error:  # raised below, in all processes
                mine.append((False, error))
                break
        everyone: list[Any] = [None] * self.here.count
        distributed.all_gather_object(everyone, mine)
        for results in everyone:
            for done, result in results:
                if not done:
                    raise result
        for i in range(len(jobs)):
            yield everyone[i % self.here.count][i // self.here.count][1]

    def close(self, *, cancel: bool) -> None:
        """Nothing runs between two calls."""
