"""Designs compose sets as they say."""

import torch

from entourage.pretraining.prior import designs
from entourage.pretraining.prior.shape import Shape

SHAPE = Shape(worlds=40, sets=100, objects=4, columns=6)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_free_columns_have_a_part_that_the_set_shares():
    x = designs.free(SHAPE, generator())
    within = x.var(2).mean(1) / x.flatten(1, 2).var(1)  # (W, d)
    assert within.amin() < 0.2
    assert within.amax() > 0.8


def test_conjoint_columns_have_two_to_five_levels():
    x = designs.conjoint(SHAPE, generator()).flatten(1, 2)
    levels = {column.unique().numel() for world in x for column in world.T}
    assert levels == {2, 3, 4, 5}


def test_indicators_of_a_category_exclude_each_other():
    x = designs.conjoint(SHAPE, generator()).flatten(1, 2)
    categories = [world for world in x if world.unique().tolist() == [0.0, 1.0]]
    assert 10 < len(categories) < 30
    assert all(not (world[:, 0] * world[:, 1]).any() for world in categories)


def test_slots_are_alternatives():
    x = designs.alternatives(SHAPE, generator())
    indicator = ((x == 0) | (x == 1)).all(1).all(1)
    assert 0.2 < indicator.float().mean() < 0.6
    indicators = x.transpose(2, 3).transpose(1, 2)[indicator]  # (columns, N, m)
    assert (indicators == indicators[:, :1]).all()  # the same alternative in every set
    assert (indicators.sum(-1) == 1).all()
    assert (x.transpose(2, 3).transpose(1, 2)[~indicator] > 0).all()


def test_a_catalogue_has_few_items_and_no_set_has_one_twice():
    x = designs.catalogue(SHAPE, generator())
    items = [min(column.unique().numel() for column in world.flatten(0, 1).T) for world in x]
    assert min(items) >= 5
    assert max(items) <= 60
    first = torch.arange(SHAPE.objects)
    twice = (x[:, :, :, None] == x[:, :, None]).all(-1) & (first[:, None] != first)
    assert not twice.any()


def test_attributes_are_traded_off_and_decoys_are_dominated():
    size = designs.frontier_size(SHAPE, generator()).clamp(max=2)
    better = torch.where(torch.arange(SHAPE.columns) == 0, -1.0, 1.0).expand(SHAPE.worlds, 1, 1, -1)
    free = designs.free(SHAPE, generator())
    x = designs.trade_off(free, size, better, generator(1))
    good = x[..., :2] * better[..., :2]
    correlation = torch.stack([torch.corrcoef(world[:, :3].flatten(0, 1).T)[0, 1] for world in good])
    assert (correlation < -0.3).all()
    step = good[:, :, 0] - good[:, :, -1]
    decoy = (step >= 0).all(-1) & (step > 0).any(-1) & (step <= 1).all(-1)
    assert 0.2 < decoy.float().mean() < 0.7
    assert (x[..., 2:] == free[..., 2:]).float().mean() > 0.7


def test_at_least_two_objects_stay_in_front():
    x = torch.arange(5.0).expand(40, 100, 5)[..., None]
    kept, mask = designs.available(x, torch.arange(40) < 20, generator())
    assert set(mask.sum(-1).unique().tolist()) == {2, 3, 4, 5}
    assert (mask[..., 1:] <= mask[..., :-1]).all()
    assert torch.equal(kept.sort(2).values, x)  # the same objects
    count = torch.stack([((kept[..., 0] == j) & mask).sum((1, 2)) for j in range(5)], 1).float()
    assert count[:20].std(1).mean() > 2 * count[20:].std(1).mean()  # some alternatives are rarer
