"""What if: closed forms of the logit, tables as arrays, context, the outside option, and refusals."""

import numpy as np
import pandas as pd
import pytest

from entourage import FATE, DiscreteChooser, Ranker, load
from entourage.choice import MultinomialLogit, NestedLogit
from entourage.data import Sets
from entourage.decisions import refit_people, what_if
from entourage.errors import UserError

RNG = np.random.default_rng(0)
N = 200


def table(n=N):
    """Choices of brands by price, the rows of the sets out of order."""
    rng = np.random.default_rng(1)
    price = rng.uniform(1, 5, size=(n, 3))
    utility = np.array([1.0, 0.0, 0.5]) - 0.8 * price
    chosen = (utility + rng.gumbel(size=(n, 3))).argmax(1)
    frame = pd.DataFrame(
        {
            "trip": np.repeat(np.arange(n), 3),
            "brand": np.tile(["x", "y", "z"], n),
            "price": price.ravel(),
            "segment": np.repeat(np.where(np.arange(n) % 2, "rich", "poor"), 3),
            "weight": np.repeat(1.0 + np.arange(n) % 3, 3),
            "bought": (np.arange(3) == chosen[:, None]).ravel().astype(int),
        }
    )
    return frame.sample(frac=1, random_state=0, ignore_index=True)


TABLE = table()
FEATURES = {"set_id": "trip", "target": "bought", "features": ["brand", "price"]}
MNL = MultinomialLogit().fit(TABLE, **FEATURES)


def probabilities(frame, model=MNL):
    return pd.Series(model.predict_proba(frame), frame.index)


def shares(found, by="role"):
    return {one.group: (one.before.value, one.after.value) for one in found.shifts if one.by == by}


def test_removal_moves_shares_proportionally_in_a_logit():
    found = what_if(MNL, TABLE, remove='brand=="x"', intervals="none")
    p = probabilities(TABLE)
    gone = p[TABLE.brand == "x"].groupby(TABLE.trip).sum()
    expected = p / (1 - TABLE.trip.map(gone))  # IIA
    left = (TABLE.brand != "x").to_numpy()
    np.testing.assert_allclose(found.after.value[left], expected[left], atol=1e-6)
    assert np.isnan(found.after.value[~left]).all()
    np.testing.assert_allclose(found.before.value, p, atol=1e-12)
    np.testing.assert_allclose(shares(found)["removed"], [p[~left].sum() / N, 0], atol=1e-9)


def test_surplus_is_the_difference_of_logsums_and_in_money_over_the_coefficient():
    found = what_if(MNL, TABLE, change="price*=1.1", where='brand=="x"', cost="price", intervals="none")
    names, coef = MNL.parameter_names_, MNL.coef_
    b = coef[names.index("price")]
    taste = TABLE.brand.map({one: coef[names.index(f"brand={one}")] if one != "x" else 0.0 for one in "xyz"})
    logsums = []
    for factor in (1.0, 1.1):
        price = TABLE.price * np.where(TABLE.brand == "x", factor, 1.0)
        logsums.append(np.log(np.exp(taste + b * price).groupby(TABLE.trip).sum()))
    change = (logsums[1] - logsums[0]).loc[found.ids].to_numpy()
    np.testing.assert_allclose(found.surplus_by_set.value, change, atol=1e-6)
    np.testing.assert_allclose(found.surplus.value, change.mean(), atol=1e-6)
    np.testing.assert_allclose(found.money.value, -change.mean() / b, atol=1e-6)


def test_a_price_for_everybody_costs_as_much_as_it_is():
    found = what_if(MNL, TABLE, change="price+=1", cost="price", intervals="none")
    np.testing.assert_allclose(found.money_by_set.value, -1, atol=1e-6)
    np.testing.assert_allclose(found.after.value, found.before.value, atol=1e-9)


def test_shares_by_brand_and_by_segment_are_weighted_means():
    found = what_if(
        MNL, TABLE, change="price=2", where='brand=="x"', by=["brand", "segment"], sample_weight="weight"
    )
    changed = TABLE.assign(price=TABLE.price.where(TABLE.brand != "x", 2.0))
    total = TABLE.weight.sum() / 3
    for side, frame in enumerate((TABLE, changed)):
        p = probabilities(frame) * TABLE.weight
        for brand in "xyz":
            expected = p[TABLE.brand == brand].sum() / total
            np.testing.assert_allclose(shares(found, "brand")[brand][side], expected, atol=1e-9)
        for segment in ("poor", "rich"):
            own = TABLE.segment == segment
            expected = p[own & (TABLE.brand == "x")].sum() / (TABLE.weight[own].sum() / 3)
            np.testing.assert_allclose(shares(found, "segment")[segment][side], expected, atol=1e-9)
    for one in found.shifts:
        assert one.change.low <= one.change.value <= one.change.high
    segments = [one for one in found.shifts if one.by == "segment"]
    assert all(one.surplus is not None for one in segments)


