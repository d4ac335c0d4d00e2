"""Scenarios: sets that came from a table, sets that are emptied, codes of levels, and inputs that make no sense."""

import numpy as np
import pandas as pd
import pytest

from entourage import FATE, DiscreteChooser, SubsetChooser
from entourage.choice import MultinomialLogit
from entourage.decisions import (
    Market,
    audit,
    best_assortment,
    best_prices,
    demand_curve,
    elasticities,
    what_if,
    willingness_to_pay,
)
from entourage.errors import UserError

N = 120
RNG = np.random.default_rng(0)
X = RNG.uniform(1, 5, size=(N, 4, 2))
UTILITY = X @ [1.0, -1.0] + RNG.gumbel(size=(N, 4))
CHOSEN = UTILITY.argmax(1)
PLAIN = {"intervals": "none"}
QUICK = {"steps": 15, "validation": 0, "random_state": 0, "device": "cpu"}
MNL = MultinomialLogit().fit(X, CHOSEN)


def shop():
    """Choices among brands at prices of which some are missing, rows of sets out of order."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "visit": np.repeat(np.arange(N), 4),
            "brand": np.tile(list("abcd"), N),
            "price": np.where(rng.random(4 * N) < 0.1, np.nan, rng.uniform(1, 5, 4 * N)),
            "fresh": rng.random(4 * N) < 0.5,
            "bought": np.eye(4, dtype=int)[CHOSEN].ravel(),
        }
    )
    return frame.sample(frac=1, random_state=0, ignore_index=True)


SHOP = shop()
ROLES = {"set_id": "visit", "target": "bought", "features": ["brand", "price", "fresh"]}
TABLE_MODEL = MultinomialLogit().fit(SHOP, **ROLES)


@pytest.fixture(scope="module")
def with_outside():
    nothing = np.where(UTILITY.max(1) > 1, CHOSEN, -1)
    return DiscreteChooser(FATE(width=8), outside=True, **QUICK).fit(X, nothing)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ("price = 3", None),
        ("price *= 1.2", None),
        ("price += 1", "price > 2"),
        ("fresh = 1", "price is None"),
    ],
)
def test_sets_of_a_table_change_as_the_table_does_where_values_are_missing(change, where):
    given = Market(TABLE_MODEL).given(SHOP)
    of_table = what_if(
        TABLE_MODEL, SHOP, change=change.replace("fresh = 1", "fresh = True"), where=where, **PLAIN
    )
    of_sets = what_if(TABLE_MODEL, given.sets, change=change, where=where, **PLAIN)
    assert SHOP.price.isna().sum() > 20
    np.testing.assert_allclose(given.back(of_sets.after.value), of_table.after.value, atol=1e-12)
    if change == "price *= 1.2":
        column = {"price": lambda price: 1.2 * price}
        by_callable = what_if(TABLE_MODEL, given.sets, change=column, **PLAIN)
        np.testing.assert_allclose(by_callable.after.value, of_sets.after.value, atol=1e-12)


def test_sets_of_a_table_are_grouped_with_missing_values_apart():
    rounded = SHOP.assign(price=SHOP.price.round())
    sets = Market(TABLE_MODEL).sets_of(rounded)
    labels = [
        one.group for one in what_if(TABLE_MODEL, sets, change="price *= 2", by="price", **PLAIN).shifts
    ]
    assert labels[-1] == "missing"


def test_levels_of_a_category_are_changed_in_the_table_alone():
    sets = Market(TABLE_MODEL).sets_of(SHOP)
    for change in ("`brand=a` = 1", "`price is missing` = 1", {0: 1.0}):
        with pytest.raises(UserError, match="Pass the table"):
            what_if(TABLE_MODEL, sets, change=change)


def test_a_set_that_nothing_is_left_of_chooses_the_outside_option(with_outside):
    gone = np.zeros((N, 4), dtype=bool)
    gone[5], gone[7, :2] = True, True
    found = what_if(with_outside, X, remove=gone)
    market = Market(with_outside)
    nothing = market.outside(market.sets_of(X))
    after = nothing.copy()
    after[5] = 1.0
    after[7] = market.outside(market.sets_of(X[7:8, 2:]))[0]
    np.testing.assert_allclose(found.outside[1].value, after, atol=1e-6)
    assert found.surplus_by_set.value[5] == pytest.approx(
        np.log(nothing[5]), abs=1e-6
    )  # from -log P(nothing) to 0
    assert "Nothing is left of 1 sets" in found.notes[0]
    share = next(one for one in found.shifts if one.group == "outside option")
    assert share.after.value == pytest.approx(after.mean(), abs=1e-6)
    with pytest.raises(UserError, match="nothing of any set"):
        what_if(with_outside, X, remove=np.ones((N, 4), dtype=bool))


def test_a_table_with_emptied_sets_equals_its_sets():
    frame = SHOP.assign(bought=np.where(SHOP.visit % 4 == 0, 0, SHOP.bought))
    model = DiscreteChooser(FATE(width=8), outside=True, **QUICK).fit(frame, **ROLES)
    found = what_if(model, frame, remove="visit < 3 or price > 4")
    left = frame[~((frame.visit < 3) | (frame.price > 4))]
    market = Market(model)
    sets = market.given(left).sets
    assert {0, 1, 2} <= set(np.array(found.ids)[found.outside[1].value == 1.0])
    emptied = N - len(sets)
    mean = (market.outside(sets).sum() + emptied) / N
    assert found.outside[1].value.mean() == pytest.approx(mean, abs=1e-6)


def test_without_an_outside_option_an_empty_set_is_refused():
    with pytest.raises(UserError, match="no outside option: something is always chosen"):
        what_if(MNL, X, remove=np.arange(4 * N) < 4)


def test_codes_stay_codes():
    rng = np.random.default_rng(2)
    coded = X.copy()
    coded[..., 0] = rng.integers(1, 6, (N, 4))
    model = DiscreteChooser(FATE(width=8), categories=[(0, 5)], **QUICK).fit(coded, CHOSEN)
    found = what_if(model, coded, change="x0 = 2", where="x0 == 1")
    changed = (
        np.where(coded[..., :1] == 1, [[[2, 0]]], 0) + np.where(coded[..., :1] == 1, [[[0, 1]]], 1) * coded
    )
    np.testing.assert_allclose(found.after.value, Market(model).probabilities(Market(model).sets_of(changed)))
    for change in ("x0 = 2.5", "x0 = 6", "x0 = 0"):
        with pytest.raises(UserError, match="whole numbers from 1 to 5"):
            what_if(model, coded, change=change)
    with pytest.raises(UserError, match="whole numbers from 1 to 5"):
        what_if(model, coded, add=[9.0, 2.0])


def test_added_rows_join_the_types_of_the_table():
    row = {"brand": "a", "price": 2, "fresh": 1}
    same = what_if(TABLE_MODEL, SHOP, add=row | {"fresh": True, "price": 2.0}, **PLAIN)
    np.testing.assert_array_equal(what_if(TABLE_MODEL, SHOP, add=row, **PLAIN).after.value, same.after.value)
    np.testing.assert_array_equal(
        what_if(TABLE_MODEL, SHOP, add='brand="a"; price=2; fresh=1', **PLAIN).after.value, same.after.value
    )
    for name, odd in (("price", "cheap"), ("fresh", 2), ("fresh", "yes"), ("brand", 3)):
        with pytest.raises(UserError, match=f"{name}"):
            what_if(TABLE_MODEL, SHOP, add=row | {name: odd})


def test_a_negative_whole_number_is_the_coefficient_of_cost():
    found = what_if(MNL, X, change="x1 += 1", cost=-2, intervals="none")
    assert found.money.value == pytest.approx(found.surplus.value / 2)


def test_a_demand_curve_of_subsets_has_a_band_around_it():
    some = (UTILITY > 0).astype(int)
    model = SubsetChooser(FATE(width=8), members=2, **QUICK).fit(X, some)
    found = demand_curve(model, X, 1, [2.0, 3.0])
    assert (found.share.value > 1).all()  # several of four are chosen
    assert ((found.share.low <= found.share.value) & (found.share.value <= found.share.high)).all()


def test_a_column_that_is_1_everywhere_is_no_indicator():
    ones = X.copy()
    ones[..., 1] = 1.0
    found = elasticities(MNL, ones, 1, intervals="none")
    p = MNL.predict_proba(ones)
    assert found.kind == "elasticity"
    np.testing.assert_allclose(found.own, (MNL.coef_[1] * (1 - p)).ravel())
    checked = audit(MNL, ones, {1: 1}).signs[0]
    assert checked.range == pytest.approx((1.0, 1.1))
    assert checked.move.share == checked.monotone.share == checked.gradient.share == 1.0


def test_an_audit_of_nothing_does_not_pass():
    with pytest.raises(UserError, match="No object can be audited"):
        audit(MNL, X[:5, :1], {1: -1})


def test_weight_0_is_left_out_of_willingness_to_pay():
    """At a median and quantiles over objects, of which a net has another value for each."""
    net = DiscreteChooser(FATE(width=8), **QUICK).fit(X, CHOSEN)
    weights = (np.arange(N) % 3 > 0).astype(float)
    weighted = willingness_to_pay(net, X, 0, 1, sample_weight=weights)
    fewer = willingness_to_pay(net, X[weights > 0], 0, 1)
    assert weighted.estimate.value == pytest.approx(fewer.estimate.value, rel=1e-5)
    assert weighted.quantiles == pytest.approx(fewer.quantiles, rel=1e-5)
    twice = willingness_to_pay(net, X, 0, 1, sample_weight=1 + weights).estimate.value
    repeated = willingness_to_pay(net, np.concatenate([X, X[weights > 0]]), 0, 1).estimate.value
    assert twice == pytest.approx(repeated, rel=0.01)  # up to what is between two neighbours


def test_prices_beyond_the_bounds_are_named():
    found = best_prices(MNL, [[1.0, 2.0], [1.0, 8.0]], 1, bounds=(1, 3), own=[1], cost=0.5)
    assert "beyond the bounds" in found.notes[-1]


REFUSED = [
    (lambda: elasticities(MNL, X, 1, refits=[MNL]), "at least two models"),
    (lambda: best_assortment(MNL, X[0], [1, 2, 3, 4], forbidden=range(4)), "All objects are forbidden"),
    (lambda: what_if(MNL, X, remove="x1 > 100"), "matches no object"),
    (lambda: what_if(MNL, X, change={1: [1.0, 2.0]}), "one for each of 480 objects"),
    (lambda: what_if(MNL, X, change={1: lambda v: v[:3]}), "one for each of 480 objects"),
    (lambda: what_if(MNL, X, change={1: "dear"}), "needs one number"),
    (lambda: what_if(MNL, X, change={7: 1.0}), "below 2"),
    (lambda: what_if(MNL, X, change={"price": 1.0}), "no column 'price'"),
    (lambda: what_if(MNL, X, add="a"), "objects of 2 features"),
    (lambda: what_if(MNL, X, add=[1.0, np.nan]), "finite"),
    (lambda: what_if(MNL, X[..., :1], change="x0 = 1"), "fitted on 2 features"),
    (lambda: demand_curve(MNL, X, 1, "abc"), "finite numbers"),
    (lambda: demand_curve(MNL, X, 1, [1.0], where=0, sample_weight=np.arange(N)), "weight 0"),
    (lambda: best_assortment(MNL, "abc", [1.0]), "got str"),
    (lambda: best_assortment(MNL, [[1.0], [1.0, 2.0]], [1.0]), "several lengths"),
    (lambda: best_assortment(MNL, X[0], ["a", "b", "c", "d"]), "value needs numbers"),
    (lambda: best_assortment(MNL, np.full((2, 2), np.nan), [1.0, 2.0]), "must be finite"),
    (lambda: best_prices(MNL, X[0], 1, bounds=("a", 2)), "bounds needs numbers"),
    (
        lambda: best_prices(
            TABLE_MODEL, SHOP[SHOP.price.isna()].head(3).drop(columns="visit"), bounds=(1, 2)
        ),
        "missing",
    ),
    (lambda: audit(MNL, X, [1]), "maps columns"),
    (lambda: audit(MNL, X, {}, trade_offs=[0, 1]), "are pairs"),
]


@pytest.mark.parametrize(("call", "said"), REFUSED)
def test_what_makes_no_sense_is_refused_in_words(call, said):
    with pytest.raises(UserError, match=said):
        call()


def test_a_number_that_stands_for_a_missing_value_is_not_calculated_with():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"trip": np.repeat(np.arange(80), 3), "price": rng.uniform(1, 9, 240)})
    frame["taken"] = (frame.groupby("trip")["price"].rank() == 1).astype(int)
    frame.loc[::17, "price"] = -999.0
    model = MultinomialLogit(l2=1.0).fit(frame, set_id="trip", target="taken", missing=["-999"])
    empty = frame.assign(price=frame["price"].replace(-999.0, np.nan))
    change = {"change": "price*=1.1", "where": "price < 4", "intervals": "none"}
    marked, known = what_if(model, frame, **change), what_if(model, empty, **change)
    assert [one.change.value for one in marked.shifts] == [one.change.value for one in known.shifts]
