"""Photographs with depth: small files written here, values worked by hand; the real files where they lie."""

import importlib.util
import pickle
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("PIL", reason="photographs need the extra [image]")
pytest.importorskip("skimage", reason="photographs need the extra [image]")

from data_files import real
from PIL import Image
from scipy.io import savemat

from entourage.data.photographs import photographs
from entourage.data.photographs.photographs import (
    Photograph,
    find_photographs,
    load_depth_pairs,
    load_make3d,
    load_middlebury,
    load_motorcycle,
)
from entourage.errors import DataError, ParameterError, UserError


def picture(path: Path, h: int = 32, w: int = 24, seed: int = 0) -> Path:
    """Noise, so that half a file is half a picture."""
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(seed).integers(0, 256, (h, w, 3), dtype=np.uint8)
    Image.fromarray(noise).save(path)
    return path


def grey(path: Path, values, dtype) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.array(values, dtype=dtype)).save(path)
    return path


def scan(path: Path, depth=None) -> Path:
    """A laser scan; X, Y and Z are far from the depth, so that a mix-up shows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    grid = np.full((55, 305, 4), -1000.0)
    grid[:, :, 3] = np.arange(1, 55 * 305 + 1).reshape(55, 305) / 1000 if depth is None else depth
    savemat(path, {"Position3DGrid": grid})
    return path


def make3d(folder: Path, train=("combined1-p-218t0",), test=("math11-p-139t0",)) -> Path:
    """The folders that the four archives unpack to: that of the test depths doesn't say "test"."""
    for images, depths, names in [
        ("Train400Img", "Train400Depth", train),
        ("Test134", "Gridlaserdata", test),
    ]:
        for name in names:
            picture(folder / images / f"img-{name}.jpg")
            scan(folder / depths / f"depth_sph_corr-{name}.mat")
    return folder


def depth_pair(folder: Path, name: str, steps=((0, 256), (640, 65535)), end: str = "jpg") -> None:
    picture(folder / f"{name}.color.{end}", *np.shape(steps))
    grey(folder / f"{name}.depth.png", steps, np.uint16)


def stereo(folder: Path, name: str, disparity=((0, 1), (2, 200))) -> None:
    picture(folder / f"{name}_left.png", *np.shape(disparity))
    grey(folder / f"{name}_disp.png", disparity, np.uint8)


def cut(path: Path) -> Path:
    """Leave half of a file, as a broken download does."""
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    return path


# --- a photograph ---------------------------------------------------------------------------------


def test_a_photograph_survives_the_way_to_a_worker_process(tmp_path):
    (photograph, _) = load_make3d(make3d(tmp_path))
    assert pickle.loads(pickle.dumps(photograph)) == photograph  # noqa: S301 - made one line above


def test_a_fingerprint_changes_with_either_file_and_with_the_kind(tmp_path):
    image, depth = tmp_path / "a", tmp_path / "b"
    image.write_bytes(b"image")
    depth.write_bytes(b"depth")
    photograph = Photograph("n", "g", None, image, depth, "metres")
    seen = [photograph.fingerprint(), Photograph("n", "g", None, image, depth, "disparity").fingerprint()]
    assert photograph.fingerprint() == seen[0]
    assert Photograph("other", "other", "test", image, depth, "metres").fingerprint() == seen[0]
    image.write_bytes(b"imaged")  # a byte that moves from one file to the other counts
    depth.write_bytes(b"epth")
    seen.append(photograph.fingerprint())
    depth.write_bytes(b"epth!")
    seen.append(photograph.fingerprint())
    assert len(set(seen)) == 4
    assert all(len(mark) == 64 for mark in seen)


def test_an_unknown_kind_or_split_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="kind='meters'.*did you mean 'metres'"):
        Photograph("n", "g", None, tmp_path, tmp_path, "meters")
    with pytest.raises(ParameterError, match="split='val'"):
        Photograph("n", "g", "val", tmp_path, tmp_path, "metres")


def test_a_file_that_has_gone_is_named(tmp_path):
    depth_pair(tmp_path, "a")
    (photograph,) = load_depth_pairs(tmp_path)
    photograph.depth.unlink()
    for act in (photograph.read, photograph.fingerprint):
        with pytest.raises(DataError, match="a.depth.png can't be read: No such file"):
            act()


