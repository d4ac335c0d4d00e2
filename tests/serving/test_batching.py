"""Requests share passes: what waits is drained, sizes keep apart, one that fails fails alone."""

import asyncio
import threading
import time

import pytest

from entourage.serving.batching import Batcher
from entourage.serving.limits import Limits
from entourage.serving.refusal import Refusal
from entourage.serving.schema import Request


def request_of(*sizes):
    return Request(list(sizes), [], [])


class Scorer:
    """Notes each pass; the first one waits until it is let go."""

    def __init__(self):
        self.passes, self.go, self.began = [], threading.Event(), threading.Event()

    def __call__(self, requests):
        self.passes.append([one.sizes for one in requests])
        self.began.set()
        assert self.go.wait(10)
        if any(one.sizes == [13] for one in requests):
            raise ValueError("unlucky")
        return [sum(one.sizes) for one in requests]


async def while_one_is_scored(batcher, scorer, requests):
    """Send requests while the model is busy with another; return their outcomes."""
    first = asyncio.create_task(batcher.predict(request_of(1)))
    while not scorer.began.is_set():
        await asyncio.sleep(0.001)
    others = [asyncio.create_task(batcher.predict(one)) for one in requests]
    await asyncio.sleep(0)
    scorer.go.set()
    found = await asyncio.gather(*others, return_exceptions=True)
    assert await first == 1
    return found


def run(requests, *, share=True, **limits):
    scorer = Scorer()
    batcher = Batcher(scorer, Limits(**limits), share=share)
    return asyncio.run(while_one_is_scored(batcher, scorer, requests)), scorer.passes[1:]


def test_requests_that_wait_share_the_next_pass():
    found, passes = run([request_of(5), request_of(6), request_of(7, 8)])
    assert found == [5, 6, 15]
    assert passes == [[[5], [6], [7, 8]]]


def test_plain_batches_have_one_request_each():
    assert run([request_of(5), request_of(6)], share=False) == ([5, 6], [[[5]], [[6]]])


def test_small_sets_are_not_padded_to_large_ones_and_go_first():
    found, passes = run([request_of(900), request_of(5), request_of(800), request_of(6)], pairs=2 * 900 * 900)
    assert found == [900, 5, 800, 6]
    assert passes == [[[5], [6]], [[900], [800]]]


def test_a_pass_is_bounded_by_its_padded_pairs():
    # 3 sets padded to 8 are 192 pairs, 4 would be 256
    _, passes = run([request_of(8), request_of(5), request_of(6), request_of(7)], pairs=200)
    assert passes == [[[8], [5], [6]], [[7]]]


def test_a_request_larger_than_a_pass_may_be_goes_alone():
    found, passes = run([request_of(8, 8, 8, 8), request_of(8)], pairs=100)
    assert found == [32, 8]
    assert passes == [[[8, 8, 8, 8]], [[8]]]


def test_lanes_take_turns_so_that_small_sets_wait_for_one_large_pass_only():
    _, passes = run([request_of(100), request_of(100), *(request_of(3) for _ in range(4))], pairs=20)
    assert passes == [[[3], [3]], [[100]], [[3], [3]], [[100]]]


def test_one_that_fails_fails_alone():
    (a, b, c), _ = run([request_of(12), request_of(13), request_of(14)])
    assert (a, c) == (12, 14)
    assert isinstance(b, ValueError)


def test_the_queue_is_bounded():
    found, _ = run([request_of(2), request_of(3), request_of(4)], queue=2)
    assert found[:2] == [2, 3]
    assert isinstance(found[2], Refusal)
    assert (found[2].status, found[2].headers) == (429, {"Retry-After": "1"})


def test_a_request_that_waits_too_long_is_refused_and_not_scored():
    scorer = Scorer()
    batcher = Batcher(scorer, Limits(seconds=0.05))

    async def ask():
        first = asyncio.create_task(batcher.predict(request_of(1)))
        second = asyncio.create_task(batcher.predict(request_of(2)))
        found = await asyncio.gather(first, second, return_exceptions=True)
        scorer.go.set()
        while batcher.busy:
            await asyncio.sleep(0.001)
        return found

    begin = time.monotonic()
    found = asyncio.run(ask())
    assert time.monotonic() - begin < 5
    assert [one.status for one in found] == [503, 503]
    assert "within 0.05 seconds" in str(found[0])
    assert scorer.passes in ([[[1]]], [[[1], [2]]])
    assert batcher.waiting == 0


def test_closing_waits_for_what_was_accepted():
    scorer = Scorer()
    batcher = Batcher(scorer, Limits())

    async def ask():
        asked = asyncio.create_task(batcher.predict(request_of(4)))
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(0.02, scorer.go.set)
        await batcher.close()
        return asked.done() or await asked

    assert asyncio.run(ask())


def test_a_call_runs_by_itself_in_the_thread_of_the_model():
    scorer = Scorer()
    scorer.go.set()
    batcher = Batcher(scorer, Limits())

    async def ask():
        called = batcher.call(request_of(4), lambda: threading.current_thread().name)
        return await asyncio.gather(called, batcher.predict(request_of(5)))

    name, five = asyncio.run(ask())
    assert name.startswith("entourage-model")
    assert five == 5
    assert scorer.passes == [[[5]]]


def test_limits_are_checked():
    with pytest.raises(ValueError, match="seconds needs a number above 0"):
        Limits(seconds=0)


def test_what_is_not_answered_when_a_stop_has_to_end_is_refused():
    scorer = Scorer()
    batcher = Batcher(scorer, Limits())

    async def stop():
        running = [asyncio.create_task(batcher.predict(request_of(size))) for size in (3, 30)]
        while not scorer.began.is_set():
            await asyncio.sleep(0.001)
        assert batcher.refuse_rest(Refusal(503, "No time left.")) == 2
        found = await asyncio.gather(*running, return_exceptions=True)
        await batcher.close()  # ends, though the thread is still at work
        assert batcher.busy
        scorer.go.set()
        while batcher.busy:
            await asyncio.sleep(0.001)
        return found

    assert [one.status for one in asyncio.run(stop())] == [503, 503]
    assert scorer.passes == [[[3]]]  # what was refused while it waited is not scored
