"""Choice models in closed form: logit and nested logit, read off the probabilities of all objects together."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from entourage.choice import MultinomialLogit, NestedLogit
from entourage.decisions.assortment_problem import AssortmentProblem
from entourage.nets.registry import entry_of

__all__ = ["Structure", "is_context_free", "structure_of"]

Floats: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.int64]

_LEAST = 1e-250  # a probability that keeps its digits


@dataclass(frozen=True, eq=False)
class Structure:
    r"""Weights :math:`w_i` by which the probabilities of every subset S are known.

    With nests B of dissimilarity λ, the weight of what S has of a nest is
    :math:`W_B(S) = P_B \, (\sum_{i \in S ∩ B} w_i / P_B)^λ`, and a set's probabilities are proportional to these and to
    the weight of nothing. A logit has a nest for each object.

    Attributes
    ----------
    weights : the probability of each object where all are offered, (s, m)
    nothing : that of the outside option, 0 without one, (s,)
    logsum : that of all objects, (s,); 0 where the objective is another
    nest : of each object, (m,)
    dissimilarity : λ of each nest
    """

    weights: Floats
    nothing: Floats
    logsum: Floats
    nest: Index
    dissimilarity: Floats

    @property
    def is_logit(self) -> bool:
        """Whether this is a logit: no two objects share a nest."""
        return len(np.unique(self.nest)) == len(self.nest)


def is_context_free(model: Any) -> bool:
    """Whether the utility of an object depends on nothing but the object and its situation, by construction.

    Examples
    --------
    >>> from entourage.choice import ContextualLogit, MultinomialLogit
    >>> X = np.random.default_rng(0).normal(size=(50, 3, 1))
    >>> y = np.arange(50) % 3
    >>> [is_context_free(kind().fit(X, y)) for kind in (MultinomialLogit, ContextualLogit)]
    [True, False]
    """
    if type(model) is MultinomialLogit:  # what is derived from it may have other utilities
        return model.relative_ is None
    net, view = getattr(model, "net_", None), getattr(model, "view_", None)
    if (
        net is None
        or getattr(model, "blend_", None) is not None
        or getattr(view, "relative", None) is not None
    ):
        return False
    entry = entry_of(net)
    return entry is not None and entry.net is type(net) and not entry.context


def structure_of(problem: AssortmentProblem) -> Structure | None:
    """Return the closed form of a market, or None where it has none."""
    model = problem.market.model
    if problem.market.kind == "subset":
        return None
    nested = type(model) is NestedLogit and model.relative_ is None
    if not nested and not is_context_free(model):
        return None
    m, n = problem.candidates.m, problem.n_situations
    everything = problem.sets_of(np.arange(m)[None])
    weights = np.asarray(problem.market.probabilities(everything), dtype=np.float64).reshape(n, m)
    outside = problem.market.outside(everything)
    nothing = np.zeros(n) if outside is None else np.asarray(outside, dtype=np.float64)
    if (weights < _LEAST).any() or (outside is not None and (nothing < _LEAST).any()):
        return None  # too far apart for this
    nest, dissimilarity = np.arange(m), np.ones(m)
    if nested:
        ids = model.ids_of(everything).reshape(n, m)
        if (ids != ids[0]).any():
            return None  # an object is another alternative in another situation
        nest = model.nest_of_[np.searchsorted(model.alternatives_, ids[0])]
        dissimilarity = np.ones(int(model.nest_of_.max()) + 1)
        dissimilarity[: len(model.nests)] = model.dissimilarities_
        nest, own = np.unique(nest, return_inverse=True)
        nest, dissimilarity = own, dissimilarity[nest]
    logsum = np.zeros(n)
    if problem.objective == "surplus":
        logsum = np.asarray(problem.market.logsum(everything), dtype=np.float64)
    return Structure(weights, nothing, logsum, nest, dissimilarity)
