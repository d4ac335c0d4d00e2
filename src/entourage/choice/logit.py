"""Multinomial logit: a linear, context-free utility."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from entourage.choice.base import ChoiceModel
from entourage.choice.likelihood import Floats, Index, Packed, codes_of, softmax_information, softmax_terms
from entourage.data.positions import code_positions, levels_of_positions
from entourage.data.sets import AnySets, Sets
from entourage.errors import ParameterError, ShapeError, check_number
from entourage.estimators.positions import effects_by_position

__all__ = ["MultinomialLogit", "one_hot", "ridge_start"]


class MultinomialLogit(ChoiceModel):
    r"""Choose with probabilities :math:`P_i = e^{u_i} / \sum_j e^{u_j}`, :math:`u_i = b^\top x_i` (McFadden 1974).

    The log-likelihood is concave: Newton's method finds its maximum.

    Parameters
    ----------
    alternatives : int, optional
        So many alternatives without features: objects have one feature, the id of the alternative, from 1, and
        each alternative has an intercept. The first one's is 0.
    l2 : float
        Penalty l2 / 2 on the square of each coefficient, in units of one over its feature's standard deviation
        within sets.
    relative : bool, "all", or list of columns or places
        Which numbers also enter as z-score and rank within their set (:mod:`entourage.data.relative`). The other
        standings differ from the number by a constant of the set, which cancels.
    base : dict of str to str, optional
        The base level of categories of a table, such as ``{"mode": "car"}``: its coefficient is 0, and those of other
        levels are relative to it. By default the first, which is the most frequent. With a penalty all levels are
        identified, and only the categories named here have a base.

    Attributes
    ----------
    positions_ : the positions at which objects were shown, where ``fit`` was given ``position``; else None. Each has an
        effect on the utility; that of the first is 0, those of the others are the last coefficients. Predictions
        leave them out.
    position_effects_ : the effect of each position, relative to their mean; else None

    Examples
    --------
    >>> import numpy as np
    >>> from entourage.choice import MultinomialLogit
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(2000, 4, 2))
    >>> y = (X @ [1.0, -2.0] + rng.gumbel(size=(2000, 4))).argmax(1)
    >>> MultinomialLogit().fit(X, y).coef_.round(1)
    array([ 1., -2.])
    """

    _concave = True
    _closed_form = True
    learns_position = True
    positions_: list[Any] | None = None

    has_logsum = True

    def __init__(
        self,
        alternatives: int | None = None,
        *,
        l2: float = 0.0,
        relative: bool | str | Sequence[str | int] = False,
        base: Mapping[str, str] | None = None,
    ) -> None:
        self.alternatives = alternatives
        self.l2 = l2
        self.relative = relative
        self.base = base

    def elasticities(self, X: AnySets, feature: int) -> Any:
        r"""Return by how many percent probabilities change as a feature grows by one percent, an (m, m) matrix a set.

        Row i, column j: :math:`\partial \log P_i / \partial \log x_{jk} = b_k x_{jk} ([i = j] - P_j)`. An
        (n, m, m) array where an array came, otherwise a list.
        """
        if self.alternatives is not None:
            raise ShapeError("Alternatives without features have no elasticities; fit to features.")
        if self.relative_ is not None:
            raise ParameterError(
                "With relative, a feature also acts through the standings of all objects; elasticities are of models "
                "without it."
            )
        sets = Sets.of(X)
        p = self.task.probabilities(sets, self._checked_scores(sets))
        check_number("feature", feature, least=0, below=self.n_features_in_, whole=True)
        if feature in self.dropped_:
            raise ParameterError(
                f"Feature {feature} is the base level of a category, which has no coefficient."
            )
        felt = self.coef_[feature - (self.dropped_ < feature).sum()] * sets.objects[:, feature].astype(
            np.float64
        )
        found: list[Any] = [
            np.diag(f) - np.broadcast_to(f * q, (len(q), len(q)))
            for f, q in zip(sets.unpack(felt), sets.unpack(p), strict=True)
        ]
        return found if isinstance(X, (Sets, list, tuple)) else np.stack(found)

    def linear_place(self, column: int) -> int | None:
        """Return where ``coef_`` has the coefficient of a feature; None for a base level."""
        return None if self.alternatives is not None else self._place_seen(column)

    def check_parameters(self) -> None:
        """Raise an error where a parameter of the constructor is invalid."""
        if self.alternatives is not None:
            check_number("alternatives", self.alternatives, least=2, whole=True)
            if self.relative not in (False, None):
                raise ParameterError(
                    "Alternatives without features have no standing in a set: leave relative out."
                )
        check_number("l2", self.l2, least=0)

    def _design(self, sets: Sets) -> Packed:
        packed = Packed.of(sets)
        return packed if self.alternatives is None else one_hot(packed, self.alternatives, first=1)

    def _prepare(self, sets: Sets) -> None:
        self.__dict__.pop("positions_", None)  # of an earlier fit
        if sets.position is not None:
            self.positions_ = levels_of_positions(sets.position)

    def _learn_from(self, sets: Sets, people: Index) -> Packed:
        packed = Packed.centred(sets) if self.alternatives is None else self._design(sets)
        if self.positions_ is None:
            return packed
        codes = code_positions(np.asarray(sets.position), self.positions_)
        shown = (codes[:, None] == np.arange(2, len(self.positions_) + 1)).astype(np.float64)
        return Packed(np.concatenate([packed.features, shown], axis=1), packed.offsets)

    @property
    def position_effects_(self) -> dict[Any, float] | None:
        """The effect of each position, relative to their mean."""
        if self.positions_ is None:
            return None
        others = self.theta_[len(self.theta_) - len(self.positions_) + 1 :]
        return effects_by_position(self.positions_, np.concatenate([[0.0], others]))

    def _start(self, packed: Packed) -> Floats:
        return np.zeros(packed.features.shape[1])

    def _steps(self, packed: Packed) -> Floats:
        if self.alternatives is not None:
            return np.ones(packed.features.shape[1])
        return 1 / packed.spread()

    def _names(self, features: Sequence[str]) -> list[str]:
        shown = [f"position {position}" for position in (self.positions_ or [])[1:]]
        if self.alternatives is None:
            return [*features, *shown]
        return [f"alternative {i}" for i in range(2, self.alternatives + 1)] + shown

    def _notes(self) -> list[str]:
        if self.positions_ is None:
            return []
        return [
            f"Effects of positions are relative to position {self.positions_[0]}; predictions leave them out."
        ]

    def _utilities(self, theta: Floats, packed: Packed) -> Floats:
        return packed.features @ theta[: packed.features.shape[1]]  # what is predicted has no positions

    def _contributions(self, theta: Floats, packed: Packed, chosen: Index) -> tuple[Floats, Floats]:
        return softmax_terms(packed.features @ theta, packed.features, packed, chosen)

    def _information(self, theta: Floats, packed: Packed, chosen: Index, weights: Floats) -> Floats:
        return softmax_information(packed.features @ theta, packed.features, packed, weights)


def ridge_start(sets: Sets) -> Floats:
    """Return the coefficients of a slightly penalised logit, which are finite whatever the data: where others begin."""
    plain = sets.with_features(sets.objects, None).with_position(None)
    plain.encoder = None
    return np.asarray(MultinomialLogit(l2=1e-6 * len(sets)).fit(plain).coef_)


def one_hot(packed: Packed, n_alternatives: int, *, first: int = 0) -> Packed:
    """Turn ids, the one feature, into indicators of the alternatives from ``first`` (counted from 0) on."""
    if packed.features.shape[1] != 1:
        raise ShapeError(
            f"With alternatives={n_alternatives}, objects have one feature, the id of the alternative; these have "
            f"{packed.features.shape[1]}. Leave alternatives out to use features."
        )
    codes = codes_of(packed.features[:, 0], n_alternatives, packed)
    indicators = (codes[:, None] == np.arange(first, n_alternatives)).astype(np.float64)
    return Packed(indicators, packed.offsets)
