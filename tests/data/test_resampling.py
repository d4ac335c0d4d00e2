"""Folds, bootstrap confidence intervals and the sign-flip test, against enumeration and simulation."""

import itertools

import numpy as np
import pytest
from scipy import stats

from entourage.data.resampling import (
    bootstrap_interval,
    fold_indices,
    forward_folds,
    labels_of,
    sign_flip_p_value,
    widening_of,
)
from entourage.errors import DataError, ParameterError

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


def test_folds_need_as_many_sets_and_no_more():
    assert [held.tolist() for _, held in fold_indices(2, 2)] in ([[0], [1]], [[1], [0]])
    with pytest.raises(DataError, match="3 folds need at least 3 sets; there are 2"):
        fold_indices(2, 3)
    with pytest.raises(ParameterError, match="folds needs a whole number of at least 2; got 1"):
        fold_indices(10, 1)
    with pytest.raises(ParameterError, match="folds needs a whole number"):
        fold_indices(10, 2.5)


def test_folds_are_drawn_from_the_seed():
    def held_out(seed: int) -> list[list[int]]:
        return [held.tolist() for _, held in fold_indices(40, 4, random_state=seed)]

    assert held_out(0) == held_out(0) != held_out(1)
    assert held_out(0) != [list(range(fold, 40, 4)) for fold in range(4)], (
        "sets are drawn, not taken in turns"
    )
    assert fold_indices(40, 4)[0][1].tolist() == held_out(0)[0], "0 is the default"


def test_times_are_cut_where_stretches_come_nearest_to_equal_counts():
    times = (
        [7] * 5 + [8] * 1 + [10] * 2 + [20] * 4
    )  # thirds end at 4 and 8 of 12 sets; times end at 5, 6, 8, 12
    first, second = forward_folds(times, 2)
    assert (first[0].tolist(), first[1].tolist()) == ([0, 1, 2, 3, 4], [5, 6, 7])
    assert (second[0].tolist(), second[1].tolist()) == (list(range(8)), [8, 9, 10, 11])


def test_each_stretch_of_time_has_a_time_of_its_own():
    late = np.repeat([1, 2, 3, 4], [1, 1, 1, 97])  # by counts alone, all would be cut at the end
    assert [held.tolist() for _, held in forward_folds(late, 3)] == [[1], [2], list(range(3, 100))]
    early = np.repeat([1, 2, 3, 4], [97, 1, 1, 1])
    assert [held.tolist() for _, held in forward_folds(early, 3)] == [[97], [98], [99]]
    (train, held_out), *others = forward_folds([5, 4], 1)
    assert (train.tolist(), held_out.tolist(), others) == ([1], [0], [])
    with pytest.raises(DataError, match="1 folds forward in time need sets of at least 2 times; there are 1"):
        forward_folds([5, 5], 1)
    with pytest.raises(ParameterError, match="folds needs a whole number of at least 1; got 0"):
        forward_folds([1, 2], 0)


def test_groups_are_numbered_whatever_their_labels():
    found = labels_of(["b", "a", "b", "c"], 4)
    assert found.tolist() == [1, 0, 1, 2]
    assert found.dtype == np.int64
    with pytest.raises(DataError, match=r"one label a set, shape \(3,\); got \(2,\)"):
        labels_of([1, 2], 3)


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


def test_flips_are_drawn_from_the_seed_0_by_default():
    differences = np.random.default_rng(0).normal(0.3, 1, 20)
    p = [sign_flip_p_value(differences, random_state=seed) for seed in (0, 1)]
    assert sign_flip_p_value(differences) == p[0] != p[1]


@pytest.mark.parametrize("rows", [1, 7, 499])
def test_as_many_resamples_are_drawn_in_chunks_and_the_same_ones(rows, monkeypatch):
    values = np.random.default_rng(0).normal(0.3, 1, 20)
    whole = sign_flip_p_value(values, resamples=500), bootstrap_interval(values, resamples=500)
    monkeypatch.setattr("entourage.data.resampling._CHUNK", rows * 20)
    assert (sign_flip_p_value(values, resamples=500), bootstrap_interval(values, resamples=500)) == whole


def test_numbers_may_come_as_objects_and_none_is_a_missing_one():
    differences = np.array([1.0, None, 2.0, 3.0], dtype=object)
    assert sign_flip_p_value(differences) == 1 / 8
    weights = np.array([1, 5, 2, 1], dtype=object)
    plain = bootstrap_interval([1.0, 2.0, 3.0], weights=[1, 2, 1])
    assert bootstrap_interval(differences, weights=weights) == plain


