"""What a net sees of sets: one view for arrays, ragged sets, sets on disk and files; rare and huge values tamed."""

import numpy as np
import pytest
import torch

from entourage import FATE, ContextFree, DiscreteChooser, Ranker, load
from entourage.data import Sets
from entourage.data.relative import Relative
from entourage.errors import ParameterError
from entourage.training.view import SCALINGS, Piecewise, View

RNG = np.random.default_rng(0)
PARTS = [RNG.normal(size=(m, 3)) * [1.0, 1.0, 0.0] + [0, 0, 5] for m in RNG.integers(1, 6, size=80)]
for part in PARTS:
    part[:, 1] = np.exp(3 * part[:, 1])
RAGGED = Sets.of(PARTS)
QUICK = {"steps": 20, "batch_size": 8, "random_state": 0, "device": "cpu"}


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("relative", [None, Relative((1, 0))])
def test_each_set_is_seen_by_itself_and_in_a_batch_as_alone(scaling, relative):
    view = View.fit(RAGGED, scaling, relative=relative)
    seen = view(RAGGED)
    assert seen.objects.dtype == np.float32
    assert np.isfinite(seen.objects).all()
    assert seen.n_features == view.n_inputs
    alone = np.concatenate([view(Sets.of([part])).objects for part in PARTS])
    np.testing.assert_array_equal(seen.objects, alone)
    width = max(map(len, PARTS))
    padded = torch.full((len(PARTS), width, 3), 99.0, dtype=torch.float64)
    mask = torch.zeros(len(PARTS), width, dtype=torch.bool)
    for i, part in enumerate(PARTS):
        padded[i, : len(part)], mask[i, : len(part)] = torch.from_numpy(part), True
    np.testing.assert_array_equal(view.on_batch(padded, mask)[mask].numpy(), seen.objects)


def test_a_set_of_one_has_a_neutral_standing_and_a_constant_column_is_0():
    view = View.fit(RAGGED, relative=Relative((0, 2), ("centred", "z-score", "gap to largest")))
    one = view(Sets.of([[[0.3, 2.0, 7.0]]])).objects[0]
    neutral = -view.standardise.means[0][3:6] / view.standardise.scales[0][3:6]
    np.testing.assert_allclose(one[3:6], neutral.astype(np.float32))
    assert one[2] == 0
    assert (one[6:] == 0).all(), "nor does it stand anywhere"


def test_codes_are_never_mapped_or_scaled():
    codes = np.where(np.arange(200) % 50 == 0, 900.0, np.arange(200) % 3)  # as numbers, with heavy tails
    objects = np.stack([np.exp(3 * RNG.normal(size=200)), codes], axis=1)
    sets = Sets(objects, np.arange(0, 201, 4))
    for scaling in SCALINGS:
        seen = View.fit(sets, scaling, [(1, 900)])(sets)
        np.testing.assert_array_equal(seen.objects[:, 1], codes)


def test_one_stray_cell_leaves_the_other_objects_as_they_were():
    stray = [part.copy() for part in PARTS]
    stray[5][0, 0] = 1e12
    first, second = View.fit(RAGGED, "quantiles")(RAGGED), View.fit(Sets.of(stray))(Sets.of(stray))
    others = np.arange(len(first.objects)) != RAGGED.offsets[5]
    assert np.abs(first.objects - second.objects)[others].max() < 0.5
    assert np.abs(second.objects).max() < 20


def test_a_rare_level_is_not_huge_and_a_common_one_has_variance_1():
    objects = np.zeros((1000, 2))
    objects[0, 0] = objects[::2, 1] = 1.0
    seen = View.fit(Sets(objects, np.arange(0, 1001, 4)))(Sets(objects, np.arange(0, 1001, 4)))
    assert np.ptp(seen.objects[:, 0]) == pytest.approx(5.0)
    assert seen.objects[:, 1].std() == pytest.approx(1.0)


