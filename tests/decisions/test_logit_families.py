"""Decisions from every family of logits, and from tables with text before the price."""

import numpy as np
import pandas as pd
import pytest

from entourage import load
from entourage.choice import (
    CrossNestedLogit,
    LatentClassLogit,
    LinearContextLogit,
    MixedLogit,
    MultinomialLogit,
    NestedLogit,
    RandomRegret,
)
from entourage.data import Sets
from entourage.decisions import (
    Market,
    best_assortment,
    best_prices,
    elasticities,
    what_if,
    willingness_to_pay,
)
from entourage.errors import DataError, ParameterError

N = 300
MODES = ["bus", "car", "rail", "tram"]
ROLES = {"set_id": "trip", "target": "taken"}
NESTS = [["bus", "tram"], ["car", "rail"]]


def trips():
    rng = np.random.default_rng(0)
    comfort, price = rng.normal(size=(N, 4)), rng.uniform(1, 5, size=(N, 4))
    u = np.array([0.0, 1.0, 0.5, 0.2]) + 0.6 * comfort - 0.8 * price
    taken = (u + rng.gumbel(size=(N, 4))).argmax(1)
    return pd.DataFrame(
        {
            "trip": np.repeat(np.arange(N), 4),
            "mode": np.tile(MODES, N),
            "colour": np.tile(["red", "blue"], 2 * N)[rng.permutation(4 * N)],
            "price": price.ravel(),
            "comfort": comfort.ravel(),
            "taken": (np.arange(4) == taken[:, None]).ravel().astype(int),
        }
    ).sample(frac=1, random_state=0, ignore_index=True)


TABLE = trips()
SOME = TABLE[TABLE.trip < 6]
FAMILIES = {
    "multinomial": MultinomialLogit(),
    "nested": NestedLogit(NESTS, alternative="mode"),
    "cross-nested": CrossNestedLogit(
        [["bus", "tram"], ["tram", "car", "rail"]], alternative="mode", allocation="equal"
    ),
    "mixed": MixedLogit(["comfort"], draws=30),
    "lognormal": MixedLogit({"price": "-lognormal", "comfort": ("normal", 0.5, 0.2)}, draws=30),
    "latent": LatentClassLogit(2, restarts=1, l2=1.0),
    "regret": RandomRegret(),
    "linear context": LinearContextLogit(l2=1.0),
}
FITTED = {}


def fitted(name):
    if name not in FITTED:
        FITTED[name] = FAMILIES[name].fit(TABLE, **ROLES)
    return FITTED[name]


def coefficient(model, name):
    return model.coef_[model.parameter_names_.index(name)]


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_is_a_market(name, tmp_path):
    model = fitted(name)
    market = Market(model)
    sets = market.sets_of(SOME)
    p = market.probabilities(sets).reshape(6, 4)
    np.testing.assert_allclose(p.sum(1), 1)
    place, step = market.place_of("price"), 1e-4
    found = market.gradient(sets, "price")
    for j in range(4):
        sides = []
        for sign in (1, -1):
            objects = np.array(sets.objects, dtype=np.float64)
            objects[j::4, place] += sign * step
            sides.append(market.probabilities(Sets(objects, sets.offsets)).reshape(6, 4))
        np.testing.assert_allclose(np.stack(found)[:, :, j], (sides[0] - sides[1]) / (2 * step), atol=1e-6)
    draws = market.draws(20)
    spread = np.stack([one.probabilities(sets) for one in draws]).std(0)
    assert (spread > 0).all()
    assert spread.max() < 0.3
    model.save(tmp_path / "m.entourage")
    again = Market(load(tmp_path / "m.entourage"))
    np.testing.assert_allclose(again.probabilities(sets), p.ravel())
    np.testing.assert_allclose(np.stack(again.gradient(sets, "price")), np.stack(found), atol=1e-9)
    if again.logsum_problem is None:
        np.testing.assert_allclose(again.logsum(sets), market.logsum(sets))
    found = elasticities(model, SOME, feature="price", draws=20)
    assert found.estimate.low <= found.estimate.value <= found.estimate.high < 0


@pytest.mark.parametrize("name", ["multinomial", "nested", "cross-nested", "mixed", "lognormal", "latent"])
def test_the_slope_of_a_logsum_is_the_probability_times_the_marginal_utility(name):
    market = Market(fitted(name))
    sets = market.sets_of(SOME)
    place, base = market.place_of("comfort"), market.sets_of(SOME).objects.astype(np.float64)
    sides = []
    for sign in (1, -1):
        objects = base.copy()
        objects[::4, place] += sign * 1e-4
        sides.append(market.logsum(Sets(objects, sets.offsets)))
    slope = (sides[0] - sides[1]) / 2e-4
    model = market.model
    if name in ("multinomial", "nested", "cross-nested"):
        expected = coefficient(model, "comfort") * market.probabilities(sets)[::4]
    else:  # the mean over classes, or over draws
        seen, at = np.delete(sets.objects, model.dropped_, axis=1), model.column_names.index("comfort")
        if name == "latent":
            b, shares = model.class_coefficients_, model.class_shares_
        else:
            full = model._full(model.theta_)
            b = np.tile(full[: seen.shape[1]], (model.draws, 1))
            b[:, model.columns_] = model._coefficients(full, model._halton(1))[0]
            shares = np.full(model.draws, 1 / model.draws)
        powers = np.exp(seen @ b.T).reshape(6, 4, -1)
        expected = (b[:, at] * powers[:, 0] / powers.sum(1)) @ shares
    np.testing.assert_allclose(slope, expected, atol=1e-6)


