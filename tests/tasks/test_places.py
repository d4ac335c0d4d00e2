"""Probabilities of places: against all orders, and laws that hold for any utilities."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entourage.errors import DataError, ShapeError
from entourage.tasks.places import expected_places, place_probabilities, place_work


def by_all_orders(utilities):
    """Sum the probabilities of all rankings, each made of repeated choices."""
    m = len(utilities)
    found = np.zeros((m, m))
    for order in itertools.permutations(range(m)):
        p = 1.0
        for k in range(m):
            left = utilities[list(order[k:])]
            p /= np.exp(left - left[0]).sum()
        for k, i in enumerate(order):
            found[i, k] += p
    return found


def softmax(utilities):
    powers = np.exp(utilities - utilities.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("spread", [0.0, 1.0, 12.0])
def test_places_equal_the_sum_over_all_orders(m, spread):
    utilities = spread * np.random.default_rng(m).normal(size=(2, m))
    found = place_probabilities(utilities)
    for own, truth in zip(found, utilities, strict=True):
        np.testing.assert_allclose(own, by_all_orders(truth), atol=1e-9)


@pytest.mark.parametrize(
    "utilities",
    [
        np.zeros((1, 120)),
        np.random.default_rng(0).normal(size=(2, 120)),
        np.linspace(-700, 700, 15)[None],
        np.array([[700.0, -700.0, 50.0, -50.0, 0.0, 0.0]]),
        np.array([[1e9, 0.0, 1e9 + 1, 3.0]]),
        np.array([[5.0]]),
    ],
    ids=["equal", "many", "apart", "extreme", "offset", "one"],
)
def test_rows_and_columns_sum_to_one_and_the_first_is_the_softmax(utilities):
    found = place_probabilities(utilities)
    assert ((found >= 0.0) & (found <= 1.0)).all(), "to the last digit"
    np.testing.assert_allclose(found.sum(1), 1.0, atol=1e-9)
    np.testing.assert_allclose(found.sum(2), 1.0, atol=1e-9)
    np.testing.assert_allclose(found[:, :, 0], softmax(utilities), atol=1e-9)
    mean = found @ np.arange(utilities.shape[1])
    np.testing.assert_allclose(expected_places(utilities), mean, atol=1e-7)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(-60, 60), min_size=1, max_size=9), st.integers(0, 4), st.floats(-1e3, 1e3))
def test_padding_order_and_a_shift_change_nothing(utilities, padding, shift):
    own = np.array([utilities])
    order = np.random.default_rng(len(utilities)).permutation(len(utilities))
    wide = np.concatenate([own[:, order] + shift, np.full((1, padding), np.nan)], axis=1)
    mask = ~np.isnan(wide)
    m = len(utilities)
    found, plain = place_probabilities(wide, mask), place_probabilities(own)
    np.testing.assert_allclose(found[:, :m, :m], plain[:, order], atol=1e-9)
    assert not found[:, m:].any()
    assert not found[:, :, m:].any()
    np.testing.assert_allclose(expected_places(wide, mask)[:, :m], expected_places(own)[:, order], atol=1e-9)


def test_sets_of_one_batch_are_computed_as_if_alone():
    utilities = np.random.default_rng(1).normal(size=(40, 5)) * np.logspace(-1, 3, 40)[:, None]
    alone = np.concatenate([place_probabilities(own[None]) for own in utilities])
    np.testing.assert_allclose(place_probabilities(utilities), alone, atol=1e-12)


@pytest.mark.parametrize("chunk", [1, 300])
def test_places_are_the_same_in_chunks(chunk, monkeypatch):
    rng = np.random.default_rng(3)
    utilities, mask = rng.normal(size=(30, 5)) * np.logspace(-1, 3, 30)[:, None], rng.random((30, 5)) < 0.8
    whole, expected = place_probabilities(utilities, mask), expected_places(utilities, mask)
    monkeypatch.setattr("entourage.tasks.places._CHUNK", chunk)
    np.testing.assert_allclose(place_probabilities(utilities, mask), whole, atol=1e-12)
    np.testing.assert_allclose(expected_places(utilities, mask), expected, atol=1e-12)


def test_the_padding_may_hold_none_and_a_mask_be_written_as_0_and_1():
    utilities, mask = [[1.0, 0.0, None]], [[1, 1, 0]]
    np.testing.assert_allclose(
        place_probabilities(utilities, mask)[0, :2, :2], by_all_orders(np.array([1.0, 0.0]))
    )
    np.testing.assert_allclose(expected_places(utilities, mask)[0, :2], [1 / (1 + np.e), np.e / (1 + np.e)])


def test_the_work_of_a_set_grows_with_its_square_and_the_number_of_nodes():
    # 3 m² · 30 / distance of nodes, which is 0.35, and 1 / sqrt(m) where that is less
    work = place_work(np.array([1, 4, 100]))
    assert work.tolist() == pytest.approx([3 * 1 * 30 / 0.35, 3 * 16 * 30 / 0.35, 3 * 10_000 * 30 * 10])


def test_a_simulated_race_has_these_places():
    rng = np.random.default_rng(2)
    utilities = rng.normal(size=8)
    ranks = (-utilities - rng.gumbel(size=(40_000, 8))).argsort(1).argsort(1)
    shares = np.stack([(ranks == k).mean(0) for k in range(8)], axis=1)
    assert np.abs(place_probabilities(utilities[None])[0] - shares).max() < 0.012  # five standard errors


def test_what_is_no_utility_is_refused():
    with pytest.raises(ShapeError, match=r"pass utilities\[None\]"):
        place_probabilities(np.zeros(3))
    with pytest.raises(ShapeError, match="mask needs the shape"):
        place_probabilities(np.zeros((1, 3)), np.ones((1, 2)))
    with pytest.raises(DataError, match="finite"):
        expected_places([[0.0, np.inf]])


@pytest.mark.parametrize(("n", "m"), [(0, 3), (2, 0), (0, 0)])
def test_no_sets_and_sets_without_any_object_have_no_places(n, m):
    assert place_probabilities(np.zeros((n, m))).shape == (n, m, m)
    assert expected_places(np.zeros((n, m))).shape == (n, m)
