"""Rankings and choices in long form: CSV files with a row for each object and a column for its set.

Nothing is downloaded here. Where the data are to be had:

- Formula 1 results: F1DB, https://github.com/f1db/f1db (CC BY 4.0), with the columns named in `load_f1`.
- Choices among products: Noguchi and Stewart (2014), "In the attraction, compromise, and similarity
  effects, alternatives are repeatedly compared in pairs on single dimensions", Cognition 132, 44-56,
  https://doi.org/10.1016/j.cognition.2014.03.006 (CC BY 4.0).
- San Francisco mode choice: Koppelman and Bhat (2006), "A Self Instructing Course in Mode Choice
  Modeling: Multinomial and Nested Logit Models", in long form.
"""

import lzma
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv

from entourage.data.coerce import offsets_of
from entourage.data.datasets.letor import open_binary
from entourage.data.grouping import group_rows
from entourage.data.sets import Sets
from entourage.errors import DataError, ParameterError, check_choice, check_number

__all__ = [
    "F1Races",
    "ProductChoices",
    "TripChoices",
    "load_f1",
    "load_noguchi_stewart",
    "load_sf",
    "load_sf_modes",
]

Floats = NDArray[np.float64]
Text = NDArray[np.str_]
Index = NDArray[np.int64]

_F1_FEATURES = (
    "grid_num",
    "quali_gap_pct",
    "driver_age",
    "driver_starts_before",
    "driver_mean_order_last5",
    "driver_season_points_before",
    "constructor_mean_order_last5",
)
# Fixed, not found in the rows: races of other years must get the same columns.
_F1_MAY_BE_MISSING = (
    "grid_num",
    "quali_gap_pct",
    "driver_mean_order_last5",
    "constructor_mean_order_last5",
)
_F1_HOME = "Formula 1 results are to be had from F1DB, https://github.com/f1db/f1db"

# Attributes of which less is better. In the attraction sets this follows from the decoy, which is worse
# than its neighbour in both attributes; in the others one attribute is traded for the other, which
# leaves one bit, and names and units (accuracy in metres, an update rate in Hz) settle it. Calories
# count against a juice and for a workout, hence the effect beside the name.
_LESS_IS_BETTER = frozenset(
    {
        ("attraction", "Calories"),
        ("attraction", "Commute"),
        ("attraction", "Cost"),
        ("attraction", "Crimes"),
        ("attraction", "Repair rate"),
        ("attraction", "Weight"),
        ("compromise", "Accuracy"),
        ("compromise", "Consumption"),
        ("compromise", "Fee"),
        ("compromise", "Noise"),
        ("compromise", "Price"),
        ("similarity", "Price"),
        ("similarity", "Study hours"),
    }
)
_NOGUCHI_HOME = "The choices are Noguchi and Stewart's (2014), doi 10.1016/j.cognition.2014.03.006"
_LARGEST = float(np.finfo(np.float32).max)  # features are kept as float32
_SF_HOME = "The trips are the example data of Koppelman and Bhat (2006), in long form"


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


@dataclass(frozen=True, eq=False)
class ProductChoices:
    """Choices among three products with two attributes.

    Attributes
    ----------
    sets : one set a trial; the chosen product has rank 0, the others 1
    obs : integer array of shape (sets,), the number of the trial in the file
    effect : text array of shape (sets,): "attraction", "compromise" or "similarity"
    choiceset : integer array of shape (sets,), numbered within each effect
    participant : text array of shape (sets,), who chose: keep a person on one side of a split
    alternative : text array of shape (objects,): "A", "B", or what was added to them, as "Da" beside "A"
    """

    sets: Sets
    obs: Index
    effect: Text
    choiceset: Index
    participant: Text
    alternative: Text


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
    columns = ("race_id", "year", "driver", "order", *_F1_FEATURES)
    table = _Table(_file(path, ["f1_race_results_1950_on.csv"], _F1_HOME), columns, _F1_HOME)
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
        [table.numbers(name, missing=name in _F1_MAY_BE_MISSING)[rows] for name in _F1_FEATURES], axis=1
    )
    may_be = [_F1_FEATURES.index(name) for name in _F1_MAY_BE_MISSING]
    objects = np.concatenate([np.nan_to_num(features), np.isnan(features[:, may_be])], axis=1)
    names = (*_F1_FEATURES, *(f"{name}_missing" for name in _F1_MAY_BE_MISSING))
    sets = Sets(objects.astype(np.float32), offsets, table.numbers("order")[rows] - 1)
    return F1Races(sets, race_ids[first], years[first], names)


