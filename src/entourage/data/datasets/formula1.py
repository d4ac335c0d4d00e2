"""Formula 1 results, with what was known of each driver before the race.

Nothing is downloaded here. The results are F1DB's, https://github.com/f1db/f1db (CC BY 4.0), as one CSV file with
a row for each driver of a race and the columns named in `load_f1`.
"""

import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from entourage.data.datasets.csv_columns import CsvColumns, find_csv
from entourage.data.grouping import group_rows
from entourage.data.sets import Sets
from entourage.errors import DataError, ParameterError, check_number

__all__ = ["F1Races", "load_f1"]

Index = NDArray[np.int64]

_FEATURES = (
    "grid_num",
    "quali_gap_pct",
    "driver_age",
    "driver_starts_before",
    "driver_mean_order_last5",
    "driver_season_points_before",
    "constructor_mean_order_last5",
)
# Fixed, not found in the rows: races of other years must get the same columns.
_MAY_BE_MISSING = (
    "grid_num",
    "quali_gap_pct",
    "driver_mean_order_last5",
    "constructor_mean_order_last5",
)
_HOME = "Formula 1 results are available from F1DB, https://github.com/f1db/f1db"


@dataclass(frozen=True, eq=False)
class F1Races:
    """Formula 1 races and the drivers in them.

    Attributes
    ----------
    sets : one set a race; the winner has rank 0
    race_id : integer array of shape (sets,)
    year : integer array of shape (sets,), to split by
    feature_names : the names of the features of an object
    """

    sets: Sets
    race_id: Index
    year: Index
    feature_names: tuple[str, ...]


def load_f1(path: str | os.PathLike[str], from_year: int = 2000, to_year: int | None = None) -> F1Races:
    """Load Formula 1 races with what was known of each driver before the race.

    The features are the columns grid_num, quali_gap_pct, driver_age, driver_starts_before,
    driver_mean_order_last5, driver_season_points_before and constructor_mean_order_last5, and then, for
    the four of them that may be missing, an indicator such as ``grid_num_missing``: where it is 1 the
    value is 0. (A mean over the rows loaded would carry later races into earlier ones.) A grid position
    is missing for a start from the pit lane and, more rarely, for a driver who didn't start at all.

    The rows of the file stand in the order of the finish; here the drivers of a race are sorted by name,
    so that their places say nothing about their ranks.

    Parameters
    ----------
    path : the CSV file, compressed or not, or the folder that holds f1_race_results_1950_on.csv
    from_year, to_year : the first and the last year to load; without the latter, up to the end
    """
    check_number("from_year", from_year, whole=True)
    if to_year is not None:
        check_number("to_year", to_year, whole=True)
        if to_year < from_year:
            raise ParameterError(f"to_year={to_year} lies before from_year={from_year}; swap them.")
    columns = ("race_id", "year", "driver", "order", *_FEATURES)
    table = CsvColumns(find_csv(path, "f1_race_results_1950_on.csv", _HOME), columns, _HOME)
    years = table.whole("year")
    last = np.iinfo(np.int64).max if to_year is None else to_year
    kept = np.flatnonzero((years >= from_year) & (years <= last))
    if len(kept) == 0:
        raise DataError(
            f"{table.path} holds no race from {from_year} to {to_year or 'the end'}; its years run from "
            f"{years.min()} to {years.max()}. Ask for some of these."
        )
    race_ids = table.whole("race_id")
    rows, offsets, first = group_rows(race_ids[kept])
    rows, first = kept[rows], kept[first]
    races = np.repeat(np.arange(len(first)), np.diff(offsets))
    rows = rows[np.lexsort((table.text("driver")[rows], races))]
    features = np.stack(
        [table.numbers(name, missing=name in _MAY_BE_MISSING)[rows] for name in _FEATURES], axis=1
    )
    may_be = [_FEATURES.index(name) for name in _MAY_BE_MISSING]
    objects = np.concatenate([np.nan_to_num(features), np.isnan(features[:, may_be])], axis=1)
    names = (*_FEATURES, *(f"{name}_missing" for name in _MAY_BE_MISSING))
    sets = Sets(objects.astype(np.float32), offsets, table.numbers("order")[rows] - 1)
    return F1Races(sets, race_ids[first], years[first], names)
