"""Readers of public data sets, from the files as they are distributed."""

from entourage.data.datasets.formula1 import load_f1
from entourage.data.datasets.letor import load_letor, load_letor_fold
from entourage.data.datasets.noguchi_stewart import load_noguchi_stewart
from entourage.data.datasets.san_francisco import load_sf, load_sf_modes
from entourage.data.datasets.sushi import load_sushi

__all__ = [
    "load_f1",
    "load_letor",
    "load_letor_fold",
    "load_noguchi_stewart",
    "load_sf",
    "load_sf_modes",
    "load_sushi",
]
