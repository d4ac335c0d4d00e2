"""What the examples of docs/*.md are about, made small: a page says ``races``, here is a table of that name."""

import numpy as np
import pandas as pd

from entourage import DiscreteChooser, Ranker
from entourage.data import Sets

__all__ = ["SHORTER", "given_to", "write_files"]

#: What makes an example short enough to be run often; all else of a page is run as it stands there.
SHORTER = {
    "trials=40": "trials=2",
    "trials=10": "trials=2",
    "budget=120": "budget=4",
    "refits=16": "refits=None",
    "n_sets=10_000": "n_sets=100",
    "members=8": "members=2",
    'compare(races, groups="season"': 'compare(races, models=["linear", "FATE"], folds=2, groups="season"',
}


def _races(n=60, seed=0, first=0):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(3, 6, n)
    race = np.repeat(np.arange(n), sizes) + first
    rows = len(race)
    odds = rng.lognormal(2, 1, rows)
    strength = -np.log(odds) + rng.gumbel(size=rows)
    return pd.DataFrame(
        {
            "race": race,
            "season": 2000 + race // 10,
            "rain": np.repeat(rng.integers(0, 2, n), sizes),
            "driver": [f"driver {i}" for i in rng.integers(0, 15, rows)],
            "driver_age": rng.uniform(18, 40, rows).round(1),
            "team": rng.choice(["renault", "mercedes", "ferrari"], rows),
            "odds": odds,
            "weight": rng.normal(70, 5, rows),
            "place": 1 + pd.Series(-strength).groupby(race).rank().to_numpy().astype(int),
        }
    )


def _trips(n=80, seed=0):
    rng = np.random.default_rng(seed)
    modes = np.array(["train", "bus", "car"])
    time = rng.uniform(10, 60, (n, 3))
    cost = rng.uniform(1, 9, (n, 3))
    person = np.arange(n) // 4
    taste = rng.normal(0.05, 0.02, n // 4 + 1)[person]
    utility = -taste[:, None] * time - 0.4 * cost + rng.gumbel(size=(n, 3)) + [0.0, -0.3, 0.5]
    return pd.DataFrame(
        {
            "trip": np.repeat(np.arange(n), 3),
            "person": np.repeat(person, 3),
            "mode": np.tile(modes, n),
            "time": time.ravel().round(1),
            "cost": cost.ravel().round(2),
            "taken": (np.arange(3) == utility.argmax(1)[:, None]).ravel().astype(int),
        }
    )


def _products():
    return pd.DataFrame(
        {
            "product": ["coffee", "tea", "juice", "cake", "soup"],
            "price": [2.0, 1.5, 3.0, 4.0, 4.5],
            "quality": [0.8, 0.5, 0.6, 0.9, 0.4],
            "margin": [1.2, 1.0, 1.5, 2.0, 1.9],
            "cost": [0.8, 0.5, 1.5, 2.0, 2.6],
        }
    )


def _visits(n=60, seed=0):
    rng = np.random.default_rng(seed)
    products = _products()
    rows = []
    for visit in range(n):
        shown = products.sample(3, random_state=int(rng.integers(1 << 30)))
        utility = 2 * shown.quality - 0.5 * shown.price + rng.gumbel(size=3)
        bought = np.zeros(3, dtype=int)
        if utility.max() > rng.gumbel():
            bought[int(utility.to_numpy().argmax())] = 1
        rows.append(shown[["product", "price", "quality"]].assign(visit=visit, bought=bought))
    return pd.concat(rows, ignore_index=True)


def _screens(n=40, seed=0):
    rng = np.random.default_rng(seed)
    price = rng.uniform(1, 5, (n, 4))
    clicked = (-price - 0.3 * np.arange(4) + rng.gumbel(size=(n, 4))).argmax(1)
    return pd.DataFrame(
        {
            "screen": np.repeat(np.arange(n), 4),
            "place": np.tile(np.arange(4), n),
            "price": price.ravel(),
            "clicked": (np.arange(4) == clicked[:, None]).ravel().astype(int),
        }
    )


def _arrays(seed=0, n=40):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5, 2))
    ranks = (X[..., 0] + X[..., 1] ** 2).argsort(1).argsort(1)
    sizes = rng.integers(2, 9, n)
    return {
        "X": X,
        "ranks": ranks,
        "X_new": rng.normal(size=(10, 5, 2)),
        "ranks_new": ranks[:10],
        "X_other": rng.normal(size=(30, 5, 2)),
        "ranks_other": ranks[:30],
        "grades": 4 - ranks,
        "list_of_arrays": [rng.normal(size=(m, 2)) for m in sizes],
        "list_of_ranks": [rng.permutation(m) for m in sizes],
        "user_features": rng.normal(size=(n, 3)),
        "new_user_features": rng.normal(size=(10, 3)),
        "weights": rng.uniform(0.5, 1.5, n),
        "person": np.arange(n) // 4,
        "objects": None,
        "mask": None,
    }


