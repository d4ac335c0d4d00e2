"""The context's share of the expected log-likelihood gain."""

import torch

from entourage.pretraining.prior import share


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


Z = torch.randn(3, 400, 4, 3, generator=generator(1))


def test_a_context_free_function_is_no_context():
    function = Z[..., 0] - Z[..., 1].square()
    assert share.context_proper(Z, function, None, generator()).var() < 1e-3 * function.var()


def test_a_constant_of_the_set_is_no_context():
    assert share.context_proper(Z, Z[:, :, :1, 0].expand(3, 400, 4), None, generator()).abs().amax() < 1e-4


def test_an_exchange_of_preference_with_the_set_is_context():
    context = Z[..., 0] * Z[..., 1].mean(2, keepdim=True).sign()
    residual = share.context_proper(Z, context, None, generator())
    assert residual.var() > 0.7 * (context - context.mean(2, keepdim=True)).var()


def test_padding_has_no_influence():
    mask = (torch.arange(4) < 3).expand(3, 400, 4)
    context = Z[..., 0].square() * Z[..., 1].mean(2, keepdim=True)
    z = Z * mask[..., None]
    short = share.context_proper(Z[:, :, :3], context[:, :, :3], None, generator())
    assert torch.allclose(share.context_proper(z, context, mask, generator())[..., :3], short, atol=1e-3)


def test_the_share_is_0_without_context_and_1_with_nothing_else():
    u, size = Z[..., 0], torch.full((3, 400), 4.0)
    assert not share.context_share(u, torch.zeros_like(u), size).any()
    assert torch.allclose(share.context_share(u, u, size), torch.ones(3), atol=1e-5)
    half = share.context_share(u + Z[..., 1], Z[..., 1], size)
    assert ((half > 0.3) & (half < 0.7)).all()


def test_the_gain_of_uniform_choice_is_0():
    assert (
        share.expected_gain(torch.zeros(1, 5, 4), torch.zeros(1, 5, 4), torch.full((1, 5), 4.0)).abs() < 1e-6
    )
