"""Metrics of rankings by the name that users type; they live in :mod:`entourage.tasks.ranking_metrics`."""

from entourage.tasks.ranking_metrics import *
from entourage.tasks.ranking_metrics import __all__ as __all__
