"""Studies: a search that is killed goes on, in one process or several."""

import os
import signal
import subprocess
import sys
import time

import pytest

from entourage import FETA, ContextFree, Ranker
from entourage.baselines import RankSVM
from entourage.data import make_hypervolume, make_medoid
from entourage.errors import ParameterError, UserError
from entourage.selection.spaces import Choice, Real, Whole
from entourage.selection.tuning import tune

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


@pytest.mark.heavy
def test_workers_share_a_study(tmp_path):
    found = tune(SMALL, X, RANKS, space=SPACE, trials=4, folds=1, workers=2, study=tmp_path / "study")
    assert len(found.trials) == 4
    with pytest.raises(ParameterError, match="give study=PATH"):
        tune(SMALL, X, RANKS, space=SPACE, trials=2, workers=2)


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
