"""The classical rankers: one contract, and each against the plainest way to write it."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.svm import LinearSVC

from entourage.baselines import (
    MODELS,
    Baseline,
    ExpectedRankRegression,
    LambdaMART,
    LinearRanker,
    RandomRanker,
    RankBoost,
    RankSVM,
)
from entourage.data import Sets, make_medoid
from entourage.data.ranks import ranks_from_scores
from entourage.errors import DataError, ParameterError, ShapeError, UserError
from entourage.estimators.base import NotFittedError
from entourage.estimators.baselines.base import ordered_pairs, places
from entourage.experiments.paper import read_claims
from entourage.training.deadline import time_limit

SEEDED = {
    "ERR": ExpectedRankRegression(),
    "RankSVM": RankSVM(),
    "Linear": LinearRanker(),
    "RankBoost": RankBoost(rounds=20),
    "LambdaMART": LambdaMART(n_estimators=20),
    "Random": RandomRanker(),
}
every_baseline = pytest.mark.parametrize("model", SEEDED.values(), ids=SEEDED.keys())


def linear_task(n: int = 300, m: int = 5, d: int = 3, seed: int = 0):
    """Rank by a fixed linear utility."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m, d))
    return X, ranks_from_scores(X @ [2.0, -1.0, 0.5][:d])


@every_baseline
def test_fit_predict_and_score_are_those_of_ranker(model):
    X, ranks = linear_task()
    with pytest.raises(NotFittedError, match="call fit"):
        clone(model).predict(X)
    fitted = clone(model).fit(X, ranks)
    assert fitted.predict(X).shape == (300, 5)
    assert isinstance(fitted.predict([X[0], X[1][:3]]), list)
    assert fitted.predict_scores(Sets.of(X)).shape == (1500,)
    assert 0 <= fitted.score(X, ranks) <= 1
    assert fitted.score(Sets.of(X, ranks)) == fitted.score(X, ranks)
    with pytest.raises(ShapeError, match="fitted on 3 features"):
        fitted.predict(X[..., :2])
    with pytest.raises(DataError, match="nothing to learn"):
        clone(model).fit(X, ranks * 0)


@every_baseline
def test_the_same_data_gives_the_same_model_to_the_bit(model):
    X, ranks = linear_task()
    a, b = (clone(model).fit(X, ranks).predict_scores(X) for _ in range(2))
    assert np.array_equal(a, b)
    assert np.array_equal(pickle.loads(pickle.dumps(clone(model).fit(X, ranks))).predict_scores(X), a)  # noqa: S301


@every_baseline
def test_ragged_sets_ties_unranked_objects_weights_and_situations_are_taken(model):
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=(size, 2)) for size in rng.integers(1, 7, size=80)]
    ranks = [np.round(rng.random(len(p)) * 3) for p in parts]
    ranks[3][0] = np.nan
    ranks[4][:] = -1
    fitted = clone(model).fit(parts, ranks, situation=rng.normal(size=(80, 1)), sample_weight=rng.random(80))
    assert np.isfinite(np.concatenate(fitted.predict_scores(parts, situation=np.zeros((80, 1))))).all()


@every_baseline
def test_cross_validation_and_search_work(model):
    X, ranks = linear_task(60)
    assert np.isfinite(cross_val_score(clone(model), X, ranks, cv=3)).all()
    name, value = next(iter(model.get_params().items()))
    GridSearchCV(clone(model), {name: [value]}, cv=2).fit(Sets.of(X, ranks))


@pytest.mark.parametrize("name", sorted(set(SEEDED) - {"Random"}))
def test_scores_follow_their_objects_and_ignore_their_company(name):
    X, ranks = linear_task()
    fitted = clone(SEEDED[name]).fit(X, ranks)
    scores = fitted.predict_scores(X)
    assert np.array_equal(fitted.predict_scores(X[:, ::-1]), scores[:, ::-1])
    np.testing.assert_allclose(fitted.predict_scores(X[:, :2]), scores[:, :2])


@pytest.mark.parametrize(
    ("name", "least"), [("ERR", 0.99), ("RankSVM", 0.99), ("RankBoost", 0.9), ("LambdaMART", 0.9)]
)
def test_a_linear_utility_is_learnt(name, least):
    X, ranks = linear_task(1000)
    test = linear_task(500, seed=1)
    assert MODELS[name](0).fit(X, ranks).score(*test) > least


