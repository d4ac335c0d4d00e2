"""Trade-offs: willingness to pay, and the value of time, from ratios of marginal utilities."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Unpack

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike
from scipy.special import ndtri

from entourage.choice import CrossNestedLogit, MixedLogit, MultinomialLogit, NestedLogit
from entourage.data.sets import AnySets
from entourage.decisions.intervals import Estimate, intervals_of
from entourage.decisions.market import Market, market_of
from entourage.decisions.offers import Floats, Index, Offers, Pairs
from entourage.decisions.settings import IntervalSettings, for_intervals
from entourage.decisions.words import as_json, in_words
from entourage.errors import ParameterError, check_number

__all__ = [
    "WillingnessToPay",
    "coefficient_ratio",
    "marginal_log_odds",
    "value_of_time",
    "weighted_quantiles",
    "willingness_to_pay",
]

#: A standard deviation more of the cost must change log-odds by so much, or the ratio is not identified.
LEAST_EFFECT = 0.01
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, eq=False)
class WillingnessToPay:
    r"""Willingness to pay for one unit more of a column, in units of the cost.

    Attributes
    ----------
    feature, cost : the names of the columns
    units : by what all values are multiplied; negative for one unit less, as for time
    values : of each object, in the order of the input; NaN where not identified
    estimate : the median over objects; the ratio of coefficients where the utility is linear in both columns
    quantiles : of ``values``, by share, each object with the weight of its set
    unidentified : how many objects have none, since the cost hardly changes their odds, or a value is missing
    wrong_sign : how many have none, since a higher cost raises their odds
    """

    feature: str
    cost: str
    units: float
    values: Floats
    estimate: Estimate
    quantiles: dict[float, float]
    unidentified: int
    wrong_sign: int
    rows: list[Index] = field(repr=False)
    ids: list[Any] = field(repr=False)

    def to_frame(self) -> pa.Table:
        """Return one row an object: its set, its row, and its willingness to pay (null: not identified)."""
        rows = np.concatenate(self.rows)
        ids = [one for one, own in zip(self.ids, self.rows, strict=True) for _ in own]
        return pa.table(
            {
                "set": ids,
                "object": rows,
                "willingness_to_pay": pa.array(self.values[rows], mask=np.isnan(self.values[rows])),
            }
        )

    def to_json(self) -> dict[str, Any]:
        """Return the summary, ready for JSON."""
        return {
            "feature": self.feature,
            "cost": self.cost,
            "units": self.units,
            "estimate": as_json(self.estimate),
            "quantiles": {str(share): value for share, value in self.quantiles.items()},
            "objects": len(self.values),
            "unidentified": self.unidentified,
            "wrong_sign": self.wrong_sign,
        }

    def __str__(self) -> str:
        spread = ", ".join(f"{100 * share:g} %: {value:.4g}" for share, value in self.quantiles.items())
        more, scale = ("more", self.units) if self.units > 0 else ("less", -self.units)
        times = f" times {scale:g}" if scale != 1 else ""
        lines = [
            f"Willingness to pay for one unit {more} of {self.feature}, in units of {self.cost}{times}: "
            f"{in_words(self.estimate)}"
        ]
        if self.quantiles:
            lines.append(f"  quantiles over objects: {spread}")
        n = len(self.values)
        if self.unidentified:
            lines.append(
                f"  not identified for {self.unidentified:,} of {n:,} objects: {self.cost} hardly changes their odds, "
                "or a value is missing."
            )
        if self.wrong_sign:
            lines.append(
                f"  left out: {self.wrong_sign:,} of {n:,} objects whose odds rise with {self.cost}: see audit."
            )
        return "\n".join(lines)

    def plot(self, path: Any = None) -> Any:
        """Draw the distribution over objects; write the picture where a path is given."""
        from entourage.decisions.pictures import draw_willingness, saved

        return saved(draw_willingness(self), path)


def willingness_to_pay(
    model: Any,
    sets: AnySets,
    feature: str | int,
    cost: str | int = "price",
    *,
    units: float = 1.0,
    situation: ArrayLike | None = None,
    sample_weight: ArrayLike | str | None = None,
    **settings: Unpack[IntervalSettings],
) -> WillingnessToPay:
    r"""Return what one unit more of a column is worth, in units of the cost.

    Of each object, by how much its cost can rise with its choice probability unchanged:

    .. math:: w_i = -\frac{\partial p_i / \partial x_i}{\partial p_i / \partial c_i}

    which is the ratio of marginal utilities, and minus the ratio of the coefficients where the utility is linear in
    both columns. Ratios have heavy tails, so medians are reported. An object is left out, and counted, where a standard
    deviation of the cost changes its log-odds by less than 0.01, or where a higher cost raises them.

    Intervals of a linear utility are by the delta method (see :func:`coefficient_ratio`). Others come from members,
    draws of the coefficients or refits, whose medians they hold.

    Parameters
    ----------
    model, sets, situation, sample_weight, settings : as in :func:`entourage.decisions.elasticities`
    feature, cost : the columns, by name; of arrays, their places
    units : what to multiply by, such as 60 for minutes to hours

    Examples
    --------
    >>> from entourage.choice import MultinomialLogit
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3, 2))
    >>> y = (X @ [1.0, -2.0] + rng.gumbel(size=(2000, 3))).argmax(1)
    >>> model = MultinomialLogit().fit(X, y)
    >>> found = willingness_to_pay(model, X, feature=0, cost=1)
    >>> bool(np.isclose(found.estimate.value, -model.coef_[0] / model.coef_[1])), found.estimate.method
    (True, 'delta method')
    """
    check_number("units", units)
    if units == 0:
        raise ParameterError("units is what to multiply by, such as 60 for minutes to hours; got 0.")
    market = market_of(model)
    offers = Offers.of(market.model, sets, situation, sample_weight)
    places = offers.place_of(feature), offers.place_of(cost, "cost")
    if places[0] == places[1]:
        raise ParameterError(f"feature and cost are the same column, {offers.names[places[0]]!r}; name two.")
    work = _Work(offers, *places, units)
    values, unidentified, wrong = work.values(market)
    names = offers.names
    how = settings.get("intervals", "auto")
    ratio = None
    if how in ("auto", "delta") and not settings.get("refits"):
        ratio = coefficient_ratio(market.model, *places, units=units, level=settings.get("level", 0.05))
    if ratio is None and how == "delta":
        raise ParameterError(
            "The delta method needs a utility that is linear in both columns (MultinomialLogit, NestedLogit, say). "
            "Leave intervals out."
        )
    if ratio is None:
        ratio = intervals_of(market, work.measure, **for_intervals(settings))["median"]
    elif np.isnan(ratio.value):
        values, unidentified = np.full(len(values), np.nan), len(values)
    of_objects = dict(zip(QUANTILES, work.quantiles(values, QUANTILES), strict=True))
    return WillingnessToPay(
        names[places[0]],
        names[places[1]],
        units,
        offers.in_rows(values),
        ratio,
        {} if np.isnan(list(of_objects.values())).any() else of_objects,
        unidentified,
        wrong,
        offers.sets.unpack(offers.order),
        offers.ids,
    )


def value_of_time(
    model: Any,
    sets: AnySets,
    time: str | int = "time",
    cost: str | int = "price",
    *,
    units: float = 1.0,
    situation: ArrayLike | None = None,
    sample_weight: ArrayLike | str | None = None,
    **settings: Unpack[IntervalSettings],
) -> WillingnessToPay:
    """Return what one unit less of time is worth, in units of the cost: minus the willingness to pay for one more.

    ``units=60`` turns minutes into hours. The other settings are those of :func:`willingness_to_pay`.

    Examples
    --------
    >>> from entourage.choice import MultinomialLogit
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3, 2))
    >>> y = (X @ [-1.0, -2.0] + rng.gumbel(size=(2000, 3))).argmax(1)
    >>> bool(value_of_time(MultinomialLogit().fit(X, y), X, 0, 1).estimate.value > 0)
    True
    """
    beside: dict[str, Any] = {"situation": situation, "sample_weight": sample_weight}
    return willingness_to_pay(model, sets, time, cost, units=-units, **beside, **settings)


def coefficient_ratio(
    model: Any, feature: int, cost: int, *, units: float = 1.0, level: float = 0.05
) -> Estimate | None:
    r"""Return minus the ratio of two coefficients, with its interval by the delta method.

    With :math:`w = -b_x / b_c`, the variance is :math:`g^\top V g`, :math:`g = (-1 / b_c, b_x / b_c^2)`; V is
    that by the Hessian; where ``fit`` was given groups, scaled to the clustered standard errors. None where the utility
    isn't linear in both columns with fixed coefficients. NaN where one of them is not identified.
    """
    found = _coefficients(model, feature, cost)
    if found is None:
        return None
    (i, j), coefficients = found, model.coef_
    if model.open_[i] or model.open_[j] or coefficients[j] == 0:
        return Estimate(np.nan, np.nan, np.nan, "not identified")
    scale = (
        model.robust_standard_errors_ / model.standard_errors_
        if model.clustered
        else np.ones(len(coefficients))
    )
    covariance = (model.covariance_ * scale[:, None] * scale)[np.ix_([i, j], [i, j])]
    value = -coefficients[i] / coefficients[j]
    slope = np.array([-1 / coefficients[j], coefficients[i] / coefficients[j] ** 2])
    half = float(ndtri(1 - level / 2)) * float(np.sqrt(slope @ covariance @ slope))
    ends = sorted([units * (value - half), units * (value + half)])
    return Estimate(units * value, ends[0], ends[1], "delta method")


def _coefficients(model: Any, feature: int, cost: int) -> tuple[int, int] | None:
    """Return the places in ``coef_`` of two columns in which the utility is linear, None where it isn't."""
    both, relative = {feature, cost}, getattr(model, "relative_", None)
    if relative is not None and both & set(relative.places):
        return None
    if type(model) not in (MultinomialLogit, NestedLogit, CrossNestedLogit, MixedLogit):
        return None  # what is derived from these may have other utilities
    i, j = model.linear_place(feature), model.linear_place(cost)
    return None if i is None or j is None else (i, j)


