"""Mixed logit: coefficients differ between decision makers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from entourage.choice.base import ChoiceModel
from entourage.choice.likelihood import Floats, Index, Packed, log_sum_exp
from entourage.choice.logit import MultinomialLogit
from entourage.data.sets import Sets
from entourage.errors import ParameterError, check_choice, check_number

__all__ = ["MixedLogit"]

CHUNK = 1_000_000  # objects times draws at once
LARGEST = 50.0  # of the logarithm of a lognormal coefficient


@dataclass(frozen=True, eq=False)
class _Panel(Packed):
    """Objects, the sets of a person side by side, and the draws of each of g people once they are needed."""

    order: Index  # the place of each set in the input, (n,)
    shift: Index  # how far each set moved, in objects, (n,)
    heads: Index  # the first set of each person, and the end, (g + 1,)
    halton: Callable[[int], Floats]

    @cached_property
    def normals(self) -> Floats:
        """Standard normal draws, (g, r, k)."""
        return np.asarray(self.halton(len(self.heads) - 1))


class MixedLogit(ChoiceModel):
    r"""A logit whose coefficients differ from person to person (McFadden and Train 2000).

    :math:`P_i = E_b[e^{b^\top x_i} / \sum_j e^{b^\top x_j}]`, with independent normal or lognormal coefficients for
    some features and fixed ones for the others. ``groups`` of ``fit`` identifies the decision maker, one label a set:
    all choices of a person share one b, and their likelihood is :math:`E_b[\prod_t P_{i_t}(b)]` (a panel; Revelt and
    Train 1998). By default every set has a decision maker of its own. The expectation is a mean over Halton draws,
    different ones for each person, in the order of their labels, and the simulated likelihood is maximised.

    Predictions, and `log_likelihood`, are for single choices of new people. They use the same draws for every set, so
    that a set's probabilities don't depend on the other sets.

    Parameters
    ----------
    random : list of int, or dict of int to {"normal", "lognormal"}
        The columns whose coefficients are random, normal by default. A lognormal coefficient is
        positive: pass minus the price.
    draws : int
        For each person.
    scramble : bool
        Whether the Halton sequence is scrambled; without, its first 50 points are left out.
    relative : bool, "all", or list of columns or places
        Which numbers also enter as z-score and rank within their set (:mod:`entourage.data.relative`). The other
        standings differ from the number by a constant of the set, which cancels.
    random_state : int
        Scrambles.

    Attributes
    ----------
    means_, standard_deviations_ : of the random coefficients, in the order of their columns; lognormal: of their
        logarithms

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
    _panel = True

    def __init__(
        self,
        random: Sequence[int] | Mapping[int, str] = (0,),
        *,
        draws: int = 500,
        scramble: bool = True,
        relative: bool | str | Sequence[str | int] = False,
        random_state: int = 0,
    ) -> None:
        self.random = random
        self.draws = draws
        self.scramble = scramble
        self.relative = relative
        self.random_state = random_state

    @property
    def means_(self) -> Floats:
        """Return the means of the random coefficients."""
        self._check_fitted()
        return np.asarray(self.coef_[self.columns_])

    @property
    def standard_deviations_(self) -> Floats:
        """Return the standard deviations of the random coefficients."""
        self._check_fitted()
        return self.coef_[self.n_columns :]

    def check_parameters(self) -> None:
        """Raise an error where a parameter of the constructor is invalid."""
        check_number("draws", self.draws, least=1, whole=True)
        check_number("random_state", self.random_state, least=0, whole=True)
        given: Any = self.random
        if isinstance(given, str) or not hasattr(given, "__len__") or len(given) == 0:
            raise ParameterError(
                f"random is a list of columns, or a dict of columns to distributions; got {self.random!r}. "
                "Where no coefficient is random, MultinomialLogit."
            )

    def _prepare(self, sets: Sets) -> None:
        kinds = (
            dict(self.random) if isinstance(self.random, Mapping) else dict.fromkeys(self.random, "normal")
        )
        for column, kind in kinds.items():
            check_number("A column of random", column, least=0, below=sets.n_features, whole=True)
            check_choice("distribution", kind, ["normal", "lognormal"])
        self.columns_ = np.array(sorted(kinds))
        self.lognormal_ = np.array([kinds[column] == "lognormal" for column in self.columns_])
        logit = MultinomialLogit(l2=1e-6 * len(sets)).fit(sets)
        self.start_ = logit.coef_

    def _design(self, sets: Sets) -> _Panel:
        return self._learn_from(sets, np.arange(len(sets)))

    def _learn_from(self, sets: Sets, people: Index) -> _Panel:
        order = np.argsort(people, kind="stable")
        offsets = np.append(0, np.cumsum(sets.sizes[order]))
        shift = offsets[:-1] - sets.offsets[order]
        rows = np.arange(len(sets.objects)) - np.repeat(shift, sets.sizes[order])
        heads = np.append(0, np.cumsum(np.bincount(people)))
        features = Packed.centred(sets).features[rows]
        return _Panel(features, offsets, order, shift, heads, self._normals)

    def _start(self, packed: Packed) -> Floats:
        spread = packed.spread(packed.features)[self.columns_]
        means = self.start_.copy()
        own = means[self.columns_]
        means[self.columns_] = np.where(self.lognormal_, np.log(np.maximum(own, 0.1 / spread)), own)
        return np.append(means, np.where(self.lognormal_, 0.5, 0.5 / spread))

    def _steps(self, packed: Packed) -> Floats:
        means = 1 / packed.spread(packed.features)
        means[self.columns_] = np.where(self.lognormal_, 1.0, means[self.columns_])
        return np.append(means, means[self.columns_])

    def _names(self, features: Sequence[str]) -> list[str]:
        kinds = dict(zip(self.columns_, self.lognormal_, strict=True))
        prefix = {True: "log of ", False: ""}
        means = [
            f"mean of {prefix[bool(kinds[i])]}{name}" if i in kinds else name
            for i, name in enumerate(features)
        ]
        return means + [f"sd of {prefix[bool(log)]}{features[i]}" for i, log in kinds.items()]

    def _reported(self, theta: Floats) -> tuple[Floats, Floats]:
        signs = np.ones(len(theta))
        signs[len(theta) - len(self.columns_) :] = np.where(
            theta[len(theta) - len(self.columns_) :] < 0, -1, 1
        )
        return theta * signs, np.diag(signs)

    def _normals(self, n_people: int) -> Floats:
        """Return standard normal draws, (g, r, k)."""
        k = len(self.columns_)
        halton = qmc.Halton(k, scramble=self.scramble, seed=np.random.default_rng(self.random_state))
        if not self.scramble:
            halton.fast_forward(50)
        return np.asarray(ndtri(halton.random(n_people * self.draws))).reshape(n_people, self.draws, k)

    def _coefficients(self, theta: Floats, normals: Floats) -> Floats:
        """Return the random coefficients of each draw, (g, r, k)."""
        d = len(theta) - len(self.columns_)
        drawn = theta[:d][self.columns_] + theta[d:] * normals
        if self.lognormal_.any():
            powers = np.exp(np.minimum(drawn[..., self.lognormal_], LARGEST))
            drawn[..., self.lognormal_] = powers
        return np.asarray(drawn)

    def _log_p(self, theta: Floats, packed: Packed, drawn: Floats, person: Index) -> Floats:
        """Return the log-probability of each object under each draw of its person, (N, r)."""
        return packed.log_softmax(self._drawn_utilities(theta, packed, drawn, person))

    def _drawn_utilities(self, theta: Floats, packed: Packed, drawn: Floats, person: Index) -> Floats:
        """Return the utility of each object under each draw of its person, (N, r)."""
        d = len(theta) - len(self.columns_)
        fixed = theta[:d].copy()
        fixed[self.columns_] = 0.0
        utilities = np.repeat((packed.features @ fixed)[:, None], self.draws, axis=1)
        for k, column in enumerate(self.columns_):
            utilities += packed.features[:, [column]] * drawn[person, :, k]
        return utilities

    def _chunks(self, packed: _Panel) -> Iterator[tuple[slice, slice, Packed]]:
        """Yield stretches of people, with their sets, that fit into memory with all their draws."""
        heads, start = packed.heads, 0
        ends = packed.offsets[heads]
        while start < len(heads) - 1:
            stop = int(np.searchsorted(ends, ends[start] + CHUNK // self.draws))
            stop = min(max(stop - 1, start + 1), len(heads) - 1)
            sets = slice(heads[start], heads[stop])
            offsets = packed.offsets[heads[start] : heads[stop] + 1]
            part = Packed(packed.features[ends[start] : ends[stop]], offsets - offsets[0])
            yield slice(start, stop), sets, part
            start = stop

    def _utilities(self, theta: Floats, packed: Any) -> Floats:
        drawn = self._coefficients(theta, self._normals(1))
        parts = []
        for _, _, part in self._chunks(packed):
            log_p = self._log_p(theta, part, drawn, np.zeros_like(part.owner))
            parts.append(log_sum_exp(log_p.T, np.zeros(1, dtype=np.int64))[0] - np.log(self.draws))
        return np.concatenate(parts)

    def _logsum(self, theta: Floats, sets: Sets) -> Floats:
        """Return the mean over draws; features are centred in `_design`, so what all share is added again."""
        packed = self._design(sets)
        drawn = self._coefficients(theta, self._normals(1))  # (1, r, k)
        mean = theta[: len(theta) - len(self.columns_)].copy()
        mean[self.columns_] = drawn[0].mean(0)
        parts = [
            log_sum_exp(
                self._drawn_utilities(theta, part, drawn, np.zeros_like(part.owner)), part.starts
            ).mean(1)
            for _, _, part in self._chunks(packed)
        ]
        return np.asarray(np.concatenate(parts) + Packed.shared(sets) @ mean)

    def _contributions(self, theta: Floats, packed: Any, chosen: Index) -> tuple[Floats, Floats]:
        rows = chosen[packed.order] + packed.shift
        parts = [
            self._simulated(
                theta,
                part,
                rows[sets] - packed.offsets[sets.start],
                packed.heads[people] - sets.start,
                packed.normals[people],
            )
            for people, sets, part in self._chunks(packed)
        ]
        return np.concatenate([values for values, _ in parts]), np.concatenate(
            [slopes for _, slopes in parts]
        )

    def _simulated(
        self, theta: Floats, packed: Packed, chosen: Index, heads: Index, normals: Floats
    ) -> tuple[Floats, Floats]:
        """Return the log-likelihood of each person, (g,), and its gradient; ``heads``: their first sets."""
        counts = np.diff(np.append(heads, len(chosen)))
        person = np.repeat(np.arange(len(heads)), counts)[packed.owner]  # (N,)
        drawn = self._coefficients(theta, normals)  # (g, r, k)
        log_p = self._log_p(theta, packed, drawn, person)  # (N, r)
        own = np.add.reduceat(log_p[chosen], heads, axis=0)  # (g, r)
        total = np.logaddexp.reduce(own, axis=1)
        belief = np.exp(own - total[:, None])  # of each draw, given the choices
        p = np.exp(log_p)
        x = packed.features
        mixed = np.einsum("nr,nr->n", p, belief[person])
        slopes = np.add.reduceat(x[chosen] - packed.sum(mixed[:, None] * x), heads, axis=0)  # (g, d)
        spreads = np.empty((len(heads), len(self.columns_)))
        for k, column in enumerate(self.columns_):
            surprise = x[chosen, column][:, None] - packed.sum(p * x[:, [column]])  # (n, r)
            felt = belief * np.add.reduceat(surprise, heads, axis=0)  # (g, r)
            if self.lognormal_[k]:
                felt *= drawn[..., k]
            slopes[:, column] = felt.sum(1)
            spreads[:, k] = (felt * normals[..., k]).sum(1)
        return total - np.log(self.draws), np.concatenate([slopes, spreads], axis=1)
