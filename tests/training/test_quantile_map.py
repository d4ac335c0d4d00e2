"""Heavy tails brought to a normal shape: order kept, outliers tamed, huge numbers finite, codes left alone."""

import numpy as np
import pytest

from entourage.training.quantile_map import QuantileMap, is_heavy_tailed

RNG = np.random.default_rng(0)
NORMAL = RNG.normal(size=(500, 1))


def mapped(values, to=None, **settings):
    found = QuantileMap.fit(values, range(values.shape[1]), **settings)
    return found(values if to is None else to)[:, 0]


def test_a_column_and_its_exponential_have_the_same_order_and_nearly_the_same_values():
    plain, skewed = mapped(NORMAL, every=True), mapped(np.exp(3 * NORMAL))
    assert (np.argsort(plain, kind="stable") == np.argsort(skewed, kind="stable")).all()
    assert np.abs(plain - skewed).max() < 0.2


def test_one_stray_cell_changes_hardly_any_other():
    stray = NORMAL.copy()
    stray[7] = 1e12
    found = mapped(stray)
    others = np.arange(500) != 7
    change = np.abs(found - mapped(NORMAL, every=True))[others]
    assert change.max() < 0.4, "the largest is now the second"
    assert np.median(change) < 0.01
    assert np.diff(np.sort(found)[-9:]).min() > 0.02, "the largest are still told apart"
    assert found[7] == found.max() < 5


def test_a_map_increases_also_beyond_the_values_learnt_from():
    values = np.exp(2 * NORMAL)
    beyond = np.array([[-1e9], [-1.0], [0.5], [1e6], [1e12], [1e300]])
    found = mapped(values, beyond)
    assert (np.diff(found) > 0).all()
    assert np.abs(found).max() < 1000


def test_the_largest_numbers_there_are_stay_finite_and_in_order():
    values = np.array([-1.7e308, -1.0, 0.0, 1.0, 2.0, 1.7e308])[:, None]
    found = mapped(values, np.array([[-1.79e308], [-1.7e308], [-1.0], [2.0], [1.7e308], [1.79e308]]))
    assert np.isfinite(found).all()
    assert (np.diff(found) >= 0).all()


def test_values_of_weight_0_shape_nothing():
    values = np.exp(2 * NORMAL)
    more, weights = np.concatenate([values, 1e9 + values]), np.repeat([1.0, 0.0], 500)
    np.testing.assert_array_equal(mapped(more, values, weights=weights), mapped(values))


def test_what_has_no_heavy_tail_or_two_values_is_left_as_it_is():
    indicator = (RNG.random((500, 1)) < 0.01).astype(float)
    values = np.concatenate([NORMAL, np.full((500, 1), 3.0), indicator, RNG.random((500, 1))], axis=1)
    assert QuantileMap.fit(values, range(4)).places == ()
    assert QuantileMap.fit(values, range(4), every=True).places == (0, 3)


@pytest.mark.parametrize(
    ("values", "heavy"),
    [
        (NORMAL, False),
        (RNG.random((500, 1)), False),
        (RNG.standard_cauchy((500, 1)), True),
        (np.exp(NORMAL), True),
        (np.append(NORMAL, 1e3)[:, None], True),
        (1e9 + NORMAL, False),
    ],
)
def test_which_distributions_are_heavy_tailed(values, heavy):
    assert is_heavy_tailed(np.sort(values[:, 0]), np.full(len(values), 1 / len(values))) is heavy