def test_fourteen_units_are_enumerated_and_fifteen_are_sampled():
    assert sign_flip_p_value(np.ones(14), resamples=9) == 1 / 2**14
    assert sign_flip_p_value(np.ones(15), resamples=9) == 1 / 10
    assert sign_flip_p_value(np.ones(15)) == 1 / 2001, "2,000 is the default"


def test_the_other_tail_counts_only_in_a_two_sided_test():
    worse = -np.ones(4)
    assert sign_flip_p_value(worse) == 1.0
    assert sign_flip_p_value(worse, alternative="two-sided") == 2 / 16
    many = np.random.default_rng(5).normal(-0.4, 1, 20)
    p = sign_flip_p_value(many, resamples=4000, random_state=2, alternative="two-sided")
    assert p == pytest.approx(2 * sign_flip_p_value(-many, resamples=4000, random_state=2), rel=0.25)
    with pytest.raises(ParameterError, match="alternative='less' is not known"):
        sign_flip_p_value(worse, alternative="less")
    with pytest.raises(ParameterError, match="resamples needs a whole number of at least 1; got 0"):
        sign_flip_p_value(worse, resamples=0)


@pytest.mark.parametrize("alternative", ["greater", "two-sided"])
def test_a_sum_that_is_equal_but_for_rounding_is_reached(alternative):
    """0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 differ in the last digit."""
    tails = 1 if alternative == "greater" else 2
    for order in itertools.permutations([0.1, 0.2, 0.3, -0.6]):
        # sums of 0.6 and three others: all of 0.6 against 0.6, so 0 is reached by 9 of 16 flips and by all |0|
        expected = 9 / 16 if tails == 1 else 1.0
        assert sign_flip_p_value(order, alternative=alternative) == expected


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
    assert widening_of(5) == pytest.approx(1.5)  # sqrt(1 + 5 / 4)


# --- the bootstrap --------------------------------------------------------------------------------


def test_the_interval_of_a_normal_mean_is_that_of_the_textbook():
    values = np.random.default_rng(0).normal(size=400)
    low, high = bootstrap_interval(values, resamples=20_000)
    wide = 1.96 * values.std() / 20
    assert (low, high) == pytest.approx((values.mean() - wide, values.mean() + wide), abs=0.05 * wide)


@pytest.mark.parametrize("level", [0.05, 0.2])
def test_the_interval_is_scipys_bca(level):
    for seed in range(3):
        values = np.random.default_rng(seed).exponential(size=25)
        found = bootstrap_interval(
            values, level=level, resamples=700, random_state=np.random.default_rng(seed)
        )
        truth = stats.bootstrap(
            (values,),
            np.mean,
            confidence_level=1 - level,
            n_resamples=700,
            method="BCa",
            random_state=np.random.default_rng(seed),
        ).confidence_interval
        assert found == pytest.approx((truth.low, truth.high), rel=1e-9)


def test_the_interval_of_clusters_is_scipys_bca_of_a_ratio():
    rng = np.random.default_rng(0)
    clusters = np.repeat(np.arange(12), rng.integers(1, 9, size=12))
    values = rng.exponential(size=len(clusters)) + clusters / 4
    sums, sizes = np.bincount(clusters, weights=values), np.bincount(clusters)
    truth = stats.bootstrap(
        (sums, sizes),
        lambda sums, sizes, axis: sums.sum(axis) / sizes.sum(axis),
        n_resamples=700,
        paired=True,
        method="BCa",
        random_state=np.random.default_rng(1),
    ).confidence_interval
    found = bootstrap_interval(values, clusters, resamples=700, random_state=1)
    assert found == pytest.approx((truth.low, truth.high), rel=1e-9)


def test_resampled_means_that_equal_the_mean_count_half():
    values = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 2.0])  # of sums that are often equal
    truth = stats.bootstrap(
        (values,), np.mean, n_resamples=301, method="BCa", random_state=np.random.default_rng(2)
    ).confidence_interval
    found = bootstrap_interval(values, resamples=301, random_state=2)
    assert found == pytest.approx((truth.low, truth.high), rel=1e-9)


