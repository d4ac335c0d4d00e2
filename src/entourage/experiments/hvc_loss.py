"""The loss of contributions: scores are their logarithms, and the order of a set's points counts beside."""

import torch
from torch import Tensor
from torch.nn import functional as F

__all__ = ["contribution_loss"]


def contribution_loss(
    scores: Tensor,
    ranks: Tensor,
    mask: Tensor,
    *,
    huber: float = 0.05,
    sharpness: float = 20.0,
    extremes: float = 0.1,
) -> Tensor:
    """Huber loss of log contributions, logistic loss of all pairs, and cross-entropy of the least and the largest.

    Parameters
    ----------
    scores : (n, m), estimates of log contributions
    ranks : (n, m), minus log contributions; NaN in the padding
    mask : (n, m)
    huber : errors below are squared
    sharpness : of pairs and extremes: scores that differ by its inverse count as apart
    extremes : weight of the least and the largest
    """
    known = mask & (ranks >= 0)
    truth = torch.where(known, -ranks, 0.0)
    own = torch.where(known, scores, 0.0)
    count = known.sum(1).clamp(min=1)
    value = F.smooth_l1_loss(own, truth, beta=huber, reduction="none").sum(1) / count
    wins = (truth[:, :, None] > truth[:, None]) & known[:, :, None] & known[:, None]  # (n, i, j)
    margins = own[:, :, None] - own[:, None]
    violations = F.softplus(-sharpness * margins) / sharpness
    value = value + (violations * wins).sum((1, 2)) / wins.sum((1, 2)).clamp(min=1)
    if extremes:
        lowest = torch.finfo(own.dtype).min / 4
        for sign in (1.0, -1.0):
            best = torch.where(known, sign * truth, lowest).argmax(1, keepdim=True)
            logits = torch.where(known, sign * sharpness * own, lowest)
            value = value + extremes * torch.where(
                known.any(1), logits.logsumexp(1) - logits.gather(1, best).squeeze(1), 0.0
            )
    return value
