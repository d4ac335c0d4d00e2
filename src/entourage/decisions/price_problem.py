"""Prices to find: whose, between which bounds, and the profit at any prices. The problem that `best_prices` solves."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entourage.choice import ChoiceModel
from entourage.data.columns import as_numbers
from entourage.data.frames import column_of
from entourage.data.table_places import marks_of_missing
from entourage.decisions.assortment_problem import positions_among, weights_of_situations
from entourage.decisions.candidates import Candidates, numbers_of_objects
from entourage.decisions.market import Market
from entourage.errors import DataError, ParameterError, ShapeError

__all__ = ["PriceProblem", "make_price_problem"]

Floats: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.int64]

_AT_ONCE = 1 << 21  # numbers in the objects of one batch, so that memory stays bounded


@dataclass(frozen=True, eq=False)
class PriceProblem:
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

    def of(self, market: Market) -> "PriceProblem":
        """Return the same problem in another market."""
        return PriceProblem(**(vars(self) | {"market": market}))

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

    def profits(self, prices: Floats) -> Floats:
        """Return the profit at each of several price lists, (c, m) to (c,)."""
        n, m, d = len(self.weights), self.candidates.m, self.candidates.features.shape[2]
        found = np.empty(len(prices))
        step = max(1, _AT_ONCE // (n * m * self.candidates.width))
        for begin in range(0, len(prices), step):
            some = prices[begin : begin + step]
            objects = np.array(np.broadcast_to(self.candidates.features[:, None], (n, len(some), m, d)))
            objects[..., self.place] = some
            sets = self.candidates.sets_with(objects.reshape(-1, d), n * len(some), m, len(some))
            p = np.asarray(self.market.probabilities(sets), dtype=np.float64).reshape(n, len(some), m)
            margin = np.where(self.own, some - self.cost[:, None], 0.0)  # (1 or s, c, m)
            found[begin : begin + step] = self.weights @ (p * margin).sum(2)
        return found

    @property
    def jumps(self) -> bool:
        """Whether probabilities may jump as a price changes: trees, blends, and models that see ranks in the set."""
        model = self.market.model
        if isinstance(model, ChoiceModel):
            return model.relative_ is not None
        return not self.market.has_gradient

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
        now = self.now[self.changed]
        if ((now < self.low) | (now > self.high)).any():
            notes.append(
                "Some of the prices that came are beyond the bounds, so the profit before may be larger."
            )
        if self.jumps:
            notes.append(
                "The model sees standings within the set (relative, trees or a blend), so profit may jump with prices: "
                "a better price may exist near by."
            )
        return tuple(notes)


def make_price_problem(
    market: Market,
    candidates: Candidates,
    place: int,
    cost: Any,
    bounds: tuple[Any, Any] | None,
    own: Any,
    fixed: Any,
    weights: ArrayLike | None,
) -> PriceProblem:
    """Check everything and lay out the problem."""
    m = candidates.m
    column = candidates.features[:, :, place]
    mark = None if candidates.encoder is None else marks_of_missing(candidates.encoder).get(place)
    if mark is not None and (candidates.features[:, :, mark] == 1).any():
        at = int(np.argwhere(candidates.features[:, :, mark] == 1)[0, 1])
        raise DataError(f"The price of object {at} is missing; give every object a price.")
    if mark is None and candidates.table is not None and candidates.encoder is not None:
        name = candidates.encoder.feature_names[place]
        raw = as_numbers(column_of(candidates.table, name), candidates.encoder.missing)
        if np.isnan(raw).any():
            at = int(np.argmax(np.isnan(raw))) % m
            raise DataError(f"The price of object {at} is missing; give every object a price.")
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
    return PriceProblem(market, candidates, place, costs, low, high, ours, changed, shares, now)


def _one_each(given: Any, m: int) -> Floats:
    try:
        found = np.asarray(given, dtype=np.float64)
    except (ValueError, TypeError):
        raise ParameterError(
            f"bounds needs numbers, the lowest and the highest price; got {given!r}."
        ) from None
    if found.ndim == 0:
        return np.full(m, found)
    if found.shape != (m,):
        raise ShapeError(f"bounds needs numbers, or one for each of {m} objects; got shape {found.shape}.")
    return found
