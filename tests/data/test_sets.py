"""Sets: in, out, apart, together."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entourage.data.batch_plan import plan_batches
from entourage.data.sets import Sets
from entourage.errors import DataError, ParameterError, ShapeError, UserError


def ragged(sizes: list[int], d: int = 2, situation: bool = True) -> Sets:
    rng = np.random.default_rng(sum(sizes))
    return Sets.from_list(
        [rng.normal(size=(size, d)) for size in sizes],
        [rng.permutation(size) for size in sizes],
        rng.normal(size=(len(sizes), 3)) if situation else None,
    )


def same(a: Sets, b: Sets) -> bool:
    return (a.situation is None) == (b.situation is None) and all(
        np.array_equal(np.nan_to_num(getattr(a, name)), np.nan_to_num(getattr(b, name)))
        for name in ("objects", "offsets", "targets", "situation")
        if getattr(a, name) is not None
    )


def test_an_array_comes_back_as_it_went_in():
    X = np.random.default_rng(0).normal(size=(4, 3, 2)).astype(np.float32)
    sets = Sets.of(X, np.arange(12).reshape(4, 3))
    assert np.array_equal(sets.to_array(), X)
    assert sets.to_array().dtype == np.float32
    assert sets.targets.tolist() == list(range(12))
    assert sets.uniform_size == 3


def test_a_ragged_list_comes_back_as_it_went_in():
    parts = [np.ones((3, 2)), np.zeros((1, 2)), np.full((4, 2), 7.0)]
    sets = Sets.of(parts, [[0, 1, 2], [0], [0, np.nan, 1, 1]])
    for before, after in zip(parts, sets.to_list(), strict=True):
        assert np.array_equal(before, after)
    assert sets.sizes.tolist() == [3, 1, 4]
    assert sets.uniform_size is None
    objects, targets, mask = sets.to_padded()
    assert objects.shape == (3, 4, 2)
    assert mask.sum(1).tolist() == [3, 1, 4]
    assert np.isnan(targets[1, 1:]).all()
    assert (objects[~mask] == 0).all()


@given(st.lists(st.integers(1, 6), min_size=1, max_size=12), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_choosing_sets_keeps_what_belongs_together(sizes, random):
    sets = ragged(sizes)
    chosen = [random.randrange(len(sizes)) for _ in range(5)]
    taken = sets[chosen]
    for new, old in enumerate(chosen):
        assert same(taken[new], sets[old])


def test_integers_slices_masks_and_scikit_learns_way_choose_alike():
    sets = ragged([2, 3, 4, 5])
    for key in (slice(1, 3), np.array([False, True, True, False]), [1, 2], (np.array([1, 2]), ...)):
        assert same(sets[key], Sets.concatenate([sets[1], sets[2]]))
    assert same(sets[-1], sets[3])
    assert same(sets[::-1], sets[[3, 2, 1, 0]])
    assert [len(one.objects) for one in sets] == [2, 3, 4, 5]
    with pytest.raises(IndexError, match="There are 4 sets"):
        sets[4]


def test_a_split_parts_the_sets_and_loses_none():
    sets = ragged([2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
    train, test = sets.split(0.3, random_state=0)
    assert len(test) == 3
    assert sorted([*train.sizes, *test.sizes]) == list(range(2, 12))
    again = sets.split(0.3, random_state=0)
    assert same(train, again[0])
    assert same(test, again[1])


def test_subsets_are_drawn_evenly_without_replacement():
    sets = Sets.from_array(np.arange(6.0).reshape(1, 6, 1), [[0, 1, 2, 3, 4, 5]], [[9.0]])
    drawn = sets.sample_subsets(3, random_state=0, per_set=20_000)
    assert drawn.uniform_size == 3
    assert len(drawn.situation) == 20_000
    values = drawn.to_array()[..., 0]
    assert (np.diff(values, axis=1) > 0).all(), "no object twice, order kept"
    assert np.array_equal(values.reshape(-1), drawn.targets), "targets stay with their objects"
    share = np.bincount(values.reshape(-1).astype(int)) / 20_000
    np.testing.assert_allclose(share, 0.5, atol=0.02)
    codes, counts = np.unique(values @ [36, 6, 1], return_counts=True)
    assert len(codes) == 20, "all 20 sub-sets of 3 in 6"
    np.testing.assert_allclose(counts / 20_000, 1 / 20, atol=0.01)


def test_small_sets_are_taken_whole():
    drawn = ragged([2, 9]).sample_subsets(5, random_state=0)
    assert drawn.sizes.tolist() == [2, 5]


@given(st.lists(st.integers(1, 30), min_size=1, max_size=60), st.integers(1, 8), st.integers(10, 60))
@settings(max_examples=40, deadline=None)
def test_batches_hold_every_set_once_and_keep_their_limits(sizes, batch_size, max_objects):
    sizes = np.array(sizes)
    for rng in (None, np.random.default_rng(0)):
        plan = plan_batches(sizes, batch_size, max_objects=max_objects, rng=rng)
        assert sorted(np.concatenate(plan).tolist()) == list(range(len(sizes)))
        for batch in plan:
            assert len(batch) <= batch_size
            assert len(batch) == 1 or len(batch) * sizes[batch].max() <= max_objects
    assert len(plan) == len(plan_batches(sizes, batch_size, max_objects=max_objects))


def test_batches_are_of_about_one_size():
    sets = ragged([2, 9] * 10)
    spread = [int(np.ptp(batch.sizes)) for batch in sets.batches(5, random_state=1)]
    assert spread == [0, 0, 0, 0]


def test_a_million_sets_of_five_cost_no_python_loop():
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += 1

    n = 1_000_000
    X = np.zeros((n, 5, 2), dtype=np.float32)
    ranks = np.tile(np.arange(5), (n, 1))
    sys.setprofile(count)
    try:
        sets = Sets.of(X, ranks)
        parts = sets.split(0.1, random_state=0)
        parts[1][::2].sample_subsets(3, random_state=0).to_padded()
        plan_batches(sets.sizes, 1000, rng=np.random.default_rng(0))
    finally:
        sys.setprofile(None)
    assert calls < 20_000, "far fewer Python calls than sets"


def test_new_targets_come_packed_padded_or_ragged():
    sets = ragged([2, 3])
    for targets in (np.arange(5.0), [[0, 1], [2, 3, 4]]):
        assert sets.with_targets(targets).targets.tolist() == [0, 1, 2, 3, 4]
    uniform = Sets.of(np.zeros((2, 2, 1)))
    assert uniform.with_targets(np.array([[0, 1], [1, 0]])).targets.tolist() == [0, 1, 1, 0]


class Table(np.ndarray):
    """Stands for a data frame: something with columns."""

    columns = ("a", "b")


def test_tensors_object_arrays_and_late_situations_are_taken():
    import torch

    for tensor in (torch.ones(2, 3, 1, requires_grad=True), torch.ones(2, 3, 1, dtype=torch.bfloat16)):
        assert same(Sets.of(tensor, torch.zeros(2, 3)), Sets.of(np.ones((2, 3, 1)), np.zeros((2, 3))))
    parts = np.empty(2, dtype=object)
    parts[:] = [np.ones((2, 1)), np.ones((3, 1))]
    assert Sets.of(parts).sizes.tolist() == [2, 3]
    late = Sets.of(ragged([2, 3], situation=False), situation=[[1.0], [2.0]])
    assert late.situation.tolist() == [[1.0], [2.0]]


def test_values_can_be_padded_for_the_metrics():
    sets = ragged([2, 3])
    padded = sets.pad(np.arange(5.0))
    np.testing.assert_array_equal(padded, [[0, 1, np.nan], [2, 3, 4]])


WRONG = [
    (lambda: Sets.of(np.zeros((3, 2))), ShapeError, "For a single set, pass X\\[None\\]"),
    (lambda: Sets.of(np.zeros((0, 5, 2))), DataError, "no objects"),
    (lambda: Sets.of(np.zeros((2, 5, 0))), ShapeError, "at least one feature"),
    (lambda: Sets.of([]), DataError, "empty list"),
    (lambda: Sets.of(7), ShapeError, "list of \\(objects, features\\)"),
    (lambda: Sets.of([np.zeros((3, 2)), np.zeros((3, 1))]), ShapeError, "set 1 has shape \\(3, 1\\)"),
    (lambda: Sets.of([np.zeros((3, 2)), np.zeros((0, 2))]), DataError, "Set 1 holds no object"),
    (
        lambda: Sets.of(np.zeros((2, 3, 1)), np.zeros((2, 2))),
        ShapeError,
        "per object, \\(2, 3\\); got shape",
    ),
    (lambda: Sets.of([np.zeros((3, 2))], [[0, 1]]), ShapeError, "Set 0 has 3 objects but 2 targets"),
    (lambda: Sets.of([np.zeros((3, 2))], [[0, 1, 2], [0]]), ShapeError, "1 sets came with the targets of 2"),
    (lambda: Sets.of(np.full((2, 2, 2), np.nan)), DataError, "set 0, object 0, feature 0 is nan"),
    (lambda: Sets.of(np.array([[["a"]]])), DataError, "Encode text"),
    (lambda: Sets.of(np.zeros((2, 2, 1)), situation=np.zeros((3, 1))), ShapeError, "2 sets, but 3 rows"),
    (lambda: Sets.of(np.zeros((2, 2, 1)), situation=[[np.inf], [0]]), DataError, "set 0, feature 0 is inf"),
    (lambda: Sets.of(ragged([2]), situation=[[1.0]]), ParameterError, "carry their own"),
    (
        lambda: ragged([2, 3]).with_targets([[0, 1, 2], [0, 1]]),
        ShapeError,
        "Set 0 has 2 objects but 3 targets",
    ),
    (lambda: ragged([2, 2]).with_targets(np.zeros((2, 3))), ShapeError, "one entry per object"),
    (lambda: Sets.of(np.zeros((2, 2, 1)), 3), ShapeError, "a row for each of 2 sets; got 3"),
    (lambda: Sets.of(np.zeros((2, 2, 1)), [[0, 1], [0]]), ShapeError, "Set 1 has 2 objects but 1 targets"),
    (lambda: Sets.of(np.zeros((1, 2, 1)), [["a", "b"]]), DataError, "Targets need numbers"),
    (lambda: Sets.of(np.zeros((1, 2, 1), dtype=complex)), DataError, "real numbers"),
    (lambda: Sets.of(np.zeros((3, 2)).view(Table)), ShapeError, "Sets.from_frame"),
    (lambda: Sets(np.zeros((5, 1)), [0, 2.5, 5]), ShapeError, "whole numbers"),
    (lambda: Sets.concatenate([]), DataError, "nothing to join"),
    (lambda: Sets(np.zeros((3, 1)), [0, 2]), ShapeError, "run from 0 to 2"),
    (lambda: ragged([2]).split(0.5), DataError, "at least 2 sets"),
    (lambda: ragged([2, 3]).to_array(), ShapeError, "to_list"),
    (lambda: ragged([2, 3])[[]], DataError, "leaves no set"),
    (lambda: ragged([2, 3]).sample_subsets(0), ParameterError, "at least 1"),
    (lambda: Sets.concatenate([ragged([2]), ragged([2], situation=False)]), ShapeError, "same features"),
]


@pytest.mark.parametrize(("wrong", "error", "message"), WRONG)
def test_bad_input_says_what_is_needed(wrong, error, message):
    with pytest.raises(error, match=message) as caught:
        wrong()
    assert isinstance(caught.value, UserError)
