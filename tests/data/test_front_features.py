"""Features of points of a front, and estimates by rays that converge; symmetries."""

import numpy as np
import pytest

from entourage.data import (
    Sets,
    bounded_contributions,
    exact_contributions,
    front_features,
    make_fronts,
    ray_contributions,
)
from entourage.errors import ParameterError

pytest.importorskip("numba", reason="fronts need numba, of the extra [hypervolume]")


@pytest.fixture(scope="module", params=[2, 3, 5])
def made(request):
    return make_fronts(12, request.param, random_state=request.param, sizes=(1, 30), population=1000)


def features_of(sets, **settings):
    return front_features(sets, **settings).objects[:, sets.n_features :]


def test_features_are_logarithms_of_bounds_and_estimate(made):
    points = made.sets.to_list()[3]
    known = bounded_contributions(points, tolerance=1.0)
    expected = np.log([known.lower, known.estimate, known.upper])
    found = made.sets.unpack(features_of(made.sets, tolerance=1.0))[3]
    np.testing.assert_allclose(found.T, [*expected, known.crowding], rtol=1e-6)


def test_features_follow_their_objects_when_shuffled(made):
    rng = np.random.default_rng(0)
    orders = [rng.permutation(size) for size in made.sets.sizes]
    shuffled = Sets.from_list(
        [points[order] for points, order in zip(made.sets.to_list(), orders, strict=True)]
    )
    expected = [
        features[order]
        for features, order in zip(made.sets.unpack(features_of(made.sets)), orders, strict=True)
    ]
    np.testing.assert_allclose(features_of(shuffled), np.concatenate(expected), rtol=1e-5, atol=1e-5)


def test_objectives_may_be_permuted(made):
    turned = Sets(np.roll(made.sets.objects, 1, axis=1), made.sets.offsets)
    np.testing.assert_allclose(features_of(turned), features_of(made.sets), rtol=1e-5, atol=1e-5)


def test_sets_know_nothing_of_each_other(made):
    together = features_of(made.sets)
    apart = np.concatenate([features_of(made.sets[i : i + 1]) for i in range(len(made.sets))])
    np.testing.assert_array_equal(together, apart)


def test_features_are_finite_for_duplicates_dominated_points_and_points_at_the_reference():
    points = np.array([[0.5, 0.5], [0.5, 0.5], [0.25, 0.25], [1.0, 0.0], [1.0, 1.0]])
    sets = Sets.of(points[None])
    found = front_features(sets)
    assert found.n_features == 2 + 4
    assert np.isfinite(found.objects).all()
    estimates = ray_contributions(sets, rays=512)
    np.testing.assert_allclose(estimates, exact_contributions(points), atol=0.01)


def test_rays_come_closer_to_exact_contributions_the_more_there_are(made):
    errors = [
        np.abs(ray_contributions(made.sets, rays=rays) / made.contributions - 1) for rays in (16, 256, 8192)
    ]
    medians = [np.median(error) for error in errors]
    if made.sets.n_features == 2:  # what is left is a box: every number of rays finds it
        assert errors[0].max() < 1e-6
    else:
        assert medians[0] > medians[1] > medians[2]
    assert medians[2] < 0.01
    assert errors[2].mean() < 0.03


def test_rays_of_one_point_alone_see_its_whole_box():
    sets = Sets.of([[[0.5, 0.25, 0.0]]])
    np.testing.assert_allclose(ray_contributions(sets, rays=3), [0.5 * 0.75 * 1.0])


def test_another_reference_scales():
    points = np.array([[[0.0, 1.0], [1.0, 0.0]]])
    np.testing.assert_allclose(
        ray_contributions(Sets.of(points), rays=100, reference=2.0),
        4 * ray_contributions(Sets.of(points / 2), rays=100),
        rtol=1e-6,
    )
    moved = features_of(Sets.of(points), reference=2.0) - features_of(Sets.of(points / 2))
    np.testing.assert_allclose(moved, np.log([[4, 4, 4, 1]] * 2), atol=1e-5)


def test_no_rays_are_refused():
    with pytest.raises(ParameterError, match="rays"):
        ray_contributions(Sets.of([[[0.5, 0.5]]]), rays=0)
