"""The search for the best prices: the closed form of the logit, gradients, or grids where the profit may jump."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import lambertw

from entourage.choice import ChoiceModel, MultinomialLogit
from entourage.decisions.price_problem import PriceProblem

__all__ = ["climb", "equal_markups", "search_grids"]

Floats: TypeAlias = NDArray[np.float64]

GRID, FINE = (
    33,
    257,
)  # prices of one object that are tried at once: before slopes are followed, and without these
_ZOOMS = (1.0, 1 / 8, 1 / 64)  # the widths of the grids, in those of the bounds
_MOST_ROUNDS = 20
_GAIN = 1e-12  # what a better price is better by, relative to the profit, so that rounding makes no cycles


def _starts(problem: PriceProblem, restarts: int, seed: int) -> Floats:
    """Return where to begin, (starts, prices that change): at the prices that came, in the middle, and anywhere."""
    rng = np.random.default_rng(seed)
    low, high = problem.low, problem.high
    found = [np.clip(problem.now[problem.changed], low, high), (low + high) / 2]
    return np.stack([*found, *(low + rng.random(len(low)) * (high - low) for _ in range(restarts))])


def _whole(problem: PriceProblem, changed: Floats) -> Floats:
    """Return the prices of all objects, given those that change: (c, k) to (c, m)."""
    prices = np.tile(problem.now, (len(changed), 1))
    prices[:, problem.changed] = changed
    return prices


def climb(problem: PriceProblem, restarts: int, seed: int) -> tuple[Floats, Floats]:
    """Climb by gradients; return the best prices, and what each start reached.

    From several starts, grids of one price at a time lead to a maximum among the many that context effects may make;
    slopes lead from there to its top.
    """
    low, high = problem.low, problem.high
    width = np.where(high > low, high - low, 1.0)
    coarse, _ = _over_grids(problem, _starts(problem, restarts, seed), _ZOOMS[:1], GRID)
    _, first = np.unique(np.round((coarse - low) / width, 3), axis=0, return_index=True)
    starts = coarse[np.sort(first)]
    scale = float(np.abs(problem.profits(_whole(problem, starts))).max()) or 1.0
    exact: dict[str, float] = {"ftol": 0.0, "gtol": 1e-10, "maxls": 40}
    rough = {"ftol": 1e-7, "gtol": 1e-5, "maxls": 10}  # of nets, which compute in single precision
    options = exact if isinstance(problem.market.model, ChoiceModel) else rough

    def loss(at: Floats) -> tuple[float, Floats]:
        prices = problem.now.copy()
        prices[problem.changed] = np.clip(low + at * width, low, high)
        value, slope = problem.profit(prices)
        return -value / scale, -slope * width / scale

    best, tried = starts[0], []
    for start in starts:
        ends = [(0.0, float(top)) for top in (high - low) / width]
        found = minimize(
            loss,
            (start - low) / width,
            jac=True,
            method="L-BFGS-B",
            bounds=ends,
            options={"maxiter": 500, **options},
        )
        tried.append(-float(found.fun) * scale)
        if tried[-1] >= max(tried):
            best = np.clip(low + found.x * width, low, high)
    return best, np.array(tried)


def search_grids(problem: PriceProblem, restarts: int, seed: int) -> tuple[Floats, Floats]:
    """Try a grid of each price in turn, the others fixed, while profit rises; then finer grids around what was found.

    For models whose profit may jump with a price, where slopes lead nowhere. Every start is moved at once.

    Returns
    -------
    prices : the best, of the objects whose price changes
    values : the profit that each start reached
    """
    at, values = _over_grids(problem, _starts(problem, restarts, seed), _ZOOMS, FINE)
    return at[int(np.argmax(values))], values


def _over_grids(
    problem: PriceProblem, starts: Floats, zooms: Sequence[float], count: int
) -> tuple[Floats, Floats]:
    """Move every start over grids of each of these widths; return where they end, (starts, k), and their profits."""
    low, high, at = problem.low, problem.high, starts.copy()
    values = problem.profits(_whole(problem, at))
    for zoom in zooms:
        for _ in range(_MOST_ROUNDS):
            before = values.copy()
            for j in range(at.shape[1]):
                half = zoom * (high[j] - low[j])
                grid = np.clip(at[:, j, None] + half * np.linspace(-1, 1, 2 * GRID - 1), low[j], high[j])
                if zoom == 1:
                    grid = np.tile(np.linspace(low[j], high[j], count), (len(at), 1))
                tried = np.repeat(at, grid.shape[1], axis=0)
                tried[:, j] = grid.ravel()
                found = problem.profits(_whole(problem, tried)).reshape(grid.shape)
                best = found.argmax(1)
                top = np.take_along_axis(found, best[:, None], 1)[:, 0]
                better = top > values + _GAIN * np.abs(values)
                at[better, j] = grid[better, best[better]]
                values = np.where(better, top, values)
            if not (values > before).any():
                break
    return at, values


def equal_markups(problem: PriceProblem) -> Floats | None:
    """Return the best prices of a logit in closed form; None where that doesn't apply, or a bound would bind."""
    model = problem.market.model
    plain = type(model) is MultinomialLogit and model.relative_ is None and model.alternatives is None
    if (
        not plain
        or len(problem.weights) > 1
        or not np.array_equal(problem.changed, np.flatnonzero(problem.own))
    ):
        return None
    place = model.linear_place(problem.place)
    slope = 0.0 if place is None else -float(model.coef_[place])
    if slope <= 0 or len(problem.cost) > 1:
        return None
    prices = np.where(problem.own, problem.cost[0], problem.now)
    p = problem.market.probabilities(problem.sets(prices))  # at cost
    other = float(p[~problem.own].sum())
    nothing = problem.market.outside(problem.sets(prices))
    other += 0.0 if nothing is None else float(nothing[0])
    if other <= 1e-250:
        return None
    markup = (1 + float(lambertw(p[problem.own].sum() / other / np.e).real)) / slope
    found = problem.cost[0][problem.changed] + markup
    inside = (found > problem.low) & (found < problem.high)
    return found if inside.all() else None
