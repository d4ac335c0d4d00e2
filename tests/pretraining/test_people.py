"""Tastes and lapses."""

import torch

from entourage.pretraining.prior import people


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_people_keep_their_tastes_over_consecutive_sets():
    weights = torch.ones(400, 3)
    weights[:, 2] = 0
    tastes, others = people.deviations_of_tastes(weights, 40, generator())
    has = tastes.any(-1).any(-1)
    assert abs(has.float().mean() - people.TASTES) < 0.07
    assert not tastes[..., 2].any()  # nobody cares for an irrelevant column
    changes = (tastes[has, 1:] != tastes[has, :-1]).any(-1).float().mean(1)
    assert changes.amin() < 0.12  # nine sets a person
    assert changes.amax() == 1  # one
    assert others.shape == (400, people.TASTE_DRAWS, 3)
    assert torch.equal(others.any(-1).any(-1), has)
    size = others[has][..., 0].std(1)
    assert size.amin() > 0.15
    assert size.amax() < 3


def test_lapses():
    rates = people.lapse_rates(1000, generator())
    assert abs((rates > 0).float().mean() - people.LAPSING) < 0.05
    assert rates.amax() <= 0.25
