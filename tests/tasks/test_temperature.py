"""The temperature: the likelihood of the loss, on data of a known one, and where the data say little."""

import numpy as np
import pytest
import torch

from entourage.data.sets import Sets
from entourage.errors import ParameterError
from entourage.losses import plackett_luce_loss
from entourage.tasks.temperature import fit_temperatures


def fit_temperature(sets, scores, weights=None):
    return fit_temperatures(sets, scores, weights).all


RNG = np.random.default_rng(0)


def ranked(utilities, rng=None):
    """Sets of these utilities, ranked by Plackett and Luce; without chance where there is no generator."""
    noise = 0.0 if rng is None else rng.gumbel(size=utilities.shape)
    return Sets.from_array(np.zeros((*utilities.shape, 1)), (-utilities - noise).argsort(1).argsort(1))


def likelihood(sets, scores, temperature, weights):
    """The penalised negative log-likelihood, by the loss that nets are trained with."""
    mask = torch.ones(len(sets), sets.uniform_size, dtype=torch.bool)
    s, r = (torch.tensor(values.reshape(mask.shape)) for values in (scores / temperature, sets.targets))
    total = (plackett_luce_loss(s, r, mask).numpy() * weights / weights.mean()).sum()
    sharpness = np.sqrt(np.average(s.numpy().var(1), weights=weights))
    return total + np.logaddexp(0, sharpness) + np.logaddexp(0, -sharpness)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_a_known_temperature_is_found(scale):
    utilities = np.random.default_rng(1).normal(size=(3000, 5))
    found = fit_temperature(ranked(utilities, np.random.default_rng(2)), scale * utilities.ravel())
    assert found == pytest.approx(scale, rel=0.05)


def test_it_minimises_the_loss_with_ties_unranked_objects_and_weights():
    ranks = RNG.integers(0, 4, size=(60, 6)).astype(float)
    ranks[RNG.random(ranks.shape) < 0.2] = np.nan
    scores = -np.nan_to_num(ranks, nan=2.0) + 2 * RNG.normal(size=ranks.shape)
    weights = RNG.random(60)
    sets = Sets.from_array(np.zeros((60, 6, 1)), ranks)
    best = fit_temperature(sets, scores.ravel(), weights)
    values = [likelihood(sets, scores.ravel(), best * factor, weights) for factor in (0.99, 1.0, 1.01)]
    assert values[1] < min(values[0], values[2])
    assert fit_temperature(sets, scores.ravel(), 7 * weights) == pytest.approx(best, rel=1e-6)


def test_a_set_of_weight_zero_is_left_out():
    utilities = RNG.normal(size=(40, 4))
    sets, scores = ranked(utilities, RNG), utilities + RNG.normal(size=utilities.shape)
    weights = np.r_[np.ones(30), np.zeros(10)]
    fewer = fit_temperature(sets[:30], scores[:30].ravel())
    assert fit_temperature(sets, scores.ravel(), weights) == pytest.approx(fewer, rel=1e-6)


def test_ragged_sets_count_as_they_would_alone():
    parts = [RNG.normal(size=(20, m)) for m in (1, 3, 6)]
    rows = [row for part in parts for row in part]
    ranks = [np.argsort(np.argsort(-row - RNG.gumbel(size=len(row)))) for row in rows]
    sets = Sets.from_list([np.zeros((len(row), 1)) for row in rows], ranks)
    order = RNG.permutation(len(rows))
    shuffled = Sets.from_list([np.zeros((len(rows[i]), 1)) for i in order], [ranks[i] for i in order])
    found = fit_temperature(sets, np.concatenate(rows))
    assert fit_temperature(shuffled, np.concatenate([rows[i] for i in order])) == pytest.approx(
        found, rel=1e-6
    )
    assert fit_temperature(sets, 1e9 + np.concatenate(rows)) == pytest.approx(found, rel=1e-4)


