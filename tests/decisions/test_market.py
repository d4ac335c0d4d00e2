"""The market of a model: probabilities, logsums and gradients against closed forms and finite differences."""

import copy

import numpy as np
import pytest
import torch

from entourage import FATE, ContextFree, DiscreteChooser, Ranker, SubsetChooser
from entourage.baselines import RankSVM
from entourage.choice import ContextualLogit, MixedLogit, MultinomialLogit, NestedLogit
from entourage.data import Sets
from entourage.decisions import Market, best_assortment, what_if
from entourage.errors import ParameterError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4, 2)) * [1.0, 50.0] + [0.0, 1000.0]
CHOSEN = (X @ [1.0, -0.02] + RNG.gumbel(size=(300, 4))).argmax(1)
RAGGED = [X[i, : 1 + i % 4] for i in range(8)]
MNL = MultinomialLogit().fit(X, CHOSEN)
NESTED_X = np.concatenate([np.tile([[1.0], [2.0], [3.0], [4.0]], (300, 1, 1)), X], axis=2)
NESTED = NestedLogit([[1, 2]]).fit(NESTED_X, CHOSEN)


def net(**settings):
    return DiscreteChooser(FATE(width=8), steps=20, random_state=0, **settings)


@pytest.fixture(scope="module")
def chooser():
    return net().fit(X, CHOSEN)


def test_gradient_of_mnl_equals_the_closed_form():
    market = Market(MNL)
    sets = market.sets_of(RAGGED)
    for p, slopes in zip(sets.unpack(market.probabilities(sets)), market.gradient(sets, 1), strict=True):
        np.testing.assert_allclose(slopes, MNL.coef_[1] * (np.diag(p) - np.outer(p, p)), atol=1e-12)


def in_double(market, sets):
    """Probabilities with the weights in double precision, so that small steps show no rounding."""
    model = market.model
    seen = model.view_.with_slopes(sets, 0)[0].reshape(len(sets), -1, model.view_.n_inputs)
    np.testing.assert_allclose(seen[..., :2].reshape(-1, 2), model.view_(sets).objects, atol=1e-5)
    scores = copy.deepcopy(model.scorer_).double()(torch.from_numpy(seen)).detach().numpy().ravel()
    return market.probabilities_of(sets, scores)


@pytest.mark.parametrize(
    "settings", [{}, {"standardize": "quantiles"}, {"standardize": False}, {"members": 2}]
)
def test_gradients_of_nets_equal_finite_differences(settings):
    given = (X - [0.0, 1000.0]) / [1.0, 50.0] if settings.get("standardize") is False else X
    day = RNG.normal(size=(300, 1))
    market = Market(net(**settings).fit(given, CHOSEN, situation=day))
    sets = market.sets_of(given[:6], situation=day[:6])
    found, step = market.gradient(sets, 1), 1e-5
    assert market.has_gradient
    for place in range(4):
        sides = []
        for sign in (1, -1):
            objects = sets.objects.copy()
            objects[place::4, 1] += sign * step
            sides.append(in_double(market, Sets(objects, sets.offsets, situation=sets.situation)))
        own = ((sides[0] - sides[1]) / (2 * step)).reshape(6, 4)
        np.testing.assert_allclose(np.array(found)[:, :, place], own, atol=1e-6)


def test_gradients_by_differences_are_those_of_the_formula():
    market = Market(MixedLogit([0], draws=20).fit(X, CHOSEN))
    sets = market.sets_of(X[:5])
    assert not market.has_gradient
    for own in market.gradient(sets, 1):
        np.testing.assert_allclose(own.sum(0), 0, atol=1e-9)  # probabilities sum to 1
        np.testing.assert_allclose(own, own.T, rtol=1e-5)  # a fixed coefficient: symmetric


def test_logsum_of_mnl_is_the_log_of_summed_exponentials():
    sets = Sets.of(RAGGED)
    u = sets.unpack(sets.objects @ MNL.coef_)
    expected = [np.log(np.exp(own - own.max()).sum()) + own.max() for own in u]
    np.testing.assert_allclose(Market(MNL).logsum(sets), expected, atol=1e-9)


def test_logsum_of_nested_logit_differentiates_to_probabilities():
    market, step = Market(NESTED), 1e-4
    sets = market.sets_of(NESTED_X[:3])
    p, b = market.probabilities(sets), NESTED.coef_[NESTED.parameter_names_.index("x1")]
    for row in range(4):  # Williams, Daly and Zachary: the derivative of the logsum by a utility
        sides = []
        for sign in (1, -1):
            objects = sets.objects.copy()
            objects[row, 1] += sign * step
            sides.append(market.logsum(Sets(objects, sets.offsets))[0])
        np.testing.assert_allclose((sides[0] - sides[1]) / (2 * step), b * p[row], atol=1e-6)


