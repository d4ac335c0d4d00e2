"""The set-relative view: hand arithmetic, padding, sets of one, unfriendly magnitudes, columns by name."""

import numpy as np
import pyarrow as pa
import pytest

from entourage import ContextFree, Ranker
from entourage.data import Sets
from entourage.data.relative import STANDINGS, Relative, find_places, within_sets
from entourage.errors import DataError, ParameterError


def test_standings_equal_the_formulas_worked_by_hand():
    sets = Sets.of([[[1.0], [3.0], [3.0], [9.0]]])
    mean, deviation = 4.0, np.sqrt((9 + 1 + 1 + 25) / 4)
    expected = [
        [1 - mean, (1 - mean) / deviation, 0.5 / 4, 1 - 9, 0],
        [3 - mean, (3 - mean) / deviation, (1 + 1) / 4, 3 - 9, 2],
        [3 - mean, (3 - mean) / deviation, (1 + 1) / 4, 3 - 9, 2],
        [9 - mean, (9 - mean) / deviation, 3.5 / 4, 0, 8],
    ]
    np.testing.assert_allclose(within_sets(sets.objects, sets, [0]), expected, rtol=1e-14, atol=1e-15)


def test_a_set_of_one_and_a_column_that_does_not_vary_are_neutral():
    sets = Sets.of([[[7.0]], [[5.0], [5.0]]])
    neutral = [0.0, 0.0, 0.5, 0.0, 0.0]
    assert within_sets(sets.objects, sets, [0]).tolist() == [neutral] * 3


def test_each_set_is_seen_by_itself_whatever_sizes_stand_beside_it():
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=(m, 3)) for m in (4, 1, 7, 4, 2)]
    together = Relative((2, 0)).of(Sets.of(parts))
    alone = np.concatenate([Relative((2, 0)).of(Sets.of([part])) for part in parts])
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("offset", [0.0, 1e9])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e150, 1e300])
def test_unfriendly_magnitudes_are_finite_and_scale_free_in_z_and_rank(offset, scale):
    values = np.array([[0.0], [1.0], [3.0]])
    if offset and scale != 1.0:
        pytest.skip("an offset is tried with unit scale")
    sets = Sets.of([values * scale + offset])
    found = within_sets(sets.objects, sets, [0], ["z-score", "rank"])
    assert np.isfinite(within_sets(sets.objects, sets, [0])).all()
    plain = Sets.of([values])
    np.testing.assert_allclose(found, within_sets(plain.objects, plain, [0], ["z-score", "rank"]), rtol=1e-9)


def test_rounding_far_from_0_is_no_standing():
    sets = Sets.of([[[1e9 + 0.1 + 0.2], [1e9 + 0.3]]])
    assert within_sets(sets.objects, sets, [0])[:, 1].tolist() == [0.0, 0.0]


def test_all_numbers_of_a_table_are_its_numeric_columns():
    table = pa.table(
        {"s": [1, 1], "a": [1.0, None], "flag": [True, False], "b": [3, 4], "t": ["x", "y"], "r": [1, 2]}
    )
    sets = Sets.from_frame(table, set_id="s", target="r")
    assert find_places(True, sets) == find_places("all", sets) == (0, 3)
    assert find_places("b", sets) == find_places(["b"], sets) == (3,)
    with pytest.raises(ParameterError, match="no numeric column of the objects; these are 'a', 'b'"):
        find_places(["t"], sets)


def test_wrong_columns_are_refused():
    sets = Sets.of(np.zeros((2, 3, 2)))
    with pytest.raises(ParameterError, match="names a column, but there is no table"):
        find_places("price", sets)
    for wrong in ([2], [-1], [0.5], [True]):
        with pytest.raises(ParameterError, match="from 0 to 1"):
            find_places(wrong, sets)
    with pytest.raises(ParameterError, match="twice"):
        find_places([0, 0], sets)
    with pytest.raises(ParameterError, match="codes of levels"):
        find_places([1], sets, codes=[1])
    with pytest.raises(DataError, match="at least one numeric column"):
        find_places(True, sets, codes=[0, 1])
    with pytest.raises(ParameterError, match="got 0.5"):
        find_places(0.5, sets)  # type: ignore[arg-type]


def test_sets_with_their_standings_have_them_behind_their_features():
    sets = Sets.of(np.random.default_rng(0).normal(size=(3, 4, 2)), situation=np.zeros((3, 1)))
    wider = sets.relative([1])
    assert wider.n_features == 2 + len(STANDINGS)
    assert wider.n_situation_features == 1
    np.testing.assert_array_equal(wider.objects[:, 2:], within_sets(sets.objects, sets, [1]))


def test_a_net_on_standings_given_is_the_net_with_the_option():
    rng = np.random.default_rng(0)
    X, ranks = rng.normal(size=(60, 5, 2)), rng.permuted(np.tile(np.arange(5), (60, 1)), axis=1)
    settings = {"steps": 20, "random_state": 0}
    option = Ranker(ContextFree(width=8), relative=True, **settings).fit(X, ranks)
    given = Ranker(ContextFree(width=8), **settings).fit(Sets.of(X, ranks).relative())
    np.testing.assert_array_equal(
        option.predict_scores(X), given.predict_scores(Sets.of(X).relative()).reshape(60, 5)
    )


def test_a_context_free_net_on_standings_sees_the_set_and_no_object_counts_twice_under_padding(tmp_path):
    from entourage import load

    rng = np.random.default_rng(1)
    X, ranks = rng.normal(size=(80, 4, 2)), rng.permuted(np.tile(np.arange(4), (80, 1)), axis=1)
    model = Ranker(ContextFree(width=8), relative=[0], steps=20, random_state=0).fit(X, ranks)
    assert not np.allclose(model.predict_scores(X)[:, :3], model.predict_scores(X[:, :3]))
    ragged = [X[0], X[1, :1], X[2, :3]]
    alone = [model.predict_scores([one])[0] for one in ragged]
    for together, one in zip(model.predict_scores(ragged), alone, strict=True):
        np.testing.assert_allclose(together, one, rtol=1e-5, atol=1e-6)
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").predict_scores(X), model.predict_scores(X))
