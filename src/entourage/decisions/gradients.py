"""Derivatives of choice probabilities by a column of the objects: autograd, closed form or finite differences."""

import copy
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from entourage.choice.base import ChoiceModel
from entourage.choice.logit import MultinomialLogit
from entourage.data.sets import Sets
from entourage.estimators.net_estimator import NetEstimator

if TYPE_CHECKING:
    from entourage.decisions.market import Market

__all__ = ["has_gradient", "probability_gradients"]

Floats: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.int64]

SMOOTH, COARSE = 1e-4, 0.05  # steps of finite differences, in standard deviations of the column
_CHUNK = 2_000_000  # numbers of objects at a time, so that memory stays bounded


def has_gradient(model: Any) -> bool:
    """Whether derivatives are exact: a net or a multinomial logit, of features that are not seen as ranks."""
    if isinstance(model, NetEstimator):
        return model.blend_ is None and model.reading_ is None and model.view_.relative is None
    return type(model) is MultinomialLogit and model.relative_ is None and model.alternatives is None


def probability_gradients(market: "Market", sets: Sets, column: int) -> list[Floats]:
    """Return d p_i / d x_j of a raw column for each set, (m, m)."""
    found: list[Floats] = [np.empty(0)] * len(sets)
    exact = has_gradient(market.model)
    step = _step(market.model, sets, column)
    for chosen, rows in sets.by_size():
        n, m = rows.shape
        at_once = max(1, _CHUNK // (m * sets.n_features * (1 if exact else 2 * m)))
        for begin in range(0, n, at_once):
            some = chosen[begin : begin + at_once]
            part = sets[some]
            if exact:
                slopes = _utility_slopes(market, part, column)  # (n, i, j)
                slopes = _through_link(market, part, slopes)
            else:
                slopes = _differences(market, part, column, step)
            for i, own in zip(some.tolist(), slopes, strict=True):
                found[i] = own
    return found


def _utility_slopes(market: "Market", sets: Sets, column: int) -> Floats:
    """Return d u_i / d x_j for sets of one size, (n, m, m)."""
    n, m = len(sets), int(sets.sizes[0])
    model = market.model
    if type(model) is MultinomialLogit:
        place = model.linear_place(column)
        slope = 0.0 if place is None else model.coef_[place]  # a base level has the coefficient 0
        return np.asarray(np.broadcast_to(slope * np.eye(m), (n, m, m)))
    device = next(model.scorer_.parameters()).device
    scorer = copy.deepcopy(model.scorer_).double().eval()
    seen, slopes = model.view_.with_slopes(sets, column)  # (N, w), (N, w)
    objects = torch.from_numpy(seen.reshape(n, m, -1)).to(device).requires_grad_()
    felt = torch.from_numpy(slopes.reshape(n, m, -1)).to(device)
    scores = scorer(objects)  # (n, m)
    found = np.empty((n, m, m))
    for i in range(m):
        (own,) = torch.autograd.grad(scores[:, i].sum(), objects, retain_graph=i < m - 1)
        found[:, i, :] = (own * felt).sum(2).cpu().numpy()
    return found / model.temperature_ if market.kind == "ranking" else found


def _through_link(market: "Market", sets: Sets, slopes: Floats) -> Floats:
    """Return d p_i / d x_j, given those of the utilities (n, m, m)."""
    p = market.probabilities(sets).reshape(slopes.shape[:2])[:, :, None]
    if market.kind == "subset":
        return np.asarray(p * (1 - p) * slopes)
    return np.asarray(p * (slopes - (p * slopes).sum(1, keepdims=True)))


def _differences(market: "Market", sets: Sets, column: int, step: float) -> Floats:
    """Return central differences for sets of one size, (n, m, m): each object moved in turn."""
    n, m = len(sets), int(sets.sizes[0])
    owner = np.repeat(np.arange(n), 2 * m)
    moved = sets[owner]
    objects = np.array(moved.objects, dtype=np.float64).reshape(n, 2, m, m, -1)  # set, sign, moved, object
    each = np.arange(m)
    objects[:, 0, each, each, column] += step
    objects[:, 1, each, each, column] -= step
    width = objects[:, 0, each, each, column] - objects[:, 1, each, each, column]  # (n, m), after rounding
    p = market.probabilities(moved.with_features(objects.reshape(len(moved.objects), -1), moved.situation))
    p = p.reshape(n, 2, m, m)
    return np.asarray(((p[:, 0] - p[:, 1]) / width[:, :, None]).transpose(0, 2, 1))


def _step(model: Any, sets: Sets, column: int) -> float:
    """Return the step of finite differences, fitted to the column."""
    values = np.asarray(sets.objects[:, column], dtype=np.float64)
    spread = float(values.std())
    if spread <= 1e-12 * float(np.abs(values).max()):
        spread = float(np.abs(values).max()) or 1.0
    smooth = isinstance(model, ChoiceModel) and model.relative_ is None
    return spread * (SMOOTH if smooth else COARSE)
