"""The pool: results in order, errors that come out, nothing left running.

A worker takes a second or two to start, so three pools of two workers serve all tests of processes.
"""

import multiprocessing
import os
import time
from functools import partial

import pytest
import torch
from pickling_pool import PicklingPool

from entourage.errors import ParameterError, UserError
from entourage.training.parallel import Future, Pool, first_done, map_in_order, open_pool, use_engine


class Call:
    """Calls the function that a job names; counts the jobs, since a worker keeps what it carries."""

    sent = 0  # how often it was pickled

    def __init__(self):
        self.seen = 0

    def __getstate__(self):
        Call.sent += 1
        return self.__dict__

    def __call__(self, job):
        self.seen += 1
        function, *arguments = job
        return globals()[function](self, *arguments)


def square(call, x, seconds=0.0):
    time.sleep(seconds)
    return x * x


def fail(call):
    raise UserError("this one can't be done")


def about(call, i):
    return os.getpid(), torch.get_num_threads(), call.seen


def wait_then_square(x):
    time.sleep(0.3 if x == 0 else 0.0)  # the first job is done last
    return x * x


def note(folder, x):
    """Leave a file, and fail at the first job."""
    (folder / str(x)).write_text("")
    if x == 0:
        raise UserError("the first fails")
    time.sleep(0.1)


@pytest.fixture(scope="module")
def processes():
    """A pool of two workers, both of which are up."""
    Call.sent = 0
    with open_pool(Call(), 2) as pool:
        while len({process for _, (process, *_) in pool.run([("about", i) for i in range(4)])}) < 2:
            time.sleep(0.2)
        yield pool


@pytest.fixture(params=["here", "processes"])
def pool(request):
    if request.param == "here":
        with open_pool(Call()) as here:
            yield here
    else:
        yield request.getfixturevalue("processes")


def test_every_job_comes_with_its_own_result(pool):
    assert dict(pool.run([("square", x) for x in (3, 1, 2)])) == {
        ("square", x): y for x, y in [(3, 9), (1, 1), (2, 4)]
    }
    assert dict(pool.run([("square", 5)])) == {("square", 5): 25}, "a pool can be used again while it is open"
    assert dict(pool.run([])) == {}


def test_an_error_comes_out_as_it_is_and_spoils_no_other_job(pool):
    right, wrong = pool.submit(("square", 3)), pool.submit(("fail",))
    assert right.result() == 9
    assert isinstance(wrong.exception(), UserError)
    with pytest.raises(UserError, match="this one can't be done"):
        dict(pool.run([("fail",)]))
    assert pool.submit(("square", 4)).result() == 16


def test_what_is_done_first_is_returned_in_the_order_of_submission(pool):
    running = {pool.submit(("square", x)): x for x in range(4)}
    taken = []
    while running:
        done = first_done(running)
        assert done
        assert [running[future] for future in done] == sorted(running[future] for future in done)
        taken += [running.pop(future) for future in done]
    assert sorted(taken) == [0, 1, 2, 3]


def test_a_job_that_takes_long_holds_up_none_of_the_others(processes):
    jobs = [("square", 0, 1.0), ("square", 1), ("square", 2)]
    assert [job for job, _ in processes.run(jobs)][-1] == jobs[0]


def test_a_worker_is_a_process_of_one_thread_and_is_sent_its_work_once(processes):
    before = dict(processes.run([("about", i) for i in range(30)]))
    assert {threads for _, threads, _ in before.values()} == {1}
    assert os.getpid() not in {process for process, _, _ in before.values()}
    assert Call.sent == 2
    for process in {process for process, _, _ in before.values()}:
        seen = sorted(count for mine, _, count in before.values() if mine == process)
        assert seen == list(range(seen[0], seen[0] + len(seen))), "it keeps count from job to job"


def test_one_worker_is_this_process_with_its_threads():
    with open_pool(Call()) as here:
        assert dict(here.run([("about", 0), ("about", 1)])) == {
            ("about", i): (os.getpid(), torch.get_num_threads(), i + 1) for i in range(2)
        }


def test_one_worker_begins_a_job_when_the_result_before_was_taken():
    begun = []
    with open_pool(begun.append) as pool:
        results = pool.run([1, 2, 3])
        next(results)
        assert begun == [1]
    assert next(map_in_order(begun.append, [4, 5])) is None
    assert begun == [1, 4]


def test_an_interrupt_is_no_result():
    def interrupt(job):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), open_pool(interrupt) as pool:
        pool.submit(1)


@pytest.mark.heavy
def test_results_are_mapped_in_the_order_of_the_jobs_and_no_process_is_left_behind():
    before = set(multiprocessing.active_children())
    assert list(map_in_order(wait_then_square, range(3))) == [0, 1, 4]
    results = map_in_order(wait_then_square, range(50), workers=2)
    assert [next(results) for _ in range(5)] == [0, 1, 4, 9, 16]
    assert len(set(multiprocessing.active_children()) - before) == 2
    results.close()  # whoever asked wants no more
    assert set(multiprocessing.active_children()) <= before
    assert list(map_in_order(wait_then_square, [], workers=2)) == []


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.heavy)])
def test_after_an_error_no_job_that_waits_is_begun_and_no_process_is_left(tmp_path, workers):
    before = set(multiprocessing.active_children())
    with (
        pytest.raises(UserError, match="the first fails"),
        open_pool(partial(note, tmp_path), workers) as pool,
    ):
        list(pool.run(range(60)))
    assert set(multiprocessing.active_children()) <= before
    begun = len(list(tmp_path.iterdir()))
    assert begun == 1 if workers == 1 else begun < 30


def test_a_cluster_implements_two_methods():
    class Elsewhere(Pool):
        def submit(self, job):
            future = Future()
            future.set_result(self.work(job))
            return future

        def close(self, *, cancel):
            self.cancelled = cancel

    with Elsewhere(wait_then_square, 3) as pool:
        assert dict(pool.run([1, 2])) == {1: 1, 2: 4}
    assert pool.cancelled is False
    with pytest.raises(UserError), Elsewhere(wait_then_square, 3) as pool:
        raise UserError("left by an error")
    assert pool.cancelled is True


def test_everything_inside_a_block_runs_on_its_engine():
    class Counts:
        opened = 0

        def open_pool(self, work, workers):
            self.opened += 1
            return PicklingPool(work, workers)

    engine = Counts()
    with use_engine(engine):
        assert list(map_in_order(wait_then_square, [1, 2], workers=2)) == [1, 4]
        with use_engine(None):
            assert list(map_in_order(wait_then_square, [1, 2])) == [1, 4]
        assert engine.opened == 1
        with pytest.raises(ParameterError, match="workers needs a whole number"):
            open_pool(wait_then_square, 0)
        with pytest.raises(UserError), use_engine(None):
            raise UserError("left by an error")
        assert dict(open_pool(wait_then_square, 1).run([3])) == {3: 9}
    assert engine.opened == 2
    assert list(map_in_order(wait_then_square, [1, 2])) == [1, 4]
    assert engine.opened == 2


@pytest.mark.parametrize("workers", [0, -1, 1.5, "two"])
def test_a_number_of_workers_that_is_none_is_refused(workers):
    with pytest.raises(ParameterError, match="workers needs a whole number of at least 1"):
        open_pool(wait_then_square, workers)
