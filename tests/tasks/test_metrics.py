"""Metrics, worked by hand and against scipy and scikit-learn."""

from math import log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau, spearmanr
from sklearn.metrics import average_precision_score, ndcg_score

from entourage.errors import DataError, ParameterError
from entourage.metrics import (
    average_precision,
    expected_reciprocal_rank,
    kendall_tau,
    ndcg,
    ranking_accuracy,
    ranking_loss,
    reciprocal_rank,
    spearman,
    top1_accuracy,
    zero_one_accuracy,
)
from entourage.tasks.metric_arrays import as_arrays
from entourage.tasks.ranking_metrics import _count_pairs

seeds = st.integers(0, 10_000)


def rankings(seed: int, n: int = 8, m: int = 7) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    ranks = rng.integers(0, 4, size=(n, m))
    ranks[:, :2] = [0, 1]  # never all tied
    return np.round(rng.normal(size=(n, m)), 1), ranks


def test_zero_one_accuracy_wants_every_ordered_pair_right():
    scores = [[3.0, 2.0, 1.0], [3.0, 1.0, 2.0], [3.0, 2.0, 2.0], [3.0, 1.0, 2.0]]
    ranks = [[0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 1, 1]]
    assert zero_one_accuracy(scores, ranks, per_set=True).tolist() == [1, 0, 0, 1]


def test_ranking_accuracy_and_loss_count_ties_one_half_and_leave_tied_truth_out():
    # pairs (0,1), (0,2), (0,3) and no other: scores 2 > 1, 2 = 2, 2 < 3
    assert ranking_accuracy([[2.0, 1.0, 2.0, 3.0]], [[0, 1, 1, 1]]) == pytest.approx((1 + 0.5 + 0) / 3)
    assert ranking_loss([[2.0, 1.0, 2.0, 3.0]], [[0, 1, 1, 1]]) == pytest.approx((0 + 0.5 + 1) / 3)


def test_one_pair_is_right_or_wrong():
    assert ranking_loss([[1.0, 2.0]], [[0, 1]]) == 1.0
    for metric in (spearman, kendall_tau):
        assert metric([[2.0, 1.0], [1.0, 2.0]], [[0, 1]] * 2, per_set=True).tolist() == [1.0, -1.0]


@pytest.mark.parametrize("chunk", [1, 14, 50, 4_000_000])
def test_each_pair_is_counted_once_whatever_the_chunks(chunk, monkeypatch):
    monkeypatch.setattr("entourage.tasks.ranking_metrics._CHUNK", chunk)
    scores, ranks = rankings(0)
    scores, ranks = np.round(scores), np.where(scores > 1.2, np.nan, ranks)
    higher = scores[:, :, None] > scores[:, None, :]
    before = ranks[:, :, None] < ranks[:, None, :]
    apart = higher & ~np.isnan(ranks[:, :, None] + ranks[:, None, :])
    tied = before & (scores[:, :, None] == scores[:, None, :])
    counts = [pairs.sum((1, 2)).tolist() for pairs in (before & higher, tied, before, apart)]
    assert [found.tolist() for found in _count_pairs(*as_arrays(scores, ranks, None))] == counts
    assert min(map(max, counts)) > 1


def test_spearman_equals_the_papers_formula():
    # predicted ranks 1, 0, 3, 2 against 0, 1, 2, 3: 1 - 6 (1 + 1 + 1 + 1) / (4 * 15)
    assert spearman([[3.0, 4.0, 1.0, 2.0]], [[0, 1, 2, 3]]) == pytest.approx(1 - 24 / 60)


def test_kendall_tau_worked_by_hand():
    # 5 of 6 pairs in order, 1 out of order
    assert kendall_tau([[3.0, 4.0, 2.0, 1.0]], [[0, 1, 2, 3]]) == pytest.approx(4 / 6)


@given(seed=seeds)
@settings(max_examples=30, deadline=None)
def test_correlations_equal_scipys_with_ties(seed):
    scores, ranks = rankings(seed)
    for s, r in zip(scores, ranks, strict=True):
        assert spearman(s[None], r[None]) == pytest.approx(spearmanr(-s, r).statistic)
        assert kendall_tau(s[None], r[None]) == pytest.approx(kendalltau(-s, r).statistic)


def test_constant_scores_are_worth_0_and_tied_truth_nothing():
    for metric in (spearman, kendall_tau):
        assert metric([[1.0, 1.0, 1.0]], [[0, 1, 2]]) == 0
        assert np.isnan(metric([[1.0, 2.0, 3.0]], [[1, 1, 1]]))


def test_ndcg_worked_by_hand():
    # order of prediction: relevance 1, 2, 0
    gained = 1 / log2(2) + 2 / log2(3)
    ideal = 2 / log2(2) + 1 / log2(3)
    assert ndcg([[2.0, 3.0, 1.0]], [[0, 1, 2]]) == pytest.approx(gained / ideal)
    assert ndcg([[2.0, 3.0, 1.0]], [[0, 1, 2]], k=1) == pytest.approx(1 / 2)
    gained = (2**1 - 1) / log2(2) + (2**2 - 1) / log2(3)
    ideal = (2**2 - 1) / log2(2) + (2**1 - 1) / log2(3)
    assert ndcg([[2.0, 3.0, 1.0]], [[0, 1, 2]], gain="exponential") == pytest.approx(gained / ideal)


