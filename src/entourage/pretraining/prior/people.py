"""Whose choices they are: tastes that differ from person to person, and lapses of attention."""

import torch
from torch import Generator, Tensor

from entourage.pretraining.prior.draws import chance, integers, normal, uniform

__all__ = ["LAPSING", "TASTES", "TASTE_DRAWS", "deviations_of_tastes", "lapse_rates"]

TASTES = 0.35  # probability that people have tastes of their own
LAPSING = 0.25  # probability that people lapse
TASTE_DRAWS = 32  # people over whom the oracle averages


def deviations_of_tastes(weights: Tensor, sets: int, generator: Generator) -> tuple[Tensor, Tensor]:
    """Draw how each person's weights differ from the average ones, by 0.3 to 2 times their mean size.

    A person has 1 to 9 consecutive sets. Worlds without tastes have deviations of 0.

    Returns
    -------
    tuple of Tensor
        The deviations in each set, (W, N, d), and those of other people of the same world, (W, 32, d).
    """
    w, d = weights.shape
    relevant = weights != 0
    size = weights.abs().sum(1, keepdim=True) / relevant.sum(1, keepdim=True).clamp(min=1)
    size = size * uniform(generator, w, 1, low=0.3, high=2.0) * chance(generator, TASTES, w, 1) * relevant
    person = torch.arange(sets, device=weights.device) // integers(generator, 1, 9, w, 1)
    people = normal(generator, w, sets, d).gather(1, person[..., None].expand(w, sets, d))
    half = normal(generator, w, TASTE_DRAWS // 2, d)
    return people * size[:, None], torch.cat([half, -half], 1) * size[:, None]


def lapse_rates(worlds: int, generator: Generator) -> Tensor:
    """Draw the share of uniform choices, U(0, 0.25) where people lapse, else 0; (W,)."""
    return uniform(generator, worlds, high=0.25) * chance(generator, LAPSING, worlds)
