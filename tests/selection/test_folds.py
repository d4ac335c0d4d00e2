"""The folds of a comparison: what is learnt from, chosen by and compared on never overlaps."""

import numpy as np
import pytest

from entourage.data.resampling import forward_folds
from entourage.errors import DataError
from entourage.selection.folds import inner_folds_for, outer_folds


@pytest.mark.parametrize("inner", [None, 0, 1, 3])
@pytest.mark.parametrize("timed", [False, True])
def test_no_set_is_both_learnt_from_and_chosen_by_or_compared_on(inner, timed):
    rng = np.random.default_rng(0)
    times = rng.integers(0, 30, size=80) if timed else None
    for fold in outer_folds(80, 4, inner, labels=None, times=times, random_state=1):
        parts = [fold.train, fold.test] + ([] if fold.aside is None else [fold.aside])
        assert len(np.unique(np.concatenate(parts))) == sum(map(len, parts))
        assert (fold.aside is not None) == (inner == 0)
        assert len(fold.inner) == (inner or 0)
        for learnt, judged in fold.inner:
            assert not set(learnt) & set(judged)
            assert set(learnt) | set(judged) <= set(fold.train)
        if timed:
            assert times[fold.train].max() < times[fold.test].min()
            for earlier, later in [*fold.inner, *([] if fold.aside is None else [(fold.train, fold.aside)])]:
                assert times[earlier].max() < times[later].min()


def test_groups_are_not_parted():
    labels = np.arange(60) // 3
    for fold in outer_folds(60, 4, 0, labels=labels, times=None, random_state=0):
        train, test, aside = (set(labels[part]) for part in (fold.train, fold.test, fold.aside))
        assert not train & test
        assert not train & aside
        assert not test & aside


def test_every_set_but_the_first_ones_is_held_out_once_forward_in_time():
    held_out = np.concatenate([held for _, held in forward_folds(np.arange(100)[::-1], 4)])
    assert sorted(held_out) == list(range(80)), "the twenty earliest are only learnt from"


def test_sets_of_one_time_stay_together_however_uneven_times_are():
    times = np.repeat([3, 1, 2, 9, 4], [50, 1, 1, 1, 1])
    folds = forward_folds(times, 4)
    assert [sorted(set(times[held])) for _, held in folds] == [[2], [3], [4], [9]]
    with pytest.raises(DataError, match="need sets of at least 6 times; there are 5"):
        forward_folds(times, 5)


def test_many_sets_need_no_inner_folds():
    assert inner_folds_for(100) == 1
    assert inner_folds_for(10_000) == 0


@pytest.mark.parametrize("inner", [0, 1])
def test_a_few_seasons_are_enough_for_folds_forward_in_time(inner):
    seasons = np.repeat(np.arange(12), 10)
    found = outer_folds(120, 5, inner, labels=None, times=seasons, random_state=0)
    parts = [fold.inner[0] if inner else (fold.train, fold.aside) for fold in found]
    assert sorted(set(seasons[np.concatenate(parts[0])])) == [0, 1]
    assert all(seasons[earlier].max() < seasons[later].min() for earlier, later in parts)
    found = outer_folds(120, 11, inner, labels=None, times=seasons, random_state=0)
    first = found[0].inner[0] if inner else (found[0].train, found[0].aside)
    assert set(seasons[np.concatenate(first)]) == {0}
    assert [len(part) for part in first] == [8, 2], "of one season, a fifth of its sets"
