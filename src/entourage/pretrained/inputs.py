"""From raw columns to what the net sees: cells, columns and the table as a whole, all learnt from the labelled sets.

Nothing here depends on the order of columns, of sets or of objects, nor on the unit or the origin of a column.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from entourage.nets.prior_fitted import Seen
from entourage.pretrained.ridge import Comparisons, RidgeFit, fit_ridge

__all__ = ["ENDS", "Knowledge", "Scales", "learn", "soften"]

LINEAR = (1.0, 4.0, 16.0, 64.0)  # penalties of the logit of the columns
WIDE = (4.0, 24.0, 144.0)  # of the logit that also sees curves and standings in the set
LEAST = 1e-6  # of a variance, in units of the column's own
NOISE = 1e-4  # standard errors from 0, up to which a coefficient is due to rounding
LEVEL = 1e-5  # of strength, within which two columns are level
FAR = 3.0  # standard deviations beyond which values grow by their logarithm
FARTHEST = 4.0  # by as much at most: what lies beyond 55 standard deviations is equally far
ENDS = 0.01  # of the values on either side, which don't say how wide a column is
BEYOND = 2.0  # widths beyond the rest, up to which they count in its mean and scale


def soften(values: Tensor, far: float = FAR) -> Tensor:
    """Leave values up to ``far`` as they are; what is beyond grows by its logarithm, to a limit."""
    size = values.abs()
    grown = (size - far).clamp_min(0).log1p().clamp_max(FARTHEST)
    return torch.where(size > far, values.sign() * (far + grown), values)


@dataclass(frozen=True)
class Scales:
    """Where the values of a column lie among those of the labelled sets.

    Values far beyond the rest, such as a stray cell, count for its mean and scale as if they were at the border: two
    widths beyond the 1st and the 99th percentile. Else all others would look alike beside them.

    Parameters
    ----------
    mean, scale : (W, d); the scale of a constant column is infinite
    ordered : (W, d, objects), rising, infinite behind the last
    count : (W,)
    """

    mean: Tensor
    scale: Tensor
    ordered: Tensor
    count: Tensor

    @classmethod
    def of(cls, values: Tensor, mask: Tensor | None) -> "Scales":
        """Learn from values (W, n, m, d)."""
        flat = values.flatten(1, 2)
        if mask is None:
            weight = torch.ones_like(flat[..., :1])
            shown = flat
        else:
            weight = mask.flatten(1).unsqueeze(-1).to(flat.dtype)
            shown = flat.masked_fill(weight == 0, torch.inf)
        count = weight.sum((1, 2))
        ordered = shown.transpose(1, 2).contiguous().sort(-1).values
        low, high = _borders(ordered, count)
        inside = flat.clamp(low.unsqueeze(1), high.unsqueeze(1))
        mean = (inside * weight).sum(1) / count[:, None]
        away = (inside - mean.unsqueeze(1)) * weight
        spread = (away.square().sum(1) / count[:, None]).sqrt()
        varies = spread > 1e-6 * away.abs().amax(1).clamp_min(1e-30)
        scale = torch.where(varies & (spread > 1e-12 * mean.abs()), spread, torch.inf)
        return cls(mean, scale, ordered, count)

    def standardised(self, values: Tensor) -> Tensor:
        """Return values in standard deviations from the mean, softened far out."""
        return soften((values - self.mean[:, None, None]) / self.scale[:, None, None])

    def cells(self, values: Tensor, mask: Tensor | None) -> Tensor:
        """Return five views of each value: standardised, its quantile, and three against its set.

        The quantile is from -1 to 1. Against the set: the difference from its mean, the same in standard
        deviations of the set, and the place between its least and its largest value, from -1 to 1.
        """
        z = self.standardised(values)
        flat = values.flatten(1, 2).transpose(1, 2).contiguous()
        places = torch.searchsorted(self.ordered, flat) + torch.searchsorted(self.ordered, flat, right=True)
        share = places / self.count[:, None, None] - 1
        share = share.clamp(-1, 1) * self.scale.isfinite().unsqueeze(-1)
        quantile = share.transpose(1, 2).reshape(z.shape).to(z.dtype)
        if mask is None:
            mean, low, high = z.mean(2, keepdim=True), z.amin(2, keepdim=True), z.amax(2, keepdim=True)
            apart = z - mean
            variance = apart.square().mean(2, keepdim=True)
        else:
            real = mask.unsqueeze(-1)
            sizes = real.sum(2, keepdim=True).clamp_min(1)
            mean = (z * real).sum(2, keepdim=True) / sizes
            apart = (z - mean) * real
            variance = apart.square().sum(2, keepdim=True) / sizes
            low = z.masked_fill(~real, torch.inf).amin(2, keepdim=True)
            high = z.masked_fill(~real, -torch.inf).amax(2, keepdim=True)
        width = (high - low).clamp_min(0)
        place = torch.where(width > 1e-6, (2 * z - high - low) / width.clamp_min(1e-6), 0.0)
        views = torch.stack([z, quantile, apart, apart / (variance + 0.01).sqrt(), place], -1)
        return views if mask is None else views * mask[..., None, None]


def _borders(ordered: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """Return between which values (W, d) a column's mean and scale are learnt; all, if hardly any differ."""
    first = (ENDS * (count - 1)).ceil().long()  # at least the smallest and the largest are left aside
    last = count.long() - 1 - first

    def at(place: Tensor) -> Tensor:
        wide = place.clamp_min(0)[:, None, None].expand(-1, ordered.shape[1], 1)
        return ordered.gather(2, wide).squeeze(2)

    low, high = at(torch.minimum(first, last)), at(torch.maximum(first, last))
    reach = BEYOND * (high - low)
    alike = (last <= first)[:, None] | (reach <= 0)
    return torch.where(alike, -torch.inf, low - reach), torch.where(alike, torch.inf, high + reach)


