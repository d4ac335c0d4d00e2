"""What columns look like: where a column's values come from (its place) and how they are distributed (its form).

Each is drawn per column, with the probabilities of ``PLACES`` and ``FORMS``.
"""

from itertools import accumulate

import torch
from torch import Generator, Tensor

from entourage.pretraining.prior.draws import chance, log_uniform, normal, uniform

__all__ = [
    "FORMS",
    "PLACES",
    "formed",
    "heavy_tailed",
    "in_units",
    "indicator",
    "near_copies",
    "placed",
    "positions",
    "rounded",
    "situations",
    "skewed",
    "standardised",
    "zero_inflated",
]

PLACES = {"own": 0.72, "situation": 0.12, "position": 0.06, "near copy": 0.10}
FORMS = {
    "as is": 0.37,
    "skewed": 0.15,
    "heavy": 0.07,
    "indicator": 0.2,
    "rounded": 0.12,
    "zero-inflated": 0.09,
}


def situations(x: Tensor, generator: Generator) -> Tensor:
    """Give all objects of a set the same value: a property of the situation, such as an income."""
    return normal(generator, x.shape[0], x.shape[1], 1, x.shape[3])


def positions(x: Tensor, mask: Tensor | None, generator: Generator) -> Tensor:
    """Give the objects of each set places 0, 1, ... in random order: the position at which each is shown."""
    keys = uniform(generator, *x.shape[:3])
    if mask is not None:
        keys = keys.masked_fill(~mask, 2.0)
    return keys.argsort(-1).argsort(-1)[..., None].float()


def near_copies(x: Tensor, generator: Generator) -> Tensor:
    """Copy the next column (the last: the first), with noise of 5 to 50 % of a standard deviation."""
    size = log_uniform(generator, x.shape[0], 1, 1, x.shape[3], low=0.05, high=0.5)
    return x.roll(-1, -1) + size * normal(generator, *x.shape)


def placed(
    x: Tensor, mask: Tensor | None, fixed: Tensor, generator: Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """Draw the place of each column; where ``fixed``, it stays as it is.

    Returns
    -------
    tuple of Tensor
        The columns, and which are situations and which positions: (W, 1, 1, d).
    """
    place = uniform(generator, x.shape[0], 1, 1, x.shape[3]).masked_fill(fixed, 0.0)
    own, situation, position, _ = accumulate(PLACES.values())
    is_situation, is_position = (
        (place >= own) & (place < situation),
        (place >= situation) & (place < position),
    )
    x = torch.where(place >= position, near_copies(x, generator), x)
    x = torch.where(is_situation, situations(x, generator), x)
    return torch.where(is_position, positions(x, mask, generator), x), is_situation, is_position


def skewed(x: Tensor, generator: Generator) -> Tensor:
    """Skew a column to the right: exp(a x), a from 0.3 to 1.2 (prices, incomes, times)."""
    return (uniform(generator, x.shape[0], 1, 1, x.shape[3], low=0.3, high=1.2) * x).clamp(-4, 4).exp()


def heavy_tailed(x: Tensor) -> Tensor:
    """Give a column heavy tails on both sides: sinh(x)."""
    return x.clamp(-4, 4).sinh()


def indicator(x: Tensor, threshold: Tensor) -> Tensor:
    """Make a column 0/1: 1 above a threshold, so that the rate differs from column to column."""
    return (x > threshold).float()


def rounded(x: Tensor, generator: Generator) -> Tensor:
    """Round a column to few levels: steps of 0.5 to 2 standard deviations."""
    step = log_uniform(generator, x.shape[0], 1, 1, x.shape[3], low=0.5, high=2.0)
    return (x / step).round()


def zero_inflated(x: Tensor, threshold: Tensor) -> Tensor:
    """Set a column to 0 below a threshold and let it rise from there."""
    return (x - threshold).relu()


def formed(x: Tensor, fixed: Tensor, generator: Generator) -> tuple[Tensor, Tensor]:
    """Draw the form of each column; where ``fixed``, it stays as is.

    Returns
    -------
    tuple of Tensor
        The columns, and which were made 0/1: (W, 1, 1, d).
    """
    w, d = x.shape[0], x.shape[3]
    form = uniform(generator, w, 1, 1, d).masked_fill(fixed, 0.0)
    threshold = normal(generator, w, 1, 1, d).clamp(-1.4, 1.4)
    as_is, skew, heavy, binary, level, _ = accumulate(FORMS.values())
    is_indicator = (form >= heavy) & (form < binary)
    y = torch.where(form < as_is, x, skewed(x, generator))
    y = torch.where(form < skew, y, heavy_tailed(x))
    y = torch.where(form < heavy, y, indicator(x, threshold))
    y = torch.where(form < binary, y, rounded(x, generator))
    return torch.where(form < level, y, zero_inflated(x, threshold)), is_indicator


def standardised(x: Tensor, mask: Tensor | None) -> Tensor:
    """Bring each column of a world to mean 0 and variance 1; padding 0, constant columns 0."""
    if mask is None:
        variance, mean = torch.var_mean(x, (1, 2), keepdim=True, correction=0)
        return (x - mean) * (variance + 1e-8).rsqrt()
    real, count = mask[..., None], mask.sum((1, 2))[:, None, None, None]
    centred = (x - (x * real).sum((1, 2), keepdim=True) / count) * real
    return centred * (centred.square().sum((1, 2), keepdim=True) / count + 1e-8).rsqrt()


def in_units(x: Tensor, plain: Tensor, generator: Generator) -> Tensor:
    """Give columns units of their own, 0.01 to 1,000, and half of them an offset; where ``plain``, neither."""
    w, d = x.shape[0], x.shape[3]
    unit = log_uniform(generator, w, 1, 1, d, low=1e-2, high=1e3)
    offset = normal(generator, w, 1, 1, d) * 3 * chance(generator, 0.5, w, 1, 1, d)
    return torch.where(plain, x, (x + offset) * unit)
