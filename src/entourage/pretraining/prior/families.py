"""Which families of utility a world has, how strong they are, and their sum."""

import torch
from torch import Generator, Tensor

from entourage.pretraining.prior import context, utilities
from entourage.pretraining.prior.draws import (
    chance,
    integers,
    log_uniform,
    normal,
    set_variance,
    take_columns,
    uniform,
    within,
)

__all__ = [
    "CONTEXT",
    "CONTEXT_FREE",
    "EFFECTS",
    "FAMILIES",
    "context_free_parts",
    "context_parts",
    "draw_families",
    "mixed",
]

CONTEXT_FREE = ("linear", "curves", "interactions", "net", "tree")
EFFECTS = ("attraction", "compromise", "similarity")
CONTEXT = (
    "relative standing",
    "range normalisation",
    "reference point",
    "salience",
    "mean embedding",
    "pairwise",
    *EFFECTS,
)
FAMILIES = CONTEXT_FREE + CONTEXT

WITH_CONTEXT = 0.5  # of worlds
LINEAR_ONLY = 0.5  # of worlds: the context-free part is plainly linear
LINEAR_TOO = 0.7  # of the other worlds
EACH_OTHER = 0.3  # of the other worlds: each of the other context-free families; at least one
CONTEXT_ALONE = 0.1  # of worlds with context: no context-free part
CONTEXT_COUNT = (1, 3)  # context families in a world with context
FAMILY_WEIGHT = (0.3, 3.0)  # relative weights of the families of a part, log-uniform
CONTEXT_RATIO = (
    0.2,
    4.0,
)  # standard deviation of the context part relative to the context-free one, log-uniform
UTILITY_SCALE = (0.08, 8.0)  # within-set standard deviation of utilities, log-uniform
SAME_WEIGHTS = 0.5  # of worlds: context families weigh columns as the linear part does
ATTRIBUTES = 4  # most columns that attraction, compromise and similarity are about
RARE = (
    0.3  # standard deviation below which a part is not scaled up further: few decoys stay few, not enormous
)
RARE_FAMILY = 0.15  # likewise of a family


def draw_families(worlds: int, generator: Generator) -> Tensor:
    """Draw the weight of each family in each world, 0 if absent; (W, F)."""
    others = len(CONTEXT_FREE) - 1
    only = chance(generator, LINEAR_ONLY, worlds, 1)
    at_least = torch.arange(others, device=generator.device) == integers(generator, 0, others - 1, worlds, 1)
    rest = (chance(generator, EACH_OTHER, worlds, others) | at_least) & ~only
    has_context = chance(generator, WITH_CONTEXT, worlds, 1)
    free = torch.cat([only | chance(generator, LINEAR_TOO, worlds, 1), rest], 1)
    free = free & ~(has_context & chance(generator, CONTEXT_ALONE, worlds, 1))
    order = uniform(generator, worlds, len(CONTEXT)).argsort(1)
    present = torch.cat([free, has_context & (order < integers(generator, *CONTEXT_COUNT, worlds, 1))], 1)
    low, high = FAMILY_WEIGHT
    return log_uniform(generator, worlds, len(FAMILIES), low=low, high=high) * present


def context_free_parts(
    z: Tensor, relevant: Tensor, weights: Tensor, switches: Tensor, generator: Generator
) -> list[Tensor]:
    """Return the utilities of the context-free families, each (W, N, m), in the order of ``CONTEXT_FREE``."""
    return [
        utilities.linear(z, weights),
        utilities.curves(z, weights, generator),
        utilities.interactions(z, relevant, switches, generator),
        utilities.net(z, relevant, generator),
        utilities.tree(z, relevant, generator),
    ]


