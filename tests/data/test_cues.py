"""Cues: each tells on a made picture what it is meant to tell, and none ever fails to give a number."""

import importlib.util
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entourage.data.photographs import cues
from entourage.data.photographs.cues import CUE_NAMES, CUES, describe, view_of
from entourage.data.photographs.regions import Regions, grid_regions
from entourage.errors import DataError, ShapeError, UserError

SHAPE = (120, 160)


def paint(grey: float = 128, shape: tuple[int, int] = SHAPE) -> np.ndarray:
    """Give a picture of one grey."""
    return np.full((*shape, 3), grey, dtype=np.uint8)


def noise(seed: int = 0, shape: tuple[int, int] = SHAPE) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (*shape, 3), dtype=np.uint8)


def stripes(period: int) -> np.ndarray:
    """Give upright stripes."""
    light = 128 + 100 * np.sin(2 * np.pi * np.arange(SHAPE[1]) / period)
    return np.broadcast_to(light[:, None], (*SHAPE, 3)).astype(np.uint8)


def road(row: float, column: float) -> np.ndarray:
    """Draw lines that meet at a point, given in pixels, without reaching it."""
    picture = paint(230)
    rows, columns = np.indices(SHAPE) + 0.5
    down, across = rows - row, columns - column
    for angle in np.radians([20, 40, 65, 110, 130, 155, 205, 330]):
        aside = np.abs(across * np.sin(angle) - down * np.cos(angle))
        ahead = across * np.cos(angle) + down * np.sin(angle)
        picture[(aside < 1) & (ahead > 15)] = 20
    return picture


def column(picture: np.ndarray, regions: Regions, name: str) -> np.ndarray:
    cue, _ = name.split(": ")
    measured = CUES[cue].measure(view_of(picture), regions)
    return measured[:, [f"{cue}: {c}" for c in CUES[cue].columns].index(name)]


def mean(picture: np.ndarray, name: str) -> float:
    return float(column(picture, Regions(np.zeros(picture.shape[:2], dtype=int)), name)[0])


PICTURES = {
    "black": paint(0),
    "white": paint(255),
    "noise": noise(),
    "grey": noise()[:, :, 0],
    "with alpha": np.dstack([noise(), noise()[:, :, 0]]),
    "road": road(50, 70),
    "stripes": stripes(4),
    "3 x 4 pixels": noise(shape=(3, 4)),
    "a row": noise(shape=(1, 50)),
    "a column": noise(shape=(50, 1)),
    "a pixel": noise(shape=(1, 1)),
}


