"""What decisions refuse, in words that say what to do; and inputs that look odd and are right."""

import sys

import numpy as np
import pandas as pd
import pytest

from entourage import FATE, DiscreteChooser, SubsetChooser
from entourage.choice import MultinomialLogit, NestedLogit
from entourage.data import Sets
from entourage.decisions import (
    Market,
    audit,
    best_assortment,
    best_prices,
    demand_curve,
    diversion,
    elasticities,
    intervals_of,
    refit_people,
    what_if,
    willingness_to_pay,
)
from entourage.decisions.candidates import candidates_of, numbers_of_objects
from entourage.decisions.offers import Offers
from entourage.errors import UserError

N = 60
RNG = np.random.default_rng(0)
X = RNG.uniform(1, 5, size=(N, 4, 2))
UTILITY = X @ [1.0, -1.0] + RNG.gumbel(size=(N, 4))
CHOSEN = UTILITY.argmax(1)
MNL = MultinomialLogit().fit(X, CHOSEN)
PLAIN = {"intervals": "none"}
QUICK = {"steps": 5, "validation": 0, "random_state": 0, "device": "cpu"}
IDS = np.concatenate([np.tile(np.arange(1.0, 5.0)[:, None], (N, 1, 1)), X[..., 1:]], axis=2)
NESTED = NestedLogit([[1, 2]]).fit(IDS, CHOSEN)
SITUATION = RNG.normal(size=(N, 1))
ROLES = {
    "set_id": "visit",
    "target": "bought",
    "features": ["brand", "price", "fresh"],
}


def shop():
    """Choices among brands at prices, some fresh, at an hour of the day, with a weight a visit."""
    return pd.DataFrame(
        {
            "visit": np.repeat(np.arange(N), 4),
            "brand": np.tile(list("abcd"), N),
            "price": X[..., 1].ravel(),
            "fresh": np.tile([True, False, False, True], N),
            "hour": np.repeat(np.arange(N) % 7, 4).astype(float),
            "weight": np.repeat(1.0 + np.arange(N) % 2, 4),
            "bought": np.eye(4, dtype=int)[CHOSEN].ravel(),
        }
    )


SHOP = shop()
TABLE = MultinomialLogit(l2=0.1).fit(SHOP, **ROLES)
BY_HOUR = DiscreteChooser(FATE(width=4), **QUICK).fit(SHOP, **ROLES, situation=["hour"])
MENU = SHOP.head(4).drop(columns=["visit", "hour"])


@pytest.fixture(scope="module")
def outside():
    return DiscreteChooser(FATE(width=4), outside=True, **QUICK).fit(X, np.where(CHOSEN == 0, -1, CHOSEN))


@pytest.fixture(scope="module")
def with_situation():
    return DiscreteChooser(FATE(width=4), **QUICK).fit(X, CHOSEN, situation=SITUATION)


@pytest.fixture(scope="module")
def subsets():
    return SubsetChooser(FATE(width=4), **QUICK).fit(X, (UTILITY > 0).astype(int))


# --- scenarios of arrays --------------------------------------------------------------------------

OF_ARRAYS = [
    ({"where": "x1 > 2", "remove": "x0 > 4"}, "where says which objects change; give change, too"),
    ({"change": "x1 += 1", "sample_weight": "weight"}, "names a column, but X is no table"),
    ({"change": "x1 += 1", "where": np.ones(3, dtype=bool)}, "one boolean for each of 240 objects; got bool"),
    ({"change": "x1 += 1", "where": np.ones((N, 4))}, "one boolean for each of 240 objects; got float64"),
    ({"change": "x1 = 'dear'"}, "'x1' of arrays needs numbers"),
    ({"change": lambda objects: objects[:, :1]}, r"objects of shape \(240, 2\); got \(240, 1\)"),
    ({"change": "x1 = log(x1 - x1)"}, "not finite numbers. Check for divisions by 0"),
    ({"change": "x1 *= 1"}, "change changes no object"),
    ({"change": 3.0}, "or a callable of the objects, .*; got float"),
    ({"add": [1.0, 2.0, 3.0]}, r"objects of 2 features.*got shape \(1, 3\)"),
    ({"change": "x1 += 1", "by": "brand"}, "no column 'brand' to group by; there are x0, x1"),
    ({"change": "x1 += 1", "by": np.arange(7)}, r"one label an object \(240\) or a set \(60\); got 7"),
    ({"change": "x1 += 1", "by": [["a"], ["b", "c"]]}, r"one label an object \(240\).*; got 3"),
]


