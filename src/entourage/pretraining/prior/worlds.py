"""Draw worlds: designs, looks, utilities, people, labels, and what is true of them."""

from dataclasses import replace
from itertools import accumulate

import torch
from torch import Generator, Tensor

from entourage.pretraining.prior import columns, designs, labels, people, share, utilities
from entourage.pretraining.prior.draws import chance, take_columns, uniform
from entourage.pretraining.prior.families import (
    CONTEXT,
    EFFECTS,
    context_free_parts,
    context_parts,
    draw_families,
    mixed,
)
from entourage.pretraining.prior.shape import Shape, Worlds

__all__ = ["DESIGN_SHARES", "draw_worlds"]

DESIGN_SHARES = {"free": 0.35, "conjoint": 0.2, "alternatives": 0.15, "catalogue": 0.15, "trade-off": 0.15}
ENDS = dict(zip(DESIGN_SHARES, accumulate(DESIGN_SHARES.values()), strict=True))
TRADE_OFF_FOR_EFFECTS = 0.5  # of worlds with attraction, compromise or similarity
KEPT_LOOKS = 0.8  # of columns of objects in conjoint and alternatives designs
LEAST_SETS = 160  # a world has at least so many, whether asked for or not: scales and share are properties of the world
ALL_RELEVANT = 0.3  # of worlds; in the others a share U(0.2, 1) of columns is


def draw_worlds(shape: Shape, generator: Generator) -> Worlds:
    """Draw simulated data sets with labels, and what is true of them.

    All randomness is from the generator, on its device, in float32; the host is never waited for.

    Examples
    --------
    >>> worlds = draw_worlds(Shape(worlds=2, sets=8, objects=3, columns=4), torch.Generator().manual_seed(0))
    >>> worlds.values.shape, worlds.labels.sum(-1).unique().tolist()
    (torch.Size([2, 8, 3, 4]), [1.0])
    """
    with torch.no_grad(), torch.autocast(generator.device.type, enabled=False):
        worlds = _draw(replace(shape, sets=max(shape.sets, LEAST_SETS)), generator)
    return worlds if shape.sets >= LEAST_SETS else _first_sets(worlds, shape.sets)


def _first_sets(worlds: Worlds, n: int) -> Worlds:
    return replace(
        worlds,
        values=worlds.values[:, :n].contiguous(),
        mask=None if worlds.mask is None else worlds.mask[:, :n].contiguous(),
        labels=worlds.labels[:, :n].contiguous(),
        oracle=worlds.oracle[:, :n].contiguous(),
    )


def _draw(shape: Shape, generator: Generator) -> Worlds:
    families = draw_families(shape.worlds, generator)
    effects = families[:, -len(EFFECTS) :] > 0
    design = _draw_designs(shape, effects.any(1), generator)
    size = designs.frontier_size(shape, generator)
    column = torch.arange(shape.columns, device=generator.device)
    frontier = (design >= ENDS["catalogue"])[:, None] & (column < size[:, 0, 0])  # (W, d)
    relevant = _draw_relevant(shape, generator) | frontier | (column == 0)
    weights = utilities.linear_weights(relevant, generator)

    x, mask = _compose(shape, design, size, weights, generator)
    keeps = (design >= ENDS["free"]) & (design < ENDS["alternatives"])
    kept = (keeps[:, None] & chance(generator, KEPT_LOOKS, *relevant.shape) | frontier)[:, None, None]
    x, situation, position = columns.placed(x, mask, (frontier | (column == 0))[:, None, None], generator)
    kept = kept & ~situation | position  # (W, 1, 1, d)
    x, indicator = columns.formed(x, kept, generator)
    z = columns.standardised(x, mask) * relevant[:, None, None]

    switches = (situation | indicator)[:, 0, 0]
    free = context_free_parts(z, relevant, weights, switches, generator)
    context = context_parts(z, mask, relevant, weights, frontier, generator)
    parts, factor = mixed(torch.stack(free + context, -1), families, mask, shape.task == "subset", generator)

    tastes, others = people.deviations_of_tastes(weights * factor[:, None], shape.sets, generator)
    lapse = people.lapse_rates(shape.worlds, generator)
    mean = parts.sum(-1)
    own = mean + torch.einsum("wnmd,wnd->wnm", z, tastes)
    population = mean[..., None] + torch.einsum("wnmd,wrd->wnmr", z, others)  # (W, N, m, 32)
    if mask is None:
        sizes = torch.full_like(mean[..., 0], shape.objects)
    else:
        sizes = mask.sum(-1).float()
        mean, own = mean.masked_fill(~mask, labels.PADDING), own.masked_fill(~mask, labels.PADDING)
        population = population.masked_fill(~mask[..., None], labels.PADDING)
    drawn, oracle = _label(shape, own, population, lapse, sizes, generator)

    residual = share.context_proper(z, parts[..., 1], mask, generator)
    residual = residual * (families[:, -len(CONTEXT) :] > 0).any(1)[:, None, None]
    values = columns.in_units(x, kept | indicator, generator)
    values = take_columns(values, uniform(generator, *relevant.shape).argsort(1))
    return Worlds(
        values=values if mask is None else values * mask[..., None],
        mask=mask,
        labels=drawn,
        oracle=oracle,
        share=share.context_share(mean, residual, sizes),
        effects=effects,
        families=families,
    )


