"""What if: shares, probabilities, expected ranks and consumer surplus before and after a change."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from entourage.choice import LatentClassLogit, MixedLogit
from entourage.choice.base import ChoiceModel
from entourage.decisions.intervals import Estimate, interval_method, intervals_of
from entourage.decisions.market import Market, market_of
from entourage.decisions.scenario import make_scenario
from entourage.decisions.scenario_types import ROLES, Scenario
from entourage.decisions.what_if_result import Shift, WhatIf
from entourage.errors import ParameterError, check_number

__all__ = ["what_if"]

Floats: TypeAlias = NDArray[np.float64]

_MOST = 40_000_000  # numbers kept for the intervals of single objects and sets


def what_if(
    model: Any,
    X: Any,
    *,
    change: Any = None,
    where: Any = None,
    add: Any = None,
    remove: Any = None,
    by: Any = None,
    situation: Any = None,
    sample_weight: Any = None,
    cost: str | int | float | None = None,
    refits: Sequence[Any] | None = None,
    intervals: str = "auto",
    draws: int = 200,
    level: float = 0.05,
    random_state: int = 0,
) -> WhatIf:
    r"""Compare what is chosen before and after a change of the choice sets.

    Every set is scored as it is and as it would be, so that a change of one object moves all others of its set:
    through the softmax and, in a context-dependent model, through their utilities. Market shares are means over sets,
    weighted by ``sample_weight``. Rankers: of first places, and expected ranks (0 = best) beside them. Subset choice:
    the expected number of chosen objects a set. The change of consumer surplus is that of the logsum
    (:meth:`entourage.decisions.Market.logsum`), in utils; with ``cost`` in money, over minus the coefficient of cost.

    The model is taken as a model of behaviour: a change far from what it learnt from is an extrapolation, and a
    correlation that it learnt need not be an effect.

    Parameters
    ----------
    model : fitted, with probabilities (:class:`entourage.decisions.Market`)
    X : a table as the model learnt to read it; or an array, a list of arrays, or Sets
    change : of a table, text such as ``"price*=1.1"`` or ``'price=3; brand="x"'``
        (:mod:`entourage.decisions.expressions`). Of arrays also a dict of columns to numbers or callables,
        ``{1: lambda price: 1.1 * price}``, or a callable of the objects, (objects, features); in text their columns
        are x0, x1, ...
    where : which objects change: a condition such as ``'brand=="x" and price>3'``, or booleans; of arrays also a
        callable of the objects. By default all
    add : objects to add. To a table: a table of rows, a dict of one row, or text such as ``'brand="x"; price=3'``;
        with a column of set ids to these sets, else to every set. To arrays: (objects, features) for every set, or a
        list of such arrays, one a set
    remove : which objects to remove, as ``where``. A set may be left empty only where there is an outside option, which
        is then chosen
    by : columns to group by. Objects may differ in it within a set (a brand: shares of each brand), or not (a
        segment: the share of the affected objects, and the surplus, in each segment). Of arrays: also labels
    situation : of arrays, as in ``predict``
    sample_weight : one a set; of a table also a column
    cost : the column of costs, whose coefficient gives surplus in money (models of :mod:`entourage.choice`): its name,
        or its place, a whole number from 0; or the coefficient itself, a negative number
    refits, intervals, draws, level, random_state : see :func:`entourage.decisions.intervals_of`; ``intervals`` is its
        method

    Examples
    --------
    >>> import numpy as np
    >>> from entourage.choice import MultinomialLogit
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(1, 5, size=(1000, 3, 2))  # quality, price
    >>> y = (X @ [1.0, -1.0] + rng.gumbel(size=(1000, 3))).argmax(1)
    >>> model = MultinomialLogit().fit(X, y)
    >>> found = what_if(model, X, change="x1*=1.1", where=np.tile([True, False, False], (1000, 1)), cost=1)
    >>> print(found)  # doctest: +ELLIPSIS
    What if, 1,000 sets: 1,000 objects changed
      changed: share 0.335... to 0.301... (-0.034..., 95 % CI [-0.036..., -0.03...])
      others: share 0.664... to 0.698... (+0.034..., 95 % CI [0.03..., 0.036...])
      consumer surplus a set: -0.073... utils (95 % CI [...]); -0.076... in money (95 % CI [...])
    Intervals: draws of the coefficients from their asymptotic normal distribution.
    """
    market = market_of(model)
    check_number("level", level, above=0, below=1)
    kind = interval_method(market, intervals, refits)
    scenario = make_scenario(
        market,
        X,
        change=change,
        where=where,
        add=add,
        remove=remove,
        by=by,
        situation=situation,
        sample_weight=sample_weight,
    )
    problem = market.logsum_problem
    if problem is None and scenario.situation_changes and not market.has_outside:
        problem = (
            "Features of the situation change, which without an outside option shift all utilities alike."
        )
    notes = []
    if cost is not None:
        if problem is not None:
            raise ParameterError(f"Consumer surplus is not identified, so leave cost out. {problem}")
        _cost_coefficient(market, cost)
    copies = {"refits": len(refits or []), "draws": draws, "members": market.n_members}.get(kind, 1)
    detailed = copies * (2 * scenario.n_rows + 3 * len(scenario.before)) <= _MOST
    if not detailed:
        notes.append("Intervals of single objects and sets were left out: there are too many.")
    if scenario.n_emptied:
        notes.append(f"Nothing is left of {scenario.n_emptied:,} sets: the outside option is chosen there.")
    if problem is None and market.logsum_note is not None:
        notes.append(market.logsum_note)
    if isinstance(market.model, ChoiceModel) and market.model.open_.any():
        notes.append("Some coefficients are not identified; what depends on them is arbitrary.")
    measured = ["roles", *map(str, range(len(scenario.groupings)))]
    most = np.inf if market.kind == "subset" else 1.0
    bounds = {f"{side} shares {key}": (0.0, most) for side in ("before", "after") for key in measured}
    bounds |= {
        f"{side} {what}": (0.0, 1.0) for side in ("before", "after") for what in ("objects", "outside")
    }
    found = intervals_of(
        market,
        lambda one: _Measure(one, scenario, problem is None, cost).all(detailed),
        method=kind,
        refits=refits,
        draws=draws,
        level=level,
        bounds=bounds,
        random_state=random_state,
    )
    if not detailed:
        whole = _Measure(market, scenario, problem is None, cost).all(True)
        found = {name: Estimate(value) for name, value in whole.items()} | found
    return _result(market, scenario, found, problem, kind, level, notes)


class _Measure:
    """What is measured in one model: arrays by name."""

    def __init__(self, market: Market, scenario: Scenario, surplus: bool, cost: Any) -> None:
        self.market, self.scenario, self.cost = market, scenario, cost
        self.surplus = surplus
        self.weights = scenario.weights / scenario.weights.sum()

    def all(self, detailed: bool) -> dict[str, Any]:
        scenario, market = self.scenario, self.market
        found: dict[str, Any] = {}
        p, ranks = [], []
        for side, sets, after in (("before", scenario.before, False), ("after", scenario.after, True)):
            p.append(scenario.in_rows(market.probabilities(sets), after=after))
            found |= {f"{side} shares {key}": value for key, value in self._shares(p[-1]).items()}
            if market.has_outside:
                outside = np.asarray(market.outside(sets))
                outside = scenario.of_sets(outside, 1.0) if after else outside
                found[f"{side} outside"] = self.weights @ outside
                found[f"{side} outside by set"] = outside
            if market.kind == "ranking":
                ranks.append(scenario.in_rows(market.expected_ranks(sets), after=after))
                found |= {f"{side} ranks {key}": value for key, value in self._ranks(ranks[-1]).items()}
        for name in [name for name in found if name.startswith("before ")]:
            rest = name.removeprefix("before ")
            found[f"change {rest}"] = found[f"after {rest}"] - found[name]
        found |= {"before objects": p[0], "after objects": p[1]}
        if ranks:
            found |= {"before object ranks": ranks[0], "after object ranks": ranks[1]}
        for side, own in zip(("before", "after"), p, strict=True):
            found[f"{side} affected by set"] = self._affected(own)
        if self.surplus:
            found |= self._surplus()
        if detailed:
            return found
        single = [name for name in found if "object" in name or name.endswith(" by set")]
        large = [name for name in found if np.size(found[name]) >= 1000 and "share" not in name]
        return {name: value for name, value in found.items() if name not in {*single, *large}}

    def _affected(self, p: Floats) -> Floats:
        """Return the share of the objects that change, are added or are removed, in each set."""
        scenario = self.scenario
        own = np.where(scenario.roles == ROLES.index("others"), 0.0, np.nan_to_num(p))
        return _sums(scenario.set_of_row, own, len(scenario.before))

    def _shares(self, p: Floats) -> dict[str, Floats]:
        scenario = self.scenario
        own = self.weights[scenario.set_of_row] * np.nan_to_num(p)
        found = {"roles": _sums(scenario.roles, own, len(ROLES))}
        for i, group in enumerate(scenario.groupings):
            if group.of_sets:
                found[str(i)] = _means(group.codes, self._affected(p), self.weights, len(group.labels))
            else:
                found[str(i)] = _sums(group.codes, own, len(group.labels))
        return found

    def _ranks(self, ranks: Floats) -> dict[str, Floats]:
        """Return mean expected ranks of the objects that are offered; NaN where none is."""
        scenario = self.scenario
        offered = ~np.isnan(ranks)
        weights = np.where(offered, self.weights[scenario.set_of_row], 0.0)
        affected = np.where(scenario.roles == ROLES.index("others"), 0.0, weights)
        found = {"roles": _means(scenario.roles, ranks, weights, len(ROLES))}
        for i, group in enumerate(scenario.groupings):
            codes = group.codes[scenario.set_of_row] if group.of_sets else group.codes
            own = affected if group.of_sets else weights
            found[str(i)] = _means(codes, ranks, own, len(group.labels))
        return found

    def _surplus(self) -> dict[str, Any]:
        scenario, market = self.scenario, self.market
        each = scenario.of_sets(market.logsum(scenario.after), 0.0) - market.logsum(
            scenario.before
        )  # log 1 = 0
        found: dict[str, Any] = {"surplus": self.weights @ each, "surplus by set": each}
        money = None if self.cost is None else -each / _cost_coefficient(market, self.cost, check=False)
        if money is not None:
            found |= {"money": self.weights @ money, "money by set": money}
        for i, group in enumerate(scenario.groupings):
            if group.of_sets:
                found[f"surplus {i}"] = _means(group.codes, each, self.weights, len(group.labels))
                if money is not None:
                    found[f"money {i}"] = _means(group.codes, money, self.weights, len(group.labels))
        return found


def _sums(codes: Any, values: Floats, count: int) -> Floats:
    return np.asarray(np.bincount(codes, values, count), dtype=np.float64)


def _means(codes: Any, values: Floats, weights: Floats, count: int) -> Floats:
    total = _sums(codes, weights, count)
    with np.errstate(invalid="ignore", divide="ignore"):
        return _sums(codes, weights * np.nan_to_num(values), count) / total


def _cost_coefficient(market: Market, cost: Any, *, check: bool = True) -> float:
    """Return the coefficient of cost, in utils for one unit of money."""
    model = market.model
    if isinstance(cost, bool) or not isinstance(cost, str | int | float | np.number):
        raise ParameterError(
            f"cost is a column, or the coefficient of cost, a negative number; got {cost!r}."
        )
    whole = isinstance(cost, int | np.integer)
    if not isinstance(cost, str) and not (whole and cost >= 0):  # a negative whole number is no place
        if not np.isfinite(cost) or cost >= 0:
            raise ParameterError(f"The coefficient of cost must be negative; got {cost:g}.")
        return float(cost)
    column = market.place_of(cost if isinstance(cost, str) else int(cost))
    name = market.names()[column]
    place = model.linear_place(column) if isinstance(model, ChoiceModel) else None
    if place is None:
        hint = (
            " Its coefficient is random."
            if isinstance(model, MixedLogit)
            else " That of each class is another."
            if isinstance(model, LatentClassLogit)
            else ""
        )
        raise ParameterError(
            f"{type(model).__name__} has no fixed coefficient of {name!r}.{hint} Give the coefficient itself, a "
            "negative number such as cost=-0.4."
        )
    found = float(model.coef_[place])
    if check and not found < 0:
        raise ParameterError(
            f"The coefficient of {name!r} is {found:.4g}, and one of cost must be negative. Check the column, or give "
            "the coefficient."
        )
    return found


def _result(
    market: Market,
    scenario: Scenario,
    found: dict[str, Estimate],
    problem: str | None,
    kind: str,
    level: float,
    notes: list[str],
) -> WhatIf:
    shifts = []

    def shift(
        by: str, group: str, what: str, key: str, i: Any, ranks: str | None, surplus: str | None
    ) -> Shift:
        sides = [found[f"{side} {key}"] for side in ("before", "after", "change")]
        before, after, change = (one if i is None else one[i] for one in sides)
        rank = [found[f"{side} {ranks}"][i] for side in ("before", "after", "change")] if ranks else None
        return Shift(
            by,
            group,
            what,
            before,
            after,
            change,
            ranks=None if rank is None else (rank[0], rank[1], rank[2]),
            surplus=found[f"surplus {surplus}"][i] if f"surplus {surplus}" in found else None,
            money=found[f"money {surplus}"][i] if f"money {surplus}" in found else None,
        )

    ranked = market.kind == "ranking"
    counts = np.bincount(scenario.roles, minlength=len(ROLES))
    for i, role in enumerate(ROLES):
        if counts[i]:
            shifts.append(
                shift("role", role, "objects", "shares roles", i, "ranks roles" if ranked else None, None)
            )
    if market.has_outside:
        shifts.append(shift("role", "outside option", "nothing chosen", "outside", None, None, None))
    for k, group in enumerate(scenario.groupings):
        for i, label in enumerate(group.labels):
            what = "affected objects in these sets" if group.of_sets else "objects"
            ranks = f"ranks {k}" if ranked else None
            shifts.append(shift(group.name, label, what, f"shares {k}", i, ranks, str(k)))
    return WhatIf(
        kind=market.kind,
        shifts=shifts,
        before=found["before objects"],
        after=found["after objects"],
        ranks_before=found.get("before object ranks"),
        ranks_after=found.get("after object ranks"),
        set_of_row=scenario.set_of_row,
        roles=[ROLES[i] for i in scenario.roles.tolist()],
        ids=list(scenario.ids),
        weights=scenario.weights,
        affected=(found["before affected by set"], found["after affected by set"]),
        outside=(found["before outside by set"], found["after outside by set"])
        if market.has_outside
        else None,
        surplus=found.get("surplus"),
        surplus_by_set=found.get("surplus by set"),
        money=found.get("money"),
        money_by_set=found.get("money by set"),
        no_surplus=problem,
        method=kind,
        level=level,
        notes=notes,
    )
