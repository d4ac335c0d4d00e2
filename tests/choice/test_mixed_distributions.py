"""Distributions of random coefficients: signs, shapes, correlation, fixed ones, people who are known."""

import numpy as np
import pandas as pd
import pytest
from logit_cases import check_gradient, ragged
from scipy.stats import triang

from entourage import load
from entourage.choice import MixedLogit, MultinomialLogit
from entourage.choice.distributions import law_of
from entourage.errors import ModelFileError, ParameterError


def centred_uniform(u):
    return np.sqrt(12) * (u - 0.5)


CASES = {
    "correlated": ({0: "normal", 1: "-lognormal", 2: "lognormal"}, True, 9),
    "shapes": ({0: "triangular", 1: "uniform", 2: ("normal", 0.5, 1.0)}, False, 4),
    "some": ({0: centred_uniform, 1: "normal", 2: "normal"}, [1, 2], 7),
}


@pytest.mark.parametrize("case", CASES)
def test_gradients_are_derivatives(case):
    random, correlated, parameters = CASES[case]
    rng = np.random.default_rng(0)
    X = ragged(rng)
    who = np.unique(rng.integers(0, 12, len(X)), return_inverse=True)[1]
    model = MixedLogit(random, correlated=correlated, draws=7)
    sets = model.task.sets_of(X, [rng.integers(len(x)) for x in X])
    check_gradient(model, sets, who, 0.7 * rng.normal(size=parameters))


def test_draws_have_the_shape_they_are_named_by():
    u = (np.arange(10_000) + 0.5) / 10_000
    triangle = law_of("triangular").draws(u)
    assert triangle == pytest.approx(triang(0.5, loc=-1, scale=2).ppf(u))
    assert law_of("uniform").draws(u).var() == pytest.approx(1 / 3, abs=1e-4)
    assert law_of("normal").draws(u).var() == pytest.approx(1, abs=1e-2)
    assert (law_of("-lognormal").coefficients(np.array([0.0, 1.0])) == [-1, -np.e]).all()


def panel(seed, people=150, each=6):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(people * each, 3, 2))
    factor = np.array([[1.0, 0.0], [0.8, 0.6]])
    taste = [1.0, -1.0] + rng.normal(size=(people, 2)) @ factor.T
    who = np.repeat(np.arange(people), each)
    y = ((X * taste[who][:, None]).sum(2) + rng.gumbel(size=X.shape[:2])).argmax(1)
    return X, y, who, taste


@pytest.fixture(scope="module")
def fitted():
    X, y, who, taste = panel(0)
    return MixedLogit([0, 1], correlated=True, draws=60).fit(X, y, groups=who), X, y, who, taste


def test_correlated_coefficients_are_found(fitted):
    model, *_ = fitted
    truth = [1.0, -1.0, 1.0, 1.0, 0.8]
    assert model.parameter_names_[-1] == "correlation of x0 and x1"
    assert (np.abs(model.coef_ - truth) < 3.5 * model.standard_errors_).all()
    assert model.correlations_[0, 1] == pytest.approx(model.coef_[-1])
    assert model.standard_deviations_ == pytest.approx(model.coef_[2:4])


def test_people_have_coefficients_of_their_own(fitted, tmp_path):
    model, X, y, who, taste = fitted
    own = model.individual_coefficients_
    assert own.shape == (150, 2)
    assert min(np.corrcoef(own[:, k], taste[:, k])[0, 1] for k in range(2)) > 0.6
    assert own.mean(0) == pytest.approx(model.means_, abs=0.1)  # posterior means average to the population's
    known, new = (model.predict_proba(X, **given) for given in ({"people": who}, {}))
    rows = np.arange(len(X))
    assert np.log(known[rows, y]).mean() > np.log(new[rows, y]).mean() + 0.1
    model.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert np.array_equal(loaded.predict_proba(X, people=who), known)
    assert np.array_equal(loaded.individual_coefficients_, own)


