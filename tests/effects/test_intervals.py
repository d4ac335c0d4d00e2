"""Confidence intervals from refits: arithmetic by hand, and level without context."""

import numpy as np
import pytest
from effect_cases import choice_sets, small_chooser
from scipy.stats import binomtest

from entourage.effects import effects_report, refit_resampled
from entourage.effects.intervals import Measured, calibrated_intervals
from entourage.effects.report import QUANTITIES


def test_an_interval_corrects_for_shrinkage():
    # Truths of 1, 2 and 4 come back as halves beside a reference of 0.1, and people show 0.6: an effect of 1.
    wiggle = np.array([-0.01, 0.0, 0.01])
    known = 0.1 + np.array([[0.5], [1.0], [2.0]]) + wiggle
    one = Measured(0.6 + wiggle, 0.1 + wiggle, np.array([1.0, 2.0, 4.0]), known)
    found = calibrated_intervals({"one": one}, least=0.0)["one"]
    assert found.estimate == pytest.approx(1.0, rel=0.1)
    assert (found.reference, found.refits) == pytest.approx((0.1, 0.6))
    low, high = found.interval
    # t with 2 degrees of freedom is 4.303; the spread is that of a draw and of the mean of the references
    half = 4.303 * 0.01 * np.sqrt(1 + 1 / 3)
    assert low == pytest.approx((0.5 - half) / 0.5, rel=0.1)
    assert high == pytest.approx((0.5 + half) / 0.5**2, rel=0.15)  # as if it had shrunk twice
    less = Measured(-one.people, -one.null, -one.truths, -known)
    assert calibrated_intervals({"one": less})["one"].interval == pytest.approx((-high, -low))


def test_what_cannot_be_negative_has_no_interval_below_zero():
    one = Measured(np.array([0.1, 0.2]), np.array([0.2, 0.3]), np.ones(3), np.tile([1.2, 1.3], (3, 1)))
    found = calibrated_intervals({"one": one}, least=0.0)["one"]
    assert found.estimate == found.interval[0] == 0


def test_without_context_intervals_hold_zero():
    # Two small data sets without context, seven quantities each; of 95 % intervals hardly any may leave 0 out.
    excluded, widths = [], []
    for seed in range(2):
        sets = choice_sets(seed, n=60, sizes=(2, 4))
        model = small_chooser(sets, steps=20, evaluate_every=4, learning_rate=0.01)
        refits = refit_resampled(model, sets, refits=4, random_state=seed)
        better = {"x0": "more", "x1": "more"}
        report = effects_report(model, sets, refits=refits, draws=0, better=better, most_triples=100)
        for name in QUANTITIES:
            excluded.append(getattr(report, name).interval[0] > 0)
            assert getattr(report, name).value > 0  # which by itself looks like context
        for name in ("attraction", "compromise", "similarity"):
            low, high = report.natural_effects.quantity(name).interval
            excluded.append(low > 0 or high < 0)
            widths.append(high - low)
    assert binomtest(sum(excluded), len(excluded), 0.07, alternative="greater").pvalue > 0.01
    assert np.isfinite(widths).all()
