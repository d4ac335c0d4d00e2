"""How much of what can be predicted is due to context."""

import torch
from torch import Generator, Tensor

from entourage.pretraining.prior.draws import normal, set_variance, within

__all__ = ["context_proper", "context_share", "expected_gain"]

RANDOM_FEATURES = 24
RIDGE = 1.0


def context_proper(z: Tensor, context: Tensor, mask: Tensor | None, generator: Generator) -> Tensor:
    """Return what of a context utility (W, N, m) no context-free function says.

    It is the residual of a ridge regression, within sets, on the columns, their squares and 24 random tanh features.
    """
    w, _, _, d = z.shape
    random = torch.einsum("wnmd,wdk->wnmk", z, normal(generator, w, d, RANDOM_FEATURES) * (1.5 / d**0.5))
    random = (random + normal(generator, w, 1, 1, RANDOM_FEATURES)).tanh()
    joined = within(torch.cat([z, z.square(), random, context[..., None]], -1), mask)
    features, target = joined[..., :-1], joined[..., -1:].flatten(1, 2)
    features = (features * (set_variance(features, mask)[:, None, None] + 1e-6).rsqrt()).flatten(1, 2)
    transposed = features.mT
    moments = transposed @ features + RIDGE * torch.eye(features.shape[-1], device=z.device)
    coefficients, _ = torch.linalg.solve_ex(moments, transposed @ target)
    residual: Tensor = target - features @ coefficients
    return residual.view_as(context)


def expected_gain(u: Tensor, v: Tensor, size: Tensor) -> Tensor:
    """Return the expected log-likelihood of v where choices follow u, less that of uniform choice; (W,)."""
    return ((u.softmax(-1) * v.log_softmax(-1)).sum(-1) + size.log()).mean(1)


def context_share(u: Tensor, residual: Tensor, size: Tensor) -> Tensor:
    """Share of the expected gain over uniform choice that is lost without the residual, 0 to 1; (W,).

    It is exactly 0 where the residual is 0.
    """
    gain = expected_gain(u, u, size)
    share = ((gain - expected_gain(u, u - residual, size)) / gain.clamp(min=1e-9)).clamp(0, 1)
    return share * (residual != 0).flatten(1).any(-1)
