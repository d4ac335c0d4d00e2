"""Folds, bootstrap confidence intervals and the sign-flip test, against enumeration and simulation."""

import itertools

import numpy as np
import pytest

from entourage.data.resampling import bootstrap_interval, fold_indices, sign_flip_p_value, widening_of
from entourage.errors import DataError

# --- folds ----------------------------------------------------------------------------------------


def test_folds_part_all_sets_once_and_no_group_is_parted():
    groups = np.arange(100) % 13
    parts = fold_indices(100, 4, groups=groups, random_state=3)
    assert sorted(np.concatenate([test for _, test in parts])) == list(range(100))
    for train, test in parts:
        assert not set(train) & set(test)
        assert not set(groups[train]) & set(groups[test])
    sizes = [len(test) for _, test in fold_indices(100, 4)]
    assert sizes == [25] * 4


def test_folds_need_as_many_groups():
    with pytest.raises(DataError, match="3 folds need at least 3 groups of sets; there are 2"):
        fold_indices(10, 3, groups=np.arange(10) % 2)
    with pytest.raises(DataError, match="one label a set"):
        fold_indices(10, 3, groups=np.arange(9))


# --- the sign-flip test ---------------------------------------------------------------------------


def test_four_differences_are_enumerated():
    differences = [0.4, 0.1, -0.2, 0.3]  # their sum is 0.6
    # Of 1, 2, 3, 4 (tenths) with any signs, three sums reach 6: 10, with -1 it is 8, with -2 it is 6.
    assert sign_flip_p_value(differences) == 3 / 16
    assert sign_flip_p_value(differences, alternative="two-sided") == 6 / 16


def test_a_sum_of_zero_is_as_likely_as_not_and_no_difference_is_no_evidence():
    assert sign_flip_p_value([0.5, -0.5]) == 3 / 4  # -1 is the only total below 0
    assert sign_flip_p_value(np.zeros(6)) == 1.0
    assert sign_flip_p_value(np.zeros(100)) == 1.0


def test_undefined_differences_take_no_part():
    assert sign_flip_p_value([1.0, np.nan, 2.0, 3.0, np.nan]) == 1 / 8


def test_many_units_are_sampled_by_the_plus_one_rule():
    assert sign_flip_p_value(np.ones(50), resamples=999) == 1 / 1000
    rng = np.random.default_rng(0)
    differences = rng.normal(0.3, 1, 15)  # one more than are enumerated
    totals = [np.dot(signs, differences) for signs in itertools.product([1, -1], repeat=15)]
    exact = np.mean(np.array(totals) >= differences.sum() - 1e-12)
    sampled = sign_flip_p_value(differences, resamples=20_000, random_state=1)
    assert sampled == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 20_000))
    again = sign_flip_p_value(differences, resamples=20_000, random_state=np.random.default_rng(1))
    assert again == sampled, "a seed and its generator are the same"


def test_clusters_are_flipped_as_wholes():
    differences = np.array([1.0, 2.0, 3.0, -1.0, 2.0, 2.0])
    clusters = ["a", "a", "b", "b", "c", "c"]  # sums 3, 2, 4
    assert sign_flip_p_value(differences, clusters) == sign_flip_p_value([3.0, 2.0, 4.0]) == 1 / 8


def test_p_values_are_uniform_where_nothing_differs():
    rng = np.random.default_rng(0)
    p = [sign_flip_p_value(rng.normal(size=30), resamples=199, random_state=i) for i in range(400)]
    assert abs(np.mean(np.array(p) <= 0.05) - 0.05) < 3 * np.sqrt(0.05 * 0.95 / 400)


def test_a_wider_hypothesis_is_harder_to_reject():
    differences = np.random.default_rng(0).normal(0.2, 1, 100)
    plain, wide = (sign_flip_p_value(differences, widening=w) for w in (1.0, 1.5))
    assert plain < wide
    # of the 8 flips of (1, 2, 3), sums 6 and, widened by 1.5, also 4 reach 6
    assert sign_flip_p_value([1.0, 2.0, 3.0], widening=1.5) == 2 / 8
    assert widening_of(2) == pytest.approx(np.sqrt(3))


# --- the bootstrap --------------------------------------------------------------------------------


def test_the_interval_of_a_normal_mean_is_that_of_the_textbook():
    values = np.random.default_rng(0).normal(size=400)
    low, high = bootstrap_interval(values, resamples=20_000)
    wide = 1.96 * values.std() / 20
    assert (low, high) == pytest.approx((values.mean() - wide, values.mean() + wide), abs=0.05 * wide)


def test_the_interval_covers_the_mean_about_as_often_as_it_says():
    rng = np.random.default_rng(0)
    hits = 0
    for i in range(300):
        low, high = bootstrap_interval(rng.exponential(size=60), resamples=400, random_state=i)
        hits += low <= 1.0 <= high
    assert 0.90 < hits / 300 < 0.98  # a skewed law, 60 values: a little below 95 %


def test_the_interval_leans_the_way_the_values_are_skewed():
    values = np.array([0.0] * 45 + [1.0] * 5)
    low, high = bootstrap_interval(values, resamples=5000)
    assert high - 0.1 > 0.1 - low, "a share of 5 in 50 may be larger by more than it may be smaller"
    assert low > 0


def test_copies_in_clusters_count_once():
    values = np.random.default_rng(0).normal(size=20)
    copies, clusters = np.repeat(values, 10), np.repeat(np.arange(20), 10)
    alone = bootstrap_interval(values, random_state=3)
    assert bootstrap_interval(copies, clusters, random_state=3) == pytest.approx(alone)
    low, high = bootstrap_interval(copies, random_state=3)
    assert alone[1] - alone[0] > 2.5 * (high - low), "taken for independent, they seem surer by sqrt(10)"


def test_clusters_of_differing_size_weigh_by_their_sets():
    low, high = bootstrap_interval([1.0] * 90 + [0.0] * 10, [0] * 90 + [1] * 10)
    assert (low, high) == (0.0, 1.0)  # either may be drawn alone
    values, clusters = [3.0, 1.0, 1.0, 1.0, np.nan], [0, 1, 1, 1, 2]
    low, high = bootstrap_interval(values, clusters, level=0.9)
    assert low <= 1.5 <= high  # (3 + 3 * 1) / 4; cluster 2 holds nothing


def test_constant_values_have_no_spread_and_one_value_no_interval():
    assert bootstrap_interval(np.full(30, 0.1)) == pytest.approx((0.1, 0.1), abs=1e-15)
    with pytest.raises(DataError, match="at least 2 values, to measure their spread; there is 1"):
        bootstrap_interval([0.3, np.nan])
    with pytest.raises(DataError, match="one label a set"):
        bootstrap_interval([0.3, 0.2], [1])
    with pytest.raises(DataError, match="at least one difference"):
        sign_flip_p_value([np.nan])