@given(seed=seeds, k=st.sampled_from([None, 1, 3]))
@settings(max_examples=30, deadline=None)
def test_ndcg_equals_scikit_learns_with_ties(seed, k):
    scores, ranks = rankings(seed)
    relevance = ranks.max(1, keepdims=True) - ranks
    assert ndcg(scores, ranks, k=k) == pytest.approx(ndcg_score(relevance, scores, k=k))


def test_ndcg_without_relevant_objects_goes_by_the_stated_convention():
    scores, ranks = [[1.0, 2.0], [2.0, 1.0]], [[2, 2], [0, 2]]
    assert np.isnan(ndcg(scores, ranks, worst=2, per_set=True)[0])
    assert ndcg(scores, ranks, worst=2) == 1
    assert ndcg(scores, ranks, worst=2, no_relevant=0.0) == 0.5
    assert ndcg(scores, ranks, worst=2, no_relevant=1.0) == 1
    mask = [[False, False], [True, True]]
    values = ndcg(scores, ranks, mask, worst=2, no_relevant=0.0, per_set=True)
    np.testing.assert_array_equal(values, [np.nan, 1.0], "padding alone has no value by any convention")


def test_ndcg_with_exponential_gains_of_long_rankings_is_refused():
    with pytest.raises(DataError, match="gain='linear'"):
        ndcg(np.zeros((1, 2000)), np.arange(2000)[None], gain="exponential")
    assert ndcg([[1.0, 0.0]], [[0, 1000]], gain="exponential") == 1.0, "the longest that is not"
    with pytest.raises(DataError, match="overflows for so many ranks"):
        ndcg([[1.0, 0.0]], [[0, 1001]], gain="exponential")
    assert np.isnan(ndcg(np.zeros((2, 0)), np.zeros((2, 0)), gain="exponential"))


def test_gains_of_fractions_are_divided_by_the_ideal_too():
    # relevance 1/2 on the second place, by half of it on the first
    assert ndcg([[1.0, 2.0]], [[0, 0.5]]) == pytest.approx(1 / log2(3))


def test_ndcg_names_the_parameter_that_it_does_not_understand():
    with pytest.raises(ParameterError, match=r"^gain='exponentail' is not known"):
        ndcg([[1.0, 2.0]], [[0, 1]], gain="exponentail")
    for k in (0, 1.5):
        with pytest.raises(ParameterError, match=f"^k needs a whole number of at least 1; got {k}"):
            ndcg([[1.0, 2.0]], [[0, 1]], k=k)


def test_top1_worked_by_hand():
    scores = [[1.0, 2.0, 3.0], [3.0, 2.0, 1.0], [3.0, 3.0, 3.0]]
    assert top1_accuracy(scores, [[0, 1, 2]] * 3, per_set=True).tolist() == [0, 1, pytest.approx(1 / 3)]


def test_reciprocal_rank_worked_by_hand():
    assert reciprocal_rank([[1.0, 2.0, 3.0]], [[1, 0, 2]]) == 1 / 2
    assert reciprocal_rank([[1.0, 2.0, 2.0]], [[1, 0, 2]]) == 1 / 2, (
        "tied for first: on the last place of the tie"
    )
    assert reciprocal_rank([[1.0, 2.0, 3.0]], [[1, 0, 1]], worst=2) == 1, "all better than 2 are relevant"


def test_expected_reciprocal_rank_worked_by_hand():
    # read: relevance 1 (chance 1/4), relevance 2 (3/4), relevance 0
    assert expected_reciprocal_rank([[2.0, 3.0, 1.0]], [[0, 1, 2]]) == pytest.approx(
        1 / 4 + (3 / 4) * (3 / 4) / 2
    )
    # grades 0...4 as ranks 4...0, read 3 then 4: chances 7/16 and 15/16
    value = expected_reciprocal_rank([[2.0, 1.0]], [[1, 0]], worst=4)
    assert value == pytest.approx(7 / 16 + (9 / 16) * (15 / 16) / 2)


def test_average_precision_worked_by_hand():
    # relevant at places 1 and 3
    assert average_precision([[4.0, 3.0, 2.0, 1.0]], [[0, 1, 0, 1]]) == pytest.approx((1 / 1 + 2 / 3) / 2)
    assert average_precision([[1.0, 2.0]], [[0, 1]]) == 1 / 2, "the only one, on place 2"


@pytest.mark.parametrize("metric", [reciprocal_rank, average_precision])
def test_a_set_without_relevant_objects_has_no_value_beside_others(metric):
    values = metric([[2.0, 1.0]] * 2, [[0, 1], [2, 2]], worst=2, per_set=True)
    np.testing.assert_array_equal(values, [1.0, np.nan])


@given(seed=seeds)
@settings(max_examples=30, deadline=None)
def test_average_precision_equals_scikit_learns_with_ties(seed):
    scores, ranks = rankings(seed)
    for s, r in zip(scores, ranks, strict=True):
        assert average_precision(s[None], r[None], worst=2) == pytest.approx(
            average_precision_score(r < 2, s)
        )
