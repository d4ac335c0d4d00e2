"""Table 2 on small photographs of each known form."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

pytest.importorskip("skimage", reason="photographs need the extra [image]")

from depth_scenes import scene, write_kitti
from PIL import Image
from scipy.io import savemat

from entourage.cli.program import app
from entourage.data.photographs.photographs import Photograph
from entourage.errors import DataError, UserError
from entourage.experiments import table2
from entourage.experiments.table2 import splits_of


@pytest.fixture(scope="module")
def kitti(tmp_path_factory):
    return write_kitti(tmp_path_factory.mktemp("kitti"))


def photo(name: str, group: str, kind: str, split: str | None = None) -> Photograph:
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
    claims = table2.read_claims("table2")
    claims["modes"]["quick"] |= {"most_steps": 3}
    monkeypatch.setattr(table2, "read_claims", lambda name: claims)


def run(*arguments):
    return CliRunner().invoke(app, ["reproduce", "table2", *map(str, arguments)])


def test_table2_runs_on_photographs_in_metres_and_goes_on(kitti, tmp_path, short, monkeypatch):
    wanted = [
        "--task", "drive held out", "--model", "ERR", "--model", "FATE-Net",
        "--device", "cpu", "--out", tmp_path / "out",
    ]  # fmt: skip
    result = run("--data", kitti, *wanted)
    assert result.exit_code == 0, result.output
    text = (tmp_path / "out" / "table2.md").read_text()
    assert "drive held out" in text
    assert "Trained on 2 photographs; evaluated on 4" in text
    assert "paper" not in text
    assert (tmp_path / "out" / "report.html").stat().st_size > 10_000
    assert (tmp_path / "out" / "drive-held-out-middle.png").exists()
    rows = (tmp_path / "out" / "rows.jsonl").read_text()
    given = []

    def one_after_the_other(work, photographs, *, workers):
        given.append((len(photographs), workers))
        return map(work, photographs)

    monkeypatch.setattr(table2, "map_in_order", one_after_the_other)
    assert run("--data", kitti, *wanted, "--workers", 2).exit_code == 0
    assert given == [(6, 2)], "photographs are described side by side"
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
