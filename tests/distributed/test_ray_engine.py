"""Ray as an engine of the one pool: what the pool promises, and workers that die."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import run
from ray_commands import run_python
from ray_jobs import Call

from entourage.distributed import ray_engine
from entourage.errors import UserError
from entourage.training.parallel import map_in_order, open_pool, use_engine


def test_what_runs_here_never_imports_ray():
    code = """
import sys
import entourage.cli.program, entourage.distributed, entourage.selection
from entourage.training.parallel import open_pool
with open_pool(abs) as pool:
    assert dict(pool.run([-1])) == {-1: 1}
sys.exit("ray" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_wrong_engines_and_addresses_are_refused(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("set,x,rank\n1,1,0\n1,2,1\n2,1,0\n2,2,1\n")
    tuned = ["tune", tmp_path / "a.csv", "--set-id", "set", "--target", "rank", "-o", tmp_path / "model"]
    for options, said in (
        (["--engine", "spark"], "--engine is local or ray; got 'spark'"),
        (["--address", "10.0.0.1:6379"], "goes with --engine ray"),
    ):
        code, _, errors = run(capsys, *tuned, *options)
        assert (code, said in " ".join(errors.split())) == (2, True), errors


@pytest.fixture
def pool(ray):
    with use_engine(ray), open_pool(Call(), 2) as pool:
        yield pool


@pytest.mark.ray
def test_every_job_comes_with_its_own_result(pool):
    jobs = [("square", x) for x in (3, 1, 2)]
    assert dict(pool.run(jobs)) == {("square", 3): 9, ("square", 1): 1, ("square", 2): 4}
    assert list(pool.map([("square", 2, 0.3), ("square", 1)])) == [4, 1]
    assert dict(pool.run([])) == {}


@pytest.mark.ray
def test_results_can_be_written_to_as_those_of_processes(pool):
    result = pool.submit(("array",)).result()
    result += 1
    assert result.sum() == 100_000


@pytest.mark.ray
def test_an_error_comes_out_as_it_is_and_spoils_no_other_job(pool):
    right, wrong = pool.submit(("square", 3)), pool.submit(("fail",))
    assert right.result() == 9
    error = wrong.exception()
    assert (type(error), str(error)) == (UserError, "this one can't be done")
    assert pool.submit(("square", 4)).result() == 16


@pytest.mark.ray
def test_a_worker_is_a_process_of_one_thread_and_fetches_its_work_once(pool):
    found = dict(pool.run([("about", i) for i in range(30)]))
    assert all(number == i for (_, i), (*_, number) in found.items())
    assert {threads for _, threads, *_ in found.values()} == {1}
    assert os.getpid() not in {process for process, *_ in found.values()}
    for process in {process for process, *_ in found.values()}:
        seen = sorted(count for mine, _, count, _ in found.values() if mine == process)
        assert seen == list(range(1, len(seen) + 1)), "it keeps count from job to job"


@pytest.mark.ray
def test_a_single_worker_is_elsewhere_too(ray):
    with use_engine(ray):
        assert list(map_in_order(abs, [-2, 1, -3])) == [2, 1, 3]
        with open_pool(Call(), 1) as pool:
            found = [of_it for _, of_it in pool.run([("about", i) for i in range(4)])]
    assert os.getpid() not in {process for process, *_ in found}


@pytest.mark.ray
def test_after_an_error_no_job_that_waits_is_begun(ray, tmp_path):
    jobs = [("note", str(tmp_path), x) for x in range(60)]
    with use_engine(ray), pytest.raises(UserError, match="the first fails"), open_pool(Call(), 2) as pool:
        list(pool.run(jobs))
    begun = len(list(tmp_path.iterdir()))
    time.sleep(0.7)
    assert len(list(tmp_path.iterdir())) == begun < 10


@pytest.mark.ray
def test_a_job_whose_worker_is_killed_is_done_again(pool, tmp_path):
    assert pool.submit(("die", str(tmp_path), 2)).result() == 2
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(UserError, match="begun 4 times, and each time its worker died"):
        pool.submit(("die", str(other), 1000)).result()
    assert len(list(other.iterdir())) == 4


JOIN = """
from entourage.distributed import ray_engine
from entourage.training.parallel import map_in_order
with ray_engine(ADDRESS) as engine:
    print(engine.workers, list(map_in_order(abs, [-2, 1], workers=2)))
"""


@pytest.mark.slow
@pytest.mark.ray
def test_a_command_joins_a_cluster_by_its_address_if_its_installation_is_the_same(ray, tmp_path):
    code = f"ADDRESS = {ray.address!r}" + JOIN
    output, errors = run_python("-c", code)
    assert output == "2 [2, 1]\n", errors
    other = tmp_path / "torch-1.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 1.0\n")
    _, errors = run_python("-c", code, path=tmp_path)
    assert re.search(r"127\.0\.0\.1 has torch 2[\w.+]+, not 1\.0: every machine", errors), errors


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("127.0.0.1:9", "There is no Ray cluster at 127.0.0.1:9"),
        ("127.0.0.1:99999", "There is no Ray cluster at 127.0.0.1:99999"),
        ("ray://127.0.0.1:10001", "The Ray Client, ray://, is not supported"),
        ("localhost", "HOST:PORT, or auto"),
    ],
)
def test_an_address_without_a_cluster_is_refused(monkeypatch, address, said):
    import ray

    monkeypatch.setattr(ray, "is_initialized", lambda: False)  # it never comes to a connection
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    with pytest.raises(UserError, match=said), ray_engine(address):
        pass


@pytest.mark.ray
def test_a_ray_of_this_machine_listens_on_the_loopback_address_alone(ray):
    listening = set()
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            _, local, _, state, *_ = line.split()
            if state == "0A":
                listening.add(local.partition(":")[0])
    loopback = "0100007F"
    assert loopback in listening
    assert listening <= {loopback, f"0000000000000000FFFF0000{loopback}", "00000000000000000000000001000000"}


@pytest.mark.ray
def test_a_process_has_one_ray(ray):
    with pytest.raises(UserError, match="connected to Ray already"), ray_engine():
        pass
    assert ray.workers == 2
