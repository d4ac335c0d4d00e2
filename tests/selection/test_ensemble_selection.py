"""Greedy ensemble selection: weights that sum to 1, complements found, noise and useless models left out."""

import numpy as np
import pytest

from entourage.selection.ensemble_selection import select_weights
from entourage.training.deadline import time_limit

RNG = np.random.default_rng(0)
TRUTH = RNG.normal(size=300)


def fit(mix):
    return -((mix - TRUTH) ** 2)


def test_two_models_that_err_differently_are_better_together():
    errors = RNG.normal(size=(2, 300))
    models = {"a": TRUTH + errors[0], "b": TRUTH + errors[1], "useless": 5 * RNG.normal(size=300)}
    weights = select_weights(models, fit, np.ones(300))
    assert set(weights) == {"a", "b"}
    assert sum(weights.values()) == pytest.approx(1)
    mix = sum(share * models[name] for name, share in weights.items())
    assert fit(mix).mean() > max(fit(models[name]).mean() for name in models)


def test_sets_of_weight_0_and_sets_without_a_value_have_no_say():
    half = np.arange(300) < 150
    models = {"first": np.where(half, TRUTH, 9.0), "second": np.where(half, 9.0, TRUTH)}
    assert select_weights(models, fit, half.astype(float)) == {"first": 1.0}
    assert select_weights(models, lambda mix: np.where(half, np.nan, fit(mix)), np.ones(300)) == {
        "second": 1.0
    }


def test_the_same_seed_gives_the_same_weights_and_the_order_of_models_has_no_say():
    models = {str(i): TRUTH + RNG.normal(size=300) for i in range(4)}
    first = select_weights(models, fit, np.ones(300), 3)
    assert first == select_weights(models, fit, np.ones(300), 3)
    assert first == pytest.approx(select_weights(dict(reversed(models.items())), fit, np.ones(300), 3))


def test_without_time_the_best_single_model_is_taken():
    models = {"bad": -TRUTH, "good": TRUTH + 0.1 * RNG.normal(size=300)}
    with time_limit(0):
        assert select_weights(models, fit, np.ones(300)) == {"good": 1.0}


@pytest.mark.parametrize("value", [np.nan, 0.0])
def test_where_nothing_tells_models_apart_there_are_still_weights(value):
    models = {"a": TRUTH, "b": -TRUTH}
    weights = select_weights(models, lambda mix: np.full(300, value), np.ones(300))
    assert sum(weights.values()) == pytest.approx(1)


def test_one_set_is_enough():
    weights = select_weights({"a": np.array([1.0]), "b": np.array([3.0])}, lambda mix: -mix, np.ones(1))
    assert weights == {"a": 1.0}