@pytest.mark.parametrize("end", ["jpg", "png"])
def test_half_a_photograph_is_refused(tmp_path, end):
    depth_pair(tmp_path, "a", np.full((40, 60), 256), end)
    (photograph,) = load_depth_pairs(tmp_path)
    assert photograph.read()[0].shape == (40, 60, 3)
    cut(photograph.image)
    with pytest.raises(DataError, match=f"a.color.{end} is no whole image file.*Fetch it again"):
        photograph.read()


def test_an_empty_file_and_one_that_is_no_image_are_refused(tmp_path):
    depth_pair(tmp_path, "a")
    (photograph,) = load_depth_pairs(tmp_path)
    for content in (b"", b"<html>404</html>"):
        photograph.image.write_bytes(content)
        with pytest.raises(DataError, match="a.color.jpg is no whole image file"):
            photograph.read()


def test_a_damaged_byte_in_a_depth_image_is_noticed(tmp_path):
    depth_pair(tmp_path, "a", np.random.default_rng(0).integers(0, 60000, (30, 40)))
    (photograph,) = load_depth_pairs(tmp_path)
    content = bytearray(photograph.depth.read_bytes())
    content[len(content) // 2] ^= 255
    photograph.depth.write_bytes(content)
    with pytest.raises(DataError, match="a.depth.png is no whole image file"):
        photograph.read()


@pytest.mark.parametrize("mode", ["L", "P", "RGBA"])
def test_grey_palette_and_alpha_become_three_channels(tmp_path, mode):
    depth_pair(tmp_path, "a", end="png")
    Image.new("RGB", (2, 2), (51, 51, 51)).convert(mode).save(tmp_path / "a.color.png")
    image, _ = load_depth_pairs(tmp_path)[0].read()
    assert image.dtype == np.uint8
    assert np.array_equal(image, np.full((2, 2, 3), 51))


def test_a_photograph_of_16_bits_is_refused_rather_than_clipped(tmp_path):
    depth_pair(tmp_path, "a", end="png")
    grey(tmp_path / "a.color.png", [[1, 2], [3, 60000]], np.uint16)
    with pytest.raises(DataError, match="a.color.png needs a photograph of 8 bits a channel"):
        load_depth_pairs(tmp_path)[0].read()


def test_without_scikit_image_the_extra_is_named(tmp_path, monkeypatch):
    depth_pair(tmp_path, "a")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None)
    for act in (load_motorcycle, load_depth_pairs(tmp_path)[0].read):
        with pytest.raises(UserError, match=r"pip install 'entourage\[image\]'"):
            act()


# --- Make3D ---------------------------------------------------------------------------------------


def test_make3d_is_paired_by_name_and_split_by_the_folder_of_the_photograph(tmp_path):
    make3d(tmp_path, ["op1-p-015t000", "combined1-p-218t0", "10.21op2-p-046t000"], ["math11-p-139t0"])
    assert [(p.name, p.group, p.split, p.kind) for p in load_make3d(tmp_path)] == [
        ("10.21op2-p-046t000", "10.21op2", "train", "make3d"),
        ("combined1-p-218t0", "combined1", "train", "make3d"),
        ("math11-p-139t0", "math11", "test", "make3d"),
        ("op1-p-015t000", "op1", "train", "make3d"),
    ]
    for photograph in load_make3d(tmp_path):
        assert photograph.image.name == f"img-{photograph.name}.jpg"
        assert photograph.depth.name == f"depth_sph_corr-{photograph.name}.mat"


def test_make3d_gives_the_fourth_layer_of_the_grid_in_metres(tmp_path):
    (photograph, _) = load_make3d(make3d(tmp_path))
    image, distances = photograph.read()
    assert (image.dtype, image.shape) == (np.uint8, (32, 24, 3))
    assert (distances.dtype, distances.shape) == (np.float32, (55, 305))
    assert distances[0, 0] == np.float32(0.001)
    assert distances[1, 0] == np.float32(0.306)  # a row is 305 readings


