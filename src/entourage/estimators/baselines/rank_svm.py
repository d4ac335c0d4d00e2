"""RankSVM: a linear utility that separates the better from the worse of each pair."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from entourage.data.sets import Sets
from entourage.errors import check_number
from entourage.estimators.baselines.base import features_of, ordered_pairs
from entourage.estimators.baselines.pair_loss import LinearBaseline, Pairs, minimise, squared_hinge

__all__ = ["RankSVM"]

Floats: TypeAlias = NDArray[np.float64]


class RankSVM(LinearBaseline):
    r"""A linear support vector machine on the differences of pairs (Joachims 2002), with the squared hinge loss.

    Features are standardised. The weights minimise :math:`\frac12 |w|^2 + C \sum (\max(0, 1 - w^\top (x_i - x_j)))^2`
    over the pairs in which object i is better than object j; Newton's method finds the minimum, without a matrix of
    differences. Under a time limit it ends with the weights so far.

    Parameters
    ----------
    C : float
        The weight of margin violations against the size of the weights.
    max_pairs : int
        How many pairs to learn from; where there are more, so many are drawn.
    relative : bool, "all", or list of columns or places
        Which numbers are also seen relative to their set (:mod:`entourage.data.relative`): as z-score and
        rank, since the other standings differ from the number by a constant of the set.
    random_state : int
        Draws the pairs.

    Attributes
    ----------
    mean_, scale_ : of each feature in the training data
    coef_ : the weight of each standardised feature
    converged_ : whether the minimum was found

    Examples
    --------
    >>> import numpy as np
    >>> from entourage.baselines import RankSVM
    >>> X = np.random.default_rng(0).normal(size=(50, 4, 2))
    >>> ranks = (-X[..., 0]).argsort(1).argsort(1)
    >>> RankSVM().fit(X, ranks).score(X, ranks) > 0.99
    True
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        max_pairs: int = 1_000_000,
        relative: bool | str | Sequence[str | int] = False,
        random_state: int = 0,
    ) -> None:
        self.relative = relative
        self.C = C
        self.max_pairs = max_pairs
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_number("C", self.C, above=0)
        check_number("max_pairs", self.max_pairs, least=1, whole=True)

    def _learn(self, sets: Sets, weights: Floats) -> None:
        self._check_parameters()
        rng = np.random.default_rng(self.random_state)
        better, worse, owner = ordered_pairs(sets, at_most=self.max_pairs, rng=rng)
        cost = self.C * weights[owner]
        features = self._standardised(features_of(sets))
        self.coef_, self.converged_ = minimise(features, Pairs(better, worse, cost), squared_hinge)
