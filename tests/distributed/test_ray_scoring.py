"""Scoring on Ray writes the same bytes as on this machine, also where a worker is killed."""

import os
import signal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from distributed_layouts import lay_out

from entourage import FATE, Ranker
from entourage.distributed.scoring import predict_parts
from entourage.training.parallel import use_engine

pytestmark = [pytest.mark.ray]


def bytes_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name.startswith("part-")}


def busy_workers():
    """The processes of Ray that do a job."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().startswith(b"ray::_run"):
                found.append(int(path.parent.name))
        except OSError:
            pass
    return found


def test_ray_writes_the_same_bytes_though_a_worker_is_killed(ray, tmp_path):
    rng = np.random.default_rng(0)
    sizes = rng.integers(2, 9, 3000)
    race = np.repeat(rng.permutation(3000), sizes)
    places = np.concatenate([rng.permutation(m) for m in sizes])
    table = pa.table({"race": race, "place": places, "x": rng.normal(size=len(race))})
    model = Ranker(FATE(width=32), steps=5, device="cpu", random_state=0)
    model.fit(table.slice(0, 2000), set_id="race", target="place").save(tmp_path / "m")
    given = {"rows_per_part": 500, "device": "cpu"}
    source = str(lay_out(table, tmp_path / "in", [5001], [700]))
    predict_parts(tmp_path / "m", source, str(tmp_path / "here"), **given)
    killed = []

    def kill_one(progress):
        if progress.parts >= 2 and not killed:
            killed.extend(busy_workers()[:1])
            for pid in killed:
                os.kill(pid, signal.SIGKILL)

    with use_engine(ray):
        predict_parts(
            tmp_path / "m", source, str(tmp_path / "there"), workers=2, on_progress=kill_one, **given
        )
    assert killed
    assert bytes_of(tmp_path / "there") == bytes_of(tmp_path / "here")
