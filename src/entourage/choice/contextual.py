"""Contextual logit: a linear utility with pairwise context effects of the other objects of the set."""

from collections.abc import Mapping, Sequence

import numpy as np

from entourage.choice.base import ChoiceModel
from entourage.choice.likelihood import (
    Floats,
    Index,
    Packed,
    rows_at_once,
    softmax_information,
    softmax_terms,
)
from entourage.choice.logit import one_hot
from entourage.data.sets import Sets
from entourage.errors import DataError, check_number

__all__ = ["ContextualLogit"]

MOST = 1 << 27  # entries of the information matrix, 1 GiB


class ContextualLogit(ChoiceModel):
    r"""A logit with pairwise context effects: the halo, or context-dependent, model.

    With features, :math:`u_i = b^\top x_i + \sum_{j \ne i} x_j^\top A x_i`; Tomlinson and Benson (2021) take a mean
    in place of the sum. Without (``alternatives``; Seshadri, Peysakhovich and Ugander 2019),
    :math:`u_i = \sum_{j \ne i} U_{ij}`: the effect of the presence of j on the utility of i.

    ``rank`` makes :math:`A = L R^\top`, or :math:`U_{ij} = T_i \cdot C_j`, with so few columns.

    Parameters
    ----------
    rank : int, optional
        The rank of the interactions; by default full. A full one makes the log-likelihood concave.
    alternatives : int, optional
        So many alternatives without features: objects have one feature, the id of the alternative, from 1.
    l2 : float
        Penalty l2 / 2 on the square of each parameter, in its typical size.
    relative : bool, "all", or list of columns or places
        Which numbers also enter as z-score and rank within their set (:mod:`entourage.data.relative`). The other
        standings differ from the number by a constant of the set, which cancels.
    base : dict of str to str, optional
        The base level of categories of a table, see `MultinomialLogit`.
    random_state : int
        Where low-rank factors start.

    Attributes
    ----------
    interactions_ : A, (d, d), or U, (alternatives, alternatives): with mean 0, since a constant added to all of U
        changes no probability, and 0 on its diagonal

    Examples
    --------
    >>> import numpy as np
    >>> from entourage.choice import ContextualLogit
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3, 1))
    >>> others = X.sum(1, keepdims=True) - X
    >>> y = ((X + 0.5 * others * X)[..., 0] + rng.gumbel(size=(2000, 3))).argmax(1)
    >>> ContextualLogit().fit(X, y).interactions_.round(1)
    array([[0.5]])
    """

    def __init__(
        self,
        rank: int | None = None,
        *,
        alternatives: int | None = None,
        l2: float = 0.0,
        relative: bool | str | Sequence[str | int] = False,
        base: Mapping[str, str] | None = None,
        random_state: int = 0,
    ) -> None:
        self.rank = rank
        self.alternatives = alternatives
        self.l2 = l2
        self.relative = relative
        self.base = base
        self.random_state = random_state

    @property
    def interactions_(self) -> Floats:
        """Return A, or U."""
        self._check_fitted()
        if self.alternatives is None:
            return self.coef_[self.n_columns :].reshape(self.n_columns, self.n_columns)
        found = np.zeros((self.alternatives, self.alternatives))
        found[~np.eye(self.alternatives, dtype=bool)] = self.coef_
        return found

    _closed_form = True

    @property
    def _concave(self) -> bool:  # type: ignore[override]
        return self.rank is None

    def check_parameters(self) -> None:
        """Raise an error where a parameter of the constructor is invalid."""
        if self.rank is not None:
            check_number("rank", self.rank, least=1, whole=True)
        if self.alternatives is not None:
            check_number("alternatives", self.alternatives, least=2, whole=True)
        check_number("l2", self.l2, least=0)
        check_number("random_state", self.random_state, least=0, whole=True)

    def _design(self, sets: Sets) -> Packed:
        packed = Packed.of(sets)
        if self.alternatives is not None:
            packed = one_hot(packed, self.alternatives)
            twice = packed.sum(packed.features) > 1
            if twice.any():
                i, code = np.argwhere(twice)[0]
                raise DataError(f"Alternative {code + 1} is in set {i} twice; keep one of them.")
        return packed

    def _learn_from(self, sets: Sets, people: Index) -> Packed:
        packed = self._design(sets)
        d = packed.features.shape[1]
        width = d * d if self.rank is None else 2 * d * self.rank
        if width * width > MOST:
            way_out = "Choose a rank." if self.rank is None else "Choose a smaller rank."
            raise DataError(
                f"{d:,} features make {width:,} parameters of pairs, too many for an information matrix. {way_out}"
            )
        return packed

    def _factors(self, theta: Floats, d: int) -> tuple[Floats, Floats]:
        """Return L and R, (d, rank)."""
        left, right = theta[-2 * d * (self.rank or 0) :].reshape(2, d, -1)
        return left, right

    def _start(self, packed: Packed) -> Floats:
        steps = self._steps(packed)
        if self.rank is None:
            return np.zeros(len(steps))
        start = 0.3 * np.random.default_rng(self.random_state).normal(size=len(steps)) * steps
        start[: len(steps) - 2 * packed.features.shape[1] * self.rank] = 0.0
        return np.asarray(start)

    def _steps(self, packed: Packed) -> Floats:
        d = packed.features.shape[1]
        if self.alternatives is not None:
            return np.ones(d * (d - 1) if self.rank is None else 2 * d * self.rank)
        if self.rank is None:
            return 1 / packed.spread(lambda part: self._slopes(np.zeros(0), part), d + d * d)
        squares = np.sum([(part.others**2).sum(0) for part in packed.parts(rows_at_once(1))], axis=0)
        own, other = 1 / packed.spread(), 1 / np.sqrt(squares / len(packed.features) + 1e-300)
        return np.concatenate([own, np.repeat(other, self.rank), np.repeat(own, self.rank)])

    def _names(self, features: Sequence[str]) -> list[str]:
        if self.alternatives is None:
            return [*features, *(f"other's {a} x own {b}" for a in features for b in features)]
        ids = range(1, self.alternatives + 1)
        return [f"{i} beside {j}" for i in ids for j in ids if i != j]

    def _slopes(self, theta: Floats, packed: Packed) -> Floats:
        """Return the derivatives of the utilities by the parameters, (N, p)."""
        x, others = packed.features, packed.others
        n, d = x.shape
        if self.rank is not None:
            left, right = self._factors(theta, d)
            by_left = others[:, :, None] * (x @ right)[:, None, :]
            by_right = x[:, :, None] * (others @ left)[:, None, :]
            pairs = np.concatenate([by_left.reshape(n, -1), by_right.reshape(n, -1)], axis=1)
        elif self.alternatives is None:
            pairs = (others[:, :, None] * x[:, None, :]).reshape(n, -1)
        else:
            pairs = (x[:, :, None] * others[:, None, :])[:, ~np.eye(d, dtype=bool)]
        return pairs if self.alternatives is not None else np.concatenate([x, pairs], axis=1)

    def _utilities(self, theta: Floats, packed: Packed) -> Floats:
        x = packed.features
        if self.rank is None:
            d = x.shape[1]
            if self.alternatives is None:
                own, pull = x @ theta[:d], theta[d:].reshape(d, d)
            else:
                own, pull = np.zeros(len(x)), np.zeros((d, d))
                pull.T[~np.eye(d, dtype=bool)] = theta  # U is of (own, other)
            return np.asarray(own + ((packed.others @ pull) * x).sum(1))
        left, right = self._factors(theta, x.shape[1])
        utilities = ((packed.others @ left) * (x @ right)).sum(1)
        return np.asarray(utilities if self.alternatives is not None else utilities + x @ theta[: x.shape[1]])

    def _contributions(self, theta: Floats, packed: Packed, chosen: Index) -> tuple[Floats, Floats]:
        return softmax_terms(self._utilities(theta, packed), self._slopes(theta, packed), packed, chosen)

    def _information(self, theta: Floats, packed: Packed, chosen: Index, weights: Floats) -> Floats:
        utilities = self._utilities(theta, packed)
        found = softmax_information(utilities, self._slopes(theta, packed), packed, weights)
        if self.rank is not None:  # utilities bend: each entry of L multiplies one of R
            x = packed.features
            surprise = -np.exp(packed.log_softmax(utilities))
            surprise[chosen] += 1
            surprise *= weights[packed.owner]
            bend = np.kron((packed.others * surprise[:, None]).T @ x, np.eye(self.rank))
            middle, half = len(theta) - len(bend), len(bend)
            found[middle - half : middle, middle:] -= bend
            found[middle:, middle - half : middle] -= bend.T
        return found

    def _reported(self, theta: Floats) -> tuple[Floats, Floats]:
        d = self.n_columns if self.alternatives is None else self.alternatives
        values, slopes = theta, np.eye(len(theta))
        if self.rank is not None:
            left, right = self._factors(theta, d)
            product, same = left @ right.T, np.eye(d)
            by_left = np.einsum("ac,bk->abck", same, right).reshape(d, d, -1)
            by_right = np.einsum("bc,ak->abck", same, left).reshape(d, d, -1)
            by_both = np.concatenate([by_left, by_right], axis=2)  # (d, d, 2 d rank)
            if self.alternatives is not None:
                kept = ~np.eye(d, dtype=bool)
                values, slopes = product.T[kept], by_both.transpose(1, 0, 2)[kept]
            else:
                values = np.append(theta[:d], product)
                slopes = np.zeros((len(values), len(theta)))
                slopes[:d, :d] = np.eye(d)
                slopes[d:, d:] = by_both.reshape(d * d, -1)
        if self.alternatives is not None:
            values, slopes = values - values.mean(), slopes - slopes.mean(0)
        return values, slopes