def context_parts(
    z: Tensor, mask: Tensor | None, relevant: Tensor, weights: Tensor, frontier: Tensor, generator: Generator
) -> list[Tensor]:
    """Return the utilities of the context families, each (W, N, m), in the order of ``CONTEXT``."""
    w, d = weights.shape
    attributes = draw_attributes(z, relevant, weights, frontier, generator)
    differences = attributes[:, :, :, None] - attributes[:, :, None]  # (W, N, m, m, k)
    near = context.nearness(differences, mask, generator)
    deviations, spread = context.deviations_and_spread(z, mask)
    same = chance(generator, SAME_WEIGHTS, w, 1)
    weights = torch.where(same, weights, normal(generator, w, d) * relevant)
    return [
        context.relative_standing(deviations, spread, weights, generator),
        context.range_normalisation(z, mask, weights),
        context.reference_point(deviations, weights, generator),
        context.salience(z, spread, weights),
        context.mean_embedding(z, mask, relevant, generator),
        context.pairwise(z, mask, relevant, generator),
        context.attraction(differences, near),
        context.compromise(attributes, mask),
        context.similarity(near),
    ]


def draw_attributes(
    z: Tensor, relevant: Tensor, weights: Tensor, frontier: Tensor, generator: Generator
) -> Tensor:
    """Draw the 2 to 4 columns that decoys are about, those of a frontier where there is one; (W, N, m, 4).

    They are turned so that more is better by the linear part; where there are fewer than 4, the others are 0.
    """
    w, d = relevant.shape
    order = (uniform(generator, w, d) + relevant + 2.0 * frontier).topk(min(ATTRIBUTES, d)).indices
    count = torch.where(frontier.any(1), frontier.sum(1), integers(generator, 2, ATTRIBUTES, w))
    used = torch.arange(order.shape[1], device=z.device) < count[:, None]
    sign = (weights.sign() * relevant).gather(1, order) * used
    return take_columns(z, order) * sign[:, None, None]


def mixed(
    parts: Tensor, families: Tensor, mask: Tensor | None, levels: bool, generator: Generator
) -> tuple[Tensor, Tensor]:
    """Add up the families of each part and bring their sum to its scale.

    Parameters
    ----------
    parts : Tensor (W, N, m, F)
        Utilities of each family.
    families : Tensor (W, F)
        Their weights.
    mask : Tensor (W, N, m) or None
        Which objects are real.
    levels : bool
        Whether the level of a whole set matters, as it does for subset choice: standard deviations are then over all
        objects of a world, not within sets.

    Returns
    -------
    tuple of Tensor
        The context-free and the context part, (W, N, m, 2), and what the linear family was multiplied by, (W,).
    """
    w = families.shape[0]
    centred = _within_world(parts, mask) if levels else within(parts, mask)
    weights = families * (set_variance(centred, mask) + RARE_FAMILY**2).rsqrt()
    is_context = torch.arange(len(FAMILIES), device=families.device) >= len(CONTEXT_FREE)
    split = torch.stack([weights * ~is_context, weights * is_context], -1)  # (W, F, 2)
    both = centred @ split[:, None]  # (W, N, m, 2)
    ratio = log_uniform(generator, w, low=CONTEXT_RATIO[0], high=CONTEXT_RATIO[1])
    scales = set_variance(both, mask).sqrt().clamp(min=RARE).reciprocal()
    scales = scales * torch.stack([torch.ones_like(ratio), ratio], 1)
    both = both * scales[:, None, None]
    total = log_uniform(generator, w, low=UTILITY_SCALE[0], high=UTILITY_SCALE[1])
    total = total / set_variance(both.sum(-1, keepdim=True), mask)[:, 0].sqrt().clamp(
        min=RARE * CONTEXT_RATIO[0]
    )
    return both * total[:, None, None, None], weights[:, 0] * scales[:, 0] * total


def _within_world(x: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return x - x.mean((1, 2), keepdim=True)
    real = mask[..., None]
    return (x - (x * real).sum((1, 2), keepdim=True) / real.sum((1, 2), keepdim=True)) * real