@pytest.mark.parametrize("count", [1, 5, 200])
def test_perfect_orders_leave_it_finite_and_the_less_extreme_the_fewer_there_are(count):
    utilities = np.random.default_rng(3).normal(size=(count, 5))
    found = fit_temperature(ranked(utilities), utilities.ravel())
    assert 0.01 < found < 2
    if count > 1:
        assert found < fit_temperature(ranked(utilities[:1]), utilities[:1].ravel())


def test_scores_worse_than_chance_make_all_rankings_equally_likely():
    utilities = RNG.normal(size=(50, 5))
    assert fit_temperature(ranked(utilities), -utilities.ravel()) > 1e5


def first_then_chance(utilities, rng):
    """Sets whose first place is drawn by these utilities, and whose other places say nothing."""
    first = (utilities + rng.gumbel(size=utilities.shape)).argmax(1)
    rest = rng.random(utilities.shape)
    rest[np.arange(len(rest)), first] = -1
    return Sets.from_array(np.zeros((*utilities.shape, 1)), rest.argsort(1).argsort(1))


@pytest.mark.parametrize("scale", [1e-3, 1e6])
def test_the_first_place_has_a_temperature_of_its_own(scale):
    rng = np.random.default_rng(4)
    utilities = 2 * rng.normal(size=(2000, 12))
    found = fit_temperatures(first_then_chance(utilities, rng), scale * utilities.ravel())
    assert found.first == pytest.approx(scale, rel=0.06)
    assert found.all > 3 * scale  # the lower places are noise


def test_that_of_the_first_place_makes_first_places_most_likely():
    """With many sets, the likelihood is that of a softmax, shared by those that tie for the first place."""
    rng = np.random.default_rng(5)
    n, m = 6000, 5
    ranks = rng.integers(0, 3, size=(n, m)).astype(float)
    ranks[rng.random((n, m)) < 0.1] = np.nan
    ranks[:, 0] = 1.0  # something is ranked
    good = -np.nan_to_num(ranks, nan=1.0)
    scores = np.where(good == good.max(1, keepdims=True), good + 1, 0) + 2 * rng.normal(size=(n, m))
    weights = rng.random(n) + 0.1
    sets = Sets.from_array(np.zeros((n, m, 1)), ranks)
    found = fit_temperatures(sets, scores.ravel(), weights).first

    def loss(temperature):
        best = np.nanmin(ranks, axis=1, keepdims=True)
        powers = np.exp(scores / temperature)
        worse = np.where(ranks > best, powers, 0).sum(1, keepdims=True)
        own = np.where(ranks == best, np.log(powers / (powers + worse)), 0).sum(1) / (ranks == best).sum(1)
        return -(own * weights / weights.mean()).sum()

    values = [loss(found * factor) for factor in (0.97, 1.0, 1.03)]
    assert values[1] < min(values[0], values[2])


def test_where_the_model_is_right_the_first_place_learns_from_all_places():
    """Its error is nearer to that of all places than to that of first places alone."""
    errors = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        utilities = rng.normal(size=(30, 6))
        found = fit_temperatures(ranked(utilities, rng), utilities.ravel())
        errors.append(np.log(found))
    by_first, by_all = np.sqrt(np.square(errors).mean(0))
    alone = 1 / np.sqrt(30 * 0.55)  # by the information of a first place: the variance of b s in the softmax
    assert by_all < 0.16
    assert by_first < 0.85 * alone


def test_few_sets_say_little_against_the_temperature_of_all():
    utilities = np.random.default_rng(0).normal(size=(300, 8))
    sets = first_then_chance(utilities, np.random.default_rng(1))
    few, many = (fit_temperatures(sets[:n], utilities[:n].ravel()) for n in (3, 300))
    assert few.first == few.all
    assert many.first < 0.7 * many.all


def test_equal_scores_have_any_temperature_and_missing_ones_are_an_error():
    utilities = RNG.normal(size=(5, 3))
    assert fit_temperature(ranked(utilities), np.ones(15)) == 1.0
    with pytest.raises(ParameterError, match="one score for each"):
        fit_temperature(ranked(utilities), np.ones(3))