def test_tables_arrays_callables_and_text_agree():
    X = np.random.default_rng(2).uniform(1, 5, size=(50, 3, 2))
    y = (X @ [1.0, -1.0] + np.random.default_rng(3).gumbel(size=(50, 3))).argmax(1)
    model = MultinomialLogit().fit(X, y)
    where = X[..., 0] > 3
    found = [
        what_if(model, X, change=change, where=rows, intervals="none").after.value
        for change, rows in [
            ("x1*=1.1", "x0>3"),
            ({1: lambda v: 1.1 * v}, where),
            (lambda objects: objects * [1.0, 1.1], lambda objects: objects[:, 0] > 3),
        ]
    ]
    expected = model.predict_proba(np.where(where[..., None], X * [1.0, 1.1], X)).ravel()
    for one in found:
        np.testing.assert_allclose(one, expected, atol=1e-12)
    long = (
        Sets.of(X)
        .to_frame(["x0", "x1"])
        .append_column("y", [(np.arange(3) == y[:, None]).ravel().astype(int)])
    )
    of_table = MultinomialLogit().fit(long, set_id="set", target="y")
    again = what_if(of_table, long, change="x1*=1.1", where="x0>3", intervals="none")
    np.testing.assert_allclose(again.after.value, expected, atol=1e-6)


def test_objects_are_added_to_every_set_or_to_their_own():
    whole = what_if(MNL, TABLE, add='brand="y"; price=2', intervals="none", by="brand")
    assert whole.counts() == {"added": N}
    longer = pd.concat(
        [TABLE, pd.DataFrame({"trip": range(N), "brand": "y", "price": 2.0})], ignore_index=True
    )
    expected = probabilities(longer)
    order = np.argsort(np.asarray(whole.ids)[whole.set_of_row[3 * N :]])
    np.testing.assert_allclose(whole.after.value[: 3 * N], expected[: 3 * N], atol=1e-12)
    np.testing.assert_allclose(whole.after.value[3 * N :][order], expected[3 * N :], atol=1e-12)
    some = what_if(
        MNL, TABLE, add=pd.DataFrame({"trip": [5], "brand": ["y"], "price": [2.0]}), intervals="none"
    )
    moved = np.asarray(some.ids)[some.set_of_row[np.flatnonzero(some.after.value != some.before.value)]]
    assert set(moved) == {5}
    X = RNG.normal(size=(4, 2, 1))
    model = MultinomialLogit(l2=1).fit(X, [0, 1, 0, 1])
    both = [
        what_if(model, X, add=add, intervals="none").after.value for add in ([[1.0]], [np.ones((1, 1))] * 4)
    ]
    np.testing.assert_allclose(*both)


def test_removing_an_object_changes_all_utilities_of_a_context_model(tmp_path):
    model = DiscreteChooser(FATE(width=4), steps=4, members=2, random_state=0).fit(TABLE, **FEATURES)
    model.save(tmp_path / "model.entourage")
    for fitted in (model, load(tmp_path / "model.entourage")):
        found = what_if(fitted, TABLE, remove='brand=="x"', by="brand")
        left = TABLE[TABLE.brand != "x"]
        np.testing.assert_allclose(found.after.value[left.index], fitted.predict_proba(left), atol=1e-6)
        assert (found.method, found.surplus) == ("members", None)
        assert "no consumer surplus" in str(found)


def test_the_outside_option_gains_what_is_lost():
    y = TABLE.bought * (TABLE.trip % 3 > 0)
    model = DiscreteChooser(FATE(width=8), steps=20, outside=True, random_state=0)
    model.fit(TABLE.assign(bought=y), **FEATURES)
    found = what_if(model, TABLE, remove='brand=="x"')
    for side in (0, 1):
        assert sum(one[side] for one in shares(found).values()) == pytest.approx(1)
    np.testing.assert_allclose(
        found.surplus_by_set.value, np.log(found.outside[0].value / found.outside[1].value), atol=1e-6
    )
    assert found.surplus.low is None
    assert "outside_after" in found.to_frame("sets").column_names


def test_rankers_have_expected_ranks():
    X = RNG.normal(size=(100, 4, 2))
    model = Ranker(FATE(width=8), steps=20, random_state=0).fit(X, (-X[..., 0]).argsort(1).argsort(1))
    found = what_if(model, X, change="x0+=1", where=np.tile([True, False, False, False], (100, 1)))
    moved = X.copy()
    moved[:, 0, 0] += 1
    np.testing.assert_allclose(
        found.ranks_after.value, model.predict_expected_places(moved).ravel(), atol=1e-6
    )
    assert "expected rank" in str(found)
    assert found.to_frame()["rank_after"][0].as_py() == pytest.approx(
        model.predict_expected_places(moved)[:, 0].mean(), abs=1e-6
    )


