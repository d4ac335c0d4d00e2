import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from entourage.data.ranks import ranks_from_scores, tie_equal_objects


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=9))
def test_ranks_count_the_objects_with_a_higher_score(scores):
    expected = rankdata([-s for s in scores], method="min") - 1
    assert ranks_from_scores(np.array([scores])).tolist() == [expected.tolist()]


def test_padding_is_ranked_minus_one():
    ranks = ranks_from_scores(np.array([[1.0, 9.0, 2.0]]), np.array([[True, False, True]]))
    assert ranks.tolist() == [[1, -1, 0]]


def test_objects_that_are_equal_but_for_rounding_of_their_scores_are_tied():
    objects = np.array([[1.0, np.nan], [2.0, 0.0], [1.0, np.nan], [2.0, 0.0], [3.0, 0.0], [1.0, np.nan]])
    scores = np.array([[0.5 + 2e-7, 0.1, 0.5, 0.1 + 1e-3, 0.5 + 1e-7, 0.5 + 3e-7]])
    found = tie_equal_objects(objects, np.arange(6)[None], scores)
    assert found[0, 0] == found[0, 5], "neighbours by their scores"
    assert found[0, 1] != found[0, 3], "equal objects whose scores differ by more than rounding keep them"
    assert found[0, 4] == scores[0, 4], "another object, however near, keeps its score"
    assert np.abs(found - scores).max() < 1e-6


@given(st.integers(1, 7), st.integers(0, 2**32 - 1))
def test_equal_objects_share_a_rank_however_their_scores_are_rounded(copies, seed):
    rng = np.random.default_rng(seed)
    objects = np.repeat(rng.normal(size=(12, 2)), copies, axis=0)
    utilities = np.repeat(100 * rng.normal(size=12), copies)
    rows = rng.permutation(12 * copies).reshape(3, -1)
    noisy = utilities * (1 + 1e-7 * rng.normal(size=utilities.shape))
    found = ranks_from_scores(tie_equal_objects(objects, rows, noisy[rows]))
    np.testing.assert_array_equal(found, ranks_from_scores(utilities[rows]))
