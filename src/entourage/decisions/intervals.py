r"""Intervals of whatever a decision is about: from draws of coefficients, ensemble members, or refits to people.

The sets of the question are fixed; the interval is about the model. Three sources, in the order in which "auto" takes
them:

- ``refits``: models fitted to resampled people (`refit_people`): the only interval that covers all of the sampling
  error, of any model. From :math:`\min(v, \bar v) - t_{b-1} s` to :math:`\max(v, \bar v) + t_{b-1} s`, with the mean
  and the standard deviation over b refits. A net fitted twice to few data is not the same net, so its own value v and
  the mean of its refits differ, and either may be the better guess; of a logit they hardly differ. What all fits share
  is not covered: early stopping shrinks effects where data are few.
- ``draws``: of the models of :mod:`entourage.choice`, coefficients are drawn from their asymptotic normal distribution
  (Krinsky and Robb 1986); the interval is between quantiles. Covers as the standard errors do: see
  ``python -m benchmarks.calibration.decisions`` (``make long-tests``).
- ``members`` of an ensemble: :math:`v \pm t_{r-1} s` over r nets. They were trained on the same data, so this is the
  uncertainty of initialisation and training only, and too narrow as a confidence interval.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit
from sklearn.base import clone

from entourage.data.resampling import labels_of
from entourage.data.sets import Sets
from entourage.decisions.market import Market, market_of
from entourage.errors import DataError, ParameterError, check_choice, check_number

__all__ = ["METHODS", "Estimate", "interval_method", "intervals_of", "refit_people"]

Floats: TypeAlias = NDArray[np.float64]

METHODS = ("auto", "refits", "draws", "members", "none")

#: What is measured in each model: arrays by name, of the same shapes in all of them.
Measure: TypeAlias = Callable[[Market], Mapping[str, Any]]


@dataclass(frozen=True)
class Estimate:
    """A quantity, or an array of them, with its interval.

    Attributes
    ----------
    value : of the model as it was fitted
    low, high : the ends of the interval, of the same shape; None without one
    method : "refits", "draws", "members" or "none"; see :mod:`entourage.decisions.intervals`

    Examples
    --------
    >>> Estimate(0.25, 0.2, 0.3, "draws")
    Estimate(0.25, from 0.2 to 0.3, draws)
    """

    value: Any
    low: Any = None
    high: Any = None
    method: str = "none"

    def __getitem__(self, key: Any) -> "Estimate":
        """Return some of an array of estimates."""
        if self.low is None:
            return Estimate(self.value[key], None, None, self.method)
        return Estimate(self.value[key], self.low[key], self.high[key], self.method)

    def __repr__(self) -> str:
        if np.ndim(self.value):
            return f"Estimate({np.shape(self.value)}, {self.method})"
        sure = "" if self.low is None else f", from {self.low:.6g} to {self.high:.6g}, {self.method}"
        return f"Estimate({self.value:.6g}{sure})"


def interval_method(model: Any, method: str = "auto", refits: Sequence[Any] | None = None) -> str:
    """Return how intervals are made: what was asked for, checked, or the first that there is.

    Examples
    --------
    >>> import numpy as np
    >>> from entourage.choice import MultinomialLogit
    >>> X = np.random.default_rng(0).normal(size=(200, 3, 1))
    >>> interval_method(MultinomialLogit(l2=1).fit(X, X[..., 0].argmax(1)))
    'draws'
    """
    check_choice("method", method, METHODS)
    market = market_of(model)
    if method == "auto":
        if refits is not None and len(refits):
            return interval_method(market, "refits", refits)
        return "draws" if market.has_draws else "members" if market.n_members > 1 else "none"
    if method == "refits" and (refits is None or len(refits) < 2):
        raise ParameterError(
            "Intervals from refits need at least two models fitted to resampled people: "
            "refits=refit_people(model, sets, groups=people)."
        )
    if method == "draws" and not market.has_draws:
        raise ParameterError(
            f"{type(market.model).__name__} has no distribution of coefficients to draw from; the models of "
            "entourage.choice have. Give refits=refit_people(model, sets) instead."
        )
    if method == "members" and market.n_members < 2:
        raise ParameterError(
            "Intervals from members need an ensemble: fit with members=8. Or give refits=refit_people(model, sets)."
        )
    return method


def intervals_of(
    model: Any,
    measure: Measure,
    *,
    method: str = "auto",
    refits: Sequence[Any] | None = None,
    draws: int = 200,
    level: float = 0.05,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    random_state: int = 0,
) -> dict[str, Estimate]:
    """Measure quantities in a model, with intervals; see the module.

    Parameters
    ----------
    model : fitted, or its `Market`
    measure : returns arrays or numbers by name, given a `Market`
    method : "refits", "draws", "members", "none", or "auto" for the first that there is
    refits : models fitted to resampled people; see `refit_people`
    draws : how many draws of coefficients
    level : the significance level: intervals hold 1 - level
    bounds : the range of some quantities, by name
    random_state : seed of the draws

    Examples
    --------
    >>> import numpy as np
    >>> from entourage.choice import MultinomialLogit
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 3, 1))
    >>> y = (X[..., 0] + rng.gumbel(size=(500, 3))).argmax(1)
    >>> model = MultinomialLogit().fit(X, y)
    >>> sets = Market(model).sets_of(X)
    >>> share = intervals_of(model, lambda market: {"first": market.probabilities(sets)[::3].mean()})["first"]
    >>> bool(share.low < share.value < share.high), share.method
    (True, 'draws')
    """
    check_number("level", level, above=0, below=1)
    check_number("draws", draws, least=20, whole=True)
    market = market_of(model)
    kind = interval_method(market, method, refits)
    value = {name: np.asarray(found, dtype=np.float64) for name, found in measure(market).items()}
    others: list[Market] = []
    if kind == "refits":
        others = [market_of(one) for one in refits or []]
    elif kind == "draws":
        others = market.draws(draws, random_state)
    elif kind == "members":
        others = market.members()
    each = [measure(one) for one in others]
    found = {}
    for name, own in value.items():
        if not each:
            found[name] = Estimate(_plain(own), None, None, kind)
            continue
        again = np.stack([np.asarray(one[name], dtype=np.float64) for one in each])
        if kind == "draws":
            low, high = np.quantile(again, [level / 2, 1 - level / 2], axis=0)
            low, high = np.minimum(low, own), np.maximum(high, own)
        else:
            half = float(stdtrit(len(again) - 1, 1 - level / 2)) * again.std(0, ddof=1)
            centre = again.mean(0) if kind == "refits" else own
            low, high = np.minimum(own, centre) - half, np.maximum(own, centre) + half
        if bounds and name in bounds:
            low, high = np.clip(low, *bounds[name]), np.clip(high, *bounds[name])
        found[name] = Estimate(_plain(own), _plain(low), _plain(high), kind)
    return found


def _plain(values: Floats) -> Any:
    return float(values) if np.ndim(values) == 0 else values


def refit_people(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    groups: ArrayLike | None = None,
    refits: int = 30,
    random_state: int = 0,
    **fit: Any,
) -> list[Any]:
    """Fit a model again to resampled people: a bootstrap of groups, each set weighted by how often its group was drawn.

    Parameters
    ----------
    model : its parameters are taken, with another ``random_state`` for each refit where it has one
    X, y : arrays, lists or Sets, as in ``fit``; of a table, ``market.sets_of`` has no targets: pass
        ``Sets.from_frame(...)``
    groups : one label a set, such as who chose; by default each set is its own group
    refits : how many
    random_state : seed of the draws
    fit : further arguments of ``fit``

    Examples
    --------
    >>> import numpy as np
    >>> from entourage.choice import MultinomialLogit
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3, 1))
    >>> y = (X[..., 0] + rng.gumbel(size=(200, 3))).argmax(1)
    >>> len(refit_people(MultinomialLogit(), X, y, refits=3))
    3
    """
    check_number("refits", refits, least=2, whole=True)
    check_number("random_state", random_state, least=0, whole=True)
    n = len(X) if isinstance(X, Sets) else len(Sets.of(X))
    labels = np.arange(n) if groups is None else labels_of(groups, n)
    count = int(labels.max()) + 1
    if count < 2:
        raise DataError("Resampling needs at least two groups; there is one.")
    given = fit.pop("sample_weight", None)
    own = np.ones(n) if given is None else np.asarray(given, dtype=np.float64)
    rng = np.random.default_rng(random_state)
    found = []
    for _ in range(refits):
        times = rng.multinomial(count, np.full(count, 1 / count))[labels]
        one = clone(model)
        if "random_state" in one.get_params(deep=False):
            one.set_params(random_state=int(rng.integers(2**31)))
        found.append(one.fit(X, y, sample_weight=own * times, **fit))
    return found
