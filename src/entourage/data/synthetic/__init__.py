"""Synthetic data: the paper's tasks, choices and context effects, each made from a seed."""

from entourage.data.synthetic.choices import make_choice, make_digits, make_pareto
from entourage.data.synthetic.context_effects import make_context_effect
from entourage.data.synthetic.hypervolume import make_hypervolume
from entourage.data.synthetic.medoid import make_medoid

__all__ = [
    "make_choice",
    "make_context_effect",
    "make_digits",
    "make_hypervolume",
    "make_medoid",
    "make_pareto",
]