def test_a_person_is_predicted_by_draws_weighed_with_their_choices(fitted):
    model, X, y, who, _ = fitted
    draws = model._coefficients(model._full(model.theta_), model._halton(150))[3]  # of person 3, (r, 2)
    powers = np.exp(np.einsum("imk,rk->imr", X[who == 3], draws))
    p = powers / powers.sum(1, keepdims=True)
    weights = np.prod([p[t, c] for t, c in enumerate(y[who == 3])], axis=0)
    expected = np.exp(X[0] @ draws.T)
    expected = (expected / expected.sum(0)) @ (weights / weights.sum())
    assert model.predict_proba(X[:1], people=[3])[0] == pytest.approx(expected)


def test_fixed_distributions_are_kept_and_said(tmp_path):
    X, y, who, _ = panel(1, 60)
    model = MixedLogit({0: ("normal", 1.0, 1.0), 1: "normal"}, draws=30).fit(X, y, groups=who)
    assert model.parameter_names_ == ["mean of x1", "sd of x1"]
    assert model.means_[0] == model.standard_deviations_[0] == 1.0
    assert "The coefficient of x0 is normal with 1 and 1, not estimated." in model.summary()
    model.save(tmp_path / "m")
    assert np.array_equal(load(tmp_path / "m").predict_proba(X), model.predict_proba(X))
    point = MixedLogit({0: ("normal", 0.7, 0.0), 1: ("normal", -0.7, 0.0)}, draws=3)
    with pytest.raises(ParameterError, match="distribution is one of"):
        MixedLogit({0: ("normal", 1.0)}).fit(X, y)
    p = np.exp(X[0] @ [0.7, -0.7])
    assert point.fit(X, y).predict_proba(X[:1])[0] == pytest.approx(p / p.sum())


def test_a_distribution_of_ones_own_is_not_written(tmp_path):
    X, y, who, _ = panel(2, 40)
    model = MixedLogit({0: centred_uniform}, draws=20).fit(X, y, groups=who)
    with pytest.raises(ModelFileError, match="holds no code"):
        model.save(tmp_path / "m")
    assert model.parameter_names_ == ["mean of x0", "x1", "spread of x0"]


def test_names_of_a_table_and_all_columns_can_be_random():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"set": np.repeat(np.arange(200), 3), "kind": np.tile(["a", "b", "c"], 200)})
    frame["price"], frame["who"] = rng.normal(size=600), np.repeat([f"p{i}" for i in range(40)], 15)
    taste = np.repeat(rng.normal(-1, 1, size=40), 15)
    u = taste * frame["price"] + rng.gumbel(size=600)
    frame["taken"] = (u == u.groupby(frame["set"]).transform("max")).astype(int)
    roles = {"set_id": "set", "target": "taken", "groups": "who"}
    model = MixedLogit({"price": "normal"}, draws=30).fit(frame, **roles)
    assert model.parameter_names_ == ["kind=b", "kind=c", "mean of price", "sd of price"]
    shuffled = frame.sample(frac=1, random_state=0)
    again = MixedLogit({"price": "normal"}, draws=30).fit(shuffled, **roles)
    assert again.log_likelihood_ == pytest.approx(model.log_likelihood_)
    found = model.predict_proba(shuffled, people="who")
    assert found == pytest.approx(model.predict_proba(frame, people="who")[shuffled.index])
    every = MixedLogit("all", draws=5)
    every.fit(frame.head(300), **roles)
    assert every.columns_.tolist() == [0, 1, 2]
    with pytest.raises(ParameterError, match="did you mean 'price'"):
        MixedLogit(["prize"]).fit(frame, **roles)


def test_correlation_needs_two_normal_coefficients():
    X, y, _, _ = panel(5, 20)
    with pytest.raises(ParameterError, match="correlated needs two random coefficients"):
        MixedLogit([0], correlated=True).fit(X, y)
    with pytest.raises(ParameterError, match="x1, whose coefficient is not normal"):
        MixedLogit({0: "normal", 1: "uniform"}, correlated=[0, 1]).fit(X, y)
    some = MixedLogit(np.array([0, 1]), correlated=np.array([0, 1]), draws=5)
    assert some.fit(X, y, groups=np.arange(len(X)) // 6).correlations_.shape == (2, 2)


def test_without_a_spread_it_is_a_logit():
    X, y, _, _ = panel(4, 40)
    mixed = MixedLogit({0: ("normal", 0.0, 0.0)}, draws=2).fit(X, y)
    assert mixed.coef_ == pytest.approx(MultinomialLogit().fit(X[..., 1:], y).coef_)
