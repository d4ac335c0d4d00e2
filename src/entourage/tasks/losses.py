r"""Ranking losses: what training minimises.

Every loss has the signature ``loss(scores, ranks, mask) -> one value a set``:

scores : (n, m)
    The predicted utilities; higher is better.
ranks : (n, m)
    0 = best. Equal ranks are a tie. NaN or a negative rank: not ranked.
mask : (n, m)
    False in the padding.

Three rules hold for all of them. *Ties*: two objects of equal rank need neither different nor equal scores. *Unranked
objects* take no part; where they are worse than all that are ranked, give them a common last rank. *A set in which no
order is known* (one object, all tied, all padding) has the loss 0 and no gradient.

A callable of your own with this signature can stand in for any of them; it may also return a single
number, the mean over the sets, if no set is weighted.
"""

import functools
import types
from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional as F

from entourage.data.shapes import Mask, PerSet, Ranks, Scores
from entourage.errors import ParameterError, check_choice, check_number

__all__ = [
    "CHOICE_LOSSES",
    "LOSSES",
    "SUBSET_LOSSES",
    "Loss",
    "choice_loss",
    "find_loss",
    "hinge_ranking_loss",
    "listnet_loss",
    "logistic_ranking_loss",
    "loss_identity",
    "loss_name",
    "plackett_luce_loss",
    "subset_loss",
]

Loss: TypeAlias = Callable[[Tensor, Tensor, Tensor], Tensor]


def hinge_ranking_loss(scores: Scores, ranks: Ranks, mask: Mask) -> PerSet:
    r"""Average margin violation over the pairs whose true order is known.

    .. math:: \frac{1}{|P|} \sum_{(i, j) \in P} \max(1 + s_j - s_i, 0),
              \quad P = \{(i, j) : \pi(i) < \pi(j)\}

    It bounds the 0/1-ranking loss from above. (The paper prints :math:`1 + s_i - s_j`, which would
    reward the wrong order.)

    Examples
    --------
    >>> scores, ranks = torch.tensor([[2.0, 0.5, 0.0]]), torch.tensor([[0, 2, 1]])
    >>> hinge_ranking_loss(scores, ranks, ranks >= 0)  # (0 + 0 + 1.5) / 3
    tensor([0.5000])
    """
    return _mean_over_pairs(lambda margins: F.relu(1.0 - margins), scores, ranks, mask)


def logistic_ranking_loss(scores: Scores, ranks: Ranks, mask: Mask) -> PerSet:
    r"""Average negative log-probability of the true order of a pair: the loss of RankNet.

    .. math:: \frac{1}{|P|} \sum_{(i, j) \in P} \log(1 + e^{s_j - s_i}),
              \quad P = \{(i, j) : \pi(i) < \pi(j)\}

    Examples
    --------
    >>> scores, ranks = torch.tensor([[0.0, 0.0]]), torch.tensor([[1, 0]])
    >>> logistic_ranking_loss(scores, ranks, ranks >= 0)  # log 2
    tensor([0.6931])
    """
    return _mean_over_pairs(lambda margins: F.softplus(-margins), scores, ranks, mask)


def plackett_luce_loss(scores: Scores, ranks: Ranks, mask: Mask) -> PerSet:
    r"""Negative log-likelihood of the ranking under the Plackett-Luce model: ListMLE.

    .. math:: \sum_i \log\Bigl(e^{s_i} + \sum_{j : \pi(j) > \pi(i)} e^{s_j}\Bigr) - s_i

    Each object is chosen before all that are ranked strictly worse. Without ties this is the paper's
    formula; tied objects don't compete with each other, and those on the last rank add nothing, so that
    a top-k ranking (the rest tied last) has the likelihood of its first k choices. O(m log m).

    Examples
    --------
    >>> scores, ranks = torch.tensor([[0.0, 0.0, 0.0]]), torch.tensor([[0, 1, 2]])
    >>> plackett_luce_loss(scores, ranks, ranks >= 0)  # log 3 + log 2
    tensor([1.7918])
    """
    m = scores.shape[1]
    known = _ranked(ranks, mask)
    keys = torch.where(known, ranks.to(scores.dtype), torch.inf)
    order = keys.argsort(dim=1, descending=True, stable=True)  # unranked first, then the worst
    sorted_keys = keys.gather(1, order)
    lowest = (
        torch.finfo(scores.dtype).min / 4
    )  # as good as -inf in a sum of exponentials, with a gradient of 0
    sorted_scores = torch.where(known, scores, lowest).gather(1, order)
    up_to_here = F.pad(torch.logcumsumexp(sorted_scores, dim=1), (1, 0), value=lowest)  # (n, m + 1)
    # how many are strictly worse (or unranked): the start of one's group of ties
    place = torch.arange(m, device=scores.device).expand_as(order)
    same = F.pad(sorted_keys[:, 1:] == sorted_keys[:, :-1], (1, 0), value=False)
    worse = torch.where(same, 0, place).cummax(dim=1).values
    terms = torch.logaddexp(sorted_scores, up_to_here.gather(1, worse)) - sorted_scores
    return torch.where(known.gather(1, order), terms, 0.0).sum(1)


