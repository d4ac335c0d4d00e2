"""Data: sets of objects, and where they come from."""

from entourage.data.context_effects import make_context_effect
from entourage.data.synthetic import make_hypervolume, make_medoid
from entourage.sets import Sets

__all__ = ["Sets", "make_context_effect", "make_hypervolume", "make_medoid"]
