"""Small prior-fitted nets with random weights, for tests of what does not depend on what a net has learnt."""

import torch

from entourage.nets.prior_fitted import PriorFittedNet

__all__ = ["small_net"]


def small_net(width=32, blocks=2, cell_width=16, heads=4, *, dtype=torch.float64, seed=0):
    """Return a net all of whose weights are random: last layers too, which start at 0 in training."""
    generator = torch.Generator().manual_seed(seed)
    with torch.device("meta"):
        net = PriorFittedNet(width, blocks, cell_width, heads)
    for name, weight in list(net.state_dict().items()):
        scale = 1.0 if "points" in name else 1.5 * weight.shape[-1] ** -0.5 if weight.ndim == 2 else 0.3
        drawn = scale * torch.randn(weight.shape, generator=generator, dtype=torch.float64)
        if "norm" in name and name.endswith("weight"):
            drawn = 1 + drawn
        net.load_state_dict({name: drawn.to(dtype)}, strict=False, assign=True)
    return net.eval().requires_grad_(False)
