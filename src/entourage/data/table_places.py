"""Where the columns of a table stand among the features of an object."""

import numpy as np

from entourage.data.columns import Column
from entourage.data.encoder import TableEncoder

__all__ = ["marks_of_missing", "ordered_features"]


def ordered_features(encoder: TableEncoder) -> list[int]:
    """Return the places of an object's numbers that have an order: no categories, no marks of missing values."""
    return [at for column, at in _places_of_columns(encoder) if column.kind in ("number", "flag")]


def marks_of_missing(encoder: TableEncoder) -> dict[int, int]:
    """Return, of the ordered features that may be missing, the places of the features that say so."""
    return {at: at + 1 for column, at in _places_of_columns(encoder) if column.indicator}


def _places_of_columns(encoder: TableEncoder) -> list[tuple[Column, int]]:
    """Return the columns of objects, each with the place of its first number."""
    own = [column for column in encoder.columns if column.role == "object"]
    starts = np.cumsum([0, *(column.width for column in own)]).tolist()
    return list(zip(own, starts, strict=False))