def weighted_quantiles(values: Floats, weights: Floats, shares: Sequence[float]) -> list[float]:
    """Return quantiles of weighted values, those of :func:`numpy.quantile` where all weights are the same.

    Examples
    --------
    >>> weighted_quantiles(np.array([3.0, 1.0, 2.0]), np.ones(3), [0.5, 0.75])
    [2.0, 2.5]
    >>> weighted_quantiles(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 4.0]), [0.3, 0.5])
    [1.6, 2.0]
    """
    if len(values) == 0:
        return [float("nan")] * len(shares)
    order = np.argsort(values, kind="stable")
    half = weights[order] / 2
    middles = np.cumsum(weights[order]) - half  # of the stretch of weight that each value has
    ends = middles[0], middles[-1]
    at = ends[0] + np.asarray(shares) * (ends[1] - ends[0])
    return [float(one) for one in np.interp(at, middles, values[order])]


def marginal_log_odds(market: Market, offers: Offers, place: int) -> Floats:
    """Return by how much the log-odds of each object grow with its own value of a column, per unit, packed."""
    p = market.probabilities(offers.sets)
    pairs = Pairs.of(offers.sets)
    flat = Pairs.pack(market.gradient(offers.sets, place))
    alone = p * (1 - p)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(alone > 0, flat[pairs.own] / alone, 0.0)


