"""Long tables, one row an object, that several rooms are tried on."""

import numpy as np
import pyarrow as pa

ROWS = {
    "race": ["b", "a", "b", "a", "c", "b"],
    "age": [31.0, 24.0, None, 40.0, 22.0, 28.0],
    "wet": [True, False, True, False, True, True],
    "team": ["red", "blue", "blue", None, "red", "green"],
    "laps": [50, 60, 50, 60, 70, 50],
    "place": [2, 1, 1, 2, 1, 3],
}
TABLE = pa.table(ROWS)
ROLES = {"set_id": "race", "target": "place", "situation": ["laps", "wet"]}


def changed(name, values):
    """TABLE with other values in one column."""
    return TABLE.set_column(TABLE.column_names.index(name), name, pa.array(values))


def long_table(n=40, seed=0):
    """Rank by the distance to the mean of the set, in rows that are shuffled."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(3, 7, n)
    race = np.repeat(np.arange(n), sizes)
    x = rng.random(len(race))
    mean = np.bincount(race, x) / sizes
    gap = np.abs(x - mean[race])
    place = np.concatenate([np.argsort(np.argsort(gap[race == i])) for i in range(n)])
    order = rng.permutation(len(race))
    columns = {"race": race, "x": x, "note": np.array([f"n{i}" for i in range(len(race))]), "place": place}
    return pa.table({name: values[order] for name, values in columns.items()})


def sets_together(n=300, seed=0):
    """Random places, some values missing; the rows of a set stand together."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 6, n)
    race = np.repeat(np.arange(n), sizes)
    x = rng.normal(50, 3, len(race))
    x[::17] = np.nan
    team = rng.choice(["a", "b", "c"], len(race))
    place = np.concatenate([rng.permutation(m) for m in sizes])
    return pa.table({"race": race, "x": x, "team": team, "laps": sizes[race], "place": place})
