"""Swissmetro: train, Swissmetro or car, nine stated choices a person; five folds of people.

The usual sample and scaling (commuters and business trips, known choices; times and costs over 100; no fares for
holders of a season ticket). The usual logits take constants, time and cost; those "with covariates" also headway, seats
and the constants times what is known of person and trip, which is what the nets see as the situation.
"""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.real.csv_file import chosen_of, one_hot, read_columns
from benchmarks.real.parts import Fit, Part, Target, Task, folds_of
from benchmarks.real.rivals import auto, baselines_of, nets_of, one, penalised
from entourage.choice import ContextualLogit, MixedLogit, MultinomialLogit, NestedLogit
from entourage.data.coerce import offsets_of
from entourage.data.sets import Sets

__all__ = ["TASK", "load"]

MODES = ("TRAIN", "SM", "CAR")
NESTS = [[1, 3]]  # train and car: what there is already
RIVALS = ("MultinomialLogit", "NestedLogit", "MixedLogit")
WITH = tuple(f"{name}, covariates" for name in RIVALS)


@cache
def load(data: Path, part: str = "") -> Part:
    """Read the 6,768 choices of 752 people."""
    read = read_columns(data / "swissmetro" / "swissmetro.csv.gz")
    kept = np.isin(read["PURPOSE"], [1, 3]) & (read["CHOICE"] != 0)
    c = {name: column[kept] for name, column in read.items()}
    n = int(kept.sum())
    available = np.column_stack([c[f"{mode}_AV"] == 1 for mode in MODES])
    pays = 1.0 - c["GA"]
    wide = {
        "time": np.column_stack([c[f"{mode}_TT"] / 100 for mode in MODES]),
        "cost": np.column_stack([c["TRAIN_CO"] * pays / 100, c["SM_CO"] * pays / 100, c["CAR_CO"] / 100]),
        "headway": np.column_stack([c["TRAIN_HE"] / 100, c["SM_HE"] / 100, np.zeros(n)]),
        "seats": np.column_stack([np.zeros(n), c["SM_SEATS"], np.zeros(n)]),
    }
    long = {name: column[available] for name, column in wide.items()}
    mode = np.tile(np.arange(3), (n, 1))[available]
    offsets, targets = offsets_of(available.sum(1)), chosen_of(c["CHOICE"] - 1, available)
    about = covariates(c)
    own = np.repeat(about, available.sum(1), axis=0)
    is_mode = one_hot(mode, (0, 1, 2))
    constants = is_mode[:, [0, 2]]
    usual = [long["time"], long["cost"]]
    more = [long["headway"], long["seats"], *(constants[:, [k]] * own for k in range(2))]

    def view(columns: list[Any], situation: NDArray[Any] | None = None) -> Sets:
        return Sets(np.column_stack(columns), offsets, targets, situation, worst=1.0)

    views = {
        "features": view([is_mode, *long.values()], about),
        "usual": view([*usual, constants]),
        "nested": view([mode + 1, *usual]),
        "usual with covariates": view([*usual, constants, *more]),
        "nested with covariates": view([mode + 1, *usual, *more]),
    }
    return Part(views, folds_of(n, c["ID"]), c["ID"])


def covariates(c: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
    """Return what is known of person and trip, one row a choice.

    Levels of fewer than 45 people are joined with others, since rivals without a penalty can't estimate them on each
    fold; origin and destination are left out.
    """
    flags = [
        c["SURVEY"] == 1,
        c["PURPOSE"] == 1,
        c["FIRST"] == 1,
        c["MALE"] == 1,
        c["GA"] == 1,
        c["LUGGAGE"] > 0,
    ]
    levels = {
        "AGE": (np.minimum(c["AGE"], 5), (1, 2, 4, 5)),  # of 5, one person's is not known
        "INCOME": (np.maximum(c["INCOME"], 1), (1, 3, 4)),  # 0 and 1 are both the lowest
        "WHO": (c["WHO"], (2, 3)),
        "TICKET": (c["TICKET"], (3, 6)),
    }
    coded = [one_hot(column, some) for column, some in levels.values()]
    return np.column_stack([*(flag.astype(np.float64) for flag in flags), *coded])


def mixed(draws: int) -> Any:
    return one(lambda: MixedLogit([0, 1], draws=draws))


TASK = Task(
    name="swissmetro",
    kind="choice",
    metrics=("log_likelihood", "accuracy"),
    load=load,
    total=True,
    models={
        "MultinomialLogit": Fit(one(MultinomialLogit), "usual"),
        "NestedLogit": Fit(one(lambda: NestedLogit(NESTS)), "nested"),
        "MixedLogit": Fit(mixed(200), "usual"),
        "MixedLogit, panel": Fit(mixed(200), "usual", panel=True),
        "ContextualLogit": Fit(penalised(lambda l2: ContextualLogit(l2=l2)), "usual"),
        "MultinomialLogit, covariates": Fit(
            penalised(lambda l2: MultinomialLogit(l2=l2)), "usual with covariates"
        ),
        "NestedLogit, covariates": Fit(one(lambda: NestedLogit(NESTS)), "nested with covariates"),
        "MixedLogit, covariates": Fit(mixed(50), "usual with covariates"),
        "MixedLogit, covariates, panel": Fit(mixed(50), "usual with covariates", panel=True),
    }
    | baselines_of("choice")
    | nets_of("choice")
    | {"auto": Fit(auto("choice"), panel=True, ours=True)},
    targets=(
        Target(
            "auto",
            "log_likelihood",
            rivals=(*RIVALS, "MixedLogit, panel", *WITH, "MixedLogit, covariates, panel"),
        ),
    ),
)
