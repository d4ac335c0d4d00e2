"""Jobs side by side: the one pool, whose interface a cluster can implement.

What is done with each job is one picklable callable, sent to every worker once, with all that it carries (data,
candidates, settings). Jobs and results are small. A worker is a fresh process of one thread: several threads a
worker were seen to be 50 times slower than one.

A cluster subclasses :class:`Pool` and implements ``submit`` and ``close``. Its :class:`Engine` opens such pools; inside
``with use_engine(engine)`` everything that opens a pool gets them.
"""

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, as_completed, wait
from contextlib import contextmanager
from contextvars import ContextVar
from multiprocessing import connection, get_context, parent_process
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

import torch

from entourage.errors import check_number

__all__ = ["Engine", "Future", "Pool", "first_done", "map_in_order", "open_pool", "use_engine"]

J = TypeVar("J")
R = TypeVar("R")


class Pool(ABC, Generic[J, R]):
    """Runs ``work(job)`` for every job that is submitted; a context manager.

    Left by an error, it cancels the jobs that have not begun. When it is left, no job runs any more.

    Parameters
    ----------
    work : what to do with a job; the future of a job has its result, or raises what it raised
    workers : how many jobs run at a time
    """

    def __init__(self, work: Callable[[J], R], workers: int) -> None:
        self.work, self.workers = work, workers

    @abstractmethod
    def submit(self, job: J) -> "Future[R]":
        """Submit a job; return the future of its result."""

    @abstractmethod
    def close(self, *, cancel: bool) -> None:
        """Wait for the jobs that run; with ``cancel``, those that have not begun are dropped."""

    def run(self, jobs: Sequence[J]) -> Iterator[tuple[J, R]]:
        """Run all jobs; yield each with its result as soon as it is done. The first error is raised here."""
        futures = {self.submit(job): job for job in jobs}
        for future in as_completed(futures):
            yield futures[future], future.result()

    def map(self, jobs: Sequence[J]) -> Iterator[R]:
        """Run all jobs; yield their results in the order of the jobs."""
        for future in [self.submit(job) for job in jobs]:
            yield future.result()

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
        try:
            future.set_result(self.work(job))
        except Exception as error:
            future.set_exception(error)
        return future

    def close(self, *, cancel: bool) -> None:
        """Nothing runs between two calls."""

    def run(self, jobs: Sequence[J]) -> Iterator[tuple[J, R]]:
        yield from ((job, self.work(job)) for job in jobs)  # each begins when the one before was taken

    def map(self, jobs: Sequence[J]) -> Iterator[R]:
        yield from (self.work(job) for job in jobs)


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


class Engine(Protocol):
    """Where pools run, if not on this machine; :mod:`entourage.distributed` has one for Ray."""

    def open_pool(self, work: Callable[[J], R], workers: int) -> Pool[J, R]:
        """Open a pool that runs so many jobs at a time, of one thread each."""


_engine: ContextVar[Engine | None] = ContextVar("engine", default=None)


@contextmanager
def use_engine(engine: Engine | None) -> Iterator[None]:
    """Have all pools that this thread opens inside the block run on ``engine``; None: on this machine."""
    token = _engine.set(engine)
    try:
        yield
    finally:
        _engine.reset(token)


def open_pool(work: Callable[[J], R], workers: int = 1) -> Pool[J, R]:
    """Open a pool that runs so many jobs at a time: on the engine in use, else on this machine.

    On this machine, a single worker is this process itself, with its threads.

    Examples
    --------
    >>> with open_pool(abs) as pool:
    ...     sorted(result for job, result in pool.run([-2, 1]))
    [1, 2]
    """
    check_number("workers", workers, least=1, whole=True)
    engine = _engine.get()
    if engine is not None:
        return engine.open_pool(work, workers)
    return _Here(work, workers) if workers == 1 else _Processes(work, workers)


def map_in_order(work: Callable[[J], R], jobs: Sequence[J], *, workers: int = 1) -> Iterator[R]:
    """Run all jobs, with at most so many workers; yield their results in the order of the jobs.

    Examples
    --------
    >>> list(map_in_order(abs, [-2, 1, -3]))
    [2, 1, 3]
    """
    with open_pool(work, min(workers, max(1, len(jobs)))) as pool:
        yield from pool.map(jobs)


def first_done(running: dict["Future[R]", Any]) -> "list[Future[R]]":
    """Wait until at least one of the futures is done; return those that are, in the order they were submitted."""
    done = wait(running, return_when=FIRST_COMPLETED).done
    return [future for future in running if future in done]


_worker: Callable[[Any], Any]


def _start_worker(work: Callable[[Any], Any]) -> None:
    global _worker
    torch.set_num_threads(1)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()
    _worker = work


def _end_with(parent: int) -> None:
    """End this worker when the process that started it was killed; it would wait for jobs for ever."""
    connection.wait([parent])
    os._exit(1)


def _work(job: Any) -> Any:
    return _worker(job)
