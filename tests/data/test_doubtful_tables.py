"""What is said of tables that may not mean what their columns say; and tables of which nothing need be said."""

import warnings

import numpy as np
import pandas as pd
import pytest

from entourage.data import Sets, read_table
from entourage.data.encoder import TableEncoder
from entourage.data.table_warnings import warn_of_oddities
from entourage.errors import DataError, DataWarning

PRICES = np.random.default_rng(0).normal(1500, 700, size=240).clip(1)
PLACES = np.tile(np.arange(1, 7), 40)
FRAME = pd.DataFrame({"race": np.repeat(np.arange(40), 6), "price": PRICES, "place": PLACES})


def said_of(frame, **roles):
    """Return the warnings of a table to learn from."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DataWarning)
        encoder = TableEncoder.fit(frame, **({"set_id": "race", "target": "place"} | roles))
        warn_of_oddities(frame, encoder(frame), encoder)
    return " ".join(str(one.message) for one in caught)


def test_nothing_is_said_of_a_plain_table():
    assert said_of(FRAME) == said_of(FRAME.assign(age=FRAME.race % 50)) == ""


@pytest.mark.parametrize(
    ("write", "example"),
    [
        (lambda x: f"{x:,.0f}", "1,"),
        (lambda x: f"{x:,.2f}", "1,"),
        (lambda x: f"{x:,.0f}".replace(",", " "), "1 "),
        (lambda x: f"{x:,.0f}".replace(",", "’"), "1’"),
        (lambda x: f"${x:.2f}", "$"),
        (lambda x: f"{x:,.0f} €", ""),
        (lambda x: f"{x / 10:.1f} %", ""),
    ],
)
def test_numbers_as_people_write_them_are_said_to_be_read_as_text(write, example):
    said = said_of(FRAME.assign(price=FRAME.price.map(write)))
    assert "'price' holds numbers with thousands separators, currency or per cent signs" in said
    assert f"({example!r}"[:-1] in said
    assert "a name" not in said


def test_decimal_commas_are_not_taken_for_thousands():
    said = said_of(FRAME.assign(price=(FRAME.price / 1000).map(lambda x: f"{x:.3f}".replace(".", ","))))
    assert "decimal commas" in said
    german = FRAME.price.map(lambda x: f"{x:,.2f}".translate(str.maketrans(",.", ".,")))
    assert "Leave out the points between thousands" in said_of(FRAME.assign(price=german))


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d/%m/%Y", "%d.%m.%Y %H:%M"])
def test_dates_as_text_are_said_to_be_levels(form):
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(240) % 30, unit="D")
    assert "'day' holds dates as text" in said_of(FRAME.assign(day=days.strftime(form)))


def test_a_column_that_rises_from_row_to_row_is_said_to_be_an_index():
    frame = FRAME.assign(result_id=np.arange(240) * 3)
    assert "'result_id' rises from each row to the next" in said_of(frame)
    assert said_of(frame, features=["price", "result_id"]) == "", "named on purpose"


@pytest.mark.parametrize("grades", [[0, 0, 0, 0, 1, 4], [0, 0, 0, 0, 1, 1], [2, 0, 0, 0, 0, np.nan]])
def test_grades_and_clicks_given_as_ranks_are_doubted(grades):
    frame = FRAME.assign(place=np.tile(grades, 40))
    assert "more than half of the rows share the best rank in 'place'" in said_of(frame)
    assert said_of(frame, target_kind="relevance") == ""


def test_ranks_with_ties_are_not_doubted():
    for ranks in ([1, 2, 3, 6, 6, 6], [1, 1, 3, 4, 5, 6], [1, 2, 3, -1, -1, -1], [0, 0, 0, 1, 1, 1]):
        assert said_of(FRAME.assign(place=np.tile(ranks, 40))) == ""


def test_a_target_of_that_name_is_doubted_as_ranks():
    frame = FRAME.rename(columns={"place": "relevance"})
    assert "'relevance' was read as ranks, smaller for better" in said_of(frame, target="relevance")
    assert said_of(frame, target="relevance", target_kind="relevance") == ""


def test_features_that_never_differ_within_a_set_are_said_to_tell_nothing():
    assert "No feature differs between the objects of any set" in said_of(
        FRAME.assign(price=FRAME.race * 1.5)
    )


def test_relevances_of_which_none_is_positive_are_an_order():
    sets = Sets.from_frame(
        FRAME.assign(place=-FRAME.place), set_id="race", target="place", target_kind="relevance"
    )
    assert sets.worst is None
    assert sets.targets[:6].tolist() == [0, 1, 2, 3, 4, 5]


def test_set_ids_of_lists_are_refused():
    frame = FRAME.assign(race=[(race, 1) for race in FRAME.race])
    with pytest.raises(
        DataError, match="'race' says which set a row belongs to, so it needs numbers or text; it holds list"
    ):
        TableEncoder.fit(frame, set_id="race", target="place")(frame)


def test_a_trailing_comma_is_an_empty_column(tmp_path):
    (tmp_path / "t.csv").write_text("race,price,place,\n1,3.5,1,\n1,2.5,2,\n")
    table = read_table(tmp_path / "t.csv")
    assert TableEncoder.fit(table, set_id="race", target="place").feature_names == ["price"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("sep=,\nrace,price,place\n1,2,3\n", "first line, 'sep=,', is no header: delete it"),
        ("# by me\nrace,price,place\n1,2,3\n", "first line, '# by me', is no header"),
        ("race,price\n1,2,3\n", "give sep=';'"),
    ],
)
def test_what_stands_before_the_header_is_named(tmp_path, content, says):
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises(DataError, match=says):
        read_table(tmp_path / "t.csv")


def test_a_file_in_utf_16_is_known_by_its_first_bytes(tmp_path):
    (tmp_path / "t.csv").write_text("race,price,place\n1,2,3\n1,3,4\n", encoding="utf-16")
    with pytest.raises(DataError, match="begins as UTF-16 does: give encoding='utf-16'"):
        read_table(tmp_path / "t.csv")
    assert read_table(tmp_path / "t.csv", encoding="utf-16").num_rows == 2