@pytest.mark.parametrize("name", ["RankBoost", "LambdaMART"])
def test_thresholds_and_trees_learn_what_no_line_can(name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 5, 2))
    ranks = ranks_from_scores(-np.abs(X[..., 0]))
    assert MODELS[name](0).fit(X, ranks).score(X, ranks) > 0.9
    assert abs(MODELS["ERR"](0).fit(X, ranks).score(X, ranks) - 0.5) < 0.05


def test_linear_models_are_worth_nothing_on_the_medoid_task():
    train, test = make_medoid(3000, random_state=0), make_medoid(3000, random_state=1)
    for name in ("ERR", "RankSVM", "Random"):
        assert MODELS[name](0).fit(*train).score(*test) == pytest.approx(0.5, abs=0.02)


def test_places_worked_by_hand():
    sets = Sets.from_list([np.zeros((5, 1)), np.zeros((2, 1))], [[7, 3, np.nan, 3, 9], [1, 0]])
    place, ranked = places(sets)
    np.testing.assert_array_equal(place, [2, 0.5, np.nan, 0.5, 3, 1, 0])
    assert ranked.tolist() == [4, 4, 4, 4, 4, 2, 2]


def test_expected_rank_regression_fits_expected_ranks():
    # two objects of a set of two stand at 1/3 and 2/3 of the whole; the slope over 2 units is 1/3
    sets = Sets.from_list([[[1.0], [-1.0]]] * 2, [[0, 1]] * 2)
    scores = ExpectedRankRegression(alpha=0.0).fit(sets).predict_scores(sets)
    np.testing.assert_allclose(scores, [-1 / 3, -2 / 3] * 2)


def brute_force_rank_boost(
    X: np.ndarray, ranks: np.ndarray, thresholds: list[np.ndarray], rounds: int
) -> np.ndarray:
    """RankBoost with every loop written out: scores of all objects."""
    flat = X.reshape(-1, X.shape[2])
    m = X.shape[1]
    pairs = [
        (s * m + i, s * m + j)
        for s in range(len(X))
        for i in range(m)
        for j in range(m)
        if ranks[s, i] < ranks[s, j]
    ]
    D = np.full(len(pairs), 1 / len(pairs))
    scores = np.zeros(len(flat))
    for _ in range(rounds):
        best = (0.0, None)
        for f, cuts in enumerate(thresholds):
            for cut in cuts:
                h = (flat[:, f] > cut).astype(float)
                r = sum(w * (h[i] - h[j]) for w, (i, j) in zip(D, pairs, strict=True))
                if abs(r) > abs(best[0]) + 1e-13:
                    best = (r, h)
        r, h = best
        alpha = 0.5 * np.log((1 + r) / (1 - r))
        scores += alpha * h
        D *= [np.exp(alpha * (h[j] - h[i])) for i, j in pairs]
        D /= D.sum()
    return scores


def test_rank_boost_equals_the_loops_written_out():
    X, ranks = linear_task(n=12, m=4, d=2)
    model = RankBoost(rounds=6, bins=6).fit(X, ranks)
    expected = brute_force_rank_boost(X, ranks, model.thresholds_, 6)
    np.testing.assert_allclose(model.predict_scores(X).reshape(-1), expected, atol=1e-9)


def test_all_pairs_of_different_rank_are_found():
    sets = Sets.from_list([np.zeros((3, 1)), np.zeros((4, 1))], [[0, 1, 1], [2, np.nan, 0, 1]])
    better, worse, owner = ordered_pairs(sets, at_most=100, rng=np.random.default_rng(0))
    found = sorted(zip(better.tolist(), worse.tolist(), owner.tolist(), strict=True))
    assert found == [(0, 1, 0), (0, 2, 0), (5, 3, 1), (5, 6, 1), (6, 3, 1)]


