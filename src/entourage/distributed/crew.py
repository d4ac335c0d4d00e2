"""Many jobs on the one pool: few under way at a time, and begun again where a worker was killed."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from typing import Any, Generic, Self, TypeVar

from entourage.errors import UserError
from entourage.training.parallel import Future, Pool, first_done, open_pool

__all__ = ["Crew"]

J = TypeVar("J")
R = TypeVar("R")

FAILURES = 3  # pools in a row whose worker was killed before a job was done
AHEAD = 2  # jobs a worker that are submitted: one to do, one to go on with


class Crew(Generic[J, R]):
    """Workers that are replaced when one is killed; a context manager.

    A pool of processes ends as a whole when one of them is killed. Then another is opened, and the jobs that were not
    done are begun again, so a job must do no harm when it is done twice. After several pools in a row that did no job,
    there is an error. (Ray begins the jobs of a killed worker again by itself.)

    Parameters
    ----------
    work : what to do with a job; picklable
    workers : how many jobs run at a time

    Examples
    --------
    >>> with Crew(abs) as crew:
    ...     sorted(result for job, result in crew.run([-2, 1]))
    [1, 2]
    """

    def __init__(self, work: Callable[[J], R], workers: int = 1) -> None:
        self.work, self.workers = work, workers
        self._pool: Pool[J, R] | None = None
        self._failures = 0

    def run(self, jobs: Sequence[J]) -> Iterator[tuple[J, R]]:
        """Run all jobs; yield each with its result as soon as it is done. The first error is raised here.

        No more than two jobs a worker are submitted at a time, so that results don't pile up.
        """
        waiting, running = deque(jobs), dict[Future[R], J]()
        while waiting or running:
            broken = False
            try:
                while waiting and len(running) < self._most:
                    future = self._open().submit(waiting[0])
                    running[future] = waiting.popleft()
            except BrokenExecutor:
                broken = True
            for future in first_done(running) if running else []:
                job = running.pop(future)
                try:
                    result = future.result()
                except BrokenExecutor:
                    broken = True
                    waiting.appendleft(job)
                    continue
                self._failures = 0
                yield job, result
            if broken:
                for future, job in reversed(running.items()):
                    if future.exception() is None:
                        yield job, future.result()
                    else:
                        waiting.appendleft(job)
                running.clear()
                self._reopen()

    @property
    def _most(self) -> int:
        return (
            1 if self.workers == 1 else AHEAD * self.workers
        )  # in this process a job is done when submitted

    def _open(self) -> Pool[J, R]:
        if self._pool is None:
            self._pool = open_pool(self.work, self.workers)
        return self._pool

    def _reopen(self) -> None:
        """Open another pool with the next job."""
        self.close(cancel=True)
        self._failures += 1
        if self._failures >= FAILURES:
            raise UserError(
                f"{FAILURES} times in a row a worker was killed before a job was done, perhaps for want of memory. "
                "Run fewer workers or smaller parts."
            )

    def close(self, *, cancel: bool) -> None:
        """Wait for the jobs that run; with ``cancel``, those that have not begun are dropped."""
        if self._pool is not None:
            self._pool.close(cancel=cancel)
            self._pool = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        self.close(cancel=kind is not None)
