"""Data: sets of objects, and where they come from."""

from entourage.data.datasets import (
    load_f1,
    load_letor,
    load_letor_fold,
    load_noguchi_stewart,
    load_sf,
    load_sf_modes,
    load_sushi,
)
from entourage.data.sets import Sets
from entourage.data.synthetic import (
    make_choice,
    make_context_effect,
    make_digits,
    make_hypervolume,
    make_medoid,
    make_pareto,
)
from entourage.data.table_files import read_table, write_table

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
