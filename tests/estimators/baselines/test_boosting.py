"""Boosted trees: early stopping, folds, weights, time limits and files, for rankings, choices and sub-sets."""

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from entourage import load
from entourage.baselines import BoostedLogit, BoostedSubset, LambdaMART
from entourage.data import Sets
from entourage.errors import DataError, ParameterError, UserError
from entourage.estimators.baselines.boosting import TREES_WITHOUT_HELD_OUT
from entourage.tasks import Choice
from entourage.training.deadline import time_limit

pytest.importorskip("lightgbm")


def noisy_task(n=200, m=5, seed=0, noise=1.0):
    """Return features, ranks, choices and sub-sets under a utility that no line has."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m, 3))
    u = 3 * np.abs(X[..., 0]) - X[..., 1] + noise * rng.gumbel(size=(n, m))
    return X, (-u).argsort(1).argsort(1), u.argmax(1), u > 2


def target(model, task):
    return task[{LambdaMART: 1, BoostedLogit: 2, BoostedSubset: 3}[type(model)]]


QUICK = {"n_estimators": 30, "learning_rate": 0.2}
ALL = [LambdaMART(**QUICK), BoostedLogit(**QUICK), BoostedSubset(**QUICK)]
every_model = pytest.mark.parametrize("model", ALL, ids=lambda m: type(m).__name__)


@every_model
def test_what_no_line_can_learn_is_learnt(model):
    train, test = noisy_task(), noisy_task(seed=1)
    fitted = clone(model).fit(train[0], target(model, train))
    least = {LambdaMART: 0.75, BoostedLogit: 0.5, BoostedSubset: 0.75}[type(model)]
    assert fitted.score(test[0], target(model, test)) > least


@every_model
def test_early_stopping_ends_before_noise_is_learnt(model):
    X, *_ = noisy_task(60)
    rng = np.random.default_rng(5)
    noise = {
        LambdaMART: rng.permuted(np.tile(np.arange(5), (60, 1)), axis=1),
        BoostedLogit: rng.integers(0, 5, 60),
        BoostedSubset: rng.random((60, 5)) < 0.4,
    }
    fitted = clone(model).set_params(n_estimators=500, patience=10).fit(X, noise[type(model)])
    assert fitted.n_rounds_ < 100
    assert fitted.converged_


@every_model
def test_one_model_with_a_share_held_out_and_none_with_nothing_held_out(model):
    X, *rest = noisy_task()
    y = target(model, (X, *rest))
    one = clone(model).set_params(folds=1).fit(X, y)
    assert one.best_score_ is not None
    whole = clone(model).set_params(validation=0).fit(X, y)
    assert (whole.n_rounds_, whole.best_score_, whole.converged_) == (30, None, False)
    few = clone(model).set_params(n_estimators=1000, min_child_samples=2).fit(X[:15], y[:15])
    assert few.n_rounds_ <= TREES_WITHOUT_HELD_OUT
    assert few.best_score_ is None


@every_model
def test_weights_count_and_weight_nought_is_left_out(model):
    X, *rest = noisy_task(80)
    y = target(model, (X, *rest))
    weights = np.ones(80)
    weights[50:] = 0.0
    a = clone(model).fit(X, y, sample_weight=weights).predict_scores(X)
    assert np.array_equal(a, clone(model).fit(X[:50], y[:50]).predict_scores(X))
    scaled = clone(model).fit(X[:50], y[:50], sample_weight=np.full(50, 7.0)).predict_scores(X)
    np.testing.assert_allclose(scaled, a, rtol=1e-6)
    uneven = clone(model).fit(X[:50], y[:50], sample_weight=np.arange(1, 51)).predict_scores(X)
    assert not np.allclose(uneven, a)


@every_model
def test_a_time_limit_ends_growing_with_the_trees_so_far(model):
    X, *rest = noisy_task()
    with time_limit(0):
        fitted = clone(model).fit(X, target(model, (X, *rest)))
    assert fitted.n_rounds_ == 1
    assert not fitted.converged_
    assert np.isfinite(fitted.predict_scores(X)).all()


@every_model
def test_a_file_gives_the_same_bits(model, tmp_path):
    X, *rest = noisy_task(60)
    situation = np.random.default_rng(0).normal(size=(60, 2))
    fitted = clone(model).fit(X, target(model, (X, *rest)), situation=situation)
    fitted.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert set(vars(loaded)) == set(vars(fitted))
    assert loaded.get_params() == fitted.get_params()
    for method in (
        "predict_scores",
        "predict",
        *(["predict_proba"] if hasattr(model, "predict_proba") else []),
    ):
        expected = getattr(fitted, method)(X, situation=situation)
        assert np.array_equal(getattr(loaded, method)(X, situation=situation), expected)


def test_a_file_is_scored_without_lightgbm(tmp_path, monkeypatch):
    X, ranks, *_ = noisy_task(40)
    fitted = clone(ALL[0]).fit(X, ranks)
    scores = fitted.predict_scores(X)
    fitted.save(tmp_path / "m")
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    assert np.array_equal(load(tmp_path / "m").predict_scores(X), scores)


def test_probabilities_and_the_likelihood_are_those_of_a_softmax():
    X, _, y, _ = noisy_task(300)
    model = clone(ALL[1]).set_params(n_estimators=100).fit(X, y)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(1), 1)
    np.testing.assert_allclose(model.log_likelihood(X, y), np.log(p[np.arange(300), y]).mean())
    test = noisy_task(300, seed=1)
    assert -1.61 < model.log_likelihood(test[0], test[2]) < 0
    assert model.log_likelihood(test[0], test[2]) > np.log(1 / 5) + 0.2


def test_gradients_are_the_slopes_of_the_likelihood():
    sets = Sets.from_list([np.zeros((3, 1)), np.zeros((2, 1))], [[0, 1, 1], [1, 0]])
    weights = np.array([1.5, 0.5])
    for model in (BoostedLogit(), BoostedSubset()):
        gradients = model._gradients(sets, weights)
        scores = np.array([0.3, -0.2, 1.0, 0.1, 0.4])

        def loss(s, task=model.task):
            p = task.probabilities(sets, s)
            chosen = sets.targets == 0
            each = np.where(chosen, np.log(p), 0 if isinstance(task, Choice) else np.log(1 - p))
            return -(np.repeat(weights, sets.sizes) * each).sum()

        slopes = [(loss(scores + e) - loss(scores - e)) / 2e-6 for e in 1e-6 * np.eye(5)]
        np.testing.assert_allclose(gradients(scores)[0], slopes, atol=1e-8)


def test_a_threshold_is_found_on_held_out_sets_or_given():
    X, *_, chosen = noisy_task()
    found = clone(ALL[2]).fit(X, chosen)
    given = clone(ALL[2]).set_params(threshold=0.0).fit(X, chosen)
    assert found.threshold_ != 0.0
    assert given.threshold_ == 0.0
    assert found.score(X, chosen) >= given.score(X, chosen) - 0.02
    assert clone(ALL[2]).set_params(validation=0).fit(X, chosen).threshold_ == 0.0


def test_an_outside_option_is_refused_with_what_to_use():
    X, _, y, _ = noisy_task(30)
    with pytest.raises(DataError, match="outside=True"):
        BoostedLogit().fit(X, np.where(np.arange(30) == 3, -1, y))


def test_relevance_grades_stop_by_ndcg_and_negative_ones_by_pairs():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"q": np.repeat(np.arange(40), 6), "x": rng.normal(size=240)})
    frame["rel"] = np.round(np.clip(frame.x + rng.normal(size=240), 0, 3) / 2, 1)
    columns = {"set_id": "q", "target": "rel", "target_kind": "relevance"}
    assert LambdaMART(**QUICK).fit(frame, **columns).score(frame) > 0.6
    frame["rel"] -= 5
    assert LambdaMART(**QUICK).fit(frame, **columns).score(frame) > 0.6


@every_model
def test_sets_of_one_ragged_sets_and_rows_out_of_order(model):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"set": np.repeat(np.arange(60), rng.integers(1, 6, 60))})
    frame["x"], frame["z"] = rng.normal(size=len(frame)), rng.normal(size=len(frame))
    first = ~frame.set.duplicated()
    frame["y"] = np.where(isinstance(model, LambdaMART), frame.groupby("set").x.rank(), first * 1.0)
    columns = {"set_id": "set", "target": "y"}
    a = clone(model).fit(frame, **columns)
    shuffled = frame.sample(frac=1, random_state=0)
    np.testing.assert_array_equal(a.predict_scores(shuffled), a.predict_scores(frame)[shuffled.index])
    assert a.evaluate(shuffled) == pytest.approx(a.evaluate(frame))


def test_wrong_parameters_and_a_missing_lightgbm_say_what_is_needed(monkeypatch):
    X, ranks, y, _ = noisy_task(30)
    for params in (
        {"n_estimators": 0},
        {"num_leaves": 1},
        {"validation": 1.0},
        {"folds": 0},
        {"patience": 0},
    ):
        with pytest.raises(ParameterError, match=next(iter(params))):
            LambdaMART(**params).fit(X, ranks)
    with pytest.raises(ParameterError, match="threshold"):
        BoostedSubset(threshold="best").fit(X, ranks == 0)
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(UserError, match=r"entourage\[boost\]"):
        BoostedLogit().fit(X, y)


def test_groups_are_held_out_together():
    person = np.repeat(np.arange(20), 9)
    X = np.tile(np.array([[[0.0], [1.0], [2.0]]]), (180, 1, 1))
    y = np.random.default_rng(0).integers(0, 3, 20)[person]  # everyone always takes the same of three
    settings = {"situation": person[:, None].astype(float), "sample_weight": np.r_[np.zeros(9), np.ones(171)]}
    model = BoostedLogit(60, learning_rate=0.3, min_child_samples=2, num_leaves=15)
    alone, grouped = clone(model).fit(X, y, **settings), clone(model).fit(X, y, groups=person, **settings)
    assert grouped.best_score_ < -1 < -0.5 < alone.best_score_  # of people who were not seen nothing is known
    assert not hasattr(grouped, "_units")
    single = clone(model).set_params(folds=1).fit(X, y, groups=person, **settings)
    assert np.isfinite(single.best_score_)
    with pytest.raises(DataError, match="at least two labels"):
        clone(model).fit(X, y, groups=np.zeros(180))


def test_folds_part_informative_sets_and_keep_groups_whole():
    X, ranks, *_ = noisy_task(50)
    ranks[7] = 0
    model = LambdaMART()
    model._units = None
    folds = model._folds(Sets.of(X, ranks), 5, 0)
    assert sorted(np.concatenate(folds)) == [i for i in range(50) if i != 7]
    model._units = np.arange(50) // 10
    folds = model._folds(Sets.of(X, ranks), 3, 0)
    assert sorted(np.concatenate(folds)) == [i for i in range(50) if i != 7]
    assert sum(len(set(fold // 10)) for fold in folds) == 5
