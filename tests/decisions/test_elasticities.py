"""Elasticities and diversion ratios: closed forms of the logits, finite differences for nets, tables in any order."""

import numpy as np
import pyarrow as pa
import pytest

from entourage import FATE, ContextFree, DiscreteChooser, Ranker, SetAttention, SubsetChooser
from entourage.choice import CrossNestedLogit, MultinomialLogit, NestedLogit
from entourage.data.sets import Sets
from entourage.decisions import diversion, elasticities
from entourage.errors import DataError, ParameterError, UserError

RNG = np.random.default_rng(0)
X = RNG.uniform(0.5, 3.0, size=(300, 4, 2))
Y = (X @ [1.0, -1.5] + RNG.gumbel(size=(300, 4))).argmax(1)


@pytest.fixture(scope="module")
def logit():
    return MultinomialLogit().fit(X, Y)


@pytest.fixture(scope="module")
def nested():
    ids = np.tile(np.arange(1.0, 5.0), (300, 1))[..., None]
    return NestedLogit([[1, 2], [3, 4]]).fit(np.concatenate([ids, X], axis=2), Y), np.concatenate(
        [ids, X], axis=2
    )


@pytest.fixture(scope="module")
def with_outside():
    net = DiscreteChooser(FATE(width=8), outside=True, steps=25, validation=0, random_state=0, device="cpu")
    return net.fit(X, np.where(np.arange(300) % 5 == 0, -1, Y))


def test_multinomial_elasticities_equal_the_closed_form(logit):
    found = elasticities(logit, X, feature=1)
    p = logit.predict_proba(X)  # (n, m)
    felt = logit.coef_[1] * X[..., 1]
    expected = felt[:, None, :] * (np.eye(4) - p[:, None, :])  # row i, column j: b x_j ([i = j] - p_j)
    assert np.allclose(np.stack(found.cross), expected, rtol=0, atol=1e-10)
    assert np.allclose(found.own, (felt * (1 - p)).ravel(), rtol=0, atol=1e-10)
    weighted = (p * felt * (1 - p)).sum() / p.sum()
    assert found.estimate.value == pytest.approx(weighted, abs=1e-10)
    assert found.estimate.low < weighted < found.estimate.high
    assert found.estimate.method == "draws"


def test_nested_elasticities_and_diversion_equal_the_closed_form(nested):
    model, ids = nested
    p = model.predict_proba(ids)
    nest = np.array([0, 0, 1, 1])
    together = nest[:, None] == nest
    within = p / (p @ together)  # P(j | its nest)
    more = 1 / model.dissimilarities_ - 1
    b = model.coef_[model.parameter_names_.index("x2")]
    felt = b * ids[..., 2]
    share = p + more[nest] * within  # what j takes from its own nest
    expected = felt[:, None, :] * (
        np.eye(4) * (1 + more[nest]) - np.where(together, share[:, None, :], p[:, None, :])
    )
    found = elasticities(model, ids, feature=2, intervals="none")
    assert np.allclose(np.stack(found.cross), expected, rtol=0, atol=1e-6)
    flow = p[:, :, None] * expected / felt[:, None, :]  # d p_i / d u_j
    ratios = -flow / np.einsum("njj->nj", flow)[:, None, :]
    by_price = np.stack(diversion(model, ids, by="price", feature=2, intervals="none").ratios)
    off = ~np.eye(4, dtype=bool)
    assert np.allclose(by_price[:, off], ratios[:, off], rtol=0, atol=1e-6)


def nested_probabilities(u, shares, scales, offered):
    """Return probabilities of a (cross-)nested logit, (m,), by its formula: shares of objects in nests, (m, nests)."""
    weights = np.where(offered[:, None], shares * np.exp(u)[:, None], 0.0) ** (1 / scales)  # (m, nests)
    inside = weights.sum(0)
    mass = inside**scales
    return (weights / np.where(inside > 0, inside, 1.0) * mass).sum(1) / mass.sum()


def removal_by_formula(u, shares, scales):
    """Return the diversion ratios by removal, (m, m)."""
    m = len(u)
    p = nested_probabilities(u, shares, scales, np.ones(m, dtype=bool))
    found = np.full((m, m), np.nan)
    for j in range(m):
        kept = np.arange(m) != j
        found[kept, j] = (nested_probabilities(u, shares, scales, kept) - p)[kept] / p[j]
    return found


