"""The economic audit: does demand move as it should, and are trade-offs plausible."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from entourage.data.sets import AnySets
from entourage.decisions.market import Market, market_of
from entourage.decisions.moves import probabilities_after
from entourage.decisions.offers import Floats, Index, Offers
from entourage.decisions.trade_offs import marginal_log_odds, willingness_to_pay
from entourage.errors import DataError, ParameterError, check_number

__all__ = [
    "STEPS",
    "TOLERANCE",
    "Audit",
    "AuditRange",
    "Offender",
    "SignCheck",
    "TradeOffCheck",
    "Violations",
    "audit",
]

STEPS, TOLERANCE = 9, 1e-3  # values of the grid; changes of log-odds below it count as none


@dataclass(frozen=True)
class AuditRange:
    """What an audit moves a column by.

    Attributes
    ----------
    low, high : the range of the grid
    step : the finite move
    spread : one standard deviation, by which the gradient is multiplied
    indicator : whether the column holds 0 and 1 only
    """

    low: float
    high: float
    step: float
    spread: float
    indicator: bool

    @classmethod
    def of(
        cls, column: Floats, *, within: tuple[float, float] = (0.05, 0.95), move: float = 0.1
    ) -> "AuditRange":
        """Take the range of a column, NaN where it has no value; see :func:`audit`.

        Examples
        --------
        >>> AuditRange.of(np.linspace(0, 100, 101)).low, AuditRange.of(np.array([0.0, 1.0, 1.0])).step
        (5.0, 1.0)
        """
        low, high = (float(end) for end in np.nanquantile(column, within))
        if high <= low:
            low, high = float(np.nanmin(column)), float(np.nanmax(column))
        if high <= low:  # it never varies: a tenth more
            high = low + 0.1 * (abs(low) or 1.0)
        indicator = np.unique(column[~np.isnan(column)]).tolist() == [0.0, 1.0]
        spread = float(np.nanstd(column)) or 1.0
        if indicator:
            return cls(0.0, 1.0, 1.0, spread, True)
        return cls(low, high, move * (high - low), spread, False)

    def grid(self, steps: int = STEPS) -> Floats:
        """Return the values of the column at which demand is compared."""
        return np.linspace(self.low, self.high, 2 if self.indicator else steps)


@dataclass(frozen=True)
class Offender:
    """An object that breaks a rule.

    Attributes
    ----------
    set : the id of its set in the table, or the number of the set
    row : its row in the input
    value : of the column
    amount : by how much: the change of its log-odds in the wrong direction; of a trade-off, the willingness to pay
    """

    set: Any
    row: int
    value: float
    amount: float


@dataclass(frozen=True)
class Violations:
    """How many of the checked objects break a rule, and which do most.

    Attributes
    ----------
    count, checked : objects that break it, of how many
    largest : the largest change of log-odds in the wrong direction; 0 where there is none
    worst : the first of the offenders, the worst first
    rows : all offenders, their rows in the input
    """

    count: int
    checked: int
    largest: float
    worst: tuple[Offender, ...]
    rows: Index

    @property
    def share(self) -> float:
        """The share of the checked objects."""
        return self.count / self.checked if self.checked else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return everything but the list of all rows, ready for JSON."""
        return {
            "count": self.count,
            "checked": self.checked,
            "share": self.share,
            "largest": self.largest,
            "worst": [vars(one) for one in self.worst],
        }


@dataclass(frozen=True)
class SignCheck:
    """Whether demand for an object moves in one direction as a column of its own grows.

    Attributes
    ----------
    feature, sign : the column, and the direction demand should move in: 1 or -1
    gradient : objects whose probability moves the wrong way by the gradient
    move : those whose probability moves the wrong way by a finite move of ``step``
    monotone : those whose probability moves the wrong way somewhere as the column goes from ``range[0]`` to
        ``range[1]``, object by object
    step, range : of the column, in its units
    """

    feature: str
    sign: int
    gradient: Violations
    move: Violations
    monotone: Violations
    step: float
    range: tuple[float, float]

    @property
    def passed(self) -> bool:
        """Whether no object breaks the rule."""
        return not (self.gradient.count or self.move.count or self.monotone.count)


