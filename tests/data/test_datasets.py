"""Readers by path: small files written here, values worked by hand; the real files where they lie."""

import bz2
import gzip
import lzma
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from entourage.data.datasets.formula1 import load_f1
from entourage.data.datasets.letor import load_letor, load_letor_fold, read_svmlight
from entourage.data.datasets.noguchi_stewart import load_noguchi_stewart
from entourage.data.datasets.san_francisco import load_sf, load_sf_modes
from entourage.data.datasets.sushi import ITEM_FEATURES, SET_A_ROWS, USER_FEATURES, load_sushi
from entourage.data.grouping import group_rows
from entourage.errors import DataError, ParameterError, UserError

REAL = Path(__file__).parents[3] / "shared" / "data"


def real(folder: str) -> Path:
    if not (REAL / folder).is_dir():
        pytest.skip(f"the real data are not on this machine: {REAL / folder} is missing")
    return REAL / folder


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


# --- svmlight -------------------------------------------------------------------------------------

QUERIES = """# a comment alone
2 qid:30 1:0.5 3:1.5 #docid = GX001 inc = 1
0 qid:7 2:0.25

1 qid:30 1:-1e-1
0 qid:7 1:4 2:5 3:6
"""


def test_svmlight_rows_are_read_as_they_lie(tmp_path):
    table = read_svmlight(written(tmp_path / "q.txt", QUERIES))
    expected = np.array([[0.5, 0, 1.5], [0, 0.25, 0], [-0.1, 0, 0], [4, 5, 6]], dtype=np.float32)
    assert table.features.dtype == np.float32
    assert np.array_equal(table.features, expected)
    assert table.relevance.tolist() == [2, 0, 1, 0]
    assert table.qids.tolist() == [30, 7, 30, 7]


def test_queries_become_sets_in_order_of_appearance_with_the_best_grade_first(tmp_path):
    data = load_letor(written(tmp_path / "q.txt", QUERIES))
    assert data.qids.tolist() == [30, 7]
    assert data.sets.offsets.tolist() == [0, 2, 4]
    assert data.sets.targets.tolist() == [2 - 2, 2 - 1, 2 - 0, 2 - 0]
    assert data.relevance.tolist() == [2, 1, 0, 0]
    assert np.array_equal(data.sets.objects[1], np.array([-0.1, 0, 0], dtype=np.float32))
    assert data.sets.objects.dtype == np.float32


def test_a_document_that_was_not_judged_is_not_ranked(tmp_path):
    data = load_letor(written(tmp_path / "q.txt", "1 qid:1 1:1\n-1 qid:1 1:2\n0 qid:1 1:3\n"))
    assert np.array_equal(data.sets.targets, [0, np.nan, 1], equal_nan=True)
    assert data.relevance.tolist() == [1, -1, 0]


def test_more_features_than_occur_can_be_asked_for(tmp_path):
    file = written(tmp_path / "q.txt", "1 qid:1 2:1\n")
    assert load_letor(file).sets.n_features == 2
    assert load_letor(file, n_features=5).sets.objects.tolist() == [[0, 1, 0, 0, 0]]


@pytest.mark.parametrize(
    ("suffix", "pack"), [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)]
)
def test_compressed_files_read_like_plain_ones(tmp_path, suffix, pack):
    (tmp_path / f"q.txt.{suffix}").write_bytes(pack(QUERIES.encode()))
    assert load_letor(tmp_path / f"q.txt.{suffix}").qids.tolist() == [30, 7]


def test_zstandard_files_read_like_plain_ones(tmp_path):
    with pa.output_stream(str(tmp_path / "q.txt.zst"), compression="zstd") as stream:
        stream.write(QUERIES.encode())
    assert load_letor(tmp_path / "q.txt.zst").qids.tolist() == [30, 7]


def test_windows_line_ends_a_byte_order_mark_and_no_last_line_end_change_nothing(tmp_path):
    file = tmp_path / "q.txt"
    file.write_bytes(b"\xef\xbb\xbf" + QUERIES.rstrip().replace("\n", "\r\n").encode())
    plain = read_svmlight(written(tmp_path / "p.txt", QUERIES))
    assert np.array_equal(read_svmlight(file).features, plain.features)


