"""What tables and arrays are refused for, in words that say what to do; and rare inputs that are right."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from entourage.data import Sets, read_table
from entourage.data.encoder import TableEncoder
from entourage.data.frames import arrow_table
from entourage.data.grouping import times_of, weights_of
from entourage.data.parquet_stream import whole_sets
from entourage.data.photographs.depth import depth_ranks
from entourage.data.set_runs import read_runs
from entourage.data.table_files import write_table
from entourage.errors import DataError, DataWarning, ParameterError, ShapeError, UserError

FRAME = pd.DataFrame({"race": [1, 1, 2, 2], "age": [31.0, 24.0, 28.0, 40.0], "place": [1, 2, 2, 1]})
ROLES = {"set_id": "race", "target": "place"}


def encoded(frame, **roles):
    encoder = TableEncoder.fit(frame, **(ROLES | roles))
    return encoder, encoder(frame)


# --- arrays ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Sets(np.zeros(3), [0, 3]), r"objects needs 2 axes \(objects, features\); got shape \(3,\)"),
        (lambda: Sets(np.zeros((3, 1)), [[0, 3]]), r"one axis of \(sets \+ 1\) entries; got shape \(1, 2\)"),
        (lambda: Sets(np.zeros((3, 1)), [0]), "At least one set is needed"),
        (lambda: Sets(np.zeros((3, 1)), [0, 3], [0, 1]), r"one entry per object, 3 in all; got shape \(2,\)"),
        (lambda: Sets(np.zeros((3, 1)), [0.0, 3.0]), "offsets needs whole numbers; got float64"),
    ],
)
def test_packed_arrays_of_the_wrong_shape_are_refused(make, says):
    with pytest.raises(ShapeError, match=says):
        make()


def test_tensors_of_half_precision_become_sets():
    import torch

    half = torch.tensor([[[0.5], [1.0]]], dtype=torch.bfloat16, requires_grad=True)
    assert Sets.of(half).objects.tolist() == [[0.5], [1.0]]


def test_sets_relative_to_nothing_are_as_they_were():
    sets = Sets.of(np.zeros((2, 3, 1)))
    assert sets.relative([]) is sets


def test_plain_ranks_are_not_joined_with_grades():
    ranks, grades = (Sets.from_frame(FRAME, **ROLES, target_kind=kind) for kind in ("rank", "relevance"))
    with pytest.raises(DataError, match="relevances can't be joined with sets of plain ranks"):
        Sets.concatenate([ranks, grades])


def test_ranks_of_distances_need_a_limit_above_0():
    for farthest in (0.0, -1.0, np.nan):
        with pytest.raises(ParameterError, match="a distance above 0, or infinity"):
            depth_ranks(np.array([1.0, 2.0]), farthest)


# --- frames ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Sets.from_frame(FRAME), "from_frame needs set_id"),
        (lambda: Sets.from_frame(FRAME, like=Sets.of(np.zeros((1, 2, 1)))), "these came from arrays"),
        (lambda: encoded(FRAME, situation=["place"]), "'place' can't be of the situation and something else"),
        (lambda: encoded(FRAME, target="race"), "can't be the set id and the target as well"),
        (lambda: arrow_table(FRAME.rename(columns={"age": 7})), "names that are text; there is 7. Rename it"),
        (lambda: arrow_table({"race": [1]}), "pandas, polars or Arrow frame; got dict"),
        (
            lambda: arrow_table(FRAME.assign(age=[31, "old", 28, 40])),
            "Column 'age' mixes types .*: row 2 holds 'old', a str",
        ),
    ],
)
def test_a_frame_that_can_not_be_read_is_refused(make, says):
    with pytest.raises(UserError, match=says):
        make()


def test_sets_become_a_long_table_and_sets_again():
    sets = Sets.of(np.arange(12.0).reshape(2, 3, 2), [[0, 1, 2], [2, 1, 0]]).with_position(
        [[1, 2, 3], [3, 2, 1]]
    )
    table = sets.to_frame(["length", "width"])
    assert table.column_names == ["set", "length", "width", "target", "position"]
    again = Sets.from_frame(table, set_id="set", target="target", features=["length", "width"])
    np.testing.assert_array_equal(again.objects, sets.objects)
    np.testing.assert_array_equal(again.targets, sets.targets)
    assert table.column("position").to_pylist() == [1, 2, 3, 3, 2, 1]
    assert Sets.of(sets.objects[None]).to_frame().column_names == ["set", "x0", "x1"]


def test_a_column_without_a_value_is_no_feature_then_and_may_be_empty_later():
    for nothing in ([None] * 4, [np.nan] * 4):
        encoder, packed = encoded(FRAME.assign(speed=pd.Series(nothing, dtype=float)))
        assert packed.sets.n_features == 1, "age alone"
        assert encoder.feature_names == ["age"]
    encoder, _ = encoded(FRAME.assign(age=[31.0, np.nan, 28.0, 40.0]))
    table = pa.Table.from_pandas(FRAME.drop(columns="age")).append_column("age", pa.nulls(4))
    later = encoder(table, with_target=False).sets
    marks = later.objects[:, encoder.feature_names.index("age is missing")]
    assert marks.tolist() == [1.0] * 4


def test_a_flag_stays_a_flag():
    encoder, _ = encoded(FRAME.assign(young=[True, False, True, False]))
    as_numbers = encoder(FRAME.assign(young=[1, 0, 1, 0])).sets
    flags = encoder(FRAME.assign(young=[True, False, True, False])).sets
    np.testing.assert_array_equal(as_numbers.objects, flags.objects)
    with pytest.raises(
        DataError, match="held booleans when the model was fitted; .*row 3.* holds 2. Give it as"
    ):
        encoder(FRAME.assign(young=[1, 0, 2, 0]))
    numbers, _ = encoded(FRAME)
    with pytest.raises(DataError, match="held numbers when the model was fitted, and holds booleans now"):
        numbers(FRAME.assign(age=[True, False, True, False]))


def test_few_numbers_that_are_text_are_taken_for_levels_without_a_warning():
    encoder, packed = encoded(FRAME.assign(gate=["1", "2", "1", "2"]))
    assert [c.kind for c in encoder.columns if c.name == "gate"] == ["category"]
    assert packed.sets.n_features == 3


def test_an_index_without_a_name_is_left_out_where_it_counts_rows():
    unnamed = FRAME.assign(**{"Unnamed: 0": np.arange(4)})
    with pytest.warns(DataWarning, match="seems to be the index of a frame"):
        encoder, _ = encoded(unnamed)
    assert encoder.feature_names == ["age"]
    encoder, _ = encoded(FRAME.assign(**{"Unnamed: 0": [5, 5, 6, 7]}))
    assert set(encoder.feature_names) == {"age", "Unnamed: 0"}, "the same value twice is no index"


def test_grades_may_all_be_missing():
    _, packed = encoded(FRAME.assign(place=[np.nan] * 4), target_kind="relevance")
    assert np.isnan(packed.sets.targets).all()
    assert packed.sets.worst is None


def test_encoders_that_differ_say_how():
    one, _ = encoded(FRAME.assign(team=["a", "b", "a", "b"]))
    for other, says in [
        (FRAME, "'team' in only one of them"),
        (FRAME[["race", "place"]].assign(team=["a", "b", "a", "b"], age=FRAME.age), "another order"),
        (
            FRAME.assign(team=["a", "c", "a", "c"]),
            r"column 'team' is encoded by other levels \('a', 'b'; 'a', 'c'\)",
        ),
        (FRAME.assign(team=[1.0, 2.0, np.nan, 4.0]), "'team' is encoded differently"),
        (FRAME.assign(team=[1.0, 2.0, 3.0, 4.0]), "text of 2 levels; a number of the object, never missing"),
    ]:
        with pytest.raises(DataError, match=says):
            one.check_same(encoded(other)[0], "These sets can't be joined")


# --- columns that weigh and order sets ------------------------------------------------------------


def test_weights_are_numbers_and_times_have_an_order():
    _, packed = encoded(FRAME)
    with pytest.raises(DataError, match="weighs sets, so it needs numbers; it holds"):
        weights_of(FRAME.assign(heavy=["a", "a", "b", "b"]), packed, "heavy")
    assert weights_of(FRAME.assign(heavy=[2, 2, 3, 3]), packed, "heavy").tolist() == [2.0, 3.0]
    for days in (["2020-02-01", "2020-02-01", "2019-03-31", "2019-03-31"], [9, 9, 7, 7]):
        assert times_of(FRAME.assign(day=days), packed, "day").tolist() == [1, 0]
        as_category = FRAME.assign(day=pd.Categorical(days))
        assert times_of(as_category, packed, "day").tolist() == [1, 0]
    with pytest.raises(
        DataError, match="as text it needs the year first, as in 2019-03-31; it holds '31.3.2019'"
    ):
        times_of(FRAME.assign(day=["31.3.2019"] * 2 + ["2019-03-31"] * 2), packed, "day")
    with pytest.raises(DataError, match="orders sets in time; it is missing in row 3"):
        times_of(FRAME.assign(day=["2019-03-31"] * 2 + [None] * 2), packed, "day")


def test_levels_that_no_row_has_do_not_stand_in_the_way_of_time():
    _, packed = encoded(FRAME)
    levels = pa.array(["unknown", "2020-02-01", "2019-03-31", None])
    days = pa.DictionaryArray.from_arrays(pa.array([1, 1, 2, 2], pa.int32()), levels)
    table = pa.Table.from_pandas(FRAME).append_column("day", days)
    assert times_of(table, packed, "day").tolist() == [1, 0]


def test_set_ids_of_arrows_other_text_are_read():
    ids = pa.array(["x", "x", "y", "y"])
    plain = Sets.from_frame(pa.table({"race": ids, "age": FRAME.age, "place": FRAME.place}), **ROLES)
    codes = pa.array([0, 0, 1, 1], pa.int32())
    dictionary = pa.DictionaryArray.from_arrays(codes, pa.array(["x", "y"]).cast(pa.string_view()))
    for other in (ids.cast(pa.string_view()), dictionary):
        found = Sets.from_frame(pa.table({"race": other, "age": FRAME.age, "place": FRAME.place}), **ROLES)
        np.testing.assert_array_equal(found.targets, plain.targets)
        np.testing.assert_array_equal(found.offsets, plain.offsets)


# --- files ----------------------------------------------------------------------------------------


def test_files_that_can_not_be_read_or_written_say_why(tmp_path):
    one = tmp_path / "one.csv"
    one.write_text("race\n1\n")
    assert read_table(one).column_names == ["race"], "a single column of its own"
    twice = tmp_path / "twice.csv"
    twice.write_text("race,age,age\n1,2,3\n")
    with pytest.raises(DataError, match="more than one column named 'age'; rename them"):
        read_table(twice)
    table = pa.table({"race": [1]})
    for name, says in [
        (
            "t.xlsx",
            "tables can be written as .csv, .tsv, .parquet, .pq, .feather, .arrow, .jsonl, .ndjson, plain",
        ),
        ("t.letor", "tables can be written as"),
        ("t.csv.zst", "plain or with .gz"),
        ("t.parquet.gz", "parquet files are compressed inside; leave .gz off"),
    ]:
        with pytest.raises(UserError, match=says):
            write_table(tmp_path / name, table)
    for name, says in [
        ("t.parquet.gz", "Parquet is compressed inside"),
        ("t.arrow.gz", "Arrow files are compressed"),
    ]:
        (tmp_path / name).write_bytes(b"x")
        with pytest.raises(DataError, match=says):
            read_table(tmp_path / name)


def test_empty_parts_of_a_stream_are_passed_over():
    def part(*ids):
        return pa.table({"race": pa.array(ids, pa.int64())})

    found = [
        t.column("race").to_pylist() for t in whole_sets([part(), part(1, 1), part(), part(1, 2)], "race")
    ]
    assert found == [[1, 1, 1], [2]]
    assert list(whole_sets([part()], "race")) == []


def test_runs_pass_over_empty_batches_and_need_an_id():
    empty, ids = pa.array([], pa.int64()), pa.array([1, 1, 2])
    assert read_runs([empty, ids, empty], [1, 2]) == read_runs([ids], [1, 2])
    with pytest.raises(ValueError, match="There are no ids"):
        read_runs([empty], [1])


def test_a_parquet_file_whose_columns_share_a_name_is_refused(tmp_path):
    from entourage.data.parquet_files import open_sources
    from entourage.data.places import place_of

    table = pa.table([pa.array([1]), pa.array([2])], names=["race", "race"])
    parquet.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(DataError, match="more than one column named 'race'; rename them"):
        open_sources([place_of(str(tmp_path / "t.parquet"))])