@pytest.mark.parametrize("name", PICTURES)
def test_every_cue_gives_finite_numbers_for(name):
    picture = PICTURES[name]
    height, width = picture.shape[:2]
    regions = grid_regions(picture, rows=min(height, 6), columns=min(width, 8))
    features = describe(picture, regions)
    assert features.shape == (regions.count, len(CUE_NAMES))
    assert features.dtype == np.float32
    assert np.isfinite(features).all()


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 2**32 - 1), st.sampled_from([2, 9, 256]))
@settings(max_examples=25, deadline=None)
def test_any_picture_and_regions_give_finite_numbers(height, width, seed, colours):
    rng = np.random.default_rng(seed)
    picture = (rng.integers(0, colours, (height, width, 3)) * (255 // (colours - 1))).astype(np.uint8)
    labels = np.unique(rng.integers(0, 7, (height, width)), return_inverse=True)[1].reshape(height, width)
    assert np.isfinite(describe(picture, Regions(labels))).all()


def test_there_are_eight_cues_and_every_column_has_a_name_of_its_own():
    assert list(CUES) == [
        "linear_perspective",
        "atmospheric_perspective",
        "texture_gradients",
        "occlusion",
        "usual_size",
        "relative_height",
        "relative_size",
        "distribution_of_light",
    ]
    assert len(set(CUE_NAMES)) == len(CUE_NAMES)
    view, regions = view_of(noise()), grid_regions(SHAPE, 3, 4)
    for name, cue in CUES.items():
        assert cue.measure.__name__ == name
        assert cue.measure(view, regions).shape == (12, len(cue.columns))
        assert cue.measure(view, regions).dtype == np.float32


@pytest.fixture
def small_copy(monkeypatch):
    """Measure on a copy of 5,000 pixels, so that pictures need not be large to be scaled down."""
    monkeypatch.setattr(cues, "PIXELS", 5_000)


def test_the_same_picture_gives_the_same_numbers_to_the_bit(small_copy):
    for picture in (road(50, 70), noise(shape=(60, 70))):  # scaled down, and not
        regions = grid_regions(picture, 10, 12)
        assert describe(picture, regions).tobytes() == describe(picture.copy(), regions).tobytes()


def test_the_numbers_follow_their_regions_when_these_are_numbered_anew():
    picture, regions = road(50, 70), grid_regions(SHAPE, 6, 8)
    order = np.random.default_rng(0).permutation(regions.count)
    shuffled = describe(picture, Regions(order[regions.labels]))
    assert np.allclose(shuffled[order], describe(picture, regions), atol=1e-6)


def test_a_region_too_small_for_the_copy_is_described_by_what_is_there(small_copy):
    picture = paint(0)
    picture[:, 80:] = 255
    labels = np.zeros(SHAPE, dtype=int)
    spots = [(2 * i + 3, 110 + i) for i in range(40)]
    for label, spot in enumerate(spots, start=1):
        labels[spot] = label
    regions = Regions(labels)
    view = view_of(picture)
    assert np.bincount(regions.at(view.shape).ravel(), minlength=41).min() == 0  # some are lost
    features = {name: cue.measure(view, regions) for name, cue in CUES.items()}
    assert all(np.isfinite(columns).all() for columns in features.values())
    assert np.allclose(features["distribution_of_light"][1:, 0], 1, atol=1e-3)
    assert np.allclose(features["relative_height"][1:, 0], [(row + 0.5) / 120 for row, _ in spots])


@pytest.mark.parametrize(("row", "along"), [(50, 70), (60, 100), (66, 45)])
def test_lines_that_meet_give_the_vanishing_point(row, along):
    view = view_of(road(row, along))
    assert view.vanishing_point[0] * SHAPE[0] == pytest.approx(row, abs=4)
    assert view.vanishing_point[1] * SHAPE[1] == pytest.approx(along, abs=4)
    assert view.strength > 0.5


def test_without_lines_the_vanishing_point_is_the_middle_and_counts_for_nothing():
    for picture in (paint(), stripes(16)):
        view = view_of(picture)
        assert view.vanishing_point == (0.5, 0.5)
        assert view.strength == 0


def test_edges_of_a_road_point_at_the_vanishing_point():
    regions = grid_regions(SHAPE, 6, 8)
    assert np.median(column(road(50, 70), regions, "linear_perspective: aim")[24:]) > 0.8
    rings = np.hypot(*(np.indices(SHAPE) + 0.5 - np.array([60, 80])[:, None, None]))
    circles = as_picture(128 + 100 * np.sin(rings / 2))
    assert np.median(column(circles, regions, "linear_perspective: aim")) < 0.2


def as_picture(grey: np.ndarray) -> np.ndarray:
    return np.repeat(grey[:, :, None], 3, axis=2).astype(np.uint8)


def test_the_distance_to_the_vanishing_point_is_the_length_in_the_picture():
    regions = grid_regions(SHAPE, 3, 4)
    far, across, box = (
        column(paint(), regions, f"linear_perspective: {c}") for c in ("distance", "across", "box")
    )
    side = np.sqrt(120 * 160)
    assert far[0] == pytest.approx(np.hypot(40, 60) / side)  # patches are 40 x 40; the middle is (60, 80)
    assert across[0] == box[0] == pytest.approx(60 / side)
    assert across[1] == pytest.approx(20 / side)
    assert box[1] == pytest.approx(40 / side)


def test_haze_raises_the_dark_channel_and_takes_saturation_and_contrast():
    clear = noise()
    haze = (0.5 * clear + 0.5 * 255).astype(np.uint8)
    assert mean(haze, "atmospheric_perspective: dark_channel") > 0.45
    assert mean(clear, "atmospheric_perspective: dark_channel") < 0.2
    assert mean(haze, "atmospheric_perspective: saturation") < mean(
        clear, "atmospheric_perspective: saturation"
    )
    assert mean(haze, "atmospheric_perspective: contrast") < mean(clear, "atmospheric_perspective: contrast")


def test_blue_is_bluer_than_grey_and_yellow():
    blue, yellow = paint(), paint()
    blue[:, :, 2], yellow[:, :, 2] = 250, 0
    blueness = [mean(p, "atmospheric_perspective: blueness") for p in (yellow, paint(), blue)]
    assert blueness[0] < blueness[1] < blueness[2]
    assert blueness[1] == pytest.approx(0, abs=0.01)


def test_finer_stripes_have_a_larger_fine_to_coarse_ratio():
    ratios = [mean(stripes(period), "texture_gradients: ratio") for period in (3, 6, 12, 24)]
    assert ratios == sorted(ratios, reverse=True)
    assert ratios[0] > 1 > -1 > ratios[-1]


def test_stripes_are_coherent_and_upright_and_noise_is_neither():
    assert mean(stripes(8), "texture_gradients: coherence") > 0.9
    assert mean(stripes(8), "texture_gradients: upright") > 0.9
    lying = as_picture(stripes(8)[:120, :, 0].T)
    assert mean(lying, "texture_gradients: upright") < 0.1
    assert mean(noise(), "texture_gradients: coherence") < 0.5


def test_detail_is_what_the_copy_lost(small_copy):
    rough = noise(shape=(120, 120))
    coarse = noise(shape=(12, 12)).repeat(10, axis=0).repeat(10, axis=1)
    nothing = np.log(0.005)
    assert mean(rough, "texture_gradients: detail") > mean(coarse, "texture_gradients: detail") > nothing
    small = noise(shape=(60, 60))  # not scaled
    assert mean(small, "texture_gradients: detail") == pytest.approx(nothing)


def test_texture_that_grows_coarser_downwards_has_a_change():
    picture = paint()
    rng = np.random.default_rng(0)
    spread = np.linspace(0, 100, SHAPE[0])[:, None, None]
    rising = (picture + spread * rng.uniform(-1, 1, SHAPE)[:, :, None]).astype(np.uint8)
    assert mean(rising, "texture_gradients: change") > 0
    assert mean(rising[::-1], "texture_gradients: change") < 0


def test_contrast_stands_on_the_side_where_the_neighbour_is():
    picture = paint(0)
    picture[:, 80:] = 255
    halves = grid_regions(SHAPE, 1, 2)
    sides = {c: column(picture, halves, f"occlusion: {c}") for c in ("above", "below", "left", "right")}
    assert np.allclose(sides["right"], [1, 0], atol=1e-3)  # black to white is 100 in Lab
    assert np.allclose(sides["left"], [0, 1], atol=1e-3)
    assert not sides["above"].any()
    assert not sides["below"].any()
    turned = picture[:, 20:140].transpose(1, 0, 2)
    above = column(turned, grid_regions(turned, 2, 1), "occlusion: above")
    assert np.allclose(above, [0, 1], atol=1e-3)


def test_of_bands_the_lower_ones_are_in_front_and_the_upper_ones_behind():
    bands = grid_regions(SHAPE, 3, 1)
    view = replace(view_of(paint()), things=bands, surfaces=bands)
    *_, front, behind, compact = CUES["occlusion"].measure(view, bands).T
    assert front.tolist() == [-1, 0, 1]
    assert np.allclose(behind, np.log1p([2, 1, 0]))
    assert np.allclose(compact, 1)


def test_bands_of_a_picture_are_found():
    picture = paint(20)
    picture[40:80], picture[80:] = 120, 230
    front, behind = (
        column(picture, grid_regions(SHAPE, 3, 1), f"occlusion: {name}") for name in ("front", "behind")
    )
    assert front[0] < front[1] < front[2]
    assert behind[0] > behind[1] > behind[2]


def two_squares() -> tuple[np.ndarray, Regions]:
    """Paint a large square above and a small one below, both dark on white, and say where they are."""
    picture, labels = paint(240), np.zeros(SHAPE, dtype=int)
    picture[20:60, 20:60], labels[20:60, 20:60] = 40, 1
    picture[80:100, 100:120], labels[80:100, 100:120] = 40, 2
    return picture, Regions(labels)


def test_sizes_are_those_of_the_thing_around():
    picture, squares = two_squares()
    view = replace(view_of(picture), things=squares)
    _, large, small = CUES["usual_size"].measure(view, squares)
    assert large[:3] == pytest.approx([np.log(1600 / 19200), 40 / 120, 40 / 160])
    assert small[:3] == pytest.approx([np.log(400 / 19200), 20 / 120, 20 / 160])
    assert view.vanishing_point[0] == 0.5
    assert small[3] == pytest.approx(np.log(20 / (100 - 60)))  # 20 high, its foot 40 below the horizon


def test_of_two_things_alike_the_smaller_has_the_smaller_relative_size():
    picture, squares = two_squares()
    view = replace(view_of(picture), things=squares)
    for measure, ratio in zip(
        CUES["relative_size"].measure(view, squares).T, (1600 / 400, 2, 2), strict=False
    ):
        assert measure == pytest.approx([0, np.log(ratio) / 2, -np.log(ratio) / 2], abs=1e-4)
    alike = CUES["relative_size"].measure(view, squares)[:, 3]
    assert alike == pytest.approx([1 / 3, 2 / 3, 2 / 3], abs=1e-4)


def test_many_small_things_are_a_crowd():
    picture = paint(240)
    tiles = np.indices((60, 160)) // 12
    picture[60:] = np.where(tiles.sum(0) % 2, 240, 40)[:, :, None]
    upper, lower = column(picture, grid_regions(SHAPE, 2, 1), "relative_size: crowding")
    assert lower > 3 * upper


def test_lower_regions_have_a_larger_relative_height():
    regions = grid_regions(SHAPE, 4, 3)
    features = CUES["relative_height"].measure(view_of(road(50, 70)), regions)
    row, squared, below, foot = (c.reshape(4, 3) for c in features.T)
    assert np.allclose(row, np.array([1, 3, 5, 7])[:, None] / 8)
    assert np.allclose(squared, row**2)
    assert np.allclose(np.diff(below, axis=0), 1 / 4)
    assert below[0, 0] == pytest.approx(1 / 8 - 50 / 120, abs=0.05)
    assert ((foot > 0) & (foot <= 1)).all()


def test_the_foot_is_that_of_the_surface():
    picture, regions = two_squares()
    foot = column(picture, regions, "relative_height: foot")
    assert foot == pytest.approx([1, 60 / 120, 100 / 120], abs=0.03)


def test_mirroring_leaves_height_alone_and_turns_right_to_left():
    picture, regions = road(50, 70), grid_regions(SHAPE, 4, 8)
    mirrored = picture[:, ::-1]

    def flipped(name: str) -> np.ndarray:
        return column(mirrored, regions, name).reshape(4, 8)[:, ::-1].ravel()

    for name in ("relative_height: row", "atmospheric_perspective: dark_channel", "occlusion: above"):
        assert np.allclose(flipped(name), column(picture, regions, name), atol=1e-4)
    assert np.allclose(flipped("occlusion: left"), column(picture, regions, "occlusion: right"), atol=1e-4)
    assert np.allclose(
        flipped("distribution_of_light: right"),
        -column(picture, regions, "distribution_of_light: right"),
        atol=1e-3,
    )


def test_light_that_grows_downwards_has_a_change_that_way():
    picture = as_picture(np.broadcast_to(np.linspace(20, 220, 120)[:, None], SHAPE))
    assert mean(picture, "distribution_of_light: down") > 0.5
    assert mean(picture[::-1], "distribution_of_light: down") < -0.5
    assert mean(picture, "distribution_of_light: right") == pytest.approx(0, abs=1e-3)
    upper, lower = column(picture, grid_regions(SHAPE, 2, 1), "distribution_of_light: against_mean")
    assert upper == pytest.approx(-lower, abs=1e-3)
    assert lower > 0.1


def test_a_dark_spot_is_in_the_shadow():
    picture, regions = two_squares()
    around, _, small = column(picture, regions, "distribution_of_light: shadow")
    assert around == 0
    assert small == 1


def test_regions_of_another_picture_are_refused():
    with pytest.raises(ShapeError, match="\\(120, 160\\) pixels; this one has \\(160, 120\\)"):
        describe(paint(shape=(160, 120)), grid_regions(SHAPE, 2, 2))


def test_what_is_no_photograph_is_refused():
    with pytest.raises(DataError, match="uint8"):
        describe(noise() / 255, grid_regions(SHAPE, 2, 2))
    with pytest.raises(ShapeError, match="channels last"):
        view_of(np.zeros((3, 2, 120, 160), dtype=np.uint8))


def test_without_scikit_image_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match="pip install 'entourage\\[image\\]'"):
        describe(paint(), grid_regions(SHAPE, 2, 2))