def load_noguchi_stewart(path: str | os.PathLike[str]) -> ProductChoices:
    """Load choices among three products: the attraction, compromise and similarity effects in people.

    The two attributes have other scales for each product: they are standardised over the distinct
    alternatives of their choice set (its number counts within an effect), and turned where less is
    better, as with a price, so that larger is better throughout.

    Parameters
    ----------
    path : the CSV file, compressed or not, or the folder that holds choices_long.csv
    """
    columns = ("obs", "participant", "effect", "choiceset", "alternative", "attr1_name", "attr2_name")
    file = _file(path, ["choices_long.csv"], _NOGUCHI_HOME)
    table = _Table(file, (*columns, "attr1", "attr2", "chosen"), _NOGUCHI_HOME)
    obs, choicesets = table.whole("obs"), table.whole("choiceset")
    effects, alternatives = table.text("effect"), table.text("alternative")
    turned = np.stack([_turned(table, effects, f"attr{i}") for i in (1, 2)], axis=1)  # (rows, 2)
    _, product = np.unique(np.char.add(effects, choicesets.astype(str)), return_inverse=True)
    named = np.char.add(np.char.add(product.astype(str), " "), alternatives)
    _, kinds = np.unique(named, return_index=True)
    features = np.empty_like(turned)
    for i in range(int(product.max()) + 1):
        distinct = turned[kinds[product[kinds] == i]]
        spread = np.where(np.ptp(distinct, axis=0) > 0, distinct.std(0), 1)
        features[product == i] = (turned[product == i] - distinct.mean(0)) / spread
    rows, offsets, first = group_rows(obs)
    ranks = _choice(table, "chosen", rows, offsets)
    sets = Sets(features[rows].astype(np.float32), offsets, ranks)
    return ProductChoices(
        sets,
        obs[first],
        effects[first],
        choicesets[first],
        table.text("participant")[first],
        alternatives[rows],
    )


