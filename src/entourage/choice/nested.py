"""Nested logit: alternatives of a nest are closer substitutes."""

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from entourage.choice.base import ChoiceModel
from entourage.choice.likelihood import Floats, Index, Packed, log_sum_exp
from entourage.data.sets import Sets
from entourage.errors import DataError, ParameterError, check_number

__all__ = ["NestedLogit"]


@dataclass(frozen=True, eq=False)
class _Nests(Packed):
    """Objects in the order of sets and, within each, of nests."""

    place: Index  # the row of each object of the input, (N,)
    heads: Index  # the first row of each group, (G,): a group is the objects of one nest in one set
    nest: Index  # of each group, (G,)
    group: Index  # of each row, (N,)
    groups: Packed  # the groups of each set


class NestedLogit(ChoiceModel):
    r"""Choose a nest, then one of its alternatives (McFadden 1978).

    With the inclusive value :math:`I_B = \log \sum_{j \in B} e^{u_j / λ_B}` over the available alternatives of nest B,

    .. math::
        P_i = \frac{e^{u_i / λ_B}}{e^{I_B}} \cdot \frac{e^{λ_B I_B}}{\sum_C e^{λ_C I_C}}, \quad u_i = a_i + b^\top x_i.

    At λ = 1 this is the multinomial logit. λ may be any number above 0; above 1 the model contradicts utility
    maximisation for some sets, and ``outside_`` names these nests.

    Parameters
    ----------
    nests : list of lists of int
        The ids of the alternatives in each nest. Those in none are a nest each. A nest of one has λ = 1.
    alternative : int
        The column that holds the id of the alternative, a whole number; the other columns are features.
    intercepts : bool
        Whether each alternative has an intercept; that of the smallest id is 0.
    relative : bool, "all", or list of columns or places
        Which numbers also enter as z-score and rank within their set (:mod:`entourage.data.relative`). The other
        standings differ from the number by a constant of the set, which cancels.

    Attributes
    ----------
    dissimilarities_ : λ of each nest given
    outside_ : the places of nests with λ above 1
    alternatives_ : the ids, ascending

    Examples
    --------
    >>> import numpy as np
    >>> from entourage.choice import NestedLogit
    >>> rng = np.random.default_rng(0)
    >>> X = np.stack([np.tile([1, 2, 3], (3000, 1)), rng.normal(size=(3000, 3))], axis=2)  # train, bus, blue bus
    >>> shared = rng.gumbel(size=(3000, 1)) * [0, 1, 1]  # the buses please and displease together
    >>> y = (X[..., 1] + shared + rng.gumbel(size=(3000, 3))).argmax(1)
    >>> bool(NestedLogit([[2, 3]]).fit(X, y).dissimilarities_[0] < 0.9)
    True
    """

    has_logsum = True

    def __init__(
        self,
        nests: Sequence[Sequence[int]],
        *,
        alternative: int = 0,
        intercepts: bool = True,
        relative: bool | str | Sequence[str | int] = False,
    ) -> None:
        self.nests = nests
        self.alternative = alternative
        self.intercepts = intercepts
        self.relative = relative

    def check_parameters(self) -> None:
        """Raise an error where a parameter of the constructor is invalid."""
        check_number("alternative", self.alternative, least=0, whole=True)
        try:
            ids = [i for nest in self.nests for i in nest]
        except TypeError:
            raise ParameterError(
                f"nests is a list of lists of ids, [[1, 2], [3, 4]] say; got {self.nests!r}."
            ) from None
        if any(len(nest) == 0 for nest in self.nests):
            raise ParameterError("A nest is empty; give it the ids of its alternatives, or leave it out.")
        twice = sorted(i for i, count in Counter(ids).items() if count > 1)
        if twice:
            raise ParameterError(f"Alternative {twice[0]} is in two nests; an alternative is in one at most.")

    @property
    def dissimilarities_(self) -> Floats:
        """Return λ of each nest given."""
        self._check_fitted()
        return self._lambdas(self.theta_)[: len(self.nests)]

    @property
    def outside_(self) -> list[int]:
        """Return the places of nests with λ above 1."""
        return [i for i, value in enumerate(self.dissimilarities_) if value > 1]

    def _prepare(self, sets: Sets) -> None:
        if self.alternative >= sets.n_features:
            raise DataError(
                f"alternative={self.alternative} is the column of ids, but objects have {sets.n_features} "
                "features, counted from 0."
            )
        self.alternatives_ = np.unique(sets.objects[:, self.alternative])
        strange = self.alternatives_[self.alternatives_ != np.round(self.alternatives_)]
        if len(strange):
            raise DataError(
                f"Column {self.alternative} should hold ids, whole numbers; there is {strange[0]:g}. "
                "Name the column of ids with alternative=."
            )
        given = {i: k for k, nest in enumerate(self.nests) for i in nest}
        unknown = sorted(i for i in given if i not in self.alternatives_)
        if unknown:
            raise DataError(
                f"Alternative {unknown[0]} of nests is in no set. Leave it out, or check column {self.alternative}."
            )
        alone = [i for i in self.alternatives_ if i not in given]
        given |= {i: len(self.nests) + k for k, i in enumerate(alone)}
        self.nest_of_ = np.array([given[i] for i in self.alternatives_])  # of each alternative
        self.estimated_ = np.flatnonzero(np.bincount(self.nest_of_) > 1)  # the nests whose λ is not 1

    def _design(self, sets: Sets) -> _Nests:
        ids = sets.objects[:, self.alternative]
        known = np.isin(ids, self.alternatives_)
        if not known.all():
            raise DataError(
                f"Alternative {ids[int(np.argmin(known))]:g} was not among those learnt from: "
                f"{', '.join(f'{i:g}' for i in self.alternatives_)}. Learn from sets that have it."
            )
        code = np.searchsorted(self.alternatives_, ids)
        owner = np.repeat(np.arange(len(sets)), sets.sizes)
        order = np.lexsort((self.nest_of_[code], owner))
        nest, owner = self.nest_of_[code][order], owner[order]
        begins = np.append(True, (np.diff(nest) != 0) | (np.diff(owner) != 0))
        heads = np.flatnonzero(begins)
        features = np.delete(Packed.centred(sets).features, self.alternative, axis=1)
        if self.intercepts:
            dummies = (code[:, None] == np.arange(1, len(self.alternatives_))).astype(np.float64)
            features = np.concatenate([dummies, features], axis=1)
        counts = np.bincount(owner[heads], minlength=len(sets))
        groups = Packed(np.zeros((len(heads), 0)), np.append(0, np.cumsum(counts)))
        group = np.cumsum(begins) - 1
        return _Nests(features[order], sets.offsets, np.argsort(order), heads, nest[heads], group, groups)

    def _lambdas(self, theta: Floats) -> Floats:
        """Return λ of every nest, those of one alternative included."""
        lambdas = np.ones(int(self.nest_of_.max()) + 1)
        lambdas[self.estimated_] = np.exp(theta[len(theta) - len(self.estimated_) :])
        return lambdas

    def _start(self, packed: Packed) -> Floats:
        return np.zeros(packed.features.shape[1] + len(self.estimated_))

    def _steps(self, packed: Packed) -> Floats:
        return np.append(1 / packed.spread(packed.features), np.ones(len(self.estimated_)))

    def _names(self, features: Sequence[str]) -> list[str]:
        numbers = [name for i, name in enumerate(features) if i != self.alternative]
        intercepts = [f"alternative {i:g}" for i in self.alternatives_[1:]] if self.intercepts else []
        return [*intercepts, *numbers, *(f"λ of nest {i}" for i in self.estimated_)]

    def _reported(self, theta: Floats) -> tuple[Floats, Floats]:
        linear = len(theta) - len(self.estimated_)
        values = np.append(theta[:linear], np.exp(theta[linear:]))
        return values, np.diag(np.append(np.ones(linear), values[linear:]))

    def _utilities(self, theta: Floats, packed: Any) -> Floats:
        _, within, between = self._parts(theta, packed)
        return np.asarray((within + between[packed.group])[packed.place])

    def _logsum(self, theta: Floats, sets: Sets) -> Floats:
        nests = self._design(sets)
        inclusive, _, _ = self._parts(theta, nests)
        found = log_sum_exp(self._lambdas(theta)[nests.nest] * inclusive, nests.groups.starts)
        shared = np.delete(Packed.shared(sets), self.alternative, axis=1)  # features are centred in `_design`
        end = nests.features.shape[1]
        return np.asarray(found + shared @ theta[end - shared.shape[1] : end])

    def _parts(self, theta: Floats, nests: _Nests) -> tuple[Floats, Floats, Floats]:
        """Return inclusive values (G,), and the log-probabilities within nests (N,) and of nests (G,)."""
        scale = self._lambdas(theta)[nests.nest]
        scaled = nests.features @ theta[: nests.features.shape[1]] / scale[nests.group]
        inclusive = log_sum_exp(scaled, nests.heads)
        return inclusive, scaled - inclusive[nests.group], nests.groups.log_softmax(scale * inclusive)

    def _contributions(self, theta: Floats, packed: Any, chosen: Index) -> tuple[Floats, Floats]:
        inclusive, within, between = self._parts(theta, packed)
        x, row = packed.features, packed.place[chosen]
        g, lambdas = packed.group[row], self._lambdas(theta)
        scale = lambdas[packed.nest]
        u = x @ theta[: x.shape[1]]
        share, nest_share = np.exp(within), np.exp(between)
        x_mean = np.add.reduceat(share[:, None] * x, packed.heads, axis=0)  # (G, q), over each nest
        u_mean = np.add.reduceat(share * u, packed.heads)
        own = scale[g][:, None]
        linear = x[row] / own + (1 - 1 / own) * x_mean[g] - packed.groups.sum(nest_share[:, None] * x_mean)
        gain = inclusive - u_mean / scale  # d(λ I) / dλ
        by_nest = np.zeros((len(chosen), len(lambdas)))
        by_nest[packed.groups.owner, packed.nest] = -nest_share * gain
        by_nest[np.arange(len(chosen)), packed.nest[g]] += gain[g] + (u_mean[g] - u[row]) / scale[g] ** 2
        slopes = (by_nest * lambdas)[:, self.estimated_]  # by log λ
        return within[row] + between[g], np.concatenate([linear, slopes], axis=1)

    def _notes(self) -> list[str]:
        return [f"λ of nest {i} is above 1: no utility maximisation there." for i in self.outside_]

    def _warn(self) -> None:
        super()._warn()
        k = len(self.estimated_)
        far = (self.coef_ - 1.96 * self.standard_errors_)[len(self.coef_) - k :] > 1
        if far.any():
            warnings.warn(
                f"λ of nest {self.estimated_[int(np.argmax(far))]} is clearly above 1, which contradicts utility "
                "maximisation: its alternatives are less similar than others. Change the nests.",
                UserWarning,
                stacklevel=3,
            )
