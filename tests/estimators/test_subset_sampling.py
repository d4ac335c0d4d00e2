"""Training on sub-sets drawn afresh, and prediction on whole sets."""

import numpy as np
import pytest
import torch

from entourage import FATE, FETA, ContextFree, Ranker
from entourage.data import make_medoid
from entourage.data.sets import Sets
from entourage.errors import ParameterError
from entourage.training.batches import SubsetResident

CPU = torch.device("cpu")


def numbered(sizes: list[int]) -> Sets:
    """Sets whose objects are told apart by their one feature: set + place / 1000; ranked by place."""
    parts = [i + np.arange(size)[:, None] / 1000 for i, size in enumerate(sizes)]
    return Sets.from_list(parts, [np.arange(size) for size in sizes])


def epoch(data: SubsetResident, batch_size: int = 4, seed: int = 0):
    return [data.batch(chosen) for chosen in data.epoch(batch_size, np.random.default_rng(seed))]


def test_sub_sets_hold_different_objects_of_one_set_with_their_ranks():
    data = SubsetResident(numbered([50] * 9), CPU, subset_sizes=(7, 7))
    batches = epoch(data)
    assert sum(len(b.objects) for b in batches) == 9
    for batch in batches:
        assert batch.objects.shape[1:] == (7, 1)
        assert batch.mask is None
        for objects, ranks in zip(batch.objects[:, :, 0].numpy(), batch.targets.numpy(), strict=True):
            assert len(set(objects)) == 7
            assert len(set(np.floor(objects + 1e-4))) == 1
            np.testing.assert_allclose(1000 * (objects - np.floor(objects + 1e-4)), ranks, atol=0.01)


def test_each_epoch_draws_other_objects_and_the_same_seed_the_same():
    data = SubsetResident(numbered([50] * 4), CPU, subset_sizes=(5, 5))
    first, again, other = epoch(data), epoch(data), epoch(data, seed=1)
    assert torch.equal(first[0].objects, again[0].objects)
    assert not torch.equal(first[0].objects, other[0].objects)


def test_every_object_is_drawn_as_often_as_any_other():
    data = SubsetResident(numbered([10]), CPU, subset_sizes=(3, 3), per_set=6000)
    places = torch.cat([b.targets.flatten() for b in epoch(data, 500)])
    counts = np.bincount(places.long().numpy(), minlength=10)
    assert counts.sum() == 18_000
    assert abs(counts - 1800).max() < 5 * np.sqrt(1800)


def test_sets_with_fewer_objects_come_whole():
    data = SubsetResident(numbered([3, 50]), CPU, subset_sizes=(5, 5))
    batch = epoch(data)[0]
    assert sorted(batch.mask.sum(1).tolist()) == [3, 5]
    small = batch.mask.sum(1).argmin()
    assert sorted(batch.targets[small][batch.mask[small]].tolist()) == [0, 1, 2]
    assert batch.targets[small][~batch.mask[small]].isnan().all()


def test_a_range_of_sizes_is_drawn_from_batch_by_batch():
    data = SubsetResident(numbered([20] * 40), CPU, subset_sizes=(3, 8))
    sizes = {b.objects.shape[1] for b in epoch(data, 1)}
    assert sizes == {3, 4, 5, 6, 7, 8}


def test_situations_and_weights_stay_with_their_sets():
    sets = numbered([9] * 6)
    sets = Sets(sets.objects, sets.offsets, sets.targets, np.arange(6.0)[:, None])
    data = SubsetResident(sets, CPU, np.arange(6.0), subset_sizes=(4, 4), per_set=2)
    for batch in epoch(data):
        assert torch.equal(batch.objects[:, 0, 1], batch.weights)
        assert torch.equal((batch.objects[:, 0, 0] + 1e-4).floor(), batch.weights)


@pytest.mark.parametrize("net", [ContextFree(width=8), FATE(width=8), FETA(width=8)], ids=repr)
def test_all_nets_learn_from_sub_sets_and_score_whole_sets(net):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 200, 2))
    ranks = (-X[:, :, 0]).argsort(1).argsort(1)
    model = Ranker(
        net,
        steps=150,
        learning_rate=0.02,
        validation=0,
        ema=None,
        subset_size=10,
        subsets_per_set=4,
        random_state=0,
    )
    model.fit(X, ranks)
    assert model.score(X, ranks) > 0.95
    assert model.predict(X).shape == (30, 200)


def test_the_same_seed_gives_the_same_model_and_a_saved_one_comes_back(tmp_path):
    X, ranks = make_medoid(n_sets=60, n_objects=12, random_state=0)
    fits = [
        Ranker(FATE(width=8), steps=20, subset_size=(3, 6), random_state=1).fit(X, ranks) for _ in range(2)
    ]
    np.testing.assert_array_equal(fits[0].predict_scores(X), fits[1].predict_scores(X))
    fits[0].save(tmp_path / "model")
    from entourage import load

    np.testing.assert_array_equal(load(tmp_path / "model").predict_scores(X), fits[0].predict_scores(X))
    load(tmp_path / "model").fit(X, ranks)


def test_an_interrupted_run_on_sub_sets_goes_on_to_the_same_end(tmp_path):
    X, ranks = make_medoid(n_sets=60, n_objects=12, random_state=0)
    settings = {"steps": 30, "batch_size": 16, "evaluate_every": 10, "subset_size": 5, "random_state": 1}
    whole = Ranker(FATE(width=8), **settings).fit(X, ranks)

    class StopError(Exception):
        pass

    def stop(score):
        stop.count += 1
        if stop.count == 2:
            raise StopError

    stop.count = 0
    parted = Ranker(FATE(width=8), **settings, checkpoint=tmp_path / "run")
    with pytest.raises(StopError):
        parted.fit(X, ranks, on_evaluation=stop)
    parted.fit(X, ranks)
    np.testing.assert_array_equal(parted.predict_scores(X), whole.predict_scores(X))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"subset_size": 1}, "subset_size"),
        ({"subset_size": (5, 3)}, "subset_size"),
        ({"subset_size": 2.5}, "subset_size"),
        ({"subset_size": (3, 4, 5)}, "subset_size"),
        ({"subset_size": 5, "subsets_per_set": 0}, "subsets_per_set"),
    ],
)
def test_impossible_sub_sets_are_refused(settings, message):
    X, ranks = make_medoid(n_sets=30, random_state=0)
    with pytest.raises(ParameterError, match=message):
        Ranker(FATE(width=8), steps=1, **settings).fit(X, ranks)
