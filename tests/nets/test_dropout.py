"""Dropout draws from the generator it is given, keeps means, and a part of a batch gets what the whole would."""

import pytest
import torch

from entourage.nets.layers import Dropout


def dropout(share, seed=0, part=None):
    layer = Dropout(share)
    layer.generator, layer.part = torch.Generator().manual_seed(seed), part
    return layer


@pytest.mark.parametrize("share", [0.003, 0.1, 0.5, 0.9])
def test_the_share_is_dropped_and_the_mean_is_kept(share):
    n = 200_001
    found = dropout(share)(torch.ones(n))
    dropped = (found == 0).double().mean()
    assert abs(dropped - share) < 4.5 * (share * (1 - share) / n) ** 0.5
    kept = found[found != 0]
    assert len(kept.unique()) == 1
    torch.testing.assert_close(kept[0], torch.tensor(1 / (1 - share)), rtol=2e-4, atol=0)


def test_neighbours_and_calls_are_independent():
    layer = dropout(0.5)
    first, second = (layer(torch.ones(100_003)) == 0 for _ in "ab")
    bound = 4.5 * (0.25 / 100_003) ** 0.5
    assert abs((first & second).double().mean() - 0.25) < bound
    for lag in (1, 2, 3, 4, 64):
        assert abs((first[lag:] & first[:-lag]).double().mean() - 0.25) < bound


def test_the_same_seed_drops_the_same_and_a_part_of_a_batch_what_the_whole_batch_would():
    x = torch.randn(7, 3, 5, generator=torch.Generator().manual_seed(1))
    whole = dropout(0.4)(x)
    assert torch.equal(whole, dropout(0.4)(x))
    assert not torch.equal(whole, dropout(0.4, seed=1)(x))
    some = slice(1, 7, 2)
    assert torch.equal(dropout(0.4, part=(7, some))(x[some]), whole[some])


def test_a_share_close_to_1_leaves_numbers_finite():
    found = dropout(0.9999999)(torch.ones(300_000))
    assert found.isfinite().all()
    assert (found == 0).double().mean() > 0.9999


def test_nothing_is_dropped_in_evaluation_or_without_a_generator():
    x = torch.ones(50)
    assert torch.equal(dropout(0.5).eval()(x), x)
    assert torch.equal(Dropout(0.5)(x), x)