class _Work:
    """Ratios of marginal utilities of a market on some sets."""

    def __init__(self, offers: Offers, feature: int, cost: int, units: float) -> None:
        self.offers, self.feature, self.cost, self.units = offers, feature, cost, units
        counted = offers.weights[offers.owner] > 0
        self.spread = float(np.nanstd(offers.values(cost)[counted])) or 1.0
        self.kept: tuple[Market, tuple[Floats, int, int]] | None = None
        self.known = ~np.isnan(offers.values(cost)) & ~np.isnan(offers.values(feature))

    def values(self, market: Market) -> tuple[Floats, int, int]:
        """Return the ratio of each object, and how many are not identified, or have the wrong sign."""
        if self.kept is not None and self.kept[0] is market:
            return self.kept[1]
        gain = marginal_log_odds(market, self.offers, self.feature)
        price = marginal_log_odds(market, self.offers, self.cost)
        effect = price * self.spread
        near = ~self.known | (np.abs(effect) < LEAST_EFFECT)
        wrong = ~near & (effect > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(near | wrong, np.nan, -self.units * gain / price)
        found = ratio, int(near.sum()), int(wrong.sum())
        if self.kept is None:  # the market that is asked about, twice
            self.kept = market, found
        return found

    def quantiles(self, values: Floats, shares: Sequence[float]) -> list[float]:
        """Return quantiles over the objects that have a value, each with the weight of its set; NaN where none has."""
        weights = self.offers.weights[self.offers.owner]
        known = ~np.isnan(values) & (weights > 0)
        return weighted_quantiles(values[known], weights[known], shares)

    def measure(self, market: Market) -> dict[str, Any]:
        """Return the median."""
        return {"median": self.quantiles(self.values(market)[0], [0.5])[0]}
