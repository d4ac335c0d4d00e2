"""Simulated targets have the probabilities of the model, and keep ties and unranked objects."""

import numpy as np
import pytest
from effect_cases import Known

from entourage.data import Sets
from entourage.effects.simulate import plackett_luce_scale, simulate_targets
from entourage.tasks import Choice, Ranking, SubsetChoice


def test_simulated_choices_have_the_probabilities_of_the_model():
    sets = Sets.from_array(np.tile([[[0.0], [1.0], [2.0]]], (4000, 1, 1)), np.tile([0, 1, 1], (4000, 1)))
    own = Known(lambda given: given.objects[:, 0])
    drawn = simulate_targets(own, sets, np.random.default_rng(0)).reshape(-1, 3)
    assert (np.sort(drawn, axis=1) == [0, 1, 1]).all()
    expected = np.exp([0.0, 1.0, 2.0]) / np.exp([0.0, 1.0, 2.0]).sum()
    np.testing.assert_allclose((drawn == 0).mean(0), expected, atol=0.03)
    outside = Known(lambda given: given.objects[:, 0], Choice(outside=True))
    drawn = simulate_targets(outside, sets, np.random.default_rng(0)).reshape(-1, 3)
    assert (drawn == 0).any(1).mean() == pytest.approx(1 - 1 / (1 + np.exp([0.0, 1.0, 2.0]).sum()), abs=0.03)
    some = Known(lambda given: given.objects[:, 0], SubsetChoice)
    drawn = simulate_targets(some, sets, np.random.default_rng(0)).reshape(-1, 3)
    np.testing.assert_allclose((drawn == 0).mean(0), 1 / (1 + np.exp([0.0, -1.0, -2.0])), atol=0.03)


def test_simulated_rankings_keep_ties_and_unranked_objects_and_the_noise_of_the_data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 4, 1))
    ranks = np.argsort(np.argsort(-(2.0 * x[:, :, 0] + rng.gumbel(size=(3000, 4))), axis=1), axis=1).astype(
        float
    )
    sets = Sets.from_array(x, ranks)
    assert plackett_luce_scale(sets, 40.0 * sets.objects[:, 0]) == pytest.approx(2 / 40, rel=0.06)
    ranks[:, 0], ranks[::2, 1] = np.nan, ranks[::2, 2]
    sets = Sets.from_array(x, ranks)
    drawn = simulate_targets(Known(lambda given: given.objects[:, 0], Ranking), sets, rng).reshape(-1, 4)
    np.testing.assert_array_equal(np.sort(drawn, axis=1), np.sort(ranks, axis=1))
    assert np.isnan(drawn[:, 0]).all()
