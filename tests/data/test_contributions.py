"""Bounds and estimates of hypervolume contributions: hand arithmetic, bounds that hold, what a tolerance does."""

import numpy as np
import pytest

from entourage.data import bounded_contributions, exact_contributions, make_fronts
from entourage.data.synthetic.boxes import by_integers, split
from entourage.errors import DataError, ParameterError, ShapeError

pytest.importorskip("numba", reason="fronts need numba, of the extra [hypervolume]")

TOLERANCES = (0.01, 0.3, 10.0)


def awkward(case, d):
    """Return points with what fronts of uniform points never have."""
    points = np.random.default_rng(d).random((15, d))
    if case == "ties":
        return np.round(4 * points) / 4
    if case == "duplicates":
        points[4:8] = points[2]
    elif case == "at the reference":
        points[0], points[1, 0] = 1, 1
    elif case == "beyond the reference":
        points[0], points[1, 0] = 2, 3
    return points


def test_bounds_and_estimate_worked_by_hand():
    """Three others cover a quarter of the unit box of the first each, all of them the same eighth of it."""
    points = np.array([[1.0, 1.0, 1.0], [1.5, 0.0, 1.5], [1.5, 1.5, 0.0], [0.0, 1.5, 1.5]])
    found = bounded_contributions(points, 2.0, tolerance=1.0)
    alone = 1 - 0.25  # outside of one
    given_another = 1 - (0.25 - 0.125) / alone  # outside of one, given outside of another
    assert found.lower[0] == pytest.approx(alone**3)
    assert found.upper[0] == pytest.approx(alone)
    assert found.estimate[0] == pytest.approx(alone * given_another**2)
    assert found.crowding[0] == pytest.approx(np.log(3))
    exact = 1 - (3 * 0.25 - 3 * 0.125 + 0.125)
    assert exact_contributions(points, 2.0)[0] == pytest.approx(exact)
    assert bounded_contributions(points, 2.0, tolerance=0.1).lower[0] == pytest.approx(exact)


def test_the_estimate_is_exact_where_two_others_overlap():
    points = np.array([[1.0, 1.0, 1.0], [1.5, 0.0, 1.5], [1.5, 1.5, 0.0]])
    found = bounded_contributions(points, 2.0, tolerance=10.0)
    assert found.estimate[0] == pytest.approx(1 - (2 * 0.25 - 0.125))
    assert found.lower[0] < found.estimate[0] < found.upper[0]


@pytest.mark.parametrize("d", [2, 3, 5, 10])
def test_bounds_hold_and_are_closer_the_smaller_the_tolerance(d):
    made = make_fronts(15, d, random_state=d, sizes=(1, 40), population=1500)
    gaps, errors = [], []
    for tolerance in TOLERANCES:
        found = [bounded_contributions(points, tolerance=tolerance) for points in made.sets.to_list()]
        lower, estimate, upper = (
            np.concatenate([getattr(one, name) for one in found]) for name in ("lower", "estimate", "upper")
        )
        assert (lower <= made.contributions * (1 + 1e-12)).all()
        assert (made.contributions <= upper * (1 + 1e-12)).all()
        assert ((lower <= estimate) & (estimate <= upper)).all()
        gaps.append(np.log(upper / lower).mean())
        errors.append(np.abs(estimate / made.contributions - 1).mean())
    if d > 2:  # with two objectives hardly a box is left
        assert gaps[0] < gaps[1] < gaps[2]
        assert errors[0] < errors[1] < errors[2]
    assert errors[0] < 0.02


@pytest.mark.parametrize("tolerance", TOLERANCES)
@pytest.mark.parametrize("d", [2, 3, 5])
@pytest.mark.parametrize(
    "case", ["ties", "duplicates", "dominated", "at the reference", "beyond the reference"]
)
def test_bounds_of_awkward_sets_hold(case, d, tolerance):
    points = awkward(case, d)
    truth = exact_contributions(points)
    found = bounded_contributions(points, tolerance=tolerance)
    assert (found.lower <= truth * (1 + 1e-12) + 1e-15).all()
    assert (truth <= found.upper * (1 + 1e-12) + 1e-15).all()
    assert all(np.isfinite(values).all() for values in (found.estimate, found.crowding))


def test_without_tolerance_all_are_exact():
    points = np.random.default_rng(0).random((30, 4))
    found = bounded_contributions(points, tolerance=0)
    truth = exact_contributions(points)
    for values in (found.lower, found.estimate, found.upper):
        np.testing.assert_array_equal(values, truth)
    assert (found.crowding == 0).all()


def test_tiny_contributions_are_bounded_as_precisely():
    """Four neighbours leave a few 2^-24 along each axis, twelve others corners of that."""
    d, rng = 4, np.random.default_rng(0)
    own = rng.integers(2**22, 2**23, d)
    neighbours = own + rng.integers(50, 100, (d + 12, d))
    neighbours[range(d), range(d)] = own - rng.integers(20, 40, d)
    for other in neighbours[d:]:
        axes = rng.permutation(d)[:2]
        other[axes] = own[axes] - rng.integers(5, 15, 2)
    sides = np.vstack([own, neighbours])
    truth = by_integers(sides, 0) / 2 ** (24 * d)
    lower, estimate, upper, _ = split(sides / 2**24, 10.0)[0]
    assert 0 < truth < 1e-20
    assert lower * (1 - 1e-9) <= truth <= upper * (1 + 1e-9)
    assert lower < estimate < upper


def test_one_point_and_none():
    found = bounded_contributions(np.array([[0.5, 0.25, 0.0]]))
    for values in (found.lower, found.estimate, found.upper):
        np.testing.assert_allclose(values, [0.5 * 0.75])
    assert bounded_contributions(np.empty((0, 3))).lower.shape == (0,)


def test_another_reference_scales():
    points = np.random.default_rng(1).random((20, 4))
    one, two = bounded_contributions(points), bounded_contributions(2 * points, 2.0)
    np.testing.assert_allclose(two.estimate, 2**4 * one.estimate)


def test_what_has_no_bounds_is_refused():
    with pytest.raises(ShapeError, match=r"\(points, objectives\); got shape \(2,\)"):
        bounded_contributions(np.zeros(2))
    with pytest.raises(DataError, match="NaN"):
        bounded_contributions(np.array([[0.0, np.nan]]))
    with pytest.raises(ParameterError, match="tolerance needs a number of at least 0"):
        bounded_contributions(np.zeros((2, 2)), tolerance=-1)
