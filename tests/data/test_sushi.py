"""Sushi preferences: the numbers of set A are its own."""

from pathlib import Path

import pytest
from data_files import written

from entourage.data.datasets.sushi import ITEM_FEATURES, SET_A_ROWS, USER_FEATURES, load_sushi
from entourage.errors import DataError, ParameterError


def sushi_folder(tmp_path: Path) -> Path:
    items = [f"{i}\tkind{i}\t{i % 2}\t0\t{i % 12}\t{i / 8}\t1.5\t{i}\t0.5" for i in range(30)]
    written(tmp_path / "sushi3.idata", "\n".join(items) + "\n")
    users = ["700\t1\t5\t300\t47\t11\t1\t0\t0\t0\t1", "12\t0\t0\t45\t3\t1\t0\t3\t1\t0\t0"]
    written(tmp_path / "sushi3.udata", "\n".join(users) + "\n")
    orders = ["10 1", "0 10 5 0 3 4 6 9 8 1 7 2", "0 10 0 9 6 3 7 2 8 1 5 4"]
    written(tmp_path / "sushi3a.5000.10.order", "\n".join(orders) + "\n")
    written(tmp_path / "sushi3b.5000.10.order", "30 1\n0 3 29 5 8\n0 3 1 2 9\n")
    return tmp_path


PRICE = ITEM_FEATURES.index("price")


def test_the_numbers_of_set_a_are_not_the_rows_of_the_items(tmp_path):
    sets = load_sushi(sushi_folder(tmp_path), "a")
    assert SET_A_ROWS == (0, 1, 2, 3, 4, 6, 7, 8, 26, 29)
    assert sets.to_array()[0, :, PRICE].tolist() == list(SET_A_ROWS)  # a price here is its row
    # The first person likes 5 most, then 0, then 3: of 0, 1, 2, ... 0 comes second, 1 eighth, 2 last.
    assert sets.targets[:10].tolist() == [1, 7, 9, 2, 3, 0, 4, 8, 6, 5]


def test_the_numbers_of_set_b_are_rows_and_places_say_nothing_about_ranks(tmp_path):
    sets = load_sushi(sushi_folder(tmp_path), "b", user_features=False)
    assert sets.to_array()[:, :, PRICE].tolist() == [[5, 8, 29], [1, 2, 9]]
    assert sets.targets.tolist() == [1, 2, 0, 0, 1, 2]
    assert sets.situation is None


def test_kinds_and_people_are_one_hot_where_categorical(tmp_path):
    sets = load_sushi(sushi_folder(tmp_path))
    assert (sets.n_features, sets.n_situation_features) == (20, 135)
    assert (len(ITEM_FEATURES), len(USER_FEATURES)) == (20, 135)
    eel = dict(zip(ITEM_FEATURES, sets.objects[1].tolist(), strict=True))
    assert {name: value for name, value in eel.items() if value} == {
        "style=1": 1,
        "major_group=0": 1,
        "minor_group=1": 1,
        "heaviness": 0.125,
        "frequency_eaten": 1.5,
        "price": 1,
        "frequency_sold": 0.5,
    }
    person = dict(zip(USER_FEATURES, sets.situation[0].tolist(), strict=True))
    assert {name: value for name, value in person.items() if value} == {
        "gender=1": 1,
        "age=5": 1,
        "response_time": 300,
        "prefecture_until_15=47": 1,
        "region_until_15=11": 1,
        "east_west_until_15=1": 1,
        "prefecture=0": 1,
        "region=0": 1,
        "east_west=0": 1,
        "moved=1": 1,
    }


@pytest.mark.parametrize(
    ("file", "old", "new", "fault"),
    [
        ("sushi3a.5000.10.order", "0 10 0 9 6 3 7 2 8 1 5 4", "0 10 0 9 6", r"line 3: .*cut short"),
        ("sushi3a.5000.10.order", "0 10 0 9", "0 10 0 ebi", r"line 3: whole numbers, separated by spaces"),
        ("sushi3a.5000.10.order", "0 10 0 9", "0 10 0 10", r"line 3: kinds are numbered 0 to 9"),
        ("sushi3a.5000.10.order", "0 10 0 9", "0 10 4 9", r"line 3: .*come once"),
        ("sushi3a.5000.10.order", "10 1\n", "100 1\n", r"line 1: the header '10 1' is needed"),
        ("sushi3a.5000.10.order", "0 10 0 9 6 3 7 2 8 1 5 4\n", "", r"a line for each of the 1 orders"),
        ("sushi3.idata", "2\tkind2\t0", "2\tkind2", r"idata, line 3: 9 columns .*; 8 came"),
        ("sushi3.idata", "2\tkind2\t0", "2\tkind2\tmaki", r"line 3: style needs .* 0 to 1; got 'maki'"),
        ("sushi3.idata", "2\tkind2\t0", "2\tkind2\t2", r"line 3: style needs .* 0 to 1; got '2'"),
        ("sushi3.idata", "2\tkind2", "7\tkind2", r"line 3: item 2 is needed here"),
        ("sushi3.idata", "29\tkind29\t1\t0\t5\t3.625\t1.5\t29\t0.5\n", "", r"30 rows at least; 29 came"),
        ("sushi3.udata", "45", "long", r"udata, line 2: response_time needs a number; got 'long'"),
    ],
)
def test_a_bad_sushi_file_is_named_with_its_line(tmp_path, file, old, new, fault):
    path = sushi_folder(tmp_path) / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(DataError, match=fault):
        load_sushi(tmp_path)


def test_missing_sushi_says_where_it_is_to_be_had(tmp_path):
    with pytest.raises(DataError, match=r"sushi3\.idata can't be read: .*kamishima"):
        load_sushi(tmp_path)
    with pytest.raises(ParameterError, match="which='c' is not known"):
        load_sushi(tmp_path, "c")
    (sushi_folder(tmp_path) / "sushi3b.5000.10.order").write_text("30 1\n")
    with pytest.raises(DataError, match="holds no order"):
        load_sushi(tmp_path, "b")
    (tmp_path / "sushi3b.5000.10.order").write_text("")
    with pytest.raises(DataError, match="is empty"):
        load_sushi(tmp_path, "b")
