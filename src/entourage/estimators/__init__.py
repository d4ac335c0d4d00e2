"""Estimators: scikit-learn citizens that join a net, a task and the training loop; classical rankers; model files."""

from entourage.estimators.ranker import (
    ESTIMATORS,
    DiscreteChooser,
    Ranker,
    SetEstimator,
    SubsetChooser,
    load,
)

__all__ = ["ESTIMATORS", "DiscreteChooser", "Ranker", "SetEstimator", "SubsetChooser", "load"]
