"""Readers of public data sets, from the files as they are distributed; nothing is downloaded."""

from entourage.data.datasets.formula1 import F1Races, load_f1
from entourage.data.datasets.letor import (
    Letor,
    LetorFold,
    SvmlightTable,
    load_letor,
    load_letor_fold,
    read_svmlight,
)
from entourage.data.datasets.noguchi_stewart import ProductChoices, load_noguchi_stewart
from entourage.data.datasets.san_francisco import TripChoices, load_sf, load_sf_modes
from entourage.data.datasets.sushi import load_sushi

__all__ = [
    "F1Races",
    "Letor",
    "LetorFold",
    "ProductChoices",
    "SvmlightTable",
    "TripChoices",
    "load_f1",
    "load_letor",
    "load_letor_fold",
    "load_noguchi_stewart",
    "load_sf",
    "load_sf_modes",
    "load_sushi",
    "read_svmlight",
]
