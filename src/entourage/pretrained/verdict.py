"""The instant verdict: what the pretrained net says of context in a table, from its labelled sets alone."""

from dataclasses import dataclass
from typing import Any

__all__ = ["InstantVerdict"]


@dataclass(frozen=True)
class InstantVerdict:
    """What the pretrained net believes of context in a table; nothing is fitted for it.

    All are posterior means or probabilities under the simulated worlds that the net was trained on. They are quick,
    not a test: :func:`entourage.selection.compare` has that.

    Parameters
    ----------
    none : the probability that context plays no part
    share : the part of the log-likelihood gain over a uniform choice that is due to context
    interval : of the share, 90 %
    effects : the probability of attraction, compromise and similarity

    Examples
    --------
    >>> print(InstantVerdict(0.07, 0.31, (0.12, 0.5), {"attraction": 0.81, "compromise": 0.4}))
    Instant verdict: context plays a part with a probability of 93 %. Its share of the log-likelihood gain is 31 %, \
90 % interval 12 % to 50 %. Probability of attraction 81 %, compromise 40 %.
    """

    none: float
    share: float
    interval: tuple[float, float]
    effects: dict[str, float]

    def __str__(self) -> str:
        low, high = self.interval
        effects = ", ".join(f"{name} {_percent(p)}" for name, p in self.effects.items())
        return (
            f"Instant verdict: context plays a part with a probability of {_percent(1 - self.none)}. Its share of the "
            f"log-likelihood gain is {_percent(self.share)}, 90 % interval {_percent(low)} to {_percent(high)}."
            + (f" Probability of {effects}." if effects else "")
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "none": self.none,
            "share": self.share,
            "interval": list(self.interval),
            "effects": dict(self.effects),
        }


def _percent(part: float) -> str:
    """Write a probability; never 0 % or 100 %, which no posterior is.

    Examples
    --------
    >>> _percent(0.314), _percent(0.9999), _percent(0.001)
    ('31 %', '> 99 %', '< 1 %')
    """
    if part > 0.995:
        return "> 99 %"
    return f"{100 * part:.0f} %" if part >= 0.005 else "< 1 %"
