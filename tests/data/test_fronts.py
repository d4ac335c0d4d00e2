"""Fronts of HVC-Net's protocol, and exact contributions by boxes against pygmo and whole numbers."""

import importlib.util

import numpy as np
import pytest
from scipy.stats import chisquare

from entourage.data import exact_contributions, hypervolume_contributions, make_fronts, non_dominated_fronts
from entourage.data.synthetic.boxes import by_boxes, by_integers, compiled, require_compiler
from entourage.errors import DataError, ParameterError, ShapeError, UserError

pytest.importorskip("numba", reason="fronts need numba, of the extra [hypervolume]")

NO_PYGMO = "pygmo has no wheel for this machine; whole numbers are tested"


def front_of(m, d, seed=0):
    """Return points of which none dominates another: on a sphere, within the unit cube."""
    points = np.abs(np.random.default_rng([seed, m, d]).standard_normal((m, d)))
    return (1 - points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)


def by_differences(points):
    """Return the volume with all points less that without each, by pygmo; of points within the unit cube."""
    pygmo = pytest.importorskip("pygmo", reason=NO_PYGMO)
    points = np.asarray(points, dtype=np.float64)
    reference = np.ones(points.shape[1])

    def volume(some):
        inside = [p for p in some if (p < 1).all()]  # the others dominate nothing; pygmo refuses them
        return pygmo.hypervolume(inside).compute(reference) if inside else 0.0

    return [volume(points) - volume(np.delete(points, i, axis=0)) for i in range(len(points))]