@pytest.mark.parametrize(("given", "says"), OF_ARRAYS)
def test_a_scenario_of_arrays_that_makes_no_sense_is_refused(given, says):
    with pytest.raises(UserError, match=says):
        what_if(MNL, X, **given, **PLAIN)


def test_labels_to_group_by_are_of_objects_or_of_sets():
    change = {"change": "x1 += 1", "where": "x1 > 3", **PLAIN}
    brands, segments = np.tile(list("abcd"), N), np.repeat(["poor", "rich"], N // 2)
    by_brand = what_if(MNL, X, by=brands, **change)
    p = MNL.predict_proba(X)
    for i, brand in enumerate("abcd"):
        own = next(one for one in by_brand.shifts if one.group == brand)
        assert own.before.value == pytest.approx(p[:, i].mean())
    as_rows = what_if(MNL, X, by=brands.reshape(N, 4).tolist(), **change)
    as_matrix = what_if(MNL, X, by=brands.reshape(N, 4), **change)
    for other in (as_rows, as_matrix):
        assert [one.after.value for one in other.shifts] == [one.after.value for one in by_brand.shifts]
    moved = X[..., 1] > 3
    by_segment = what_if(MNL, X, by=segments, cost=1, **change)
    for half, segment in ((slice(None, N // 2), "poor"), (slice(N // 2, None), "rich")):
        own = next(one for one in by_segment.shifts if one.group == segment)
        assert own.before.value == pytest.approx(np.where(moved, p, 0)[half].sum(1).mean())
        assert own.surplus.value == pytest.approx(by_segment.surplus_by_set.value[half].mean())
        assert own.money.value == pytest.approx(by_segment.money_by_set.value[half].mean())
    text = str(by_segment)
    assert f"; surplus {own.surplus.value:+.4f}, in money {own.money.value:+.4f}" in text


def test_a_callable_changes_the_objects_that_are_meant():
    moved = what_if(MNL, X, change=lambda objects: np.add(objects, [0.0, 1.0]), where="x0 > 3", **PLAIN)
    text = what_if(MNL, X, change="x1 += 1", where="x0 > 3", **PLAIN)
    np.testing.assert_allclose(moved.after.value, text.after.value)


def test_surplus_without_an_outside_option_needs_the_same_situation(with_situation):
    found = what_if(MNL, X, change="x1 += 1", **PLAIN)
    assert found.surplus.value == pytest.approx(MNL.coef_[1])
    with pytest.raises(UserError, match="Consumer surplus is not identified, so leave cost out"):
        what_if(with_situation, Sets.of(X, None, SITUATION), change="x1 += 1", cost=1, **PLAIN)


# --- scenarios of tables --------------------------------------------------------------------------

OF_TABLES = [
    ({"change": "price += 1", "situation": SITUATION}, "leave situation out here"),
    ({"change": "price += 1", "where": [True, False]}, "one boolean for each of 240 rows; got list"),
    ({"change": "price += 1", "where": np.ones(240)}, "one boolean for each of 240 rows; got ndarray"),
    ({"change": "fresh = 2"}, "Column 'fresh' is True or False; got"),
    ({"add": 3.0}, "add"),
    ({"change": "price += 1", "by": [3]}, "by names columns of the table; got 3"),
]


@pytest.mark.parametrize(("given", "says"), OF_TABLES)
def test_a_scenario_of_a_table_that_makes_no_sense_is_refused(given, says):
    with pytest.raises(UserError, match=says):
        what_if(TABLE, SHOP, **given, **PLAIN)


def test_a_table_with_categories_of_text_is_changed_as_the_text_is():
    frame = SHOP.assign(brand=SHOP.brand.astype("category"))
    for given in (
        {"change": "price *= 2", "where": 'brand == "a"'},
        {"change": 'brand = "b"', "where": 'brand == "a"'},
        {"add": {"brand": "a", "price": 2.0, "fresh": True}},
        {"remove": SHOP.brand.eq("a").to_numpy()},
    ):
        plain, found = what_if(TABLE, SHOP, **given, **PLAIN), what_if(TABLE, frame, **given, **PLAIN)
        np.testing.assert_array_equal(found.after.value, plain.after.value)


def test_flags_join_a_column_of_numbers():
    numbers = SHOP.assign(fresh=SHOP.fresh.astype(int))
    model = MultinomialLogit(l2=0.1).fit(numbers, **ROLES)
    row = {"brand": "a", "price": 2.0}
    flag = what_if(model, numbers, add=row | {"fresh": True}, **PLAIN)
    one = what_if(model, numbers, add=row | {"fresh": 1}, **PLAIN)
    np.testing.assert_array_equal(flag.after.value, one.after.value)


def test_a_scenario_that_is_too_large_for_intervals_of_objects_keeps_their_estimates(monkeypatch):
    monkeypatch.setattr(sys.modules["entourage.decisions.what_if"], "_MOST", 10)  # not the function
    found = what_if(MNL, X, change="x1 += 1", where="x0 > 3", draws=20)
    assert "Intervals of single objects and sets were left out" in found.notes[0]
    assert found.after.low is None
    assert found.shifts[0].change.low is not None
    np.testing.assert_allclose(found.before.value, MNL.predict_proba(X).ravel())


def test_costs_have_a_negative_coefficient():
    for cost, says in [
        (True, "the coefficient of cost, a negative number; got True"),
        ([1], r"a negative number; got \[1\]"),
        (0.4, "must be negative; got 0.4"),
        (np.nan, "must be negative; got nan"),
        (0, "The coefficient of 'x0' is .*, and one of cost must be negative"),
    ]:
        with pytest.raises(UserError, match=says):
            what_if(MNL, X, change="x1 += 1", cost=cost, **PLAIN)


# --- what was offered, and to whom ----------------------------------------------------------------


def test_offers_need_columns_that_can_be_moved():
    for call, says in [
        (lambda: elasticities(TABLE, SHOP, "price", situation=SITUATION), "leave situation out here"),
        (lambda: elasticities(MNL, X, 1, sample_weight="weight"), "names a column, but there is no table"),
        (lambda: elasticities(BY_HOUR, SHOP, "hour"), "column of the situation, the same for all objects"),
        (lambda: elasticities(TABLE, SHOP, "brand"), "holds categories, which can't grow by one percent"),
        (lambda: elasticities(TABLE, SHOP, "prize"), "feature='prize' is not known; did you mean 'price'"),
        (lambda: elasticities(MNL, X, "price"), "came from arrays. Give the place of the column, 0 to 1"),
        (lambda: elasticities(MNL, X, "x7"), "feature='x7' is not known"),
        (lambda: elasticities(NESTED, IDS, 0), "holds ids of alternatives, which have no order"),
        (
            lambda: elasticities(MNL, X, 1, by=np.arange(3)),
            r"one label for each of 240 objects; got shape \(3,\)",
        ),
        (lambda: elasticities(MNL, X, 1, by=np.arange(240)), "There are 240 labels, and 200 are the most"),
        (lambda: elasticities(TABLE, SHOP, "price", by="shelf"), "shelf"),
        (lambda: willingness_to_pay(MNL, X, 0, 1, units=0), "such as 60 for minutes to hours; got 0"),
        (lambda: willingness_to_pay(MNL, X, 1, 1), "are the same column, 'x1'"),
    ]:
        with pytest.raises(UserError, match=says):
            call()


def test_labels_are_a_column_a_place_or_given():
    codes, names = Offers.of(MNL, X).labels("place")
    assert (codes.tolist(), names) == (list(range(4)) * N, ["0", "1", "2", "3"])
    given = np.array(["b", "a", None, float("nan")] * N, dtype=object)
    codes, names = Offers.of(MNL, X).labels(given)
    assert names == ["a", "b", "missing"]
    assert codes[:4].tolist() == [1, 0, 2, 2]
    rounded = X.round()
    codes, names = Offers.of(MNL, rounded).labels("x1")
    assert [float(names[code]) for code in codes] == rounded[..., 1].ravel().tolist()


def test_weights_of_a_table_are_a_column():
    by_column = elasticities(TABLE, SHOP, "price", sample_weight="weight", **PLAIN)
    given = elasticities(TABLE, SHOP, "price", sample_weight=1.0 + np.arange(N) % 2, **PLAIN)
    assert by_column.estimate.value == given.estimate.value
    assert by_column.estimate.value != elasticities(TABLE, SHOP, "price", **PLAIN).estimate.value


def test_sets_of_a_table_model_keep_its_names():
    sets = Market(TABLE).sets_of(SHOP)
    bare = Sets(sets.objects, sets.offsets, None, sets.situation)
    assert Offers.of(TABLE, bare).names == Offers.of(TABLE, SHOP).names


def test_semi_elasticities_are_of_one_unit_more():
    found = elasticities(MNL, X, 1, kind="semi-elasticity", **PLAIN)
    p = MNL.predict_proba(X)
    np.testing.assert_allclose(found.own, (MNL.coef_[1] * (1 - p)).ravel())
    assert any(note.startswith("Semi-elasticities: the change") for note in found.notes)


# --- demand curves --------------------------------------------------------------------------------


def test_demand_of_rows_that_can_be_moved():
    for where, says in [
        ("x1 > 3", "there is no table. Pass booleans or rows"),
        (np.ones(3, dtype=bool), r"one entry for each of 240 objects; got shape \(3,\)"),
        ([240], "rows from 0 to 239"),
        ([-1], "rows from 0 to 239"),
        ([0.5], "needs booleans, or rows"),
        (np.zeros(240, dtype=bool), "matches no object"),
    ]:
        with pytest.raises(UserError, match=says):
            demand_curve(MNL, X, 1, [1.0, 2.0], where=where, **PLAIN)


def test_demand_with_an_outside_option_has_its_share_too(outside):
    found = demand_curve(outside, X, 1, [2.0, 9.0], where=np.tile([True, False, False, False], N), **PLAIN)
    moved = X.copy()
    moved[:, 0, 1] = 2.0
    market = Market(outside)
    sets = market.sets_of(moved)
    assert found.outside.value[0] == pytest.approx(market.outside(sets).mean())
    assert found.share.value[0] == pytest.approx(market.probabilities(sets).reshape(N, 4)[:, 0].mean())
    assert found.beyond == 1
    assert found.to_frame().column_names == ["x1", "share", "outside"]
    assert found.to_json()["outside"] == found.outside.value.tolist()
    text = str(found)
    assert "Share of 60 objects in 60 sets, by value of x1" in text
    assert "[" not in text, "there is no band"
    assert "1 of 2 values take objects beyond the range of the column: extrapolated." in text


def test_demand_of_a_table_where_the_value_is_missing():
    empty = SHOP.assign(price=SHOP.price.where(np.arange(4 * N) % 7 > 0))
    model = MultinomialLogit(l2=0.1).fit(empty, **ROLES)
    with pytest.raises(UserError, match="have no value of 'price' to start from"):
        demand_curve(model, empty, "price", [1.1], change="factor", **PLAIN)
    some = demand_curve(model, empty, "price", [2.0], where='fresh and brand == "a"', **PLAIN)
    known = empty.assign(price=np.where(empty.brand == "a", 2.0, empty.price))
    p = model.predict_proba(known)[(empty.brand == "a").to_numpy()]
    assert some.share.value[0] == pytest.approx(np.mean(p))
    categories = empty.assign(brand=empty.brand.astype("category"))
    again = demand_curve(model, categories, "price", [2.0], where='fresh and brand == "a"', **PLAIN)
    assert again.share.value[0] == some.share.value[0]


# --- assortments ----------------------------------------------------------------------------------

MENU_OF = X[0]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"object_id": "sku"}, "the objects came as an array"),
        ({"required": np.ones(3, dtype=bool)}, r"one entry for each of 4 objects; got \(3,\)"),
        ({"required": [4]}, "positions of objects, from 0 to 3; got 4"),
        ({"required": ["a"]}, "To name objects, give object_id"),
        ({"size": (1, 2, 3)}, r"size needs the least and the largest, \(1, 8\)"),
        ({"value": "margin"}, "names a column, but the objects are no table"),
        ({"value": [1.0, 2.0]}, r"one number for each of 4 objects; got shape \(2,\)"),
        ({"value": [1.0, 2.0, np.inf, 0.0]}, "value of object 2 is missing or infinite"),
        ({"objective": "share", "value": [0.0, 1.0, 2.0, 1.0]}, "value is 1 for objects .* got 2"),
        ({"objective": "share"}, "This model has no outside option"),
        ({"objective": "revenue"}, "Revenue needs value"),
        ({"value": [1, 2, 3, 4], "weights": [1.0, 2.0]}, "one entry for each of 1 situations"),
        ({"value": [1, 2, 3, 4], "weights": [-1.0]}, "none negative and not all 0"),
    ],
)
def test_an_assortment_that_makes_no_sense_is_refused(given, says):
    with pytest.raises(UserError, match=says):
        best_assortment(
            MNL, MENU_OF, **({"value": [1, 2, 3, 4]} | given if "objective" not in given else given)
        )


