"""Diversion ratios: where do the choices go that an object loses, the outside option included."""

from dataclasses import dataclass, field
from typing import Any, Unpack

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from entourage.data.sets import AnySets
from entourage.decisions.intervals import Estimate, intervals_of
from entourage.decisions.market import Market, market_of
from entourage.decisions.moves import each_removed
from entourage.decisions.offers import Floats, Index, Offers, Pairs
from entourage.decisions.settings import IntervalSettings, for_intervals
from entourage.decisions.words import matrix_json
from entourage.errors import ParameterError, check_choice

__all__ = ["Diversion", "diversion"]

WAYS = ("removal", "price")
_LEAST = 1e-12  # a smaller loss of probability goes nowhere


@dataclass(frozen=True, eq=False)
class Diversion:
    r"""Where the choices of an object go.

    Attributes
    ----------
    by : "removal" or "price"
    ratios : of each set the (m, m) matrix :math:`D_{ij}`: of the choices that object j loses, the share that object i
        gains. The diagonal is NaN. With ``outside`` each column sums to 1. Negative where i loses, too, which needs
        context effects; NaN where j loses nothing, or gains where most objects lose
    outside : of each object, the share of its lost choices that go to the outside option, in the order of the input;
        None where the model has no outside option
    rows : of each matrix, the places of its objects in the input
    labels : of the aggregates
    aggregate : (labels, labels), with intervals: of all choices that objects of a label (column) lose, one
        object at a time, the share that other objects of a label (row) gain; with an outside option, its share
        is the last row
    undefined : how many objects lose nothing
    """

    by: str
    ratios: list[Floats]
    outside: Floats | None
    rows: list[Index]
    labels: list[str]
    aggregate: Estimate
    undefined: int
    ids: list[Any] = field(repr=False)

    def to_frame(self) -> pa.Table:
        """Return one row for each pair: set, the object that loses (``from``), that gains (``to``), and the ratio.

        Objects by row of the input; ``to`` is null for the outside option.
        """
        ids: list[Any] = []
        lost: list[int] = []
        gained: list[int | None] = []
        ratio: list[float] = []
        for one, rows, matrix in zip(self.ids, self.rows, self.ratios, strict=True):
            for j, source in enumerate(rows.tolist()):
                others = [i for i in range(len(rows)) if i != j]
                ends: list[int | None] = rows[others].tolist()
                shares = matrix[others, j].tolist()
                if self.outside is not None:
                    ends, shares = [*ends, None], [*shares, float(self.outside[source])]
                ids += [one] * len(ends)
                lost += [source] * len(ends)
                gained += ends
                ratio += shares
        return pa.table(
            {
                "set": ids,
                "from": lost,
                "to": pa.array(gained, pa.int64()),
                "ratio": pa.array(ratio, pa.float64()),
            }
        )

    def to_json(self) -> dict[str, Any]:
        """Return the aggregates, ready for JSON."""
        return {
            "by": self.by,
            "labels": self.labels,
            "aggregate": matrix_json(self.aggregate.value),
            "undefined": self.undefined,
        }

    def __str__(self) -> str:
        names = [*self.labels, "outside option"][: len(self.aggregate.value)]
        width = max(map(len, names))
        lines = [
            f"Diversion by {self.by}: of the choices that the column loses, the share that the row gains"
        ]
        lines.append(" " * (width + 2) + "  ".join(f"{label:>8}" for label in self.labels))
        for name, row in zip(names, self.aggregate.value, strict=True):
            cells = [f"{v:>{max(8, len(label))}.3f}" for v, label in zip(row, self.labels, strict=True)]
            lines.append(f"{name:<{width}}  " + "  ".join(cells))
        if self.undefined:
            lines.append(f"{self.undefined:,} objects lose no choices: they have no ratios.")
        return "\n".join(lines)

    def plot(self, path: Any = None) -> Any:
        """Draw the aggregate matrix; write the picture where a path is given."""
        from entourage.decisions.pictures import draw_diversion, saved

        return saved(draw_diversion(self), path)


