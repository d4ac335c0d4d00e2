"""Regions: cut, averaged, and joined with laser readings."""

import importlib.util

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from entourage.data.photographs.regions import (
    Regions,
    as_rgb,
    grid_regions,
    region_distances,
    scaled_copy,
    superpixels,
)
from entourage.errors import DataError, ParameterError, ShapeError, UserError

NAN = np.nan


@st.composite
def some_regions(draw):
    """Up to six regions, in no order, strewn over a picture of up to 9 x 9 pixels."""
    shape = draw(st.tuples(st.integers(1, 9), st.integers(1, 9)))
    labels = draw(arrays.arrays(np.int64, shape, elements=st.integers(0, 5)))
    return Regions(np.unique(labels, return_inverse=True)[1].reshape(shape))


def test_the_grid_is_numbered_row_by_row():
    labels = grid_regions((4, 6), rows=2, columns=3).labels
    assert labels.tolist() == [[0, 0, 1, 1, 2, 2]] * 2 + [[3, 3, 4, 4, 5, 5]] * 2


def test_the_grid_is_by_default_the_papers():
    regions = grid_regions((2272, 1704))
    assert regions.count == 61 * 55 == 3355
    assert regions.shape == (2272, 1704)
    assert regions.labels.dtype == np.int32
    assert regions.labels[0, -1] == 60
    assert regions.labels[-1, 0] == 54 * 61
    assert regions.areas().sum() == 2272 * 1704
    assert regions.areas().min() >= 41 * 27
    assert regions.areas().max() <= 42 * 28


def test_a_grid_takes_a_picture_or_its_shape():
    picture = np.zeros((12, 10, 3), dtype=np.uint8)
    for given_ in (picture, picture[:, :, 0], picture.shape, (12, 10), [12, 10]):
        assert np.array_equal(grid_regions(given_, 4, 5).labels, grid_regions((12, 10), 4, 5).labels)


