"""Data: sets of objects, and where they come from."""

from entourage.data.choices import make_choice, make_digits, make_pareto
from entourage.data.context_effects import make_context_effect
from entourage.data.letor import load_letor, load_letor_fold
from entourage.data.long_files import load_f1, load_noguchi_stewart, load_sf, load_sf_modes
from entourage.data.sushi import load_sushi
from entourage.data.synthetic import make_hypervolume, make_medoid
from entourage.data.table_files import read_table, write_table
from entourage.sets import Sets

__all__ = [
    "Sets",
    "load_f1",
    "load_letor",
    "load_letor_fold",
    "load_noguchi_stewart",
    "load_sf",
    "load_sf_modes",
    "load_sushi",
    "make_choice",
    "make_context_effect",
    "make_digits",
    "make_hypervolume",
    "make_medoid",
    "make_pareto",
    "read_table",
    "write_table",
]
