"""From utilities to labels, and the log-likelihood of labels in the true world.

Utilities are (W, N, m) for one person a set, and (W, N, m, R) for R people over whom the likelihood is averaged.
Padding has a utility of ``PADDING``.
"""

import math

import torch
from torch import Generator, Tensor
from torch.nn.functional import logsigmoid

from entourage.pretraining.prior.draws import chance, gumbel, integers, uniform

__all__ = [
    "PADDING",
    "chosen_bias",
    "draw_choice",
    "draw_ranking",
    "draw_subset",
    "log_choice",
    "log_ranking",
    "log_subset",
    "marginal",
    "tied",
]

PADDING = -1e4
TIES = 0.3  # of ranking worlds
TOP_ONLY = 0.2  # of ranking worlds


def draw_choice(u: Tensor, lapse: Tensor, generator: Generator) -> Tensor:
    """Choose one object by the logit model, or a uniform one in a lapse; (W, N, m) of 0 and 1."""
    best = (_lapsing(u, lapse, generator) + gumbel(generator, *u.shape)).argmax(-1, keepdim=True)
    return torch.zeros_like(u).scatter_(-1, best, 1.0)


def log_choice(u: Tensor, chosen: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
    """Log-probability of the choice for each person, (W, N, R), and of a uniform choice, (W, N)."""
    return (u.log_softmax(2) * chosen[..., None]).sum(2), -size.log()


def draw_ranking(u: Tensor, lapse: Tensor, size: Tensor, generator: Generator) -> tuple[Tensor, Tensor]:
    """Rank by the Plackett–Luce model; 30 % of worlds have ties, 20 % rank the best only.

    Returns
    -------
    tuple of Tensor
        Ranks (0 is best; NaN: not ranked; padding 0), and the places 0, 1, ... without ties, m and above: not ranked.
    """
    w, _, m = u.shape
    place = (
        (_lapsing(u, lapse, generator) + gumbel(generator, *u.shape)).argsort(-1, descending=True).argsort(-1)
    )
    levels = integers(generator, 2, m - 1, w, 1, 1)
    tied = chance(generator, TIES, w, 1, 1)
    coarse = (place * levels).div(size[..., None], rounding_mode="floor")
    ranks = torch.where(tied & (levels < size[..., None]), coarse, place.float())
    top = torch.where(chance(generator, TOP_ONLY, w, 1, 1), integers(generator, 1, m - 1, w, 1, 1), m)
    unranked = place >= top
    ranks = ranks.masked_fill(unranked, torch.nan).masked_fill(u == PADDING, 0.0)
    return ranks, place.masked_fill(unranked | (u == PADDING), m)


def log_ranking(u: Tensor, place: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
    """Plackett–Luce log-likelihood of the ranked part for each person, (W, N, R), and of a uniform ranking, (W, N).

    Objects that are not ranked (place m) come after all ranked ones.
    """
    m = u.shape[2]
    order = place.argsort(-1)
    ordered = u.gather(2, order[..., None].expand_as(u))
    ranked = (place.sort(-1).values < m)[..., None]
    rest = ordered.flip(2).logcumsumexp(2).flip(2)
    left = (size[..., None] - torch.arange(m, device=u.device)).clamp(min=1)  # to choose from at each place
    return ((ordered - rest) * ranked).sum(2), -(left.log() * ranked[..., 0]).sum(2)


def tied(ranks: Tensor, place: Tensor) -> Tensor:
    """Say in which sets two ranked objects have the same rank; (W, N)."""
    m = ranks.shape[2]
    ranked = ranks.masked_fill(place == m, torch.nan)
    equal = ranked[..., None] == ranked[:, :, None]  # each ranked object equals itself
    return equal.sum((-1, -2)) > (place < m).sum(-1)


def chosen_bias(u: Tensor, size: Tensor, generator: Generator) -> Tensor:
    """Draw the bias with which, on average, 1 to m/2 objects of a set are chosen; (W, 1, 1)."""
    w, n, _ = u.shape
    most = size.mean(1, keepdim=True) / 2
    wanted = (1 + (most - 1).clamp(min=0) * uniform(generator, w, 1)) * n
    ordered = (u + _logistic(u, generator)).flatten(1).sort(1, descending=True).values
    # as many objects exceed the bias with fresh noise, in expectation
    return -ordered.gather(1, wanted.long().clamp(max=ordered.shape[1] - 1))[..., None]


def draw_subset(u: Tensor, lapse: Tensor, generator: Generator) -> Tensor:
    """Choose each object by itself with probability sigmoid(u), or 1/2 in a lapse; (W, N, m) of 0 and 1."""
    return (_lapsing(u, lapse, generator) + _logistic(u, generator) > 0).float()


def log_subset(u: Tensor, chosen: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
    """Log-likelihood of the subset for each person, (W, N, R), and of fair coins, (W, N)."""
    sign = (2 * chosen - 1)[..., None]
    signed = torch.where(u == PADDING, -PADDING, u * sign)
    return logsigmoid(signed).sum(2), -size * math.log(2)


def marginal(log_likelihood: Tensor, uniform_log_likelihood: Tensor, lapse: Tensor) -> Tensor:
    """Average the likelihood over people, (W, N, R) -> (W, N), and over lapses."""
    people = log_likelihood.logsumexp(-1) - math.log(log_likelihood.shape[-1])
    return torch.logaddexp(
        people + torch.log1p(-lapse)[:, None], uniform_log_likelihood + lapse.log()[:, None]
    )


def _lapsing(u: Tensor, lapse: Tensor, generator: Generator) -> Tensor:
    """Set the utilities of real objects to 0 in sets with a lapse."""
    lapses = uniform(generator, *u.shape[:2], 1) < lapse[:, None, None]
    return torch.where(lapses & (u != PADDING), 0.0, u)


def _logistic(u: Tensor, generator: Generator) -> Tensor:
    return uniform(generator, *u.shape).clamp(1e-7, 1 - 1e-7).logit()
