"""The instant verdict: what the net believes of the context, having read the labelled sets."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from entourage.nets.prior_fitted import EFFECTS, SHARES, Verdict

__all__ = ["InstantVerdict", "verdict_of"]

NEXT_TO_NONE = 2  # bins: a share of 0, and one under 2 %
SURE = 0.95  # the probability from which it decides


@dataclass(frozen=True)
class InstantVerdict:
    """What the pretrained net believes of the context in a table.

    Parameters
    ----------
    none : probability that context plays next to no part: that its share, as below, is under 2 %
    share : mean of the context's share of the gain in log-likelihood over a uniform choice
    interval : 90 % interval of that share
    effects : probability that each effect is there

    Examples
    --------
    >>> print(InstantVerdict(0.7, 0.02, (0.0, 0.1), {"attraction": 0.1, "compromise": 0.2, "similarity": 0.05}))
    undecided; the context's share of the log-likelihood gain is under 2 % with probability 0.70, 2 % on average (90 %:
    0 to 10 %); attraction 0.10, compromise 0.20, similarity 0.05
    """

    none: float
    share: float
    interval: tuple[float, float]
    effects: dict[str, float]

    def __str__(self) -> str:
        share, low, high = (100 * part for part in (self.share, *self.interval))
        effects = ", ".join(f"{name} {p:.2f}" for name, p in self.effects.items())
        decided = "no context" if self.none >= SURE else "context" if self.none <= 1 - SURE else "undecided"
        return (
            f"{decided}; the context's share of the log-likelihood gain is under 2 % with probability {self.none:.2f}, "
            f"{share:.0f} % on average (90 %: {low:.0f} to {high:.0f} %); {effects}"
        )


def verdict_of(verdicts: Sequence[Verdict]) -> InstantVerdict:
    """Return the verdict of several readings, of one table each: their probabilities are averaged."""
    bins = np.mean([_row(v.share.softmax(-1)) for v in verdicts], axis=0)
    effects = np.mean([_row(v.effects.sigmoid()) for v in verdicts], axis=0)
    borders = np.array(SHARES)
    middles = np.concatenate([[0.0], (borders[1:] + borders[:-1]) / 2])
    return InstantVerdict(
        float(bins[:NEXT_TO_NONE].sum()),
        float(bins @ middles),
        (_quantile(bins, 0.05), _quantile(bins, 0.95)),
        {name: float(p) for name, p in zip(EFFECTS, effects, strict=True)},
    )


def _row(values: Tensor) -> NDArray[np.float64]:
    return np.asarray(values[0].detach().cpu().double().numpy())


def _quantile(bins: NDArray[np.float64], level: float) -> float:
    """Return a quantile of the share: a mass at 0, and a uniform density within each bin."""
    reached = np.cumsum(bins)
    at = int(np.searchsorted(reached, level * reached[-1]))
    if at == 0:
        return 0.0
    at = min(at, len(bins) - 1)
    inside = (level * reached[-1] - reached[at - 1]) / max(bins[at], 1e-12)
    return float(SHARES[at - 1] + inside * (SHARES[at] - SHARES[at - 1]))
