"""Profiles: counts against all pairs, one by one."""

from itertools import combinations

import numpy as np
import pyarrow as pa
from long_tables import ROLES, TABLE

from entourage.data import Sets
from entourage.data.profile import ColumnProfile, profile_of


def test_pairs_are_those_counted_one_by_one():
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 9, 40)
    ranks = [rng.choice([0.0, 1.0, 2.0, 2.0, 3.0, -1.0, np.nan], m) for m in sizes]
    sets = Sets.from_list([np.zeros((m, 1)) for m in sizes], ranks)
    profile = profile_of(sets)
    known = [[rank for rank in row if rank >= 0] for row in ranks]
    pairs = [pair for row in known for pair in combinations(row, 2)]
    assert profile.tied_pairs == sum(a == b for a, b in pairs)
    assert profile.ordered_pairs == sum(a != b for a, b in pairs)
    assert profile.unranked == sum(map(len, ranks)) - sum(map(len, known))
    assert (profile.smallest, profile.largest) == (sizes.min(), sizes.max())
    assert profile.sets_of_one == (sizes == 1).sum()


def test_without_targets_nothing_is_ranked():
    profile = profile_of(Sets.of(np.zeros((4, 3, 2))))
    assert (profile.tied_pairs, profile.ordered_pairs, profile.unranked) == (0, 0, 12)
    assert profile.columns == ()


def test_columns_say_what_they_are():
    rows = {"race": [1, 1], "team": ["a", "b"], "age": [None, 30.0], "wet": [True, True], "place": [1, 2]}
    sets = Sets.from_frame(pa.table(rows), set_id="race", target="place", situation=["wet"])
    profile = profile_of(sets)
    assert profile.columns == (
        ColumnProfile("team", "category", "object", 2, False),
        ColumnProfile("age", "number", "object", 0, True),
        ColumnProfile("wet", "flag", "situation", 0, False),
    )
    assert profile.to_json()["columns"][0]["levels"] == 2


def test_profiles_count_sets_and_ties():
    profile = profile_of(Sets.from_frame(TABLE, **ROLES))
    assert (profile.sets, profile.objects, profile.sets_of_one) == (3, 6, 1)
    assert (profile.ordered_pairs, profile.tied_pairs, profile.unranked) == (4, 0, 0)
