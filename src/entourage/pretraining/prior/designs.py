"""How choice sets are composed: five designs, each a function from a shape to columns of about unit scale.

A *free* design draws every object anew. A *conjoint* design has a few levels a column, or indicators of categories. In
a design of *alternatives*, slot j is the same alternative in every set (travel modes). A *catalogue* has a fixed list
of items. A *trade-off* design is that of the literature on context effects: a frontier of attributes, with decoys,
extremes and near twins.
"""

import torch
from torch import Generator, Tensor

from entourage.pretraining.prior.draws import chance, integers, normal, uniform
from entourage.pretraining.prior.shape import Shape

__all__ = [
    "alternatives",
    "available",
    "catalogue",
    "conjoint",
    "free",
    "frontier_size",
    "trade_off",
]

ITEMS = 60  # most items of a catalogue


def free(shape: Shape, generator: Generator) -> Tensor:
    """Draw objects anew: a part of their own, and a share U(0, 1) of each column's variance that the set has in common.

    Some sets are wider than others. In half of the worlds the columns are correlated at random.
    """
    w, n, m, d = shape.worlds, shape.sets, shape.objects, shape.columns
    share = uniform(generator, w, 1, 1, d)
    width = (normal(generator, w, n, 1, d) * uniform(generator, w, 1, 1, 1, high=0.8)).exp()
    own = normal(generator, w, n, m, d) * width
    x = own * (1 - share).sqrt() + normal(generator, w, n, 1, d) * share.sqrt()
    mixing = normal(generator, w, d, d) * (0.8 / d**0.5) * chance(generator, 0.5, w, 1, 1)
    return x + torch.einsum("wnmd,wde->wnme", x, mixing)


def conjoint(shape: Shape, generator: Generator) -> Tensor:
    """Draw 2 to 5 levels a column, evenly spaced; in half of the worlds, 0/1 indicators of categories instead.

    Columns are then grouped by 2 to 4: an object has one of the group's indicators, or none (the reference category).
    """
    w, n, m, d = shape.worlds, shape.sets, shape.objects, shape.columns
    drawn = uniform(generator, w, n, m, d)
    levels = integers(generator, 2, 5, w, 1, 1, d)
    x = (drawn * levels).floor() - 1.5
    group = integers(generator, 2, 4, w, 1)
    column = torch.arange(d, device=x.device)
    lead = (column // group * group)[:, None, None].expand(
        w, n, m, d
    )  # the group's first column draws for all
    category = (drawn.gather(-1, lead) * (group + 1)[:, None, None]).floor()
    indicators = (category == (column % group)[:, None, None]).float()
    return torch.where(chance(generator, 0.5, w, 1, 1, 1), indicators, x)


def alternatives(shape: Shape, generator: Generator) -> Tensor:
    """Let slot j be the same alternative in every set: indicators of alternatives, and costs and times.

    The latter are log-normal: a factor of the set (trip length) × a rate of the alternative × noise.
    """
    w, n, m, d = shape.worlds, shape.sets, shape.objects, shape.columns
    length = normal(generator, w, n, 1, 1) * uniform(generator, w, 1, 1, d, high=1.2)
    rate = normal(generator, w, 1, m, d) * uniform(generator, w, 1, 1, d, high=0.8)
    noise = normal(generator, w, n, m, d) * uniform(generator, w, 1, 1, d, low=0.05, high=0.6)
    slot = torch.arange(m, device=length.device)[None, None, :, None]
    indicator = (slot == integers(generator, 0, m - 1, w, 1, 1, d)).float()
    costs = (length + rate + noise).clamp(max=3.5).exp()
    return torch.where(
        uniform(generator, w, 1, 1, d) < uniform(generator, w, 1, 1, 1, high=0.8), indicator, costs
    )


def catalogue(shape: Shape, generator: Generator) -> Tensor:
    """Draw each set from 5 to 60 items of fixed features, without replacement.

    In half of the worlds one column (a price) varies from set to set as well.
    """
    w, n, m, d = shape.worlds, shape.sets, shape.objects, shape.columns
    most = max(ITEMS, m)
    items = normal(generator, w, most, d)
    count = integers(generator, max(5, m), most, w, 1, 1)
    order = uniform(generator, w, n, most) + (torch.arange(most, device=items.device) >= count)
    drawn = order.topk(m, largest=False).indices.flatten(1)  # (W, N·m)
    x = items.gather(1, drawn[..., None].expand(w, n * m, d)).view(w, n, m, d)
    price = torch.arange(d, device=items.device) == integers(generator, 0, d - 1, w, 1, 1, 1)
    varies = price & chance(generator, 0.5, w, 1, 1, 1)
    return x + normal(generator, w, n, m, 1) * varies


def frontier_size(shape: Shape, generator: Generator) -> Tensor:
    """Draw how many attributes are traded off: 2 or 3, the first columns; (W, 1, 1, 1)."""
    return integers(generator, 2, 3, shape.worlds, 1, 1, 1).clamp(max=shape.columns)


def trade_off(x: Tensor, size: Tensor, better: Tensor, generator: Generator) -> Tensor:
    """Put the objects of a free design on a frontier: more of one of the first columns means less of the others.

    In some sets the last object is made a decoy (a copy of the first, worse in one or all attributes), a near twin of
    the first, or an extreme. ``better`` (W, 1, 1, d) is the sign of what people want of each column.
    """
    w, n, _, d = x.shape
    column = torch.arange(d, device=x.device)
    frontier = column < size  # (W, 1, 1, d)
    level = (x * frontier).sum(-1, keepdim=True) / size
    x = x - level * frontier * uniform(generator, w, 1, 1, 1, low=0.7, high=1.0)
    first, last = x[:, :, :1], x[:, :, -1:]
    depth = uniform(generator, w, n, 1, 1, low=0.1, high=1.0)
    all_worse = chance(generator, 0.3, w, n, 1, 1)
    one = column == (uniform(generator, w, n, 1, 1) * size).floor()
    decoy = first - depth * torch.where(all_worse, frontier, one)
    twin = first + 0.15 * normal(generator, w, n, 1, d) * frontier
    extreme = last * torch.where(frontier, 2.5, 1.0)
    kind = uniform(generator, w, n, 1, 1) / uniform(generator, w, 1, 1, 1, low=0.3, high=1.0)  # above 1: none
    changed = torch.where(
        kind < 0.6, decoy, torch.where(kind < 0.8, twin, torch.where(kind < 1, extreme, last))
    )
    x = torch.cat([x[:, :, :-1], changed], 2)
    return torch.where(frontier, x * better, x)


def available(x: Tensor, slots: Tensor, generator: Generator) -> tuple[Tensor, Tensor]:
    """Drop objects at random, 2 to m stay in front; return the columns and which objects are real.

    Where slots are alternatives (``slots``, (W,)), some alternatives are dropped more often than others.
    """
    w, n, m, d = x.shape
    rare = uniform(generator, w, 1, m) * slots[:, None, None]
    order = (uniform(generator, w, n, m) + rare).argsort(-1)
    x = x.gather(2, order[..., None].expand(w, n, m, d))
    return x, torch.arange(m, device=x.device) < integers(generator, 2, m, w, n, 1)
