"""Losses by the name that users type; they live in :mod:`entourage.tasks.losses`."""

from entourage.tasks.losses import *
from entourage.tasks.losses import __all__ as __all__