def listnet_loss(scores: Scores, ranks: Ranks, mask: Mask, k: int = 3) -> PerSet:
    r"""Cross-entropy between the top-k probabilities of the truth and of the scores: ListNet.

    .. math:: -\sum_{g} P_y(g) \log P_s(g)

    over all ordered choices g of k objects, each P the Plackett-Luce probability of choosing them first.
    The truth scores an object :math:`y_i = -\bar\pi(i)`, minus its place in the ranking, with tied
    objects on the average of their places. Where fewer than k objects are ranked, k is their number.
    Exact, in :math:`O(m^k)`: made for small sets or small k; the paper takes k = 3.

    Examples
    --------
    >>> scores, ranks = torch.tensor([[0.0, 0.0]]), torch.tensor([[0, 1]])
    >>> listnet_loss(scores, ranks, ranks >= 0, k=1)  # log 2, whatever the truth
    tensor([0.6931])
    """
    check_number("k", k, least=1, whole=True)
    n, m = scores.shape
    if float(m) ** k * n > 2**29:
        raise ParameterError(
            f"Top-{k} ListNet sums over {m}^{k} choices in each of {n} sets, too many to hold in memory. "
            "Take a smaller k (functools.partial(listnet_loss, k=1)), smaller batches or subsets, or "
            "loss='plackett_luce', which needs no such sum."
        )
    known = _ranked(ranks, mask)
    ordered = _known_pairs(ranks, known)
    known_pairs = known[:, :, None] & known[:, None, :]
    better = ordered.sum(1).to(scores.dtype)
    tied = (known_pairs & ~ordered & ~ordered.transpose(1, 2)).sum(1).to(scores.dtype)
    truth = -(better + 0.5 * (tied - 1))  # (n, m)
    informative = ordered.any(2).any(1)
    choice = torch.ones((n,), dtype=scores.dtype, device=scores.device)  # P_y of each prefix
    free = known  # (n, ..., m): who is still to be chosen after each prefix
    loss = torch.zeros_like(choice)
    for _ in range(min(k, m)):
        shape = (n, *(1,) * (free.ndim - 2), m)
        log_p = _log_softmax(truth.view(shape), free)
        log_q = _log_softmax(scores.view(shape), free)
        joint = choice.unsqueeze(-1) * torch.where(free, log_p.exp(), 0.0)
        loss = loss - (joint * log_q).flatten(1).sum(1)
        free = free.unsqueeze(-2) & ~torch.eye(m, dtype=torch.bool, device=scores.device)
        choice = joint
    return torch.where(informative, loss, 0.0)


def choice_loss(scores: Scores, ranks: Ranks, mask: Mask, *, outside: bool = False) -> PerSet:
    r"""Negative log-probability of what was chosen, under a softmax over the set.

    .. math:: \log \sum_j e^{s_j} - s_c

    The chosen object c has rank 0, the others rank 1. With ``outside`` there is an outside option of utility 0; it
    was chosen in a set without a rank of 0. Where several objects are chosen, each counts as a choice.

    Examples
    --------
    >>> scores, ranks = torch.tensor([[0.0, 0.0]]), torch.tensor([[1, 0]])
    >>> choice_loss(scores, ranks, ranks >= 0)  # log 2
    tensor([0.6931])
    """
    chosen = _ranked(ranks, mask) & (ranks == 0)
    lowest = torch.finfo(scores.dtype).min / 4
    values = torch.where(mask, scores, lowest)
    if outside:
        values = F.pad(values, (0, 1))
        chosen = torch.cat([chosen, ~chosen.any(1, keepdim=True)], dim=1)
    return -torch.where(chosen, values.log_softmax(1), 0.0).sum(1)