def test_a_file_of_many_blocks_reads_like_its_rows(tmp_path):
    rng = np.random.default_rng(0)
    values, qids = rng.integers(1, 1000, size=(30_000, 3)), rng.integers(0, 500, size=30_000)
    lines = [f"{q % 3} qid:{q} 1:{a} 2:{b} 9:{c}" for q, (a, b, c) in zip(qids, values, strict=True)]
    table = read_svmlight(written(tmp_path / "q.txt", "\n".join(lines)))
    assert np.array_equal(table.features[:, [0, 1, 8]], values)
    assert np.array_equal(table.qids, qids)
    lines[23_456] = "0 qid:1 1:x"
    with pytest.raises(DataError, match=r"q\.txt, line 23457: .*'1:x'"):
        read_svmlight(written(tmp_path / "q.txt", "\n".join(lines)))


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("2", "the query is missing"),
        ("2 1:0.5", "the query is missing"),
        ("good qid:1 1:0.5", "the relevance needs a number, but 'good' came"),
        ("nan qid:1 1:0.5", "the relevance needs a number, but 'nan' came"),
        ("2 qid:first 1:0.5", "a query needs a whole number, but 'qid:first' came"),
        ("2 qid:99999999999999999999 1:0.5", "a query needs a whole number"),
        ("2 qid:1 1:0.5 2:", "number:value, but '2:' came"),
        ("2 qid:1 1:0.5 2", "number:value, but '2' came"),
        ("2 qid:1 1:inf", "number:value, but '1:inf' came"),
        ("2 qid:1 1:1e39", "number:value, but '1:1e39' came"),
        ("2 qid:1 0:0.5", "counted from 1, but '0:0.5' came"),
        ("2 qid:1 2:0.5 1:1", "increasing order, but 1 came after 2"),
        ("2 qid:1 1:0.5 1:1", "increasing order, but 1 came after 1"),
        ("2 qid:1 123456789:1", "at most 100000 features"),
    ],
)
def test_a_bad_line_is_named_with_its_fault(tmp_path, line, fault):
    file = written(tmp_path / "q.txt", f"# comment\n\n1 qid:1 1:0.5\n{line}\n0 qid:1 1:1\n")
    with pytest.raises(DataError, match=r"q\.txt, line 4: ") as caught:
        load_letor(file)
    assert fault in str(caught.value)


def test_a_feature_beyond_the_number_asked_for_is_named_with_its_line(tmp_path):
    file = written(tmp_path / "q.txt", "1 qid:1 1:0.5\n1 qid:1 3:0.5\n")
    with pytest.raises(DataError, match="line 2: feature '3' came where there are at most 2"):
        load_letor(file, n_features=2)
    with pytest.raises(ParameterError, match="n_features needs a whole number"):
        load_letor(file, n_features=0)


def test_a_missing_an_empty_and_a_cut_file_are_told_apart(tmp_path):
    with pytest.raises(DataError, match="does not exist; .*microsoft"):
        load_letor(tmp_path / "none.txt")
    with pytest.raises(DataError, match="is a folder"):
        load_letor(tmp_path)
    with pytest.raises(DataError, match="holds no row"):
        load_letor(written(tmp_path / "empty.txt", "# nothing\n\n"))
    with pytest.raises(DataError, match="is an archive; unpack it"):
        load_letor(written(tmp_path / "q.zip", "PK"))
    (tmp_path / "cut.txt.gz").write_bytes(gzip.compress(QUERIES.encode() * 9)[:-20])
    with pytest.raises(DataError, match=r"cut\.txt\.gz can't be read beyond line"):
        load_letor(tmp_path / "cut.txt.gz")
    for suffix in ("gz", "bz2", "xz", "zst"):
        with pytest.raises(DataError, match=f"not.txt.{suffix} can't be"):
            load_letor(written(tmp_path / f"not.txt.{suffix}", QUERIES))


def test_grouping_keeps_the_order_of_first_appearance():
    rows, offsets, first = group_rows(np.array(["b", "a", "b", "c", "a"]))
    assert rows.tolist() == [0, 2, 1, 4, 3]
    assert offsets.tolist() == [0, 2, 4, 5]
    assert first.tolist() == [0, 1, 3]