def _draw_designs(shape: Shape, has_effect: Tensor, generator: Generator) -> Tensor:
    """Draw a number from 0 to 1 that says which design a world has: see ``ENDS``; (W,)."""
    to_trade_off = has_effect & chance(generator, TRADE_OFF_FOR_EFFECTS, shape.worlds)
    return uniform(generator, shape.worlds).masked_fill(to_trade_off, 1.0)


def _draw_relevant(shape: Shape, generator: Generator) -> Tensor:
    """Draw which columns matter; (W, d)."""
    w, d = shape.worlds, shape.columns
    rate = uniform(generator, w, 1, low=0.2, high=1.0)
    return (uniform(generator, w, d) < rate) | chance(generator, ALL_RELEVANT, w, 1)


def _compose(
    shape: Shape, design: Tensor, size: Tensor, weights: Tensor, generator: Generator
) -> tuple[Tensor, Tensor | None]:
    """Compose the sets by the design of each world; return columns and, where ragged, which objects are real."""
    drawn = design[:, None, None, None]
    free = designs.free(shape, generator)
    x = torch.where(drawn < ENDS["free"], free, designs.conjoint(shape, generator))
    x = torch.where(drawn < ENDS["conjoint"], x, designs.alternatives(shape, generator))
    x = torch.where(drawn < ENDS["alternatives"], x, designs.catalogue(shape, generator))
    better = (weights >= 0).float()[:, None, None] * 2 - 1
    x = torch.where(drawn < ENDS["catalogue"], x, designs.trade_off(free, size, better, generator))
    is_labelled = (design >= ENDS["conjoint"]) & (design < ENDS["alternatives"])
    return designs.available(x, is_labelled, generator) if shape.ragged else (x, None)


def _label(
    shape: Shape, own: Tensor, population: Tensor, lapse: Tensor, sizes: Tensor, generator: Generator
) -> tuple[Tensor, Tensor]:
    """Draw labels, (W, N, m), and say how likely they are, (W, N)."""
    if shape.task == "ranking":
        ranks, place = labels.draw_ranking(own, lapse, sizes, generator)
        oracle = labels.marginal(*labels.log_ranking(population, place, sizes), lapse)
        return ranks, oracle.masked_fill(labels.tied(ranks, place), torch.nan)
    if shape.task == "subset":
        bias = labels.chosen_bias(own, sizes, generator)
        own = torch.where(own == labels.PADDING, own, own + bias)
        population = torch.where(population == labels.PADDING, population, population + bias[..., None])
        drawn = labels.draw_subset(own, lapse, generator)
        return drawn, labels.marginal(*labels.log_subset(population, drawn, sizes), lapse)
    drawn = labels.draw_choice(own, lapse, generator)
    return drawn, labels.marginal(*labels.log_choice(population, drawn, sizes), lapse)
