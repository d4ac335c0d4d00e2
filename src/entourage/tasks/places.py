r"""Probabilities of places under the Plackett-Luce model, exactly.

Plackett and Luce rank objects by repeated choice: each place goes to one of the objects that are left, with a
probability proportional to :math:`e^{\theta_i}`. The same ranking is that of a race in which object i takes an
exponential time :math:`T_i` of rate :math:`e^{\theta_i}`. Given that i arrives at time t, the others have arrived
before it independently of each other, so that its place is a sum of independent coin flips:

.. math:: P(\text{place of } i = k) = \int P\Bigl(\sum_{j \ne i} [T_j < t] = k\Bigr) \, dP(T_i \le t)

The integral is taken over :math:`\log t` by the trapezoidal rule, whose error falls exponentially for such smooth
functions: all probabilities are right to about 1e-10. The sums come from one recursion for all objects of a set,
from which each object is divided out again, in the direction that is stable. That is O(m²) a node for a set of m
objects, and there are at least :math:`22 \sqrt m` nodes, more where utilities lie far apart.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entourage.errors import DataError, ShapeError

__all__ = ["expected_places", "place_probabilities", "place_work"]

_EARLIEST = -18.0  # of log(t), where the best utility is 0: before, hardly ever do two objects arrive
_LATEST = 3.5  # of log(t) + utility: later, an object arrives with a probability of 1e-14
_FAR = 25.0  # a gap of utilities that is as good as infinite
_CHUNK = 200_000  # numbers in a temporary array, so that memory stays bounded


def place_probabilities(utilities: ArrayLike, mask: ArrayLike | None = None) -> NDArray[np.float64]:
    """Return the probability of each place for each object, under the Plackett-Luce model.

    Parameters
    ----------
    utilities : array of shape (n, m)
    mask : boolean array of shape (n, m), optional
        False in the padding, which takes no part.

    Returns
    -------
    array of shape (n, m, m)
        The entry (i, j, k) is the probability that object j of set i has place k, 0 = best. Rows and columns of a
        set sum to 1, but for the padding, which has 0. The first column is the softmax of the utilities.

    Examples
    --------
    >>> place_probabilities([[np.log(2), 0.0, 0.0]]).round(4)
    array([[[0.5   , 0.3333, 0.1667],
            [0.25  , 0.3333, 0.4167],
            [0.25  , 0.3333, 0.4167]]])
    """
    theta, present = _checked(utilities, mask)
    n, m = theta.shape
    found = np.zeros((n, m, m))
    if n == 0 or m == 0:
        return found
    theta = _with_small_gaps(theta, present)  # from 0 down
    step = _step(m)
    count = np.ceil((_LATEST - _EARLIEST - theta.min(1)) / step).astype(np.int64) + 1  # nodes of each set
    order = np.argsort(count, kind="stable")
    begin = 0
    while begin < n:
        end = begin + 1
        while end < n and (end + 1 - begin) * count[order[end]] * m <= _CHUNK:
            end += 1
        some = order[begin:end]
        nodes = count[some[-1]]
        at_once = max(1, _CHUNK // (len(some) * m))
        for first in range(0, nodes, at_once):
            log_t = _EARLIEST + step * np.arange(first, min(first + at_once, nodes))  # (nodes,)
            found[some] += _at_nodes(theta[some], present[some], log_t, step)
        begin = end
    first_of_all = np.exp(theta + _EARLIEST) * step / np.expm1(step)  # who arrives before all nodes is alone
    found[:, :, 0] += np.where(present, first_of_all, 0.0)
    possible = np.arange(m) < present.sum(1)[:, None]  # (n, places)
    return np.where(possible[:, None, :], np.clip(found, 0.0, 1.0), 0.0)


def expected_places(utilities: ArrayLike, mask: ArrayLike | None = None) -> NDArray[np.float64]:
    """Return the expected place of each object, 0 = best: the sum of the probabilities that another is before it.

    Parameters
    ----------
    utilities : array of shape (n, m)
    mask : boolean array of shape (n, m), optional
        False in the padding, which has NaN.

    Examples
    --------
    >>> expected_places([[np.log(2), 0.0, 0.0]]).round(4)
    array([[0.6667, 1.1667, 1.1667]])
    """
    theta, present = _checked(utilities, mask)
    n, m = theta.shape
    found = np.empty((n, m))
    step = max(1, _CHUNK // max(1, m * m))
    for begin in range(0, n, step):
        own, there = theta[begin : begin + step], present[begin : begin + step]
        before = 0.5 * (1.0 + np.tanh(0.5 * (own[:, None, :] - own[:, :, None])))  # (n, i, j): j before i
        found[begin : begin + step] = np.where(there[:, None, :], before, 0.0).sum(2) - 0.5
    return np.where(present, found, np.nan)


def place_work(sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return about how many operations `place_probabilities` takes for a set of each size."""
    m = sizes.astype(np.float64)
    return np.asarray(3 * m * m * 30.0 / _step(m))


