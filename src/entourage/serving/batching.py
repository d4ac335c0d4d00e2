"""Requests that come at the same time share a forward pass.

While a model scores, requests wait; when it is done, those that wait are scored together. Nothing is ever waited for,
so a lone request is scored at once. Requests wait in lanes by the size of their largest set, and the lanes take turns,
the smallest sets first: small sets are never padded to large ones, and wait for at most one pass of each larger size.
A pass holds a bounded number of pairs of objects, padding included, unless a single request has more.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeAlias

from entourage.serving.limits import Limits
from entourage.serving.refusal import Refusal
from entourage.serving.schema import Request

__all__ = ["Batcher", "Outcome"]

#: What came of one request: what it asked for, or why there is none.
Outcome: TypeAlias = Any | BaseException

_CALLS = 64  # the lane of everything that is no prediction, run one at a time


@dataclass(slots=True, eq=False)
class _Job:
    request: Request
    call: Callable[[], Any] | None
    done: "asyncio.Future[Any]"

    @property
    def lane(self) -> int:
        return _CALLS if self.call is not None else (self.request.largest - 1).bit_length()


class Batcher:
    """Scores requests in a thread of its own, those that wait together.

    Parameters
    ----------
    score : returns what each of some requests asked for
    limits : of the queue, of a pass, and of the time that a request waits
    share : whether requests share passes; otherwise each has a pass of its own
    on_batch : told the number of requests and of sets after each pass
    """

    def __init__(
        self,
        score: Callable[[Sequence[Request]], Sequence[Any]],
        limits: Limits,
        *,
        share: bool = True,
        on_batch: Callable[[int, int], None] = lambda requests, sets: None,
    ) -> None:
        self._score, self._limits, self._share, self._on_batch = score, limits, share, on_batch
        self._lanes: dict[int, deque[_Job]] = {}
        self._open: set[asyncio.Future[Any]] = set()  # what is not answered yet
        self._waiting = 0
        self._last = -1  # the lane that had its turn
        self._runner: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="entourage-model")

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return self._waiting

    async def predict(self, request: Request) -> Any:
        """Return what was asked for; refuse where too many wait already, or where it takes too long."""
        return await self._submit(request, None)

    async def call(self, request: Request, function: Callable[[], Any]) -> Any:
        """Return what a function returns, run in the thread of the model, by itself."""
        return await self._submit(request, function)

    @property
    def busy(self) -> bool:
        """Whether the thread of the model is at work, be it for a request that was given up."""
        return self._runner is not None

    async def close(self) -> None:
        """Wait until all that was accepted is answered. The thread ends when nothing refers to the batcher any more."""
        while self._open:
            await asyncio.wait(self._open)

    def refuse_rest(self, refusal: Refusal) -> int:
        """Refuse all that is not answered yet; return how many requests that are."""
        rest = [done for done in self._open if not done.done()]
        for done in rest:
            done.set_exception(refusal)
        return len(rest)

    async def _submit(self, request: Request, call: Callable[[], Any] | None) -> Any:
        if self._waiting >= self._limits.queue:
            raise Refusal(
                429,
                f"{self._waiting} requests wait already, as many as this server lets wait. Try again later.",
                headers={"Retry-After": "1"},
            )
        loop = asyncio.get_running_loop()
        job = _Job(request, call, loop.create_future())
        self._lanes.setdefault(job.lane, deque()).append(job)
        self._waiting += 1
        self._open.add(job.done)
        if self._runner is None:
            self._runner = loop.create_task(self._run())
        late = loop.call_later(self._limits.seconds, _expire, job, self._limits.seconds)
        try:
            return await job.done
        finally:
            late.cancel()
            self._open.discard(job.done)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                batch = self._next()
                if not batch:
                    continue
                outcomes = await loop.run_in_executor(self._thread, self._outcomes, batch)
                self._on_batch(len(batch), sum(len(job.request.sizes) for job in batch))
                for job, outcome in zip(batch, outcomes, strict=True):
                    if job.done.done():
                        continue
                    if isinstance(outcome, BaseException):
                        job.done.set_exception(outcome)
                    else:
                        job.done.set_result(outcome)
        finally:
            self._runner = None

    def _next(self) -> list[_Job]:
        """Take the jobs of the next pass: of the next lane that has any, as many as may share one."""
        filled = sorted(number for number, lane in self._lanes.items() if lane)
        number = next((n for n in filled if n > self._last), filled[0])
        self._last = number
        lane, batch, sets, largest = self._lanes[number], list[_Job](), 0, 0
        while lane:
            request = lane[0].request
            padded = max(largest, request.largest)
            pairs = (sets + len(request.sizes)) * padded * padded
            if batch and (pairs > self._limits.pairs or not self._share or number == _CALLS):
                break
            job = lane.popleft()
            self._waiting -= 1
            if job.done.done():  # nobody waits for it any more
                continue
            batch.append(job)
            sets, largest = sets + len(request.sizes), padded
        if not lane:
            del self._lanes[number]
        return batch

    def _outcomes(self, batch: list[_Job]) -> list[Outcome]:
        """Return what comes of each job; where a shared pass fails, each is tried by itself, so that it alone fails."""
        call = batch[0].call
        try:
            if call is not None:
                return [call()]
            return list(self._score([job.request for job in batch]))
        except Exception as error:
            if len(batch) == 1:
                return [error]
        return [self._outcomes([job])[0] for job in batch]


def _expire(job: _Job, seconds: float) -> None:
    if not job.done.done():
        job.done.set_exception(
            Refusal(
                503,
                f"There was no answer within {seconds:g} seconds. Try again later, or send less at once.",
                headers={"Retry-After": "1"},
            )
        )
