"""Synthetic data: the paper's tasks, choices and context effects, each made from a seed."""

from entourage.data.synthetic.choices import make_choice, make_digits, make_pareto
from entourage.data.synthetic.context_effects import effect_utilities, make_context_effect, third_objects
from entourage.data.synthetic.contributions import (
    BoundedContributions,
    bounded_contributions,
    exact_contributions,
)
from entourage.data.synthetic.front_geometry import front_features, ray_contributions
from entourage.data.synthetic.fronts import Fronts, make_fronts, non_dominated_fronts
from entourage.data.synthetic.hypervolume import hypervolume_contributions, make_hypervolume
from entourage.data.synthetic.medoid import make_medoid, medoid_distances

__all__ = [
    "BoundedContributions",
    "Fronts",
    "bounded_contributions",
    "effect_utilities",
    "exact_contributions",
    "front_features",
    "hypervolume_contributions",
    "make_choice",
    "make_context_effect",
    "make_digits",
    "make_fronts",
    "make_hypervolume",
    "make_medoid",
    "make_pareto",
    "medoid_distances",
    "non_dominated_fronts",
    "ray_contributions",
    "third_objects",
]