def test_a_fold_in_its_own_folder_shares_features_and_best_grade(tmp_path):
    written(tmp_path / "Fold2" / "train.txt", "1 qid:1 1:1\n0 qid:1 1:2\n")
    written(tmp_path / "Fold2" / "vali.txt", "2 qid:2 3:1\n")
    (tmp_path / "Fold2" / "test.txt.gz").write_bytes(gzip.compress(b"0 qid:3 2:1\n"))
    fold = load_letor_fold(tmp_path, 2)
    assert [part.sets.n_features for part in (fold.train, fold.validation, fold.test)] == [3, 3, 3]
    assert fold.train.sets.targets.tolist() == [1, 2]
    assert fold.test.sets.targets.tolist() == [2]
    (tmp_path / "Fold2" / "vali.txt").unlink()
    with pytest.raises(DataError, match=r"vali\.txt is missing"):
        load_letor_fold(tmp_path, 2)


def test_folds_given_by_their_test_files_are_put_together(tmp_path):
    for k in range(1, 6):
        written(tmp_path / f"Fold{k}_test.txt", f"1 qid:{k} 1:1\n")
    fold = load_letor_fold(tmp_path, 1)
    assert fold.train.qids.tolist() == [2, 3, 4]
    assert (fold.validation.qids.tolist(), fold.test.qids.tolist()) == ([5], [1])
    assert load_letor_fold(tmp_path, 3).validation.qids.tolist() == [2]
    with pytest.raises(ParameterError, match="fold needs a whole number"):
        load_letor_fold(tmp_path, 6)
    with pytest.raises(DataError, match="is not a folder"):
        load_letor_fold(tmp_path / "none", 1)
    (tmp_path / "bare").mkdir()
    with pytest.raises(DataError, match="holds neither Fold1/train"):
        load_letor_fold(tmp_path / "bare", 1)


def test_the_real_mq2008_has_784_queries_each_tested_once():
    folder = real("letor_mq2008")
    folds = [load_letor_fold(folder, k) for k in range(1, 6)]
    tested = np.concatenate([fold.test.qids for fold in folds])
    assert len(tested) == len(set(tested.tolist())) == 784
    sizes = np.concatenate([fold.test.sets.sizes for fold in folds])
    assert (sizes.min(), sizes.max(), sizes.sum()) == (5, 121, 15_211)
    for fold in folds:
        parts = [set(part.qids.tolist()) for part in (fold.train, fold.validation, fold.test)]
        assert sum(map(len, parts)) == len(set.union(*parts)) == 784
        assert fold.train.sets.n_features == 46
        assert set(fold.train.relevance.tolist()) == {0, 1, 2}
    first = load_letor(folder / "Fold1_test.txt.gz")
    assert first.qids[0] == 18219
    assert np.allclose(first.sets.objects[0, :5], [0.052893, 1, 0.75, 1, 0.066225])


# --- sushi ----------------------------------------------------------------------------------------


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
        ("sushi3a.5000.10.order", "0 10 0 9", "0 10 0 ebi", r"line 3: whole numbers, parted by spaces"),
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


# --- Formula 1 ------------------------------------------------------------------------------------

RACES = """year,race_id,driver,order,grid_num,quali_gap_pct,driver_age,driver_starts_before,\
driver_mean_order_last5,driver_season_points_before,constructor_mean_order_last5,laps
1999,4,zonta,1,3.0,0.5,23,1,2.5,0,7,70
2000,9,senna,1,2.0,0.1,30,9,1.5,10,3,70
2000,9,alesi,2,,,35,0,,0,,69
2001,8,button,1,1.0,0.0,21,17,8,2.5,9,60
"""