@dataclass(frozen=True)
class Knowledge:
    """What the labelled sets teach before the net reads them.

    Columns are put into an order of their own, the strongest first, and turned so that more is better, as the linear
    logit has it. So the net knows each by its place, and the order in which they came doesn't matter.

    Parameters
    ----------
    scales : of the columns
    linear, wide : ridge logits
    order, sign : (W, d); the places of the columns, strongest first, and their signs in this order
    columns : (W, d, 10); of each column, in this order, how much it varies within sets, its skewness, and its
        coefficients in the linear logits, with how many standard errors they are from 0
    table : (W, 17); of the table the leave-one-out gains of the ridge logits, with how many standard errors they are
        from 0, and the numbers of sets, objects and columns
    """

    scales: Scales
    linear: RidgeFit
    wide: RidgeFit
    order: Tensor
    sign: Tensor
    columns: Tensor
    table: Tensor

    def see(self, values: Tensor, mask: Tensor | None) -> Seen:
        """Return what the net sees of new sets, raw (W, n, m, d)."""
        cells = self.scales.cells(values, mask).to(self.columns.dtype)
        plain, more = _features(cells, mask)
        base = torch.cat([self.linear.utilities(plain), self.wide.utilities(more)], 1)
        return Seen(self.turned(cells), _centred(base.permute(0, 2, 3, 1), mask), mask)

    def turned(self, cells: Tensor) -> Tensor:
        """Bring cells (W, n, m, d, 5) into the order of columns, and turn them."""
        place = self.order[:, None, None, :, None].expand_as(cells)
        return cells.gather(3, place) * self.sign[:, None, None, :, None]


def learn(
    values: Tensor, ranks: Tensor, mask: Tensor | None = None, weights: Tensor | None = None
) -> tuple[Knowledge, Seen]:
    """Learn from labelled sets; return it, and what the net sees of all sets.

    Parameters
    ----------
    values : (W, all sets, m, d), raw; the labelled ones first
    ranks : (W, n, m) of the n labelled ones; 0 is best, NaN is not ranked. What is chosen has rank 0, the rest rank 1.
    mask : (W, all sets, m) bool, where some objects are padding
    weights : (W, n); how much each labelled set counts
    """
    n = ranks.shape[1]
    real = None if mask is None else mask[:, :n]
    scales = Scales.of(values[:, :n], real)
    cells = scales.cells(values, mask).to(ranks.dtype)
    plain, more = _features(cells, mask)
    comparisons = Comparisons.of(ranks, real, weights)
    linear, first = fit_ridge(plain[:, :n], comparisons, cells.new_tensor(LINEAR))
    wide, second = fit_ridge(more[:, :n], comparisons, cells.new_tensor(WIDE))
    base = torch.cat([first, second], 1)  # (W, K, n, m)
    table = _table_facts(base, comparisons, scales, values.shape[-1])
    columns = _column_facts(cells[:, :n], linear, scales)
    steepness = columns[..., 7].where(columns[..., 7].abs() > NOISE, 0.0)
    order = _order_of(steepness, columns, cells[:, :n], comparisons.gains(base).mean(1))
    sign = torch.where(steepness < 0, -1.0, 1.0).to(cells.dtype).gather(1, order)
    columns = columns.gather(1, order.unsqueeze(-1).expand_as(columns))
    turn = torch.ones_like(columns)
    turn[..., 1:] = sign.unsqueeze(-1)
    if values.shape[1] > n:
        new = torch.cat([linear.utilities(plain[:, n:]), wide.utilities(more[:, n:])], 1)
        base = torch.cat([base, new], 2)
    knowledge = Knowledge(scales, linear, wide, order, sign, columns * turn, table)
    return knowledge, Seen(knowledge.turned(cells), _centred(base.permute(0, 2, 3, 1), mask), mask)


