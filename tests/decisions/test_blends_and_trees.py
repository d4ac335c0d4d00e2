"""Decisions from models without gradients or utilities of their own: auto blends, boosted trees; and from codes."""

import itertools

import numpy as np
import pandas as pd
import pytest

from entourage import FATE, DiscreteChooser, Ranker, load
from entourage.baselines import BoostedLogit
from entourage.decisions import (
    Market,
    audit,
    best_assortment,
    best_prices,
    diversion,
    elasticities,
    what_if,
)
from entourage.errors import UserError
from entourage.selection import candidates

RNG = np.random.default_rng(0)
X = RNG.uniform(1, 5, size=(80, 4, 2))
UTILITY = X @ [1.0, -1.0] + 0.5 * RNG.gumbel(size=(80, 4))
CHOSEN = UTILITY.argmax(1)
QUICK = {"steps": 4, "random_state": 0, "budget": 600.0, "device": "cpu"}
FEW = X[:4]


@pytest.fixture(scope="module")
def models():
    """Blends of a linear model, trees and a net, fitted once; and trees alone."""
    kept = ("linear relative", "LambdaMART", "BoostedLogit", "FATE small")
    every = candidates.list_candidates

    def shorter(*args, **settings):
        return [one for one in every(*args, **settings) if one.name in kept]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("entourage.selection.auto.list_candidates", shorter)
        patch.setattr("entourage.selection.auto.FEW_SETS", 0)
        patch.setattr("entourage.selection.auto.MANY_SETS", 0)
        nothing = np.where(UTILITY.max(1) > 1, CHOSEN, -1)
        ranks = (-UTILITY).argsort(1).argsort(1)
        return {
            "blend": DiscreteChooser("auto", **QUICK).fit(X, CHOSEN),
            "blend with outside option": DiscreteChooser("auto", outside=True, **QUICK).fit(X, nothing),
            "ranking blend": Ranker("auto", **QUICK).fit(X, ranks),
            "trees": BoostedLogit(60).fit(X, CHOSEN),
        }


NAMES = ["blend", "blend with outside option", "ranking blend", "trees"]


def probabilities(market, objects):
    return market.probabilities(market.sets_of(objects)).reshape(len(objects), -1)


@pytest.mark.parametrize("name", NAMES)
def test_probabilities_are_those_that_are_predicted_and_a_file_keeps_them(models, name, tmp_path):
    model, market = models[name], Market(models[name])
    p = probabilities(market, FEW)
    np.testing.assert_allclose(p, np.asarray(model.predict_proba(FEW))[:, :4], atol=1e-12)
    nothing = market.outside(market.sets_of(FEW))
    np.testing.assert_allclose(p.sum(1) + (0.0 if nothing is None else nothing), 1.0, atol=1e-9)
    model.save(tmp_path / "m.entourage")
    np.testing.assert_allclose(probabilities(Market(load(tmp_path / "m.entourage")), FEW), p, atol=1e-9)
    assert not market.has_gradient


@pytest.mark.parametrize("name", NAMES)
def test_elasticities_are_the_differences_that_the_docs_name(models, name):
    market, step = Market(models[name]), 0.05 * FEW[..., 1].std()
    p = probabilities(market, FEW)
    found = elasticities(market, FEW, 1, intervals="none")
    for j in range(4):
        move = np.zeros((4, 2))
        move[j, 1] = step
        slope = (probabilities(market, FEW + move) - probabilities(market, FEW - move)) / (2 * step)
        np.testing.assert_allclose(np.stack(found.cross)[:, :, j], slope * FEW[:, j, 1:] / p, atol=1e-4)
    assert "finite differences" in found.notes[-1]


@pytest.mark.parametrize("name", NAMES)
def test_removal_is_a_prediction_of_the_smaller_set(models, name):
    market = Market(models[name])
    p, after = probabilities(market, FEW), probabilities(market, FEW[:, 1:])
    ratios = np.stack(diversion(market, FEW, intervals="none").ratios)
    np.testing.assert_allclose(ratios[:, 1:, 0], (after - p[:, 1:]) / p[:, :1], atol=2e-3)
    first = np.tile([True, False, False, False], (4, 1))
    found = what_if(market, FEW, remove=first, intervals="none")
    np.testing.assert_allclose(found.after.value.reshape(4, 4)[:, 1:], after, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_the_best_set_and_prices_are_those_of_brute_force(models, name):
    market, value = Market(models[name]), np.array([1.0, 3.0, 2.0, 1.5])
    revenues = {
        chosen: float((probabilities(market, FEW[:1, chosen]) @ value[list(chosen)])[0])
        for size in (2, 3, 4)
        for chosen in itertools.combinations(range(4), size)
    }
    found = best_assortment(market, FEW[0], value, size=(2, 4), intervals="none")
    assert found.value == pytest.approx(max(revenues.values()), abs=1e-6)
    priced = best_prices(market, FEW[0], 1, cost=0.5, bounds=(1, 5), own=[1], restarts=0)
    grid = np.linspace(1, 5, 201)
    offered = np.repeat(FEW[:1], len(grid), axis=0)
    offered[:, 1, 1] = grid
    profit = probabilities(market, offered)[:, 1] * (grid - 0.5)
    assert priced.method == "grids of one price at a time, 2 starts"
    assert priced.value >= profit.max() - 0.005 * abs(profit.max())
    assert "may jump" in priced.notes[-1]


def test_a_blend_has_no_surplus_with_or_without_an_outside_option(models):
    for name in ("blend", "blend with outside option"):
        found = what_if(models[name], FEW, change="x1 *= 1.1", intervals="none")
        assert found.surplus is None
        assert "no utilities of their own" in found.no_surplus
        with pytest.raises(UserError, match="not identified"):
            best_assortment(models[name], FEW[0], objective="surplus")


def test_the_logsum_of_trees_is_that_of_their_utilities(models):
    market = Market(models["trees"])
    utilities = models["trees"].predict_scores(FEW)
    np.testing.assert_allclose(
        market.logsum(market.sets_of(FEW)), np.log(np.exp(utilities).sum(1)), atol=1e-12
    )
    assert audit(market, FEW, {1: -1}).objects == 16


def test_codes_of_many_levels_are_held_fixed_and_changed_by_name():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"visit": np.repeat(np.arange(150), 4), "price": rng.uniform(1, 5, 600)})
    frame["car"] = [f"c{code}" for code in rng.integers(0, 40, 600)]
    u = -frame.price + frame.car.str[1:].astype(int) / 20 + rng.gumbel(size=600)
    frame["bought"] = (u == u.groupby(frame.visit).transform("max")).astype(int)
    settings = {"steps": 20, "validation": 0, "random_state": 0, "device": "cpu"}
    model = DiscreteChooser(FATE(width=8), **settings).fit(frame, set_id="visit", target="bought")
    market, some = Market(model), frame[:8]
    assert model.categories_ == [(market.names().index("car"), 40)]
    found, step = elasticities(model, some, "price"), 1e-2
    up, down = (
        model.predict_proba(some.assign(price=some.price + s * (some.index == 2))) for s in (step, -step)
    )
    slope = (up[2] - down[2]) / (2 * step) * some.price[2] / model.predict_proba(some)[2]
    assert found.own[2] == pytest.approx(slope, abs=1e-3)
    changed = what_if(model, frame, change='car = "c3"', where='car == "c5"')
    np.testing.assert_allclose(
        changed.after.value, model.predict_proba(frame.assign(car=frame.car.replace("c5", "c3"))), atol=1e-6
    )
    for wrong in ("car", market.names().index("car")):
        with pytest.raises(UserError):
            elasticities(model, frame, wrong)
