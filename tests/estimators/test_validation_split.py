"""Which sets are held out: informative ones, whole groups, and never all."""

import numpy as np
import pytest

from entourage.data import Sets
from entourage.estimators.validation_split import hold_out
from entourage.tasks import Ranking

RNG = np.random.default_rng(0)


def sets_of(n, tied=()):
    targets = np.tile([0, 1, 2], (n, 1))
    targets[list(tied)] = 0
    return Sets.of(RNG.normal(size=(n, 3, 1)), targets)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("groups", [np.arange(60) // 3, RNG.integers(12, size=60), np.arange(60) % 2])
def test_groups_are_not_parted_and_every_set_is_used_once(seed, groups):
    train, held = hold_out(Ranking(), sets_of(60), 0.1, seed, groups)
    assert sorted([*train, *held]) == list(range(60))
    assert not set(groups[train]) & set(groups[held])
    assert len(train) >= 20


def test_about_the_share_is_held_out_where_groups_are_small():
    _, held = hold_out(Ranking(), sets_of(200), 0.1, 0, np.arange(200) // 2)
    assert len(held) == 20


@pytest.mark.parametrize("seed", range(8))
def test_a_group_of_most_sets_is_learnt_from(seed):
    groups = np.where(np.arange(100) < 90, 0, np.arange(100))
    _, held = hold_out(Ranking(), sets_of(100), 0.1, seed, groups)
    assert 0 < len(held) <= 10


def test_sets_with_nothing_to_learn_are_not_held_out_and_not_learnt_from_if_their_group_is_held_out():
    sets = sets_of(60, tied=range(0, 60, 3))
    groups = np.arange(60) // 3
    train, held = hold_out(Ranking(), sets, 0.1, 0, groups)
    assert (held % 3 > 0).all()
    assert not set(groups[train]) & set(groups[held])


def test_one_group_or_few_sets_hold_nothing_out():
    assert hold_out(Ranking(), sets_of(60), 0.1, 0, np.zeros(60))[1] is None
    assert hold_out(Ranking(), sets_of(10), 0.1, 0, np.arange(10))[1] is None