def _table_facts(base: Tensor, comparisons: Comparisons, scales: Scales, columns: int) -> Tensor:
    informative = (comparisons.chosen.sum(-1) > 0).to(base.dtype).unsqueeze(1)
    count = informative.sum(-1).clamp_min(1)
    gains = comparisons.gains(base)
    mean = gains.sum(-1) / count
    spread = ((gains - mean.unsqueeze(-1)).square() * informative).sum(-1) / count
    error = ((spread + 1e-4) / count).sqrt()
    sizes = torch.stack(
        [
            count[:, 0].log() / 4,
            scales.count.to(count.dtype).clamp_min(1).log() / 6,
            torch.full_like(count[:, 0], float(columns)).log() / 2,
        ],
        -1,
    )
    return torch.cat([soften(2 * mean), soften(mean / error), sizes], -1)


def _column_facts(cells: Tensor, linear: RidgeFit, scales: Scales) -> Tensor:
    errors = linear.covariance.diagonal(dim1=-2, dim2=-1).clamp_min(1e-12).sqrt()
    slopes = torch.cat([linear.coefficients, linear.coefficients / errors], 1).transpose(1, 2)  # (W, d, 8)
    shown = cells.flatten(1, 2)
    objects = scales.count.to(shown.dtype)[:, None]
    total = (shown[..., 0].square().sum(1) / objects).clamp_min(LEAST)
    within = (shown[..., 2].square().sum(1) / objects / total).clamp_max(2)
    skewness = soften((shown[..., 0] ** 3).sum(1) / objects / total**1.5)
    return torch.cat([within.unsqueeze(-1), skewness.unsqueeze(-1), soften(slopes)], -1)


def _order_of(steepness: Tensor, columns: Tensor, cells: Tensor, gains: Tensor) -> Tensor:
    """Return the places of the columns (W, d), the strongest first, whatever order they came in.

    Columns of a situation, which no logit can tell apart, are ordered by their skewness. If they are level there too,
    such as indicators of levels that are as frequent as each other, it counts how they go along with a number that each
    object has from all columns, and from the gain of the ridge logits on its set.
    """
    strength = steepness.abs() + columns[..., 0] + 0.01 * columns[..., 1].tanh()
    z = cells[..., 0]
    mark = z.mean(-1) + z.square().mean(-1) + gains.unsqueeze(-1)  # (W, n, m)
    along = torch.einsum("wnmd,wnm->wd", z, mark) / mark[0].numel()
    first = along.argsort(1, descending=True)
    steps = (strength / LEVEL).round().gather(1, first)
    return first.gather(1, steps.argsort(stable=True, dim=1, descending=True))


def _features(cells: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the features of the linear and of the wide logit, (W, n, m, d) and (W, n, m, 4 d)."""
    plain = cells[..., 2]
    bent = _centred(cells[..., 1] * 3**0.5, mask)
    off_centre = _centred(plain.abs(), mask)
    return plain, torch.cat([plain, bent, cells[..., 3], off_centre], -1)


def _centred(values: Tensor, mask: Tensor | None) -> Tensor:
    """Take the mean of its set off each value (W, n, m, any); 0 in the padding."""
    if mask is None:
        return values - values.mean(2, keepdim=True)
    real = mask.unsqueeze(-1)
    mean = (values * real).sum(2, keepdim=True) / real.sum(2, keepdim=True).clamp_min(1)
    return (values - mean) * real
