"""Tuning: inner folds choose, outer folds report, and a search that is killed goes on."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from sklearn.base import clone

from entourage import FATE, FETA, ContextFree, DiscreteChooser, Ranker, SubsetChooser
from entourage.baselines import MODELS, LambdaMART, RankSVM
from entourage.data import Sets, make_hypervolume, make_medoid
from entourage.data.resampling import fold_indices
from entourage.errors import ParameterError, TrainingError, UserError
from entourage.selection.objective import Objective
from entourage.selection.spaces import SPACES, Choice, Real, Whole, present_choice, space_of
from entourage.selection.tuning import nested_cross_validation, tune

X, RANKS = make_hypervolume(n_sets=120, random_state=0)
SMALL = Ranker(FATE(width=8), steps=20, batch_size=32, device="cpu", random_state=0)
SPACE = {"learning_rate": Real(1e-4, 1e-1, log=True), "net__width": Choice((4, 8)), "net__depth": Whole(0, 2)}


@pytest.mark.parametrize("name", [name for name in MODELS if name != "Random"])
def test_every_model_has_a_space_and_its_defaults_lie_in_it(name):
    model = MODELS[name](0)
    assert space_of(model)
    assert present_choice(model, space_of(model)) is not None


def test_spaces_cover_what_is_to_be_tuned():
    searched = set(" ".join(SPACES[FATE]).split())
    assert searched >= {
        "net__width", "net__depth", "net__embedding_size", "net__embedding_depth", "learning_rate",
        "batch_size", "l1", "l2", "net__activation", "net__norm", "loss",
    }  # fmt: skip
    assert "loss" not in " ".join(SPACES[ContextFree])


def test_the_search_begins_with_the_model_as_it_came_and_never_ends_with_worse():
    found = tune(SMALL, X, RANKS, space=SPACE, trials=5, folds=2)
    first = found.trials[0]
    assert first["params"] == {"learning_rate": 0.003, "net__width": 8, "net__depth": 2}
    assert found.score >= first["score"]
    assert found.score == max(t["score"] for t in found.trials if t["score"] is not None)
    assert len(found.trials) == 5
    assert SMALL.get_params()["net__width"] == 8, "the model stays as it is"
    clone(SMALL).set_params(**found.params)


def test_the_score_is_the_mean_over_inner_folds():
    found = tune(RankSVM(), X, RANKS, trials=1, folds=3, random_state=7)
    by_hand = []
    for train, test in fold_indices(len(X), 3, random_state=7):
        by_hand.append(RankSVM().fit(X[train], RANKS[train]).score(X[test], RANKS[test]))
    assert found.score == pytest.approx(np.mean(by_hand))


def test_choices_of_two_parameters_are_set_together():
    space = {"net__activation net__norm": Choice((("relu", "batch"), ("gelu", "layer")))}
    found = tune(SMALL, X, RANKS, space=space, trials=4, folds=1)
    seen = {(t["params"]["net__activation"], t["params"]["net__norm"]) for t in found.trials}
    assert seen <= {("relu", "batch"), ("gelu", "layer")}


def test_a_default_net_can_be_tuned():
    model = Ranker(steps=2, device="cpu", random_state=0)
    found = tune(model, X, RANKS, trials=2, folds=1)
    assert isinstance(clone(model).set_params(**found.params).fit(X, RANKS).net_, FATE)


def test_a_study_goes_on_and_ends_as_if_never_interrupted(tmp_path):
    settings = {"space": SPACE, "folds": 2, "random_state": 1}
    whole = tune(SMALL, X, RANKS, trials=6, study=tmp_path / "whole", **settings)
    tune(SMALL, X, RANKS, trials=2, study=tmp_path / "parts", **settings)
    calls = []

    class Interrupting(Ranker):
        def fit(self, *args, **kwargs):
            calls.append(1)
            raise KeyboardInterrupt

    stopping = Interrupting(FATE(width=8), steps=20, batch_size=32, device="cpu", random_state=0)
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


def test_a_killed_process_leaves_a_study_that_goes_on(tmp_path):
    journal = tmp_path / "study"
    code = f"""