def test_candidates_are_the_same_in_all_situations(with_situation):
    ragged = Sets.of([X[0], X[1, :3]])
    with pytest.raises(UserError, match="these Sets are of several sizes"):
        candidates_of(MNL, ragged)
    own = Sets.of(X[:2], None, SITUATION[:2])
    with pytest.raises(UserError, match="situations came twice"):
        candidates_of(with_situation, own, SITUATION[:2])
    with pytest.raises(UserError, match="objects come in 3 situations, but situations has 2 rows"):
        candidates_of(with_situation, X[:3], SITUATION[:2])
    of_sets = candidates_of(with_situation, own)
    assert of_sets.situation.tolist() == SITUATION[:2].tolist()
    np.testing.assert_array_equal(of_sets.features, X[:2])
    one = candidates_of(with_situation, X[:3], SITUATION[:1])
    assert one.situation.tolist() == SITUATION[[0, 0, 0]].tolist(), "one situation holds for all"


def test_candidates_of_a_table_are_named_and_their_values_are_numbers():
    menu = MENU.assign(margin=[1.0, 2.0, 3.0, 4.0], hour=3.0)
    found = candidates_of(TABLE, menu, object_id="brand")
    assert found.labels == list("abcd")
    assert numbers_of_objects("margin", found, "value").tolist() == [[1.0, 2.0, 3.0, 4.0]]
    with pytest.raises(UserError, match=r"Column 'brand' \(value\) needs numbers"):
        numbers_of_objects("brand", found, "value")
    with pytest.raises(UserError, match="name each object once in a set"):
        candidates_of(TABLE, menu.assign(brand="a"), object_id="brand")
    with pytest.raises(UserError, match="forbidden names 'e', which is no object; there are a, b, c, d"):
        best_assortment(TABLE, menu, value="margin", object_id="brand", forbidden=["e"])
    hours = pd.DataFrame({"hour": [1.0, 5.0]})
    each = candidates_of(BY_HOUR, menu.assign(visit=0), hours, object_id="brand")
    assert each.n_situations == 2
    assert each.situation.ravel().tolist() == [1.0, 5.0], "and the hour of the objects' own table is left out"
    with pytest.raises(UserError, match="situations is a table, too"):
        candidates_of(BY_HOUR, menu, SITUATION)
    with pytest.raises(UserError, match="knows no features of the situation"):
        candidates_of(TABLE, menu, hours)
    twice = pd.concat([menu.assign(visit=0), menu.assign(visit=1)])
    assert candidates_of(TABLE, twice, object_id="brand").n_situations == 2, (
        "two situations, though they are alike"
    )


