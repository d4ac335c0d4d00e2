"""The estimator for each kind of target that a table may have."""

from entourage.errors import check_choice
from entourage.estimators.choosers import DiscreteChooser, SubsetChooser
from entourage.estimators.net_estimator import NetEstimator
from entourage.estimators.ranker import Ranker
from entourage.tasks import TASKS

__all__ = ["estimator_class"]


def estimator_class(kind: str) -> type[NetEstimator]:
    """Return the estimator of a kind of target, a key of :data:`entourage.tasks.TASKS`.

    Examples
    --------
    >>> estimator_class("choice").__name__
    'DiscreteChooser'
    """
    check_choice("kind", kind, TASKS)
    if kind == "choice":
        return DiscreteChooser
    return SubsetChooser if kind == "subset" else Ranker
