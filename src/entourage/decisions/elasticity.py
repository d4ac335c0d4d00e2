"""Elasticities, own and cross: by how many percent choice probabilities change as a column grows by one percent."""

from dataclasses import dataclass, field
from typing import Any, Unpack

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from entourage.data.sets import AnySets
from entourage.decisions.intervals import Estimate, intervals_of
from entourage.decisions.market import Market, market_of
from entourage.decisions.moves import each_moved
from entourage.decisions.offers import Floats, Index, Offers, Pairs
from entourage.decisions.settings import IntervalSettings, for_intervals
from entourage.decisions.words import as_json, in_words, matrix_json
from entourage.errors import check_choice

__all__ = ["Elasticities", "elasticities"]

KINDS = ("elasticity", "semi-elasticity")


@dataclass(frozen=True, eq=False)
class Elasticities:
    r"""Elasticities of choice probabilities by a column of the objects.

    Attributes
    ----------
    feature : the name of the column
    kind : "elasticity" (percent by one percent more) or "semi-elasticity" (change of the log-probability by one unit
        more; of an indicator, from 0 to 1)
    own : of each object, in the order of the input (the rows of a table): :math:`E_{ii}`; NaN where there is no value
    cross : of each set the (m, m) matrix :math:`E_{ij} = \partial \log p_i / \partial \log x_j`: row i is the percent
        change of :math:`p_i` by one percent more of :math:`x_j`
    outside : of each object, the percent change of the probability of the outside option by one percent more of its
        value; None where the model has no outside option
    semi : of each object, :math:`\partial \log p_i / \partial x_i`, which is informative where the value is 0
    rows : of each matrix, the places of its objects in ``own``
    labels : of the aggregates
    aggregate_own : of each label, the mean of ``own``, weighted by probability, with intervals
    aggregate : (labels, labels), with intervals: by how many percent the share of a label (row) changes as all
        objects of another (column) have one percent more; with an outside option, its share is the last row
    shares : of each label, the share of choices
    estimate : the probability-weighted mean of all own elasticities, with its interval
    zeros, missing : how many objects have the value 0 (where an elasticity is 0 by definition) or none
    has_gradient : whether derivatives are exact, or finite differences
    notes : what a reader should know
    """

    feature: str
    kind: str
    own: Floats
    cross: list[Floats]
    outside: Floats | None
    semi: Floats
    rows: list[Index]
    labels: list[str]
    aggregate_own: Estimate
    aggregate: Estimate
    shares: Floats
    estimate: Estimate
    zeros: int
    missing: int
    has_gradient: bool
    ids: list[Any] = field(repr=False)
    notes: tuple[str, ...] = ()

    def to_frame(self) -> pa.Table:
        """Return one row for each pair of objects of a set: set, object, by, elasticity; objects by their row."""
        m = np.array([len(rows) for rows in self.rows])
        return pa.table(
            {
                "set": pa.array(
                    [one for one, size in zip(self.ids, m, strict=True) for _ in range(size * size)]
                ),
                "object": np.concatenate([np.repeat(rows, len(rows)) for rows in self.rows]),
                "by": np.concatenate([np.tile(rows, len(rows)) for rows in self.rows]),
                self.kind: np.concatenate([matrix.ravel() for matrix in self.cross]),
            }
        )

    def aggregate_frame(self) -> pa.Table:
        """Return one row a label: share, own elasticity with its interval, and the aggregate matrix."""
        k = len(self.labels)
        columns: dict[str, Any] = {
            "label": self.labels,
            "share": self.shares[:k],
            "own": self.aggregate_own.value,
        }
        if self.aggregate_own.low is not None:
            columns |= {"low": self.aggregate_own.low, "high": self.aggregate_own.high}
        columns |= {f"by {label}": self.aggregate.value[:k, j] for j, label in enumerate(self.labels)}
        return pa.table(columns)

    def to_json(self) -> dict[str, Any]:
        """Return the aggregates, ready for JSON."""
        return {
            "feature": self.feature,
            "kind": self.kind,
            "own": as_json(self.estimate),
            "labels": self.labels,
            "shares": self.shares.tolist(),
            "aggregate_own": [as_json(self.aggregate_own[i]) for i in range(len(self.labels))],
            "aggregate": matrix_json(self.aggregate.value),
            "zeros": self.zeros,
            "missing": self.missing,
            "has_gradient": self.has_gradient,
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        what = "by 1 % more" if self.kind == "elasticity" else "of the log-probability, a unit more"
        lines = [f"Own {self.kind} of {self.feature} ({what}): {in_words(self.estimate)}"]
        if len(self.labels) > 1:
            width = max(len(label) for label in self.labels)
            lines += [
                f"  {label:<{width}}  share {self.shares[i]:.3f}  own {in_words(self.aggregate_own[i])}"
                for i, label in enumerate(self.labels)
            ]
        return "\n".join([*lines, *self.notes])

    def plot(self, path: Any = None) -> Any:
        """Draw the own elasticities by label; write the picture where a path is given."""
        from entourage.decisions.pictures import draw_elasticities, saved

        return saved(draw_elasticities(self), path)


def elasticities(
    model: Any,
    sets: AnySets,
    feature: str | int = "price",
    *,
    by: str | ArrayLike | None = None,
    kind: str = "auto",
    situation: ArrayLike | None = None,
    sample_weight: ArrayLike | str | None = None,
    **settings: Unpack[IntervalSettings],
) -> Elasticities:
    r"""Return own and cross elasticities of choice probabilities by a column, in the units of the column.

    .. math:: E_{ij} = \frac{x_j}{p_i} \frac{\partial p_i}{\partial x_j}

    The derivative is that of the whole model: a higher price of one object changes the utilities of all objects of its
    set where the model has context.

    Parameters
    ----------
    model : a fitted model with choice probabilities, or a :class:`entourage.decisions.Market`
    sets : arrays, lists, `Sets`; or a table, for a model that was fitted to one
    feature : the column, by name; of arrays, its place
    by : labels of the aggregates: a column of the table, "place" (where an object stands in its set), or one label an
        object
    kind : "elasticity", "semi-elasticity", or "auto": semi-elasticities for an indicator (a column of both 0 and 1)
    situation, sample_weight : as in `fit`; weights count in aggregates only
    settings : intervals, refits, draws, level and random_state; see :func:`entourage.decisions.intervals_of`, whose
        method is ``intervals``

    Examples
    --------
    >>> from entourage.choice import MultinomialLogit
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(1, 3, size=(500, 3, 2))
    >>> y = (X @ [1.0, -2.0] + rng.gumbel(size=(500, 3))).argmax(1)
    >>> model = MultinomialLogit().fit(X, y)
    >>> found = elasticities(model, X, feature=1)
    >>> p = model.predict_proba(X)
    >>> bool(np.allclose(found.own, (model.coef_[1] * X[..., 1] * (1 - p)).ravel()))
    True
    >>> found.cross[0].shape
    (3, 3)
    """
    check_choice("kind", kind, ["auto", *KINDS])
    market = market_of(model)
    offers = Offers.of(market.model, sets, situation, sample_weight)
    place = offers.place_of(feature)
    x = offers.values(place)
    indicator = np.unique(x[~np.isnan(x)]).tolist() == [0.0, 1.0]
    chosen = ("semi-elasticity" if indicator else "elasticity") if kind == "auto" else kind
    codes, labels = offers.labels(by)
    work = _Work(offers, place, x, chosen, indicator and chosen == "semi-elasticity", codes, len(labels))
    p, nothing, flat = work.derivatives(market)
    pairs, wide = work.pairs, work.relative(p, flat)
    found = intervals_of(market, work.measure, **for_intervals(settings))
    missing, zeros = int(np.isnan(x).sum()), int((x == 0).sum())
    own = wide[pairs.own]
    outside = None
    if nothing is not None:
        per = -_sum_by(pairs.j, flat, len(x)) / _or_nan(nothing)[offers.owner]
        outside = offers.in_rows(per if chosen != "elasticity" else per * x)
    return Elasticities(
        feature=offers.names[place],
        kind=chosen,
        own=offers.in_rows(own),
        cross=pairs.unpack(wide),
        outside=outside,
        semi=offers.in_rows(np.where(np.isnan(x), np.nan, flat[pairs.own] / _or_nan(p))),
        rows=offers.sets.unpack(offers.order),
        labels=labels,
        aggregate_own=found["by_label"],
        aggregate=found["matrix"],
        shares=work.shares(p, nothing),
        estimate=found["own"],
        zeros=zeros,
        missing=missing,
        has_gradient=market.has_gradient,
        ids=offers.ids,
        notes=_notes(work, zeros, missing, market.has_gradient),
    )


class _Work:
    """The derivatives of a market on some sets, and their aggregates."""

    def __init__(
        self, offers: Offers, place: int, x: Floats, kind: str, finite: bool, codes: Index, count: int
    ) -> None:
        self.offers, self.place, self.x, self.kind, self.finite = offers, place, x, kind, finite
        self.codes, self.count = codes, count
        self.pairs = Pairs.of(offers.sets)
        self.kept: tuple[Market, tuple[Floats, Floats | None, Floats]] | None = None

    def derivatives(self, market: Market) -> tuple[Floats, Floats | None, Floats]:
        """Return probabilities, that of nothing (n,), and d p_i / d x_j of all pairs; of an indicator, from 0 to 1."""
        if self.kept is not None and self.kept[0] is market:
            return self.kept[1]
        sets = self.offers.sets
        p, nothing = market.probabilities(sets), market.outside(sets)
        flat = self._from_0_to_1(market, p) if self.finite else Pairs.pack(market.gradient(sets, self.place))
        if self.kept is None:  # the market that is asked about, twice
            self.kept = market, (p, nothing, flat)
        return p, nothing, flat

    def _from_0_to_1(self, market: Market, p: Floats) -> Floats:
        """Return p_i times the change of its logarithm as the indicator of j goes from 0 to 1."""
        sets, pairs = self.offers.sets, self.pairs
        ends = []
        for value in (0.0, 1.0):
            values = np.full(len(sets.objects), value)
            logs = [
                _log(market.probabilities(copies)) for _, _, copies in each_moved(sets, self.place, values)
            ]
            ends.append(np.concatenate(logs))  # of all objects i of the copy for j: (j, i) a set
        change = Pairs.pack([matrix.T for matrix in pairs.unpack(ends[1] - ends[0])])
        return np.asarray(change * p[pairs.i])

    def relative(self, p: Floats, flat: Floats) -> Floats:
        """Return (semi-)elasticities of all pairs."""
        semi = flat / _or_nan(p)[self.pairs.i]
        known = np.where(np.isnan(self.x), np.nan, 1.0)[self.pairs.j]
        return np.asarray(semi * (self.x[self.pairs.j] if self.kind == "elasticity" else known))

    def shares(self, p: Floats, nothing: Floats | None) -> Floats:
        """Return the share of each label, and of nothing."""
        offers = self.offers
        own = np.bincount(self.codes, offers.weights[offers.owner] * p, self.count)
        all_of_them = own if nothing is None else np.append(own, offers.weights @ nothing)
        return np.asarray(all_of_them / offers.weights.sum())

    def measure(self, market: Market) -> dict[str, Any]:
        """Return the aggregates: of all, of each label (k,), and their matrix, (k, k) or (k + 1, k)."""
        offers, pairs, codes, k = self.offers, self.pairs, self.codes, self.count
        p, nothing, flat = self.derivatives(market)
        weight = offers.weights[offers.owner]
        scale = self.x if self.kind == "elasticity" else np.where(np.isnan(self.x), np.nan, 1.0)
        effect = np.nan_to_num(weight[pairs.j] * flat * scale[pairs.j])  # those without a value add nothing
        known = np.where(np.isnan(self.x), 0.0, weight * p)
        own = effect[pairs.own]
        matrix = np.bincount(codes[pairs.i] * k + codes[pairs.j], effect, k * k).reshape(k, k)
        if nothing is not None:
            matrix = np.vstack([matrix, -matrix.sum(0)])
        shares = self.shares(p, nothing) * offers.weights.sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            return {
                "own": own.sum() / known.sum(),
                "by_label": np.bincount(codes, own, k) / np.bincount(codes, known, k),
                "matrix": matrix / shares[:, None],
            }


def _notes(work: _Work, zeros: int, missing: int, exact: bool) -> tuple[str, ...]:
    notes = []
    if work.finite:
        notes.append(
            "The column is an indicator (0 and 1), which can't grow by one percent: these are semi-elasticities, the "
            "change of the log-probability from 0 to 1."
        )
    elif work.kind == "semi-elasticity":
        notes.append("Semi-elasticities: the change of the log-probability by one unit more.")
    elif zeros:
        notes.append(
            f"{zeros:,} of {len(work.x):,} objects have the value 0, of which one percent more is 0: their elasticity "
            "is 0, and .semi has the change by one unit more."
        )
    if missing:
        notes.append(f"{missing:,} objects have no value in the table; they are left out.")
    if not exact:
        notes.append("The model has no gradient: derivatives are central finite differences.")
    return tuple(notes)


def _sum_by(places: Index, values: Floats, count: int) -> Floats:
    return np.asarray(np.bincount(places, values, count), dtype=np.float64)


def _or_nan(values: Floats) -> Floats:
    return np.where(values > 0, values, np.nan)


def _log(values: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(values)
