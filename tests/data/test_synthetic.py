"""The medoid and hypervolume tasks, against brute force and pygmo."""

from itertools import product

import numpy as np
import pytest

from entourage.data import make_hypervolume, make_medoid
from entourage.data.synthetic.hypervolume import by_inclusion_exclusion, by_slices, hypervolume_contributions
from entourage.errors import ParameterError


def brute_force_volume(points: np.ndarray) -> float:
    """Volume between the points (no coordinate positive) and the origin: cells of the grid they span."""
    if len(points) == 0:
        return 0.0
    edges = [np.unique(np.concatenate([[0.0], axis])) for axis in points.T]
    total = 0.0
    for cell in product(*(range(len(e) - 1) for e in edges)):
        low = [e[i] for e, i in zip(edges, cell, strict=True)]
        if (points <= low).all(1).any():
            total += np.prod([e[i + 1] - e[i] for e, i in zip(edges, cell, strict=True)])
    return total


def brute_force_contributions(points: np.ndarray) -> list[float]:
    whole = brute_force_volume(points)
    return [whole - brute_force_volume(np.delete(points, i, axis=0)) for i in range(len(points))]


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5])
def test_contributions_equal_brute_force(d):
    rng = np.random.default_rng(d)
    X = -rng.random((20, 4, d))  # some points dominate others
    expected = [brute_force_contributions(points) for points in X]
    np.testing.assert_allclose(hypervolume_contributions(X), expected, atol=1e-12)


@pytest.mark.parametrize("d", [2, 3, 4, 5])
@pytest.mark.parametrize("m", [2, 5, 9])
def test_contributions_equal_pygmos(d, m):
    pygmo = pytest.importorskip("pygmo", reason="pygmo has no wheel for this machine; brute force is tested")
    X, _ = make_hypervolume(n_sets=30, n_objects=m, n_features=d, random_state=d)
    X = X.astype(np.float64)
    expected = [pygmo.hypervolume(points).contributions(np.zeros(d)) for points in X]
    np.testing.assert_allclose(hypervolume_contributions(X), expected, atol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("rounded", [False, True], ids=["distinct", "with ties"])
def test_both_ways_to_contributions_agree(d, rounded):
    sides = np.random.default_rng(d).random((50, 6, d))
    if rounded:
        sides = np.round(sides, 1)
    np.testing.assert_allclose(by_slices(sides), by_inclusion_exclusion(sides), atol=1e-12)


def test_hypervolume_points_lie_on_the_negative_sphere_and_the_largest_contribution_ranks_first():
    X, ranks = make_hypervolume(n_sets=50, n_objects=5, n_features=3, random_state=0)
    assert X.dtype == np.float32
    assert (X <= 0).all()
    np.testing.assert_allclose(np.linalg.norm(X, axis=2), 1, rtol=1e-6)
    best = hypervolume_contributions(X).argmax(1)
    assert (ranks[np.arange(50), best] == 0).all()


@pytest.mark.parametrize(("m", "d"), [(24, 2), (24, 3), (12, 4), (500, 2), (1, 3)])
def test_hypervolume_takes_any_number_of_objects_and_features(m, d):
    X, ranks = make_hypervolume(n_sets=2, n_objects=m, n_features=d, random_state=0)
    assert X.shape == (2, m, d)
    assert (ranks.min(1) == 0).all()


def test_positive_coordinates_are_refused():
    with pytest.raises(ParameterError, match="reference point"):
        hypervolume_contributions(np.ones((1, 2, 2)))


def test_medoid_ranks_by_distance_to_the_point_closest_to_all():
    X, ranks = make_medoid(n_sets=40, n_objects=6, n_features=3, random_state=0)
    assert X.dtype == np.float32
    assert ((X >= 0) & (X <= 1)).all()
    for points, rank in zip(X.astype(np.float64), ranks, strict=True):
        to_all = [np.mean([np.linalg.norm(a - b) for b in points]) for a in points]
        medoid = points[int(np.argmin(to_all))]
        order = np.argsort([np.linalg.norm(medoid - p) for p in points])
        assert rank[order].tolist() == list(range(6))


@pytest.mark.parametrize("make", [make_medoid, make_hypervolume])
def test_the_same_seed_makes_the_same_data_and_touches_no_global_state(make):
    before = np.random.get_state()[1].copy()  # noqa: NPY002 - the global state is what must stay untouched
    a, b, c = make(n_sets=9, random_state=1), make(n_sets=9, random_state=1), make(n_sets=9, random_state=2)
    assert all(np.array_equal(p, q) for p, q in zip(a, b, strict=True))
    assert not np.array_equal(a[0], c[0])
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.parametrize("make", [make_medoid, make_hypervolume])
def test_rankings_are_complete_and_no_set_occurs_twice(make):
    X, ranks = make(n_sets=2000, random_state=0)
    assert (np.sort(ranks, axis=1) == np.arange(5)).all()
    assert len(np.unique(X.reshape(2000, -1), axis=0)) == 2000


@pytest.mark.parametrize("make", [make_medoid, make_hypervolume])
def test_chunks_change_nothing(make, monkeypatch):
    whole = make(n_sets=50, random_state=0)
    monkeypatch.setattr("entourage.data.synthetic.points.CHUNK", 100)
    parts = make(n_sets=50, random_state=0)
    assert all(np.array_equal(a, b) for a, b in zip(whole, parts, strict=True))


def test_brute_force_is_right_about_two_boxes():
    assert brute_force_contributions(np.array([[-3.0, -1.0], [-1.0, -2.0]])) == [2.0, 1.0]
