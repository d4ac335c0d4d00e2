"""Long tables in any frame: from rows to sets and back; bad input is one clear sentence."""

import json

import numpy as np
import pyarrow as pa
import pytest
from long_tables import ROLES, ROWS, TABLE, changed

from entourage.data import Sets
from entourage.data.encoder import TableEncoder
from entourage.data.grouping import groups_of
from entourage.errors import DataError, UserError


def frames():
    import pandas as pd
    import polars as pl

    yield "pandas", pd.DataFrame(ROWS)
    yield "pandas, an index of its own", pd.DataFrame(ROWS, index=[5, 3, 8, 1, 9, 0])
    yield "polars", pl.DataFrame(ROWS)
    yield "arrow", TABLE


@pytest.mark.parametrize(("name", "frame"), list(frames()), ids=lambda v: v if isinstance(v, str) else "")
def test_every_frame_makes_the_same_sets(name, frame):
    sets = Sets.from_frame(frame, **ROLES)
    assert sets.sizes.tolist() == [3, 2, 1], "sets in order of appearance, their rows gathered"
    # b: rows 0, 2, 5; a: rows 1, 3; c: row 4
    assert sets.targets.tolist() == [2, 1, 3, 1, 2, 1]
    mean = (31 + 24 + 40 + 22 + 28) / 5
    assert sets.objects[:, 0].tolist() == pytest.approx([31, mean, 28, 24, 40, 22])
    assert sets.objects[:, 1].tolist() == [0, 1, 0, 0, 0, 0], "an indicator says what was missing"
    assert sets.objects[:, 2:].tolist() == [
        [0, 1, 0], [1, 0, 0], [0, 0, 1], [1, 0, 0], [0, 0, 0], [0, 1, 0],
    ], "blue, red, green: by frequency, then by name; a missing team is none of them"  # fmt: skip
    assert sets.situation.tolist() == [[50, 1], [60, 0], [70, 1]]


def test_the_way_back_keeps_the_rows_where_they_were():
    packed = TableEncoder.fit(TABLE, **ROLES)(TABLE)
    assert packed.ids.to_pylist() == ["b", "a", "c"]
    assert packed.in_rows(packed.sets.targets).tolist() == ROWS["place"]
    back = packed.sets.to_frame(["age", "no age", "blue", "red", "green"])
    assert back["target"].to_pylist() == [2, 1, 3, 1, 2, 1]
    assert Sets.from_frame(back, set_id="set", target="target").sizes.tolist() == [3, 2, 1]


def test_unseen_levels_and_missing_values_of_new_tables():
    encoder = TableEncoder.fit(TABLE, **ROLES)
    new = pa.table(
        {"race": [1, 1], "age": [None, 20.0], "wet": [True, True], "team": ["pink", "red"], "laps": [1, 1]}
    )
    objects = encoder(new, with_target=False).sets.objects
    assert objects[0].tolist() == pytest.approx([29, 1, 0, 0, 0])
    assert objects[1].tolist() == [20, 0, 0, 1, 0]


def test_text_stays_text_where_all_that_a_table_holds_beside_missing_values_are_numbers():
    rows = {"s": [0, 0, 1, 1], "size": ["36", "38", "M", "--"], "y": [0, 1, 0, 1]}
    encoder = TableEncoder.fit(pa.table(rows), set_id="s", target="y", missing=["--"])
    new = pa.table({"s": [0, 0, 0], "size": ["38", "--", "36"]})
    assert encoder(new, with_target=False).sets.objects.tolist() == [[0, 1, 0], [0, 0, 0], [1, 0, 0]]


def test_rare_levels_share_a_column_with_unseen_ones():
    teams = [f"t{i:02}" for i in range(40)] * 2 + ["t00"]
    table = pa.table({"s": [0] * 81, "team": teams, "r": list(range(81))})
    encoder = TableEncoder.fit(table, set_id="s", target="r")
    assert encoder.columns[0].width == 32
    assert encoder.feature_names[0] == "team=t00"
    assert encoder.feature_names[-1] == "team=other"
    objects = encoder(pa.table({"s": [0, 0], "team": ["t39", "new"], "r": [0, 1]})).sets.objects
    assert objects[:, -1].tolist() == [1, 1]