@pytest.mark.parametrize("name", ["multinomial", "nested", "cross-nested", "mixed"])
def test_a_price_for_everybody_costs_as_much_as_it_is(name):
    found = what_if(fitted(name), SOME, intervals="none", change="price+=1", cost="price")
    np.testing.assert_allclose(found.money_by_set.value, -1, atol=1e-6)
    np.testing.assert_allclose(found.after.value, found.before.value, atol=1e-9)


@pytest.mark.parametrize("name", ["regret", "linear context"])
def test_where_utilities_depend_on_others_there_is_no_logsum(name):
    model = fitted(name)
    assert "depend on the other objects" in Market(model).logsum_problem
    assert what_if(model, SOME, intervals="none", change="price*=1.1").surplus is None
    with pytest.raises(ParameterError, match="depend on the other"):
        model.logsum(SOME)
    with pytest.raises(ParameterError, match="leave cost out"):
        what_if(model, SOME, intervals="none", change="price*=1.1", cost="price")
    assert model.linear_place(Market(model).place_of("price")) is None


@pytest.mark.parametrize(
    ("name", "reason"), [("latent", "That of each class is another"), ("lognormal", "is random")]
)
def test_money_needs_one_coefficient_of_cost(name, reason):
    with pytest.raises(ParameterError, match=f"no fixed coefficient of 'price'.*{reason}"):
        what_if(fitted(name), SOME, intervals="none", change="price*=1.1", cost="price")


def test_classes_whose_shares_depend_on_the_situation_have_no_logsum():
    rng = np.random.default_rng(1)
    X, z = rng.normal(size=(200, 3, 1)), rng.normal(size=(200, 1))
    y = ((np.where(z > 0, 2.0, -2.0) * X[..., 0]) + rng.gumbel(size=(200, 3))).argmax(1)
    model = LatentClassLogit(2, restarts=1, l2=1.0).fit(X, y, situation=z)
    market = Market(model)
    sets = market.sets_of(X[:5], situation=z[:5])
    assert len(market.gradient(sets, 0)) == 5
    with pytest.raises(ParameterError, match="shares of classes differ between situations"):
        market.logsum(sets)
    assert what_if(model, X[:5], situation=z[:5], change="x0+=1", intervals="none").surplus is None


def test_closed_forms_of_a_logit_use_the_coefficient_of_price_behind_text():
    model = fitted("multinomial")
    b, market = coefficient(model, "price"), Market(model)
    assert model.linear_place(market.place_of("price")) == market.place_of("price") - 2  # two base levels
    sets = market.sets_of(SOME)
    p = market.probabilities(sets).reshape(6, 4)
    for own, q in zip(market.gradient(sets, "price"), p, strict=True):
        np.testing.assert_allclose(own, b * (np.diag(q) - np.outer(q, q)), atol=1e-12)
    for place in model.dropped_:  # a base level has the coefficient 0
        assert not np.stack(market.gradient(sets, int(place))).any()
    own = TABLE[TABLE.trip == 0]
    found = best_prices(
        model, own, price="price", cost=1.0, own=own["mode"].to_numpy() != "car", bounds=(0.0, 50.0)
    )
    markups = found.prices[own["mode"].to_numpy() != "car"] - 1.0
    offered = own.assign(price=found.prices)
    share = model.predict_proba(offered)[own["mode"].to_numpy() != "car"].sum()
    np.testing.assert_allclose(markups, -1 / (b * (1 - share)), atol=1e-6)


@pytest.mark.parametrize("name", ["multinomial", "nested", "cross-nested"])
def test_willingness_to_pay_is_the_ratio_of_the_two_coefficients(name):
    model = fitted(name)
    found = willingness_to_pay(model, SOME, feature="comfort", cost="price")
    expected = -coefficient(model, "comfort") / coefficient(model, "price")
    assert found.estimate.value == pytest.approx(expected, abs=1e-9)
    assert found.estimate.method == "delta method"
    others = willingness_to_pay(model, SOME, feature="comfort", cost="price", intervals="draws", draws=20)
    assert others.estimate.value == pytest.approx(expected, rel=1e-3)


def test_nested_elasticities_of_a_named_alternative_equal_the_closed_form():
    model = fitted("nested")
    b, table = coefficient(model, "price"), SOME.sort_values(["trip", "mode"], ignore_index=True)
    p, price = model.predict_proba(table).reshape(6, 4), table["price"].to_numpy().reshape(6, 4)
    nest = np.array([0, 1, 1, 0])
    together = nest[:, None] == nest
    more = (1 / model.dissimilarities_ - 1)[nest]
    share = p + more * p / (p @ together)
    expected = (b * price)[:, None, :] * (
        np.eye(4) * (1 + more) - np.where(together, share[:, None, :], p[:, None, :])
    )
    found = elasticities(model, table, feature="price", intervals="none")
    np.testing.assert_allclose(np.stack(found.cross), expected, atol=1e-6)


def test_a_numbered_alternative_that_is_named_cannot_be_moved():
    table = TABLE.assign(mode=TABLE["mode"].map({one: i + 1 for i, one in enumerate(MODES)}))
    model = NestedLogit([[1, 4]], alternative="mode").fit(table, **ROLES)
    with pytest.raises(DataError, match="ids of alternatives"):
        elasticities(model, table, feature="mode")


def test_the_assortment_of_a_nested_logit_with_named_alternatives_equals_brute_force():
    model = fitted("nested")
    own = TABLE[TABLE.trip == 1].drop(columns=["taken"])
    settings = {"value": "price", "required": [0], "intervals": "none"}
    exact = best_assortment(model, own, **settings)
    every = best_assortment(model, own, method="enumeration", **settings)
    assert exact.value == pytest.approx(every.value, abs=1e-9)
    assert exact.objects.tolist() == every.objects.tolist()
