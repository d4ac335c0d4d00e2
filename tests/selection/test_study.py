"""Studies: a search that is killed goes on, in one process or several."""

import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from pickling_pool import PicklingPool, sent

from entourage import FETA, ContextFree, Ranker
from entourage.baselines import RankSVM
from entourage.data import make_hypervolume, make_medoid
from entourage.errors import UserError
from entourage.selection.spaces import Choice, Real, Whole, space_of
from entourage.selection.tuning import tune
from entourage.training.parallel import Pool, use_engine

X, RANKS = make_hypervolume(n_sets=120, random_state=0)
SMALL = Ranker(ContextFree(width=4), steps=4, batch_size=32, device="cpu", random_state=0)
SPACE = {"learning_rate": Real(1e-4, 1e-1, log=True), "net__width": Choice((4, 8)), "net__depth": Whole(0, 2)}


def test_a_study_goes_on_and_ends_as_if_never_interrupted(tmp_path):
    settings = {"space": SPACE, "folds": 2, "random_state": 1}
    whole = tune(SMALL, X, RANKS, trials=6, study=tmp_path / "whole", **settings)
    tune(SMALL, X, RANKS, trials=2, study=tmp_path / "parts", **settings)
    calls = []

    class Interrupting(Ranker):
        def fit(self, *args, **kwargs):
            calls.append(1)
            raise KeyboardInterrupt

    stopping = Interrupting(**SMALL.get_params(deep=False))
    stopping.__class__.__name__ = "Ranker"  # the same study
    with pytest.raises(KeyboardInterrupt):
        tune(stopping, X, RANKS, trials=6, study=tmp_path / "parts", **settings)
    assert calls
    with (tmp_path / "parts").open("ab") as file:
        file.write(b'{"op_code": 4, "half')  # killed while writing
    parts = tune(SMALL, X, RANKS, trials=6, study=tmp_path / "parts", **settings)
    assert [t["params"] for t in parts.trials] == [t["params"] for t in whole.trials]
    assert [t["score"] for t in parts.trials] == [t["score"] for t in whole.trials]
    assert parts.params == whole.params
    again = tune(SMALL, X, RANKS, trials=6, study=tmp_path / "parts", **settings)
    assert again.trials == parts.trials, "nothing is tried again"


@pytest.mark.heavy
def test_a_killed_process_leaves_a_study_that_goes_on(tmp_path):
    journal = tmp_path / "study"
    code = f"""
import time
from entourage import baselines
from entourage.data import make_hypervolume
from entourage.selection import tune
from entourage.selection.spaces import space_of
class RankSVM(baselines.RankSVM):
    def fit(self, *args, **kwargs):
        time.sleep(0.2)  # so that it is killed here, and not while it holds the lock of the journal
        return super().fit(*args, **kwargs)
data = make_hypervolume(n_sets=120, random_state=0)
tune(RankSVM(), *data, space=space_of(baselines.RankSVM()), trials=500, folds=2, study={str(journal)!r})
"""
    process = subprocess.Popen([sys.executable, "-c", code], env=os.environ | {"OMP_NUM_THREADS": "1"})
    for _ in range(1200):
        time.sleep(0.05)
        if journal.exists() and journal.read_text().count('"state"') >= 4:
            break
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = journal.read_text().count("\n")
    assert before > 4
    finished = len(tune(RankSVM(), X, RANKS, trials=1, folds=2, study=journal).trials)
    assert finished >= 1, "what was done is kept"
    found = tune(RankSVM(), X, RANKS, trials=finished + 2, folds=2, study=journal)
    assert len(found.trials) == finished + 2


class OutOfOrder(Pool):
    """Workers of very different speed; some time an interrupt may come."""

    def __init__(self, work, workers, interrupted_after=None):
        super().__init__(sent(work), workers)
        self.threads, self.random = ThreadPoolExecutor(workers), random.Random(1)
        self.left = interrupted_after

    def submit(self, job):
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt
        return self.threads.submit(self.wait_and_work, sent(job), self.random.choice((0.0, 0.05)))

    def wait_and_work(self, job, seconds):
        time.sleep(seconds)
        return self.work(job)

    def close(self, *, cancel):
        self.threads.shutdown(cancel_futures=cancel)


