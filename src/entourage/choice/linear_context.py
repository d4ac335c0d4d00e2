"""Linear context logit: the mean of the choice set changes the coefficients."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from entourage.choice.base import ChoiceModel
from entourage.choice.likelihood import Floats, Index, Packed, softmax_information, softmax_terms
from entourage.data.sets import Sets
from entourage.errors import check_number

__all__ = ["LinearContextLogit"]

SAME = 1e-12  # of the largest value: means that differ by less are the same


@dataclass(frozen=True, eq=False)
class _InContext(Packed):
    """Objects less the mean of their set, and that mean less the mean of all."""

    mean: Floats  # of the features whose mean varies, (n, k)

    def part(self, start: int, stop: int) -> Self:
        return replace(super().part(start, stop), mean=self.mean[start:stop])


class LinearContextLogit(ChoiceModel):
    r"""A logit whose coefficients depend on the mean of the choice set (LCL; Tomlinson and Benson 2021).

    .. math:: u_i = (b + A^\top \bar x_C)^\top x_i, \quad \bar x_C = \frac{1}{|C|} \sum_{j \in C} x_j.

    :math:`A_{kl} > 0`: the higher the mean of feature k in the set, the more feature l is liked. A is the transpose of
    the matrix in the paper, and has the same orientation as that of `ContextualLogit`, which sums over the other
    objects in place of the mean. The log-likelihood is concave: Newton's method finds its maximum.

    Parameters
    ----------
    l2 : float
        Penalty l2 / 2 on the square of each parameter, in its typical size.
    relative : bool, "all", or list of columns or places
        Which numbers also enter as z-score and rank within their set (:mod:`entourage.data.relative`).
    base : dict of str to str, optional
        The base level of categories of a table, see `MultinomialLogit`.

    Attributes
    ----------
    interactions_ : A, (d, d); its rows are 0 for features whose mean is the same in all sets
    centre_ : the mean of the means of sets learnt from
    varies_ : which features have a mean that differs between sets, (d,)

    Examples
    --------
    >>> import numpy as np
    >>> from entourage.choice import LinearContextLogit
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 3, 1))
    >>> u = (1 + 2 * X.mean(1, keepdims=True)) * X
    >>> y = (u[..., 0] + rng.gumbel(size=(5000, 3))).argmax(1)
    >>> LinearContextLogit().fit(X, y).interactions_.round()
    array([[2.]])
    """

    _concave = True
    _closed_form = True

    def __init__(
        self,
        *,
        l2: float = 0.0,
        relative: bool | str | Sequence[str | int] = False,
        base: Mapping[str, str] | None = None,
    ) -> None:
        self.l2 = l2
        self.relative = relative
        self.base = base

    @property
    def interactions_(self) -> Floats:
        """Return A."""
        self._check_fitted()
        found = np.zeros((self.n_columns, self.n_columns))
        found[self.varies_] = self.coef_[self.n_columns :].reshape(-1, self.n_columns)
        return found

    def check_parameters(self) -> None:
        """Raise an error where a parameter of the constructor is invalid."""
        check_number("l2", self.l2, least=0)

    def _prepare(self, sets: Sets) -> None:
        whole = Packed.of(sets)
        means = whole.sum(whole.features) / whole.sizes[:, None]
        self.centre_ = np.asarray(means.mean(0))
        largest = np.abs(whole.features).max(0)
        self.varies_ = np.abs(means - self.centre_).max(0) > SAME * largest

    def _design(self, sets: Sets) -> _InContext:
        whole = Packed.of(sets)
        away = whole.features[:, self.varies_] - self.centre_[self.varies_]
        mean = whole.sum(away) / whole.sizes[:, None]
        return _InContext(Packed.centred(sets).features, sets.offsets, mean)

    def _start(self, packed: Packed) -> Floats:
        d = packed.features.shape[1]
        return np.zeros(d + int(self.varies_.sum()) * d)

    def _steps(self, packed: Any) -> Floats:
        own = 1 / packed.spread()
        return np.append(own, np.outer(1 / np.sqrt((packed.mean**2).mean(0)), own))

    def _names(self, features: Sequence[str]) -> list[str]:
        means = [name for name, varies in zip(features, self.varies_, strict=True) if varies]
        return [*features, *(f"mean {a} x own {b}" for a in means for b in features)]

    def _slopes(self, packed: Any) -> Floats:
        x, mean = packed.features, packed.mean[packed.owner]
        return np.concatenate([x, (mean[:, :, None] * x[:, None, :]).reshape(len(x), -1)], axis=1)

    def _utilities(self, theta: Floats, packed: Any) -> Floats:
        d = packed.features.shape[1]
        of_sets = theta[:d] + packed.mean @ theta[d:].reshape(-1, d)  # (n, d)
        return np.asarray((packed.features * of_sets[packed.owner]).sum(1))

    def _contributions(self, theta: Floats, packed: Any, chosen: Index) -> tuple[Floats, Floats]:
        return softmax_terms(self._utilities(theta, packed), self._slopes(packed), packed, chosen)

    def _information(self, theta: Floats, packed: Any, chosen: Index, weights: Floats) -> Floats:
        return softmax_information(self._utilities(theta, packed), self._slopes(packed), packed, weights)

    def _reported(self, theta: Floats) -> tuple[Floats, Floats]:
        d = self.n_columns
        slopes = np.eye(len(theta))
        slopes[:d, d:] = -np.kron(
            self.centre_[self.varies_], np.eye(d)
        )  # b is of a set with mean 0, theta of one in the middle
        return slopes @ theta, slopes