def _tensors(given):
    import torch

    return given | {"objects": torch.zeros(4, 5, 2), "mask": torch.ones(4, 5, dtype=torch.bool)}


def _choices():
    given = _arrays()
    return given | {
        "y": given["ranks"].argmin(1),
        "y_new": given["ranks_new"].argmin(1),
        "chosen": (given["ranks"] < 2).astype(int),
        "targets": given["ranks"].clip(0, 1),
        "visits": _visits(),
        "screens": _screens(),
    }


ROLES = {"set_id": "trip", "target": "taken"}


def _trips_and_a_logit():
    from entourage.choice import MultinomialLogit

    trips = _trips()
    columns = ["mode", "time", "cost"]
    return {"trips": trips, "model": MultinomialLogit().fit(trips, **ROLES, features=columns)}


def _trips_and_a_net():
    given = _choices()
    trips = _trips()
    columns = ["mode", "time", "cost"]
    return given | {
        "trips": trips,
        "model": DiscreteChooser("fate", random_state=0).fit(trips, **ROLES, features=columns),
        "chooser": DiscreteChooser("fate", random_state=0).fit(given["X"], given["y"]),
    }


def _races_known():
    return {
        "races": _races(),
        "next_races": _races(5, 1, first=60).drop(columns="place"),
        "finished_races": _races(20, 2, first=70),
    }


def _a_ranker():
    given = _arrays()
    return given | {"model": Ranker("fate", random_state=0).fit(given["X"], given["ranks"])}


def _bookings():
    table = (
        _races(30).rename(columns={"race": "search", "place": "booked"}).drop(columns=["season", "driver"])
    )
    return {"table": table}


def _folder_of_searches():
    from pathlib import Path

    given = _bookings()["table"]
    Ranker("context_free").fit(given, set_id="search", target="booked").save("bookings.entourage")
    Path("searches").mkdir()
    given.drop(columns="booked").to_parquet("searches/a.parquet")
    return {}


def _hotels():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4, 2))
    Ranker("context_free").fit(Sets.of(X), X[..., 0].argsort(1).argsort(1)).save("hotels.entourage")
    return {}


def _an_ensemble():
    given = _arrays()
    return given | {"model": Ranker("fate", members=2, random_state=0).fit(given["X"], given["ranks"])}


_GIVEN = {
    "beyond": _an_ensemble,
    "sets": _arrays,
    "features": _arrays,
    "nets": lambda: _tensors(_arrays()),
    "training": _arrays,
    "tuning": _arrays,
    "automatic": _arrays,
    "probabilities": _arrays,
    "files": _a_ranker,
    "tables": _races_known,
    "verdict": _races_known,
    "choices": _choices,
    "logits": lambda: {"trips": _trips(), "more_trips": _trips(20, 1)},
    "effects": _trips_and_a_net,
    "whatif": _trips_and_a_logit,
    "elasticities": _trips_and_a_logit,
    "assortment": lambda: {"visits": _visits(), "products": _products()},
    "serving": _hotels,
    "export": _a_ranker,
    "scale": _bookings,
    "scoring": _folder_of_searches,
    "explorer": lambda: {"table": _trips_and_a_logit()["trips"], **_trips_and_a_logit()},
}


def given_to(page):
    """Return the names that the examples of a page take for given; files go to the working folder."""
    return _GIVEN.get(page, dict)()


def write_files(folder):
    """Write the tables and models that the examples of ``--help`` name."""
    races, trips, products = _races(), _trips(), _products()
    races.to_csv(folder / "races.csv", index=False)
    races.tail(60).to_csv(folder / "held_out.csv", index=False)
    trips["price"], trips["brand"] = trips.cost, np.where(trips.index % 2, "x", "y")
    trips.to_csv(folder / "trips.csv", index=False)
    products.rename(columns={"product": "name"}).to_csv(folder / "products.csv", index=False)
    short = {"steps": 3, "random_state": 0}
    ranker = Ranker("fate", **short).fit(races, set_id="race", target="place", ignore=["driver", "season"])
    ranker.save(folder / "model.entourage")
    columns = ["mode", "brand", "time", "cost", "price"]
    chooser = DiscreteChooser("fate", **short).fit(trips, set_id="trip", target="taken", features=columns)
    chooser.save(folder / "trips.entourage")
    visits = {"set_id": "visit", "target": "bought", "features": ["price", "quality"]}
    DiscreteChooser("fate", outside=True, **short).fit(_visits(), **visits).save(folder / "shop.entourage")
