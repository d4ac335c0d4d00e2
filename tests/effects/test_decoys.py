"""Decoys: the best of candidates, of a box and of the objects of sets, and their map."""

import numpy as np
import pytest
from effect_cases import PUSHED, C, Model, T, alone, near_dominated

from entourage.data import Sets
from entourage.effects.decoys import best_decoy, decoy_map, decoys_among, map_features
from entourage.errors import DataError, ParameterError, ShapeError

RNG = np.random.default_rng(0)


def test_the_best_of_candidates_is_named():
    found = best_decoy(Model(near_dominated), T[0], C[0], candidates=[[0.0, 0.0], [1.9, 0.9], [0.9, 1.9]])
    assert (found.candidate, found.shift, found.before, found.after) == (2, 2, 0, 2)


def test_the_search_finds_a_known_best_place_in_the_box_and_at_its_edge():
    def peaked(x):  # A, the first, gains by what is near (0.3, 0.7)
        bonus = np.exp(-40 * np.square(x[2:] - [0.3, 0.7]).sum()) if len(x) > 2 else 0.0
        return x.sum(1) + bonus * (np.arange(len(x)) == 0)

    box = [[0.0, 0.0], [1.0, 1.0]]
    found = best_decoy(Model(peaked), [0.0, 1.0], [1.0, 0.0], bounds=box)
    np.testing.assert_allclose(found.features, [0.3, 0.7], atol=2e-3)
    assert found.shift == pytest.approx(1, abs=1e-4)
    again = best_decoy(Model(peaked), [0.0, 1.0], [1.0, 0.0], bounds=box)
    np.testing.assert_array_equal(found.features, again.features)

    def edge(x):
        return x.sum(1) + (x[2:].sum() if len(x) > 2 else 0.0) * (np.arange(len(x)) == 0)

    found = best_decoy(Model(edge), [0.0, 1.0], [1.0, 0.0], bounds=box)
    np.testing.assert_array_equal(found.features, [1, 1])


def test_a_map_has_the_shift_of_each_place():
    found = decoy_map(Model(near_dominated), T[0], C[0] - [0, 0.5], [[0, 0], [3, 3]], points=31)
    assert found.shifts.shape == (31, 31)
    assert found.before == 0.5
    assert (found.x[9], found.y[19]) == pytest.approx((0.9, 1.9))  # just below A = (1, 2)
    assert found.shifts[19, 9] == 2
    assert found.shifts[4, 19] == -2  # just below B = (2, 0.5)


def test_objects_that_help_and_hurt_are_found_once_each():
    X = np.array([[[1.0, 2.0], [2.0, 1.0], [0.9, 1.9]], [[1.9, 0.9], [0.9, 1.9], [1.0, 2.0]]])
    found = decoys_among(Model(near_dominated), X, 0, 1)
    assert (found.tried, found.before) == (2, 0)
    assert [(one.candidate, one.shift, one.after) for one in found.helps] == [(2, 2, 2)]
    assert [(one.candidate, one.shift, one.after) for one in found.hurts] == [(3, -2, -2)]
    assert decoys_among(Model(near_dominated), X, 0, 1, shown=0).helps == []
    blind = decoys_among(Model(alone), X, 0, 1)
    assert (blind.helps, blind.hurts) == ([], [])
    many = Sets.of(RNG.normal(size=(30, 4, 2)))
    assert decoys_among(Model(alone), many, 0, 1, most_objects=50).tried <= 50


def test_a_map_is_of_the_features_in_which_two_objects_differ_most():
    x = np.array([[0.0, 0.0, 5.0, 1.0, 0.0], [0.0, 9.0, 6.0, 1.0, 1.0], [4.0, 90.0, 7.0, 1.0, 0.0]])
    sets = Sets.of([x, x + np.array([1, 1, 1, 0, 0])])
    assert map_features(sets, 0, 1, range(5)) == (1, 2)  # the fifth differs more, but has two values
    assert map_features(sets, 0, 2, [0, 1, 4]) == (0, 1)
    assert map_features(sets, 0, 1, [4, 2]) == (2, 4)
    assert map_features(sets, 0, 1, [3, 2]) is None


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda: best_decoy(Model(alone), T[0], C[0]), ParameterError, "either candidates"),
        (lambda: best_decoy(Model(alone), T, C, candidates=T), ShapeError, "one A and one B"),
        (lambda: best_decoy(Model(alone), T[0], C[0], bounds=[0, 1]), ShapeError, "bounds needs"),
        (lambda: best_decoy(Model(alone), T[0], C[0], bounds=[[1, 1], [0, 0]]), ParameterError, "smallest"),
        (
            lambda: decoy_map(Model(alone), T[0], C[0], [[0, 0], [1, 1]], features=(0, 5)),
            ParameterError,
            "two",
        ),
        (lambda: decoys_among(Model(alone), PUSHED[:, [0, 0, 1]], 0, 1), DataError, "the same features"),
        (lambda: decoys_among(Model(alone), PUSHED[:, [0, 1, 1]], 0, 1), DataError, "no third object"),
        (lambda: decoys_among(Model(alone), PUSHED, -1, 1), ParameterError, "target"),
        (
            lambda: best_decoy(Model(alone), T[0], C[0], bounds=[(0, 1), (0, 1)]),
            ParameterError,
            "a single point",
        ),
        (lambda: decoys_among(Model(alone), PUSHED, 0, 10**6), ParameterError, "competitor"),
        (lambda: decoys_among(Model(alone), PUSHED, 0, 1, shown=-1), ParameterError, "shown"),
    ],
)
def test_wrong_input_says_what_is_needed(wrong, error, words):
    with np.errstate(divide="ignore"), pytest.raises(error, match=words):
        wrong()
