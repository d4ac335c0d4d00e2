"""From photographs to sets of regions, ranked by depth."""

import pickle

import numpy as np
import pytest

pytest.importorskip("skimage", reason="photographs need the extra [image]")

from depth_scenes import write_kitti, write_pairs
from PIL import Image

from entourage.data.photographs import depth
from entourage.data.photographs.depth import depth_ranks, make_depth_sets
from entourage.data.photographs.photographs import Photograph, find_photographs, load_motorcycle
from entourage.errors import DataError, ParameterError, UserError


@pytest.fixture(scope="module")
def kitti(tmp_path_factory):
    return write_kitti(tmp_path_factory.mktemp("kitti"))


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


def test_what_is_mapped_can_be_sent_to_other_processes(kitti):
    photographs = find_photographs(kitti)[:2]

    def sent(work, jobs):
        there = pickle.loads(pickle.dumps(work))  # noqa: S301 - as a pool does
        return pickle.loads(pickle.dumps([there(job) for job in jobs]))  # noqa: S301

    one, two = make_depth_sets(photographs), make_depth_sets(photographs, map_over=sent)
    np.testing.assert_array_equal(one.sets.objects, two.sets.objects)
    np.testing.assert_array_equal(one.sets.targets, two.sets.targets)


def test_a_photograph_in_which_nothing_can_be_ranked_is_an_error(tmp_path):
    write_pairs(tmp_path, ["a_1"])
    Image.fromarray(np.zeros((110, 122), dtype=np.uint16)).save(tmp_path / "a_1.depth.png")
    with pytest.raises(DataError, match=r"a_1.depth.png.*Leave this photograph out"):
        make_depth_sets(find_photographs(tmp_path))


def test_an_error_stops_the_photographs_that_wait(kitti, tmp_path):
    write_pairs(tmp_path, ["a_1"])
    Image.fromarray(np.zeros((110, 122), dtype=np.uint16)).save(tmp_path / "a_1.depth.png")
    photographs = [*find_photographs(tmp_path), *find_photographs(kitti)]
    seen = []

    def one_by_one(work, jobs):
        try:
            for job in jobs:
                seen.append(job.name)
                yield work(job)
        finally:
            seen.append("closed")

    with pytest.raises(DataError, match="Leave this photograph out"):
        make_depth_sets(photographs, map_over=one_by_one)
    assert seen == ["a_1", "closed"]


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
