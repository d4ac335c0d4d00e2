"""Folds: every set in one test part, no group split."""

import numpy as np
import pytest

from entourage.data.folds import fold_indices
from entourage.errors import DataError


def test_folds_part_all_sets_once_and_no_group_is_parted():
    groups = np.arange(100) % 13
    parts = fold_indices(100, 4, groups=groups, random_state=3)
    assert sorted(np.concatenate([test for _, test in parts])) == list(range(100))
    for train, test in parts:
        assert not set(train) & set(test)
        assert not set(groups[train]) & set(groups[test])
    sizes = [len(test) for _, test in fold_indices(100, 4)]
    assert sizes == [25] * 4


def test_folds_need_as_many_groups():
    with pytest.raises(DataError, match="3 folds need at least so many groups of sets; there are 2"):
        fold_indices(10, 3, groups=np.arange(10) % 2)
    with pytest.raises(DataError, match="one entry a set"):
        fold_indices(10, 3, groups=np.arange(9))