from tests.selection.test_tuning import *
tune(SMALL.set_params(steps=200), X, RANKS, space=SPACE, trials=500, folds=2, study={str(journal)!r})
"""
    process = subprocess.Popen([sys.executable, "-c", code], env=os.environ | {"OMP_NUM_THREADS": "1"})
    for _ in range(600):
        time.sleep(0.1)
        if journal.exists() and journal.read_text().count('"state"') >= 4:
            break
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = journal.read_text().count("\n")
    assert before > 4
    found = tune(clone(SMALL).set_params(steps=200), X, RANKS, space=SPACE, trials=3, folds=2, study=journal)
    assert len(found.trials) >= 3


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


def test_settings_behind_the_others_are_given_up():
    space = {"learning_rate": Choice((1e-2, 1e-9))}
    model = Ranker(
        FETA(width=8), steps=60, ema=None, batch_size=32, device="cpu", random_state=0, learning_rate=1e-2
    )
    data = make_medoid(n_sets=200, random_state=0)
    states = [t["state"] for t in tune(model, *data, space=space, trials=20, folds=2).trials]
    assert "pruned" in states
    assert states.count("complete") >= 8


@pytest.mark.parametrize(
    ("kind", "metric", "y"),
    [
        (DiscreteChooser, "accuracy", RANKS.argmin(1)),
        (SubsetChooser, "f1", RANKS < 2),
        (Ranker, "ndcg", RANKS),
    ],
)
def test_a_trial_is_given_up_by_one_measure_from_its_first_look_to_its_last_fold(kind, metric, y):
    model = kind(FATE(width=8), steps=20, evaluate_every=10, batch_size=32, device="cpu", random_state=0)
    sets = model.task.check(model.task.sets_of(X, y))
    parts = fold_indices(len(X), 2)
    told = {}
    score = Objective(model, sets, parts, metric)({}, told.__setitem__)
    criteria, metrics, looks = [], [], []
    for train, test in parts:
        fitted = clone(model).fit(sets[train])
        scores = fitted.predict_scores(X[test])
        ranks = sets[test].targets.reshape(len(test), -1)
        criteria.append(fitted.task.criterion(scores, ranks))
        metrics.append(fitted.task.metrics[metric](scores, ranks))
        looks.append([row["score"] for row in fitted.history_ if "score" in row])
    assert score == pytest.approx(np.mean(metrics), abs=1e-6)
    expected = {0: looks[0][0], 1: looks[0][1], 999: criteria[0]}
    expected |= {1000 + k: (criteria[0] + looks[1][k]) / 2 for k in (0, 1)} | {1999: np.mean(criteria)}
    assert told == pytest.approx(expected, abs=1e-6)


def test_without_looks_a_trial_is_told_by_the_metric_itself():
    parts, told = fold_indices(len(X), 2), {}
    silent = Ranker(FATE(width=8), steps=5, validation=0.0, device="cpu", random_state=0)
    for model in (RankSVM(), silent):
        told.clear()
        score = Objective(model, Sets.of(X, RANKS), parts, "ndcg")({}, told.__setitem__)
        assert list(told) == [999, 1999]
        assert told[1999] == score


def test_settings_that_cannot_be_trained_do_not_stop_the_search():
    space = {"loss": Choice(("hinge", "hing"))}
    found = tune(SMALL, X, RANKS, space=space, trials=6, folds=1)
    assert {t["state"] for t in found.trials} == {"complete", "fail"}
    assert found.params == {"loss": "hinge"}
    with pytest.raises(TrainingError, match="No trial came to an end: loss='hing'"):
        tune(SMALL, X, RANKS, space={"loss": Choice(("hing",))}, trials=2, folds=1)


def test_time_can_be_bounded():
    found = tune(RankSVM(), X, RANKS, trials=1000, seconds=0.0)
    assert len(found.trials) == 1


def test_a_model_without_a_space_is_only_judged():
    found = tune(MODELS["Random"](0), X, RANKS, trials=3)
    assert (found.params, found.trials) == ({}, [])


def test_unknown_parameters_are_named():
    with pytest.raises(ParameterError, match="did you mean 'learning_rate'"):
        tune(SMALL, X, RANKS, space={"learning_rat": Real(0.1, 1)}, trials=1)
    with pytest.raises(ParameterError, match="names 2 parameters"):
        tune(SMALL, X, RANKS, space={"l1 l2": Choice((0.1,))}, trials=1)


def test_outer_folds_report_what_inner_folds_chose(tmp_path):
    groups = np.arange(len(X)) // 4
    seen = []

    class Watching(RankSVM):
        def fit(self, X, y=None, **kwargs):
            seen.append({row.tobytes() for row in X.to_list()})
            return super().fit(X, y, **kwargs)

    settings = {"outer": 3, "folds": 2, "trials": 3, "groups": groups, "study": tmp_path / "study"}
    folds = nested_cross_validation(Watching(), X, RANKS, space=SPACES[RankSVM], **settings)
    assert sorted(np.concatenate([fold.test for fold in folds])) == list(range(len(X)))
    assert len(seen) == 3 * (3 * 2 + 1)
    for i, fold in enumerate(folds):
        held_out = {X[j].tobytes() for j in fold.test}
        assert not any(held_out & fitted for fitted in seen[i * 7 : (i + 1) * 7]), "no outer set is seen"
        others = np.setdiff1d(np.arange(len(X)), fold.test)
        assert not set(groups[fold.test]) & set(groups[others])
        best = RankSVM(**fold.params).fit(X[others], RANKS[others])
        assert fold.score == pytest.approx(best.score(X[fold.test], RANKS[fold.test]))
        assert fold.score == pytest.approx(np.nanmean(fold.per_set))
    again = nested_cross_validation(Watching(), X, RANKS, space=SPACES[RankSVM], **settings)
    assert [f.score for f in again] == [f.score for f in folds]
    assert len(seen) == 3 * 7 + 3, "only the last fit of each fold is done again"


def test_ragged_sets_and_situations_can_be_tuned():
    sets = Sets.from_list(
        [x[: 3 + i % 3] for i, x in enumerate(X)], [r[: 3 + i % 3] for i, r in enumerate(RANKS)]
    )
    assert tune(LambdaMART(n_estimators=50), sets, trials=2, folds=2).score > 0.5
    situation = np.ones((len(X), 1))
    assert tune(RankSVM(), X, RANKS, situation=situation, trials=1).score > 0.5
