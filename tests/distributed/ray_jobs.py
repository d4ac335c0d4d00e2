"""Jobs for the tests of Ray."""

import os
import signal
import time
from pathlib import Path

import numpy as np
import torch

from entourage.baselines import RankSVM
from entourage.data import make_hypervolume
from entourage.errors import UserError
from entourage.selection.spaces import space_of
from entourage.selection.tuning import tune


class Call:
    """Calls the function of this file that a job names; counts the jobs, since a worker keeps what it carries."""

    def __init__(self):
        self.seen, self.numbers = 0, np.arange(100_000)

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
    return os.getpid(), torch.get_num_threads(), call.seen, int(call.numbers[i])


def array(call):
    return np.zeros(100_000)


def note(call, folder, x):
    """Leave a file, and fail at the first job."""
    (Path(folder) / str(x)).write_text("")
    if x == 0:
        raise UserError("the first fails")
    time.sleep(0.3)


def die(call, folder, times):
    """End the worker as `kill -9` does, so many times; then return how often it was."""
    before = len(list(Path(folder).iterdir()))
    if before < times:
        (Path(folder) / str(before)).write_text("")
        os.kill(os.getpid(), signal.SIGKILL)
    return before


class Mortal(RankSVM):
    """Is killed, as by `kill -9`, at its next fit for each file `die-...` in the home folder."""

    def fit(self, *args, **kwargs):
        for file in sorted(Path.home().glob("die-*")):
            file.unlink(missing_ok=True)
            os.kill(os.getpid(), signal.SIGKILL)
        return super().fit(*args, **kwargs)


class Slow(RankSVM):
    """Takes its time."""

    def fit(self, *args, **kwargs):
        time.sleep(0.4)
        return super().fit(*args, **kwargs)


def search(model, workers, study=None):
    """Return the trials of a search that is the same wherever it runs, and whenever it is interrupted."""
    found = tune(
        model,
        *make_hypervolume(n_sets=120, random_state=0),
        space=space_of(RankSVM()),
        trials=14,
        folds=2,
        workers=workers,
        study=study,
    )
    return [[trial[key] for key in ("number", "state", "params", "score")] for trial in found.trials]
