"""Context families of utility: what an object is worth depends on the others of its set.

Each is a function of standardised columns z (W, N, m, d), in which irrelevant columns are 0. Attraction, compromise
and similarity, the effects of the literature, are functions of up to four ``attributes`` (W, N, m, 4) in which more is
better.
"""

import torch
from torch import Generator, Tensor

from entourage.pretraining.prior.draws import normal, set_mean, uniform, within

__all__ = [
    "attraction",
    "compromise",
    "deviations_and_spread",
    "mean_embedding",
    "nearness",
    "pairwise",
    "range_normalisation",
    "reference_point",
    "relative_standing",
    "salience",
    "similarity",
]

HIDDEN = 16
PAIR_HIDDEN = 6


def relative_standing(deviations: Tensor, spread: Tensor, weights: Tensor, generator: Generator) -> Tensor:
    """Value where an object stands in its set: deviations from the set's mean by the set's spread, saturating.

    A shift of the whole set changes nothing. How soon it saturates differs from world to world.
    """
    steep = uniform(generator, weights.shape[0], 1, 1, 1, low=1.0, high=4.0)
    return torch.einsum("wnmd,wd->wnm", (steep * deviations / (spread + 0.1)).tanh(), weights)


def range_normalisation(z: Tensor, mask: Tensor | None, weights: Tensor) -> Tensor:
    """Value each column from 0 (the set's lowest) to 1 (its highest), so that a wide range makes differences small."""
    low, high = _extremes(z, mask)
    return torch.einsum("wnmd,wd->wnm", (z - low) / (high - low + 0.1), weights)


def reference_point(deviations: Tensor, weights: Tensor, generator: Generator) -> Tensor:
    """Value gains and losses against the set's mean, losses 1.5 to 3 times as much (loss aversion).

    Sensitivity diminishes with distance: a power of 0.4 to 1.
    """
    aversion = uniform(generator, weights.shape[0], 1, 1, 1, low=1.5, high=3.0)
    power = uniform(generator, weights.shape[0], 1, 1, 1, low=0.4, high=1.0)
    better = deviations * weights.sign()[:, None, None]
    value = better.abs().pow(power) * torch.where(better > 0, 1.0, -aversion)
    return torch.einsum("wnmd,wd->wnm", value, weights.abs())


def salience(z: Tensor, spread: Tensor, weights: Tensor) -> Tensor:
    """Weigh columns by how much they differ in the set: what varies most is what people look at."""
    attention = (3 * spread).softmax(-1)
    return torch.einsum("wnmd,wd->wnm", z * attention, weights)


def mean_embedding(z: Tensor, mask: Tensor | None, relevant: Tensor, generator: Generator) -> Tensor:
    """Pass an object together with the mean embedding of its set through a random net."""
    w, d = relevant.shape
    into = normal(generator, w, d, HIDDEN) * 1.5 * relevant.sum(1)[:, None, None].rsqrt()
    embedded = (torch.einsum("wnmd,wdk->wnmk", z, into) + normal(generator, w, 1, 1, HIDDEN)).tanh()
    joined = torch.cat([embedded, set_mean(embedded, mask).expand_as(embedded)], -1)
    mixed = torch.einsum("wnmj,wjk->wnmk", joined, normal(generator, w, 2 * HIDDEN, HIDDEN) * 0.5).tanh()
    return torch.einsum("wnmk,wk->wnm", mixed, normal(generator, w, HIDDEN))


def pairwise(z: Tensor, mask: Tensor | None, relevant: Tensor, generator: Generator) -> Tensor:
    """Add up, over the others of the set, a random net of the object and the other."""
    w, d = relevant.shape
    into = normal(generator, w, d, 2 * PAIR_HIDDEN) * 1.5 * relevant.sum(1)[:, None, None].rsqrt()
    one, other = torch.einsum("wnmd,wdk->wnmk", z, into).chunk(2, -1)
    bias = normal(generator, w, 1, 1, PAIR_HIDDEN)
    pairs = ((one + bias)[:, :, :, None] + other[:, :, None]).tanh()  # (W, N, m, m, k)
    values = torch.einsum("wnijk,wk->wnij", pairs, normal(generator, w, PAIR_HIDDEN))
    return (values * _others(z, mask)).sum(-1)


def nearness(differences: Tensor, mask: Tensor | None, generator: Generator) -> Tensor:
    """Say how near the others are: 1 for a twin, 0 for the object itself and for padding; (W, N, m, m).

    ``differences`` are those of attributes, (W, N, m, m, k); how far nearness reaches differs from world to world.
    """
    reach = uniform(generator, differences.shape[0], 1, 1, 1, low=0.3, high=1.2)
    near = (-differences.square().sum(-1) / (2 * reach.square())).exp()
    return near * _others(differences[..., 0], mask)


def attraction(differences: Tensor, near: Tensor) -> Tensor:
    """Raise an object by each near object that it dominates: as good in all attributes and better in one."""
    dominates = (differences.amin(-1) >= 0) & (differences.amax(-1) > 0)
    return (near * dominates).sum(-1)


def compromise(attributes: Tensor, mask: Tensor | None) -> Tensor:
    """Raise what lies in the middle of the set's range of each attribute, and lower extremes."""
    low, high = _extremes(attributes, mask)
    return -((2 * attributes - low - high).abs() / (high - low + 0.2)).sum(-1)


def similarity(near: Tensor) -> Tensor:
    """Lower an object by each near object: twins share what one of them would have."""
    return -near.sum(-1)


def deviations_and_spread(z: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return deviations from the set's mean and their standard deviation, (W, N, m, d) and (W, N, 1, d)."""
    deviations = within(z, mask)
    return deviations, (set_mean(deviations.square(), mask) + 1e-6).sqrt()


def _extremes(z: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    if mask is None:
        low, high = z.aminmax(dim=2, keepdim=True)
        return low, high
    padding = ~mask[..., None]
    low = z.masked_fill(padding, torch.inf).amin(2, keepdim=True)
    return low, z.masked_fill(padding, -torch.inf).amax(2, keepdim=True)


def _others(z: Tensor, mask: Tensor | None) -> Tensor:
    """Say which objects are real and another than the object itself: (m, m), or (W, N, m, m) where ragged."""
    m = z.shape[2]
    others = ~torch.eye(m, dtype=torch.bool, device=z.device)
    return others if mask is None else others & mask[:, :, None]