@dataclass(frozen=True)
class TradeOffCheck:
    """Whether the willingness to pay for a column is plausible.

    Attributes
    ----------
    feature, cost : the columns
    bounds : what is plausible; by default within the range of the cost over the spread of the feature
    given : whether bounds were given
    implausible : objects with a value beyond them
    unidentified, wrong_sign : see :class:`entourage.decisions.WillingnessToPay`
    """

    feature: str
    cost: str
    bounds: tuple[float, float]
    given: bool
    implausible: Violations
    unidentified: int
    wrong_sign: int

    @property
    def passed(self) -> bool:
        """Whether no object has an implausible value."""
        return not self.implausible.count


@dataclass(frozen=True, eq=False)
class Audit:
    """What an economic audit found; see :func:`audit`.

    Attributes
    ----------
    signs : one check a column
    trade_offs : one check a pair of columns
    sets, objects : how many were audited
    """

    signs: list[SignCheck]
    trade_offs: list[TradeOffCheck]
    sets: int
    objects: int

    @property
    def passed(self) -> bool:
        """Whether no rule is broken."""
        return all(one.passed for one in self.signs) and all(one.passed for one in self.trade_offs)

    def to_frame(self) -> pa.Table:
        """Return one row for each rule and object that breaks it: rule, column, row of the input."""
        rules = [
            (rule, one.feature, getattr(one, rule))
            for one in self.signs
            for rule in ("gradient", "move", "monotone")
        ]
        rules += [("trade-off", f"{one.feature} / {one.cost}", one.implausible) for one in self.trade_offs]
        return pa.table(
            {
                "rule": pa.array([rule for rule, _, found in rules for _ in range(found.count)], pa.string()),
                "column": pa.array(
                    [name for _, name, found in rules for _ in range(found.count)], pa.string()
                ),
                "row": np.concatenate([np.empty(0, dtype=np.int64), *(found.rows for _, _, found in rules)]),
            }
        )

    def to_json(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        return {
            "passed": self.passed,
            "sets": self.sets,
            "objects": self.objects,
            "signs": [
                {
                    "feature": one.feature,
                    "sign": one.sign,
                    "passed": one.passed,
                    "step": one.step,
                    "range": list(one.range),
                }
                | {name: getattr(one, name).to_json() for name in ("gradient", "move", "monotone")}
                for one in self.signs
            ],
            "trade_offs": [
                {
                    "feature": one.feature,
                    "cost": one.cost,
                    "passed": one.passed,
                    "bounds": list(one.bounds),
                    "given": one.given,
                    "implausible": one.implausible.to_json(),
                    "unidentified": one.unidentified,
                    "wrong_sign": one.wrong_sign,
                }
                for one in self.trade_offs
            ],
        }

    def __str__(self) -> str:
        lines = [
            f"Economic audit of {self.objects:,} objects in {self.sets:,} choice sets: "
            + ("no violation." if self.passed else "violations found.")
        ]
        for one in self.signs:
            way = "raises" if one.sign < 0 else "lowers"
            lines.append(
                f"{one.feature} ({one.sign:+d}): more of it {way} demand for {_of(one.gradient)} objects by the "
                f"gradient, {_of(one.move)} by a move of {one.step:.4g}, and somewhere from {one.range[0]:.4g} to "
                f"{one.range[1]:.4g} for {_of(one.monotone)}"
            )
            for worst in one.monotone.worst[:3]:
                lines.append(
                    f"  set {worst.set}, row {worst.row}, {one.feature} {worst.value:.4g}: log-odds "
                    f"{worst.amount:.3g} the wrong way"
                )
        for pair in self.trade_offs:
            source = "given" if pair.given else "by the range of the columns"
            lines.append(
                f"{pair.feature} / {pair.cost}: willingness to pay beyond [{pair.bounds[0]:.4g}, {pair.bounds[1]:.4g}] "
                f"({source}) for {_of(pair.implausible)} objects; not identified for {pair.unidentified:,}, wrong sign "
                f"of {pair.cost} for {pair.wrong_sign:,}"
            )
            for worst in pair.implausible.worst[:3]:
                lines.append(f"  set {worst.set}, row {worst.row}: {worst.amount:.4g}")
        return "\n".join(lines)

    def plot(self, path: Any = None) -> Any:
        """Draw the shares of violations; write the picture where a path is given."""
        from entourage.decisions.pictures import draw_audit, saved

        return saved(draw_audit(self), path)


def audit(
    model: Any,
    sets: AnySets,
    signs: Mapping[str | int, int],
    trade_offs: Mapping[tuple[Any, Any], tuple[float, float] | None] | Sequence[tuple[Any, Any]] = (),
    *,
    steps: int = STEPS,
    within: tuple[float, float] = (0.05, 0.95),
    move: float = 0.1,
    tolerance: float = TOLERANCE,
    most_offenders: int = 10,
    most_sets: int | None = 2000,
    situation: ArrayLike | None = None,
    random_state: int = 0,
) -> Audit:
    """Check that demand for an object moves as it should with its own columns, and that trade-offs are plausible.

    Three checks of each signed column, on every object, all else as it is: the sign of the derivative of its log-odds;
    a finite move of the column; and the whole range of the column, in steps. In a context-dependent model the answer
    depends on the rest of the set. Changes of log-odds below ``tolerance`` (for the gradient: by one standard deviation
    of the column) count as none. An indicator (a column of 0 and 1) goes from 0 to 1 in all three.

    Parameters
    ----------
    model, situation : as in :func:`entourage.decisions.elasticities`
    sets : arrays, lists, `Sets` or a table
    signs : by name or place of a column, 1 where more of it must not lower demand, -1 where it must not raise it
    trade_offs : pairs (feature, cost) whose willingness to pay is to be plausible; a mapping gives bounds to each,
        None for the default: at most the range of the cost for a standard deviation of the feature, either way
    steps : values of the grid over the range
    within : the range, as quantiles of the column
    move : the finite move, as a share of the range
    tolerance : changes of log-odds below it count as none
    most_offenders : how many offenders are named; ``rows`` has all
    most_sets : check so many sets, drawn at random; None for all
    random_state : seed of that draw

    Examples
    --------
    >>> from entourage.choice import MultinomialLogit
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 3, 2))
    >>> y = (X @ [1.0, -2.0] + rng.gumbel(size=(500, 3))).argmax(1)
    >>> model = MultinomialLogit().fit(X, y)
    >>> audit(model, X, {0: 1, 1: -1}).passed, audit(model, X, {0: -1}).signs[0].gradient.share
    (True, 1.0)
    """
    check_number("steps", steps, least=2, whole=True)
    check_number("move", move, above=0)
    check_number("tolerance", tolerance, least=0)
    check_number("most_offenders", most_offenders, least=0, whole=True)
    if not isinstance(signs, Mapping):
        raise ParameterError(
            f'signs maps columns to 1 or -1, as in {{"price": -1}}; got {type(signs).__name__}.'
        )
    if len(within) != 2 or not 0 <= within[0] < within[1] <= 1:
        raise ParameterError(f"within needs two quantiles, such as (0.05, 0.95); got {within!r}.")
    if not signs and not trade_offs:
        raise ParameterError('Nothing to audit: give signs={"price": -1}, or trade_offs=[("time", "price")].')
    for name, sign in signs.items():
        if sign not in (1, -1) or isinstance(sign, bool):
            raise ParameterError(f"The sign of {name!r} is 1 or -1; got {sign!r}.")
    market = market_of(model)
    whole = Offers.of(market.model, sets, situation)
    offers = whole
    if most_sets is not None and len(whole.sets) > most_sets:
        check_number("most_sets", most_sets, least=1, whole=True)
        drawn = np.random.default_rng(random_state).choice(len(whole.sets), most_sets, replace=False)
        offers = whole.some(np.sort(drawn))
    work = _Work(market, offers, tolerance, most_offenders)
    checks = [
        work.sign(whole, offers.place_of(name, "signs"), int(sign), steps, within, move)
        for name, sign in signs.items()
    ]
    pairs: dict[Any, Any] = (
        dict(trade_offs) if isinstance(trade_offs, Mapping) else {_pair(one): None for one in trade_offs}
    )
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise ParameterError(
                f'trade_offs are pairs (feature, cost), such as ("time", "price"); got {pair!r}.'
            )
    return Audit(
        checks,
        [work.trade_off(feature, cost, bounds) for (feature, cost), bounds in pairs.items()],
        len(offers.sets),
        len(offers.sets.objects),
    )


class _Work:
    """The checks of a market on some sets."""

    def __init__(self, market: Market, offers: Offers, tolerance: float, most: int) -> None:
        self.market, self.offers, self.tolerance, self.most = market, offers, tolerance, most
        self.owner = offers.owner
        self.competes = market.has_outside or market.kind == "subset"

    def sign(
        self, whole: Offers, place: int, sign: int, steps: int, within: tuple[float, float], move: float
    ) -> SignCheck:
        """Check one column, with the range it has in all sets."""
        market, offers = self.market, self.offers
        column = whole.values(place)
        x = offers.values(place)
        checked = ~np.isnan(x) & (self.competes | (offers.sets.sizes[self.owner] > 1))
        objects = np.flatnonzero(checked)
        if len(objects) == 0:
            raise DataError(
                f"No object can be audited for {offers.names[place]!r}: all are alone in their sets, where they are "
                "always chosen, or have no value. Audit sets of two objects or more."
            )
        over = AuditRange.of(column, within=within, move=move)
        low, high, step, indicator = over.low, over.high, over.step, over.indicator
        grid = over.grid(steps)
        curve = np.stack([self._moved(place, np.full(len(objects), value), objects) for value in grid])
        wrong_way = np.maximum(-sign * np.diff(curve, axis=0), 0.0)  # (steps - 1, objects)
        if indicator:
            slope = moved = sign * (curve[1] - curve[0])
        else:
            slope = sign * marginal_log_odds(market, offers, place)[objects] * over.spread
            before = self._log_odds(market.probabilities(offers.sets))[objects]
            moved = sign * (self._moved(place, x[objects] + step, objects) - before)
        return SignCheck(
            offers.names[place],
            sign,
            self._violations(x, -slope, objects),
            self._violations(x, -moved, objects),
            self._violations(x, wrong_way.max(0), objects),
            step,
            (low, high),
        )

    def _moved(self, place: int, values: Floats, objects: Index) -> Floats:
        p = probabilities_after(self.market.probabilities, self.offers.sets, place, values, objects)
        return self._log_odds(p)

    @staticmethod
    def _log_odds(p: Floats) -> Floats:
        kept = np.clip(p, 1e-12, 1 - 1e-12)
        return np.asarray(np.log(kept) - np.log1p(-kept))

    def _violations(self, x: Floats, amount: Floats, objects: Index) -> Violations:
        broken = np.flatnonzero(amount > self.tolerance)
        worst = broken[np.argsort(-amount[broken], kind="stable")]
        return Violations(
            len(broken),
            len(objects),
            float(amount[worst[0]]) if len(worst) else 0.0,
            tuple(self._offender(objects[i], x, amount[i]) for i in worst[: self.most]),
            self.offers.order[objects[worst]],
        )

    def _offender(self, i: int, x: Floats, amount: float) -> Offender:
        return Offender(self.offers.ids[self.owner[i]], int(self.offers.order[i]), float(x[i]), float(amount))

    def trade_off(self, feature: Any, cost: Any, bounds: tuple[float, float] | None) -> TradeOffCheck:
        """Check one pair of columns."""
        offers = self.offers
        places = offers.place_of(feature, "trade_offs"), offers.place_of(cost, "trade_offs")
        found = willingness_to_pay(self.market, offers.sets, places[0], places[1], intervals="none")
        values = found.values  # of sets: packed
        given = bounds is not None
        if bounds is None:
            spread = float(np.nanstd(offers.values(places[0]))) or 1.0
            limit = float(np.ptp(offers.values(places[1])[~np.isnan(offers.values(places[1]))])) / spread
            bounds = (-limit, limit)
        low, high = (float(end) for end in bounds)
        if not low <= high:
            raise ParameterError(f"Bounds of a trade-off are (low, high); got {bounds!r}.")
        known: NDArray[np.int64] = np.flatnonzero(~np.isnan(values))
        far = np.maximum(low - values[known], values[known] - high)
        broken = known[np.argsort(-far, kind="stable")][: int((far > 0).sum())]
        x = offers.values(places[0])
        return TradeOffCheck(
            offers.names[places[0]],
            offers.names[places[1]],
            (low, high),
            given,
            Violations(
                len(broken),
                len(known),
                float(far.max(initial=0.0)) if len(broken) else 0.0,
                tuple(self._offender(i, x, values[i]) for i in broken[: self.most]),
                offers.order[broken],
            ),
            found.unidentified,
            found.wrong_sign,
        )


def _pair(given: Any) -> Any:
    return tuple(given) if isinstance(given, list) else given


def _of(found: Violations) -> str:
    return f"{100 * found.share:.1f} % ({found.count:,} of {found.checked:,})"
