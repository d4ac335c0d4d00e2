"""Context-free families of utility: what an object is worth does not depend on the others of its set.

Each is a function of standardised columns z (W, N, m, d), in which irrelevant columns are 0.
"""

import torch
from torch import Generator, Tensor

from entourage.pretraining.prior.draws import chance, normal, pick, take_columns, uniform

__all__ = ["curves", "interactions", "linear", "linear_weights", "net", "tree"]

HIDDEN = 16
PRODUCTS = 4
DEPTH = 3


def linear_weights(relevant: Tensor, generator: Generator) -> Tensor:
    """Draw the weight of each column, 0 if irrelevant; (W, d).

    Weights are normal, in half of the worlds with heavy tails, so that few columns matter.
    """
    w, d = relevant.shape
    tails = (1.5 * normal(generator, w, d) * chance(generator, 0.5, w, 1)).exp()
    return normal(generator, w, d) * tails * relevant


def linear(z: Tensor, weights: Tensor) -> Tensor:
    """Weigh the columns and add them up: the utility of the conditional logit."""
    return torch.einsum("wnmd,wd->wnm", z, weights)


def curves(z: Tensor, weights: Tensor, generator: Generator) -> Tensor:
    """Add up one curve a column: saturating (tanh), a threshold (steep), or an ideal point (a peak).

    Location and steepness differ from column to column.
    """
    w, d = weights.shape
    kind = uniform(generator, w, 1, 1, d)
    at = z - normal(generator, w, 1, 1, d) * 0.7
    rising = (at * torch.where(kind < 0.4, 1.0, 8.0)).tanh()
    curve = torch.where(kind < 0.7, rising, 2 * (-at.square()).exp())
    return torch.einsum("wnmd,wd->wnm", curve, weights)


def interactions(z: Tensor, relevant: Tensor, switches: Tensor, generator: Generator) -> Tensor:
    """Add up products of two columns, four pairs a world.

    The first of a pair is above all a situation or an indicator (``switches``, (W, d)), which changes what the other
    is worth.
    """
    w = z.shape[0]
    ignore = (~relevant) * -30.0
    first = take_columns(z, pick(generator, ignore + 3.0 * switches, PRODUCTS))
    second = take_columns(z, pick(generator, ignore, PRODUCTS))
    return torch.einsum("wnmk,wk->wnm", first * second, normal(generator, w, PRODUCTS))


def net(z: Tensor, relevant: Tensor, generator: Generator) -> Tensor:
    """Pass an object through a random net with one hidden layer of 16 tanh units."""
    w, d = relevant.shape
    into = normal(generator, w, d, HIDDEN) * 1.5 * relevant.sum(1)[:, None, None].rsqrt()
    hidden = (torch.einsum("wnmd,wdk->wnmk", z, into) + normal(generator, w, 1, 1, HIDDEN)).tanh()
    return torch.einsum("wnmk,wk->wnm", hidden, normal(generator, w, HIDDEN))


def tree(z: Tensor, relevant: Tensor, generator: Generator) -> Tensor:
    """Ask three questions "is this column above its threshold?" and look up a value for the eight answers."""
    w, n, m, _ = z.shape
    asked = take_columns(z, pick(generator, (~relevant) * -30.0, DEPTH))
    answers = asked > normal(generator, w, 1, 1, DEPTH) * 0.7
    leaf = answers[..., 0] * 4 + answers[..., 1] * 2 + answers[..., 2].long()
    return normal(generator, w, 2**DEPTH).gather(1, leaf.flatten(1)).view(w, n, m)
