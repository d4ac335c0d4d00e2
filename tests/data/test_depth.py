"""From photographs to sets, and table 2 on small photographs of each known form."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

pytest.importorskip("skimage", reason="photographs need the extra [image]")

from PIL import Image
from scipy.io import savemat

from entourage.cli.program import app
from entourage.data.photographs import depth
from entourage.data.photographs.depth import depth_ranks, make_depth_sets
from entourage.data.photographs.photographs import Photograph, find_photographs, load_motorcycle
from entourage.errors import DataError, ParameterError, UserError
from entourage.experiments.table2 import splits_of


def scene(seed: int, h: int, w: int) -> tuple[np.ndarray, np.ndarray]:
    """A floor that runs away from the viewer under a sky: farther is higher up, and there the grain is finer."""
    rng = np.random.default_rng(seed)
    rows = np.linspace(0, 1, h)[:, None] + 0.02 * rng.normal(size=(h, w))
    distances = 4 + 60 * (1 - rows) ** 2
    image = 90 + 100 * (1 - rows[..., None]) + 20 * rng.normal(size=(h, w, 3)) * rows[..., None]
    return np.clip(image, 0, 255).astype(np.uint8), np.clip(distances, 1, None)


def write_pairs(folder, names, h=110, w=122):
    for i, name in enumerate(names):
        image, distances = scene(i, h, w)
        Image.fromarray(image).save(folder / f"{name}.color.jpg")
        readings = (distances * 256).astype(np.uint16)
        readings[: h // 4] = 0  # no reading of the sky
        Image.fromarray(readings).save(folder / f"{name}.depth.png")
    return folder


@pytest.fixture(scope="module")
def kitti(tmp_path_factory):
    names = [*(f"drive_{i:04d}" for i in range(4)), "alley_000001", "bridge_000002"]
    return write_pairs(tmp_path_factory.mktemp("kitti"), names)


def test_regions_beyond_the_reach_tie_and_those_without_a_reading_stay_unranked():
    ranks = depth_ranks(np.array([7.0, 81.0, np.nan, 2.0, 500.0, 7.0]))
    np.testing.assert_array_equal(ranks, [1, 3, np.nan, 0, 3, 1])
    np.testing.assert_array_equal(depth_ranks(np.array([81.0, 500.0]), farthest=np.inf), [0, 1])


def test_a_photograph_is_a_set_of_its_regions(kitti):
    photographs = find_photographs(kitti)
    found = make_depth_sets(photographs[:2])
    assert len(found.sets) == 2
    assert found.sets.sizes.tolist() == [3355, 3355]
    targets = found.sets.targets.reshape(2, 55, 61)
    assert np.isnan(targets[:, :13]).all()  # the sky
    below = targets[:, 20:]
    assert (
        np.nanmean(below[:, -1], axis=-1) < np.nanmean(below[:, 0], axis=-1)
    ).all()  # the bottom is nearest
    cut = make_depth_sets(photographs[:1], regions="superpixels").sets
    assert 200 < cut.sizes[0] < 2000


def test_what_was_computed_is_kept_by_content(kitti, tmp_path, monkeypatch):
    photographs = find_photographs(kitti)[:2]
    first = make_depth_sets(photographs, cache=tmp_path / "cues")
    assert len(list((tmp_path / "cues").iterdir())) == 2
    monkeypatch.setattr(depth, "_describe", lambda *_: pytest.fail("it was computed again"))
    renamed = [Photograph("x", "y", None, p.image, p.depth, p.kind) for p in photographs]
    again = make_depth_sets(renamed, cache=tmp_path / "cues")
    np.testing.assert_array_equal(again.sets.objects, first.sets.objects)
    np.testing.assert_array_equal(again.sets.targets, first.sets.targets)


def test_a_damaged_cache_is_made_anew(kitti, tmp_path):
    photographs = find_photographs(kitti)[:1]
    first = make_depth_sets(photographs, cache=tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:100])
    again = make_depth_sets(photographs, cache=tmp_path)
    np.testing.assert_array_equal(again.sets.objects, first.sets.objects)


def test_several_processes_give_the_same(kitti):
    photographs = find_photographs(kitti)[:3]
    one, two = make_depth_sets(photographs), make_depth_sets(photographs, workers=2)
    np.testing.assert_array_equal(one.sets.objects, two.sets.objects)


def test_a_photograph_in_which_nothing_can_be_ranked_is_an_error(tmp_path):
    write_pairs(tmp_path, ["a_1"])
    Image.fromarray(np.zeros((110, 122), dtype=np.uint16)).save(tmp_path / "a_1.depth.png")
    with pytest.raises(DataError, match=r"a_1.depth.png.*Leave this photograph out"):
        make_depth_sets(find_photographs(tmp_path))


def test_wrong_arguments_are_named(kitti, tmp_path):
    photographs = find_photographs(kitti)[:1]
    with pytest.raises(ParameterError, match="superpixels"):
        make_depth_sets(photographs, regions="superpixel")
    with pytest.raises(DataError, match="at least one"):
        make_depth_sets([])
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="can't be a folder"):
        make_depth_sets(photographs, cache=tmp_path / "file")


def test_the_built_in_photograph_is_a_set():
    found = make_depth_sets([load_motorcycle()], farthest=np.inf)
    assert found.sets.sizes[0] == 3355
    assert np.isnan(found.sets.targets).mean() < 0.2


# --- table 2 ------------------------------------------------------------------------------------


def photo(name: str, group: str, kind: str, split: str | None = None) -> Photograph:
    from pathlib import Path

    return Photograph(name, group, split, Path(name), Path(name), kind)


def test_the_largest_drive_is_held_out_and_then_the_rest():
    photographs = [photo(n, g, "metres") for n, g in [("a", "d"), ("b", "d"), ("c", "e"), ("d", "f")]]
    drive, scenes = splits_of(photographs, 5)
    assert (drive.train, drive.test) == ((2, 3), (0, 1))
    assert (scenes.train, scenes.test) == ((0, 1), (2, 3))


def test_every_scene_is_left_out_once():
    photographs = [photo(str(i), f"scene {i // 2}", "disparity") for i in range(14)]
    splits = splits_of(photographs, 5)
    assert sorted(i for split in splits for i in split.test) == list(range(14))
    for split in splits:
        assert not {photographs[i].group for i in split.train} & {photographs[i].group for i in split.test}


def test_make3d_is_parted_as_it_is_distributed():
    photographs = [photo("a", "x", "make3d", "train"), photo("b", "x", "make3d", "test")]
    (split,) = splits_of(photographs, 5)
    assert (split.train, split.test) == ((0,), (1,))
    with pytest.raises(DataError, match="Keep the folders of the archives"):
        splits_of(photographs[:1], 5)


def test_photographs_of_one_drive_can_not_be_parted():
    with pytest.raises(DataError, match="at least two are needed"):
        splits_of([photo("a", "x", "metres"), photo("b", "x", "metres")], 5)


@pytest.fixture
def short(monkeypatch):
    """Nets that learn for a moment."""
    from entourage.experiments import table2

    claims = table2.read_claims("table2")
    claims["modes"]["quick"] |= {"most_steps": 3}
    monkeypatch.setattr(table2, "read_claims", lambda name: claims)


def run(*arguments):
    return CliRunner().invoke(app, ["reproduce", "table2", *map(str, arguments)])


def test_table2_runs_on_photographs_in_metres_and_goes_on(kitti, tmp_path, short):
    wanted = ["--model", "ERR", "--model", "FATE-Net", "--device", "cpu", "--out", tmp_path / "out"]
    result = run("--data", kitti, *wanted)
    assert result.exit_code == 0, result.output
    text = (tmp_path / "out" / "table2.md").read_text()
    assert "drive held out" in text
    assert "Trained on 2 photographs; evaluated on 4" in text
    assert "paper" not in text
    assert (tmp_path / "out" / "report.html").stat().st_size > 10_000
    assert (tmp_path / "out" / "drive-held-out-middle.png").exists()
    rows = (tmp_path / "out" / "rows.jsonl").read_text()
    assert run("--data", kitti, *wanted).exit_code == 0
    assert (tmp_path / "out" / "rows.jsonl").read_text() == rows, "nothing is run twice"


def test_table2_shows_the_published_figures_beside_make3d(tmp_path, short):
    for i, (name, folder) in enumerate(
        [("a-p-1t0", "Train400"), ("b-p-2t0", "Train400"), ("c-p-3t0", "Test134")]
    ):
        image, distances = scene(i, 142, 107)
        grid = np.zeros((55, 305, 4))
        rows = np.linspace(0, 141, 55).astype(int)
        columns = np.linspace(0, 106, 305).astype(int)
        grid[:, :, 3] = distances[rows][:, columns]
        for kind in ("Img", "Depth"):
            (tmp_path / "data" / f"{folder}{kind}").mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(tmp_path / "data" / f"{folder}Img" / f"img-{name}.jpg")
        savemat(tmp_path / "data" / f"{folder}Depth" / f"depth_sph_corr-{name}.mat", {"Position3DGrid": grid})
    result = run("--data", tmp_path / "data", "--model", "ERR", "--device", "cpu", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    text = (tmp_path / "out" / "table2.md").read_text()
    assert "0.659" in text
    assert "0.792" in text


def test_table2_chooses_settings_within_the_training_photographs(kitti, tmp_path, short):
    result = run(
        "--data", kitti, "--tune", "--trials", 2, "--model", "ERR", "--task", "scenes held out",
        "--device", "cpu", "--out", tmp_path / "out",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    (row,) = map(json.loads, (tmp_path / "out" / "rows.jsonl").read_text().splitlines())
    assert row["trials"] == 2
    assert 0.5 < row["inner_score"] <= 1
    assert set(row["photographs"]) == {"alley_000001", "bridge_000002"}


def test_table2_without_photographs_says_what_it_needs(tmp_path):
    result = run("--out", tmp_path / "out")
    assert result.exit_code != 0
    assert isinstance(result.exception, UserError)
    assert "--data" in str(result.exception)