def test_relevance_and_choice_become_ranks():
    table = pa.table({"s": [0, 0, 0], "x": [1, 2, 3], "y": [0, 2, 1]})
    packed = TableEncoder.fit(table, set_id="s", target="y", target_kind="relevance")(table)
    assert packed.sets.targets.tolist() == [2, 0, 1]
    assert (packed.sets.worst - packed.sets.targets).tolist() == [0, 2, 1]
    chosen = table.set_column(2, "y", pa.array([False, True, False]))
    assert TableEncoder.fit(chosen, set_id="s", target="y", target_kind="choice")(chosen).sets.targets.tolist() == [
        1, 0, 1,
    ]  # fmt: skip


def test_encoders_survive_json():
    encoder = TableEncoder.fit(TABLE, **ROLES)
    again = TableEncoder.from_json(json.loads(json.dumps(encoder.to_json())))
    assert np.array_equal(again(TABLE).sets.objects, encoder(TABLE).sets.objects)


def test_columns_may_be_reordered_extra_or_of_another_numeric_type():
    encoder = TableEncoder.fit(TABLE, **ROLES)
    other = TABLE.select(TABLE.column_names[::-1]).append_column("more", pa.array(range(6)))
    assert np.array_equal(encoder(other).sets.objects, encoder(TABLE).sets.objects)
    whole = TABLE.set_column(4, "laps", pa.array(["50", "60", "50", "60", "70", "50"]))
    assert np.array_equal(encoder(whole).sets.situation, encoder(TABLE).sets.situation)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (TABLE.drop_columns(["age"]), "lacks column 'age', which the model was fitted to"),
        (changed("age", [1.0, 2.0, float("inf"), 4.0, 5.0, 6.0]), "'age' is infinite in row 3, set 'b'"),
        (changed("age", ["1", "2", "x", "4", "5", "6"]), "'age' needs numbers.*row 3, set 'b' holds 'x'"),
        (changed("race", ["b", "a", None, "a", "c", "b"]), "missing in row 3"),
        (changed("laps", [50, 60, 51, 60, 70, 50]), "'laps' is of the situation.*differs in row 3, set 'b'"),
        (
            changed("place", ["1", "2", "3", "4", "5", "6"]),
            "'place' should hold ranks; it holds numbers as string",
        ),
        (
            changed("place", ["1", "2", "DNF", "4", "5", "6"]),
            "'place' should hold ranks; it holds 'DNF' in row 3",
        ),
        (changed("place", [None] * 6), "'place' should hold ranks; it is empty"),
        (changed("place", [1.0, 2.0, float("inf"), 1.0, 1.0, 1.0]), "'place' is infinite in row 3"),
        (TABLE.slice(0, 0), "no rows"),
    ],
)
def test_bad_tables_are_named_by_column_row_and_set(table, message):
    with pytest.raises(DataError, match=message):
        TableEncoder.fit(TABLE, **ROLES)(table)


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ({"set_id": "rase"}, "no column 'rase'; did you mean 'race'"),
        ({"target": "plaze"}, "did you mean 'place'"),
        ({"target_kind": "ranks"}, "did you mean 'rank'"),
        ({"features": ["age", "laps"]}, "'laps' can't be a feature of the objects and something else"),
        ({"ignore": ["age", "team"]}, "No feature column distinguishes the objects|No column is left"),
        ({"target_kind": "choice"}, "should hold choices, 0 or 1; row 1, set 'b' holds 2"),
    ],
)
def test_roles_that_do_not_fit_are_named(roles, message):
    with pytest.raises(UserError, match=message):
        TableEncoder.fit(TABLE, **(ROLES | roles))(TABLE)


def test_dates_are_refused_with_advice():
    import datetime

    table = TABLE.append_column("day", pa.array([datetime.date(2020, 1, 1)] * 6))
    with pytest.raises(DataError, match="'day' holds dates or times.*days since an event"):
        TableEncoder.fit(table, **ROLES)
    with pytest.raises(DataError, match="list"):
        TableEncoder.fit(TABLE.append_column("many", pa.array([[1]] * 6)), **ROLES)
    TableEncoder.fit(table, **ROLES, ignore=["day"])


def test_groups_must_not_part_sets():
    packed = TableEncoder.fit(TABLE, **ROLES)(TABLE)
    assert groups_of(TABLE, packed, "laps").tolist() == [0, 1, 2]
    with pytest.raises(DataError, match="'team' groups sets; it is missing in row 4"):
        groups_of(TABLE, packed, "team")
    with pytest.raises(DataError, match="'age' groups sets.*differs in row 3, set 'b'"):
        groups_of(changed("age", [1, 1, 2, 1, 1, 1]), packed, "age")
