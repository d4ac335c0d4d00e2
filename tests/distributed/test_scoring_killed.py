"""Scoring whose workers or driver are killed ends in the same bytes as an undisturbed run."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from distributed_layouts import lay_out

from entourage import FATE, Ranker
from entourage.distributed.crew import FAILURES, Crew
from entourage.distributed.manifest import NAME
from entourage.distributed.scoring import predict_parts
from entourage.errors import UserError

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="children are found in /proc"),
]
PATIENCE = 120.0


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A model, a folder of inputs, and the bytes of each part of an undisturbed run."""
    folder = tmp_path_factory.mktemp("run")
    rng = np.random.default_rng(0)
    sizes = rng.integers(2, 9, 6000)
    race = np.repeat(rng.permutation(6000), sizes)
    x = rng.normal(size=(4, len(race)))
    places = np.concatenate([rng.permutation(m) for m in sizes])
    table = pa.table({"race": race, "place": places} | {f"x{i}": x[i] for i in range(4)})
    model = Ranker(FATE(width=64), steps=5, device="cpu", random_state=0)
    model.fit(table.slice(0, 2000), set_id="race", target="place").save(folder / "m")
    lay_out(table, folder / "in", [10_001], [1000])
    predict_parts(folder / "m", str(folder / "in"), str(folder / "whole"), rows_per_part=500, device="cpu")
    return folder, bytes_of(folder / "whole")


def bytes_of(folder):
    return {
        path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.name.startswith("part-")
    }


def command(folder, out):
    given = [folder / "m", f"{folder}/in/*.parquet", "-o", out, "--workers", 2, "--rows-per-part", 500]
    arguments = [sys.executable, "-m", "entourage", "predict", *given, "--device", "cpu", "--json"]
    return subprocess.Popen([str(one) for one in arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def workers_of(process):
    """The processes of a pool: those that it started by spawn."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(pid) for pid in children if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def wait_until(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.002)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def has_done(out, count):
    """Whether so many parts are done by the manifest."""
    return (out / NAME).exists() and len(json.loads((out / NAME).read_text())["parts"]) >= count


def test_a_killed_worker_loses_nothing(run, tmp_path):
    folder, expected = run
    process = command(folder, tmp_path / "out")
    wait_until(lambda: has_done(tmp_path / "out", 2), "no parts")
    os.kill(workers_of(process)[0], signal.SIGKILL)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert json.loads(out)["parts"] == len(expected)
    assert bytes_of(tmp_path / "out") == expected


def test_a_killed_driver_leaves_no_worker_and_the_same_command_goes_on(run, tmp_path):
    folder, expected = run
    out = tmp_path / "out"
    process = command(folder, out)
    wait_until(lambda: has_done(out, 5), "no parts")
    workers = workers_of(process)
    process.kill()
    process.communicate(timeout=PATIENCE)
    assert len(workers) == 2
    wait_until(lambda: not any(map(alive, workers)), "workers outlive what started them")
    done = json.loads((out / NAME).read_text())["parts"]
    assert 5 <= len(done) < len(expected)
    before = {name: (out / name).stat().st_mtime_ns for name in done}
    again = command(folder, out)
    told, err = again.communicate(timeout=PATIENCE)
    assert again.returncode == 0, err
    assert json.loads(told)["new_parts"] == len(expected) - len(done)
    assert {name: (out / name).stat().st_mtime_ns for name in done} == before
    assert bytes_of(out) == expected
    assert sorted(path.name for path in out.iterdir()) == [".lock", NAME, *expected]


def end_at_once(job):
    os._exit(1)


def test_a_job_that_kills_every_worker_ends_the_run_with_a_reason():
    with pytest.raises(UserError, match=f"{FAILURES} times in a row"), Crew(end_at_once, 2) as crew:
        list(crew.run([1, 2]))