# --- contributions ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("d", "m"), [(d, m) for d in (2, 3, 5, 10) for m in (1, 2, 9, 40, 100) if d < 10 or m < 50]
)
def test_contributions_of_fronts_equal_pygmos(d, m):
    pygmo = pytest.importorskip("pygmo", reason=NO_PYGMO)
    points = front_of(m, d)
    expected = pygmo.hypervolume(points.astype(np.float64)).contributions(np.ones(d))
    np.testing.assert_allclose(exact_contributions(points), expected, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("d", [2, 3, 5, 10])
@pytest.mark.parametrize("case", ["duplicates", "ties", "dominated", "at the reference"])
def test_contributions_of_awkward_sets_equal_differences_of_volumes(case, d):
    points = front_of(9, d)
    if case == "duplicates":
        points[4] = points[2]
    elif case == "ties":
        points = np.round(4 * points) / 4
    elif case == "dominated":
        points = np.random.default_rng(d).random((9, d))
    else:
        points[0], points[1, 0] = 1, 1
    found = exact_contributions(points)
    np.testing.assert_allclose(found, by_differences(points), rtol=1e-9, atol=1e-12)
    if case == "duplicates":
        assert found[4] == found[2] == 0
    if case == "at the reference":
        assert found[0] == found[1] == 0


def test_contributions_worked_by_hand():
    points = np.array([[0.5, 0.0], [0.25, 0.25], [0.0, 0.75]])
    expected = [0.5 * (0.25 - 0.0), (0.5 - 0.25) * (0.75 - 0.25), (0.25 - 0.0) * (1 - 0.75)]
    np.testing.assert_allclose(exact_contributions(points), expected, rtol=1e-15)
    np.testing.assert_allclose(exact_contributions(points[:1]), [0.5])
    assert exact_contributions(np.empty((0, 3))).shape == (0,)
    np.testing.assert_allclose(exact_contributions(2 * points, 2.0), 4 * np.array(expected), rtol=1e-15)


@pytest.mark.parametrize("d", [2, 3, 5, 10])
def test_tiny_contributions_are_as_precise_as_large_ones(d):
    """One point reaches a few 2^-24 further than its d neighbours, each along one axis; no more is its own."""
    rng = np.random.default_rng(d)
    own = rng.integers(2**22, 2**23, d)
    steps = rng.integers(1, 6, d)
    neighbours = own + rng.integers(50, 100, (d, d))
    np.fill_diagonal(neighbours, own - steps)
    sides = np.vstack([own, neighbours, own + rng.integers(-100, -50, (3, d))])  # the last are dominated
    whole = [by_integers(sides, i) for i in range(len(sides))]
    assert whole[0] == np.prod(steps)
    assert whole[-3:] == [0, 0, 0]
    expected = [volume / 2 ** (24 * d) for volume in whole]
    np.testing.assert_allclose(by_boxes(sides / 2**24), expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize(("m", "d"), [(30, 2), (30, 3), (25, 5), (12, 10)])
def test_boxes_equal_whole_numbers(m, d):
    sides = np.random.default_rng(d).integers(0, 2**24, (m, d))
    expected = [by_integers(sides, i) / 2 ** (24 * d) for i in range(m)]
    np.testing.assert_allclose(by_boxes(sides / 2**24), expected, rtol=1e-12, atol=0)


def test_the_papers_task_takes_boxes_where_other_ways_take_long():
    points = front_of(40, 5)
    found = hypervolume_contributions(points[None].astype(np.float64) - 1)[0]
    np.testing.assert_allclose(found, exact_contributions(points), rtol=1e-12)


def test_points_that_have_no_contribution_are_refused():
    with pytest.raises(ShapeError, match=r"\(points, objectives\); got shape \(2,\)"):
        exact_contributions(np.zeros(2))
    with pytest.raises(DataError, match="NaN"):
        exact_contributions(np.array([[0.0, np.nan]]))
    with pytest.raises(ParameterError, match="multiples of 2\\^-24"):
        exact_contributions(np.array([[0.1, 0.2]]), check_below=1.0)


def test_what_is_checked_in_whole_numbers_is_what_is_small():
    points = front_of(20, 3)
    grid = np.round(points * 2**24) / 2**24
    np.testing.assert_allclose(
        exact_contributions(grid, check_below=np.inf), exact_contributions(grid), rtol=1e-12
    )


# --- fronts -------------------------------------------------------------------------------------


def test_fronts_are_peeled_one_by_one():
    points = np.random.default_rng(0).random((60, 3))
    points[7] = points[3]  # equals don't dominate each other
    left, expected = list(range(60)), []
    while left:
        best = [
            i
            for i in left
            if not any((points[j] <= points[i]).all() and (points[j] < points[i]).any() for j in left)
        ]
        expected.append(best)
        left = [i for i in left if i not in best]
    assert [front.tolist() for front in non_dominated_fronts(points)] == expected
    assert non_dominated_fronts(np.empty((0, 2))) == []


def test_sets_are_non_dominated_of_all_sizes_and_ranked_by_their_contributions():
    made = make_fronts(60, 3, random_state=1, sizes=(1, 12), population=2000, sets_per_population=20)
    assert made.sets.objects.dtype == np.float32
    assert set(made.sets.sizes) == set(range(1, 13))
    for points, ranks, contributions in zip(
        made.sets.to_list(),
        made.sets.unpack(made.sets.targets),
        made.sets.unpack(made.contributions),
        strict=True,
    ):
        assert len(non_dominated_fronts(points)) == 1
        np.testing.assert_array_equal(contributions, exact_contributions(points))
        assert (np.diff(contributions[np.argsort(ranks)]) <= 0).all()


def test_fronts_are_seeded_to_the_bit_wherever_they_are_made():
    settings = {"sizes": (2, 20), "population": 1000, "sets_per_population": 30}

    def backwards(work, jobs):
        return reversed([work(job) for job in reversed(list(jobs))])

    one, two, other = (
        make_fronts(70, 3, random_state=seed, map_over=where, **settings)
        for seed, where in ((5, map), (5, backwards), (6, map))
    )
    np.testing.assert_array_equal(one.sets.objects, two.sets.objects)
    np.testing.assert_array_equal(one.sets.offsets, two.sets.offsets)
    np.testing.assert_array_equal(one.sets.targets, two.sets.targets)
    np.testing.assert_array_equal(one.contributions, two.contributions)
    assert one.checked == two.checked
    assert one.sets.objects.tobytes() != other.sets.objects.tobytes()
    populations = [points[:, 0] for points in one.sets.to_list()]
    assert not np.isin(np.concatenate(populations[:30]), np.concatenate(populations[30:60])).any()


def test_small_contributions_are_counted_and_computed_again():
    settings = {"random_state": 0, "sizes": (5, 20), "population": 1000}
    checked = make_fronts(10, 3, check_below=1e-4, **settings)
    plain = make_fronts(10, 3, check_below=0, **settings)
    assert checked.checked == (plain.contributions < 1e-4).sum() > 0 == plain.checked
    np.testing.assert_allclose(checked.contributions, plain.contributions, rtol=1e-12)


def test_a_front_is_drawn_with_a_weight_that_falls_linearly_and_the_last_one_never():
    """Of 40 points almost all are drawn in 4,000 draws; from what is drawn the fronts are found again."""
    made = make_fronts(4000, 2, random_state=3, sizes=(1, 1), population=40, sets_per_population=4000)
    points, counts = np.unique(made.sets.objects, axis=0, return_counts=True)
    fronts = non_dominated_fronts(points)
    drawn = np.array([counts[front].sum() for front in fronts])
    weights = np.arange(len(fronts), 0, -1)  # the front after these has weight 0
    assert 25 < len(points) < 40
    assert chisquare(drawn, 4000 * weights / weights.sum()).pvalue > 0.001
    assert chisquare(counts[fronts[0]]).pvalue > 0.001  # points of a front alike


def test_done_sets_are_told():
    told = []
    make_fronts(60, 2, random_state=0, sizes=(1, 3), population=100, on_sets=told.append)
    assert told == [25, 50, 60]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n_features": 1}, ParameterError, "n_features"),
        ({"n_sets": 0}, ParameterError, "n_sets"),
        ({"sizes": (5, 3)}, ParameterError, "the largest size"),
        ({"sizes": (0, 3)}, ParameterError, "the smallest size"),
        (
            {"sizes": (90, 90), "population": 100},
            DataError,
            "No front of 100 points with 3 features holds 90 points",
        ),
    ],
)
def test_what_cannot_be_made_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        make_fronts(**{"n_sets": 2, "random_state": 0} | arguments)


# --- the compiler -------------------------------------------------------------------------------


def test_without_numba_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install 'entourage\[hypervolume\]'"):
        require_compiler()


def test_what_cannot_be_kept_on_disk_is_compiled_for_this_process():
    names = {}
    exec("def twice(x):\n    return 2 * x", names)  # of no file: nothing to write beside
    assert compiled(names["twice"])(3) == 6
