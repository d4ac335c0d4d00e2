"""Reliability: bins by hand, and what perfect and overconfident probabilities show."""

import numpy as np
import pytest
from scipy.stats import binomtest

from entourage.errors import DataError, ParameterError, ShapeError
from entourage.tasks.reliability import expected_calibration_error, reliability_bins


def test_bins_hold_equal_counts_and_never_part_equal_probabilities():
    found = reliability_bins(np.linspace(0, 1, 100), np.linspace(0, 1, 100) > 0.5, bins=4)
    assert [own.count for own in found] == [25] * 4
    assert [own.share for own in found] == [0.0, 0.0, 1.0, 1.0]
    assert [own.count for own in reliability_bins([0.5] * 7 + [0.9] * 3, [1] * 10, bins=5)] == [7, 3]


def test_a_cut_between_equal_probabilities_moves_to_their_nearer_end():
    # ten objects in two bins: cut after five, in the middle of those of 0.5
    for below, equal, counts in [(2, 4, [6, 4]), (4, 4, [4, 6]), (4, 2, [4, 6]), (1, 5, [6, 4])]:
        p = [0.1] * below + [0.5] * equal + [0.9] * (10 - below - equal)
        assert [own.count for own in reliability_bins(p, [1] * 10, bins=2)] == counts


def test_there_are_ten_bins_by_default_and_one_is_enough():
    p, chosen = np.linspace(0, 1, 100), np.linspace(0, 1, 100) > 0.5
    assert len(reliability_bins(p, chosen)) == 10
    assert expected_calibration_error(p, chosen) == expected_calibration_error(p, chosen, bins=10)
    assert expected_calibration_error(p, chosen, bins=1) == pytest.approx(0.0), (
        "a half of all, at 0.5 on average"
    )
    for bins in (0, 2.5):
        with pytest.raises(ParameterError, match=f"^bins needs a whole number of at least 1; got {bins}"):
            reliability_bins(p, chosen, bins)


def test_objects_without_a_probability_or_an_outcome_are_left_out():
    for missing in (None, np.nan):
        found = reliability_bins([0.5, missing, 0.5, 0.5], [1, 1, missing, 0], bins=1)
        assert [(own.count, own.share) for own in found] == [(2, 0.5)]


def test_intervals_are_those_of_wilson():
    own = reliability_bins([0.2] * 40, [1] * 9 + [0] * 31)[0]
    wilson = binomtest(9, 40).proportion_ci(0.95, method="wilson")
    assert (own.low, own.high) == pytest.approx((wilson.low, wilson.high))
    for count in range(1, 100):  # where all are chosen, or none, sums of rounded numbers could leave 0 to 1
        for share in (0, 1):
            own = reliability_bins([0.5] * count, [share] * count)[0]
            assert 0.0 <= own.low < own.high <= 1.0
            assert (own.low, own.high)[share] == pytest.approx(share)


def test_perfect_probabilities_have_a_small_error_and_overconfident_ones_a_large_one():
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    chosen = rng.random(20_000) < p
    assert expected_calibration_error(p, chosen) < 0.015
    assert expected_calibration_error((p > 0.5).astype(float), chosen) == pytest.approx(0.25, abs=0.02)
    padded = np.concatenate([p, [np.nan]]), np.concatenate([chosen, [np.nan]])
    assert expected_calibration_error(*padded) == expected_calibration_error(p, chosen)


def test_what_is_no_probability_is_refused():
    with pytest.raises(ShapeError, match="One probability"):
        reliability_bins([0.5], [1, 0])
    with pytest.raises(ParameterError, match="between 0 and 1"):
        reliability_bins([1.5], [1])
    for outcome in (-0.5, 1.5):
        with pytest.raises(ParameterError, match="outcomes too"):
            reliability_bins([0.5], [outcome])
    assert reliability_bins([1 + 1e-9], [1])[0].share == 1.0, "but for rounding"
    with pytest.raises(DataError, match="no object"):
        reliability_bins([np.nan], [1])
