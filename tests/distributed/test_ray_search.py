"""Tuning, comparison and experiments on Ray: the same results as on this machine, whoever is killed."""

import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from commands import run
from ray_commands import children_of, command_of, processes, run_python, start_python, wait_until
from ray_jobs import Mortal, Slow, search

from entourage import FATE, Ranker
from entourage.baselines import LambdaMART, RankSVM
from entourage.data import Sets, make_medoid
from entourage.experiments import table1
from entourage.experiments.paper import read_claims
from entourage.experiments.rows import Options
from entourage.selection import compare, tune
from entourage.selection.spaces import Choice, Real
from entourage.training.parallel import use_engine

pytestmark = pytest.mark.ray

DATA = make_medoid(n_sets=150, random_state=0)
NET = Ranker(FATE(width=8), steps=60, batch_size=32, device="cpu", random_state=0)


def here_and_there(ray, work):
    """Return what comes of it with two processes of this machine, and on Ray."""
    here = work()
    with use_engine(ray):
        return here, work()


@pytest.mark.slow
def test_a_search_is_the_same_to_the_bit(ray):
    space = {"learning_rate": Real(1e-4, 1e-1, log=True), "net__width": Choice((4, 8, 16))}

    def run():
        found = tune(NET, *DATA, space=space, trials=12, folds=2, workers=2)
        return [{**trial, "seconds": None} for trial in found.trials]

    here, there = here_and_there(ray, run)
    assert here == there
    assert len(here) == 12


@pytest.mark.slow
def test_a_comparison_is_the_same_to_the_bit(ray):
    candidates = {
        "linear": (RankSVM(), "context-free"),
        "trees": (LambdaMART(n_estimators=30), "context-free"),
        "FATE": (NET, "context"),
    }
    here, there = here_and_there(
        ray, lambda: compare(Sets.of(*DATA), candidates, folds=3, inner=1, workers=2, random_state=1)
    )
    for name in candidates:
        for metric, values in here.values[name].items():
            np.testing.assert_array_equal(values, there.values[name][metric])
    assert (here.chosen, here.gain, here.interval, here.p_value) == (
        there.chosen,
        there.gain,
        there.interval,
        there.p_value,
    )


@pytest.mark.slow
def test_a_table_of_the_paper_is_the_same_to_the_bit(ray, tmp_path, monkeypatch):
    claims = read_claims("table1")
    claims["tasks"]["medoid"] |= {"n_train": 200, "n_test": 300}
    claims["modes"]["quick"] |= {"n_test": 300}
    monkeypatch.setattr(table1, "read_claims", lambda name: claims)
    folders = iter((tmp_path / "here", tmp_path / "there"))
    options = Options(
        tasks=["medoid"], models=["ERR", "RankSVM", "LambdaMART"], repetitions=2, workers=2, tune=True
    )

    def run():
        folder = next(folders)
        table = table1.run_table1(folder, replace(options, trials=2))
        rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
        return table, [
            (row["key"] if "key" in row else row["model"], row["metrics"], row["tuned"]) for row in rows
        ]

    here, there = here_and_there(ray, run)
    assert here == there
    assert len(here[1]) == 6


@pytest.mark.slow
def test_a_search_whose_workers_are_killed_ends_as_if_they_were_not(ray):
    with use_engine(ray):
        undisturbed = search(Mortal(), 2)
        for i in range(3):
            (Path.home() / f"die-{i}").touch()
        assert search(Mortal(), 2) == undisturbed
    assert not list(Path.home().glob("die-*"))


SEARCH = """
import json, sys
from ray_jobs import Slow, search
from entourage.distributed import ray_engine
with ray_engine(cpus=2, memory=200 * 2**20) as engine:
    print(json.dumps(search(Slow(), engine.workers, sys.argv[1])))
"""


