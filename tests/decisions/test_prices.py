"""The best prices: the closed form of the logit, and where the derivative of the profit is 0."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq

from entourage import FATE, DiscreteChooser
from entourage.choice import ContextualLogit, MultinomialLogit
from entourage.decisions import Market, best_prices
from entourage.decisions.candidates import candidates_of
from entourage.decisions.price_problem import make_price_problem
from entourage.errors import UserError

OBJECTS, COST = [[0.0, 0.0], [1.0, 1.0], [1.0, 1.5]], [0.0, 0.5, 1.0]
SETTINGS = {"price": 0, "cost": COST, "bounds": (0, 9), "own": [1, 2]}


@pytest.fixture(scope="module")
def choices():
    rng = np.random.default_rng(0)
    X = np.stack([rng.uniform(0, 4, (600, 3)), rng.normal(1, 0.5, (600, 3))], axis=2)
    X[:, 0] = 0  # nothing is bought, at no price
    return X, (X @ [-1.0, 2.0] + rng.gumbel(size=(600, 3))).argmax(1)


@pytest.fixture(scope="module")
def logit(choices):
    return MultinomialLogit().fit(*choices)


def test_equal_markups_meet_the_closed_form_and_the_gradient_finds_them(logit):
    """The markup k solves k = (1 + sum of exp(a - b (c + k))) / b, by bisection here."""
    slope, other = -logit.coef_[0], logit.coef_[1]
    a = other * np.array([1.0, 1.5])

    def rest(k):
        return k - (1 + np.exp(a - slope * (np.array(COST[1:]) + k)).sum()) / slope

    markup = brentq(rest, 1e-3, 50, xtol=1e-12)
    closed = best_prices(logit, OBJECTS, **SETTINGS)
    climbed = best_prices(logit, OBJECTS, method="gradient", **SETTINGS)
    assert closed.method == "closed form (equal markups)"
    assert climbed.method == "grids, then projected gradient (exact gradients) from 1 point"
    for found in (closed, climbed):
        assert found.prices[1:] - COST[1:] == pytest.approx([markup, markup], abs=1e-6)
        assert found.prices[0] == 0
        assert found.gradient == pytest.approx(0, abs=1e-7)
        assert found.value > found.before
    assert not closed.at_bound.any()


def test_profit_is_no_larger_at_any_price_of_a_grid(choices):
    model = ContextualLogit(l2=1.0).fit(*choices)
    found = best_prices(model, OBJECTS, **SETTINGS, intervals="draws")
    grid = np.array(np.meshgrid(np.linspace(0, 9, 60), np.linspace(0, 9, 60))).reshape(2, -1).T
    X = np.repeat(np.array(OBJECTS)[None], len(grid), axis=0)
    X[:, 1:, 0] = grid
    profits = ((X[:, :, 0] - COST) * model.predict_proba(X)).sum(1)
    assert profits.max() <= found.value + 1e-9
    assert profits.max() >= found.value - 0.01
    assert "finite differences" in found.method
    assert found.interval.low < found.value < found.interval.high


def test_no_price_of_a_grid_is_better_under_a_net_with_several_maxima():
    """From each of six starts alone, slopes lead to a profit of 1.21 at most; a grid shows 1.34."""
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 5, size=(300, 4, 2))
    y = (X @ [1.0, -1.0] + rng.gumbel(size=(300, 4))).argmax(1)
    net = DiscreteChooser(FATE(width=8), steps=60, random_state=0, device="cpu").fit(X, y)
    found = best_prices(net, X[0], 1, cost=0.5, bounds=(1, 5), own=[1, 2], restarts=0)
    grid = np.stack(np.meshgrid(*[np.linspace(1, 5, 41)] * 2), axis=2).reshape(-1, 2)
    offered = np.repeat(X[:1], len(grid), axis=0)
    offered[:, 1:3, 1] = grid
    profits = (net.predict_proba(offered)[:, 1:3] * (grid - 0.5)).sum(1)
    assert found.value >= profits.max() - 1e-6
    assert "then projected gradient (exact gradients)" in found.method


def test_prices_that_equal_costs_are_a_start_like_others(logit):
    at_cost = [[0.0, 0.0], [0.5, 1.0], [1.0, 1.5]]
    assert best_prices(logit, at_cost, **SETTINGS).before == 0
    closed, climbed = (best_prices(logit, at_cost, **SETTINGS, method=how) for how in ("auto", "gradient"))
    np.testing.assert_allclose(climbed.prices, closed.prices, atol=1e-6)


def test_several_price_lists_at_once_are_each_list_by_itself(choices):
    X, y = choices
    net = DiscreteChooser(FATE(width=8), steps=5, validation=0, random_state=0, device="cpu")
    market = Market(net.fit(X, y, situation=X[:, 1, :1]))
    candidates = candidates_of(market.model, X[0], [[0.5], [2.0]])
    cost = np.array([[0.0, 0.5, 1.0], [0.0, 0.7, 1.0]])
    problem = make_price_problem(market, candidates, 0, cost, (0, 9), [1, 2], None, [1, 3])
    lists = np.random.default_rng(0).uniform(0, 9, size=(5, 3))
    alone = [problem.profit(one, with_slope=False)[0] for one in lists]
    np.testing.assert_allclose(problem.profits(lists), alone, atol=1e-6)


def test_prices_have_names_json_and_a_picture(logit, tmp_path):
    found = best_prices(logit, OBJECTS, **SETTINGS)
    assert found.names == ["0", "1", "2"]
    assert json.loads(json.dumps(found.to_json()))["objects"][1]["price"] == pytest.approx(found.prices[1])
    assert found.to_frame()["old"].to_pylist() == [0.0, 1.0, 1.0]
    found.plot(tmp_path / "prices.png")
    assert (tmp_path / "prices.png").stat().st_size > 5000


def test_bounds_bind_and_fixed_prices_stay(logit):
    found = best_prices(logit, OBJECTS, **SETTINGS | {"bounds": (0, [9, 1.2, 9])}, fixed=[2])
    assert found.prices == pytest.approx([0, 1.2, 1.0])
    assert found.at_bound.tolist() == [False, True, False]
    assert found.gradient[1] > 0
    everything = best_prices(logit, OBJECTS[1:], price=0, bounds=(0, 3))
    assert everything.prices == pytest.approx([3, 3])
    assert "no outside option" in everything.notes[0]
    assert "at a bound" in str(everything)


def test_a_net_is_climbed_by_its_own_gradients_over_several_situations(choices):
    X, y = choices
    rng = np.random.default_rng(0)
    net = DiscreteChooser(FATE(width=8, depth=1), outside=True, steps=30, random_state=0, device="cpu")
    net.fit(X[:, 1:], y - 1, situation=rng.normal(size=(len(X), 1)))
    seen, weights = np.array([[-1.0], [1.0]]), [0.25, 0.75]
    settings = {"price": 0, "cost": [0.5, 1.0], "situations": seen, "weights": weights, "restarts": 1}
    found = best_prices(net, OBJECTS[1:], bounds=(0, 4), **settings)
    assert len(found.starts) == 1  # all three starts lead to one point

    def profit(prices):
        X = np.repeat(np.array(OBJECTS[1:])[None], 2, axis=0)
        X[:, :, 0] = prices
        return weights @ ((prices - [0.5, 1.0]) * net.predict_proba(X, situation=seen)).sum(1)

    assert found.value == pytest.approx(profit(found.prices), abs=1e-6)
    for step in ([0.05, 0], [-0.05, 0], [0, 0.05], [0, -0.05]):
        assert profit(np.clip(found.prices + step, 0, 4)) <= found.value + 1e-6


def test_a_table_is_priced_by_names(choices):
    X, y = choices
    long = pd.DataFrame(X.reshape(-1, 2), columns=["price", "quality"])
    long["shelf"], long["bought"] = np.repeat(np.arange(len(X)), 3), np.eye(3, dtype=int)[y].ravel()
    model = MultinomialLogit().fit(long, set_id="shelf", target="bought", target_kind="choice")
    products = pd.DataFrame(OBJECTS, columns=["price", "quality"]).assign(made=COST, name=["no", "a", "b"])
    found = best_prices(model, products, cost="made", bounds=(0, 9), own=["a", "b"], object_id="name")
    same = best_prices(MultinomialLogit().fit(X, y), OBJECTS, **SETTINGS)
    assert found.prices == pytest.approx(same.prices)
    assert found.to_frame().num_rows == 3


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"price": 7}, "below 2"),
        ({"price": "price"}, "learnt from arrays"),
        ({"bounds": (3, 1)}, "none of the lowest above"),
        ({"bounds": 3}, "two entries"),
        ({"bounds": (1, 1)}, "leaves no choice"),
        ({"bounds": ([1, 2], 9)}, "one for each of 3 objects"),
        ({"own": []}, "No price may change"),
        ({"cost": [1, 2]}, "one number for each of 3"),
        ({"method": "magic"}, "is not known"),
    ],
)
def test_what_does_not_fit_is_refused(logit, settings, said):
    with pytest.raises(UserError, match=said):
        best_prices(logit, OBJECTS, **SETTINGS | settings)


def test_a_price_that_is_missing_is_never_made_up():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"set": np.repeat(np.arange(100), 3), "price": rng.uniform(1, 9, 300)})
    frame["taken"] = (frame.groupby("set")["price"].rank() == 1).astype(int)
    model = DiscreteChooser(FATE(width=4), steps=5, random_state=0)
    model.fit(frame, set_id="set", target="taken")  # no price is missing here
    with pytest.raises(UserError, match="price of object 1 is missing"):
        best_prices(
            model, pd.DataFrame({"price": [3.0, np.nan, 4.0]}), price="price", own=[0], bounds=(1.0, 9.0)
        )
