"""The six tables: the columns that a user would give, and who answered."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.real import car_choice, formula1, swissmetro
from benchmarks.real.csv_file import one_hot, read_columns
from entourage.data.coerce import offsets_of
from entourage.data.sets import Sets

__all__ = ["TABLES", "Table", "data_folder", "load_table"]

Index = NDArray[np.int64]

#: Attributes of Noguchi and Stewart that are better when lower; with the sign turned, all pairs of attributes of a
#: choice set trade off, as designed.
LOWER_IS_BETTER = (
    *("Price", "Cost", "Fee", "Consumption", "Crimes", "Commute", "Noise", "Weight", "Repair rate", "Update"),
    "Study hours",
)
WORK = ("cost", "ivtt", "ovtt", "costinc", "ovttbydist")
ABOUT_WORK = (
    *("dist", "hhinc", "numveh", "vehbywrk", "hhsize", "numemphh", "age", "femdum", "wkccbd", "wknccbd"),
    *("wkempden", "wkpopden", "rspopden"),
)
SHOP = ("TOTCOST", "IVTT", "OVTT", "OVTTDIST")
ABOUT_SHOP = ("DISTANCE", "VEHICLES", "VEH_WKR", "URBAN", "HHSIZE", "INCOME", "O_DENS", "D_DENS")


@dataclass(frozen=True, eq=False)
class Table:
    """A table as sets.

    Attributes
    ----------
    kind : "choice" or "rank"
    sets : objects, situations and targets
    people : who answered, one a set; None where everyone answered once
    indicators : places of the columns that a linear model multiplies with the situation: alternatives, types
    """

    name: str
    kind: str
    sets: Sets
    people: Index | None
    indicators: tuple[int, ...] = ()

    def groups(self) -> Index:
        """Return who answered, one a set."""
        return np.arange(len(self.sets)) if self.people is None else self.people

    def numbers(self) -> tuple[int, ...]:
        """Return the places of columns with more than two values, which have a standing in their set."""
        return tuple(
            place for place in range(self.sets.n_features) if len(np.unique(self.sets.objects[:, place])) > 2
        )


def noguchi(data: Path) -> Table:
    """Read 2,790 choices of 93 people: two attributes, standardised within the products of a choice set."""
    c = read_columns(data / "noguchi_stewart_2014" / "choices_long.csv")
    products = np.unique(
        np.char.add(c["effect"].astype(str), c["choiceset"].astype(str)), return_inverse=True
    )[1]
    columns = []
    for which in ("1", "2"):
        names, values = c[f"attr{which}_name"].astype(str), c[f"attr{which}"].astype(np.float64)
        lower = np.isin(names, LOWER_IS_BETTER)
        if which == "1":  # calories of a food, not those that exercise takes
            lower |= (names == "Calories") & (c["attr2_name"].astype(str) == "Vitamin")
        values = np.where(lower, -values, values)
        count = np.bincount(products)
        mean = np.bincount(products, values) / count
        spread = np.sqrt(np.bincount(products, (values - mean[products]) ** 2) / count)
        columns.append((values - mean[products]) / spread[products])
    return _long("noguchi", np.column_stack(columns), c["obs"], c["chosen"], c["participant"].astype(str))


def sf_work(data: Path) -> Table:
    """Read 5,029 trips to work, 4,151 households."""
    c = read_columns(data / "sf_mode_choice" / "sfwork_long.csv.gz")
    objects = np.column_stack([one_hot(c["alt"], tuple(range(1, 7))), *(c[name] for name in WORK)])
    about = np.column_stack([c[name] for name in ABOUT_WORK])
    return _long("sf_work", objects, c["case"], c["chosen"], c["hhid"], about, range(6))


def sf_shop(data: Path) -> Table:
    """Read 3,157 shopping trips, 2,150 households."""
    c = read_columns(data / "sf_mode_choice" / "sfshop_long.csv.gz")
    objects = np.column_stack([one_hot(c["ALTID"], tuple(range(1, 9))), *(c[name] for name in SHOP)])
    about = np.column_stack([c[name] for name in ABOUT_SHOP])
    return _long("sf_shop", objects, c["CASENUM"], c["CHOSEN"], c["ID"], about, range(8))


def _swissmetro(data: Path) -> Table:
    part = swissmetro.load(data)
    return Table("swissmetro", "choice", part.views["features"], part.people, (0, 1, 2))


def _car_choice(data: Path) -> Table:
    n_numbers = len(car_choice.NUMBERS)
    sets = car_choice.load(data).views["features"]
    return Table("car_choice", "choice", sets, None, tuple(range(n_numbers, sets.n_features)))


def _formula1(data: Path) -> Table:
    part = formula1.load(data)
    return Table("formula1", "rank", part.views["features"], part.people)


def _long(
    name: str,
    objects: NDArray[Any],
    group: NDArray[Any],
    chosen: NDArray[Any],
    people: NDArray[Any],
    about: NDArray[Any] | None = None,
    indicators: Any = (),
) -> Table:
    """Pack rows of a long table; the rows of a set stand together, in the order of the file."""
    order = np.argsort(group, kind="stable")
    first, sizes = np.unique(group[order], return_index=True, return_counts=True)[1:]
    sets = Sets(
        objects[order].astype(np.float64),
        offsets_of(sizes),
        1.0 - chosen[order].astype(np.float64),
        None if about is None else about[order][first].astype(np.float64),
        worst=1.0,
    )
    labels = np.unique(people[order][first], return_inverse=True)[1].astype(np.int64)
    return Table(name, "choice", sets, labels, tuple(indicators))


#: The readers, by name.
TABLES: dict[str, Callable[[Path], Table]] = {
    "noguchi": noguchi,
    "swissmetro": _swissmetro,
    "sf_work": sf_work,
    "sf_shop": sf_shop,
    "car_choice": _car_choice,
    "formula1": _formula1,
}


@cache
def load_table(name: str, data: Path) -> Table:
    """Read a table once."""
    return TABLES[name](data)


def data_folder() -> Path:
    """Return where the data are: named by ENTOURAGE_DATA, beside the repository, or carried to a second machine."""
    if "ENTOURAGE_DATA" in os.environ:
        return Path(os.environ["ENTOURAGE_DATA"])
    folders = [Path("../shared/data"), Path(".carry/data"), Path("../../shared/data")]
    return next((folder for folder in folders if (folder / "swissmetro").is_dir()), folders[0])
