"""Classical rankers by the name that users type; they live in :mod:`entourage.estimators.baselines`."""

from entourage.estimators.baselines import *
from entourage.estimators.baselines import __all__ as __all__
