"""Context families: each does what it says, and padding has no influence."""

import pytest
import torch

from entourage.pretraining.prior import context

W, N, M, D = 3, 5, 4, 6
RELEVANT = torch.ones(W, D, dtype=torch.bool)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=generator(1))


WEIGHTS = normal(W, D)


def differences(a: torch.Tensor) -> torch.Tensor:
    return a[:, :, :, None] - a[:, :, None]


def near(z, mask):
    return context.nearness(differences(z), mask, generator())


def deviations_and_spread(z, mask):
    return context.deviations_and_spread(z, mask)


FAMILIES = {
    "relative standing": lambda z, mask=None: context.relative_standing(
        *deviations_and_spread(z, mask), WEIGHTS, generator()
    ),
    "range normalisation": lambda z, mask=None: context.range_normalisation(z, mask, WEIGHTS),
    "reference point": lambda z, mask=None: context.reference_point(
        deviations_and_spread(z, mask)[0], WEIGHTS, generator()
    ),
    "salience": lambda z, mask=None: context.salience(z, deviations_and_spread(z, mask)[1], WEIGHTS),
    "mean embedding": lambda z, mask=None: context.mean_embedding(z, mask, RELEVANT, generator()),
    "pairwise": lambda z, mask=None: context.pairwise(z, mask, RELEVANT, generator()),
    "attraction": lambda z, mask=None: context.attraction(differences(z[..., :2]), near(z[..., :2], mask)),
    "compromise": lambda z, mask=None: context.compromise(z, mask),
    "similarity": lambda z, mask=None: context.similarity(near(z[..., :2], mask)),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_utility_of_an_object_depends_on_the_others(family):
    z = normal(W, 50, M, D)
    other = torch.cat([z[:, :, :2], normal(W, 50, M, D)[:, :, 2:] * 0.5 - 0.4], 2)
    assert (FAMILIES[family](z)[..., :2] - FAMILIES[family](other)[..., :2]).abs().amax() > 0.05


@pytest.mark.parametrize("family", FAMILIES)
def test_padding_has_no_influence(family):
    z = normal(W, N, M, D)
    padded = torch.cat([z, 7 * normal(W, N, 2, D)], 2)
    mask = (torch.arange(M + 2) < M).expand(W, N, M + 2)
    assert torch.allclose(FAMILIES[family](padded, mask)[..., :M], FAMILIES[family](z), atol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_utilities_follow_their_objects_when_shuffled(family):
    z = normal(W, N, M, D)
    order = torch.tensor([2, 0, 3, 1])
    assert torch.allclose(FAMILIES[family](z[:, :, order]), FAMILIES[family](z)[..., order], atol=1e-4)


@pytest.mark.parametrize(
    "family",
    ["relative standing", "range normalisation", "reference point", "attraction", "compromise", "similarity"],
)
def test_a_shift_of_the_whole_set_changes_nothing(family):
    z = normal(W, N, M, D)
    assert torch.allclose(FAMILIES[family](z + 2.0), FAMILIES[family](z), atol=1e-3)


def test_range_normalisation_values_the_same_difference_less_in_a_wide_range():
    z = torch.tensor([[[[0.0], [1.0], [1.0]]], [[[0.0], [1.0], [9.0]]]])
    u = context.range_normalisation(z, None, torch.ones(2, 1))[:, 0]
    assert u[0, 1] - u[0, 0] == pytest.approx(1 / 1.1)
    assert u[1, 1] - u[1, 0] == pytest.approx(1 / 9.1)


def test_losses_weigh_more_than_gains():
    deviations = torch.tensor([[[[-1.0], [1.0]]]])
    for weight in (1.0, -1.0):
        u = context.reference_point(deviations, torch.tensor([[weight]]), generator())[0, 0]
        assert u.amax() == pytest.approx(1.0)
        assert -3.0 <= u.amin() <= -1.5


def test_the_column_that_differs_most_in_a_set_weighs_most():
    z = torch.tensor(
        [[[[0.0, 0.1], [1.0, 0.0]], [[0.0, 1.0], [0.1, 0.0]]]]
    )  # first column differs; then the second
    u = context.salience(z, context.deviations_and_spread(z, None)[1], torch.ones(1, 2))[0]
    assert u[0, 1] > u[0, 0]
    assert u[1, 0] > u[1, 1]


def effect_of_adding(third: list[float], family) -> torch.Tensor:
    """Return how the utilities of A = (1, 0) and B = (0, 1) change when a third object is added."""
    pair, triple = (
        torch.tensor([[[[1.0, 0.0], [0.0, 1.0]]]]),
        torch.tensor([[[[1.0, 0.0], [0.0, 1.0], third]]]),
    )
    return (family(triple)[0, 0, :2] - family(pair)[0, 0]).double()


def test_a_dominated_decoy_near_a_raises_a_over_b():
    def family(a):
        return context.attraction(differences(a), near(a, None))

    rise = effect_of_adding([0.8, 0.0], family)
    assert rise[0] > 0.5
    assert rise[1] == 0


def test_a_near_object_that_is_not_dominated_attracts_nobody():
    def family(a):
        return context.attraction(differences(a), near(a, None))

    assert not effect_of_adding([0.8, 0.3], family).any()
    assert not effect_of_adding([1.0, 0.0], family).any()  # a twin: nobody is better


def test_the_middle_of_three_gains():
    assert (
        effect_of_adding([-1.0, 2.0], lambda a: context.compromise(a, None))[1] > 0.5
    )  # B becomes the middle
    rise = effect_of_adding([2.0, -1.0], lambda a: context.compromise(a, None))
    assert rise[0] > rise[1] + 0.5  # A does


def test_twins_lose():
    rise = effect_of_adding([1.0, 0.0], lambda a: context.similarity(near(a, None)))
    assert rise[0] == pytest.approx(-1.0)
    assert abs(rise[1]) < 0.3