def test_make3d_depths_that_are_no_distance_are_no_reading(tmp_path):
    depth = np.full((55, 305), 12.5)
    depth[0, :5] = [0, -3, np.nan, np.inf, 81]
    picture(tmp_path / "img-a-p-1.jpg")
    scan(tmp_path / "depth_sph_corr-a-p-1.mat", depth)
    _, distances = load_make3d(tmp_path)[0].read()
    assert np.isnan(distances[0, :4]).all()
    assert distances[0, 4] == 81
    assert np.isnan(distances).sum() == 4


def test_make3d_without_folders_for_it_has_no_split(tmp_path):
    folder = tmp_path / "test_of_mine"  # the given folder's own name says nothing
    picture(folder / "img-a-p-1.jpg")
    scan(folder / "depth_sph_corr-a-p-1.mat")
    assert [p.split for p in load_make3d(folder)] == [None]


@pytest.mark.parametrize(
    ("place", "split"),
    [
        ("TRAIN400Img", "train"),
        ("Test134Img", "test"),
        ("testing/deep/er", "test"),
        ("train/Test134", "test"),
    ],
)
def test_the_split_is_told_by_the_innermost_folder_in_any_case(tmp_path, place, split):
    picture(tmp_path / place / "img-a-p-1.jpg")
    scan(tmp_path / "Train400Depth" / "depth_sph_corr-a-p-1.mat")
    assert [p.split for p in load_make3d(tmp_path)] == [split]


def test_photographs_beside_the_folders_of_a_split_are_named(tmp_path):
    make3d(tmp_path)
    picture(tmp_path / "img-stray-p-1.jpg")
    scan(tmp_path / "depth_sph_corr-stray-p-1.mat")
    with pytest.raises(DataError, match="1 of 3 lie in no such folder: img-stray-p-1.jpg"):
        load_make3d(tmp_path)


def test_a_half_unpacked_make3d_names_the_first_few_and_how_many(tmp_path):
    make3d(tmp_path)
    for i in range(5):
        picture(tmp_path / "Train400Img" / f"img-a-p-{i}.jpg")
    scan(tmp_path / "Gridlaserdata" / "depth_sph_corr-b-p-1.mat")
    with pytest.raises(DataError) as caught:
        load_make3d(tmp_path)
    message = str(caught.value)
    assert "5 without depth (img-a-p-0.jpg, img-a-p-1.jpg, img-a-p-2.jpg, ...)" in message
    assert "1 without photograph (depth_sph_corr-b-p-1.mat)" in message
    assert "Unpack all four archives" in message


def test_a_name_that_comes_twice_is_refused(tmp_path):
    make3d(tmp_path)
    picture(tmp_path / "Test134" / "img-combined1-p-218t0.jpg")
    with pytest.raises(DataError, match="'combined1-p-218t0' is needed once"):
        load_make3d(tmp_path)


