"""Random tensors from one generator, on its device, and means over the real objects of a set."""

import math

import torch
from torch import Generator, Tensor

__all__ = [
    "chance",
    "gumbel",
    "integers",
    "log_uniform",
    "normal",
    "pick",
    "set_mean",
    "set_variance",
    "take_columns",
    "uniform",
    "within",
]


def normal(generator: Generator, *shape: int) -> Tensor:
    """Draw from N(0, 1)."""
    return torch.randn(shape, generator=generator, device=generator.device)


def uniform(generator: Generator, *shape: int, low: float = 0.0, high: float = 1.0) -> Tensor:
    """Draw from U(low, high)."""
    return torch.empty(shape, device=generator.device).uniform_(low, high, generator=generator)


def log_uniform(generator: Generator, *shape: int, low: float, high: float) -> Tensor:
    """Draw a positive number whose logarithm is uniform."""
    return uniform(generator, *shape, low=math.log(low), high=math.log(high)).exp()


def gumbel(generator: Generator, *shape: int) -> Tensor:
    """Draw from the Gumbel distribution: the largest of u + Gumbel noise is a choice by the logit model."""
    return (
        -torch.empty(shape, device=generator.device).exponential_(generator=generator).clamp(min=1e-30).log()
    )


def chance(generator: Generator, probability: float, *shape: int) -> Tensor:
    """Draw True with a probability."""
    return torch.empty(shape, dtype=torch.bool, device=generator.device).bernoulli_(
        probability, generator=generator
    )


def integers(generator: Generator, low: int, high: int, *shape: int) -> Tensor:
    """Draw whole numbers from low to high, both included."""
    return torch.randint(low, max(low, high) + 1, shape, generator=generator, device=generator.device)


def pick(generator: Generator, preference: Tensor, n: int) -> Tensor:
    """Draw n columns a world, with replacement, with odds exp(preference): (W, d) -> (W, n)."""
    return (preference[:, None] + gumbel(generator, preference.shape[0], n, preference.shape[1])).argmax(-1)


def take_columns(z: Tensor, columns: Tensor) -> Tensor:
    """Take columns (W, k), different ones in each world: (W, N, m, d) -> (W, N, m, k)."""
    return z.gather(-1, columns[:, None, None].expand(*z.shape[:3], columns.shape[1]))


def set_mean(x: Tensor, mask: Tensor | None) -> Tensor:
    """Average over the real objects of each set: (W, N, m, k) -> (W, N, 1, k)."""
    if mask is None:
        return x.mean(2, keepdim=True)
    real = mask[..., None]
    return (x * real).sum(2, keepdim=True) / real.sum(2, keepdim=True)


def within(x: Tensor, mask: Tensor | None) -> Tensor:
    """Return what differs within each set: deviations from the set's mean, 0 for padding."""
    centred = x - set_mean(x, mask)
    return centred if mask is None else centred * mask[..., None]


def set_variance(centred: Tensor, mask: Tensor | None) -> Tensor:
    """Average of squares over the real objects of a world: (W, N, m, k) -> (W, k)."""
    squares = centred.square()
    return squares.mean((1, 2)) if mask is None else squares.sum((1, 2)) / mask.sum((1, 2))[:, None]
