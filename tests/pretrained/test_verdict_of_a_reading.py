"""The instant verdict: probabilities, means and intervals worked by hand."""

import numpy as np
import pytest
import torch

from entourage.nets.prior_fitted import SHARES, Verdict
from entourage.pretrained.verdict import InstantVerdict, verdict_of


def said(none, bins, effects=(0.5, 0.5, 0.5)):
    """Return logits of a distribution: ``none``, and {bin: probability}."""
    share = torch.full((1, len(SHARES)), 1e-12)
    share[0, 0] = max(none, 1e-12)
    for place, p in bins.items():
        share[0, place] = p
    return Verdict(share.log(), torch.tensor([effects]).logit())


def test_there_is_a_bin_for_none_and_one_between_each_two_borders():
    assert SHARES[0] == 0
    assert SHARES[-1] == 1
    assert list(SHARES) == sorted(SHARES)


def test_the_mean_and_the_interval_equal_those_worked_by_hand():
    # 50 % at 0; 50 % spread evenly over the last bin, .75 to 1
    found = verdict_of([said(0.5, {10: 0.5}, (0.9, 0.2, 0.5))])
    assert found.none == pytest.approx(0.5)
    assert found.share == pytest.approx(0.5 * 0.875)
    assert found.interval == pytest.approx((0.0, 0.75 + 0.9 * 0.25))  # 0.45 of the 0.5 above 0
    assert found.effects == pytest.approx({"attraction": 0.9, "compromise": 0.2, "similarity": 0.5})


def test_certainty_of_none_is_a_share_of_0():
    found = verdict_of([said(1.0, {})])
    assert found.none == pytest.approx(1)
    assert found.share == pytest.approx(0, abs=1e-9)
    assert found.interval == (0.0, 0.0)


def test_a_share_under_2_percent_is_next_to_none():
    found = verdict_of([said(0.3, {1: 0.4, 2: 0.3})])
    assert found.none == pytest.approx(0.7)
    assert SHARES[1] == 0.02


def test_certainty_of_one_bin_lies_within_it():
    found = verdict_of([said(0.0, {3: 1.0})])
    assert found.none == pytest.approx(0, abs=1e-9)
    assert found.interval == pytest.approx((0.05 + 0.05 * 0.05, 0.05 + 0.95 * 0.05), abs=1e-6)
    assert found.share == pytest.approx(0.075)


def test_probabilities_of_several_readings_are_averaged():
    one, other = said(1.0, {}, (0.1, 0.2, 0.3)), said(0.0, {10: 1.0}, (0.3, 0.4, 0.5))
    found = verdict_of([one, other])
    assert found.none == pytest.approx(0.5)
    assert found.share == pytest.approx(0.4375)
    assert list(found.effects.values()) == pytest.approx([0.2, 0.3, 0.4])


def test_an_interval_holds_90_percent_whatever_is_said():
    rng = np.random.default_rng(0)
    for _ in range(50):
        logits = torch.from_numpy(3 * rng.normal(size=(1, len(SHARES))))
        found = verdict_of([Verdict(logits, torch.zeros(1, 3))])
        low, high = found.interval
        assert 0 <= low <= high <= 1
        p = logits.softmax(-1)[0].numpy()
        reached = np.concatenate([[p[0]], p[0] + np.cumsum(p[1:])])
        assert np.interp(high, SHARES, reached) == pytest.approx(max(0.95, p[0]))
        assert np.interp(low, SHARES, reached) == pytest.approx(max(0.05, p[0]))
        assert isinstance(found.none, float)


@pytest.mark.parametrize(
    ("none", "decided"), [(0.05, "context"), (0.051, "undecided"), (0.949, "undecided"), (0.95, "no context")]
)
def test_it_decides_from_a_probability_of_95_percent_on(none, decided):
    assert str(InstantVerdict(none, 0.1, (0.0, 0.3), {})).partition(";")[0] == decided


def test_it_reads_as_a_sentence():
    text = str(InstantVerdict(0.031, 0.256, (0.1, 0.413), {"attraction": 0.987}))
    assert text == (
        "context; the context's share of the log-likelihood gain is under 2 % with probability 0.03, 26 % on average "
        "(90 %: 10 to 41 %); attraction 0.99"
    )