def test_races_are_read_without_a_gap_and_with_an_indicator_for_each(tmp_path):
    races = load_f1(written(tmp_path / "f1.csv", RACES))
    assert (races.race_id.tolist(), races.year.tolist()) == ([9, 8], [2000, 2001])
    assert races.sets.sizes.tolist() == [2, 1]
    assert races.sets.targets.tolist() == [1, 0, 0]  # by name: alesi, senna; button
    assert races.feature_names[7:] == (
        "grid_num_missing",
        "quali_gap_pct_missing",
        "driver_mean_order_last5_missing",
        "constructor_mean_order_last5_missing",
    )
    assert races.sets.objects[0].tolist() == [0, 0, 35, 0, 0, 0, 0, 1, 1, 1, 1]
    assert np.allclose(races.sets.objects[1], [2, 0.1, 30, 9, 1.5, 10, 3, 0, 0, 0, 0])
    assert not any("laps" in name for name in races.feature_names)


def test_years_can_be_bounded_on_both_sides(tmp_path):
    file = written(tmp_path / "f1.csv", RACES)
    assert load_f1(file, 1990, 2000).race_id.tolist() == [4, 9]
    with pytest.raises(ParameterError, match="swap them"):
        load_f1(file, 2001, 2000)
    with pytest.raises(DataError, match="no race from 2010 to the end; its years run from 1999 to 2001"):
        load_f1(file, 2010)


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("alesi,2,,,35,", "alesi,2,,,old,", r"line 4: driver_age needs a number; got 'old'"),
        ("alesi,2,,,35,", "alesi,2,,,,", r"line 4: driver_age needs a number; got ''"),
        ("alesi,2,,,35,", "alesi,2,,,1e39,", r"line 4: driver_age needs a number; got '1e39'"),
        ("alesi,2,,", "alesi,,,", r"line 4: order needs a number"),
        ("2000,9,alesi", "\n2000,9.5,alesi", r"line 5: race_id needs a whole number; got '9\.5'"),
        ("2000,9,alesi,2,,,35,0,,0,,69", "\n2000,9,alesi", r"line 5: 12 columns are needed; 3 came in"),
        ("grid_num", "grid", r"needs the columns .*'grid_num'"),
    ],
)
def test_a_bad_race_file_is_named_with_its_line(tmp_path, old, new, fault):
    assert old in RACES
    with pytest.raises(DataError, match=fault):
        load_f1(written(tmp_path / "f1.csv", RACES.replace(old, new, 1)))


def test_a_line_is_named_in_a_compressed_file_too(tmp_path):
    with pa.output_stream(str(tmp_path / "f1.csv.zst"), compression="zstd") as stream:
        stream.write(RACES.replace("alesi,2,,,35,", "alesi,2,,,old,").encode())
    with pytest.raises(DataError, match=r"f1\.csv\.zst, line 4: driver_age needs a number; got 'old'"):
        load_f1(tmp_path / "f1.csv.zst")


def test_missing_and_broken_race_files_are_user_errors(tmp_path):
    with pytest.raises(UserError, match="does not exist; .*f1db"):
        load_f1(tmp_path / "none.csv")
    with pytest.raises(UserError, match=r"holds no f1_race_results_1950_on\.csv"):
        load_f1(tmp_path)
    with pytest.raises(UserError, match="no row below its header"):
        load_f1(written(tmp_path / "bare.csv", RACES.split("\n")[0] + "\n"))
    with pytest.raises(UserError, match="can't be read as CSV"):
        load_f1(written(tmp_path / "empty.csv", ""))
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(RACES.encode())[:-20])
    with pytest.raises(UserError, match="can't be read as CSV"):
        load_f1(tmp_path / "cut.csv.gz")


def test_the_real_races_from_2000_are_514():
    races = load_f1(real("f1_races"))
    assert len(races.sets) == len(set(races.race_id.tolist())) == 514
    assert (races.sets.sizes.min(), races.sets.sizes.max()) == (18, 24)
    assert races.year.min() == 2000
    for ranks in races.sets.unpack(races.sets.targets):
        assert sorted(ranks) == list(range(len(ranks)))
    assert races.sets.objects[:, 7:].sum(0).tolist() == [262, 130, 108, 52]
    places = np.concatenate([np.linspace(0, 1, size) for size in races.sets.sizes])
    assert abs(np.corrcoef(places, races.sets.targets)[0, 1]) < 0.05


# --- choices among products -----------------------------------------------------------------------

