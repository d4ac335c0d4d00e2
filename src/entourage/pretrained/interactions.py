"""Products of indicators with columns of the situation: what an alternative is worth may depend on who chooses.

The net learns such interactions from many sets only. So the labelled sets are read a second time, with the products as
columns of their own, where there are any, and utilities of both readings are mixed.
"""

import torch
from torch import Tensor

__all__ = ["MIX", "MOST_PRODUCTS", "find_products", "with_products"]


MIX = 0.25  # what the second reading counts; weights found on sets held out did worse with few of them
MOST_PRODUCTS = 128
_FARTHEST = 1e6  # of a column of the situation, in its own unit: times 0 it stays 0


def find_products(values: Tensor, mask: Tensor | None = None) -> Tensor | None:
    """Return (products, 4): the indicator's place, its smaller value and its width, and the place in the situation.

    An indicator has two values and varies within sets; a column of the situation varies between sets alone. None where
    there is no product, or too many.

    Parameters
    ----------
    values : (n, m, d) of labelled sets
    mask : (n, m), which objects there are; None where all are

    Examples
    --------
    >>> find_products(torch.tensor([[[0.0, 5.0], [1.0, 5.0]], [[0.0, 7.0], [1.0, 7.0]]])).tolist()
    [[0.0, 0.0, 1.0, 1.0]]
    """
    hidden = torch.zeros_like(values[..., :1], dtype=torch.bool) if mask is None else ~mask.unsqueeze(-1)
    low = values.masked_fill(hidden, torch.inf).amin(1)  # (n, d)
    high = values.masked_fill(hidden, -torch.inf).amax(1)
    lowest, highest = low.amin(0), high.amax(0)
    inside = (low < high).any(0)
    two_valued = ((values == lowest) | (values == highest) | hidden).flatten(0, 1).all(0)
    indicators = (inside & two_valued).nonzero().flatten().tolist()
    situations = (~inside & (lowest < highest)).nonzero().flatten().tolist()
    if not 0 < len(indicators) * len(situations) <= MOST_PRODUCTS:
        return None
    width = highest.double() - lowest.double()
    rows = [(i, float(lowest[i]), float(width[i]), j) for i in indicators for j in situations]
    return torch.tensor(rows, dtype=torch.float64)


def with_products(values: Tensor, products: Tensor) -> Tensor:
    """Return columns (..., d) with the products behind them."""
    low, width = products[:, 1].to(values), products[:, 2].to(values)
    indicator = (values[..., products[:, 0].long()] - low) / width
    shared = values[..., products[:, 3].long()].clamp(-_FARTHEST, _FARTHEST)
    return torch.cat([values, indicator * shared], -1)
