"""A CSV file as numpy columns."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyarrow import csv

__all__ = ["chosen_of", "one_hot", "read_columns"]


def read_columns(path: Path) -> dict[str, NDArray[Any]]:
    """Read a CSV file, plain or compressed."""
    table = csv.read_csv(path)
    return {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}


def one_hot(values: NDArray[Any], levels: tuple[Any, ...]) -> NDArray[np.float64]:
    """Return one column a level; other values have none."""
    return (values[..., None] == np.array(levels)).astype(np.float64)


def chosen_of(places: NDArray[Any], available: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return packed targets of wide rows: 0 for the chosen alternative, 1 for the other available ones."""
    return (np.arange(available.shape[1]) != places[:, None]).astype(np.float64)[available]
