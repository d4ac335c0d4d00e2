"""The best single column, for rankings, choices and sub-sets."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from entourage import load
from entourage.baselines import BestColumn, BestColumnLogit, BestColumnSubset
from entourage.choice import MultinomialLogit
from entourage.data import Sets
from entourage.errors import DataError, ParameterError
from entourage.training.deadline import time_limit


def task(n=200, m=5, d=4, seed=0):
    """Return heavy-tailed columns, of which the third counts, downwards; ranks, choices and sub-sets."""
    rng = np.random.default_rng(seed)
    X = np.exp(2 * rng.normal(size=(n, m, d)))
    u = -np.log(X[..., 2]) + 0.5 * rng.gumbel(size=(n, m))
    return X, (-u).argsort(1).argsort(1), u.argmax(1), u > 0.5


ALL = {BestColumn: 1, BestColumnLogit: 2, BestColumnSubset: 3}
every_model = pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)


@every_model
def test_the_column_that_counts_is_found_and_named(kind):
    data = task()
    model = kind().fit(data[0], data[ALL[kind]])
    assert (model.index_, model.column_) == (2, "x2")
    assert model.facts() == {"column": "x2", "best": "the smallest"}
    order = model.predict_scores(data[0]).ravel().argsort(kind="stable")
    falling = -data[0][..., 2].ravel()
    assert (np.diff(falling[order]) >= 0).mean() > 0.9  # beyond the outer quantiles a logit's map is flat


def test_a_ranking_is_that_of_the_column_itself():
    X, ranks, *_ = task()
    model = BestColumn().fit(X, ranks)
    assert model.ascending_
    np.testing.assert_array_equal(model.predict_scores(X), -X[..., 2])
    assert model.train_score_ == model.score(X, ranks)


def test_ties_unranked_objects_and_weights_count_as_in_the_metric():
    rng = np.random.default_rng(1)
    parts = [np.round(rng.normal(size=(k, 6)), 1) for k in rng.integers(1, 7, 50)]
    ranks = [np.where(rng.random(len(p)) < 0.2, np.nan, np.round(rng.random(len(p)) * 3)) for p in parts]
    weights = rng.random(50)
    model = BestColumn().fit(parts, ranks, sample_weight=weights)
    signed = [
        (BestColumn().fit([p[:, [k]] for p in parts], ranks, sample_weight=weights).train_score_)
        for k in range(6)
    ]
    assert model.train_score_ == max(signed)
    assert model.index_ == int(np.argmax(signed))


def test_relevance_grades_go_by_ndcg():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"q": np.repeat(np.arange(30), 8), "a": rng.normal(size=240)})
    frame["b"] = rng.normal(size=240)
    frame["rel"] = (frame.b < -0.5) * 2
    model = BestColumn().fit(frame, set_id="q", target="rel", target_kind="relevance")
    assert (model.column_, model.ascending_, model.train_score_) == ("b", True, 1.0)


def test_the_coefficient_is_that_of_a_logit_of_the_mapped_column():
    X, _, y, _ = task()
    model = BestColumnLogit().fit(X, y)
    mapped = np.interp(X[..., 2], model.knots_, model.levels_)[..., None]
    spread = (mapped - mapped.mean(1, keepdims=True)).std()
    exact = MultinomialLogit(l2=1.0 / spread**2).fit(mapped, y)
    np.testing.assert_allclose(model.coef_, exact.coef_[0], rtol=1e-4)
    assert model.log_likelihood(X, y) == pytest.approx(exact.log_likelihood(mapped, y), rel=1e-6)


def test_the_sigmoid_is_that_of_a_logistic_regression():
    X, *_, chosen = task()
    model = BestColumnSubset().fit(X, chosen)
    mapped = np.interp(X[..., 2], model.knots_, model.levels_).reshape(-1, 1)
    exact = LogisticRegression(C=1.0, tol=1e-10).fit(mapped, chosen.ravel())
    np.testing.assert_allclose(
        [model.intercept_, model.coef_], [exact.intercept_[0], exact.coef_[0, 0]], rtol=1e-4
    )
    np.testing.assert_allclose(model.predict_proba(X).ravel(), exact.predict_proba(mapped)[:, 1], rtol=1e-3)


def test_columns_that_say_nothing_and_flags():
    rng = np.random.default_rng(0)
    X = np.zeros((60, 3, 2))
    X[..., 1] = rng.random((60, 3)) < 0.5
    y = X[..., 1].argmax(1)
    model = BestColumnLogit().fit(X, y)
    assert model.index_ == 1
    assert model.coef_ > 0
    nothing = BestColumnLogit().fit(X[..., :1], y)
    assert nothing.log_likelihood(X[..., :1], y) == pytest.approx(np.log(1 / 3))


@every_model
def test_a_file_gives_the_same_model(kind, tmp_path):
    data = task(60)
    model = kind().fit(data[0], data[ALL[kind]], situation=np.ones((60, 1)))
    model.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert set(vars(loaded)) == set(vars(model))
    other = task(10, seed=3)[0] * 100
    extra = {"situation": np.zeros((10, 1))}
    assert np.array_equal(loaded.predict_scores(other, **extra), model.predict_scores(other, **extra))
    assert np.array_equal(loaded.predict(other, **extra), model.predict(other, **extra))


@every_model
def test_screening_finds_it_among_many_columns(kind, monkeypatch):
    monkeypatch.setattr("entourage.estimators.baselines.best_column.SCREENED_BY", 5000)
    monkeypatch.setattr("entourage.estimators.baselines.best_column.AT_ONCE", 5000)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 5, 40)).astype(np.float32)
    u = X[..., 33] + rng.gumbel(size=(600, 5))
    y = {BestColumn: (-u).argsort(1).argsort(1), BestColumnLogit: u.argmax(1), BestColumnSubset: u > 3}[kind]
    model = kind().fit(X, y)
    assert model.index_ == 33
    with time_limit(0):
        assert np.isfinite(clone(model).fit(X, y).predict_scores(X[:2])).all()


@every_model
def test_weight_nought_is_left_out(kind):
    data = task(80)
    weights = np.r_[np.ones(50), np.zeros(30)]
    a = kind().fit(data[0], data[ALL[kind]], sample_weight=weights)
    b = kind().fit(data[0][:50], data[ALL[kind]][:50])
    assert np.array_equal(a.predict_scores(data[0]), b.predict_scores(data[0]))


def test_an_outside_option_and_a_wrong_threshold_are_refused():
    X, _, y, chosen = task(30)
    with pytest.raises(DataError, match="outside=True"):
        BestColumnLogit().fit(X, np.where(y == 0, -1, y))
    with pytest.raises(ParameterError, match="threshold"):
        BestColumnSubset("best").fit(X, chosen)
    assert BestColumnSubset(0.0).fit(Sets.of(X, 1 - chosen)).threshold_ == 0.0