def diversion(
    model: Any,
    sets: AnySets,
    *,
    by: str = "removal",
    feature: str | int = "price",
    labels: str | ArrayLike | None = None,
    situation: ArrayLike | None = None,
    sample_weight: ArrayLike | str | None = None,
    **settings: Unpack[IntervalSettings],
) -> Diversion:
    r"""Return diversion ratios: of the choices that an object loses, the share that each other one gains.

    By removal of object j from its set, :math:`D_{ij} = (p_i(C \setminus j) - p_i(C)) / p_j(C)`; by a marginal change
    of a column (a price), :math:`D_{ij} = -(\partial p_i / \partial x_j) / (\partial p_j / \partial x_j)`. For a
    multinomial logit both are :math:`p_i / (1 - p_j)`.

    Parameters
    ----------
    model, sets, situation, sample_weight, settings : as in :func:`entourage.decisions.elasticities`
    by : "removal" or "price"
    feature : the column that changes with ``by="price"``; of one that attracts, less of it is what costs choices
    labels : of the aggregates: a column of the table, "place", or one label an object

    Examples
    --------
    >>> from entourage.choice import MultinomialLogit
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 3, 1))
    >>> y = (X[..., 0] + rng.gumbel(size=(500, 3))).argmax(1)
    >>> model = MultinomialLogit().fit(X, y)
    >>> p, found = model.predict_proba(X)[0], diversion(model, X).ratios[0]
    >>> bool(np.isclose(found[0, 1], p[0] / (1 - p[1])))
    True
    """
    check_choice("by", by, WAYS)
    market = market_of(model)
    if market.kind == "subset":
        raise ParameterError(
            "Objects of a subset choice don't compete for one choice, so none goes elsewhere. Diversion is of choosers "
            "and rankers; see entourage.effects for context effects."
        )
    offers = Offers.of(market.model, sets, situation, sample_weight)
    place = offers.place_of(feature) if by == "price" else None
    codes, names = offers.labels(labels)
    work = _Work(offers, place, codes, len(names))
    lost, gained, outside = work.flows(market)
    pairs = work.pairs
    defined = lost > _LEAST
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(defined[pairs.j], gained / lost[pairs.j], np.nan)
        ratios[pairs.own] = np.nan
        to_outside = None if outside is None else np.where(defined, outside / lost, np.nan)
    return Diversion(
        by,
        pairs.unpack(ratios),
        None if to_outside is None else offers.in_rows(to_outside),
        offers.sets.unpack(offers.order),
        names,
        intervals_of(market, work.measure, **for_intervals(settings))["matrix"],
        int((~defined).sum()),
        offers.ids,
    )


class _Work:
    """What objects lose, and who gains it."""

    def __init__(self, offers: Offers, place: int | None, codes: Index, count: int) -> None:
        self.offers, self.place, self.codes, self.count = offers, place, codes, count
        self.pairs = Pairs.of(offers.sets)
        self.kept: tuple[Market, tuple[Floats, Floats, Floats | None]] | None = None

    def flows(self, market: Market) -> tuple[Floats, Floats, Floats | None]:
        """Return what j loses, (N,), what i gains of it, all pairs, and what the outside option gains, (N,) or None."""
        if self.kept is not None and self.kept[0] is market:
            return self.kept[1]
        found = self._by_removal(market) if self.place is None else self._by_price(market, self.place)
        if self.kept is None:  # the market that is asked about, twice
            self.kept = market, found
        return found

    def _by_price(self, market: Market, place: int) -> tuple[Floats, Floats, Floats | None]:
        """Return the flows by one standard deviation of the column, in the direction in which most objects lose."""
        flat, pairs = Pairs.pack(market.gradient(self.offers.sets, place)), self.pairs
        flat = flat * (np.nanstd(self.offers.values(place)) or 1.0)
        flat = flat if flat[pairs.own].sum() <= 0 else -flat  # of a column that attracts: less of it
        lost = -flat[pairs.own]
        outside = None
        if market.has_outside:
            outside = np.asarray(-np.bincount(pairs.j, flat, len(lost)), dtype=np.float64)
        return lost, flat, outside

    def _by_removal(self, market: Market) -> tuple[Floats, Floats, Floats | None]:
        sets, pairs = self.offers.sets, self.pairs
        p, nothing = market.probabilities(sets), market.outside(sets)
        size = np.repeat(sets.sizes, sets.sizes)
        gained = np.full(len(pairs.i), np.nan)
        begins = np.append(0, np.cumsum(sets.sizes**2))[
            self.offers.owner
        ]  # of the matrix of each object's set
        first = np.repeat(sets.offsets[:-1], sets.sizes)
        outside = None if nothing is None else p.copy()  # of a set of one: all go to the outside option
        for gone, kept, copies in each_removed(sets):
            after = market.probabilities(copies)
            j = np.repeat(gone, copies.sizes)
            gained[begins[kept] + (kept - first[kept]) * size[kept] + (j - first[j])] = after - p[kept]
            if outside is not None and nothing is not None:
                left = market.outside(copies)
                outside[gone] = np.asarray(left) - nothing[self.offers.owner[gone]]
        lost = np.where(size > 1, p, 0.0) if nothing is None else p
        return lost, gained, outside

    def measure(self, market: Market) -> dict[str, Any]:
        """Return what labels (rows) gain of what others (columns) lose."""
        pairs, k = self.pairs, self.count
        lost, gained, outside = self.flows(market)
        weight = self.offers.weights[self.offers.owner] * (lost > _LEAST)
        flow = weight[pairs.j] * np.nan_to_num(gained)
        flow[pairs.own] = 0.0
        matrix = np.bincount(self.codes[pairs.i] * k + self.codes[pairs.j], flow, k * k).reshape(k, k)
        if outside is not None:
            matrix = np.vstack([matrix, np.bincount(self.codes, weight * outside, k)])
        with np.errstate(divide="ignore", invalid="ignore"):
            return {"matrix": matrix / np.bincount(self.codes, weight * lost, k)}
