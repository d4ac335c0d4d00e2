"""Willingness to pay and demand curves: ratios of coefficients, the delta method, and nets per object."""

import numpy as np
import pyarrow as pa
import pytest
from data_files import real
from scipy.special import ndtri, softmax

from entourage import ContextFree, DiscreteChooser, load
from entourage.choice import MixedLogit, MultinomialLogit, NestedLogit
from entourage.decisions import demand_curve, refit_people, value_of_time, willingness_to_pay
from entourage.errors import DataError, ParameterError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3, 3))
Y = (X @ [1.0, -2.0, 0.0] + RNG.gumbel(size=(400, 3))).argmax(1)


@pytest.fixture(scope="module")
def logit():
    return MultinomialLogit().fit(X, Y)


def test_a_linear_utility_has_the_ratio_of_coefficients_with_its_delta_interval(logit):
    found = willingness_to_pay(logit, X, 0, cost=1)
    (b, c), v = logit.coef_[:2], logit.covariance_[:2, :2]
    ratio = -b / c
    slope = np.array([-1 / c, b / c**2])
    half = ndtri(0.975) * np.sqrt(slope @ v @ slope)
    assert found.estimate.method == "delta method"
    assert found.estimate.value == pytest.approx(ratio, abs=1e-9)
    assert (found.estimate.low, found.estimate.high) == pytest.approx((ratio - half, ratio + half), abs=1e-9)
    assert np.allclose(found.values, ratio, rtol=0, atol=1e-6)
    assert found.quantiles[0.5] == pytest.approx(ratio, abs=1e-6)
    hours = value_of_time(logit, X, 0, 1, units=60)
    assert hours.estimate.value == pytest.approx(-60 * ratio)
    assert hours.estimate.low < hours.estimate.value < hours.estimate.high


def test_nested_and_mixed_logits_have_it_too_and_draws_agree_with_delta(logit, tmp_path):
    ids = np.concatenate([np.tile([1.0, 2.0, 3.0], (400, 1))[..., None], X], axis=2)
    nested = NestedLogit([[1, 2]]).fit(ids, Y)
    found = willingness_to_pay(nested, ids, 1, cost=2)
    at = [nested.parameter_names_.index(name) for name in ("x1", "x2")]
    assert found.estimate.value == pytest.approx(-nested.coef_[at[0]] / nested.coef_[at[1]], abs=1e-9)
    assert np.allclose(found.values, found.estimate.value, rtol=0, atol=1e-6)
    nested.save(tmp_path / "nested")
    assert willingness_to_pay(load(tmp_path / "nested"), ids, 1, cost=2).estimate == found.estimate
    mixed = MixedLogit([2], draws=10).fit(X, Y)
    fixed = willingness_to_pay(mixed, X, 0, cost=1)
    assert fixed.estimate.value == pytest.approx(-mixed.coef_[0] / mixed.coef_[1], abs=1e-9)
    delta = willingness_to_pay(logit, X, 0, cost=1).estimate
    drawn = willingness_to_pay(logit, X, 0, cost=1, intervals="draws", draws=200).estimate
    assert (drawn.low, drawn.high) == pytest.approx((delta.low, delta.high), abs=0.03)
    refits = refit_people(MultinomialLogit(), X, Y, refits=4)
    assert willingness_to_pay(logit, X, 0, cost=1, refits=refits).estimate.method == "refits"


def test_a_cost_without_effect_identifies_nothing(logit):
    weak = MultinomialLogit().fit(X, Y)
    weak.theta_ = weak.coef_ = np.array([1.0, 1e-5, 0.5])
    found = willingness_to_pay(weak, X, 0, cost=1, intervals="none")
    assert found.unidentified == 1200
    assert np.isnan(found.values).all()
    assert "not identified for 1,200 of 1,200" in str(found)
    weak.theta_ = weak.coef_ = np.array([1.0, 2.0, 0.5])
    assert willingness_to_pay(weak, X, 0, cost=1, intervals="none").wrong_sign == 1200
    twice = X.copy()
    twice[..., 1] = 3.0  # never differs in a set
    with pytest.warns(UserWarning, match="Not identified"):
        flat = MultinomialLogit().fit(twice, Y)
    found = willingness_to_pay(flat, twice, 0, cost=1)
    assert np.isnan(found.estimate.value)
    assert found.unidentified == 1200
    with pytest.raises(ParameterError, match="same column"):
        willingness_to_pay(logit, X, 0, cost=0)


