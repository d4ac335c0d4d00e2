"""The table of real data: what its readers find, published figures, and rows that a stopped run goes on from."""

import json
from pathlib import Path

import numpy as np
import pytest
from data_files import REAL, real

from benchmarks.real import aslib, car_choice, formula1, mq2008, race_task, ranch, swissmetro, yoochoose
from benchmarks.real.parts import Fit, Part, Task, folds_of
from benchmarks.real.races import COLUMNS, make_races
from benchmarks.real.rivals import one
from benchmarks.real.rows import read_rows, read_values
from benchmarks.real.run import TASKS, run_jobs
from benchmarks.real.table import difference, print_table
from entourage.choice import MultinomialLogit, NestedLogit
from entourage.data.sets import Sets
from entourage.metrics import METRICS
from entourage.tasks.evaluate import evaluate_scores

COUNTS = [  # folder, reader, part, sets, sizes
    ("letor_mq2008", mq2008, "", 784, (5, 121)),
    ("f1_races", formula1, "", 514, (18, 24)),
    ("ranch_mms_2019", ranch, "all", 33_344, (2, 5)),
    ("ranch_mms_2019", ranch, "Dots", 1_042, (2, 5)),
    ("swissmetro", swissmetro, "", 6_768, (2, 3)),
    ("car_choice", car_choice, "", 4_654, (6, 6)),
    ("yoochoose_subsets", yoochoose, "", 134_057, (2, 10)),
    ("aslib_sat11_indu", aslib, "draw 0", 253, (5, 8)),
]


@pytest.mark.parametrize(("folder", "reader", "part", "n_sets", "sizes"), COUNTS)
def test_readers_find_the_documented_sets(folder, reader, part, n_sets, sizes):
    real(folder)
    found = reader.load(REAL, part)
    for sets in found.views.values():
        assert len(sets) == n_sets
        assert (sets.sizes.min(), sets.sizes.max()) == sizes
        assert np.array_equal(sets.offsets, next(iter(found.views.values())).offsets)
    for train, test in found.folds:
        assert len(np.intersect1d(train, test)) == 0
        if found.people is not None:
            assert len(np.intersect1d(found.people[train], found.people[test])) == 0
    if len(found.folds) > 1:
        assert sum(len(test) for _, test in found.folds) == n_sets


def test_every_domain_has_one_menu_of_each_person():
    real("ranch_mms_2019")
    everyone = ranch.load(REAL, "all")
    assert len(np.unique(everyone.people)) == 1_042
    assert len(everyone.position) == len(everyone.views["ids"].objects)
    assert np.unique(everyone.views["ids"].objects).tolist() == list(range(1, 161))
    domains = [ranch.load(REAL, name) for name in ranch.DOMAINS[:2]]
    assert all(len(np.unique(part.people)) == len(part) == 1_042 for part in domains)
    assert not np.intersect1d(domains[0].set_ids(), domains[1].set_ids()).size


def test_swissmetro_has_the_published_log_likelihoods():
    real("swissmetro")
    views = swissmetro.load(REAL).views
    logit = MultinomialLogit().fit(views["usual"])
    assert logit.log_likelihood_ == pytest.approx(-5331.252, abs=5e-4)
    assert logit.coef_ == pytest.approx([-1.278, -1.084, -0.701, -0.155], abs=5e-4)
    nested = NestedLogit(swissmetro.NESTS).fit(views["nested"])
    assert nested.log_likelihood_ == pytest.approx(-5236.900, abs=5e-4)
    assert 1 / nested.dissimilarities_[0] == pytest.approx(2.05, abs=5e-3)


def test_car_choice_has_the_published_log_likelihood():
    real("car_choice")
    logit = MultinomialLogit().fit(car_choice.load(REAL).views["usual"])
    assert logit.log_likelihood_ == pytest.approx(-7391.830, abs=5e-4)


def test_races_are_what_makes_raw_columns_hard():
    races = make_races(400)
    assert races.equals(make_races(400))
    assert set(COLUMNS) < set(races.columns)
    assert races.groupby("race").size().between(8, 14).all()
    assert races.odds.max() > 20 * races.odds.median()
    assert races.days_since_last_run.isna().mean() == pytest.approx(0.09, abs=0.02)
    sets = race_task.load(Path(), "", 400).views["features"]
    by_odds = evaluate_scores(sets, -sets.objects[:, 0], {"ranking_accuracy": METRICS["ranking_accuracy"]})
    assert 0.69 < by_odds["ranking_accuracy"] < 0.75


@pytest.fixture
def tiny(monkeypatch):
    """A task of 60 choices of 30 people: two logits, one of them without the feature that matters."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3, 2))
    y = (3 * X[..., 0] + rng.gumbel(size=(60, 3))).argmax(1)
    targets = (np.arange(3) != y[:, None]).astype(float)
    people = np.arange(60) // 2
    part = Part(
        {"features": Sets.from_array(X, targets), "blind": Sets.from_array(X[..., 1:], targets)},
        folds_of(60, people, 2),
        people,
    )
    models = {"good": Fit(one(MultinomialLogit)), "blind": Fit(one(MultinomialLogit), "blind")}
    task = Task("tiny", "choice", ("log_likelihood", "accuracy"), lambda data, name: part, models, n_folds=2)
    monkeypatch.setitem(TASKS, "tiny", task)
    return task


def test_a_stopped_run_goes_on_and_models_are_paired_by_set(tiny, tmp_path, capsys):
    jobs = [("tiny", part, fold, model) for part, fold, model in tiny.jobs()]
    assert len(jobs) == 4
    run_jobs(jobs[:3], Path(), tmp_path)
    done = read_rows(tmp_path)
    assert set(done) == set(jobs[:3])
    run_jobs([job for job in jobs if job not in done], Path(), tmp_path)
    rows = read_rows(tmp_path)
    assert set(rows) == set(jobs)
    row = rows[jobs[0]]
    assert {"seconds", "estimator", "versions", "machine", "threads"} <= set(row)
    assert len((tmp_path / "real_tables.jsonl").read_text().splitlines()) == 4
    assert json.loads((tmp_path / "real_tables.jsonl").read_text().splitlines()[0])["model"] == "good"

    values = read_values(tmp_path, "tiny")
    fold = values["tiny", "", 0, "good"]
    assert fold["log_likelihood"].mean() == pytest.approx(row["metrics"]["log_likelihood"], abs=1e-4)
    assert np.array_equal(fold["unit"], fold["set"] // 2)
    mean, low, high = difference(fold, values["tiny", "", 0, "blind"], "log_likelihood")
    assert 0 < low < mean < high
    print_table(tiny, tmp_path)
    assert "good" in capsys.readouterr().out


def test_a_fit_that_fails_leaves_no_row(tiny, tmp_path, capsys):
    assert run_jobs([("tiny", "", 7, "good")], Path(), tmp_path) == []
    assert "FAILED" in capsys.readouterr().out
    assert read_rows(tmp_path) == {}
