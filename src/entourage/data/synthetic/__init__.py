"""Synthetic data: the paper's tasks, choices and context effects, each made from a seed."""

from entourage.data.synthetic.choices import make_choice, make_digits, make_pareto
from entourage.data.synthetic.context_effects import effect_utilities, make_context_effect, third_objects
from entourage.data.synthetic.hypervolume import hypervolume_contributions, make_hypervolume
from entourage.data.synthetic.medoid import make_medoid, medoid_distances

__all__ = [
    "effect_utilities",
    "hypervolume_contributions",
    "make_choice",
    "make_context_effect",
    "make_digits",
    "make_hypervolume",
    "make_medoid",
    "make_pareto",
    "medoid_distances",
    "third_objects",
]
