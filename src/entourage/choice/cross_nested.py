"""Cross-nested logit: an alternative may be in several nests, with a share in each."""

from collections.abc import Mapping, Sequence

import numpy as np

from entourage.choice.likelihood import Floats
from entourage.choice.nested import NestedLogit
from entourage.errors import check_choice

__all__ = ["CrossNestedLogit"]


class CrossNestedLogit(NestedLogit):
    r"""A nested logit in which alternatives may be in several nests (Vovsha 1997; Wen and Koppelman 2001).

    With shares :math:`α_{iB} \ge 0` of alternative i in its nests, which sum to 1,

    .. math::
        P_i = \sum_B \frac{(α_{iB} e^{u_i})^{1 / λ_B}}{e^{I_B}} \cdot \frac{e^{λ_B I_B}}{\sum_C e^{λ_C I_C}}, \quad
        I_B = \log \sum_{j \in B} (α_{jB} e^{u_j})^{1 / λ_B}.

    Where no alternative is in two nests this is `NestedLogit`. The likelihood may have local maxima, and is flat in the
    shares where the λ of their nests are 1.

    Parameters
    ----------
    nests : list of lists of int or str
        The ids of the alternatives in each nest; one may be in several. Those in none are a nest each.
    alternative : int or str
        The column that holds the id of the alternative, see `NestedLogit`.
    allocation : {"estimated", "equal"}
        Whether the shares of an alternative in its nests are estimated, or all the same.
    intercepts : bool
        Whether each alternative has an intercept; that of the smallest id is 0.
    relative : bool, "all", or list of columns or places
        Which numbers also enter as z-score and rank within their set (:mod:`entourage.data.relative`).
    base : dict of str to str, optional
        The base level of other categories of a table, see `MultinomialLogit`.

    Attributes
    ----------
    allocations_ : α of each alternative (rows, ascending ids) in each nest given, (alternatives, nests)
    dissimilarities_ : λ of each nest given

    Examples
    --------
    >>> import numpy as np
    >>> from entourage.choice import CrossNestedLogit
    >>> rng = np.random.default_rng(0)
    >>> X = np.stack([np.tile([1, 2, 3], (1000, 1)), rng.normal(size=(1000, 3))], axis=2)
    >>> y = (X[..., 1] + rng.gumbel(size=(1000, 3))).argmax(1)
    >>> model = CrossNestedLogit([[1, 2], [2, 3]], allocation="equal").fit(X, y)
    >>> model.allocations_
    array([[1. , 0. ],
           [0.5, 0.5],
           [0. , 1. ]])
    """

    def __init__(
        self,
        nests: Sequence[Sequence[int | str]],
        *,
        alternative: int | str = 0,
        allocation: str = "estimated",
        intercepts: bool = True,
        relative: bool | str | Sequence[str | int] = False,
        base: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(nests, alternative=alternative, intercepts=intercepts, relative=relative, base=base)
        self.allocation = allocation

    @property
    def allocations_(self) -> Floats:
        """Return the share of each alternative in each nest given."""
        self._check_fitted()
        found = np.zeros((len(self.alternatives_), int(self._cell_nest.max()) + 1))
        found[self._cell_code, self._cell_nest] = np.exp(self._allocations(self.theta_)[0])
        return found[:, : len(self.nests)]

    def check_parameters(self) -> None:
        """Raise an error where a parameter of the constructor is invalid."""
        check_choice("allocation", self.allocation, ["estimated", "equal"])
        super().check_parameters()

    def _check_overlap(self, twice: Sequence[int | str]) -> None:
        """Let alternatives be in several nests."""

    @property
    def n_allocations(self) -> int:
        """How many parameters share alternatives among nests."""
        return int(self._is_free().sum())

    def _is_free(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Whether each cell has a parameter: all but the first of each alternative, (C,)."""
        later = np.append(False, np.diff(self._cell_code) == 0)
        return later if self.allocation == "estimated" else np.zeros_like(later)

    def _allocations(self, theta: Floats) -> tuple[Floats, Floats]:
        free = self._is_free()
        utilities = np.zeros(len(free))
        end = len(theta) - len(self.estimated_)
        utilities[free] = theta[end - int(free.sum()) : end]
        same = self._cell_code[:, None] == self._cell_code  # (C, C): cells of one alternative
        log_total = np.logaddexp.reduce(np.where(same, utilities, -np.inf), axis=1)
        shares = np.exp(utilities - log_total)
        slopes = np.eye(len(free)) - np.where(same, shares, 0.0)
        return utilities - log_total, slopes[:, free]

    def _shares(self) -> list[str]:
        free = self._is_free()
        return [
            f"share of alternative {self._called(self.alternatives_[code])} in nest {nest}"
            for code, nest in zip(self._cell_code[free], self._cell_nest[free], strict=True)
        ]

    def _reported(self, theta: Floats) -> tuple[Floats, Floats]:
        values, slopes = super()._reported(theta)
        free = self._is_free()
        end = len(theta) - len(self.estimated_)
        own = slice(end - int(free.sum()), end)
        logs, by_theta = self._allocations(theta)
        values = values.copy()
        values[own] = np.exp(logs[free])
        slopes[own, own] = values[own][:, None] * by_theta[free]
        return values, slopes