def subset_loss(scores: Scores, ranks: Ranks, mask: Mask) -> PerSet:
    r"""Average cross-entropy of choosing each object or not, by a sigmoid of its score.

    .. math:: \frac{1}{m} \sum_i \log(1 + e^{-y_i s_i})

    with :math:`y_i = 1` for chosen objects (rank 0), -1 for the others (rank 1).

    Examples
    --------
    >>> scores, ranks = torch.tensor([[0.0, 0.0]]), torch.tensor([[1, 0]])
    >>> subset_loss(scores, ranks, ranks >= 0)  # log 2
    tensor([0.6931])
    """
    known = _ranked(ranks, mask)
    terms = F.softplus(torch.where(ranks == 0, -scores, scores))
    return torch.where(known, terms, 0.0).sum(1) / known.sum(1).clamp(min=1)


#: Every loss, by the name that ``Ranker(loss=...)`` knows it by.
LOSSES: dict[str, Loss] = {
    "hinge": hinge_ranking_loss,
    "logistic": logistic_ranking_loss,
    "plackett_luce": plackett_luce_loss,
    "listnet": listnet_loss,
}


CHOICE_LOSSES: dict[str, Loss] = {"nll": choice_loss}  # of ``DiscreteChooser``
SUBSET_LOSSES: dict[str, Loss] = {"binary": subset_loss}  # of ``SubsetChooser``


def find_loss(loss: str | Loss | None, known: dict[str, Loss] = LOSSES) -> Loss:
    """Return the loss of this name among the known ones, or the callable itself."""
    if callable(loss):
        return loss
    if loss is None:
        raise ParameterError(
            "loss=None: a model saved with a custom loss is loaded without it. Give it again: "
            "model.set_params(loss=...)."
        )
    return known[check_choice("loss", loss, known)]


def loss_name(loss: str | Loss, among: dict[str, Loss]) -> str | None:
    """Return the name of a loss among others; None where it has none."""
    if isinstance(loss, str):
        return loss
    return next((name for name, known in among.items() if known is loss), None)


def loss_identity(loss: Any) -> str:
    """Identify a callable loss, as far as possible: by name, bound arguments and code; the same in every process."""
    everything = LOSSES | CHOICE_LOSSES | SUBSET_LOSSES
    return f"{loss_name(loss, everything) or ''}:{_identity(loss)}"


def _identity(value: Any) -> str:
    """Identify a function, its code or a constant of it, without addresses in memory."""
    if isinstance(value, functools.partial):
        return f"partial({_identity(value.func)}, {_identity(value.args)}, {_identity(value.keywords)})"
    if isinstance(value, types.CodeType):
        return f"{value.co_code.hex()}, {value.co_names}, {_identity(value.co_consts)}"
    if isinstance(value, types.FunctionType):
        held = tuple(cell.cell_contents for cell in value.__closure__ or ())
        bound = _identity((value.__defaults__, value.__kwdefaults__, held))
        return f"{value.__qualname__}({_identity(value.__code__)}, {bound})"
    if isinstance(value, (tuple, list)):
        return "(" + ", ".join(map(_identity, value)) + ")"
    if isinstance(value, (set, frozenset)):
        return "{" + ", ".join(sorted(map(_identity, value))) + "}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_identity(key)}: {_identity(own)}" for key, own in value.items()) + "}"
    if callable(value):
        return str(getattr(value, "__qualname__", type(value).__qualname__))
    return repr(value)


def _ranked(ranks: Tensor, mask: Tensor) -> Tensor:
    return mask & (ranks >= 0)  # False for NaN too


def _known_pairs(ranks: Tensor, known: Tensor) -> Tensor:
    """(n, i, j): both are ranked and i is before j."""
    n, m = ranks.shape
    if n * m * m > 2**31:
        raise ParameterError(
            f"This loss needs all pairs of {m:,} objects, too many to hold in memory. Learn from subsets "
            "(sets.sample_subsets(1000)), or take loss='plackett_luce', which needs no pairs."
        )
    return (ranks[:, :, None] < ranks[:, None, :]) & known[:, :, None] & known[:, None, :]


def _mean_over_pairs(
    value: Callable[[Tensor], Tensor], scores: Tensor, ranks: Tensor, mask: Tensor
) -> Tensor:
    pairs = _known_pairs(ranks, _ranked(ranks, mask))  # first: it refuses too many
    margins = scores[:, :, None] - scores[:, None, :]  # (n, i, j): by how much i is above j
    return torch.where(pairs, value(margins), 0.0).sum((1, 2)) / pairs.sum((1, 2)).clamp(min=1)


def _log_softmax(values: Tensor, free: Tensor) -> Tensor:
    """Log-softmax over the free entries; 0 elsewhere."""
    lowest = torch.finfo(values.dtype).min / 4
    return torch.where(free, torch.where(free, values, lowest).log_softmax(-1), 0.0)
