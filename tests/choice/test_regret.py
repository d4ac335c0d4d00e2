"""Random regret: the formula by hand, μ, columns without regret, tables."""

import numpy as np
import pandas as pd
import pytest
from logit_cases import check_gradient, ragged

from entourage import load
from entourage.choice import MultinomialLogit, RandomRegret
from entourage.errors import ParameterError


def probabilities(x, b, mu=1.0):
    """Work out the formula, pair by pair."""
    regret = np.zeros(len(x))
    for i in range(len(x)):
        for j in range(len(x)):
            if i != j:
                regret[i] += sum(
                    mu * np.log(1 + np.exp(b[k] / mu * (x[j, k] - x[i, k]))) for k in range(len(b))
                )
    return np.exp(-regret) / np.exp(-regret).sum()


@pytest.fixture(scope="module")
def choices():
    rng = np.random.default_rng(0)
    X = ragged(rng, 800, 2)
    return X, np.array([rng.choice(len(x), p=probabilities(x, [0.8, -0.5])) for x in X])


@pytest.mark.parametrize(("scale", "linear"), [(1.0, None), (0.5, [1]), ("estimated", [0])])
def test_gradients_are_derivatives(scale, linear):
    rng = np.random.default_rng(1)
    X = ragged(rng)
    model = RandomRegret(scale=scale, linear=linear)
    sets = model.task.sets_of(X, [rng.integers(len(x)) for x in X])
    check_gradient(model, sets, np.arange(len(X)), rng.normal(size=3 + (scale == "estimated")))


def test_probabilities_are_the_formula_worked_by_hand_and_the_truth_is_found(choices):
    X, y = choices
    model = RandomRegret().fit(X, y)
    assert np.abs(model.coef_ - [0.8, -0.5]).max() < 3 * model.standard_errors_.max()
    for x, p in zip(X[:5], model.predict_proba(X[:5]), strict=True):
        assert p == pytest.approx(probabilities(x, model.coef_))
    free = RandomRegret(scale="estimated").fit(X, y)
    assert free.log_likelihood_ >= model.log_likelihood_ - 1e-6
    for x, p in zip(X[:5], free.predict_proba(X[:5]), strict=True):
        assert p == pytest.approx(probabilities(x, free.coef_[:2], free.scale_))


def test_a_large_scale_is_a_linear_logit(choices):
    X, y = choices
    X, y = [x for x in X if len(x) == 3], y[[len(x) == 3 for x in X]]
    regret, logit = RandomRegret(scale=1e4).fit(X, y), MultinomialLogit().fit(X, y)
    assert regret.log_likelihood_ == pytest.approx(logit.log_likelihood_, abs=1e-3)
    assert regret.coef_ * 3 / 2 == pytest.approx(logit.coef_, rel=1e-3)


def test_columns_without_regret_are_a_linear_logit(choices):
    X, y = choices
    regret, logit = RandomRegret(linear=[0, 1]).fit(X, y), MultinomialLogit().fit(X, y)
    assert regret.coef_ == pytest.approx(logit.coef_, abs=1e-6)
    assert "Without regret" in regret.summary()


def test_an_offset_changes_nothing(choices):
    X, y = choices
    far = RandomRegret().fit([x + 1e6 for x in X], y)
    assert far.coef_ == pytest.approx(RandomRegret().fit(X, y).coef_, rel=1e-5)


def test_categories_of_a_table_have_a_base_and_no_regret(tmp_path):
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"set": np.repeat(np.arange(300), 3), "mode": np.tile(["car", "bus", "rail"], 300)})
    frame["price"] = rng.normal(size=900)
    u = frame["mode"].map({"car": 1.0, "bus": 0.0, "rail": 0.5}) - frame["price"] + rng.gumbel(size=900)
    frame["taken"] = (u == u.groupby(frame["set"]).transform("max")).astype(int)
    model = RandomRegret(base={"mode": "bus"}).fit(frame, set_id="set", target="taken")
    assert model.parameter_names_ == ["mode=car", "mode=rail", "price"]
    assert model.linear_.tolist() == [True, True, False]
    model.save(tmp_path / "m")
    assert np.array_equal(load(tmp_path / "m").predict_proba(frame), model.predict_proba(frame))
    shuffled = frame.sample(frac=1, random_state=0)
    again = model.predict_proba(shuffled)
    assert again == pytest.approx(model.predict_proba(frame)[shuffled.index])


def test_a_scale_of_nothing_is_refused():
    with pytest.raises(ParameterError, match="scale needs a number above 0"):
        RandomRegret(scale=0).fit(np.zeros((2, 2, 1)), [0, 1])
