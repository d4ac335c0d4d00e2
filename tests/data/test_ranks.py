import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from entourage.data.ranks import ranks_from_scores


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=9))
def test_ranks_count_the_objects_with_a_higher_score(scores):
    expected = rankdata([-s for s in scores], method="min") - 1
    assert ranks_from_scores(np.array([scores])).tolist() == [expected.tolist()]


def test_padding_is_ranked_minus_one():
    ranks = ranks_from_scores(np.array([[1.0, 9.0, 2.0]]), np.array([[True, False, True]]))
    assert ranks.tolist() == [[1, -1, 0]]
