"""Stated choices among six cars: every person answered once, so five folds of rows.

The logits take the variables of Brownstone and Train (1999), as McFadden and Train (2000) do; random coefficients are
those of McFadden and Train: electric, natural gas, size, luggage space. Cars stand in three pairs, which differ only in
the type of the body; the pairs are the nests.

In the file "methanol" and "electric" are interchanged: those called methanol have no emissions, ranges to 200 miles and
no stations. Read so, the logit has the published log-likelihood, −7391.830, and the published estimates.
"""

from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.real.csv_file import chosen_of, one_hot, read_columns
from benchmarks.real.parts import Fit, Part, Target, Task, folds_of
from benchmarks.real.rivals import auto, baselines_of, nets_of, one, penalised
from entourage.choice import ContextualLogit, MixedLogit, MultinomialLogit, NestedLogit
from entourage.data.sets import Sets

__all__ = ["TASK", "USUAL", "load"]

NUMBERS = ("price", "range", "acc", "speed", "pollution", "size", "space", "cost", "station")
TYPES = ("regcar", "sportuv", "sportcar", "stwagon", "truck", "van")
WRITTEN = ("gasoline", "electric", "cng", "methanol")  # gasoline, methanol, natural gas, electric; see above
ABOUT = ("college", "hsg2", "coml5")  # college; more than two people; commutes less than five miles
#: The variables of the logits, in order.
USUAL = (
    *("price", "range", "acceleration", "speed", "pollution", "size", "big enough", "luggage space", "cost"),
    *("station", *TYPES[1:], "electric", "electric, short commute", "electric, college", "natural gas"),
    *("methanol", "methanol, college"),
)
RANDOM = [USUAL.index(name) for name in ("electric", "natural gas", "size", "luggage space")]


@cache
def load(data: Path, part: str = "") -> Part:
    """Read the 4,654 choices."""
    c = read_columns(data / "car_choice" / "car.csv.gz")
    n = len(c["choice"])
    wide = {
        name: np.column_stack([c[f"{name}{k}"] for k in range(1, 7)]) for name in (*NUMBERS, "type", "fuel")
    }
    x = {name: wide[name].astype(np.float64) for name in NUMBERS}
    types, fuels = one_hot(wide["type"], TYPES), one_hot(wide["fuel"], WRITTEN)
    about = np.column_stack([c[name] for name in ABOUT]).astype(np.float64)
    college, large, short = (about[:, [k]] for k in range(3))
    methanol, gas, electric = (fuels[..., k] for k in (1, 2, 3))
    usual = [
        x["price"],
        x["range"] / 100,
        x["acc"] / 10,
        x["speed"] / 100,
        x["pollution"],
        x["size"] / 10,
        large * (x["size"] == 3),
        x["space"],
        x["cost"] / 10,
        x["station"],
        *(types[..., k] for k in range(1, 6)),
        electric,
        electric * short,
        electric * college,
        gas,
        methanol,
        methanol * college,
    ]
    places = np.array([int(word.removeprefix("choice")) - 1 for word in c["choice"]])
    targets = chosen_of(places, np.ones((n, 6), dtype=bool)).reshape(n, 6)
    place = np.tile(np.arange(1.0, 7.0), (n, 1))
    features = np.concatenate([np.stack([x[name] for name in NUMBERS], 2), types, fuels], axis=2)
    views = {
        "features": Sets.from_array(features, targets, about),
        "usual": Sets.from_array(np.stack(usual, 2), targets),
        "nested": Sets.from_array(np.stack([place, *usual], 2), targets),
    }
    views = {name: sets.with_targets(sets.targets, worst=1.0) for name, sets in views.items()}
    return Part(views, folds_of(n))


TASK = Task(
    name="car_choice",
    kind="choice",
    metrics=("log_likelihood", "accuracy"),
    load=load,
    total=True,
    models={
        "MultinomialLogit": Fit(one(MultinomialLogit), "usual"),
        "NestedLogit": Fit(one(lambda: NestedLogit([[1, 2], [3, 4], [5, 6]], intercepts=False)), "nested"),
        "MixedLogit": Fit(one(lambda: MixedLogit(RANDOM, draws=100)), "usual"),
        "ContextualLogit": Fit(penalised(lambda l2: ContextualLogit(l2=l2), (10.0, 100.0)), "usual"),
    }
    | baselines_of("choice")
    | nets_of("choice")
    | {"auto": Fit(auto("choice"), ours=True)},
    targets=(Target("auto", "log_likelihood", rivals=("MultinomialLogit", "NestedLogit", "MixedLogit")),),
)
