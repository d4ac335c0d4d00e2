"""Attraction, compromise and similarity of triples that are given: each has the size it was made with."""

import numpy as np
import pytest
from effect_cases import C, Model, T, alone, middle, near_dominated, shared

from entourage.effects.triples import attraction, compromise, context_effect, similarity
from entourage.errors import DataError, ShapeError

RNG = np.random.default_rng(0)


def test_each_effect_has_the_size_it_was_made_with():
    found = attraction(Model(near_dominated), T, C, T - 0.1)
    np.testing.assert_allclose(found.shift.values, [2, 2])
    assert found.before == 0.5
    assert found.after == pytest.approx(1 / (1 + np.exp(-2)))
    assert compromise(Model(middle), T, C, T + np.array([-1.0, 1.0])).shift.value == pytest.approx(1)
    assert similarity(Model(shared), T, C, C + 0.05).shift.value == pytest.approx(np.log(2))
    assert similarity(Model(near_dominated), T, C, C - 0.05).shift.value == pytest.approx(-2)


def test_a_decoy_may_be_measured_against_the_other_decoy():
    found = attraction(Model(near_dominated), T, C, T - 0.1, instead=C - 0.1)
    assert found.shift.value == pytest.approx(4)
    assert found.reversal_rate == 1


def test_less_may_be_better():
    found = attraction(Model(lambda x: near_dominated(-x)), -T, -C, -T + 0.1, less_is_better=[0, 1])
    assert found.shift.value == pytest.approx(2)


@pytest.mark.parametrize(
    ("measure", "third"), [(attraction, T + 0.1), (compromise, C), (similarity, T + 0.01)]
)
def test_triples_that_are_no_case_of_the_effect_are_an_error(measure, third):
    with pytest.raises(DataError, match=f"Triple 0 is no case of {measure.__name__}"):
        measure(Model(alone), T, C, third)


def test_objects_are_repeated_where_one_is_given():
    found = context_effect(Model(near_dominated), [1.0, 2.0], [2.0, 1.0], [[0.9, 1.9], [0.0, 0.0]])
    np.testing.assert_allclose(found.shift.values, [2, 0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_model_without_context_has_exactly_no_effect(dtype):
    X = RNG.normal(size=(6, 5, 2))
    effect = context_effect(Model(alone, dtype), X[:, 0], X[:, 1], X[:, 2])
    assert (effect.shift.value, effect.reversal_rate) == (0, 0)
    assert effect.before == effect.after


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda: context_effect(Model(alone), T, C, [1.0]), ShapeError, "same features"),
        (lambda: context_effect(Model(alone), T, C[[0, 0, 0]], T), ShapeError, "as many rows"),
        (lambda: context_effect(Model(alone), T[None], C, T), ShapeError, "A needs axes"),
    ],
)
def test_wrong_input_says_what_is_needed(wrong, error, words):
    with np.errstate(divide="ignore"), pytest.raises(error, match=words):
        wrong()


def test_errors_of_terms_that_cancel_are_rounding_too():
    def cancelling(
        x,
    ):  # terms of about 1 whose sum is small for A and B; the error depends on the size of the set
        error = np.float32(2e-7) * len(x) * (np.arange(len(x)) == 0)
        return x[:, 0] + error

    a, b = [0.02, 0.0], [0.01, 0.0]
    thirds = np.column_stack([np.linspace(0.0, 2.0, 50), np.zeros(50)])
    found = context_effect(Model(cancelling, np.float32), a, b, thirds)
    assert found.shift.value == 0