def test_what_a_mac_leaves_in_an_archive_is_passed_over(tmp_path):
    depth_pair(tmp_path, "a")
    make3d(tmp_path / "make3d")
    for file in ("._b.color.jpg", "make3d/Train400Img/._img-x.jpg", "make3d/.hidden/img-y.jpg"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_bytes(b"")
    assert [p.name for p in load_depth_pairs(tmp_path)] == ["a"]
    assert len(load_make3d(tmp_path / "make3d")) == 2


def test_folders_may_be_links_even_in_a_circle(tmp_path):
    make3d(tmp_path / "archives")
    folder = tmp_path / "linked"
    folder.mkdir()
    for name in ("Train400Img", "Train400Depth", "Test134", "Gridlaserdata"):
        (folder / name).symlink_to(tmp_path / "archives" / name)
    (folder / "again").symlink_to(folder)
    assert [p.split for p in load_make3d(folder)] == ["train", "test"]


def test_a_make3d_photograph_on_its_side_or_cropped_is_refused(tmp_path):
    (photograph, _) = load_make3d(make3d(tmp_path))
    picture(photograph.image, 24, 32)
    with pytest.raises(DataError, match="24 x 32 came. It lies on its side: turn it upright"):
        photograph.read()
    picture(photograph.image, 30, 30)
    with pytest.raises(DataError, match="30 x 30 came. Take the photograph uncropped"):
        photograph.read()
    picture(photograph.image, 460, 345)  # resized, as it is often passed on
    assert photograph.read()[0].shape == (460, 345, 3)


def write_matlab_73(path: Path) -> None:
    head = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM"
    path.write_bytes(head.ljust(512, b"\0") + b"\x89HDF\r\n\x1a\n".ljust(512, b"\0"))


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda path: savemat(path, {"depth": np.ones((55, 305))}), "needs the variable Position3DGrid"),
        (
            lambda path: savemat(path, {"Position3DGrid": np.ones((55, 305))}),
            r"shape \(55, 305, 4\).*\(55, 305\)",
        ),
        (
            lambda path: savemat(path, {"Position3DGrid": np.ones((305, 55, 4))}),
            r"float64 of shape \(305, 55, 4\)",
        ),
        (lambda path: savemat(path, {"Position3DGrid": "words"}), "Position3DGrid needs numbers"),
        (write_matlab_73, "it is of MATLAB 7.3"),
        (lambda path: cut(scan(path)), "is no whole MATLAB file"),
        (lambda path: path.write_bytes(b""), "is no whole MATLAB file"),
        (lambda path: path.write_bytes(b"no such thing " * 40), "is no whole MATLAB file"),
    ],
)
def test_a_scan_that_is_damaged_or_of_another_form_is_named(tmp_path, write, message):
    (photograph, _) = load_make3d(make3d(tmp_path))
    write(photograph.depth)
    with pytest.raises(DataError, match=f"depth_sph_corr-combined1-p-218t0.mat.*{message}"):
        photograph.read()


# --- depth pairs ----------------------------------------------------------------------------------


def test_depth_in_metres_is_the_steps_by_256_and_0_is_no_reading(tmp_path):
    depth_pair(tmp_path, "a", [[0, 256], [640, 65535]])
    image, distances = load_depth_pairs(tmp_path)[0].read()
    assert image.shape == (2, 2, 3)
    assert distances.dtype == np.float32
    assert np.array_equal(distances, np.float32([[np.nan, 1], [2.5, 65535 / 256]]), equal_nan=True)


def test_frames_of_a_drive_are_one_group_and_single_names_their_own(tmp_path):
    for name in (
        "udacity_2011_09_26_0000",
        "udacity_2011_09_26_0003",
        "kuixu_000000",
        "kuixu_000001",
        "one_0007",
    ):
        depth_pair(tmp_path, name)
    depth_pair(tmp_path, "plain", end="png")
    assert {p.name: p.group for p in load_depth_pairs(tmp_path)} == {
        "kuixu_000000": "kuixu",
        "kuixu_000001": "kuixu",
        "one_0007": "one_0007",
        "plain": "plain",
        "udacity_2011_09_26_0000": "udacity_2011_09_26",
        "udacity_2011_09_26_0003": "udacity_2011_09_26",
    }
    assert {p.split for p in load_depth_pairs(tmp_path)} == {None}


def test_depth_of_another_size_than_its_photograph_is_refused(tmp_path):
    depth_pair(tmp_path, "a")
    grey(tmp_path / "a.depth.png", np.ones((3, 2)), np.uint16)
    with pytest.raises(DataError, match=r"a.depth.png needs .* a.color.jpg, 2 x 2 .*; 3 x 2 came"):
        load_depth_pairs(tmp_path)[0].read()


def test_depth_of_8_bits_is_refused(tmp_path):
    depth_pair(tmp_path, "a")
    grey(tmp_path / "a.depth.png", np.ones((2, 2)), np.uint8)
    with pytest.raises(DataError, match="a.depth.png needs 16 bit depth"):
        load_depth_pairs(tmp_path)[0].read()


def test_a_pair_of_which_one_file_is_missing_is_named(tmp_path):
    depth_pair(tmp_path, "a")
    depth_pair(tmp_path, "b")
    (tmp_path / "b.depth.png").unlink()
    with pytest.raises(DataError, match=r"1 without depth \(b.color.jpg\)"):
        load_depth_pairs(tmp_path)


