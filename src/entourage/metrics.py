"""Metrics of rankings and of choices, by the name that users type.

They live in :mod:`entourage.tasks.ranking_metrics` and :mod:`entourage.tasks.choice_metrics`.
"""

from entourage.tasks.choice_metrics import *
from entourage.tasks.choice_metrics import __all__ as _of_choices
from entourage.tasks.ranking_metrics import *
from entourage.tasks.ranking_metrics import __all__ as _of_rankings

__all__ = [*_of_choices, *_of_rankings]
