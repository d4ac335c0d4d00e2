"""At what price: the prices of the largest expected profit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import lambertw

from entourage.choice import ChoiceModel, MultinomialLogit
from entourage.decisions.assortment_problem import positions_among, weights_of_situations
from entourage.decisions.candidates import Candidates, candidates_of, numbers_of_objects
from entourage.decisions.intervals import Estimate, intervals_of
from entourage.decisions.market import Market, market_of
from entourage.errors import ParameterError, ShapeError, check_choice, check_number

__all__ = ["Prices", "best_prices"]

Floats: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.int64]

_METHODS = ("auto", "gradient")
_AT_BOUND = 1e-6  # of the width between the bounds


@dataclass(frozen=True, eq=False)
class Prices:
    """The best prices found, and what is known of them.

    Attributes
    ----------
    prices : of all objects, (m,); those that were not to be changed are as they came
    value : the expected profit of a choice situation: the sum of (price - cost) times probability over own objects
    before : the same at the prices that came
    method : how prices were found
    gradient : the derivative of the profit by each price that was changed; 0 elsewhere, (m,)
    at_bound : which prices are at a bound, (m,)
    changed : positions of the objects whose prices were changed
    probabilities : how often each object is chosen, on average over situations, (m,)
    outside : how often nothing is chosen; None without an outside option
    starts : the profit that the search reached from each start
    notes : what a reader should know besides
    interval : of the profit at these prices, by :func:`entourage.decisions.intervals_of`
    """

    prices: Floats
    value: float
    before: float
    method: str
    gradient: Floats
    at_bound: NDArray[np.bool_]
    changed: Index
    probabilities: Floats
    outside: float | None
    starts: Floats
    notes: tuple[str, ...] = ()
    interval: Estimate | None = None

    def to_frame(self) -> pa.Table:
        """Return an Arrow table with a row for each object."""
        return pa.table(
            {
                "object": np.arange(len(self.prices)),
                "price": self.prices,
                "changed": np.isin(np.arange(len(self.prices)), self.changed),
                "at_bound": self.at_bound,
                "probability": self.probabilities,
            }
        )

    def __str__(self) -> str:
        bounds = int(self.at_bound.sum())
        return "\n".join(
            [
                f"Best prices: profit {self.value:.6g} (before: {self.before:.6g})",
                ", ".join(f"{i}: {self.prices[i]:.6g}" for i in self.changed[:20].tolist()),
                f"Found by {self.method}; {bounds} price{'s' * (bounds != 1)} at a bound.",
                *self.notes,
            ]
        )


def best_prices(
    model: Any,
    objects: Any,
    price: str | int = "price",
    *,
    cost: Any = 0.0,
    bounds: tuple[Any, Any] | None = None,
    own: Any = None,
    fixed: Any = None,
    situations: Any = None,
    weights: ArrayLike | None = None,
    object_id: str | None = None,
    method: str = "auto",
    restarts: int = 4,
    random_state: int = 0,
    intervals: str = "none",
    refits: Sequence[Any] | None = None,
    level: float = 0.05,
) -> Prices:
    r"""Find the prices of the largest expected profit, :math:`\sum_i (p_i - c_i) P_i(p)`, for a set that is offered.

    By gradient with bounds (L-BFGS-B, a projected quasi-Newton method) from several starts: the prices that came, the
    middle of the bounds, and random ones. Gradients are those of :meth:`entourage.decisions.Market.gradient`. Under a
    model with context effects the profit may have several maxima; ``starts`` shows what each start reached.

    For a `MultinomialLogit` with coefficient -b of the price and one situation, in which all prices of own objects are
    free and none is at a bound, the best prices have one markup,
    :math:`p_i - c_i = (1 + W(\sum_i e^{a_i - b c_i - 1} / w_0)) / b`, with Lambert's W, :math:`a_i` the utility at
    price 0, and :math:`w_0` the sum of :math:`e^u` over what is not own.

    Parameters
    ----------
    model : a fitted model with choice probabilities, one of whose features is the price
    objects : what is offered, as in :func:`entourage.decisions.best_assortment`
    price : the column, by its name or its place among the features of the objects
    cost : of each object: a number, a column, or an array (m,)
    bounds : (low, high), each a number or an array (m,)
        By default the lowest and the highest price among the objects. A model knows nothing of prices far from those it
        learnt from.
    own : positions of the objects whose profit counts; by default all
        Others, those of competitors or the alternative of buying nothing, keep their prices.
    fixed : positions of own objects that keep their prices
    situations, weights, object_id : as in :func:`entourage.decisions.best_assortment`
    method : "auto", or "gradient" for the search even where there is a closed form
    restarts, random_state : random starts, and their seed
    intervals, refits, level : of the profit at the prices found, as of :func:`entourage.decisions.intervals_of`

    Examples
    --------
    >>> import numpy as np
    >>> from entourage.choice import MultinomialLogit
    >>> from entourage.decisions import best_prices
    >>> rng = np.random.default_rng(0)
    >>> X = np.stack([rng.uniform(0, 4, size=(2000, 3)), np.tile([0.0, 1.0, 1.0], (2000, 1))], axis=2)
    >>> X[:, 0, 0] = 0  # nothing is bought, at no price
    >>> y = (X @ [-1.0, 2.0] + rng.gumbel(size=(2000, 3))).argmax(1)
    >>> model = MultinomialLogit().fit(X, y)
    >>> found = best_prices(model, [[0, 0], [1, 1], [1, 1]], price=0, cost=[0, 0.5, 1], bounds=(0, 9), own=[1, 2])
    >>> found.method, (found.prices - [0, 0.5, 1]).round(1)
    ('closed form (equal markups)', array([0. , 2.1, 2.1]))
    """
    check_choice("method", method, _METHODS)
    check_number("restarts", restarts, least=0, whole=True)
    check_number("random_state", random_state, least=0, whole=True)
    market = market_of(model)
    if market.kind == "subset":
        raise ParameterError("Prices are of choices of one; a SubsetChooser chooses any number of objects.")
    candidates = candidates_of(market.model, objects, situations, object_id)
    place = market.place_of(price)
    problem = _problem(market, candidates, place, cost, bounds, own, fixed, weights)
    tried = np.zeros(0)
    found = _equal_markups(problem) if method == "auto" else None
    how = "closed form (equal markups)"
    if found is None:
        found, tried = _climb(problem, restarts, random_state)
        exact = "exact gradients" if market.has_gradient else "finite differences"
        how = f"projected gradient ({exact}), {len(tried)} starts"
    prices = problem.now.copy()
    prices[problem.changed] = found
    value, slope = problem.profit(prices)
    at_bound, gradient = np.zeros(len(prices), dtype=bool), np.zeros(len(prices))
    near = _AT_BOUND * np.maximum(problem.high - problem.low, 1e-300)
    at_bound[problem.changed] = (found <= problem.low + near) | (found >= problem.high - near)
    gradient[problem.changed] = slope

    def measure(other: Market) -> dict[str, float]:
        return {"value": problem.of(other).profit(prices, with_slope=False)[0]}

    sure = intervals_of(
        market, measure, method=intervals, refits=refits, level=level, random_state=random_state
    )["value"]
    sets = problem.sets(prices)
    p = market.probabilities(sets).reshape(len(problem.weights), -1)
    nothing = market.outside(sets)
    return Prices(
        prices,
        value,
        problem.profit(problem.now, with_slope=False)[0],
        how,
        gradient,
        at_bound,
        problem.changed,
        problem.weights @ p,
        None if nothing is None else float(problem.weights @ nothing),
        tried,
        problem.notes(at_bound),
        None if sure.low is None else sure,
    )


@dataclass(frozen=True, eq=False)
class _Problem:
    """Prices to find: bounds (c,) are of those that may change; profit is of own objects."""

    market: Market
    candidates: Candidates
    place: int
    cost: Floats  # (1 or s, m)
    low: Floats
    high: Floats
    own: NDArray[np.bool_]
    changed: Index
    weights: Floats
    now: Floats

    def of(self, market: Market) -> "_Problem":
        """Return the same problem in another market."""
        return _Problem(**(vars(self) | {"market": market}))

    def sets(self, prices: Floats) -> Any:
        """Make the set at these prices, in each situation."""
        n, m = len(self.weights), self.candidates.m
        objects = np.array(
            np.broadcast_to(self.candidates.features, (n, m, self.candidates.features.shape[2]))
        )
        objects[:, :, self.place] = prices
        return self.candidates.sets_with(objects.reshape(n * m, -1), n, m)

    def profit(self, prices: Floats, *, with_slope: bool = True) -> tuple[float, Floats]:
        """Return the profit, and its derivatives by the prices that may change."""
        sets, n = self.sets(prices), len(self.weights)
        p = np.asarray(self.market.probabilities(sets), dtype=np.float64).reshape(n, -1)
        margin = np.where(self.own, prices - self.cost, 0.0)  # (1 or s, m)
        value = float(self.weights @ (p * margin).sum(1))
        if not with_slope:
            return value, np.zeros(0)
        moved = np.stack(self.market.gradient(sets, self.place))  # (s, i, j)
        margin = np.broadcast_to(margin, p.shape)
        slope = p * self.own + np.einsum("si,sij->sj", margin, moved)
        return value, (self.weights @ slope)[self.changed]

    def notes(self, at_bound: NDArray[np.bool_]) -> tuple[str, ...]:
        """Say what a reader should know besides."""
        notes = []
        if not self.market.has_outside and self.own.all():
            notes.append(
                "The model has no outside option and all objects are own ones: something is bought at any price, so "
                "prices end at the upper bounds."
            )
        elif at_bound.any():
            notes.append("A price at a bound may be better beyond it, where the model was not asked.")
        if not self.market.has_gradient and _sees_ranks(self.market.model):
            notes.append(
                "The model sees standings within the set (relative, trees or a blend), so profit may jump with prices: "
                "a better price may exist near by."
            )
        return tuple(notes)


def _sees_ranks(model: Any) -> bool:
    """Whether probabilities may jump as a price changes."""
    return not isinstance(model, ChoiceModel) or model.relative_ is not None


def _problem(
    market: Market,
    candidates: Candidates,
    place: int,
    cost: Any,
    bounds: tuple[Any, Any] | None,
    own: Any,
    fixed: Any,
    weights: ArrayLike | None,
) -> _Problem:
    m = candidates.m
    column = candidates.features[:, :, place]
    if (column != column[0]).any():
        raise ParameterError(
            "An object has other prices in other situations; a price that is to be found is the same in all of them. "
            "Give objects with one price each."
        )
    now = column[0].copy()
    ours = np.ones(m, dtype=bool)
    if own is not None:
        ours = np.isin(np.arange(m), positions_among(own, candidates, "own"))
    stay = np.isin(np.arange(m), positions_among(fixed, candidates, "fixed"))
    changed = np.flatnonzero(ours & ~stay)
    if len(changed) == 0:
        raise ParameterError("No price may change: own objects that are not fixed are needed.")
    ends = (now.min(), now.max()) if bounds is None else bounds
    if not isinstance(ends, (Sequence, np.ndarray)) or len(ends) != 2:
        raise ParameterError(f"bounds needs two entries, the lowest and the highest price; got {bounds!r}.")
    low, high = (_one_each(end, m)[changed] for end in ends)
    if (low > high).any() or not (np.isfinite(low) & np.isfinite(high)).all():
        raise ParameterError("bounds needs finite prices, none of the lowest above the highest.")
    if (low == high).all():
        hint = " All prices are alike, so bounds must be given." if bounds is None else ""
        raise ParameterError(f"bounds leaves no choice: the lowest is the highest price.{hint}")
    costs = numbers_of_objects(cost, candidates, "cost")
    shares = weights_of_situations(weights, candidates.n_situations)
    return _Problem(market, candidates, place, costs, low, high, ours, changed, shares, now)


def _one_each(given: Any, m: int) -> Floats:
    found = np.asarray(given, dtype=np.float64)
    if found.ndim == 0:
        return np.full(m, found)
    if found.shape != (m,):
        raise ShapeError(f"bounds needs numbers, or one for each of {m} objects; got shape {found.shape}.")
    return found


def _climb(problem: _Problem, restarts: int, seed: int) -> tuple[Floats, Floats]:
    """Climb from several starts; return the best prices, and what each start reached."""
    rng = np.random.default_rng(seed)
    low, high = problem.low, problem.high
    width = np.where(high > low, high - low, 1.0)
    starts = [np.clip(problem.now[problem.changed], low, high), (low + high) / 2]
    starts += [low + rng.random(len(low)) * (high - low) for _ in range(restarts)]
    scale = max(abs(problem.profit(problem.now, with_slope=False)[0]), 1e-300)

    def loss(at: Floats) -> tuple[float, Floats]:
        prices = problem.now.copy()
        prices[problem.changed] = np.clip(low + at * width, low, high)
        value, slope = problem.profit(prices)
        return -value / scale, -slope * width / scale

    best, tried = starts[0], []
    for start in starts:
        ends = [(0.0, float(top)) for top in (high - low) / width]
        options = {"ftol": 0.0, "gtol": 1e-10, "maxiter": 500, "maxls": 40}
        found = minimize(
            loss, (start - low) / width, jac=True, method="L-BFGS-B", bounds=ends, options=options
        )
        tried.append(-float(found.fun) * scale)
        if tried[-1] >= max(tried):
            best = np.clip(low + found.x * width, low, high)
    return best, np.array(tried)


def _equal_markups(problem: _Problem) -> Floats | None:
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
