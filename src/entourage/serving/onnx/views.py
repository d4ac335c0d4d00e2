"""What a net sees of sets, as modules: :mod:`entourage.training.view` and :mod:`entourage.data.relative` in a graph.

All in double precision, up to the standardised numbers of a net. Operations come in the order of the original, so
that results are the same but for rounding.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from entourage.data.relative import Relative
from entourage.serving.onnx.scorer import (
    Floats,
    at_set,
    doubles,
    look_up,
    mean_of_set,
    table_of,
    with_situation,
)
from entourage.training.quantile_map import QuantileMap
from entourage.training.view import Piecewise, View

__all__ = ["Interpolation", "MappedColumns", "PiecewiseColumns", "Standings", "ViewOfSets", "draw_mapped"]

ROUNDING = 1e-14  # as in entourage.data.relative
COLUMNS_AT_ONCE = 8  # whose pairs of objects are compared at a time, so that memory stays bounded
HALF_OF_ALL = float(np.finfo(np.float64).max / 2)


class Interpolation(nn.Module):
    """Piecewise-linear maps of columns, constant beyond their ends: ``numpy.interp``, each column by its own knots.

    Examples
    --------
    >>> interpolate = Interpolation([np.array([0.0, 1.0, 3.0])], [np.array([0.0, 10.0, 20.0])])
    >>> interpolate(torch.tensor([[-1.0], [0.5], [2.0], [9.0]], dtype=torch.float64)).flatten().tolist()
    [0.0, 5.0, 15.0, 20.0]
    """

    any_size = frozenset({"knots", "starts", "levels", "slopes"})

    knots: Tensor
    starts: Tensor
    levels: Tensor
    slopes: Tensor
    ends: Tensor
    offsets: Tensor

    def __init__(self, knots: Sequence[Floats], levels: Sequence[Floats]) -> None:
        super().__init__()
        width = max(len(own) for own in knots)
        table = np.full((len(knots), width), np.inf)
        start, level, slope = (np.zeros((len(knots), width)) for _ in range(3))
        for row, (own, values) in enumerate(zip(knots, levels, strict=True)):
            table[row, : len(own)], start[row, : len(own)], level[row, : len(own)] = own, own, values
            slope[row, : len(own) - 1] = np.diff(values) / np.diff(own)  # 0 at the last knot
        self.register_buffer("knots", doubles(table))  # (c, k)
        self.register_buffer("starts", table_of(doubles(start.ravel())))
        self.register_buffer("levels", table_of(doubles(level.ravel())))
        self.register_buffer("slopes", table_of(doubles(slope.ravel())))
        self.register_buffer("ends", doubles([[own[0] for own in knots], [own[-1] for own in knots]]))
        self.register_buffer("offsets", torch.arange(len(knots)) * width)

    def forward(self, values: Tensor) -> Tensor:
        """Map ``values (..., c)``."""
        inside = torch.minimum(torch.maximum(values, self.ends[0]), self.ends[1])
        passed = (inside.unsqueeze(-1) >= self.knots).to(torch.int32).sum(-1, dtype=torch.int32)  # (..., c)
        at = (passed.long() - 1).clamp(min=0) + self.offsets
        return look_up(self.slopes, at) * (inside - look_up(self.starts, at)) + look_up(self.levels, at)


class MappedColumns(nn.Module):
    """Columns with heavy tails, mapped as :class:`entourage.training.quantile_map.QuantileMap` does."""

    places: Tensor
    order: Tensor
    ends: Tensor
    slopes: Tensor

    def __init__(self, found: QuantileMap, width: int) -> None:
        super().__init__()
        self.inner = Interpolation([knots / 2 for knots in found.knots], list(found.scores))
        order = np.arange(width)
        order[list(found.places)] = width + np.arange(len(found.places))
        self.register_buffer("places", torch.tensor(found.places, dtype=torch.int64))
        self.register_buffer("order", torch.from_numpy(order))
        slopes = [
            [(s[i] - s[j]) / (k[i] / 2 - k[j] / 2) for k, s in zip(found.knots, found.scores, strict=True)]
            for i, j in ((0, 1), (-1, -2))
        ]
        self.register_buffer("slopes", doubles(slopes))
        self.register_buffer("ends", doubles([[k[i] / 2 for k in found.knots] for i in (0, -1)]))

    def forward(self, values: Tensor) -> Tensor:
        """Map some columns of ``values (..., d)``."""
        halves = values.index_select(-1, self.places) / 2  # exact, and no difference overflows
        mapped = self.inner(halves)
        for end, side in ((0, -1.0), (1, 1.0)):
            beyond = (side * (halves - self.ends[end])).clamp(min=0.0)
            product = beyond * self.slopes[end]
            huge = torch.isinf(product)
            by_parts = torch.log(torch.where(huge, beyond, 1.0)) + torch.log(self.slopes[end])
            grown = torch.where(huge, by_parts, torch.log1p(torch.where(huge, 0.0, product)))
            mapped = mapped + side * grown
        return torch.cat([values, mapped], dim=-1).index_select(-1, self.order)


class Standings(nn.Module):
    """Where objects stand in their set, as :class:`entourage.data.relative.Relative` says."""

    places: Tensor
    most: Tensor

    def __init__(self, relative: Relative) -> None:
        super().__init__()
        self.standings = relative.standings
        self.register_buffer("most", doubles(HALF_OF_ALL))
        self.register_buffer("places", torch.tensor(relative.places, dtype=torch.int64))

    def forward(self, objects: Tensor, mask: Tensor) -> Tensor:
        """Return ``(n, m, places x standings)`` of ``objects (n, m, d)``."""
        values = objects.index_select(-1, self.places)  # (n, m, p)
        there = mask.unsqueeze(-1)
        some = there.any(1, keepdim=True)
        halves = values / 2
        low = torch.where(some, torch.where(there, halves, torch.inf).amin(1, keepdim=True), 0.0)
        high = torch.where(some, torch.where(there, halves, -torch.inf).amax(1, keepdim=True), 0.0)
        varies = high - low > ROUNDING * torch.maximum(low.abs(), high.abs())  # (n, 1, p)
        gap = halves - low
        size = torch.where(varies, high - low, 1.0)
        centred = gap / size - mean_of_set(gap / size, mask)
        found = []
        for standing in self.standings:
            if standing == "centred":
                own = self._doubled(centred * size)
            elif standing == "z-score":
                spread = mean_of_set(centred.square(), mask).sqrt()
                own = centred / torch.where(varies, spread, 1.0)
            elif standing == "rank":
                own = self._ranks(values, mask)
            elif standing == "gap to largest":
                own = self._doubled(halves - high)
            else:
                own = self._doubled(gap)
            found.append(torch.where(varies, own, 0.5 if standing == "rank" else 0.0))
        return torch.stack(found, dim=-1).flatten(-2)

    def _ranks(self, values: Tensor, mask: Tensor) -> Tensor:
        """Return the share of objects below plus half the share of equal ones."""
        others = mask[:, None, :, None]
        parts = []
        for some in torch.split(values, COLUMNS_AT_ONCE, dim=-1):
            own, other = some.unsqueeze(2), some.unsqueeze(1)  # (n, i, 1, p), (n, 1, j, p)
            below = torch.where((other < own) & others, 1.0, 0.0).sum(2)  # (n, m, p)
            equal = torch.where((other == own) & others, 1.0, 0.0).sum(2)
            parts.append(below + equal / 2)
        count = mask.sum(1).clamp(min=1)[:, None, None]
        return torch.cat(parts, dim=-1).double() / count

    def _doubled(self, values: Tensor) -> Tensor:
        return 2 * torch.minimum(torch.maximum(values, -self.most), self.most)


class PiecewiseColumns(nn.Module):
    """Columns as piecewise-linear encodings, as :class:`entourage.training.view.Piecewise` makes them."""

    places: Tensor
    begins: Tensor
    lengths: Tensor

    def __init__(self, found: Piecewise) -> None:
        super().__init__()
        places = [p for p, ends in zip(found.places, found.edges, strict=True) for _ in ends[1:]]
        self.register_buffer("places", torch.tensor(places, dtype=torch.int64))
        self.register_buffer("begins", doubles(np.concatenate([ends[:-1] for ends in found.edges])))
        self.register_buffer("lengths", doubles(np.concatenate([np.diff(ends) for ends in found.edges])))

    def forward(self, values: Tensor) -> Tensor:
        """Return ``(..., width)`` of ``values (..., d)``."""
        passed = (values.index_select(-1, self.places) - self.begins) / self.lengths
        return passed.clamp(0.0, 1.0)


class ViewOfSets(nn.Module):
    """A :class:`entourage.training.view.View` as a module: features in double precision to what a net sees."""

    mean: Tensor
    scale: Tensor
    situation_mean: Tensor
    situation_scale: Tensor

    def __init__(self, view: View) -> None:
        super().__init__()
        d, s = view.n_features
        maps = view.maps
        self.maps = nn.ModuleList(
            nn.Identity() if own is None else MappedColumns(own, width)
            for own, width in zip(maps, (d, s), strict=True)
        )
        self.standings = None if view.relative is None else Standings(view.relative)
        some = view.piecewise is not None and view.piecewise.width > 0
        self.pieces = PiecewiseColumns(view.piecewise) if some and view.piecewise is not None else None
        means, scales = view.standardise.means, view.standardise.scales
        self.register_buffer("mean", doubles(means[0]))
        self.register_buffer("scale", doubles(scales[0]))
        self.register_buffer("situation_mean", doubles(means[1] if s else []))
        self.register_buffer("situation_scale", doubles(scales[1] if s else []))

    def forward(self, objects: Tensor, mask: Tensor, situation: Tensor | None) -> Tensor:
        """Return ``(n, m, inputs)`` in single precision, 0 in the padding."""
        mapped = self.maps[0](objects)
        parts = [mapped]
        if self.standings is not None:
            parts.append(self.standings(mapped, mask))
        if self.pieces is not None:
            parts.append(self.pieces(mapped))
        wide = torch.cat(parts, dim=-1) if len(parts) > 1 else mapped
        seen = ((wide - self.mean) / self.scale).float()
        if situation is not None:
            shared = (self.maps[1](situation) - self.situation_mean) / self.situation_scale
            seen = with_situation(seen, shared.float())
        return at_set(seen, mask)


def draw_mapped(
    found: QuantileMap | None, mean: Floats, scale: Floats, shape: tuple[int, ...], rng: np.random.Generator
) -> Floats:
    """Draw features: normal ones, and those that are mapped from between their knots and a little beyond."""
    finite = np.where(np.isfinite(scale), scale, 1.0)
    drawn = mean + finite * rng.normal(size=(*shape, len(mean)))
    for place, knots in [] if found is None else zip(found.places, found.knots, strict=True):
        share = rng.uniform(-0.02, 1.02, size=shape)
        at = share * (len(knots) - 1)
        beyond = np.clip(share, 0.0, 1.0) - share  # by up to a twentieth of the range
        reach = 5 * (knots[-1] / 2 - knots[0] / 2)
        drawn[..., place] = np.interp(at, np.arange(len(knots)), knots) - beyond * reach
    return np.asarray(drawn)
