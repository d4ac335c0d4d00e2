"""Random regret: an object is disliked for each attribute in which another one of its set is better."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from entourage.choice.base import ChoiceModel
from entourage.choice.columns import place_of
from entourage.choice.likelihood import Floats, Index, Packed, softmax_terms, stretches
from entourage.choice.logit import ridge_start
from entourage.data.sets import Sets
from entourage.errors import ParameterError, check_number

__all__ = ["RandomRegret"]

MOST_PAIRS = 500_000  # pairs of objects at once


class RandomRegret(ChoiceModel):
    r"""Choose by least regret (Chorus 2010), with probabilities :math:`P_i = e^{-R_i} / \sum_j e^{-R_j}`.

    .. math:: R_i = \sum_{j \ne i} \sum_k μ \log(1 + e^{b_k (x_{jk} - x_{ik}) / μ})

    Being worse than another object in an attribute costs more than being better gains, so that compromises are
    favoured. At μ = 1 this is the classic model; the smaller μ, the larger the asymmetry; as μ grows the model becomes
    a linear logit (μRRM; van Cranenburgh, Guevara and Chorus 2015). In a small set b is about half that of a linear
    logit times the number of objects: regrets add up over all of them.

    Parameters
    ----------
    scale : float or "estimated"
        μ.
    linear : list of columns or places, optional
        Columns that enter the utility as they are, without regret: constants of alternatives. By default the
        categories and flags of a table, and none of an array.
    relative : bool, "all", or list of columns or places
        Which numbers also enter as z-score and rank within their set (:mod:`entourage.data.relative`).
    base : dict of str to str, optional
        The base level of categories of a table, see `MultinomialLogit`.

    Attributes
    ----------
    scale_ : μ
    linear_ : which columns enter linearly, (d,)

    Examples
    --------
    >>> import numpy as np
    >>> from entourage.choice import RandomRegret
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3000, 3, 1))
    >>> regret = np.log1p(np.exp(X[:, None, :, 0] - X[:, :, None, 0])).sum(2)  # of each object, itself included
    >>> y = (rng.gumbel(size=(3000, 3)) - regret).argmax(1)
    >>> RandomRegret().fit(X, y).coef_.round(1)
    array([1.])
    """

    def __init__(
        self,
        *,
        scale: float | str = 1.0,
        linear: Sequence[str | int] | None = None,
        relative: bool | str | Sequence[str | int] = False,
        base: Mapping[str, str] | None = None,
    ) -> None:
        self.scale = scale
        self.linear = linear
        self.relative = relative
        self.base = base

    @property
    def scale_(self) -> float:
        """Return μ."""
        self._check_fitted()
        return float(self.coef_[-1]) if self.scale == "estimated" else float(self.scale)

    def check_parameters(self) -> None:
        """Raise an error where a parameter of the constructor is invalid."""
        if self.scale != "estimated":
            if isinstance(self.scale, str):
                raise ParameterError(f'scale needs a number above 0, or "estimated"; got {self.scale!r}.')
            check_number("scale", self.scale, above=0)

    def _prepare(self, sets: Sets) -> None:
        names = self._names_of(sets)
        if self.linear is not None:
            width = sets.n_features + len(self.dropped_)
            chosen = [place_of(one, names, self.dropped_, width, "linear") for one in self.linear]
        else:
            chosen = []
            if sets.encoder is not None:
                text = [n for c in sets.encoder.columns if c.kind in ("category", "flag") for n in c.names]
                chosen = [i for i, name in enumerate(names) if name in text]
        self.linear_ = np.isin(np.arange(sets.n_features), chosen)
        self.begin_ = ridge_start(sets)

    def _start(self, packed: Packed) -> Floats:
        size = float(packed.sizes.mean())  # at b = 0, regret falls by b m / 2
        start = np.where(self.linear_, self.begin_, 2 * self.begin_ / size)
        return np.append(start, 0.0) if self.scale == "estimated" else start

    def _steps(self, packed: Packed) -> Floats:
        steps = 1 / packed.spread()
        return np.append(steps, 1.0) if self.scale == "estimated" else steps

    def _design(self, sets: Sets) -> Packed:
        return Packed.centred(sets)

    def _names(self, features: Sequence[str]) -> list[str]:
        return [*features, "scale μ"] if self.scale == "estimated" else list(features)

    def _reported(self, theta: Floats) -> tuple[Floats, Floats]:
        if self.scale != "estimated":
            return theta, np.eye(len(theta))
        values = np.append(theta[:-1], np.exp(theta[-1]))
        return values, np.diag(np.append(np.ones(len(theta) - 1), values[-1]))

    def _utilities(self, theta: Floats, packed: Packed) -> Floats:
        return np.concatenate([u for u, _, _ in self._felt(theta, packed, slopes=False)])

    def _felt(self, theta: Floats, packed: Packed, *, slopes: bool = True) -> Any:
        """Yield minus the regrets (N,), their derivatives (N, p) and the sets of stretches of sets."""
        d = packed.features.shape[1]
        b, mu = theta[:d], float(np.exp(theta[d])) if len(theta) > d else float(self.scale)
        pairs = np.append(0, np.cumsum(packed.sizes**2))
        for start, stop in stretches(pairs, MOST_PAIRS):
            part = packed.part(start, stop)
            own, other, heads = _pairs(part)
            regretted = ~self.linear_
            z = (part.features[other] - part.features[own])[:, regretted] * (b[regretted] / mu)
            felt = np.logaddexp(0.0, z)  # (P, r)
            itself = (own == other)[:, None]
            felt = np.where(itself, 0.0, felt)
            utilities = part.features[:, self.linear_] @ b[self.linear_] - mu * np.add.reduceat(
                felt.sum(1), heads
            )
            found = np.zeros((len(part.features), len(theta) if slopes else 0))
            if slopes:
                share = np.where(itself, 0.0, 1 / (1 + np.exp(-np.clip(z, -700, 700))))
                away = (part.features[other] - part.features[own])[:, regretted]
                found[:, np.flatnonzero(self.linear_)] = part.features[:, self.linear_]
                found[:, np.flatnonzero(regretted)] = -np.add.reduceat(share * away, heads)
                if len(theta) > d:
                    found[:, d] = -mu * np.add.reduceat((felt - z * share).sum(1), heads)
            yield utilities, found, part

    def _contributions(self, theta: Floats, packed: Packed, chosen: Index) -> tuple[Floats, Floats]:
        values, gradients, begin, row = [], [], 0, 0
        for utilities, slopes, part in self._felt(theta, packed):
            own = chosen[begin : begin + len(part.sizes)] - row
            value, gradient = softmax_terms(utilities, slopes, part, own)
            values.append(value)
            gradients.append(gradient)
            begin, row = begin + len(part.sizes), row + len(part.features)
        return np.concatenate(values), np.concatenate(gradients)

    def _notes(self) -> list[str]:
        some = [name for name, own in zip(self.parameter_names_, self.linear_, strict=False) if own]
        return [f"Without regret, linear in the utility: {', '.join(some)}."] if some else []


def _pairs(packed: Packed) -> tuple[Index, Index, Index]:
    """Return all pairs of objects of a set, itself included: the one, the other, and where each one's pairs begin."""
    own = np.repeat(np.arange(len(packed.features)), packed.sizes[packed.owner])
    heads = np.append(0, np.cumsum(packed.sizes[packed.owner]))[:-1]
    other = np.arange(len(own)) - heads[own] + packed.starts[packed.owner][own]
    return own, other, heads