@pytest.mark.parametrize("sign", [1, -1])
def test_where_all_resampled_means_lie_on_one_side_half_a_resample_is_put_on_the_other(sign):
    values = sign * np.array([0.0, 1.0, 2.0, 3.0, 14.0])
    means = values[np.random.default_rng(25).integers(0, 5, (4, 5))].mean(1)
    assert (sign * means < 4.0).all(), "4 is the mean of all"
    # means without one of them are 5, 4.75, 4.5, 4.25, 1.5: less than 4 by -1, -0.75, -0.5, -0.25, 2.5
    skew = (
        sign
        * (-1 - 0.75**3 - 0.5**3 - 0.25**3 + 2.5**3)
        / (6 * (1 + 0.75**2 + 0.5**2 + 0.25**2 + 2.5**2) ** 1.5)
    )
    bias = stats.norm.ppf(7 / 8 if sign == 1 else 1 / 8)
    shifted = bias + stats.norm.ppf([0.025, 0.975])
    expected = np.quantile(means, stats.norm.cdf(bias + shifted / (1 - skew * shifted)))
    assert bootstrap_interval(values, resamples=4, random_state=25) == pytest.approx(tuple(expected))


def test_far_tails_of_skewed_values_end_at_the_largest_resampled_mean():
    values = np.array([0.0] * 99 + [1.0])
    largest = values[np.random.default_rng(0).integers(0, 100, (2000, 100))].mean(1).max()
    low, high = bootstrap_interval(values, level=1e-12)
    assert 0.0 <= low < high == largest


def test_the_default_interval_is_of_95_percent_and_2000_resamples():
    values = np.random.default_rng(0).exponential(size=25)
    explicit = bootstrap_interval(values, level=0.05, resamples=2000, random_state=0)
    assert bootstrap_interval(values) == explicit != bootstrap_interval(values, random_state=1)


def test_a_weight_counts_as_so_many_copies_and_0_as_left_out():
    values, weights = np.array([0.3, 1.0, 0.1, 0.7, 0.2]), np.array([1, 3, 0, 2, 1])
    found = bootstrap_interval(values, weights=weights, random_state=1)
    copies, clusters = np.repeat(values, weights), np.repeat(np.arange(5), weights)
    assert found == pytest.approx(bootstrap_interval(copies, clusters, random_state=1))
    assert found == pytest.approx(bootstrap_interval(values, weights=10.0 * weights, random_state=1))
    clustered = bootstrap_interval(values, [0, 0, 1, 2, 3], weights=weights, random_state=1)
    assert clustered == pytest.approx(bootstrap_interval(copies, [0, 0, 0, 0, 2, 2, 3], random_state=1))
    with pytest.raises(DataError, match=r"weights needs one a value, shape \(5,\); got \(4,\)"):
        bootstrap_interval(values, weights=weights[:4])


def test_the_scale_of_values_scales_the_interval():
    values = np.random.default_rng(3).exponential(size=12)
    low, high = bootstrap_interval(values, random_state=3)
    for scale in (1e-90, 1e-9, 1e9, 1e90):
        found = bootstrap_interval(scale * values, random_state=3)
        assert found == pytest.approx((scale * low, scale * high), rel=1e-6, abs=0.0)


def test_intervals_need_values_in_one_row_and_a_level_between_0_and_1():
    with pytest.raises(DataError, match=r"an array of one axis; got shape \(2, 2\)"):
        bootstrap_interval(np.ones((2, 2)))
    with pytest.raises(DataError, match="at least 2 clusters, to measure their spread; there is 1"):
        bootstrap_interval([0.1, 0.3], [7, 7])
    for level in (0.0, 1.0):
        with pytest.raises(ParameterError, match="level needs a number above 0 and below 1"):
            bootstrap_interval([0.1, 0.3], level=level)
    with pytest.raises(ParameterError, match="resamples needs a whole number of at least 1; got 0"):
        bootstrap_interval([0.1, 0.3], resamples=0)


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
    assert bootstrap_interval(np.zeros(5)) == (0.0, 0.0)
    assert bootstrap_interval(np.full(30, 0.1)) == pytest.approx((0.1, 0.1), abs=1e-15)
    with pytest.raises(DataError, match="at least 2 values, to measure their spread; there is 1"):
        bootstrap_interval([0.3, np.nan])
    with pytest.raises(DataError, match="one label a set"):
        bootstrap_interval([0.3, 0.2], [1])
    with pytest.raises(DataError, match="at least one difference"):
        sign_flip_p_value([np.nan])