def test_an_assortment_says_how_sure_it_is_and_draws_itself(outside, tmp_path):
    seen = []
    found = best_assortment(
        outside, MENU_OF, [1, 2, 3, 4], size=3, on_progress=lambda *done: seen.append(done), verbose=True
    )
    assert found.exact
    assert found.gap == 0.0
    assert seen[-1][0] == seen[-1][1]
    assert found.to_frame().column_names == ["object", "value", "probability"]
    for name, method in (("enumerated", "enumeration"), ("searched", "greedy")):
        one = best_assortment(outside, MENU_OF, [1, 2, 3, 4], size=3, method=method)
        one.plot(tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").stat().st_size > 1000
    assert "a better set may exist; no bound is known." in str(one)
    assert one.gap is None


# --- prices, audits, intervals, markets -----------------------------------------------------------


def test_prices_need_one_price_an_object_and_a_choice_of_one(subsets):
    with pytest.raises(UserError, match="An object has other prices in other situations"):
        best_prices(MNL, X[:2], 1, bounds=(1, 3))
    with pytest.raises(UserError, match="a SubsetChooser chooses any number"):
        best_prices(subsets, X[0], 1, bounds=(1, 3))


def test_audits_need_two_quantiles():
    for within in [(0.5,), (0.6, 0.4), (-0.1, 0.5), (0.1, 1.1)]:
        with pytest.raises(UserError, match="within needs two quantiles"):
            audit(MNL, X, {1: -1}, within=within)


def test_markets_know_what_they_have(outside):
    market = Market(MNL)
    assert Market(market).model is MNL
    with pytest.raises(UserError, match="Expected ranks are of rankers"):
        market.expected_ranks(market.sets_of(X))
    with pytest.raises(ValueError, match="not fitted"):
        Market(MultinomialLogit())
    assert Market(outside).draws(5) == []
    coded = DiscreteChooser(FATE(width=4), categories=[(0, 5)], **QUICK).fit(X.round(), CHOSEN)
    with pytest.raises(UserError, match="holds codes of levels, which have no order"):
        Market(coded).place_of(0)
    with pytest.raises(UserError, match="holds codes of levels, which have no order"):
        elasticities(coded, X.round(), 0)


def test_intervals_need_what_they_are_drawn_from(outside):
    def mean(market):
        return {"share": market.probabilities(market.sets_of(X)).mean()}

    with pytest.raises(UserError, match="DiscreteChooser has no distribution of coefficients"):
        intervals_of(outside, mean, method="draws")
    with pytest.raises(UserError, match="need an ensemble: fit with members=8"):
        intervals_of(outside, mean, method="members")
    with pytest.raises(UserError, match="at least two groups; there is one"):
        refit_people(MNL, X, CHOSEN, groups=np.zeros(N), refits=2)
    refits = refit_people(DiscreteChooser(FATE(width=4), **QUICK), X, CHOSEN, refits=2)
    assert len({one.random_state for one in refits}) == 2, "each refit has a seed of its own"
    found = intervals_of(MNL, lambda market: {"p": market.probabilities(market.sets_of(X))}, method="none")[
        "p"
    ]
    assert repr(found) == "Estimate((240,), none)"
    assert repr(found[3]).startswith(f"Estimate({found.value[3]:.6g}")


def test_figures_are_drawn_with_and_without_intervals(outside, tmp_path):
    from entourage.decisions.pictures import saved

    where = np.tile([True, False, False, False], N)
    net = DiscreteChooser(FATE(width=4), **QUICK).fit(X, CHOSEN)
    drawn = [
        elasticities(MNL, X, 1, **PLAIN),
        elasticities(MNL, X, 1, by="place", **PLAIN),
        elasticities(MNL, X, 1, by="place", draws=20),
        demand_curve(MNL, X, 1, [1.0, 2.0], where=where, draws=20),
        demand_curve(outside, X, 1, [1.0, 2.0], where=where, **PLAIN),
        diversion(MNL, X, labels=np.tile(np.arange(12), 20), **PLAIN),
        diversion(outside, X, labels="place", **PLAIN),
        willingness_to_pay(MNL, X, 0, 1),
        willingness_to_pay(MNL, X, 0, 1, **PLAIN),
        willingness_to_pay(net, X, 0, 1, **PLAIN),
        what_if(MNL, X, change="x1 += 1", where=where, draws=20),
    ]
    for i, found in enumerate(drawn):
        figure = found.draw() if hasattr(found, "draw") else found.plot(tmp_path / f"{i}.png")
        saved(figure, tmp_path / f"{i}.png")
        assert (tmp_path / f"{i}.png").stat().st_size > 1000
        assert figure.axes[0].get_xlabel() or figure.axes[0].get_ylabel()
        saved(figure, None)
    rows = drawn[6].to_frame()
    assert rows.num_rows == N * 4 * 4, "each loses to three others and to the outside option"
    assert rows.column("to").null_count == N * 4
    by_label = drawn[2].to_frame() if hasattr(drawn[2], "to_frame") else None
    assert by_label is not None