def test_drawn_pairs_are_each_as_likely():
    sets = Sets.from_list([np.zeros((3, 1)), np.zeros((5, 1))], [np.arange(3), np.arange(5)])
    twenty = [ordered_pairs(sets, at_most=12, rng=np.random.default_rng(s)) for s in range(3000)]
    better, worse = (np.concatenate([draw[k] for draw in twenty]) for k in (0, 1))
    codes, counts = np.unique(better * 10 + worse, return_counts=True)
    assert len(codes) == 3 + 10
    assert (better < worse).all()
    np.testing.assert_allclose(counts / len(better), 1 / 13, atol=0.01)


def test_a_support_vector_machine_is_that_of_liblinear():
    X, ranks = linear_task(60)
    noisy = np.random.default_rng(0).permuted(ranks[:20], axis=1)
    sets = Sets.of(X, np.concatenate([noisy, ranks[20:]]))
    weights = np.random.default_rng(1).random(60)
    model = RankSVM(C=0.3).fit(sets, sample_weight=weights)
    better, worse, owner = ordered_pairs(sets, at_most=10**6, rng=np.random.default_rng(0))
    Z = (sets.objects - model.mean_) / model.scale_
    sign = np.where(np.arange(len(better)) % 2, 1.0, -1.0)
    exact = LinearSVC(C=0.3, dual=False, fit_intercept=False, tol=1e-10)
    exact.fit((Z[better] - Z[worse]) * sign[:, None], sign, sample_weight=weights[owner] / weights.mean())
    np.testing.assert_allclose(model.coef_, exact.coef_[0], rtol=1e-4)
    assert model.converged_


def test_a_linear_ranker_is_a_logistic_regression_of_pairs():
    X, ranks = linear_task(60)
    sets = Sets.of(X, np.random.default_rng(0).permuted(ranks, axis=1))
    model = LinearRanker(l2=2.0).fit(sets)
    better, worse, owner = ordered_pairs(sets, at_most=10**6, rng=np.random.default_rng(0))
    Z = (sets.objects - model.mean_) / model.scale_
    sign = np.where(np.arange(len(better)) % 2, 1.0, -1.0)
    exact = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-10)
    exact.fit((Z[better] - Z[worse]) * sign[:, None], sign, sample_weight=1 / np.bincount(owner)[owner])
    np.testing.assert_allclose(model.coef_, exact.coef_[0], atol=1e-5)


def test_the_penalty_is_large_where_there_is_only_noise_and_small_where_there_is_none():
    X, ranks = linear_task(60)
    noise = np.random.default_rng(3).permuted(ranks, axis=1)
    assert LinearRanker().fit(X, ranks).l2_ < LinearRanker().fit(X, noise).l2_
    assert LinearRanker().fit(X[:10], ranks[:10]).l2_ == 10.0


@pytest.mark.parametrize("model", [RankSVM(), LinearRanker()], ids=["RankSVM", "LinearRanker"])
def test_a_time_limit_leaves_a_linear_model_of_one_step(model):
    X, ranks = linear_task(60)
    with time_limit(0):
        fitted = clone(model).fit(X, ranks)
    assert not fitted.converged_
    assert fitted.score(X, ranks) > 0.9


def test_one_pair_is_enough_for_a_support_vector_machine():
    model = RankSVM().fit([[[1.0], [0.0]]], [[0, 1]])
    assert model.predict([[[5.0], [2.0], [9.0]]])[0].tolist() == [1, 2, 0]


def test_the_registry_has_every_model_of_the_papers_table():
    assert set(read_claims("table1")["models"]) <= set(MODELS)
    for name in MODELS:
        assert MODELS[name](3).get_params() is not None


def test_lambda_mart_without_lightgbm_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "lightgbm", None)
    with pytest.raises(UserError, match=r"entourage\[boost\]"):
        LambdaMART().fit(*linear_task(20))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (RankSVM(C=0), "C needs a number above 0"),
        (LinearRanker("best"), "l2"),
        (RankBoost(rounds=0), "rounds"),
        (RankBoost(bins=1), "bins"),
        (ExpectedRankRegression(alpha=-1), "alpha"),
    ],
)
def test_wrong_parameters_say_what_is_needed(model, message):
    with pytest.raises(ParameterError, match=message):
        model.fit(*linear_task(20))


def test_baselines_are_abstract_or_final():
    assert all(isinstance(model, Baseline) for model in SEEDED.values())
    with pytest.raises(TypeError):
        Baseline()
