"""Ridge conditional logits on the labelled sets, solved in a few Newton steps: what the net knows of a linear world.

The likelihood is that of Plackett and Luce with Breslow's treatment of ties, of which a single choice is the simplest
case: each object of rank r is chosen from those of rank r or worse. Utilities of labelled sets are those of a model
that did not see the set (leave-one-out, in one Newton step), so they say as much as those of new sets do.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["Comparisons", "RidgeFit", "fit_ridge", "leave_one_out"]

STEPS = 6
LARGEST_STEP = 4.0  # of a utility, in one Newton step: what is separable would jump too far
TERMS = 5  # of the series for the leave-one-out step


@dataclass(frozen=True)
class Comparisons:
    """Who was chosen from whom, for W tables of n sets of m objects.

    Parameters
    ----------
    among : (W, n, m, m) bool; whether object j was there when object i was chosen
    chosen : (W, n, m) float; 1 (or the weight of the set) where object i was chosen from others
    """

    among: Tensor
    chosen: Tensor

    @classmethod
    def of(cls, ranks: Tensor, mask: Tensor | None = None, weights: Tensor | None = None) -> "Comparisons":
        """Return the comparisons that ranks (W, n, m) stand for: 0 is best, NaN is not ranked."""
        known = ~ranks.isnan()
        if mask is not None:
            known = known & mask
        both = known.unsqueeze(-1) & known.unsqueeze(-2)
        behind = ranks.unsqueeze(-2) > ranks.unsqueeze(-1)  # j is worse than i
        tied = ranks.unsqueeze(-2) == ranks.unsqueeze(-1)
        among = both & (behind | tied)
        chosen = (both & behind).any(-1).to(ranks.dtype)
        if weights is not None:
            chosen = chosen * weights.unsqueeze(-1)
        return cls(among, chosen)

    def probabilities(self, utilities: Tensor) -> Tensor:
        """Return (..., m, m): of each object j, when object i was chosen; ``utilities`` are (W, K, n, m)."""
        free = self.among.unsqueeze(1)
        logits = utilities.unsqueeze(-2).masked_fill(~free, -torch.inf)
        top = logits.amax(-1, keepdim=True).clamp_min(-1e30)  # rows in which nobody was there
        parts = (logits - top).exp()
        return parts / parts.sum(-1, keepdim=True).clamp_min(1e-30)

    def gains(self, utilities: Tensor) -> Tensor:
        """Return the log-likelihood of each set, less that of a uniform choice: (W, K, n)."""
        free = self.among.unsqueeze(1)
        logits = utilities.unsqueeze(-2).masked_fill(~free, -torch.inf)
        most = logits.amax(-1).clamp_min(-1e30)
        total = (logits - most.unsqueeze(-1)).exp().sum(-1).clamp_min(1e-30)
        count = self.among.sum(-1).clamp_min(1).unsqueeze(1)
        own = utilities - most - total.log() + count.log()
        return (self.chosen.unsqueeze(1) * own).sum(-1)


@dataclass(frozen=True)
class RidgeFit:
    """Coefficients (W, K, d) at K penalties, and the inverse of each Hessian (W, K, d, d)."""

    coefficients: Tensor
    covariance: Tensor

    def utilities(self, features: Tensor) -> Tensor:
        """Return (W, K, n, m) of features (W, n, m, d)."""
        return torch.einsum("wnmd,wkd->wknm", features, self.coefficients)


def fit_ridge(
    features: Tensor, comparisons: Comparisons, penalties: Tensor, steps: int = STEPS
) -> tuple[RidgeFit, Tensor]:
    """Fit at all penalties at once.

    Parameters
    ----------
    features : (W, n, m, d), 0 in the padding
    comparisons : of the same sets
    penalties : (K,) of half the sum of squares

    Returns
    -------
    The fit, and the leave-one-out utilities of the sets: (W, K, n, m).
    """
    worlds, n, m, d = features.shape
    k = len(penalties)
    flat = features.reshape(worlds, 1, n * m, d)
    ridge = torch.diag_embed(penalties[:, None].expand(k, d))  # (K, d, d)
    beta = features.new_zeros(worlds, k, d)
    for _ in range(steps):
        utilities = (flat @ beta.unsqueeze(-1)).reshape(worlds, k, n, m)
        residual, curvature = _derivatives(comparisons, utilities)
        hessian = _hessian(features, curvature) + ridge
        gradient = (flat * residual.reshape(worlds, k, n * m, 1)).sum(2) - penalties[:, None] * beta
        step = _solve(hessian, gradient.unsqueeze(-1)).squeeze(-1)
        reach = (flat @ step.unsqueeze(-1)).abs().amax((2, 3)).clamp_min(1e-9)
        beta = beta + step * (LARGEST_STEP / reach).clamp_max(1.0).unsqueeze(-1)
    utilities = (flat @ beta.unsqueeze(-1)).reshape(worlds, k, n, m)
    residual, curvature = _derivatives(comparisons, utilities)
    covariance = _solve(
        _hessian(features, curvature) + ridge, torch.eye(d).to(features).expand(worlds, k, d, d)
    )
    return RidgeFit(beta, covariance), leave_one_out(features, utilities, residual, curvature, covariance)


def leave_one_out(
    features: Tensor, utilities: Tensor, residual: Tensor, curvature: Tensor, covariance: Tensor
) -> Tensor:
    """Return the utilities of each set by the model that one Newton step makes of the rest.

    Without set i the gradient at the fit is its own residual, so the step moves the set's utilities by
    A (I − W A)⁻¹ (y − p), where A is features · covariance · featuresᵀ and W the curvature. The inverse is a
    geometric series, of which the first terms are taken.
    """
    wide = features.unsqueeze(1)
    hat = wide @ covariance.unsqueeze(2) @ wide.transpose(-1, -2)  # (W, K, n, m, m)
    term = residual.unsqueeze(-1)
    total = term
    for _ in range(TERMS):
        term = curvature @ (hat @ term)
        total = total + term
    return utilities - (hat @ total).squeeze(-1)


def _derivatives(comparisons: Comparisons, utilities: Tensor) -> tuple[Tensor, Tensor]:
    """Return the residuals (W, K, n, m) and the curvatures (W, K, n, m, m) of the log-likelihood."""
    p = comparisons.probabilities(utilities)
    weighted = p * comparisons.chosen.unsqueeze(1).unsqueeze(-1)
    expected = weighted.sum(-2)
    curvature = torch.diag_embed(expected) - weighted.transpose(-1, -2) @ p
    return comparisons.chosen.unsqueeze(1) - expected, curvature


def _hessian(features: Tensor, curvature: Tensor) -> Tensor:
    worlds, k, n, m, _ = curvature.shape
    bent = (curvature @ features.unsqueeze(1)).reshape(worlds, k, n * m, -1)
    return features.reshape(worlds, 1, n * m, -1).transpose(-1, -2) @ bent


def _solve(hessian: Tensor, right: Tensor) -> Tensor:
    factor, _ = torch.linalg.cholesky_ex(hessian)
    return torch.cholesky_solve(right, factor)
