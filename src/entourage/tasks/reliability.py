"""Whether probabilities are what they say: of the objects with a probability of 0.3, three in ten should be first."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entourage.errors import DataError, ParameterError, ShapeError, check_number

__all__ = ["ReliabilityBin", "expected_calibration_error", "reliability_bins"]

_NORMAL = 1.959963984540054  # of a 95 % interval


@dataclass(frozen=True)
class ReliabilityBin:
    """Objects of about the same probability: their mean probability, and the share that was chosen."""

    probability: float
    share: float
    low: float  # of the 95 % confidence interval of the share
    high: float
    count: int


def reliability_bins(probabilities: ArrayLike, chosen: ArrayLike, bins: int = 10) -> list[ReliabilityBin]:
    """Put objects into bins of about equal counts, by their probability, and count those that were chosen.

    Parameters
    ----------
    probabilities : predicted, one an object, of any shape; NaN (padding) is left out
    chosen : whether each object was chosen, or came first; shares of a tie may be given as fractions
    bins : how many, at most: objects of equal probability are never parted

    Returns
    -------
    The bins in rising order. Intervals are Wilson's, with objects taken as independent.

    Examples
    --------
    >>> found = reliability_bins([0.1, 0.1, 0.1, 0.1, 0.6, 0.6], [0, 0, 0, 1, 1, 1], bins=2)
    >>> [(round(b.probability, 2), b.share, b.count) for b in found]
    [(0.1, 0.25, 4), (0.6, 1.0, 2)]
    """
    check_number("bins", bins, least=1, whole=True)
    p, hits = _checked(probabilities, chosen)
    order = np.argsort(p, kind="stable")
    p, hits = p[order], hits[order]
    edges = np.round(np.linspace(0, len(p), min(bins, len(p)) + 1)).astype(np.int64)
    inner = edges[1:-1]
    left, right = (np.searchsorted(p, p[inner], side=side) for side in ("left", "right"))
    inner = np.where(inner - left <= right - inner, left, right)
    edges = np.unique(np.concatenate([[0], inner, [len(p)]]))
    found = []
    for begin, end in pairwise(edges.tolist()):
        share, count = float(hits[begin:end].mean()), int(end - begin)
        low, high = _wilson(share, count)
        found.append(ReliabilityBin(float(p[begin:end].mean()), share, low, high, count))
    return found


def expected_calibration_error(probabilities: ArrayLike, chosen: ArrayLike, bins: int = 10) -> float:
    """Return the mean distance of probability and share over the bins, weighted by their counts.

    Even perfect probabilities have an error above 0, by chance, the more so the fewer objects there are.

    Examples
    --------
    >>> round(expected_calibration_error([0.1, 0.1, 0.1, 0.1, 0.6, 0.6], [0, 0, 0, 1, 1, 1], bins=2), 4)
    0.2333
    """
    found = reliability_bins(probabilities, chosen, bins)
    total = sum(own.count for own in found)
    return sum(own.count * abs(own.probability - own.share) for own in found) / total


def _checked(probabilities: ArrayLike, chosen: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    p: NDArray[Any] = np.asarray(probabilities, dtype=np.float64).ravel()
    hits: NDArray[Any] = np.asarray(chosen, dtype=np.float64).ravel()
    if p.shape != hits.shape:
        raise ShapeError(f"One probability is needed for each outcome; got {p.shape} and {hits.shape}.")
    known = ~np.isnan(p) & ~np.isnan(hits)
    p, hits = p[known], hits[known]
    if len(p) == 0:
        raise DataError("There is no object with a probability and an outcome.")
    if ((p < 0) | (p > 1 + 1e-9) | (hits < 0) | (hits > 1)).any():
        raise ParameterError("Probabilities must lie between 0 and 1, and outcomes too.")
    return p, hits


def _wilson(share: float, count: int) -> tuple[float, float]:
    square = _NORMAL**2 / count
    centre = (share + square / 2) / (1 + square)
    half = _NORMAL / (1 + square) * np.sqrt(share * (1 - share) / count + square / (4 * count))
    return float(max(0.0, centre - half)), float(min(1.0, centre + half))
