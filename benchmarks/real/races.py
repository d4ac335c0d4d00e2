"""Simulated horse races with raw columns: heavy-tailed odds, skewed and missing days, names of jockeys and trainers.

The test bed of "a net on raw columns plus text must not be worse than the best single column". Places are drawn from a
Plackett–Luce model. The market sees nearly all of the strength, so sorting by odds is hard to beat; jockeys, trainers,
the draw and long absences carry a little that the odds miss. Odds have a favourite–longshot bias and a margin.
"""

from typing import Any

import numpy as np

__all__ = ["COLUMNS", "make_races", "race_columns"]

#: The features as a user would name them; "odds" alone is the column to beat.
COLUMNS = ["odds", "weight", "age", "draw", "days_since_last_run", "jockey", "trainer"]


def make_races(n_races: int = 8500, random_state: int = 0) -> Any:
    """Return a pandas table of ``n_races`` races of 8 to 14 runners, one row a runner, in order of time.

    Columns: race, day (from 0), the features of `COLUMNS`, place (1 = won). A few cells are wrong by a factor of 10 to
    1,000, as in tables that people bring.

    Examples
    --------
    >>> races = make_races(n_races=100)
    >>> races.race.nunique(), bool(races.groupby("race").place.max().between(8, 14).all())
    (100, True)
    >>> bool(races.odds.max() > 20 * races.odds.median())
    True
    """
    import pandas as pd

    return pd.DataFrame(race_columns(n_races, random_state))


def race_columns(n_races: int = 8500, random_state: int = 0) -> dict[str, Any]:
    """Return the columns of `make_races`, for machines without pandas."""
    rng = np.random.default_rng(random_state)
    sizes = rng.integers(8, 15, n_races)
    race = np.repeat(np.arange(n_races), sizes)
    n = len(race)

    form = rng.normal(0.0, 0.85, n)
    jockey, jockey_skill = _people(rng, form, 150, 0.30)
    trainer, trainer_skill = _people(rng, form, 200, 0.25)
    draw = np.concatenate([1 + rng.permutation(m) for m in sizes])
    turning = rng.normal(0.0, 1.0, n_races)[race]  # how much of a course favours low draws; nobody says so
    outer = (draw - 1) / (sizes[race] - 1) - 0.5
    draw_effect = -0.25 * outer * (1 + 0.5 * turning)
    age = np.clip(np.round(2 + rng.gamma(2.0, 1.3, n)), 2, 14)
    age_effect = -0.04 * (age - 4.5) ** 2 / 2
    days = np.round(np.exp(rng.normal(3.1, 0.8, n))) + 3
    absence = np.where(days > 120, -0.35, 0.0)

    strength = form + jockey_skill + trainer_skill + draw_effect + age_effect + absence
    seen = form + 0.6 * jockey_skill + 0.6 * trainer_skill + 0.4 * draw_effect + age_effect + 0.5 * absence
    believed = 0.95 * seen + rng.normal(0.0, 0.25, n)  # longshots are overbet: flatter than the truth
    share = np.exp(believed)
    share /= np.bincount(race, weights=share)[race]
    odds = np.maximum(1.0 / (1.18 * share), 1.02)
    odds = np.where(odds < 10, np.round(odds, 1), np.where(odds < 50, np.round(odds), np.round(odds / 5) * 5))
    odds = np.maximum(odds, 1.1)
    odds *= np.exp(np.where(share < 0.03, rng.exponential(0.5, n), 0.0))  # longshots drift far out
    odds = np.round(odds, 1)
    weight = np.round(2 * (56 + 1.6 * form + rng.normal(0.0, 2.2, n))) / 2  # the better carry more

    place = _places(rng, strength, race)
    days = np.where(rng.random(n) < 0.09, np.nan, days)
    weight = np.where(rng.random(n) < 0.0003, weight * 10, weight)  # a decimal point lost
    days = np.where(rng.random(n) < 0.0003, 9999.0, days)
    odds = np.where(rng.random(n) < 0.0002, odds * 100, odds)
    return {
        "race": race,
        "day": race // 12,
        "odds": odds,
        "weight": weight,
        "age": age.astype(int),
        "draw": draw,
        "days_since_last_run": days,
        "jockey": [f"J. {_name(code)}" for code in jockey],
        "trainer": [f"T. {_name(code)}" for code in trainer],
        "place": place,
    }


def _people(rng: np.random.Generator, form: Any, levels: int, spread: float) -> tuple[Any, Any]:
    """Return who rides or trains each horse, by a Zipf law, and how much that adds; the busy are a little better."""
    skill = rng.normal(0.0, spread, levels) + np.linspace(spread / 2, -spread / 2, levels)
    chance = 1 / (1 + np.arange(levels)) ** 0.9
    who = rng.choice(levels, len(form), p=chance / chance.sum())
    better = rng.choice(levels, len(form), p=chance / chance.sum())
    swapped = (form > 0.5) & (skill[better] > skill[who])  # good horses get good people
    who = np.where(swapped, better, who)
    return who, skill[who]


def _places(rng: np.random.Generator, strength: Any, race: Any) -> Any:
    """Draw places, 1 = first, from the Plackett–Luce model."""
    noisy = strength + rng.gumbel(size=len(strength))
    order = np.lexsort((-noisy, race))
    first = np.flatnonzero(np.r_[True, race[1:] != race[:-1]])
    place = np.empty(len(race), dtype=int)
    place[order] = np.arange(len(race)) - first[race] + 1
    return place


def _name(code: int) -> str:
    """Return a name for a number, of syllables."""
    heads = [
        "Bar",
        "Col",
        "Dav",
        "Ell",
        "Fen",
        "Gar",
        "Hol",
        "Jar",
        "Kel",
        "Lan",
        "Mor",
        "Nor",
        "Osb",
        "Pal",
        "Ros",
    ]
    tails = ["ton", "ley", "man", "den", "ford", "well", "by", "ham", "son", "wick", "er", "is", "ow", "ett"]
    return heads[code % 15] + tails[code // 15]


if __name__ == "__main__":
    import sys

    make_races().to_csv(sys.argv[1], index=False)
