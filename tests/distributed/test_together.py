"""Several processes train as one does, in a network of their own: make ray."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from ray_commands import command_of, run_python, start_python, wait_until

from entourage import load
from entourage.baselines import RankSVM
from entourage.data import make_medoid
from entourage.selection import cross_validate

pytestmark = pytest.mark.ray
JOBS = Path(__file__).with_name("together_jobs.py")


@pytest.fixture(scope="module", params=[2, pytest.param(3, marks=pytest.mark.slow)])
def found(request, tmp_path_factory):
    """What each process found."""
    folder = tmp_path_factory.mktemp("found")
    launcher = ["-m", "torch.distributed.run", "--nproc-per-node", request.param, "--rdzv-backend", "c10d"]
    out, err = run_python(*launcher, "--rdzv-endpoint", "localhost:0", JOBS, folder)
    files = sorted(folder.glob("*.json"))
    assert len(files) == request.param, out + err
    return [json.loads(file.read_text()) for file in files]


def test_weights_are_those_of_one_process(found):
    cases = {name: value for name, value in found[0].items() if isinstance(value, list)}
    assert len(cases) == 11
    for name, (difference, together, alone) in cases.items():
        assert difference <= 1e-6, name
        assert together == pytest.approx(alone, abs=1e-6), name


def test_gradients_in_double_precision_are_those_of_the_whole_batch(found):
    gradients = {name: value for name, value in found[0].items() if name.startswith("gradient")}
    assert len(gradients) == 3
    assert all(value <= 1e-9 for value in gradients.values()), gradients


def test_all_processes_end_alike(found):
    for other in found[1:]:
        assert {k: v for k, v in other.items() if k != "seeds differ alone"} == {
            k: v for k, v in found[0].items() if k != "seeds differ alone"
        }


def test_a_seed_is_drawn_once_for_all(found):
    assert len({one["seed"] for one in found}) == 1
    assert len({one["seeds differ alone"] for one in found}) == len(found)


def test_folds_are_spread_with_the_same_result(found):
    X, ranks = make_medoid(n_sets=201, n_objects=6, random_state=0)
    here = cross_validate(RankSVM(), X, ranks, folds=3).means["ranking_accuracy"]
    assert [one["folds"] for one in found] == [here] * len(found)


def test_other_data_or_settings_in_one_process_and_models_that_are_no_net_are_refused(found):
    for one in found:
        for name in ("other data", "other order", "other loss", "other groups", "other shard"):
            assert "differs between the processes" in one[name]
        assert 'name it, such as "fate"' in one["auto"]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    X, ranks = make_medoid(n_sets=600, n_objects=6, random_state=0)
    frame = pd.DataFrame(X.reshape(-1, X.shape[2]), columns=[f"x{i}" for i in range(X.shape[2])])
    frame = frame.assign(set=np.repeat(np.arange(600), 6), place=ranks.ravel())
    path = tmp_path_factory.mktemp("table") / "table.parquet"
    frame.to_parquet(path)
    return path


def fit(table, out, *more):
    given = ["--set-id", "set", "--target", "place", "--model", "set_attention", "--seed", "1"]
    return ["-m", "entourage", "fit", table, *given, "-o", out, *more]


def children(process):
    """Return the processes that a command has started, trainers only."""
    found = subprocess.run(
        ["pgrep", "-f", "--parent", str(process.pid), "entourage fit"],
        capture_output=True,
        text=True,
        check=False,
    )
    return [int(pid) for pid in found.stdout.split()]


def train_to_a_checkpoint(command, state):
    """Wait until training has written a checkpoint, or another one."""
    before = state.stat().st_mtime_ns if state.exists() else 0
    end = time.monotonic() + 120
    while not state.exists() or state.stat().st_mtime_ns == before:
        assert time.monotonic() < end
        assert command.poll() is None
        time.sleep(0.05)


def test_a_killed_command_and_a_killed_process_change_nothing(table, tmp_path):
    more = ["--processes", 2, "--steps", 240, "--on-disk"]
    out, err = run_python(*fit(table, tmp_path / "calm.entourage", *more, tmp_path / "calm"))
    assert "Training in 2 processes" in out, err
    state = tmp_path / "killed.entourage.checkpoint" / "checkpoint.entourage"
    again = fit(table, tmp_path / "killed.entourage", *more, tmp_path / "disk")
    command = start_python(*again)
    try:
        train_to_a_checkpoint(command, state)
        started = children(command)
        command.kill()
        wait_until(lambda: not any(command_of(pid) for pid in started), seconds=20)
        command.communicate(timeout=20)
        command = start_python(*again)
        train_to_a_checkpoint(command, state)
        os.kill(children(command)[-1], signal.SIGKILL)
        out, err = command.communicate(timeout=200)
    finally:
        command.kill()
    assert "exitcode: -9" in err
    assert command.returncode == 0
    assert not state.parent.exists()
    assert (tmp_path / "killed.entourage").read_bytes() == (tmp_path / "calm.entourage").read_bytes()
    frame = pd.read_parquet(table).head(60)
    assert np.isfinite(load(tmp_path / "killed.entourage").predict_scores(frame)).all()


@pytest.mark.slow
def test_a_mistake_is_said_once_and_not_tried_again(table, tmp_path):
    _, err = run_python(*fit(table, tmp_path / "m.entourage", "--processes", 2, "--feature", "nothing"))
    assert err.count("Error:") == 1
    assert "nothing" in err
    assert not (tmp_path / "m.entourage").exists()
    for more, said in (
        (["--model", "auto"], "one net"),
        (["--checkpoint", tmp_path / "table", "--model", "auto"], "one net"),
    ):
        _, err = run_python(*fit(table, tmp_path / "m.entourage", "--processes", 2, *more))
        assert said in err


@pytest.mark.slow
def test_other_commands_are_refused_in_several_processes(table):
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "-m", "entourage"]
    done = subprocess.run([*launcher, "info", str(table)], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "run entourage fit" in done.stderr