@pytest.mark.slow
def test_a_search_whose_command_is_interrupted_or_killed_goes_on_and_leaves_no_process(ray, tmp_path):
    before, journal = processes(), tmp_path / "journal"

    def told():
        return journal.read_text().count('"seconds"') if journal.exists() else 0

    def stop_after(trials, stop):
        process = start_python("-c", SEARCH, journal)
        try:
            wait_until(lambda: told() >= trials or process.poll() is not None)
            assert process.poll() is None, process.communicate()
            stop(process.pid)
            process.communicate(timeout=60)
        finally:
            process.kill()
        assert trials <= told() < 14

    stop_after(2, lambda pid: os.killpg(pid, signal.SIGINT))  # as the terminal does
    assert processes() <= before
    stop_after(6, lambda pid: os.kill(pid, signal.SIGKILL))
    output, errors = run_python("-c", SEARCH, journal)
    with use_engine(ray):
        assert json.loads(output) == search(Slow(), 2), errors
    wait_until(lambda: processes() <= before)  # the agents of a Ray that was killed notice it after a minute


JOINING = """
import json
from ray_jobs import Slow, search
from entourage.distributed import ray_engine
with ray_engine("127.0.0.1:6399") as engine:
    print(json.dumps([engine.workers, search(Slow(), 2)]))
"""


@pytest.mark.slow
def test_a_search_of_which_a_machine_dies_ends_as_if_it_did_not(ray):
    before = processes()
    command = Path(sys.executable).with_name("ray")
    common = ("--block", "--disable-usage-stats", "--object-store-memory=100000000")
    head = (
        "--head",
        "--node-ip-address=127.0.0.1",
        "--port=6399",
        "--num-cpus=0",
        "--include-dashboard=false",
    )
    machines = [head]
    machines += [
        ("--address=127.0.0.1:6399", f"--node-ip-address=127.0.0.{i}", "--num-cpus=1") for i in (2, 3)
    ]

    def raylet_of(place):
        mine = (one for one in processes() - before if "raylet_socket_name" in command_of(one))
        return next((one for one in mine if f"--node_ip_address=127.0.0.{place}" in command_of(one)), None)

    running = []
    try:
        for place, machine in enumerate(machines, start=1):
            running.append(start_python(command, "start", *machine, *common))
            wait_until(lambda place=place: raylet_of(place) is not None)
        process = start_python("-c", JOINING)
        running.append(process)
        doomed = raylet_of(3)
        wait_until(lambda: any("ray::_run" in command_of(one) for one in children_of(doomed)))
        os.kill(int(doomed), signal.SIGKILL)
        output, errors = process.communicate(timeout=200)
    finally:
        for one in running:
            one.terminate()
            one.communicate(timeout=60)
    with use_engine(ray):
        assert json.loads(output) == [2, search(Slow(), 2)], errors
    wait_until(lambda: processes() <= before)


@pytest.mark.slow
def test_a_command_runs_on_a_cluster(ray, tmp_path, capsys):
    medoid = tmp_path / "medoid.csv"
    rows = ["set,x,y,rank"]
    for i, (objects, ranks) in enumerate(zip(*make_medoid(40, n_features=2, random_state=0), strict=True)):
        rows += [f"{i},{x},{y},{rank}" for (x, y), rank in zip(objects, ranks, strict=True)]
    medoid.write_text("\n".join(rows))
    tuned = [
        "tune",
        medoid,
        "--set-id",
        "set",
        "--target",
        "rank",
        "--steps",
        20,
        "--trials",
        3,
        "--folds",
        1,
        "--json",
    ]

    def outline(text):
        content = json.loads(text)
        return content["score"], content["params"], [trial["score"] for trial in content["trials"]]

    elsewhere = ["--engine", "ray", "--address", ray.address]
    there, errors = run_python("-m", "entourage", *tuned, "-o", tmp_path / "there", *elsewhere)
    assert there, errors
    code, here, errors = run(capsys, *tuned, "-o", tmp_path / "here", "--workers", 2)
    assert (code, outline(there)) == (0, outline(here)), errors
