"""Columns look as they say."""

import pytest
import torch

from entourage.pretraining.prior import columns


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


X = torch.randn(4, 50, 3, 5, generator=generator(1))
FREE = torch.zeros(4, 1, 1, 5, dtype=torch.bool)


def test_a_situation_is_constant_within_a_set():
    free = torch.zeros(400, 1, 1, 5, dtype=torch.bool)
    x, situation, _ = columns.placed(X.repeat(100, 1, 1, 1), None, free, generator())
    assert torch.equal((x == x[:, :, :1]).all(1).all(1), situation[:, 0, 0])


def test_positions_are_a_permutation_of_the_real_objects():
    placed = columns.positions(X, None, generator())[..., 0]
    assert (placed.sort(-1).values == torch.arange(3)).all()
    mask = (torch.arange(3) < 2).expand(4, 50, 3)
    placed = columns.positions(X, mask, generator())[..., 0]
    assert (placed[..., :2].sort(-1).values == torch.arange(2)).all()


def test_a_near_copy_correlates_with_the_next_column():
    copies = columns.near_copies(X, generator())
    for world, copy in zip(X.flatten(1, 2), copies.flatten(1, 2), strict=True):
        assert torch.corrcoef(torch.stack([world[:, 1], copy[:, 0]]))[0, 1] > 0.8


def test_skewed_columns_are_positive_with_a_long_right_tail():
    y = columns.skewed(X, generator())
    assert (y > 0).all()
    assert (y.flatten(0, 2).mean(0) > y.flatten(0, 2).median(0).values).all()


def test_heavy_tails_reach_far():
    def kurtosis(x):
        return x.pow(4).mean() / x.square().mean().square()

    assert kurtosis(columns.heavy_tailed(X)) > 2 * kurtosis(X)


def test_indicators_levels_and_zeros():
    threshold = torch.zeros(4, 1, 1, 5)
    assert columns.indicator(X, threshold).unique().tolist() == [0, 1]
    assert columns.rounded(X, generator()).unique().numel() < 20
    assert 0.3 < (columns.zero_inflated(X, threshold) == 0).float().mean() < 0.7


def test_fixed_columns_stay_as_they_are():
    placed, situation, position = columns.placed(X, None, ~FREE, generator())
    assert torch.equal(placed, X)
    assert not (situation | position).any()
    formed, indicator = columns.formed(X, ~FREE, generator())
    assert torch.equal(formed, X)
    assert not indicator.any()


def test_places_and_forms_have_their_probabilities():
    x = torch.randn(2000, 2, 3, 5, generator=generator(2))
    free = torch.zeros(2000, 1, 1, 5, dtype=torch.bool)
    _, situation, position = columns.placed(x, None, free, generator())
    assert abs(situation.float().mean() - columns.PLACES["situation"]) < 0.015
    assert abs(position.float().mean() - columns.PLACES["position"]) < 0.015
    _, indicator = columns.formed(x, free, generator())
    assert abs(indicator.float().mean() - columns.FORMS["indicator"]) < 0.015
    assert sum(columns.PLACES.values()) == pytest.approx(1)
    assert sum(columns.FORMS.values()) == pytest.approx(1)


def test_standardised_columns_have_mean_0_and_variance_1_without_padding():
    mask = (torch.arange(3) < 2).expand(4, 50, 3)
    z = columns.standardised(9 + 7 * X, mask)
    assert torch.allclose(z[:, :, :2], columns.standardised(X[:, :, :2], None), atol=1e-4)
    assert not z[:, :, 2].any()
    assert not columns.standardised(torch.ones(1, 2, 2, 1), None).any()


def test_units_are_linear():
    y = columns.in_units(X, FREE, generator())
    z, back = columns.standardised(X, None), columns.standardised(y, None)
    assert torch.allclose(z, back, atol=1e-3)
    assert y.abs().amax() > 100
    assert torch.equal(columns.in_units(X, ~FREE, generator()), X)
