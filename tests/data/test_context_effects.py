"""Generated context effects: utilities by hand, textbook cases."""

import numpy as np
import pytest

from entourage.data.synthetic.context_effects import effect_utilities, make_context_effect, third_objects


def test_two_objects_are_under_no_effect_but_for_twins():
    X = np.array([[[0.3, 0.72], [0.68, 0.3]]])
    for effect in ("compromise", "attraction"):
        utilities = effect_utilities(X, effect)
        assert (utilities[0, 0] - utilities[0, 1]) == pytest.approx(0.51 - 0.49)


def test_the_effects_by_hand():
    a, b = [0.2, 0.8], [0.6, 0.4]
    extreme, decoy, twin = [1.0, 0.0], [0.5, 0.3], [0.6, 0.4]
    # the middle of what is on offer is (0.6, 0.4): B stands in it, A 0.4 + 0.4 away
    assert effect_utilities(np.array([[a, b, extreme]]), "compromise")[0] == pytest.approx(
        [0.5 - 0.4 * 0.8, 0.5, 0.5 - 0.4 * 0.8]
    )
    # B dominates the decoy from a distance of 0.1 + 0.1
    assert effect_utilities(np.array([[a, b, decoy]]), "attraction")[0] == pytest.approx(
        [0.5, 0.5 + 0.4 * np.exp(-0.2 / 0.24), 0.4]
    )
    far = np.exp(-0.32 / (2 * 0.12**2))
    assert effect_utilities(np.array([[a, b, twin]]), "similarity")[0] == pytest.approx(
        [0.5 - 0.4 * 2 * far, 0.5 - 0.4 * (1 + far), 0.5 - 0.4 * (1 + far)]
    )


@pytest.mark.parametrize(("effect", "favours_b"), [("compromise", 1), ("attraction", 1), ("similarity", 0)])
def test_a_textbook_c_pushes_b_the_way_the_appendix_says(effect, favours_b):
    X = third_objects(effect, 500, random_state=0)
    before, after = effect_utilities(X[:, :2], effect), effect_utilities(X, effect)
    assert 0.3 < (before[:, 1] > before[:, 0]).mean() < 0.7
    assert ((after[:, 1] > after[:, 0]) == favours_b).mean() > 0.99


def test_no_place_of_an_object_says_which_it_is():
    sets = make_context_effect("attraction", 2000, random_state=0)
    first = np.array([s[0, 0] for s in sets.to_list()])
    assert 0.4 < (first > 0.5).mean() < 0.6
    assert sorted(set(sets.sizes)) == [2, 3]
