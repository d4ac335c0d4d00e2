"""Demand curves: the share of some objects as a column of theirs moves over a grid of values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from entourage.data.columns import as_numbers
from entourage.data.sets import AnySets
from entourage.decisions.expressions import condition
from entourage.decisions.intervals import Estimate, intervals_of
from entourage.decisions.market import Market, market_of
from entourage.decisions.offers import Floats, Offers
from entourage.decisions.settings import IntervalSettings, for_intervals
from entourage.errors import DataError, ParameterError, ShapeError, check_choice

__all__ = ["DemandCurve", "demand_curve"]

CHANGES = ("value", "factor", "shift")


@dataclass(frozen=True, eq=False)
class DemandCurve:
    """Demand as a column moves.

    Attributes
    ----------
    feature : the name of the column
    change : "value" (the column is set to each value), "factor" (multiplied by it) or "shift" (it is added)
    values : the grid, (g,)
    share : (g,), with its band: the mean over sets of the summed probability of the moved objects; of subset choice,
        how many of them are chosen
    outside : (g,), with its band: the mean probability of the outside option; None without one
    objects, sets : how many objects were moved, and in how many sets; others are left out
    beyond : how many values of the grid are outside the range of the column in these sets
    """

    feature: str
    change: str
    values: Floats
    share: Estimate
    outside: Estimate | None
    objects: int
    sets: int
    beyond: int

    def to_frame(self) -> pa.Table:
        """Return one row a value: the share, its band, and the share of the outside option."""
        columns: dict[str, Any] = {self.feature: self.values, "share": self.share.value}
        if self.share.low is not None:
            columns |= {"low": self.share.low, "high": self.share.high}
        if self.outside is not None:
            columns["outside"] = self.outside.value
        return pa.table(columns)

    def to_json(self) -> dict[str, Any]:
        """Return the curve, ready for JSON."""
        table = self.to_frame().to_pydict()
        return {name: values for name, values in table.items() if name != self.feature} | {
            "feature": self.feature,
            "change": self.change,
            "values": self.values.tolist(),
            "objects": self.objects,
            "sets": self.sets,
            "beyond": self.beyond,
        }

    def __str__(self) -> str:
        lines = [
            f"Share of {self.objects:,} object{'s' * (self.objects != 1)} in {self.sets:,} "
            f"set{'s' * (self.sets != 1)}, by {self.change} of {self.feature}"
        ]
        for i, value in enumerate(self.values):
            band = "" if self.share.low is None else f"  [{self.share.low[i]:.4f}, {self.share.high[i]:.4f}]"
            lines.append(f"  {value:>10.4g}  {self.share.value[i]:.4f}{band}")
        if self.share.low is not None:
            lines.append(f"Band: {self.share.method}.")
        if self.beyond:
            lines.append(
                f"{self.beyond} of {len(self.values)} values take objects beyond the range of the column: extrapolated."
            )
        return "\n".join(lines)

    def plot(self, path: Any = None) -> Any:
        """Draw the curve with its band; write the picture where a path is given."""
        from entourage.decisions.pictures import draw_demand, saved

        return saved(draw_demand(self), path)


def demand_curve(
    model: Any,
    sets: AnySets,
    feature: str | int,
    values: ArrayLike,
    *,
    where: str | int | Sequence[int] | NDArray[Any] | None = None,
    change: str = "value",
    situation: ArrayLike | None = None,
    sample_weight: ArrayLike | str | None = None,
    **settings: Unpack[IntervalSettings],
) -> DemandCurve:
    r"""Return the share of some objects as a column of theirs moves, all other columns and objects as they are.

    All moved objects of a set move together. The share is the mean over the sets that hold a moved object of their
    summed probability. A demand curve of one object in each set: mark one object of each set by ``where``.

    Parameters
    ----------
    model, sets, situation, sample_weight, settings : as in :func:`entourage.decisions.elasticities`
    feature : the column, by name; of arrays, its place
    values : the grid
    where : the objects that move: one row of the input, several, or booleans, one an object; of a table also a
        condition such as ``'brand=="x" and price>3'`` (:mod:`entourage.decisions.expressions`). By default all
    change : "value": set to the value; "factor": multiplied by it; "shift": it is added

    Examples
    --------
    >>> from entourage.choice import MultinomialLogit
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 3, 1))
    >>> y = (-X[..., 0] + rng.gumbel(size=(500, 3))).argmax(1)
    >>> model = MultinomialLogit().fit(X, y)
    >>> found = demand_curve(model, X, 0, [-1, 0, 1], where=np.tile([True, False, False], 500))
    >>> bool((np.diff(found.share.value) < 0).all())
    True
    """
    check_choice("change", change, CHANGES)
    market = market_of(model)
    offers = Offers.of(market.model, sets, situation, sample_weight)
    place = offers.place_of(feature)
    try:
        grid = np.atleast_1d(np.asarray(values, dtype=np.float64))
    except (ValueError, TypeError):
        grid = np.zeros(0)
    if grid.ndim != 1 or len(grid) == 0 or not np.isfinite(grid).all():
        raise ParameterError(f"values needs a list of finite numbers; got {values!r}.")
    moved = _moved(offers, where)
    known = offers.values(place)
    if np.isnan(known[moved]).any() and change != "value":
        raise DataError(
            f"{int(np.isnan(known[moved]).sum())} of the moved objects have no value of {offers.names[place]!r} to "
            'start from. Leave them out of where, or set values with change="value".'
        )
    held = np.unique(offers.owner[moved])
    if not offers.weights[held].any():
        raise DataError(
            "All sets that hold a moved object have weight 0. Move others, or give these a weight."
        )
    work = _Work(offers, place, moved, held, grid, change)
    most = np.inf if market.kind == "subset" else 1.0
    found = intervals_of(
        market, work.measure, bounds={"share": (0.0, most), "outside": (0.0, 1.0)}, **for_intervals(settings)
    )
    low, high = np.nanmin(known), np.nanmax(known)
    tolerance = 1e-9 * max(abs(low), abs(high), 1e-300)
    ends = [work.at(value)[moved] for value in grid]
    return DemandCurve(
        offers.names[place],
        change,
        grid,
        found["share"],
        found.get("outside"),
        int(moved.sum()),
        len(held),
        sum(bool((x < low - tolerance).any() or (x > high + tolerance).any()) for x in ends),
    )


class _Work:
    """The sets with the column of some objects moved, and their shares."""

    def __init__(
        self,
        offers: Offers,
        place: int,
        moved: NDArray[np.bool_],
        held: NDArray[Any],
        grid: Floats,
        change: str,
    ) -> None:
        self.offers, self.place, self.grid, self.change = offers, place, grid, change
        self.moved = moved
        self.part = offers.sets[held]
        self.mine = moved[np.isin(offers.owner, held)]
        weights = offers.weights[held]
        self.weights = weights / weights.sum()
        self.marks = offers.mark_of_missing(place)

    def at(self, value: float) -> Floats:
        """Return the column of all objects once moved."""
        return self._changed(self.offers.sets.objects[:, self.place].astype(np.float64), value)

    def _changed(self, x: Floats, value: float) -> Floats:
        if self.change == "value":
            return np.full(len(x), value)
        return x * value if self.change == "factor" else x + value

    def measure(self, market: Market) -> dict[str, Any]:
        """Return the shares at each value."""
        part, mine = self.part, self.mine
        shares, outside = [], []
        owner = np.repeat(np.arange(len(part)), part.sizes)
        for value in self.grid:
            objects = part.objects.astype(np.float64)
            objects[mine, self.place] = self._changed(objects[mine, self.place], value)
            if self.marks is not None:
                objects[mine, self.marks] = 0.0  # it is known now
            changed = part.with_features(objects, part.situation)
            p = market.probabilities(changed)
            shares.append(self.weights @ np.bincount(owner[mine], p[mine], len(part)))
            if market.has_outside:
                outside.append(self.weights @ np.asarray(market.outside(changed)))
        found = {"share": np.array(shares)}
        return found | ({"outside": np.array(outside)} if outside else {})


def _moved(offers: Offers, where: Any) -> NDArray[np.bool_]:
    """Return where packed objects move."""
    n = len(offers.order)
    if where is None:
        return np.ones(n, dtype=bool)
    if isinstance(where, str):
        if offers.frame is None:
            raise ParameterError(
                "where is a condition on columns, but there is no table. Pass booleans or rows."
            )
        where = condition(where, {name: _values(offers.frame, name) for name in offers.frame.column_names})
    marked = np.atleast_1d(np.asarray(where))
    rows = np.zeros(n, dtype=bool)
    if marked.dtype == bool:
        if marked.shape != (n,):
            raise ShapeError(f"where needs one entry for each of {n} objects; got shape {marked.shape}.")
        rows = marked
    elif marked.dtype.kind in "iu" and marked.ndim == 1 and ((marked >= 0) & (marked < n)).all():
        rows[marked] = True
    else:
        raise ParameterError(f"where needs booleans, or rows from 0 to {n - 1}; got {where!r}.")
    if not rows.any():
        raise DataError("where matches no object; at least one is needed.")
    return rows[offers.order]


def _values(table: pa.Table, name: str) -> NDArray[Any]:
    """Return a column as conditions know it: floats with NaN, booleans, or text with None."""
    column = table.column(name)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if pa.types.is_boolean(kind) and column.null_count == 0:
        return np.asarray(column.to_numpy(), dtype=bool)
    if (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_boolean(kind)
    ):
        return as_numbers(column)
    return np.array([None if one is None else str(one) for one in column.to_pylist()], dtype=object)
