"""Choices of a travel mode in San Francisco, for trips to work and to shop.

Nothing is downloaded here. The trips are those of Koppelman and Bhat (2006), "A Self Instructing Course in Mode
Choice Modeling: Multinomial and Nested Logit Models", as CSV files with a row for each mode of a trip.
"""

import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from entourage.data.coerce import offsets_of
from entourage.data.datasets.csv_columns import CsvColumns, find_csv, read_header
from entourage.data.grouping import group_rows
from entourage.data.sets import Sets
from entourage.errors import DataError, check_choice

__all__ = ["TripChoices", "load_sf", "load_sf_modes"]

Index = NDArray[np.int64]

_HOME = "The trips are the example data of Koppelman and Bhat (2006), in long form"


@dataclass(frozen=True)
class _SfColumns:
    case: str
    household: str
    mode: str
    chosen: str
    modes: tuple[str, ...]
    objects: tuple[str, ...]
    situation: tuple[str, ...]
    categories: dict[str, tuple[int, ...]]  # situation columns that are codes, by their codes


_SF = {
    "work": _SfColumns(
        case="case",
        household="hhid",
        mode="alt",
        chosen="chosen",
        modes=("drive_alone", "shared_ride_2", "shared_ride_3+", "transit", "bike", "walk"),
        objects=("cost", "ivtt", "ovtt", "tvtt", "mtt", "nmtt", "ovttbydist", "costinc"),
        situation=(
            *(
                "dist",
                "femdum",
                "age",
                "corredis",
                "drlicdum",
                "hhinc",
                "hhowndum",
                "hhsize",
                "nm12to16",
            ),
            *("nm5to11", "nmlt5", "noncadum", "numadlt", "numemphh", "numveh", "rsempden", "rspopden"),
            *("vehavdum", "vehbywrk", "wkccbd", "wkempden", "wknccbd", "wkpopden"),
        ),
        categories={"famtype": (*range(1, 15), 99)},
    ),
    "shop": _SfColumns(
        case="CASENUM",
        household="ID",
        mode="ALTID",
        chosen="CHOSEN",
        modes=(
            *("transit", "shared_ride_2", "shared_ride_3+", "drive_alone_and_shared_ride"),
            *("shared_ride_2_and_3+", "bike", "walk", "drive_alone"),
        ),
        objects=("IVTT", "OVTT", "TVTT", "TOTCOST", "OVTTDIST", "NMTT", "MVTT"),
        situation=(
            *("DISTANCE", "VEHICLES", "URBAN", "HHSIZE", "HHSIZE5", "O_DENS", "D_DENS"),
            *("INCOME", "VEH_WKR"),
        ),
        categories={},
    ),
}


@dataclass(frozen=True, eq=False)
class TripChoices:
    """Trips and the modes of travel that were open to them.

    Attributes
    ----------
    sets : one set a trip; the chosen mode has rank 0, the others 1; who travels is the situation
    case : integer array of shape (sets,)
    household : integer array of shape (sets,): keep a household on one side of a split
    mode : integer array of shape (objects,), from 1, as in the file
    feature_names : the names of the features of an object
    situation_names : the names of the features of a situation
    """

    sets: Sets
    case: Index
    household: Index
    mode: Index
    feature_names: tuple[str, ...]
    situation_names: tuple[str, ...]


def load_sf(path: str | os.PathLike[str], which: str = "work") -> TripChoices:
    """Load choices of a travel mode in San Francisco: trips to work, or to shop.

    An object is a mode that was open to the traveller: which mode (one-hot), then times in minutes and
    costs in cents, as in the file. What is the same for all modes of a trip (distance, income,
    vehicles and so on) is its situation; the family type of a trip to work is one-hot, too.

    Parameters
    ----------
    path : the CSV file, compressed or not, or the folder that holds sfwork_long.csv and sfshop_long.csv
    which : "work" or "shop"
    """
    which = check_choice("which", which, _SF)
    spec = _SF[which]
    constant = (*spec.situation, *spec.categories)
    columns = (spec.case, spec.household, spec.mode, spec.chosen, *spec.objects, *constant)
    table = CsvColumns(find_csv(path, f"sf{which}_long.csv", _HOME), columns, _HOME)
    cases = table.whole(spec.case)
    rows, offsets, first = group_rows(cases)
    one_hot = table.one_hot(spec.mode, range(1, len(spec.modes) + 1))[rows]
    costs = np.stack([table.numbers(name)[rows] for name in spec.objects], axis=1)
    situation = np.concatenate(
        [
            np.stack([table.numbers(name) for name in spec.situation], axis=1),
            *(table.one_hot(name, codes) for name, codes in spec.categories.items()),
        ],
        axis=1,
    )
    changed = (situation[rows] != np.repeat(situation[first], np.diff(offsets), axis=0)).any(1)
    if changed.any():
        row = int(rows[np.argmax(changed)])
        raise DataError(
            f"{table.where(row)}: {', '.join(constant)} must be the same throughout a {spec.case}, "
            "and here they change. Put the line right."
        )
    sets = Sets(
        np.concatenate([one_hot, costs], axis=1).astype(np.float32),
        offsets,
        table.choices(spec.chosen, rows, offsets),
        situation[first].astype(np.float32),
    )
    return TripChoices(
        sets,
        cases[first],
        table.whole(spec.household)[first],
        table.whole(spec.mode)[rows],
        (*(f"mode={mode}" for mode in spec.modes), *spec.objects),
        (
            *spec.situation,
            *(f"{name}={code}" for name, codes in spec.categories.items() for code in codes),
        ),
    )


def load_sf_modes(path: str | os.PathLike[str], which: str = "work") -> tuple[Sets, tuple[str, ...]]:
    """Load the same choices without features: which modes were open, and which was taken (Ragain and Ugander, 2016).

    The one feature of an object is the number of its mode, from 1: `DiscreteChooser(categories=[(0, modes)])` learns a
    vector for each.

    Parameters
    ----------
    path : pcmc_SFwork.csv or pcmc_SFshop.csv, or the folder that holds them
    which : "work" or "shop"

    Returns
    -------
    sets : the chosen mode has rank 0, the others 1
    modes : their names
    """
    check_choice("which", which, _SF)
    file = find_csv(path, f"pcmc_SF{which}.csv", _HOME)
    modes = read_header(file, _HOME)[1:]
    table = CsvColumns(file, ("Choice", *modes), _HOME)
    available = np.stack([table.whole(mode) for mode in modes], axis=1) == 1  # (trips, modes)
    taken = table.whole("Choice")
    known = (taken >= 1) & (taken <= len(modes))
    open_to = known & available[np.arange(len(taken)), np.where(known, taken, 1) - 1]
    if not open_to.all():
        row = int(np.argmin(open_to))
        raise DataError(
            f"{table.where(row)}: Choice must be one of the modes that are 1 there. Put the line right."
        )
    trips, columns = np.nonzero(available)
    offsets = offsets_of(available.sum(1))
    ranks = (columns + 1 != taken[trips]).astype(np.float64)
    return Sets((columns + 1.0)[:, None].astype(np.float32), offsets, ranks), modes
