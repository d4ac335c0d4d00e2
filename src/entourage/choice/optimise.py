"""Maximisation of a log-likelihood: L-BFGS first, then Newton's method."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from entourage.choice.likelihood import Floats
from entourage.training.deadline import time_is_up

__all__ = ["Peak", "inverse", "maximise", "slopes_by_differences"]

CLOSE = 1e-14  # what a Newton step still promises to gain in log-likelihood
FLAT = 1e-8  # a direction is flat if the curvature of the likelihood is below this share of the largest
LONGEST = 20.0  # of a Newton step in one parameter, in its typical sizes

Slope = Callable[[Floats], tuple[float, Floats]]
Bend = Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class Peak:
    """The result: the parameters, minus the Hessian there, and whether it is a maximum."""

    theta: Floats
    information: Floats
    converged: bool


def maximise(slope: Slope, bend: Bend, start: Floats, steps: Floats, *, concave: bool, max_iter: int) -> Peak:
    """Find the parameters with the highest value.

    Parameters
    ----------
    slope : returns a value and its gradient
    bend : returns minus the Hessian
    start : where to begin
    steps : the typical size of each parameter, by which all are scaled
    concave : whether Newton's method is safe from the start
    max_iter : how many iterations each of the two methods may take; Newton's method ends after one where time is up
    """
    theta = start if concave or len(start) == 0 else _lbfgs(slope, start, steps, max_iter)
    value, gradient = slope(theta)
    for step in range(max_iter):
        information = bend(theta)
        if step and time_is_up():
            return Peak(theta, information, False)
        scaled = information * steps[:, None] * steps
        values, vectors = np.linalg.eigh(scaled) if len(theta) else (np.zeros(0), scaled)
        down = vectors.T @ (gradient * steps)
        size = np.abs(values)
        certain = size > FLAT * size.max(initial=0.0)
        move = vectors @ np.where(certain, down / np.where(certain, size, 1.0), 0.0)
        gain = 0.5 * move @ (gradient * steps)
        rising = bool((values < -1e-6 * size.max(initial=0.0)).any())  # a saddle: there is a way up
        if gain < CLOSE:
            return Peak(theta, information, not rising)
        move *= min(1.0, LONGEST / np.abs(move).max())
        for halving in range(40):
            candidate = theta + steps * move * 0.5**halving
            new, new_gradient = slope(candidate)
            if new > value - 1e-12 * (1 + abs(value)):
                break
        else:
            return Peak(theta, information, bool(gain < 1e-6))  # no better at this precision
        theta, value, gradient = candidate, new, new_gradient
    return Peak(theta, bend(theta), False)


def _lbfgs(slope: Slope, start: Floats, steps: Floats, max_iter: int) -> Floats:
    scale = max(abs(slope(start)[0]), 1.0)

    def loss(z: Floats) -> tuple[float, Floats]:
        with np.errstate(over="ignore", invalid="ignore"):
            value, gradient = slope(z * steps)
        if not np.isfinite(value):
            return 1e10, np.zeros_like(z)
        return -value / scale, -gradient * steps / scale

    options = {"maxiter": max_iter, "ftol": 1e-14, "gtol": 1e-8, "maxcor": 20}
    found = minimize(loss, start / steps, jac=True, method="L-BFGS-B", options=options)
    return np.asarray(found.x * steps)


def inverse(information: Floats, steps: Floats, n_sets: int) -> tuple[Floats, Floats]:
    """Invert the information where it is not flat; return also the flat directions, (p, q), in scaled parameters.

    In these, an informative set has a curvature of about 1: where choices are predicted perfectly, all is flat.
    """
    if len(steps) == 0:
        return information, np.zeros((0, 0))
    values, vectors = np.linalg.eigh(information * steps[:, None] * steps)
    certain = values > FLAT * max(values.max(), n_sets)
    kept = vectors[:, certain] * steps[:, None]
    return np.asarray((kept / values[certain]) @ kept.T), np.asarray(vectors[:, ~certain])


def slopes_by_differences(gradient: Callable[[Floats], Floats], theta: Floats, steps: Floats) -> Floats:
    """Return the Hessian by central differences of the gradient, (p, p)."""
    rows = []
    for i, h in enumerate(1e-5 * steps):
        ahead, behind = theta.copy(), theta.copy()
        ahead[i] += h
        behind[i] -= h
        rows.append((gradient(ahead) - gradient(behind)) / (2 * h))
    hessian = np.array(rows).reshape(len(theta), len(theta))
    return np.asarray((hessian + hessian.T) / 2)
