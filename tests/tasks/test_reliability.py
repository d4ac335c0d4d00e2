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


def test_intervals_are_those_of_wilson():
    own = reliability_bins([0.2] * 40, [1] * 9 + [0] * 31)[0]
    wilson = binomtest(9, 40).proportion_ci(0.95, method="wilson")
    assert (own.low, own.high) == pytest.approx((wilson.low, wilson.high))


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
    with pytest.raises(DataError, match="no object"):
        reliability_bins([np.nan], [1])
