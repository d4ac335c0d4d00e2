"""Formula 1 races: what is missing has an indicator; bad lines are named."""

import gzip

import numpy as np
import pyarrow as pa
import pytest
from data_files import real, written

from entourage.data.datasets.formula1 import load_f1
from entourage.errors import DataError, ParameterError, UserError

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
