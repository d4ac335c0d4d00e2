"""Small prior-fitted nets with random weights, for tests of what does not depend on what a net has learnt."""

from functools import cache

import torch

from entourage.nets.prior_fitted import PriorFittedNet

__all__ = ["ridge_like_net", "small_net"]


def small_net(width=32, blocks=2, heads=4, *, dtype=torch.float64, seed=0):
    """Return a net all of whose weights are random: last layers too, which start at 0 in training."""
    generator = torch.Generator().manual_seed(seed)
    with torch.device("meta"):
        net = PriorFittedNet(width, blocks, heads)
    for name, weight in list(net.state_dict().items()):
        scale = 1.5 * weight.shape[-1] ** -0.5 if weight.ndim == 2 else 0.3
        drawn = scale * torch.randn(weight.shape, generator=generator, dtype=torch.float64)
        if "norm" in name and name.endswith("weight"):
            drawn = 1 + drawn
        net.load_state_dict({name: drawn.to(dtype)}, strict=False, assign=True)
    return net.eval().requires_grad_(False)


@cache
def ridge_like_net():
    """Return a small net that scores much as its ridge logits do: it stands for the net of the package."""
    net = small_net(16, 1, 4, dtype=torch.float32)
    net.head[2].weight *= 0.1
    net.head[2].bias *= 0.1
    return net