def test_nested_diversion_by_removal_equals_the_closed_form(nested):
    model, ids = nested
    u = np.append(0.0, model.coef_[:3]) + ids[:20, :, 1:] @ model.coef_[3:5]
    assert model.parameter_names_[3:5] == ["x1", "x2"]
    shares = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    found = diversion(model, ids[:20], intervals="none").ratios
    for i in range(20):
        expected = removal_by_formula(u[i], shares, model.dissimilarities_)
        np.testing.assert_allclose(found[i], expected, rtol=0, atol=1e-6)
    assert abs(model.dissimilarities_ - 1).max() > 0.01  # else a multinomial logit would pass, too


def test_cross_nested_diversion_by_removal_equals_the_closed_form(nested):
    ids = nested[1]
    model = CrossNestedLogit([[1, 2, 3], [3, 4]], allocation="equal").fit(ids, Y)
    model.theta_[-2:] = np.log([0.4, 0.7])  # nests far from a multinomial logit
    u = np.append(0.0, model.coef_[:3]) + ids[:20, :, 1:] @ model.coef_[3:5]
    shares = np.array([[1.0, 0.0], [1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    found = diversion(model, ids[:20], intervals="none").ratios
    for i in range(20):
        expected = removal_by_formula(u[i], shares, np.array([0.4, 0.7]))
        np.testing.assert_allclose(found[i], expected, rtol=0, atol=1e-6)


def test_multinomial_diversion_is_in_proportion_to_shares_whatever_the_way(logit):
    p = logit.predict_proba(X)
    expected = p[:, :, None] / (1 - p[:, None, :])
    off = ~np.eye(4, dtype=bool)
    for way in ({"by": "removal"}, {"by": "price", "feature": 1}, {"by": "price", "feature": 0}):
        found = np.stack(diversion(logit, X, intervals="none", **way).ratios)
        assert np.allclose(found[:, off], expected[:, off], rtol=0, atol=1e-9)
        assert np.isnan(np.einsum("nii->ni", found)).all()


def test_all_leavers_go_somewhere_the_outside_option_included(with_outside):
    ragged = Sets.from_list([X[0], X[1][:2], X[2][:1]])
    for way in ("removal", "price"):
        found = diversion(with_outside, ragged, by=way, feature=1, labels="place", intervals="none")
        for matrix, outside in zip(found.ratios, ragged.unpack(found.outside), strict=True):
            sums = np.nansum(matrix, axis=0) + outside
            assert np.allclose(sums[~np.isnan(outside)], 1.0, atol=1e-6)
        sums = found.aggregate.value.sum(0)
        assert np.allclose(sums[~np.isnan(sums)], 1.0, atol=1e-6)
    removal = diversion(with_outside, ragged, intervals="none")
    whole, left = with_outside.predict_proba(X[:1])[0], with_outside.predict_proba(X[:1, 1:])[0]
    assert np.allclose(removal.ratios[0][1:, 0], (left - whole[1:]) / whole[0], atol=1e-5)
    assert removal.outside[-1] == pytest.approx(1.0)  # the only object of its set
    assert len(removal.to_frame()) == 4 * 4 + 2 * 2 + 1


def test_a_set_of_one_object_without_outside_option_has_no_leavers(logit):
    found = diversion(logit, [X[0], X[1][:1]], intervals="none")
    assert found.undefined == 1
    assert np.isnan(found.ratios[1]).all()
    assert elasticities(logit, [X[1][:1]], 1, intervals="none").own.tolist() == [0.0]


def test_the_outside_option_moves_against_the_rest(with_outside):
    found = elasticities(with_outside, X[:20], 1, intervals="none")
    p = with_outside.predict_proba(X[:20])
    nothing = 1 - p.sum(1, keepdims=True)
    flows = np.einsum("ni,nij->nj", p, np.stack(found.cross)) + nothing * found.outside.reshape(20, 4)
    assert np.abs(flows).max() < 1e-5
    assert found.aggregate.value.shape == (2, 1)


SMOOTH = {"width": 8, "activation": "gelu", "norm": "layer"}  # no kinks, where both sides differ
SETTINGS = {
    "FATE": (FATE(**SMOOTH), {}),
    "attention": (SetAttention(width=8, heads=2, rounds=1, dropout=0.0), {}),
    "context-free": (ContextFree(**SMOOTH), {"standardize": False}),
    "quantiles": (SetAttention(width=8, heads=2, rounds=1, dropout=0.0), {"standardize": "quantiles"}),
    "piecewise": (FATE(**SMOOTH), {"standardize": "piecewise"}),
    "ensemble": (FATE(**SMOOTH), {"members": 2}),
}


def finite(predict, objects, column, step):
    """Return x_j / p_i times central differences of p_i by x_j, (n, m, m)."""
    m = objects.shape[1]
    p, found = predict(objects), np.empty((len(objects), m, m))
    for j in range(m):
        up, down = objects.copy(), objects.copy()
        up[:, j, column] += step
        down[:, j, column] -= step
        found[:, :, j] = (predict(up) - predict(down)) / (2 * step) / p * objects[:, j, None, column]
    return found


def assert_close(found, expected):
    """Compare with differences of float32 probabilities; where a map has a kink, its two sides differ."""
    error = np.abs(found - expected) / np.abs(expected).max()
    assert np.median(error) < 5e-4
    assert np.quantile(error, 0.9) < 2e-2


@pytest.mark.parametrize("name", SETTINGS)
def test_elasticities_of_nets_are_finite_differences_in_raw_units(name):
    net, settings = SETTINGS[name]
    scale = 1.0 if settings.get("standardize") is False else 200.0  # a price in the hundreds
    raw = X * [1.0, scale] + [0.0, scale]
    model = DiscreteChooser(net, steps=25, validation=0, random_state=0, device="cpu", **settings).fit(raw, Y)
    found = elasticities(model, raw[:40], feature=1)
    assert_close(np.stack(found.cross), finite(model.predict_proba, raw[:40], 1, 0.01 * scale))
    assert found.has_gradient
    assert (found.estimate.low is None) == (name != "ensemble")


def test_situation_and_codes_and_relative_columns_are_held_fixed_or_followed():
    rng = np.random.default_rng(1)
    coded = np.concatenate([X, rng.integers(1, 40, size=(300, 4, 1)).astype(float)], axis=2)
    age = rng.normal(size=(300, 1))
    settings = {"steps": 25, "validation": 0, "random_state": 0, "device": "cpu"}
    model = DiscreteChooser(FATE(**SMOOTH), categories=[(2, 40)], **settings).fit(coded, Y, situation=age)

    def predict(objects):
        return model.predict_proba(objects, situation=age[:40])

    found = np.stack(elasticities(model, coded[:40], 1, situation=age[:40]).cross)
    assert_close(found, finite(predict, coded[:40], 1, 0.01))
    with pytest.raises(UserError, match="codes"):
        elasticities(model, coded[:40], 2, situation=age[:40])
    seen = DiscreteChooser(ContextFree(width=8), relative=True, **settings).fit(X, Y)
    found = elasticities(seen, X[:40], 1)
    assert not found.has_gradient
    assert any("finite differences" in note for note in found.notes)
    context = np.stack(found.cross)[:, 0, 1:]  # a context-free net that sees standings: not in proportion
    assert np.abs(context).max() > 0


def frame_of(order):
    n, m = 60, 3
    rng = np.random.default_rng(2)
    price = rng.uniform(1, 3, size=n * m)
    brand = np.tile(["a", "b", "c"], n)
    utility = -2 * price + np.tile([0.0, 0.5, 1.0], n)
    chosen = (utility + rng.gumbel(size=n * m)).reshape(n, m).argmax(1)
    picked = np.zeros((n, m), dtype=int)
    picked[np.arange(n), chosen] = 1
    columns = {
        "trip": np.repeat(np.arange(n) + 100, m),
        "brand": brand,
        "price": price,
        "free": (rng.random(n * m) < 0.3),
        "picked": picked.ravel(),
    }
    return pa.table(columns).take(order)


@pytest.fixture(scope="module")
def tables():
    rows = np.arange(180)
    shuffled = np.random.default_rng(3).permutation(180)
    model = MultinomialLogit(l2=0.1).fit(frame_of(rows), set_id="trip", target="picked", target_kind="choice")
    return model, frame_of(rows), frame_of(shuffled), shuffled


def test_a_table_out_of_order_gives_each_row_its_own_elasticity(tables):
    model, table, mixed, order = tables
    straight, crossed = (
        elasticities(model, t, "price", by="brand", intervals="none") for t in (table, mixed)
    )
    assert np.allclose(straight.own[order], crossed.own)
    assert straight.labels == ["a", "b", "c"]
    assert np.allclose(straight.aggregate.value, crossed.aggregate.value)
    p = model.predict_proba(table).reshape(60, 3)
    felt = model.coef_[model.parameter_names_.index("price")] * np.asarray(table["price"]).reshape(60, 3)
    assert straight.aggregate_own.value[1] == pytest.approx(
        (p * felt * (1 - p))[:, 1].sum() / p[:, 1].sum(), abs=1e-9
    )
    assert straight.aggregate.value[0, 1] == pytest.approx(
        -(p[:, 0] * felt[:, 1] * p[:, 1]).sum() / p[:, 0].sum(), abs=1e-9
    )
    frame = crossed.to_frame()
    own = np.asarray(frame["object"]) == np.asarray(frame["by"])
    assert np.allclose(np.asarray(frame["elasticity"])[own], crossed.own[np.asarray(frame["object"])[own]])
    assert "own" in crossed.aggregate_frame().column_names


def test_weights_count_sets(tables):
    model, table, _, _ = tables
    twice = np.repeat([2.0, 1.0], 30)
    some = pa.concat_tables(
        [table, table.slice(0, 90).set_column(0, "trip", pa.array(np.repeat(np.arange(30) + 900, 3)))]
    )
    a = elasticities(model, table, "price", by="brand", sample_weight=twice, intervals="none")
    b = elasticities(model, some, "price", by="brand", intervals="none")
    assert np.allclose(a.aggregate.value, b.aggregate.value)


def test_an_indicator_has_semi_elasticities_from_0_to_1(tables):
    model, table, _, _ = tables
    found = elasticities(model, table, "free", intervals="none")
    assert found.kind == "semi-elasticity"
    assert "indicator" in str(found)
    with_it, without = (
        model.predict_proba(
            table.set_column(3, "free", pa.array(np.where(np.arange(180) % 3 == 0, v, table["free"])))
        )
        for v in (True, False)
    )
    assert np.allclose(found.own[::3], np.log(with_it / without)[::3])


def test_a_value_of_0_has_elasticity_0_and_a_semi_elasticity(logit):
    some = X[:5].copy()
    some[0, 0, 1] = 0.0
    found = elasticities(logit, some, 1, intervals="none")
    assert found.own[0] == 0
    assert found.semi[0] == pytest.approx(logit.coef_[1] * (1 - logit.predict_proba(some)[0, 0]))
    assert "1 of 20 objects have the value 0" in str(found)


def test_rankers_have_elasticities_of_the_first_place_and_subsets_no_diversion():
    settings = {"steps": 20, "random_state": 0, "device": "cpu"}
    ranker = Ranker(ContextFree(**SMOOTH), **settings).fit(
        X, np.argsort(np.argsort(-(X @ [1.0, -1.5]), 1), 1)
    )
    found = np.stack(elasticities(ranker, X[:20], 1).cross)
    assert_close(found, finite(ranker.predict_proba, X[:20], 1, 0.01))
    subset = SubsetChooser(ContextFree(width=8), **settings).fit(X, X[..., 0] > 2)
    assert np.allclose(elasticities(subset, X[:5], 1).cross[0][0, 1:], 0)
    with pytest.raises(ParameterError, match="subset"):
        diversion(subset, X[:5])


def test_columns_that_cannot_move_are_refused(tables, logit, nested):
    model, table, _, _ = tables
    with pytest.raises(DataError, match="categories"):
        elasticities(model, table, "brand")
    with pytest.raises(DataError, match="no number"):
        elasticities(model, table, "brand=a")
    with pytest.raises(ParameterError, match="did you mean 'price'"):
        elasticities(model, table, "prise")
    with pytest.raises(ParameterError, match="place of the column"):
        elasticities(logit, X, "price")
    with pytest.raises(DataError, match="ids of alternatives"):
        elasticities(nested[0], nested[1], 0)


def test_a_missing_price_is_left_out_not_made_up():
    table = frame_of(np.arange(180))
    prices = table["price"].to_pylist()
    prices[4] = None
    table = table.set_column(2, "price", pa.array(prices))
    model = MultinomialLogit(l2=0.1).fit(table, set_id="trip", target="picked", target_kind="choice")
    found = elasticities(model, table, "price", intervals="none")
    assert np.flatnonzero(np.isnan(found.own)).tolist() == [4]
    assert found.missing == 1
    assert np.isfinite(found.estimate.value)