def test_surplus_of_nests_beyond_1_is_the_area_under_demand_and_says_what_it_is_not():
    model = copy.deepcopy(NESTED)
    assert Market(model).logsum_note is None or (NESTED.dissimilarities_ > 1).any()
    model.theta_[-1] = np.log(1.6)
    market, few = Market(model), NESTED_X[:3]
    b = model.coef_[model.parameter_names_.index("x2")]
    grid = np.linspace(0.0, 30.0, 401)  # the cost of the first object rises by 30
    rising = np.repeat(few, len(grid), axis=0)
    rising[:, 0, 2] += np.tile(grid, 3)
    demand = market.probabilities(market.sets_of(rising)).reshape(3, len(grid), 4)[:, :, 0]
    found = what_if(model, few, change="x2 += 30", where="x0 == 1", intervals="none", cost=2)
    assert found.surplus_by_set.value == pytest.approx(b * np.trapezoid(demand, grid, axis=1), abs=1e-6)
    for text in (
        found.notes[-1],
        best_assortment(model, few[0], objective="surplus", intervals="none").notes[-1],
    ):
        assert "[1, 2] (λ = 1.6)" in text
        assert "area under demand curves" in text


def test_logsum_of_mixed_logit_keeps_what_all_objects_share():
    model = MixedLogit([0], draws=50).fit(X, CHOSEN)
    moved = X[:5].copy()
    moved[..., 1] += 7.0
    change = Market(model).logsum(Sets.of(moved)) - Market(model).logsum(Sets.of(X[:5]))
    np.testing.assert_allclose(change, 7.0 * model.coef_[1], atol=1e-8)


def test_outside_option_has_its_probability_and_logsum():
    y = CHOSEN.copy()
    y[::3] = -1
    market = Market(net(outside=True).fit(X, y))
    sets = market.sets_of(RAGGED)
    outside = market.outside(sets)
    total = np.add.reduceat(market.probabilities(sets), sets.offsets[:-1]) + outside
    np.testing.assert_allclose(total, 1)
    np.testing.assert_allclose(market.logsum(sets), -np.log(outside), atol=1e-6)


def test_logsum_is_refused_where_it_is_not_identified(chooser):
    for model in (chooser, ContextualLogit().fit(X / [1, 50], CHOSEN)):
        with pytest.raises(ParameterError, match="not identified"):
            Market(model).logsum(Sets.of(X[:2]))
    free = DiscreteChooser(ContextFree(width=4), steps=5, random_state=0).fit(X, CHOSEN)
    assert Market(free).logsum_problem is None


@pytest.mark.usefixtures("small_pretrained")
def test_the_pretrained_net_has_slopes_by_differences_and_no_surplus():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4, 2))
    model = DiscreteChooser("pretrained", random_state=0).fit(X, rng.integers(0, 4, 60))
    market = Market(model)
    assert not market.has_gradient
    slopes = market.gradient(market.sets_of(X[:2]), 0)
    assert np.isfinite(slopes).all()
    np.testing.assert_allclose(np.sum(slopes, axis=1), 0.0, atol=1e-3)  # probabilities sum to 1
    found = what_if(model, X[:5], change="x0 += 1")
    assert found.surplus is None
    assert "Utilities depend on the other objects" in market.logsum_problem


def test_rankers_have_the_probability_of_the_first_place():
    ranks = (-(X @ [1.0, -0.02]) + RNG.gumbel(size=(300, 4))).argsort(1).argsort(1)
    model = Ranker(FATE(width=8), steps=20, random_state=0).fit(X, ranks)
    market = Market(model)
    sets = market.sets_of(X[:5])
    np.testing.assert_allclose(market.probabilities(sets), model.predict_proba(sets), atol=1e-9)
    np.testing.assert_allclose(market.expected_ranks(sets), model.predict_expected_places(sets), atol=1e-9)
    np.testing.assert_allclose([g.sum(0) for g in market.gradient(sets, 0)], 0, atol=1e-9)


def test_what_has_no_probabilities_is_refused():
    ranks = (-X[..., 0]).argsort(1).argsort(1)
    with pytest.raises(ParameterError, match="calibrate"):
        Market(Ranker(FATE(width=4), steps=2, validation=0, random_state=0).fit(X, ranks))
    with pytest.raises(ParameterError, match="no probabilities"):
        Market(RankSVM().fit(X[:20], ranks[:20]))
    with pytest.raises(ParameterError, match="fitted model"):
        Market("model.ent")


def test_members_are_markets_whose_mean_utility_is_the_ensembles():
    market = Market(net(members=3).fit(X, CHOSEN))
    sets = market.sets_of(RAGGED)
    own = [one.utilities(sets) for one in market.members()]
    np.testing.assert_allclose(np.mean(own, axis=0), market.utilities(sets), atol=1e-5)
    assert len(own) == market.n_members == 3
    assert Market(MNL).members() == []


def test_subset_choice_has_probabilities_of_its_own():
    market = Market(SubsetChooser(FATE(width=4), steps=5, random_state=0).fit(X, X[..., 0] > 0))
    sets = market.sets_of(X[:3])
    np.testing.assert_allclose(market.probabilities(sets), 1 / (1 + np.exp(-market.utilities(sets))))
    assert market.gradient(sets, 0)[0].shape == (4, 4)
    with pytest.raises(ParameterError, match="no logsum"):
        market.logsum(sets)