def load_sf(path: str | os.PathLike[str], which: str = "work") -> TripChoices:
    """Load choices of a travel mode in San Francisco: trips to work, or to shop.

    An object is a mode that was open to the traveller: which mode (one-hot), then times in minutes and
    costs in cents, as in the file. What is the same for all modes of a trip (distance, income,
    vehicles and so on) is its situation; the family type of a trip to work is one-hot there.

    Parameters
    ----------
    path : the CSV file, compressed or not, or the folder that holds sfwork_long.csv and sfshop_long.csv
    which : "work" or "shop"
    """
    which = check_choice("which", which, _SF)
    spec = _SF[which]
    constant = (*spec.situation, *spec.categories)
    columns = (spec.case, spec.household, spec.mode, spec.chosen, *spec.objects, *constant)
    table = _Table(_file(path, [f"sf{which}_long.csv"], _SF_HOME), columns, _SF_HOME)
    cases = table.whole(spec.case)
    rows, offsets, first = group_rows(cases)
    one_hot = _one_hot(table, spec.mode, range(1, len(spec.modes) + 1))[rows]
    costs = np.stack([table.numbers(name)[rows] for name in spec.objects], axis=1)
    situation = np.concatenate(
        [
            np.stack([table.numbers(name) for name in spec.situation], axis=1),
            *(_one_hot(table, name, codes) for name, codes in spec.categories.items()),
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
        _choice(table, spec.chosen, rows, offsets),
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
    file = _file(path, [f"pcmc_SF{which}.csv"], _SF_HOME)
    with open_binary(file, _SF_HOME) as stream:
        modes = tuple(stream.readline().decode().strip().split(",")[1:])
    table = _Table(file, ("Choice", *modes), _SF_HOME)
    there = np.stack([table.whole(mode) for mode in modes], axis=1) == 1  # (trips, modes)
    taken = table.whole("Choice")
    known = (taken >= 1) & (taken <= len(modes))
    open_to = known & there[np.arange(len(taken)), np.where(known, taken, 1) - 1]
    if not open_to.all():
        row = int(np.argmin(open_to))
        raise DataError(
            f"{table.where(row)}: Choice must be one of the modes that are 1 there. Put the line right."
        )
    trips, columns = np.nonzero(there)
    offsets = offsets_of(there.sum(1))
    ranks = (columns + 1 != taken[trips]).astype(np.float64)
    return Sets((columns + 1.0)[:, None].astype(np.float32), offsets, ranks), modes


class _Table:
    """Some columns of a CSV file, kept as text until asked for, so that an error can name its line."""

    def __init__(self, path: Path, columns: Sequence[str], home: str) -> None:
        self.path = path
        self._home = home
        self._cut: DataError | None = None
        try:
            with open_binary(path, home) as stream:
                table = csv.read_csv(
                    stream,
                    csv.ReadOptions(use_threads=False),
                    csv.ParseOptions(invalid_row_handler=self._ragged),
                    csv.ConvertOptions(
                        include_columns=list(columns), column_types=dict.fromkeys(columns, pa.string())
                    ),
                )
        except pa.ArrowKeyError as error:
            raise DataError(
                f"{path} needs the columns {', '.join(columns)}; {str(error).strip(chr(34))}. {home}."
            ) from None
        except (pa.ArrowException, OSError, EOFError, lzma.LZMAError, zlib.error) as error:
            if self._cut is not None:
                raise self._cut from None
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise DataError(f"{path} can't be read as CSV: {reason}. Fetch it again. {home}.") from None
        if table.num_rows == 0:
            raise DataError(f"{path} holds no row below its header. {home}.")
        self._columns = {name: np.array(table[name].to_pylist(), dtype=np.str_) for name in columns}

    def _ragged(self, row: Any) -> str:
        # Arrow drops what is raised in here; so it is kept, and raised when the reader has given up.
        self._cut = DataError(
            f"{self.where(row.number - 2)}: {row.expected_columns} columns are needed; "
            f"{row.actual_columns} came in {row.text[:60]!r}. The line may be cut short: "
            "put it right or fetch the file again."
        )
        return "error"

    def where(self, row: int) -> str:
        """Name the file and the line of a row; blank lines, which the reader skips, are counted."""
        with open_binary(self.path, self._home) as stream:
            written = (number for number, line in enumerate(stream, start=1) if line.strip())
            return f"{self.path}, line {next(islice(written, row + 1, None))}"  # after the header

    def text(self, name: str) -> Text:
        """Return a column as it is written."""
        return self._columns[name]

    def numbers(self, name: str, *, missing: bool = False) -> Floats:
        """Return a column of numbers; an empty place is NaN where ``missing`` allows it."""
        values = np.array([_as_number(word) for word in self._columns[name].tolist()])
        wrong = np.abs(values) > _LARGEST
        self._refuse(name, wrong if missing else wrong | np.isnan(values), "a number")
        return values

    def whole(self, name: str) -> Index:
        """Return a column of whole numbers."""
        values = self.numbers(name)
        self._refuse(name, (values != np.floor(values)) | (np.abs(values) > 2**53), "a whole number")
        return values.astype(np.int64)

    def _refuse(self, name: str, wrong: NDArray[np.bool_], needed: str) -> None:
        if wrong.any():
            row = int(np.argmax(wrong))
            came = self._columns[name][row].item()
            raise DataError(f"{self.where(row)}: {name} needs {needed}; got {came!r}. Put it right.")


def _as_number(word: str) -> float:
    """NaN stands for an empty place, infinity for what is no number."""
    if word.strip().lower() in ("", "na", "nan"):
        return np.nan
    try:
        return float(word)
    except ValueError:
        return np.inf


def _one_hot(table: _Table, name: str, codes: Sequence[int]) -> Floats:
    values = table.whole(name)
    known = values[:, None] == np.array(codes)  # (rows, codes)
    if not known.any(1).all():
        row = int(np.argmin(known.any(1)))
        raise DataError(
            f"{table.where(row)}: {name} needs one of {', '.join(map(str, codes))}; "
            f"got {values[row]}. Put the line right."
        )
    return np.asarray(known, dtype=np.float64)


def _turned(table: _Table, effects: Text, name: str) -> Floats:
    pairs = zip(effects.tolist(), table.text(f"{name}_name").tolist(), strict=True)
    signs = np.array([-1.0 if pair in _LESS_IS_BETTER else 1.0 for pair in pairs])
    return signs * table.numbers(name)


def _choice(table: _Table, name: str, rows: Index, offsets: Index) -> Floats:
    """Return rank 0 for what was chosen and 1 for the rest; one object of each set must be chosen."""
    chosen = table.numbers(name)[rows]
    wrong = (chosen != 0) & (chosen != 1)
    if wrong.any():
        row = int(rows[np.argmax(wrong)])
        raise DataError(
            f"{table.where(row)}: {name} needs 1 for what was chosen and 0 otherwise; "
            f"got {table.text(name)[row].item()!r}. Put the line right."
        )
    counts = np.add.reduceat(chosen, offsets[:-1])
    if (counts != 1).any():
        i = int(np.argmax(counts != 1))
        raise DataError(
            f"{table.where(int(rows[offsets[i]]))}: of the set that begins here one object must be "
            f"chosen; {int(counts[i])} are. Put {name} right."
        )
    return 1 - chosen


def _file(path: str | os.PathLike[str], names: Sequence[str], home: str) -> Path:
    """Return the file itself, or in a folder the one of that name, compressed or not."""
    path = Path(path)
    if not path.is_dir():
        return path
    for name in names:
        for suffix in ("", ".gz", ".bz2", ".xz", ".zst"):
            if (path / f"{name}{suffix}").is_file():
                return path / f"{name}{suffix}"
    raise DataError(f"{path} holds no {' or '.join(names)}, plain or compressed; put it there. {home}.")
