"""Table 1: rows kept one by one, data from independent streams, figures marked and never hidden."""

import json
from dataclasses import replace

import numpy as np
import pytest
from pickling_pool import PicklingPool

from entourage.errors import ParameterError, UserError
from entourage.experiments import rows, table1
from entourage.experiments.models import held_out_data, model_jobs, training_data
from entourage.experiments.paper import read_claims
from entourage.experiments.rows import Options
from entourage.experiments.table1 import entries, run_table1, summarise

SMALL = Options(tasks=["medoid"], models=["ERR", "RankSVM"], repetitions=2)


def jobs_of(**options):
    return list(model_jobs(read_claims("table1"), Options(**options), name="table1", folder=""))


def data_of(job):
    return training_data(job), held_out_data(job)


@pytest.fixture
def small_sets(monkeypatch):
    """Shrink every task, so that a whole table takes a moment."""
    claims = read_claims("table1")
    for task in claims["tasks"].values():
        task |= {"n_train": 200, "n_test": 300}
    claims["modes"]["quick"]["n_test"] = 300
    monkeypatch.setattr(table1, "read_claims", lambda name: claims)


def test_full_mode_is_the_papers_protocol():
    jobs = jobs_of(mode="full")
    medoid = [job for job in jobs if job.task == "medoid" and job.model == "FATE-Net"]
    assert (len(medoid), medoid[0].n_train, medoid[0].n_test) == (10, 10_000, 90_000)
    hypervolume = [job for job in jobs if job.task == "hypervolume" and job.model == "ERR"]
    assert (len(hypervolume), hypervolume[0].n_train, hypervolume[0].n_test) == (5, 100_000, 200_000)
    assert {job.model for job in jobs} == {*read_claims("table1")["models"], "RankBoost", "LambdaMART"}
    assert len({job.key for job in jobs}) == len(jobs)


@pytest.mark.parametrize("task", ["medoid", "hypervolume", "hypervolume-3", "hypervolume-5"])
def test_no_test_set_occurs_in_training_nor_in_another_repetition(task):
    jobs = jobs_of(mode="full", tasks=[task], models=["ERR"])[:2]
    seen = set()
    for job in jobs:
        job = replace(job, n_train=500, n_test=2000)
        for sets in data_of(job):
            rows = {one.tobytes() for one in sets.to_list()}
            assert not rows & seen
            seen |= rows
    again = data_of(replace(jobs[0], n_train=500, n_test=2000))
    assert all(one.tobytes() in seen for one in again[0].to_list())


def test_quick_mode_is_smaller_in_every_way():
    quick, full = jobs_of(), jobs_of(mode="full")
    assert {job.task for job in quick} == {"medoid", "hypervolume"}
    assert max(job.repetition for job in quick) == 1
    assert max(dict(job.settings).get("steps", 0) for job in quick) == 4000
    assert max(dict(job.settings).get("steps", 0) for job in full) == 12_000
    assert {job.task for job in jobs_of(tasks=["hypervolume-5"])} == {"hypervolume-5"}


def test_all_models_of_a_repetition_see_the_same_data():
    a, b = jobs_of(tasks=["medoid"], models=["ERR", "RankSVM"], repetitions=1)
    mine, theirs = training_data(replace(a, n_train=50)), training_data(replace(b, n_train=50))
    assert np.array_equal(mine.objects, theirs.objects)


def test_a_run_writes_rows_a_table_and_a_report_and_goes_on_where_it_stopped(
    tmp_path, small_sets, monkeypatch
):
    calls = []
    real = table1.run_jobs

    def counted(jobs, device):
        calls.append(jobs[0].key)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(jobs, device)

    monkeypatch.setattr(table1, "run_jobs", counted)
    with pytest.raises(KeyboardInterrupt):
        run_table1(tmp_path, SMALL)
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 2
    table = run_table1(tmp_path, SMALL)
    assert len(calls) == 5, "two rows before, the interrupted one and the rest after"
    assert "| ERR |" in table
    assert (tmp_path / "table1.md").read_text() == table
    assert "RankSVM" in (tmp_path / "report.html").read_text()
    row = json.loads((tmp_path / "rows.jsonl").read_text().splitlines()[0])
    assert set(row["metrics"]) == {"spearman", "ranking_accuracy", "zero_one_accuracy"}
    assert row["versions"]["torch"]
    run_table1(tmp_path, SMALL)
    assert len(calls) == 5, "nothing is run again"


