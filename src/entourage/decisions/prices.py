"""At what price: the prices of the largest expected profit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from entourage.decisions.candidates import candidates_of
from entourage.decisions.intervals import Estimate, intervals_of
from entourage.decisions.market import Market, market_of
from entourage.decisions.price_problem import make_price_problem
from entourage.decisions.price_search import climb, equal_markups, search_grids
from entourage.errors import ParameterError, check_choice, check_number

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
    starts : the profit that the search reached from each of its points
    old : the prices that came, (m,)
    labels : what objects are called, where a column says so
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
    old: Floats
    labels: list[Any] | None = None
    notes: tuple[str, ...] = ()
    interval: Estimate | None = None

    def to_frame(self) -> pa.Table:
        """Return an Arrow table with a row for each object."""
        columns: dict[str, Any] = {"object": np.arange(len(self.prices))}
        if self.labels is not None:
            columns["label"] = [str(label) for label in self.labels]
        return pa.table(
            columns
            | {
                "old": self.old,
                "price": self.prices,
                "changed": np.isin(np.arange(len(self.prices)), self.changed),
                "at_bound": self.at_bound,
                "probability": self.probabilities,
            }
        )

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON types."""
        return {
            "objects": self.to_frame().to_pylist(),
            "value": self.value,
            "before": self.before,
            "method": self.method,
            "outside": self.outside,
            "interval": None if self.interval is None else [self.interval.low, self.interval.high],
            "starts": self.starts.tolist(),
            "notes": list(self.notes),
        }

    def plot(self, path: Any = None) -> Any:
        """Draw prices before and after, and choice probabilities; write the picture where a path is given."""
        from entourage.decisions.pictures import draw_prices, saved

        return saved(draw_prices(self), path)

    @property
    def names(self) -> list[str]:
        """What objects are called: by the column of names, else by position."""
        return [str(name) for name in (range(len(self.prices)) if self.labels is None else self.labels)]

    def __str__(self) -> str:
        bounds, names = int(self.at_bound.sum()), self.names
        sure = "" if self.interval is None else f" [{self.interval.low:.6g}, {self.interval.high:.6g}]"
        more = ", ..." if len(self.changed) > 20 else ""
        return "\n".join(
            [
                f"Best prices: profit {self.value:.6g}{sure} (before: {self.before:.6g})",
                ", ".join(f"{names[i]}: {self.prices[i]:.6g}" for i in self.changed[:20].tolist()) + more,
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

    Grids of one price at a time, from several starts (the prices that came, the middle of the bounds, random ones),
    lead near the maxima; from there the search is by gradient with bounds (L-BFGS-B, a projected quasi-Newton method).
    Gradients are those of :meth:`entourage.decisions.Market.gradient`. Under a model with context effects the profit
    may have several maxima; ``starts`` shows what was reached. Where the profit may jump with prices (trees, blends,
    ``relative``), finer grids take the place of gradients.

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
    method : "auto", or "gradient" for the search by gradient even where there is a closed form, or profit may jump
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
    problem = make_price_problem(market, candidates, place, cost, bounds, own, fixed, weights)
    tried = np.zeros(0)
    found = equal_markups(problem) if method == "auto" else None
    how = "closed form (equal markups)"
    if found is None and method == "auto" and problem.jumps:
        found, tried = search_grids(problem, restarts, random_state)
        how = f"grids of one price at a time, {len(tried)} starts"  # at least two
    elif found is None:
        found, tried = climb(problem, restarts, random_state)
        exact = "exact gradients" if market.has_gradient else "finite differences"
        how = f"grids, then projected gradient ({exact}) from {len(tried)} point{'s' * (len(tried) != 1)}"
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
        problem.now,
        candidates.labels,
        problem.notes(at_bound),
        None if sure.low is None else sure,
    )
