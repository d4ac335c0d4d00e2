"""Mixed logit: coefficients differ between decision makers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.stats import qmc

from entourage.choice.columns import place_of
from entourage.choice.distributions import laws_of
from entourage.choice.likelihood import Floats, Index, Packed, log_sum_exp, stretches
from entourage.choice.logit import ridge_start
from entourage.choice.people import Panel, PanelModel
from entourage.data.sets import Sets
from entourage.errors import ModelFileError, ParameterError, check_number

__all__ = ["MixedLogit"]

CHUNK = 300_000  # objects times draws at once: few enough for a processor's cache
MOST_KEPT = 30_000_000  # numbers drawn that are kept; beyond, those of each batch are drawn again


@dataclass(frozen=True, eq=False)
class _Drawn(Panel):
    """Objects, the sets of a person side by side, and the draws of each of g people."""

    halton: Callable[[int, int], Floats]  # the draws of so many people, from one on
    first: int = 0  # how many people there are before these
    kept: Floats | None = None  # (g, r, k)

    @property
    def draws(self) -> Floats:
        """Standardised draws, (g, r, k)."""
        return self.halton(len(self.heads) - 1, self.first) if self.kept is None else self.kept

    def part(self, start: int, stop: int) -> Self:
        kept = None if self.kept is None else self.kept[start:stop]
        return replace(super().part(start, stop), first=self.first + start, kept=kept)


class MixedLogit(PanelModel):
    r"""A logit whose coefficients differ from person to person (McFadden and Train 2000).

    :math:`P_i = E_b[e^{b^\top x_i} / \sum_j e^{b^\top x_j}]`, with random coefficients for some features and fixed ones
    for the others. ``groups`` of ``fit`` identifies the decision maker, one label a set: all choices of a person share
    one b, and their likelihood is :math:`E_b[\prod_t P_{i_t}(b)]` (a panel; Revelt and Train 1998). By default every
    set has a decision maker of its own. The expectation is a mean over Halton draws, different ones for each person, in
    the order of their labels, and the simulated likelihood is maximised.

    Predictions, and `log_likelihood`, are for single choices of new people. They use the same draws for every set, so
    that a set's probabilities don't depend on the other sets. With ``people``, predictions are for people whose choices
    were learnt from, and ``individual_coefficients_`` has their mean coefficients given these choices (Train 2009,
    ch. 11).

    Parameters
    ----------
    random : list of columns, dict of columns to distributions, or "all"
        The columns whose coefficients are random, places or names of a table's, normal by default; "all": every one,
        normal. A distribution is

        - "normal", with a mean and a standard deviation;
        - "lognormal", positive, or "-lognormal", negative (a price): mean and standard deviation are of the logarithm
          of the coefficient, or of minus it;
        - "triangular" or "uniform", symmetric, with a mean and a half-width;
        - one of these with its two parameters, ``("normal", -1.0, 0.5)``, which are then not estimated;
        - a function of your own, from numbers between 0 and 1 to standardised draws (a quantile function), to which a
          mean and a spread are estimated. A model file can't hold it.
    correlated : bool, or list of columns
        Whether all normal and lognormal coefficients, or those of some columns, are correlated: their Cholesky factor
        is estimated, standard deviations and correlations are reported.
    draws : int
        For each person.
    scramble : bool
        Whether the Halton sequence is scrambled; without, its first 50 points are left out.
    relative : bool, "all", or list of columns or places
        Which numbers also enter as z-score and rank within their set (:mod:`entourage.data.relative`). The other
        standings differ from the number by a constant of the set, which cancels.
    base : dict of str to str, optional
        The base level of categories of a table, see `MultinomialLogit`.
    random_state : int
        Scrambles.

    Attributes
    ----------
    means_, standard_deviations_ : of the random coefficients, in the order of their columns; lognormal: of their
        logarithms; triangular, uniform: the middle and the half-width
    correlations_ : of the random coefficients (lognormal: of their logarithms), (k, k)
    people_, beliefs_ : see `PanelModel`; beliefs are about draws
    columns_ : the places of random coefficients

    Examples
    --------
    >>> import numpy as np
    >>> from entourage.choice import MixedLogit
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 4, 1))
    >>> taste = rng.normal(1.0, 2.0, size=(1000, 1))
    >>> y = (taste * X[..., 0] + rng.gumbel(size=(1000, 4))).argmax(1)
    >>> model = MixedLogit([0], draws=50).fit(X, y)
    >>> bool(abs(model.standard_deviations_[0] - 2) < 3 * model.standard_errors_[1])
    True
    """

    has_logsum = True

    def __init__(
        self,
        random: str | Sequence[int | str] | Mapping[int | str, Any] = (0,),
        *,
        correlated: bool | Sequence[int | str] = False,
        draws: int = 500,
        scramble: bool = True,
        relative: bool | str | Sequence[str | int] = False,
        base: Mapping[str, str] | None = None,
        random_state: int = 0,
    ) -> None:
        self.random = random
        self.correlated = correlated
        self.draws = draws
        self.scramble = scramble
        self.relative = relative
        self.base = base
        self.random_state = random_state

    @property
    def means_(self) -> Floats:
        """Return the means of the random coefficients."""
        self._check_fitted()
        return np.asarray(self._full(self.theta_)[self.columns_])

    @property
    def standard_deviations_(self) -> Floats:
        """Return the standard deviations of the random coefficients."""
        self._check_fitted()
        return np.asarray(np.linalg.norm(self._factor(self._full(self.theta_)), axis=1))

    @property
    def correlations_(self) -> Floats:
        """Return the correlations of the random coefficients."""
        factor = self._factor(self._full(self.theta_))
        size = np.linalg.norm(factor, axis=1, keepdims=True)
        unit = factor / np.where(size > 0, size, 1.0)
        return np.asarray(np.where(np.eye(len(unit), dtype=bool), 1.0, unit @ unit.T))

    def drawn_coefficients(self) -> Floats:
        """Return the coefficients of each draw by which new people are predicted, (draws, columns)."""
        self._check_fitted()
        full = self._full(self.theta_)
        found = np.tile(full[: self.n_columns], (self.draws, 1))
        found[:, self.columns_] = self._coefficients(full, self._halton(1))[0]
        return np.asarray(found)

    @property
    def _all_random(self) -> bool:
        return isinstance(self.random, str) and self.random == "all"

    @property
    def n_estimated(self) -> int:
        """How many parameters there are."""
        return int(self._free.sum())

    def linear_place(self, column: int) -> int | None:
        """Return where ``coef_`` has the coefficient of a feature; None for a base level or a random one."""
        place = self._place_seen(column)
        return None if place is None or place in self.columns_ else int(self._free[:place].sum())

    def check_parameters(self) -> None:
        """Raise an error where a parameter of the constructor is invalid."""
        check_number("draws", self.draws, least=1, whole=True)
        check_number("random_state", self.random_state, least=0, whole=True)
        if not self._all_random:
            laws_of(self.random)
        if isinstance(self.correlated, str):
            raise ParameterError(f"correlated is True, False or a list of columns; got {self.correlated!r}.")

    def describe(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what a file holds of the model: the JSON content, and the tensors."""
        if any(law.own is not None for law in self.laws):
            raise ModelFileError(
                "A model file holds no code, and random has a distribution of your own. Pickle the model instead."
            )
        return super().describe()

    def arrange(self, names: Sequence[str], width: int) -> None:
        """Find the random columns and what is estimated of them, given the names of columns and how many are given."""
        places = {}
        given = laws_of(names if self._all_random else self.random)
        for column, law in given.items():
            place = place_of(column, names, self.dropped_, width, "A column of random")
            if place in places:
                raise ParameterError(f"random names a column twice: {names[place]}.")
            places[place] = law
        self.columns_ = np.array(sorted(places))
        self.laws = [places[place] for place in self.columns_]
        k = range(len(self.laws))
        if self.correlated is True:
            together = [i for i in k if self.laws[i].can_correlate]
        else:
            chosen = {
                place_of(column, names, self.dropped_, width, "A column of correlated")
                for column in (() if isinstance(self.correlated, bool) else self.correlated)
            }
            odd = [i for i in chosen if i not in places or not places[i].can_correlate]
            if odd:
                raise ParameterError(
                    f"correlated names {names[odd[0]]}, whose coefficient is not normal or lognormal with parameters "
                    "to estimate. Name it in random as such."
                )
            together = [i for i in k if self.columns_[i] in chosen]
        asked = self.correlated is True or len(together) > 0
        if asked and len(together) < 2:
            raise ParameterError("correlated needs two random coefficients, normal or lognormal; give more.")
        self._pairs = [(a, b) for a in together for b in together if b < a]
        free = np.ones(len(names) + len(self.laws) + len(self._pairs), dtype=bool)
        for i, law in enumerate(self.laws):
            if law.fixed is not None:
                free[[self.columns_[i], len(names) + i]] = False
        self._free = free

    def _prepare(self, sets: Sets) -> None:
        self.arrange(self._names_of(sets), sets.n_features + len(self.dropped_))
        self.start_ = ridge_start(sets)

    def _design(self, sets: Sets) -> _Drawn:
        return _Drawn(*Panel.arrange(sets, np.arange(len(sets))), self._halton)

    def _learn_from(self, sets: Sets, people: Index) -> _Drawn:
        panel = _Drawn(*Panel.arrange(sets, people), self._halton)
        count = len(panel.heads) - 1
        if count * self.draws * len(self.columns_) > MOST_KEPT:
            return panel
        kept, step = np.empty((count, self.draws, len(self.columns_))), max(1, CHUNK // self.draws)
        for first in range(0, count, step):
            kept[first : first + step] = self._halton(min(step, count - first), first)
        return replace(panel, kept=kept)

    def _rows_at_once(self, n_parameters: int) -> int:
        return max(1, CHUNK // self.draws)

    # --- parameters: means, spreads, then the Cholesky factor below its diagonal ------------------

    def _full(self, theta: Floats) -> Floats:
        """Return all parameters, those that are fixed included."""
        full = np.zeros(len(self._free))
        full[self._free] = theta
        d = len(full) - len(self.laws) - len(self._pairs)
        for i, law in enumerate(self.laws):
            if law.fixed is not None:
                full[self.columns_[i]], full[d + i] = law.fixed
        return full

    def _factor(self, full: Floats) -> Floats:
        """Return the Cholesky factor, (k, k)."""
        k = len(self.laws)
        spreads = full[len(full) - k - len(self._pairs) :]
        factor = np.diag(spreads[:k])
        for (a, b), value in zip(self._pairs, spreads[k:], strict=True):
            factor[a, b] = value
        return factor

    def _start(self, packed: Packed) -> Floats:
        spread = packed.spread()[self.columns_]
        means, sds = self.start_.copy(), 0.5 / spread
        for i, law in enumerate(self.laws):
            if law.sign:
                column = self.columns_[i]
                means[column], sds[i] = np.log(max(law.sign * means[column], 0.1 / spread[i])), 0.5
        return np.concatenate([means, sds, np.zeros(len(self._pairs))])[self._free]

    def _steps(self, packed: Packed) -> Floats:
        means = 1 / packed.spread()
        logs = np.array([law.sign != 0 for law in self.laws])
        means[self.columns_] = np.where(logs, 1.0, means[self.columns_])
        sds = means[self.columns_]
        below = np.array([sds[a] for a, _ in self._pairs])
        return np.concatenate([means, sds, below])[self._free]

    def _names(self, features: Sequence[str]) -> list[str]:
        own = [features[i] for i in self.columns_]
        means = list(features)
        for i, law in enumerate(self.laws):
            means[self.columns_[i]] = law.words[0] + own[i]
        sds = [law.words[1] + name for law, name in zip(self.laws, own, strict=True)]
        pairs = [f"correlation of {own[b]} and {own[a]}" for a, b in self._pairs]
        return [name for name, free in zip([*means, *sds, *pairs], self._free, strict=True) if free]

    def _reported(self, theta: Floats) -> tuple[Floats, Floats]:
        full = self._full(theta)
        k, below = len(self.laws), len(self._pairs)
        d = len(full) - k - below
        factor = self._factor(full)
        sds = np.linalg.norm(factor, axis=1)
        size = np.where(sds > 0, sds, 1.0)
        at = {(i, i): d + i for i in range(k)} | {pair: d + k + j for j, pair in enumerate(self._pairs)}
        slopes = np.zeros((len(full), len(full)))
        slopes[:d, :d] = np.eye(d)
        for (a, b), place in at.items():
            slopes[d + a, place] = factor[a, b] / size[a] if sds[a] > 0 else float(a == b)
        values = full.copy()
        values[d : d + k] = sds
        for j, (a, b) in enumerate(self._pairs):
            row = d + k + j
            values[row] = factor[a] @ factor[b] / (size[a] * size[b])
            for c in range(b + 1):  # the covariance, the sum of L_ac L_bc
                for own, other in ((a, b), (b, a)):
                    if (own, c) in at:
                        slopes[row, at[own, c]] += factor[other, c] / (size[a] * size[b])
            for own in (a, b):
                slopes[row] -= values[row] * slopes[d + own] / size[own]
        return values[self._free], slopes[np.ix_(self._free, self._free)]

    def _notes(self) -> list[str]:
        columns = [self._feature_names()[i] for i in self.columns_]
        return [
            f"The coefficient of {name} is {law.kind} with {law.fixed[0]:g} and {law.fixed[1]:g}, not estimated."
            for name, law in zip(columns, self.laws, strict=True)
            if law.fixed is not None
        ]

    # --- the simulated likelihood -----------------------------------------------------------------

    def _halton(self, n_people: int, first: int = 0) -> Floats:
        """Return the standardised draws of so many people, (g, r, k), from one on."""
        k = len(self.columns_)
        halton = qmc.Halton(k, scramble=self.scramble, seed=np.random.default_rng(self.random_state))
        halton.num_generated = first * self.draws + (0 if self.scramble else 50)  # to where the first begins
        uniform = halton.random(n_people * self.draws)
        found = [law.draws(uniform[:, i]) for i, law in enumerate(self.laws)]
        return np.stack(found, axis=1).reshape(n_people, self.draws, k)

    def _coefficients(self, full: Floats, draws: Floats) -> Floats:
        """Return the random coefficients of each draw, (g, r, k)."""
        factor = self._factor(full)
        drawn = full[self.columns_] + (draws @ factor.T if self._pairs else draws * np.diag(factor))
        for i, law in enumerate(self.laws):
            if law.sign:
                drawn[..., i] = law.coefficients(drawn[..., i])
        return np.asarray(drawn)

    def _log_p(self, full: Floats, packed: Packed, drawn: Floats, person: Index) -> Floats:
        """Return the log-probability of each object under each draw of its person, (N, r)."""
        return packed.log_softmax(self._drawn_utilities(full, packed, drawn, person))

    def _drawn_utilities(self, full: Floats, packed: Packed, drawn: Floats, person: Index) -> Floats:
        """Return the utility of each object under each draw of its person, (N, r)."""
        fixed = full[: packed.features.shape[1]].copy()
        fixed[self.columns_] = 0.0
        utilities = np.repeat((packed.features @ fixed)[:, None], self.draws, axis=1)
        for k, column in enumerate(self.columns_):
            utilities += packed.features[:, [column]] * drawn[person, :, k]
        return utilities

    def _utilities(self, theta: Floats, packed: Any) -> Floats:
        full = self._full(theta)
        drawn = self._coefficients(full, self._halton(1))
        log_p = self._log_p(full, packed, drawn, np.zeros_like(packed.owner))
        return np.asarray(log_sum_exp(log_p.T, np.zeros(1, dtype=np.int64))[0] - np.log(self.draws))

    def _logsum(self, theta: Floats, sets: Sets) -> Floats:
        """Return the mean over draws; features are centred in `_design`, so what all share is added again."""
        full, packed = self._full(theta), self._design(sets)
        drawn = self._coefficients(full, self._halton(1))  # (1, r, k)
        mean = full[: packed.features.shape[1]].copy()
        mean[self.columns_] = drawn[0].mean(0)
        parts = [
            log_sum_exp(
                self._drawn_utilities(full, part, drawn, np.zeros_like(part.owner)), part.starts
            ).mean(1)
            for part in packed.parts(self._rows_at_once(len(theta)))
        ]
        return np.asarray(np.concatenate(parts) + Packed.shared(sets) @ mean)

    def _contributions(self, theta: Floats, packed: Any, chosen: Index) -> tuple[Floats, Floats]:
        values, slopes, _ = self._simulated(theta, packed, chosen)
        return values, slopes

    def _simulated(self, theta: Floats, packed: _Drawn, chosen: Index) -> tuple[Floats, Floats, Floats]:
        """Return the log-likelihood of each person, (g,), its gradient, and the beliefs in draws, (g, r)."""
        full, chosen = self._full(theta), packed.rows_of(chosen)
        heads, draws, x = packed.heads[:-1], packed.draws, packed.features
        drawn = self._coefficients(full, draws)  # (g, r, k)
        if len(heads) == 1 and len(x) * self.draws > CHUNK:
            own, mean = self._of_one_person(full, packed, chosen, drawn)
            belief = np.exp(own - np.logaddexp.reduce(own, axis=1)[:, None])
            taken = x[chosen].sum(0)
            slopes = (taken - mean @ belief[0])[None]
            surprises = (taken[column] - mean[[column]] for column in self.columns_)  # (1, r) each
        else:
            counts = np.diff(np.append(heads, len(chosen)))
            person = np.repeat(np.arange(len(heads)), counts)[packed.owner]  # (N,)
            log_p = self._log_p(full, packed, drawn, person)  # (N, r)
            own = np.add.reduceat(log_p[chosen], heads, axis=0)  # (g, r)
            belief = np.exp(
                own - np.logaddexp.reduce(own, axis=1)[:, None]
            )  # in each draw, given the choices
            p = np.exp(log_p)
            mixed = np.einsum("nr,nr->n", p, belief[person])
            slopes = np.add.reduceat(x[chosen] - packed.sum(mixed[:, None] * x), heads, axis=0)  # (g, d)
            surprises = (
                np.add.reduceat(x[chosen, column][:, None] - packed.sum(p * x[:, [column]]), heads, axis=0)
                for column in self.columns_
            )  # (g, r) each
        spreads = np.empty((len(heads), len(self.laws) + len(self._pairs)))
        for k, (column, surprise) in enumerate(zip(self.columns_, surprises, strict=True)):
            felt = belief * surprise  # (g, r)
            if self.laws[k].sign:
                felt *= drawn[..., k]
            slopes[:, column] = felt.sum(1)
            spreads[:, k] = (felt * draws[..., k]).sum(1)
            for j, (a, b) in enumerate(self._pairs):
                if a == k:
                    spreads[:, len(self.laws) + j] = (felt * draws[..., b]).sum(1)
        gradient = np.concatenate([slopes, spreads], axis=1)[:, self._free]
        return np.logaddexp.reduce(own, axis=1) - np.log(self.draws), gradient, belief

    def _of_one_person(
        self, full: Floats, packed: _Drawn, chosen: Index, drawn: Floats
    ) -> tuple[Floats, Floats]:
        """Return the log-likelihood of all choices by each draw, (1, r), and the sum over sets of the mean x, (d, r).

        For a person of so many choices that a few at a time are computed.
        """
        own, mean = np.zeros((1, self.draws)), np.zeros((packed.features.shape[1], self.draws))
        sets, most = Packed(packed.features, packed.offsets), self._rows_at_once(len(full))
        for start, stop in stretches(sets.offsets, most):
            part = sets.part(start, stop)
            log_p = self._log_p(full, part, drawn, np.zeros_like(part.owner))
            own += log_p[sets.chosen_in(chosen, start, stop)].sum(0)
            mean += part.features.T @ np.exp(log_p)
        return own, mean

    # --- people who are known ---------------------------------------------------------------------

    @property
    def _width(self) -> int:
        return self.draws

    def _beliefs(self, packed: Any, chosen: Index) -> Floats:
        return self._simulated(self.theta_, packed, chosen)[2]

    def _individual(self) -> Floats:
        full = self._full(self.theta_)
        found = np.tile(full[: self.n_columns], (len(self.beliefs_), 1))
        drawn = self._coefficients(full, self._halton(len(self.beliefs_)))
        found[:, self.columns_] = np.einsum("gr,grk->gk", self.beliefs_, drawn)
        return found

    def _scores_given(self, sets: Sets, person: Index) -> Floats:
        full, packed = self._full(self.theta_), self._design(sets)
        drawn = self._coefficients(full, self._halton(len(self.beliefs_)))
        new = self._coefficients(full, self._halton(1))
        drawn = np.concatenate([drawn, new])  # the last are those of new people, which -1 finds
        beliefs = np.concatenate([self.beliefs_, np.full((1, self.draws), 1 / self.draws)])
        parts = []
        for start, stop in stretches(packed.ends, self._rows_at_once(0)):
            part = packed.part(start, stop)
            own = person[start:stop][part.owner]
            p = np.exp(self._log_p(full, part, drawn, own))
            parts.append(np.einsum("nr,nr->n", p, beliefs[own]))
        with np.errstate(divide="ignore"):
            return np.asarray(np.maximum(np.log(np.concatenate(parts)), -700.0))