def test_workers_give_the_same_rows(tmp_path, small_sets, monkeypatch):
    one = run_table1(tmp_path / "one", SMALL)
    before = PicklingPool.opened
    monkeypatch.setattr(rows, "open_pool", PicklingPool)
    two = run_table1(tmp_path / "two", replace(SMALL, workers=2))
    assert PicklingPool.opened == before + 1
    assert one == two


def test_rows_of_another_run_and_broken_ones_are_refused(tmp_path, small_sets):
    run_table1(tmp_path, SMALL)
    file = tmp_path / "rows.jsonl"
    row = json.loads(file.read_text().splitlines()[0])
    file.write_text(json.dumps(row | {"n_train": 7}))
    with pytest.raises(UserError, match="rows of another run"):
        run_table1(tmp_path, SMALL)
    file.write_text("{")
    with pytest.raises(UserError, match="no rows of a reproduction"):
        run_table1(tmp_path, SMALL)


def make_row(model: str, value: float, repetition: int = 0, task: str = "medoid") -> dict:
    return {
        "task": task, "model": model, "repetition": repetition, "n_train": 1, "n_test": 1, "machine": "here",
        "metrics": {"spearman": value, "ranking_accuracy": value, "zero_one_accuracy": value},
    }  # fmt: skip


def test_figures_outside_the_tolerance_are_marked_and_the_best_is_bold():
    rows = [
        make_row("RankNet", 0.68),
        make_row("FETA-Net", 0.90),
        make_row("FATE-Net", 0.80),
        make_row("LambdaMART", 0.7),
    ]
    found = entries("table1", rows)["medoid"]["ranking_accuracy"]
    assert found["RankNet"].mark == ""
    assert found["FETA-Net"].mark == "above"
    assert found["FATE-Net"].mark == "below"
    assert found["LambdaMART"].mark == "", "nothing was published for it"
    assert [model for model, entry in found.items() if entry.best] == ["FETA-Net"]
    text = summarise("table1", "quick", rows)
    assert "**0.900** (above)" in text
    assert "fewer than the paper has" in text


def test_means_and_deviations_are_over_repetitions():
    rows = [make_row("ERR", 0.4, 0), make_row("ERR", 0.6, 1)]
    entry = entries("table1", rows)["medoid"]["spearman"]["ERR"]
    assert entry.mean == pytest.approx(0.5)
    assert entry.sd == pytest.approx(0.1 * 2**0.5)


def test_the_trap_in_the_hypervolume_row_has_its_footnote():
    text = summarise("table1", "full", [make_row("ERR", 0.69, task="hypervolume")])
    assert "probably not, or not all, about hypervolume" in text


def test_unknown_tasks_and_models_say_what_there_is():
    with pytest.raises(ParameterError, match="did you mean 'medoid'"):
        jobs_of(tasks=["medoids"])
    with pytest.raises(ParameterError, match="did you mean 'FATE-Net'"):
        jobs_of(models=["FATENet"])


def test_tuned_rows_say_what_was_chosen_and_are_kept_apart_from_others(tmp_path, small_sets):
    options = replace(SMALL, models=["RankSVM"], repetitions=1, tune=True, trials=2)
    run_table1(tmp_path, options)
    row = json.loads((tmp_path / "rows.jsonl").read_text())
    assert set(row["tuned"]) == {"C"}
    assert f"C={row['tuned']['C']}" in row["estimator"] or row["tuned"]["C"] == 1.0
    assert row["trials"] == 2
    assert 0 < row["inner_score"] <= 1
    assert (tmp_path / "studies" / "medoid-RankSVM-0.journal").exists()
    run_table1(tmp_path, options)
    with pytest.raises(UserError, match="trials is 2, not 3"):
        run_table1(tmp_path, replace(options, trials=3))
    with pytest.raises(UserError, match="rows of another run"):
        run_table1(tmp_path, replace(options, tune=False))