def test_sets_of_weight_0_shape_nothing():
    weights = (np.arange(80) % 2).astype(float)
    left = RAGGED[np.flatnonzero(weights)]
    for scaling in (True, "quantiles", "moments"):
        first = View.fit(RAGGED, scaling, relative=Relative((0, 1)), weights=weights)(left)
        second = View.fit(left, scaling, relative=Relative((0, 1)))(left)
        np.testing.assert_allclose(first.objects, second.objects, rtol=1e-5, atol=1e-6)


def test_situations_with_heavy_tails_are_mapped_too():
    situation = np.exp(5 * RNG.normal(size=(80, 1)))
    view = View.fit(Sets.of(PARTS, None, situation))
    seen = view(Sets.of(PARTS, None, situation)).situation
    assert np.abs(seen).max() < 5 < np.abs(situation).max()
    assert (np.argsort(seen[:, 0]) == np.argsort(situation[:, 0])).all()


def test_a_piecewise_encoding_sums_to_where_a_value_lies():
    values = RNG.normal(size=(100, 1))
    found = Piecewise.fit(values, [0])
    assert found.width <= 12
    order = np.argsort(values[:, 0])
    sums = found.of(values).sum(1)[order]
    assert (np.diff(sums) >= 0).all()
    assert (sums[0], sums[-1]) == (0, found.width)
    assert Piecewise.fit(np.ones((9, 1)), [0]).places == ()


def test_an_unknown_scaling_is_refused():
    X = RNG.normal(size=(30, 3, 2))
    with pytest.raises(ParameterError, match="standardize needs one of.*'quantiles'"):
        Ranker(standardize="quantile", steps=2).fit(X, X[..., 0].argsort(1).argsort(1))


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("rows", [1 << 18, 50])  # taken at a time
def test_a_model_on_disk_equals_one_in_memory_to_the_bit(scaling, rows, tmp_path, monkeypatch):
    monkeypatch.setattr("entourage.training.view._ROWS", rows)
    targets = np.concatenate([part[:, 0].argsort().argsort() for part in PARTS])
    whole = Sets(RAGGED.objects, RAGGED.offsets, targets)
    np.save(tmp_path / "objects.npy", whole.objects)
    stored = Sets.from_disk(np.load(tmp_path / "objects.npy", mmap_mode="c"), whole.offsets, targets, None)
    assert stored.on_disk
    settings = QUICK | {"standardize": scaling, "relative": [0, 1]}
    here, there = (Ranker(ContextFree(width=4), **settings).fit(sets) for sets in (whole, stored))
    np.testing.assert_array_equal(here.view_.standardise.means[0], there.view_.standardise.means[0])
    np.testing.assert_array_equal(here.view_.standardise.scales[0], there.view_.standardise.scales[0])
    np.testing.assert_array_equal(here.predict_scores(whole), there.predict_scores(stored))


@pytest.mark.parametrize("scaling", SCALINGS)
def test_a_loaded_model_sees_the_same(scaling, tmp_path):
    X = np.exp(2 * RNG.normal(size=(40, 4, 3)))
    situation = np.exp(3 * RNG.normal(size=(40, 1)))
    model = DiscreteChooser(FATE(width=4), standardize=scaling, relative=[2, 0], **QUICK)
    model.fit(X, X[..., 0].argmax(1), situation=situation).save(tmp_path / "model")
    scores = model.predict_scores(X, situation=situation)
    np.testing.assert_array_equal(load(tmp_path / "model").predict_scores(X, situation=situation), scores)


def test_levels_that_come_later_are_learnt_by_partial_fit() -> None:
    from entourage import ContextFree, Ranker

    codes = np.tile([1.0, 2.0], (40, 1))[:, :, None]  # then 3 and 4, which the first pass has not seen
    model = Ranker(ContextFree(width=8), categories=[(0, 4)], learning_rate=0.05, random_state=0)
    model.partial_fit(codes, np.tile([0, 1], (40, 1)))
    for _ in range(30):
        model.partial_fit(codes + 2, np.tile([0, 1], (40, 1)))
    assert model.score(codes + 2, np.tile([0, 1], (40, 1))) == 1.0
