r"""The ridge logit: a linear utility under a Plackett–Luce likelihood with an L2 penalty, found by Newton's method.

A choice is the first stage of a ranking. With utilities :math:`u = X w`, columns scaled to unit spread within sets,

.. math:: \ell(w) = \sum_{\text{sets}} \sum_{k} \Bigl(u_k - \log \sum_{j \ge k} e^{u_j}\Bigr) - \frac{l2}{2} |w|^2

where objects stand in the order of their ranks and k runs over the stages: the first for a choice, all but the last
object for a ranking.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from entourage.data.sets import Sets

__all__ = ["Stages", "fit_ridge", "spread_within_sets"]

Floats = NDArray[np.float64]

ABSENT = -1e30  # the utility of padding
MOST_STEPS = 50
ENOUGH = 1e-9  # the Newton decrement a set, at which to stop


@dataclass(frozen=True, eq=False)
class Stages:
    """Sets with their objects in the order of ranks, padded.

    Attributes
    ----------
    values : (n, m, d), less the mean of the set; 0 for padding
    mask : (n, m)
    counted : (n, m), the stages of the likelihood
    """

    values: Floats
    mask: NDArray[np.bool_]
    counted: NDArray[np.bool_]

    @classmethod
    def of(cls, sets: Sets, kind: str) -> "Stages":
        """Sort the objects of each set by rank; of a choice, the chosen one is first."""
        objects, _, mask = sets.to_padded()
        values = np.asarray(objects, dtype=np.float64)
        size = mask.sum(1)
        mean = (values * mask[..., None]).sum(1) / size[:, None]
        values = np.where(mask[..., None], values - mean[:, None], 0.0)
        ranks = np.where(mask, sets.pad(np.asarray(sets.targets, dtype=np.float64)), np.inf)
        order = np.argsort(ranks, axis=1, kind="stable")
        values = np.take_along_axis(values, order[..., None], axis=1)
        places = np.arange(mask.shape[1])
        last = size - 1 if kind == "rank" else np.minimum(size - 1, 1)
        return cls(values, places < size[:, None], places < last[:, None])

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, places: NDArray[np.int64]) -> "Stages":
        return Stages(self.values[places], self.mask[places], self.counted[places])

    def log_likelihood(self, utilities: Floats) -> Floats:
        """Return the log-likelihood of each set, (n,)."""
        u = np.where(self.mask, utilities, ABSENT)
        return np.where(self.counted, u - _tails(u), 0.0).sum(1)


def spread_within_sets(stages: Stages) -> Floats:
    """Return the standard deviation of each column within sets."""
    return np.sqrt((stages.values**2).sum((0, 1)) / max(1, stages.mask.sum()))


def fit_ridge(stages: Stages, penalties: tuple[float, ...]) -> list[Floats]:
    """Return the weights of raw columns for each penalty; each starts from the one before.

    A column that doesn't vary within the labelled sets has weight 0.
    """
    spread = spread_within_sets(stages)
    used = spread > 1e-9 * max(1e-300, float(spread.max(initial=0.0)))
    scale = np.where(used, spread, 1.0)
    x = stages.values[..., used] / scale[used]
    w = np.zeros(x.shape[-1])
    found: dict[float, Floats] = {}
    for l2 in sorted(penalties, reverse=True):  # from stiff to free
        w = _newton(stages, x, w, l2)
        whole = np.zeros(len(spread))
        whole[used] = w / scale[used]
        found[l2] = whole
    return [found[l2] for l2 in penalties]


def _newton(stages: Stages, x: Floats, w: Floats, l2: float) -> Floats:
    def value(at: Floats) -> float:
        return float(stages.log_likelihood(x @ at).sum() - 0.5 * l2 * at @ at)

    now = value(w)
    for _ in range(MOST_STEPS):
        gradient, information = _derivatives(stages, x, w)
        gradient = gradient - l2 * w
        step = np.linalg.solve(information + l2 * np.eye(len(w)), gradient)
        rise = float(gradient @ step)
        if rise < ENOUGH * len(stages):
            return w
        length = 1.0
        while (then := value(w + length * step)) < now + 1e-4 * length * rise and length > 1e-6:
            length /= 2
        w, now = w + length * step, then
    return w


def _derivatives(stages: Stages, x: Floats, w: Floats) -> tuple[Floats, Floats]:
    """Return the gradient and the information of the log-likelihood."""
    u = np.where(stages.mask, x @ w, ABSENT)
    tails = _tails(u)
    # p of object j at stage k is exp(u_j - tail_k); summed over the stages that j takes part in
    inverse = np.where(stages.counted, -tails, -np.inf)
    part = np.where(stages.mask, np.exp(u + np.logaddexp.accumulate(inverse, axis=1)), 0.0)  # (n, m)
    flat = x.reshape(-1, x.shape[-1])
    gradient = (stages.counted.astype(np.float64) - part).ravel() @ flat
    if (stages.counted.sum(1) <= 1).all():
        means = (part[..., None] * x).sum(1)  # (n, d)
    else:
        top = u.max(1, keepdims=True)
        weighted = np.exp(u - top)[..., None] * x
        sums = np.flip(np.cumsum(np.flip(weighted, 1), 1), 1)
        means = sums[stages.counted] / np.exp(tails - top)[stages.counted][:, None]
    information = (flat * part.reshape(-1, 1)).T @ flat - means.T @ means
    return gradient, information


def _tails(u: Floats) -> Floats:
    """Return the log of the sum of exp(u) over each object and those after it, (n, m)."""
    return np.flip(np.logaddexp.accumulate(np.flip(u, 1), axis=1), 1)