def test_nested_logit_gives_more_to_the_same_nest():
    X = np.concatenate([np.tile([[1.0], [2.0], [3.0]], (400, 1, 1)), RNG.normal(size=(400, 3, 1))], axis=2)
    shared = RNG.gumbel(size=(400, 1)) * [0, 2, 2]
    y = (X[..., 1] + shared + RNG.gumbel(size=(400, 3))).argmax(1)
    found = what_if(NestedLogit([[2, 3]]).fit(X, y), X, remove="x0==3", by=0)
    moved = {one.group: one.change.value / one.before.value for one in found.shifts if one.by == "x0"}
    assert moved["2"] > moved["1"] > 0
    assert found.surplus.high < 0


def test_refits_to_resampled_people_give_intervals():
    X = RNG.normal(size=(200, 3, 1))
    y = (X[..., 0] + RNG.gumbel(size=(200, 3))).argmax(1)
    model = MultinomialLogit().fit(X, y)
    refits = refit_people(model, X, y, groups=np.arange(200) // 4, refits=20)
    first = np.tile([True, False, False], (200, 1))
    found, drawn = (
        what_if(model, X, change="x0+=1", where=first, **settings) for settings in ({"refits": refits}, {})
    )
    assert (found.method, drawn.method) == ("refits", "draws")
    wide, other = (one.shifts[0].change.high - one.shifts[0].change.low for one in (found, drawn))
    assert 0.5 < wide / other < 2


def test_weight_zero_is_left_out_and_order_of_rows_is_nothing():
    kept = TABLE[TABLE.trip < 100]
    weights = TABLE.assign(weight=(TABLE.trip < 100).astype(float))
    arguments = {"change": "price*=2", "where": 'brand=="x"', "intervals": "none"}
    few = what_if(MNL, kept, **arguments)
    same = [
        what_if(MNL, weights, sample_weight="weight", **arguments),
        what_if(MNL, kept.sort_values("price", ignore_index=True), **arguments),
    ]
    for one in same:
        np.testing.assert_allclose(list(shares(one).values()), list(shares(few).values()), atol=1e-12)
        np.testing.assert_allclose(one.surplus.value, few.surplus.value, atol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "Nothing changes"),
        ({"where": "price>3"}, "give change"),
        ({"change": "price*=1.1", "where": "price>99"}, "no row"),
        ({"change": "price*=1"}, "changes no value"),
        ({"change": "weight*=2"}, "uses none"),
        ({"change": "trip=2"}, "which set"),
        ({"change": "bought=1"}, "target"),
        ({"change": 'brand="w"'}, "no level"),
        ({"change": "brand=3"}, "text in quotes"),
        ({"change": 'price="3"'}, "a number"),
        ({"change": "price/=0"}, "finite"),
        ({"change": {"price": 3}}, "is text"),
        ({"remove": "price>0"}, "leaves nothing of 200 sets"),
        ({"remove": 'brand=="w"'}, "no row"),
        ({"add": {"price": 3}}, "lacks column 'brand'"),
        ({"add": {"brand": "w", "price": 3}}, "no level"),
        ({"add": pd.DataFrame({"trip": [999], "brand": ["x"], "price": [1.0]})}, "not in the table"),
        ({"change": "price*=2", "by": "colour"}, "no column 'colour'"),
        ({"change": "price*=2", "by": "price"}, "200 groups are the most"),
        ({"change": "price*=2", "cost": "brand"}, "no numeric column"),
        ({"change": "price*=2", "cost": 0.5}, "negative"),
        ({"change": "price*=2", "intervals": "members"}, "ensemble"),
        ({"change": "price*=2", "sample_weight": [1.0]}, "one entry a set"),
    ],
)
def test_what_makes_no_scenario_is_refused_in_words(arguments, words):
    with pytest.raises(UserError, match=words):
        what_if(MNL, TABLE, **arguments)


def test_tables_have_all_of_it(tmp_path):
    found = what_if(MNL, TABLE, change="price*=1.1", where='brand=="x"', by="brand", cost="price")
    assert found.to_frame().num_rows == 2 + 3
    objects = found.to_frame("objects")
    assert objects.num_rows == 3 * N
    assert objects["set"].to_pylist() == TABLE.trip.tolist()
    assert {"surplus_low", "money"} <= set(found.to_frame("sets").column_names)
    found.plot(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 1000
