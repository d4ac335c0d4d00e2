"""Whether a model has a context-ablated control in the page: utilities outside of a set."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from entourage.data.sets import AnySets, Sets
from entourage.estimators.inputs import given_sets

__all__ = ["has_control"]

COPIES = 3  # of an object, in its own company
MOST = 60  # objects that are tried
SAME = 1e-6  # relative to the utilities in their sets: no difference


def has_control(model: Any, X: AnySets, situation: ArrayLike | None = None) -> bool:
    """Return whether objects differ when each is scored against copies of itself.

    They don't where utilities are log probabilities (a blend of choosers, a mixed logit): among m copies, every object
    has the probability 1 / m. Such a model says nothing about an object outside of its set.

    Parameters
    ----------
    model : fitted
    X, situation : sets as in ``predict``

    Examples
    --------
    >>> from entourage.baselines import LinearRanker
    >>> X = np.random.default_rng(0).normal(size=(50, 4, 2))
    >>> has_control(LinearRanker().fit(X, X[..., 0].argsort(1).argsort(1)), X)
    True
    """
    sets = given_sets(model, X, situation).sets
    count = max(1, int(np.searchsorted(sets.offsets, MOST)) - 1)
    sets = sets[: min(count, len(sets))]
    owner = np.repeat(np.arange(len(sets)), sets.sizes)
    shared = None if sets.situation is None else sets.situation[owner][:MOST]
    copies = Sets.of(np.repeat(np.asarray(sets.objects)[:MOST, None], COPIES, axis=1), None, shared)
    alone = np.asarray(model.predict_scores(copies), dtype=np.float64).reshape(-1, COPIES)[:, 0]
    inside = np.asarray(model.predict_scores(sets), dtype=np.float64)
    size = max(1.0, float(np.abs(inside).max(initial=0.0)))
    return bool(np.ptp(alone) > SAME * size or np.ptp(inside) <= SAME * size)