def test_a_photograph_in_two_formats_is_refused(tmp_path):
    depth_pair(tmp_path, "a")
    picture(tmp_path / "a.color.png", 2, 2)
    with pytest.raises(DataError, match="'a' is needed once.*a.color.jpg and .*a.color.png"):
        load_depth_pairs(tmp_path)


# --- stereo ---------------------------------------------------------------------------------------


def test_the_distance_is_one_by_the_disparity_and_0_is_unknown(tmp_path):
    stereo(tmp_path, "desk", [[0, 1], [2, 200]])
    (photograph,) = load_middlebury(tmp_path)
    assert (photograph.name, photograph.group, photograph.split) == ("desk", "desk", None)
    _, distances = photograph.read()
    assert distances.dtype == np.float32
    assert np.array_equal(distances, np.float32([[np.nan, 1], [1 / 2, 1 / 200]]), equal_nan=True)


def test_one_of_three_equal_channels_is_taken_and_a_coloured_map_refused(tmp_path):
    stereo(tmp_path, "desk")
    grey(tmp_path / "desk_disp.png", np.full((2, 2, 3), 4), np.uint8)
    assert load_middlebury(tmp_path)[0].read()[1].tolist() == [[0.25, 0.25], [0.25, 0.25]]
    grey(tmp_path / "desk_disp.png", np.arange(12).reshape(2, 2, 3), np.uint8)
    with pytest.raises(DataError, match="desk_disp.png needs disparities, the same in all channels"):
        load_middlebury(tmp_path)[0].read()


def test_disparities_in_an_npz_are_read_and_what_is_not_above_0_is_unknown(tmp_path):
    picture(tmp_path / "desk_left.jpg", 2, 3)
    np.savez(tmp_path / "desk_disp.npz", np.float32([[4, np.inf, np.nan], [-1, 0, 0.5]]))
    _, distances = load_middlebury(tmp_path)[0].read()
    expected = np.float32([[0.25, np.nan, np.nan], [np.nan, np.nan, 2]])
    assert np.array_equal(distances, expected, equal_nan=True)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ([np.ones((2, 3)), np.ones((2, 3))], "needs one array of numbers"),
        ([np.ones((2, 3, 3))], r"float64 of shape \(2, 3, 3\) came"),
        ([np.array([["a"]])], "needs one array of numbers"),
        ([np.array([[None]], dtype=object)], "is no whole .npz file of numbers"),
        ([np.ones((3, 2))], "one value for each pixel of desk_left.png, 2 x 3"),
    ],
)
def test_an_npz_of_another_form_is_refused(tmp_path, arrays, message):
    picture(tmp_path / "desk_left.png", 2, 3)
    np.savez(tmp_path / "desk_disp.npz", *arrays)
    with pytest.raises(DataError, match=f"desk_disp.npz.*{message}"):
        load_middlebury(tmp_path)[0].read()


def test_half_an_npz_and_half_a_disparity_image_are_refused(tmp_path):
    picture(tmp_path / "a_left.png", 40, 60)
    np.savez_compressed(tmp_path / "a_disp.npz", np.random.default_rng(0).random((40, 60)))
    stereo(tmp_path, "b", np.random.default_rng(0).integers(0, 256, (40, 60)))
    a, b = load_middlebury(tmp_path)
    cut(a.depth)
    cut(b.depth)
    with pytest.raises(DataError, match="a_disp.npz is no whole .npz file"):
        a.read()
    with pytest.raises(DataError, match="b_disp.png is no whole image file"):
        b.read()


def test_the_motorcycle_is_read_without_a_download():
    photograph = load_motorcycle()
    assert (photograph.name, photograph.group, photograph.split) == ("motorcycle", "motorcycle", None)
    image, distances = photograph.read()
    assert image.shape == (500, 741, 3)
    assert distances.shape == (500, 741)
    assert np.isfinite(distances).mean() > 0.8


def test_a_scikit_image_without_the_motorcycle_says_what_to_run(tmp_path, monkeypatch):
    monkeypatch.setattr(photographs, "_example_folders", lambda: [tmp_path, tmp_path / "none"])
    with pytest.raises(DataError, match=r"pip install pooch.*skimage.data.stereo_motorcycle\(\)"):
        load_motorcycle()


