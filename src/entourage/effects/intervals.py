"""Confidence intervals of context effects, calibrated by refits to data of known truth."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from entourage.errors import check_number

__all__ = ["Calibrated", "Measured", "Quantity", "calibrated_intervals"]

Floats: TypeAlias = NDArray[np.float64]

_RECOVERIES = np.geomspace(
    0.25, 1.0, 25
)  # candidates of beta; smaller ones would make intervals almost endless
_BENDS = np.array(
    [0.0, *np.geomspace(0.01, 10, 31)]
)  # candidates of kappa, relative to the largest known truth


@dataclass(frozen=True)
class Measured:
    """A quantity in refits: to people (b,), without context (b,), in known truths (j,) and in their refits (j, k)."""

    people: Floats
    null: Floats
    truths: Floats
    known: Floats


@dataclass(frozen=True)
class Calibrated:
    """An estimate corrected by refits to data of known truth; see :func:`calibrated_intervals`.

    Attributes
    ----------
    estimate, interval : of the quantity in the population of groups
    refits : the mean over refits to resampled groups, uncorrected
    reference, reference_quantile : the mean over refits to targets without context, and the quantile 1 - level
    """

    estimate: float
    interval: tuple[float, float]
    refits: float
    reference: float
    reference_quantile: float


@dataclass(frozen=True)
class Quantity:
    """A context effect of a model and, from refits, in the population.

    Attributes
    ----------
    value : of the model
    n : over how many sets (or triples) it is a mean
    estimate, interval : in the population of groups, with its confidence interval; None without refits
    refits : the mean over refits to resampled groups
    reference, reference_quantile : mean and quantile of the refits to targets simulated from the context-ablated
        control, in which there is no context effect
    """

    value: float
    n: int
    estimate: float | None = None
    interval: tuple[float, float] | None = None
    refits: float | None = None
    reference: float | None = None
    reference_quantile: float | None = None

    @classmethod
    def of(cls, value: float, n: int, found: Calibrated | None) -> "Quantity":
        """Join the value of a model and what its refits give, None without refits."""
        return cls(value, n) if found is None else cls(value, n, **vars(found))

    def to_json(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        return vars(self) | {"interval": None if self.interval is None else list(self.interval)}


def calibrated_intervals(
    measured: Mapping[str, Measured],
    *,
    least: float = -np.inf,
    most: float = np.inf,
    level: float = 0.05,
) -> dict[str, Calibrated]:
    r"""Return confidence intervals of quantities of one unit, from their values in refits.

    Let :math:`r_0` be the mean over refits without context. An effect of size :math:`\theta` is recovered as
    :math:`r_0 + h(\theta)` with :math:`h(\theta) = \beta\,\theta^2 / (\theta + \kappa)`: small effects shrink most
    (early stopping takes them for noise), large ones to the share :math:`\beta`. Both parameters are fitted to the
    refits to known truths, of all quantities together. With the mean :math:`\bar v` and the standard deviation
    :math:`s` of the refits to resampled groups, the estimate is :math:`h^{-1}(\bar v - r_0)`, and the interval is
    :math:`h^{-1}(\bar v - r_0 \pm t\,s)`.

    The known truths are built from fitted nets, and so are easier to learn than real behaviour: in
    ``benchmarks.calibration.effects`` estimates are half to three quarters of a known effect. The end that is farther
    from 0 therefore allows for the same shrinkage twice. Effects that the net can't learn from so few data are not
    covered.

    Parameters
    ----------
    measured : the quantities in refits, by name
    least, most : the range of the quantities
    level : the significance level: intervals hold 1 - level
    """
    check_number("level", level, above=0, below=1)
    recovery, bend = _recovery(list(measured.values()))
    found = {}
    for name, one in measured.items():
        reference = float(one.null.mean())
        shown = float(one.people.mean())
        spread = float(np.sqrt(one.people.var(ddof=1) + one.null.var(ddof=1) / len(one.null)))
        half = float(stdtrit(len(one.people) - 1, 1 - level / 2)) * spread
        excess = shown - reference
        ends = [
            _unshrunk(excess - half, recovery, bend, times=1 if excess > half else 2),
            _unshrunk(excess, recovery, bend),
            _unshrunk(excess + half, recovery, bend, times=1 if excess < -half else 2),
        ]
        low, middle, high = (min(max(end, least), most) for end in ends)
        found[name] = Calibrated(
            middle, (low, high), shown, reference, float(np.quantile(one.null, 1 - level))
        )
    return found


def _recovery(measured: Sequence[Measured]) -> tuple[float, float]:
    """Return the parameters of shrinkage, beta and kappa."""
    truth, shown, weight = [], [], []
    for one in measured:
        noise = one.null.var(ddof=1) / len(one.null)
        truth.append(np.abs(one.truths))
        shown.append(np.where(one.truths < 0, -1.0, 1.0) * (one.known.mean(1) - one.null.mean()))
        weight.append(1 / np.maximum(noise + one.known.var(1, ddof=1) / one.known.shape[1], 1e-12))
    x, y, w = (np.concatenate(part) for part in (truth, shown, weight))
    if not x.any():
        return 1.0, 0.0
    recovery, bend = _RECOVERIES[:, None, None], (_BENDS * x.max())[:, None]
    losses = (w * np.square(recovery * x * x / np.maximum(x + bend, 1e-12) - y)).sum(2)  # (recoveries, bends)
    i, j = np.unravel_index(int(np.argmin(losses)), losses.shape)
    return float(_RECOVERIES[i]), float(_BENDS[j] * x.max())


def _unshrunk(shown: float, recovery: float, bend: float, times: int = 1) -> float:
    """Return the effect that is recovered as ``shown`` after shrinking so many times."""
    y = abs(shown)
    if y == 0:
        return 0.0
    low, high = 0.0, y / recovery**times + 2**times * bend  # recovered as more than shown
    while high * (recovery * high / (high + bend)) ** times < y:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        less = middle * (recovery * middle / (middle + bend)) ** times < y
        low, high = (middle, high) if less else (low, middle)
    return float(np.copysign(high, shown))
