"""Scikit-learn estimators that join a net, a task and the training loop; classical rankers; model files."""

from entourage.estimators.base import NotFittedError, OneChoicePredictor, SetPredictor
from entourage.estimators.choosers import DiscreteChooser, SubsetChooser
from entourage.estimators.fit_together import fit_together
from entourage.estimators.kinds import estimator_class
from entourage.estimators.model_file import load
from entourage.estimators.net_estimator import NetEstimator
from entourage.estimators.ranker import Ranker

__all__ = [
    "DiscreteChooser",
    "NetEstimator",
    "NotFittedError",
    "OneChoicePredictor",
    "Ranker",
    "SetPredictor",
    "SubsetChooser",
    "estimator_class",
    "fit_together",
    "load",
]