# --- any of them ----------------------------------------------------------------------------------


def test_the_form_is_told_by_the_names(tmp_path):
    make3d(tmp_path / "laser")
    depth_pair(tmp_path / "drive", "a")
    stereo(tmp_path / "indoors", "desk")
    (tmp_path / "drive" / "README.md").write_text("not a photograph")
    assert find_photographs(tmp_path / "laser") == load_make3d(tmp_path / "laser")
    assert find_photographs(str(tmp_path / "drive")) == load_depth_pairs(tmp_path / "drive")
    assert find_photographs(tmp_path / "indoors") == load_middlebury(tmp_path / "indoors")


def test_a_form_with_a_half_missing_is_told_all_the_same(tmp_path):
    scan(tmp_path / "Gridlaserdata" / "depth_sph_corr-a-p-1.mat")
    with pytest.raises(DataError, match="Of 0 photographs and 1 depths.*1 without photograph"):
        find_photographs(tmp_path)


def test_a_folder_of_nothing_known_says_what_is_known(tmp_path):
    (tmp_path / "Train400Img.tar.gz").write_bytes(b"")
    with pytest.raises(DataError) as caught:
        find_photographs(tmp_path)
    for said in ("img-NAME.jpg", "NAME.color.jpg", "NAME_left.png", "none of them", "unpacked"):
        assert said in str(caught.value)


def test_a_mixture_of_forms_is_refused(tmp_path):
    depth_pair(tmp_path, "a")
    stereo(tmp_path, "desk")
    with pytest.raises(DataError, match="more than one: NAME.color.* and NAME_left.*Separate them"):
        find_photographs(tmp_path)


def test_a_folder_that_is_none_or_empty_is_refused(tmp_path):
    for load in (find_photographs, load_make3d, load_depth_pairs, load_middlebury):
        with pytest.raises(DataError, match="is not a folder"):
            load(tmp_path / "missing")
        with pytest.raises(DataError, match="holds none"):
            load(tmp_path)


# --- the real files -------------------------------------------------------------------------------


def test_the_real_drives_are_34_photographs_with_the_26_frames_of_one_drive_together():
    found = find_photographs(real("depth_kitti_lidar"))
    assert len(found) == 34
    assert sum(p.group == "udacity_2011_09_26" for p in found) == 26
    assert sorted({p.group for p in found}) == [
        "azureology_000007",
        "balcilar_000001",
        "darylclimb_000114",
        "kuixu",
        "pointpillars",
        "udacity_2011_09_26",
    ]
    for photograph in (found[0], found[-1]):
        image, distances = photograph.read()
        readings = distances[np.isfinite(distances)]
        assert image.shape[:2] == distances.shape
        assert 15_000 < len(readings) < 21_000
        assert 0 < readings.min() < readings.max() < 130


def test_the_real_stereo_scenes_are_13_groups():
    found = find_photographs(real("depth_middlebury"))
    assert len({p.group for p in found}) == len(found) == 13
    assert {p.kind for p in found} == {"disparity"}
    for photograph in found:
        image, distances = photograph.read()
        assert image.shape[:2] == distances.shape
        assert np.isfinite(distances).mean() > 0.75


def test_drives_of_kitti_s_own_names_stay_together(tmp_path):
    for frame in ("drive_0002_sync_image_0000000005_image_02", "drive_0002_sync_image_0000000008_image_02"):
        name = f"2011_09_26_{frame}"
        picture(tmp_path / f"{name}.color.png")
        grey(tmp_path / f"{name}.depth.png", np.full((32, 24), 256), np.uint16)
    name = "2011_09_26_drive_0005_sync_image_0000000001_image_02"
    picture(tmp_path / f"{name}.color.png")
    grey(tmp_path / f"{name}.depth.png", np.full((32, 24), 256), np.uint16)
    groups = [photo.group for photo in load_depth_pairs(tmp_path)]
    assert groups == ["2011_09_26_drive_0002"] * 2 + [name]
