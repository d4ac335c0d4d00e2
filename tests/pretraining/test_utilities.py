"""Context-free families: each does what it says, and none looks at the other objects of a set."""

import pytest
import torch

from entourage.pretraining.prior import utilities

W, N, M, D = 3, 5, 4, 6
RELEVANT = torch.ones(W, D, dtype=torch.bool)
SWITCHES = torch.arange(D) == 0


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=generator(1))


FAMILIES = {
    "linear": lambda z: utilities.linear(z, normal(W, D)),
    "curves": lambda z: utilities.curves(z, normal(W, D), generator()),
    "interactions": lambda z: utilities.interactions(z, RELEVANT, SWITCHES.expand(W, D), generator()),
    "net": lambda z: utilities.net(z, RELEVANT, generator()),
    "tree": lambda z: utilities.tree(z, RELEVANT, generator()),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_utility_of_an_object_does_not_change_with_its_set(family):
    z = normal(W, N, M, D)
    other = z.clone()
    other[:, :, 1:] = 3.0
    assert torch.allclose(FAMILIES[family](z)[..., 0], FAMILIES[family](other)[..., 0], atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_utilities_differ_between_objects_and_worlds(family):
    u = FAMILIES[family](normal(1, N, M, D).expand(W, N, M, D))
    assert u.shape == (W, N, M)
    assert (u.std((1, 2)) > 0.01).all()
    assert not torch.allclose(u[0], u[1])


def test_linear_has_a_constant_slope():
    z = normal(W, N, M, D)
    step = torch.arange(D) == 2
    weights = normal(W, D)
    for start in (z, z + 5 * step):
        rise = utilities.linear(start + step, weights) - utilities.linear(start, weights)
        assert torch.allclose(rise, weights[:, None, None, 2].expand_as(rise), atol=1e-4)


def test_curves_are_bounded():
    weights = normal(W, D)
    u = utilities.curves(100 * normal(W, N, M, D), weights, generator())
    assert (u.abs() <= 2 * weights.abs().sum(1)[:, None, None]).all()


def test_an_interaction_is_switched_off_with_its_switch():
    only = torch.arange(D) < 2
    z = normal(W, N, M, D) * (torch.arange(D) != 0)  # the one switch is off
    u = utilities.interactions(z, only.expand(W, D), 30.0 * SWITCHES.expand(W, D), generator())
    assert not u.any()


def test_interactions_are_homogeneous_of_degree_two():
    z = normal(W, N, M, D)
    assert torch.allclose(FAMILIES["interactions"](2 * z), 4 * FAMILIES["interactions"](z), atol=1e-4)


def test_interactions_prefer_switches():
    z = normal(200, 1, 1, D)
    relevant = torch.ones(200, D, dtype=torch.bool)
    used = z.clone()
    used[..., 0] += 1
    args = relevant, SWITCHES.expand(200, D)
    changed = utilities.interactions(used, *args, generator()) != utilities.interactions(
        z, *args, generator()
    )
    assert changed.float().mean() > 0.95


def test_a_tree_of_depth_three_has_at_most_eight_values():
    u = utilities.tree(normal(W, 200, M, D), RELEVANT, generator())
    assert all(2 <= world.unique().numel() <= 8 for world in u)


@pytest.mark.parametrize("family", ["interactions", "net", "tree"])
def test_irrelevant_columns_have_no_influence(family):
    relevant = (torch.arange(D) < 3).expand(W, D)
    weighted = {
        "interactions": lambda z: utilities.interactions(z, relevant, ~relevant, generator()),
        "net": lambda z: utilities.net(z * relevant[:, None, None], relevant, generator()),
        "tree": lambda z: utilities.tree(z, relevant, generator()),
    }[family]
    z = normal(W, N, M, D)
    assert torch.equal(weighted(z), weighted(z + 5.0 * ~relevant[:, None, None]))


def test_weights_of_irrelevant_columns_are_0():
    relevant = (torch.arange(D) < 3).expand(W, D)
    assert torch.equal(utilities.linear_weights(relevant, generator()) != 0, relevant)
