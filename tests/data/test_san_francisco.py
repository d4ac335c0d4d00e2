"""Travel modes: trips are sets of modes, and who travels is the situation."""

import gzip

import numpy as np
import pytest
from data_files import real, written

from entourage.data.datasets.san_francisco import load_sf, load_sf_modes
from entourage.errors import DataError, ParameterError

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
    featureless = real("sf_mode_choice") / f"pcmc_SF{which}.csv"
    table = np.loadtxt(featureless, delimiter=",", skiprows=1, dtype=int)
    assert np.array_equal(chosen, table[:, 0])