PRODUCTS = """obs,participant,effect,choiceset,alternative,attr1_name,attr2_name,attr1,attr2,chosen
5,ann,compromise,3,A,Price,Quality,250,80,0
5,ann,compromise,3,B,Price,Quality,150,60,1
5,ann,compromise,3,Ca,Price,Quality,350,100,0
2,bob,attraction,3,A,Vitamin,Comfort,1,5,1
2,bob,attraction,3,B,Vitamin,Comfort,3,5,0
2,bob,attraction,3,Da,Vitamin,Comfort,2,5,0
7,bob,compromise,3,A,Price,Quality,250,80,1
7,bob,compromise,3,B,Price,Quality,150,60,0
7,bob,compromise,3,A,Price,Quality,250,80,0
"""


def test_attributes_are_standardised_within_their_choice_set_and_larger_is_better(tmp_path):
    data = load_noguchi_stewart(written(tmp_path / "choices.csv", PRODUCTS))
    step = 1.5**0.5  # of -250, -150, -350: mean -250, deviation sqrt(20000 / 3)
    expected = [
        [0, 0],
        [step, -step],
        [-step, step],
        [-step, 0],
        [step, 0],
        [0, 0],
        [0, 0],
        [step, -step],
        [0, 0],
    ]
    assert np.allclose(data.sets.objects, expected)
    assert data.sets.targets.tolist() == [1, 0, 1, 0, 1, 1, 0, 1, 1]
    assert data.obs.tolist() == [5, 2, 7]
    assert data.effect.tolist() == ["compromise", "attraction", "compromise"]
    assert data.choiceset.tolist() == [3, 3, 3]
    assert data.participant.tolist() == ["ann", "bob", "bob"]
    assert data.alternative.tolist()[:3] == ["A", "B", "Ca"]


def test_a_set_needs_exactly_one_choice(tmp_path):
    twice = PRODUCTS.replace("1,5,1", "1,5,0")
    with pytest.raises(DataError, match=r"line 5: .* one object must be chosen; 0 are"):
        load_noguchi_stewart(written(tmp_path / "choices.csv", twice))
    with pytest.raises(
        DataError, match=r"line 5: chosen needs 1 for what was chosen and 0 otherwise; got '2'"
    ):
        load_noguchi_stewart(written(tmp_path / "choices.csv", PRODUCTS.replace("1,5,1", "1,5,2")))
    with pytest.raises(DataError, match=r"line 5: attr2 needs a number; got 'five'"):
        load_noguchi_stewart(written(tmp_path / "choices.csv", PRODUCTS.replace("1,5,1", "1,five,1")))


def test_the_real_choices_are_2790_of_three():
    data = load_noguchi_stewart(real("noguchi_stewart_2014"))
    assert (len(data.sets), data.sets.uniform_size, data.sets.n_features) == (2790, 3, 2)
    assert {effect: (data.effect == effect).sum() for effect in set(data.effect.tolist())} == {
        "attraction": 930,
        "compromise": 930,
        "similarity": 930,
    }
    assert (data.sets.targets.reshape(-1, 3).sum(1) == 2).all()


def test_in_the_real_choices_a_decoy_is_worse_in_both_attributes_and_others_are_traded():
    data = load_noguchi_stewart(real("noguchi_stewart_2014"))
    X, names = data.sets.to_array(), data.alternative.reshape(-1, 3)
    assert (names[:, :2] == ["A", "B"]).all()
    assert ((X[:, 0] > X[:, 1]).sum(1) == 1).all()  # A is better in one attribute, B in the other
    for third, neighbour in (("Da", 0), ("Db", 1)):
        decoyed = X[names[:, 2] == third]
        assert (decoyed[:, 2] < decoyed[:, neighbour]).all()


# --- travel modes ---------------------------------------------------------------------------------

SHOP = """CASENUM,ID,PERSON,ALTID,CHOSEN,IVTT,OVTT,TVTT,TOTCOST,DISTANCE,OVTTDIST,NMTT,MVTT,\
VEHICLES,URBAN,HHSIZE,HHSIZE5,O_DENS,D_DENS,INCOME,VEH_WKR
1,42,,1,0,3,17,20,85.0,1,17.0,0,20,0,1,1,1,63,73,7.5,0.0
1,42,,7,1,18,0,18,0.0,1,0.0,18,0,0,1,1,1,63,73,7.5,0.0
2,42,,8,1,7,2,9,20.0,4,0.5,0,9,0,1,1,1,63,25,7.5,0.0
2,42,,2,0,7,2,9,10.0,4,0.5,0,9,0,1,1,1,63,25,7.5,0.0
"""


