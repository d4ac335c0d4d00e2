"""Jobs side by side: the one pool, whose interface a cluster can implement.

What is done with each job is one picklable callable, sent to every worker once, with all that it carries (data,
candidates, settings). Jobs and results are small. A worker is a fresh process of one thread: several threads a
worker were seen to be 50 times slower than one.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, as_completed, wait
from multiprocessing import get_context
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

import torch

from entourage.errors import check_number

__all__ = ["Pool", "first_done", "map_in_order", "open_pool"]

J = TypeVar("J")
R = TypeVar("R")


class Pool(ABC, Generic[J, R]):
    """Runs ``work(job)`` for jobs that are handed in; used as a context, left by an error it drops what waits.

    Parameters
    ----------
    work : what to do with a job; what it raises comes out of the job's future
    workers : how many jobs run at a time
    """

    def __init__(self, work: Callable[[J], R], workers: int) -> None:
        self.work, self.workers = work, workers

    @abstractmethod
    def submit(self, job: J) -> "Future[R]":
        """Hand in a job."""

    @abstractmethod
    def close(self, *, cancel: bool) -> None:
        """Wait for what runs; with ``cancel``, jobs that wait are dropped."""

    def run(self, jobs: Sequence[J]) -> Iterator[tuple[J, R]]:
        """Run all jobs; yields each with its result as it is done."""
        futures = {self.submit(job): job for job in jobs}
        for future in as_completed(futures):
            yield futures[future], future.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(cancel=kind is not None)


class _Here(Pool[J, R]):
    """One job at a time, in this process, with its threads."""

    def submit(self, job: J) -> "Future[R]":
        future: Future[R] = Future()
        future.set_result(self.work(job))
        return future

    def close(self, *, cancel: bool) -> None:
        """Nothing runs."""

    def run(self, jobs: Sequence[J]) -> Iterator[tuple[J, R]]:
        yield from ((job, self.work(job)) for job in jobs)


class _Processes(Pool[J, R]):
    """Worker processes on this machine."""

    def __init__(self, work: Callable[[J], R], workers: int) -> None:
        super().__init__(work, workers)
        self.executor = ProcessPoolExecutor(
            workers, mp_context=get_context("spawn"), initializer=_start_worker, initargs=(work,)
        )

    def submit(self, job: J) -> "Future[R]":
        return self.executor.submit(_work, job)

    def close(self, *, cancel: bool) -> None:
        self.executor.shutdown(wait=True, cancel_futures=cancel)


def open_pool(work: Callable[[J], R], workers: int = 1) -> Pool[J, R]:
    """Return a pool of so many workers; one is this process itself.

    Examples
    --------
    >>> with open_pool(abs) as pool:
    ...     sorted(result for job, result in pool.run([-2, 1]))
    [1, 2]
    """
    check_number("workers", workers, least=1, whole=True)
    return _Here(work, workers) if workers == 1 else _Processes(work, workers)


def map_in_order(work: Callable[[J], R], jobs: Sequence[J], *, workers: int = 1) -> Iterator[R]:
    """Run all jobs; yields their results in the order of the jobs."""
    with open_pool(work, min(workers, max(1, len(jobs)))) as pool:
        if pool.workers == 1:
            yield from map(work, jobs)
            return
        for future in [pool.submit(job) for job in jobs]:
            yield future.result()


def first_done(running: dict["Future[R]", Any]) -> "list[Future[R]]":
    """Wait until some of the futures are done, and return them in the order in which they were handed in."""
    done = wait(running, return_when=FIRST_COMPLETED).done
    return [future for future in running if future in done]


_worker: Callable[[Any], Any]


def _start_worker(work: Callable[[Any], Any]) -> None:
    global _worker
    torch.set_num_threads(1)
    _worker = work


def _work(job: Any) -> Any:
    return _worker(job)