def test_a_net_that_learnt_a_linear_utility_has_its_ratio_object_by_object():
    linear = ContextFree(depth=0)
    raw = X * [1.0, 10.0, 1.0]  # the cost in other units
    model = DiscreteChooser(
        linear, steps=60, learning_rate=0.1, ema=None, members=2, validation=0, random_state=0
    )
    model.set_params(device="cpu").fit(raw, Y)
    found = willingness_to_pay(model, raw, 0, cost=1)
    assert np.ptp(found.values) < 1e-4 * abs(found.estimate.value)
    assert found.estimate.value == pytest.approx(5.0, abs=1.5)
    assert found.estimate.method == "members"
    assert found.to_frame().num_rows == 1200
    with pytest.raises(ParameterError, match="linear"):
        willingness_to_pay(model, raw, 0, cost=1, intervals="delta")


def test_a_demand_curve_is_the_mean_probability_with_the_column_set(logit):
    mask = np.tile([True, False, False], 400)
    found = demand_curve(logit, X, 1, [-1.0, 0.0, 2.5], where=mask)
    for value, share in zip([-1.0, 0.0, 2.5], found.share.value, strict=True):
        moved = X.copy()
        moved[:, 0, 1] = value
        assert share == pytest.approx(softmax(moved @ logit.coef_, axis=1)[:, 0].mean(), abs=1e-12)
    assert (np.diff(found.share.value) < 0).all()
    assert (found.share.low <= found.share.value).all()
    dearer = demand_curve(logit, X, 1, [0.0, 1.0], where=[0], change="shift", intervals="none")
    assert dearer.sets == 1
    assert dearer.share.value[0] == pytest.approx(logit.predict_proba(X)[0, 0])
    assert demand_curve(logit, X, 1, [99.0], intervals="none").beyond == 1
    with pytest.raises(DataError, match="no object"):
        demand_curve(logit, X, 1, [1.0], where=np.zeros(1200, dtype=bool))


def test_a_demand_curve_of_a_table_moves_the_rows_that_match():
    n = 80
    rng = np.random.default_rng(1)
    order = rng.permutation(3 * n)
    price = rng.uniform(1, 3, 3 * n)
    utility = (-price + np.tile([0.0, 1.0, 0.5], n) + rng.gumbel(size=3 * n)).reshape(n, 3)
    columns = {
        "trip": np.repeat(np.arange(n), 3),
        "brand": np.tile(["a", "b", "c"], n),
        "price": price,
        "picked": (utility == utility.max(1, keepdims=True)).astype(int).ravel(),
    }
    table = pa.table({name: values[order] for name, values in columns.items()})
    model = MultinomialLogit(l2=0.1).fit(table, set_id="trip", target="picked", target_kind="choice")
    found = demand_curve(model, table, "price", [1.0, 1.1], where='brand == "b"', change="factor")
    mine = np.asarray(table["brand"]) == "b"
    assert found.objects == n
    assert found.share.value[0] == pytest.approx(model.predict_proba(table)[mine].mean())
    dearer = table.set_column(2, "price", pa.array(np.where(mine, 1.1, 1.0) * np.asarray(table["price"])))
    assert found.share.value[1] == pytest.approx(model.predict_proba(dearer)[mine].mean())
    assert found.to_frame().column_names[:2] == ["price", "share"]


def test_the_value_of_time_on_swissmetro_is_that_of_the_published_coefficients():
    from benchmarks.real.swissmetro import load as load_swissmetro

    part = load_swissmetro(real("swissmetro").parent)
    sets = part.views["usual"]
    model = MultinomialLogit().fit(sets)
    assert model.log_likelihood_ == pytest.approx(-5331.252, abs=1e-3)
    found = value_of_time(
        model, sets, 0, 1, units=60
    )  # both columns are over 100: CHF a minute, then an hour
    published = 60 * -1.278 / -1.084
    assert found.estimate.value == pytest.approx(published, rel=1e-3)  # coefficients have three digits
    assert found.estimate.low < published < found.estimate.high
