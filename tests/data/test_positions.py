"""Positions of objects: packed, carried along wherever sets go, refused where they can't be."""

import numpy as np
import pandas as pd
import pytest

from entourage.data import Sets
from entourage.data.encoder import TableEncoder
from entourage.data.grouping import positions_of
from entourage.data.positions import MOST_POSITIONS, levels_of_positions, pack_positions
from entourage.errors import DataError, ParameterError, ShapeError

SIZES = np.array([2, 3])


def sets_of_two(position=((1, 0), (2, 0, 1))):
    return Sets.from_list([np.zeros((2, 1)), np.ones((3, 1))], [[0, 1], [0, 1, 2]]).with_position(position)


def test_positions_go_with_their_objects():
    sets = sets_of_two()
    assert sets.position.tolist() == [1, 0, 2, 0, 1]
    assert sets[1].position.tolist() == [2, 0, 1]
    assert sets[[1, 0]].position.tolist() == [2, 0, 1, 1, 0]
    assert sets[1:].position.tolist() == [2, 0, 1]
    assert [part.position.tolist() for part in sets] == [[1, 0], [2, 0, 1]]
    assert Sets.concatenate([sets[1], sets[0]]).position.tolist() == [2, 0, 1, 1, 0]
    assert sets.with_targets([[1, 0], [0, 0, 1]]).position.tolist() == [1, 0, 2, 0, 1]
    assert sets.with_features(sets.objects + 1, None).position.tolist() == [1, 0, 2, 0, 1]
    assert Sets.of(sets, situation=np.zeros((2, 1))).position.tolist() == [1, 0, 2, 0, 1]
    assert all(part.position is not None for part in sets.split(0.5, random_state=0))
    drawn = Sets(np.arange(40.0)[:, None], [0, 10, 40], position=np.arange(40)).sample_subsets(
        4, 0, per_set=3
    )
    assert (drawn.objects[:, 0] == drawn.position).all()
    assert "positions" in repr(sets)
    assert sets.with_position(None).position is None
    assert sets.position is not None


def test_positions_come_in_rows_arrays_or_packed_as_whole_numbers_or_text():
    for given in (
        [[0, 1], [1.0, 0, 2]],
        np.array([0, 1, 1, 0, 2]),
        np.array([0, 1, 1, 0, 2], dtype=np.uint8),
    ):
        assert pack_positions(given, SIZES).tolist() == [0, 1, 1, 0, 2]
    assert pack_positions(np.array([[1, 2], [2, 1]]), np.array([2, 2])).tolist() == [1, 2, 2, 1]
    assert pack_positions([["a", "b"], ["bb", "a", "b"]], SIZES).tolist() == ["a", "b", "bb", "a", "b"]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ([0, 1, 2], ShapeError, "5 in all"),
        ([[0, 1], [1, 0]], ShapeError, "rows as long"),
        ([0, 1, 0.5, 0, 1], DataError, "0.5"),
        ([0, 1, np.nan, 0, 1], DataError, "nan"),
        ([0, 1, np.inf, 0, 1], DataError, "inf"),
        (np.array([0, 1, None, 0, 1], dtype=object), DataError, "whole numbers or text"),
        ("place", ParameterError, "no table"),
    ],
)
def test_what_is_no_position_is_refused(given, error, message):
    with pytest.raises(error, match=message):
        pack_positions(given, SIZES)


def test_levels_are_few_and_at_least_two():
    assert levels_of_positions(np.array(["b", "a", "b"])) == ["a", "b"]
    with pytest.raises(DataError, match="no effect"):
        levels_of_positions(np.zeros(3, dtype=int))
    with pytest.raises(DataError, match="different values"):
        levels_of_positions(np.arange(MOST_POSITIONS + 1))


def test_sets_with_and_without_positions_are_not_joined():
    with pytest.raises(DataError, match="without"):
        Sets.concatenate([sets_of_two(), sets_of_two().with_position(None)])
    with pytest.raises(DataError, match="text"):
        Sets.concatenate([sets_of_two(), sets_of_two([["a", "b"], ["a", "b", "b"]])])


def test_a_column_of_a_table_follows_its_rows():
    table = pd.DataFrame(
        {"s": [1, 0, 1, 0], "x": [0.0, 1.0, 2.0, 3.0], "at": [7, 8, 9, 7], "side": list("lrrl")}
    )
    packed = TableEncoder.fit(table, set_id="s", target=None, ignore=["at", "side"])(table)
    assert positions_of(table, packed, "at").tolist() == [7, 9, 8, 7]
    assert positions_of(table, packed, "side").tolist() == ["l", "r", "r", "l"]
    assert positions_of(table.assign(side=table.side.astype("category")), packed, "side").tolist() == [
        *"lrrl"
    ]
    with pytest.raises(DataError, match="missing in row 2"):
        positions_of(table.assign(at=[7, None, 9, 7]), packed, "at")
    with pytest.raises(DataError, match="'at'.*1.5"):
        positions_of(table.assign(at=[7, 1.5, 9, 7]), packed, "at")