@given(st.integers(1, 30), st.integers(1, 30), st.data())
@settings(deadline=None)
def test_every_patch_has_pixels_and_equals_its_neighbours_but_for_one_row_and_column(height, width, data):
    rows, columns = data.draw(st.integers(1, height)), data.draw(st.integers(1, width))
    areas = grid_regions((height, width), rows, columns).areas()
    assert len(areas) == rows * columns
    assert areas.min() >= (height // rows) * (width // columns)
    assert areas.max() <= -(-height // rows) * -(-width // columns)


def test_a_picture_smaller_than_the_grid_is_refused():
    with pytest.raises(ShapeError, match="55 rows and 61 columns.* has 55 and 60. Pass fewer"):
        grid_regions((55, 60))
    with pytest.raises(ParameterError, match="rows needs a whole number of at least 1"):
        grid_regions((55, 60), rows=0)
    with pytest.raises(ShapeError, match="one photograph at a time"):
        grid_regions(np.zeros((2, 60, 60, 3)))


def test_labels_with_gaps_are_refused():
    with pytest.raises(DataError, match="every number from 0"):
        Regions(np.array([[0, 2]]))
    with pytest.raises(DataError, match="every number from 0"):
        Regions(np.array([[-1, 0]]))
    with pytest.raises(DataError, match="every number from 0"):
        Regions(np.array([[0, 1 << 40]]))
    with pytest.raises(DataError, match="whole numbers; got float64"):
        Regions(np.zeros((2, 2)))
    with pytest.raises(ShapeError, match="2 axes"):
        Regions(np.zeros(4, dtype=int))


def test_regions_keep_their_labels_whatever_becomes_of_the_array():
    labels = np.array([[0, 1]], dtype=np.int32)
    regions = Regions(labels)
    labels[:] = 0
    assert regions.labels.tolist() == [[0, 1]]
    with pytest.raises(ValueError, match="read-only"):
        regions.labels[0, 0] = 1


def test_means_equal_those_worked_by_hand():
    regions = Regions(np.array([[0, 0, 1], [2, 1, 1]]))
    values = np.array([[1, 3, 4], [9, 5, 9]])
    assert regions.means(values).tolist() == [(1 + 3) / 2, (4 + 5 + 9) / 3, 9]
    assert regions.means(np.stack([values, -values], axis=-1)).tolist() == [[2, -2], [6, -6], [9, -9]]
    assert regions.areas().tolist() == [2, 3, 1]
    with pytest.raises(ShapeError, match="need shape \\(2, 3\\).*got \\(3, 2\\)"):
        regions.means(values.T)


def test_centres_and_boxes_equal_those_worked_by_hand():
    regions = Regions(np.array([[0, 0, 1, 1], [2, 2, 2, 2]]))
    assert regions.centres().tolist() == [[0.25, 0.25], [0.25, 0.75], [0.75, 0.5]]
    assert regions.boxes().tolist() == [[0, 0.5, 0, 0.5], [0, 0.5, 0.5, 1], [0.5, 1, 0, 1]]


@given(some_regions(), st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_means_and_medians_equal_a_loop_over_the_regions(regions, seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=regions.shape)
    readings = np.where(rng.random(regions.shape) < 0.3, NAN, values)
    medians = region_distances(regions, readings)
    for label in range(regions.count):
        mine = regions.labels == label
        assert np.isclose(regions.means(values)[label], values[mine].mean())
        known = readings[mine & ~np.isnan(readings)]
        expected = np.median(known) if len(known) else NAN
        assert np.isclose(medians[label], expected, equal_nan=True)


def test_the_distance_of_a_region_is_the_median_of_its_readings():
    regions = Regions(np.array([[0, 0, 0, 1], [1, 1, 1, 2]]))
    readings = [[5.0, 90.0, 7.0, 2.0], [4.0, NAN, 80.0, NAN]]
    assert region_distances(regions, readings)[:2].tolist() == [7, 4]  # of 5, 7, 90; of 2, 4, 80
    assert region_distances(regions, [[5, 90, 7, 2], [4, 8, 80, 1]]).tolist() == [7, (4 + 8) / 2, 1]


def test_a_region_without_a_reading_has_no_distance():
    regions = Regions(np.array([[0, 1]]))
    assert np.isnan(region_distances(regions, [[NAN, 3.0]])).tolist() == [True, False]
    assert np.isnan(region_distances(regions, [[NAN, NAN]])).all()


def test_five_laser_columns_go_to_a_patch():
    laser = np.arange(55 * 305, dtype=float).reshape(55, 305)
    expected = np.median(laser.reshape(55, 61, 5), axis=2).ravel()
    assert np.array_equal(region_distances(grid_regions((2272, 1704)), laser), expected)


def test_a_reading_belongs_to_the_region_in_the_middle_of_its_cell():
    labels = np.zeros((4, 6), dtype=int)
    labels[:, 2:] = 1  # cells are 3 wide, their middles are columns 1 and 4
    assert region_distances(Regions(labels), [[10.0, 20.0]]).tolist() == [10, 20]


def test_a_region_smaller_than_a_cell_takes_the_cell_it_lies_in():
    regions = grid_regions((4, 8), rows=2, columns=8)
    coarse = [[1.0, NAN, 3.0, 4.0]]
    assert np.array_equal(region_distances(regions, coarse), [1, 1, NAN, NAN, 3, 3, 4, 4] * 2, equal_nan=True)


def test_a_finer_map_than_the_picture_is_read_too():
    fine = np.arange(16.0).reshape(4, 4)
    expected = [np.median([0, 1, 4, 5]), np.median([2, 3, 6, 7]), np.median([8, 9, 12, 13]), 12.5]
    assert region_distances(grid_regions((2, 2), 2, 2), fine).tolist() == expected


def test_one_map_of_distances_is_needed():
    with pytest.raises(ShapeError, match="2 axes"):
        region_distances(grid_regions((2, 2), 2, 2), np.zeros(4))


def test_superpixels_follow_the_edges():
    picture = np.zeros((60, 80, 3), dtype=np.uint8)
    picture[:, 33:] = [200, 180, 20]
    regions = superpixels(picture, count=20)
    assert 5 <= regions.count <= 40
    right = regions.means(np.broadcast_to(np.arange(80) >= 33, (60, 80)))
    assert np.isin(right, [0, 1]).all()  # none lies on both sides


def test_superpixels_of_a_large_picture_cover_it():
    picture = np.random.default_rng(0).integers(0, 255, (90, 120, 3), dtype=np.uint8)
    large = picture.repeat(6, axis=0).repeat(6, axis=1)
    regions = superpixels(large, count=30)
    assert regions.shape == (540, 720)
    assert regions.areas().min() > 0
    assert np.array_equal(regions.labels, superpixels(large, count=30).labels)


def test_superpixels_take_the_smallest_pictures():
    assert superpixels(np.zeros((1, 1), dtype=np.uint8), count=1).count == 1
    assert superpixels(np.full((9, 9), 7, dtype=np.uint8), count=4).count >= 1
    with pytest.raises(ParameterError, match="at most the 6 pixels"):
        superpixels(np.zeros((2, 3), dtype=np.uint8), count=7)
    with pytest.raises(ParameterError, match="compactness needs a number above 0"):
        superpixels(np.zeros((2, 3), dtype=np.uint8), count=2, compactness=0)


def test_without_scikit_image_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match="pip install 'entourage\\[image\\]'"):
        superpixels(np.zeros((9, 9), dtype=np.uint8), count=2)


def test_grey_is_repeated_and_alpha_left_out():
    grey = np.arange(6, dtype=np.uint8).reshape(2, 3)
    assert np.array_equal(as_rgb(grey)[:, :, 2], grey)
    rgba = np.stack([grey, grey + 1, grey + 2, grey + 3], axis=2)
    assert np.array_equal(as_rgb(rgba), rgba[:, :, :3])


@pytest.mark.parametrize("shape", [(4,), (4, 5, 2), (4, 5, 5), (1, 4, 5, 3), (0, 5, 3), ()])
def test_pictures_of_another_shape_are_refused(shape):
    with pytest.raises(ShapeError, match="got \\(.*channels last"):
        as_rgb(np.zeros(shape, dtype=np.uint8))


def test_pictures_of_another_type_are_refused():
    with pytest.raises(DataError, match="uint8.*got float64.*255"):
        as_rgb(np.zeros((4, 5, 3)))


def test_a_copy_has_about_the_pixels_asked_for_and_the_same_mean():
    picture = np.random.default_rng(0).integers(0, 256, (300, 400, 3), dtype=np.uint8)
    copy = scaled_copy(picture, 7500)
    assert copy.shape == (75, 100, 3)
    assert abs(copy.mean() - picture.mean()) < 0.5
    assert scaled_copy(picture, 120_000) is picture