class Opens:
    """An engine that opens pools of a class."""

    def __init__(self, pool, *settings):
        self.pool, self.settings = pool, settings

    def open_pool(self, work, workers):
        return self.pool(work, workers, *self.settings)


def outline(found):
    return [(t["number"], t["state"], t["params"], t["score"]) for t in found.trials]


def test_with_several_workers_a_search_does_not_depend_on_which_is_faster(tmp_path):
    search = {"space": space_of(RankSVM()), "trials": 16, "folds": 2, "workers": 3}
    with use_engine(Opens(PicklingPool)):
        in_order = tune(RankSVM(), X, RANKS, **search)
    assert [t["number"] for t in in_order.trials] == list(range(16))
    assert {t["state"] for t in in_order.trials} == {"complete", "pruned"}
    with use_engine(Opens(OutOfOrder)):
        assert outline(tune(RankSVM(), X, RANKS, **search)) == outline(in_order)
    for begun in (1, 4, 9, 15):
        study = tmp_path / str(begun)
        with use_engine(Opens(OutOfOrder, begun)), pytest.raises(KeyboardInterrupt):
            tune(RankSVM(), X, RANKS, study=study, **search)
        with use_engine(Opens(OutOfOrder)):
            assert outline(tune(RankSVM(), X, RANKS, study=study, **search)) == outline(in_order)


def test_a_search_that_was_killed_while_it_asked_ends_as_if_it_never_was(tmp_path):
    search = {"space": SPACE, "trials": 3, "folds": 1, "random_state": 2}
    whole = tune(SMALL, X, RANKS, study=tmp_path / "whole", **search)
    lines = (tmp_path / "whole").read_bytes().splitlines(keepends=True)
    for cut in range(2, len(lines)):
        part = tmp_path / "part"
        part.write_bytes(b"".join(lines[:cut]))
        found = tune(SMALL, X, RANKS, study=part, **search)
        assert [row[1:] for row in outline(found)] == [row[1:] for row in outline(whole)], cut


@pytest.mark.heavy
def test_workers_need_no_study_on_disk():
    search = {"space": SPACE, "trials": 4, "folds": 1, "workers": 2}
    found = tune(SMALL, X, RANKS, **search)
    with use_engine(Opens(PicklingPool)):
        here = tune(SMALL, X, RANKS, **search)
    assert [t["params"] for t in found.trials] == [t["params"] for t in here.trials]
    assert [t["score"] for t in found.trials] == pytest.approx([t["score"] for t in here.trials])


def test_a_study_of_other_data_is_refused_and_so_is_a_foreign_file(tmp_path):
    tune(RankSVM(), X, RANKS, trials=1, study=tmp_path / "study")
    with pytest.raises(UserError, match="on other data, with another space or other folds"):
        tune(RankSVM(), X[:60], RANKS[:60], trials=1, study=tmp_path / "study")
    (tmp_path / "foreign").write_text("hello\nworld\n")
    with pytest.raises(UserError, match="can't be used as a study"):
        tune(RankSVM(), X, RANKS, trials=1, study=tmp_path / "foreign")
    assert (tmp_path / "foreign").read_text() == "hello\nworld\n"


def test_settings_below_the_median_are_pruned():
    space = {"learning_rate": Choice((3e-2, 1e-9))}
    model = Ranker(
        FETA(width=8), steps=30, ema=None, batch_size=32, device="cpu", random_state=0, learning_rate=3e-2
    )
    data = make_medoid(n_sets=150, random_state=0)
    states = [t["state"] for t in tune(model, *data, space=space, trials=13, folds=2).trials]
    assert "pruned" in states
    assert states.count("complete") >= 8
