"""The best model of a comparison as its first outer fold had it, with the sets that were held out from it."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from entourage.data.sets import Sets
from entourage.estimators.base import SetPredictor
from entourage.estimators.blend import sets_for
from entourage.estimators.positions import learnable_sets
from entourage.selection.fold_fits import groups_for, seeded_clone
from entourage.tasks.ranking_metrics import LOWER_IS_BETTER

if TYPE_CHECKING:
    from entourage.selection.comparison import Comparison

__all__ = ["fit_best_held_out"]


def fit_best_held_out(comparison: "Comparison", sets: Sets) -> tuple[str, SetPredictor, NDArray[np.int64]]:
    """Fit the best candidate of a comparison once more to the training sets of its first outer fold.

    Parameters
    ----------
    comparison : what was found
    sets : what was compared on

    Returns
    -------
    name : the candidate of the best mean
    model : fitted, with the seed that it had in this fold
    held_out : which of the sets it has not seen

    Examples
    --------
    >>> from entourage.baselines import RandomRanker, RankSVM
    >>> from entourage.data import make_hypervolume
    >>> from entourage.selection import compare
    >>> sets = Sets.of(*make_hypervolume(100, random_state=0))
    >>> found = compare(sets, {"A": (RankSVM(), "context-free"), "B": (RandomRanker(), "context")}, folds=2)
    >>> name, model, held_out = fit_best_held_out(found, sets)
    >>> name, len(held_out)
    ('A', 50)
    """
    c = comparison
    sign = -1.0 if c.metric in LOWER_IS_BETTER else 1.0
    name = max(c.means, key=lambda one: sign * c.means[one][c.metric])
    train, held_out = c.first_fold
    model = seeded_clone(
        c.candidates[name][0], c.settings["random_state"], list(c.candidates).index(name), 0, 0
    )
    seen = sets_for(model, sets, [] if sets.encoder is None else sets.encoder.categories)
    own = None if c.labels is None else c.labels[train]
    return name, model.fit(learnable_sets(model, seen[train]), **groups_for(model, own)), held_out