def test_trips_are_sets_of_modes_and_who_travels_is_the_situation(tmp_path):
    trips = load_sf(written(tmp_path / "shop.csv", SHOP), "shop")
    assert (trips.case.tolist(), trips.household.tolist()) == ([1, 2], [42, 42])
    assert trips.mode.tolist() == [1, 7, 8, 2]
    assert trips.sets.targets.tolist() == [1, 0, 0, 1]
    assert trips.sets.objects[0].tolist() == [1, 0, 0, 0, 0, 0, 0, 0, 3, 17, 20, 85, 17, 0, 20]
    assert trips.feature_names[7:9] == ("mode=drive_alone", "IVTT")
    assert trips.sets.situation[0].tolist() == [1, 0, 1, 1, 1, 63, 73, 7.5, 0]
    assert trips.sets.situation[1].tolist() == [4, 0, 1, 1, 1, 63, 25, 7.5, 0]
    assert len(trips.situation_names) == 9


def test_a_bad_trip_is_named_with_its_line(tmp_path):
    with pytest.raises(DataError, match=r"line 3: ALTID needs one of 1, 2, 3, 4, 5, 6, 7, 8; got 9"):
        load_sf(written(tmp_path / "shop.csv", SHOP.replace("1,42,,7", "1,42,,9")), "shop")
    with pytest.raises(DataError, match=r"line 3: .* must be the same throughout a CASENUM"):
        load_sf(written(tmp_path / "shop.csv", SHOP.replace("18,0.0,1,", "18,0.0,2,")), "shop")
    with pytest.raises(DataError, match="needs the columns case, hhid"):
        load_sf(written(tmp_path / "shop.csv", SHOP), "work")
    with pytest.raises(ParameterError, match="did you mean 'shop'"):
        load_sf(tmp_path, "shops")


def test_trips_without_features_are_sets_of_the_modes_that_were_open(tmp_path):
    text = "Choice,bus,car,walk\n2,1,1,0\n3,1,1,1\n"
    sets, modes = load_sf_modes(written(tmp_path / "pcmc_SFwork.csv", text))
    assert modes == ("bus", "car", "walk")
    assert sets.objects.tolist() == [[1], [2], [1], [2], [3]]
    assert sets.sizes.tolist() == [2, 3]
    assert sets.targets.tolist() == [1, 0, 1, 1, 0]
    with pytest.raises(DataError, match=r"line 2: Choice must be one of the modes that are 1 there"):
        load_sf_modes(written(tmp_path / "closed.csv", text.replace("2,1,1,0", "3,1,1,0")))
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(text.encode())[:12])
    with pytest.raises(DataError, match="can't be read as CSV"):
        load_sf_modes(tmp_path / "cut.csv.gz")


@pytest.mark.parametrize(
    ("which", "n_sets", "low", "high", "counts"),
    [
        ("work", 5029, 3, 6, [3637, 517, 161, 498, 50, 166]),
        ("shop", 3157, 4, 8, [38, 701, 343, 552, 116, 27, 162, 1218]),
    ],
)
def test_the_real_trips_have_the_choices_of_the_featureless_form(which, n_sets, low, high, counts):
    trips = load_sf(real("sf_mode_choice"), which)
    assert (len(trips.sets), trips.sets.sizes.min(), trips.sets.sizes.max()) == (n_sets, low, high)
    chosen = trips.mode[trips.sets.targets == 0]
    assert np.bincount(chosen)[1:].tolist() == counts
    assert len(trips.situation_names) == trips.sets.n_situation_features
    assert len(trips.feature_names) == trips.sets.n_features
    featureless = REAL / "sf_mode_choice" / f"pcmc_SF{which}.csv"
    table = np.loadtxt(featureless, delimiter=",", skiprows=1, dtype=int)
    assert np.array_equal(chosen, table[:, 0])