def _checked(utilities: ArrayLike, mask: ArrayLike | None) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    theta = np.asarray(utilities, dtype=np.float64)
    if theta.ndim != 2:
        raise ShapeError(
            f"utilities need the shape (sets, objects); got {theta.shape}. For a single set, pass utilities[None]."
        )
    present = np.ones(theta.shape, dtype=bool) if mask is None else np.asarray(mask, dtype=bool)
    if present.shape != theta.shape:
        raise ShapeError(f"mask needs the shape of the utilities, {theta.shape}; got {present.shape}.")
    if not np.isfinite(theta[present]).all():
        raise DataError("Utilities must be finite numbers; some are infinite or NaN.")
    return np.where(present, theta, 0.0), present


def _with_small_gaps(theta: NDArray[np.float64], present: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Shift utilities to a maximum of 0, and shorten gaps between neighbours that are as good as infinite."""
    low = np.min(theta, axis=1, where=present, initial=np.inf, keepdims=True)
    theta = np.where(present, theta, np.where(np.isfinite(low), low, 0.0))
    order = np.argsort(-theta, axis=1, kind="stable")
    falling = np.take_along_axis(theta, order, 1)
    gaps = np.clip(falling[:, :-1] - falling[:, 1:], 0.0, _FAR)
    shifted = np.zeros_like(theta)
    shifted[:, 1:] = -np.cumsum(gaps, axis=1)
    result = np.empty_like(theta)
    np.put_along_axis(result, order, shifted, 1)
    return result


def _step(m: int | NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distance of nodes: the more objects, the faster the place at a time turns from k to k + 1."""
    return np.asarray(np.minimum(0.35, 1.0 / np.sqrt(m)))


def _at_nodes(
    theta: NDArray[np.float64],
    present: NDArray[np.bool_],
    log_t: NDArray[np.float64],
    step: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the part of the integral at some nodes: (n, m, m)."""
    n, m = theta.shape
    logs = theta[:, None, :] + log_t[:, None]  # (n, nodes, m)
    powers = np.exp(np.minimum(logs, 700.0))
    density = np.where(present[:, None, :], step * np.exp(logs - powers), 0.0)
    arrived = np.where(present[:, None, :], -np.expm1(-powers), 0.0)
    late = np.where(present[:, None, :], np.exp(-powers), 1.0)  # 1 - arrived, without cancellation
    counts = np.zeros((m + 1, n, len(log_t)))  # the probability that k of all have arrived
    counts[0] = 1.0
    for j in range(m):
        own, rest = arrived[:, :, j], late[:, :, j]
        counts[1 : j + 2] = counts[1 : j + 2] * rest + counts[: j + 1] * own
        counts[0] *= rest
    result = np.empty((n, m, m))
    forwards = arrived <= 0.5
    up = np.where(forwards, arrived, 0.0) / np.where(forwards, late, 1.0)
    factor = np.where(forwards, 1.0 / np.where(forwards, late, 1.0), 0.0)
    others = np.zeros_like(arrived)  # the probability that k of the others have arrived
    for k in range(m):
        others = counts[k][:, :, None] * factor - up * others
        result[:, :, k] = np.einsum("ngj,ngj->nj", density, others)
    down = np.where(forwards, 0.0, late) / np.where(forwards, 1.0, arrived)
    factor = np.where(forwards, 0.0, 1.0 / np.where(forwards, 1.0, arrived))
    others = np.zeros_like(arrived)
    for k in range(m - 1, -1, -1):
        others = counts[k + 1][:, :, None] * factor - down * others
        result[:, :, k] += np.einsum("ngj,ngj->nj", density, others)
    return result
