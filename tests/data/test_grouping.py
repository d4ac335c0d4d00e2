"""Rows of one id, brought together: any kind of id, in order of first appearance."""

import numpy as np
import pyarrow as pa
import pytest

from entourage.data.grouping import group_rows


def test_grouping_keeps_the_order_of_first_appearance():
    rows, offsets, first = group_rows(np.array(["b", "a", "b", "c", "a"]))
    assert rows.tolist() == [0, 2, 1, 4, 3]
    assert offsets.tolist() == [0, 2, 4, 5]
    assert first.tolist() == [0, 1, 3]


IDS = ["b", "a", "b", "c", "a"]


@pytest.mark.parametrize(
    "ids",
    [
        np.array(IDS),
        pa.array(IDS),
        pa.array(IDS, pa.large_string()),
        pa.array(IDS).dictionary_encode(),
        pa.DictionaryArray.from_arrays([3, 0, 3, 1, 0], ["a", "c", "unused", "b"]),
        np.array([9, 2**62, 9, -1, 2**62]),
    ],
    ids=["numpy", "arrow", "large", "dictionary", "categories with a gap", "whole numbers"],
)
def test_every_kind_of_id_is_grouped_alike(ids):
    rows, offsets, first = group_rows(ids)
    assert rows.tolist() == [0, 2, 1, 4, 3]
    assert offsets.tolist() == [0, 2, 4, 5]
    assert first.tolist() == [0, 1, 3]


def test_rows_that_stand_together_stay_where_they_are():
    rows, offsets, _ = group_rows(np.repeat([5, 3, 8], [2, 1, 3]))
    assert rows.tolist() == [0, 1, 2, 3, 4, 5]
    assert offsets.tolist() == [0, 2, 3, 6]
