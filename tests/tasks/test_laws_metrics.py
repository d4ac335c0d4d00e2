"""The laws every registered metric obeys."""

from itertools import permutations

import numpy as np
import pytest
import torch
from cases import random_ranking
from hypothesis import given, settings
from hypothesis import strategies as st

from entourage.errors import DataError, ShapeError
from entourage.metrics import METRICS

every_metric = pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS.keys())
seeds = st.integers(0, 10_000)
LOWER_IS_BETTER = {"ranking_loss"}
TIED_SCORES_COUNT_AT_THEIR_WORST = {"reciprocal_rank", "average_precision", "expected_reciprocal_rank"}


def tied_ranking(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    scores, ranks, mask = random_ranking(6, 5, seed)
    return np.round(scores), ranks, mask  # with ties among the scores too


def in_every_order(name: str, ranks: np.ndarray) -> np.ndarray:
    orders = np.array(list(permutations(range(3))), dtype=float)
    return METRICS[name](orders, np.repeat(ranks, 6, axis=0), per_set=True)


@every_metric
@given(seed=seeds)
@settings(max_examples=25, deadline=None)
def test_shuffling_the_objects_changes_nothing(metric, seed):
    scores, ranks, mask = tied_ranking(seed)
    order = np.random.default_rng(seed).permutation(5)
    np.testing.assert_allclose(
        metric(scores[:, order], ranks[:, order], mask[:, order], per_set=True),
        metric(scores, ranks, mask, per_set=True),
    )


@every_metric
@given(seed=seeds)
@settings(max_examples=25, deadline=None)
def test_padding_changes_nothing(metric, seed):
    scores, ranks, mask = tied_ranking(seed)
    wider = [
        np.pad(a, ((0, 0), (0, 2)), constant_values=v)
        for a, v in [(scores, 9.0), (ranks, 0.0), (mask, False)]
    ]
    np.testing.assert_allclose(metric(*wider, per_set=True), metric(scores, ranks, mask, per_set=True))


@every_metric
@given(seed=seeds)
@settings(max_examples=25, deadline=None)
def test_unranked_objects_are_left_out(metric, seed):
    scores, ranks, mask = tied_ranking(seed)
    moved = np.where(np.isnan(ranks), 77.0, scores)
    negative = np.where(np.isnan(ranks), -1.0, ranks)
    expected = metric(scores, ranks, mask, per_set=True)
    np.testing.assert_allclose(metric(moved, ranks, mask, per_set=True), expected)
    np.testing.assert_allclose(metric(scores, negative, mask, per_set=True), expected)


@every_metric
@given(seed=seeds)
@settings(max_examples=25, deadline=None)
def test_only_the_order_of_the_scores_counts(metric, seed):
    scores, ranks, mask = tied_ranking(seed)
    np.testing.assert_allclose(
        metric(scores**3 + 2 * scores - 5, ranks, mask, per_set=True),
        metric(scores, ranks, mask, per_set=True),
    )


@pytest.mark.parametrize("name", sorted(METRICS))
@given(seed=seeds)
@settings(max_examples=25, deadline=None)
def test_the_best_rank_of_a_set_need_not_be_0(name, seed):
    scores, ranks, mask = tied_ranking(seed)
    np.testing.assert_allclose(
        METRICS[name](scores, ranks + 3.0 * np.arange(6)[:, None], mask, per_set=True),
        METRICS[name](scores, ranks, mask, per_set=True),
    )


@every_metric
@given(seed=seeds)
@settings(max_examples=25, deadline=None)
def test_the_true_order_is_worth_the_most_and_its_reverse_the_least(metric, seed):
    scores, ranks, mask = tied_ranking(seed)
    sign = -1 if getattr(metric, "__name__", "ndcg") in LOWER_IS_BETTER else 1
    tied = np.where(np.isnan(ranks), 0, -ranks)
    strict = tied + 1e-3 * np.random.default_rng(seed).random(ranks.shape)
    best = np.maximum(*(sign * metric(truth, ranks, mask, per_set=True) for truth in (tied, strict)))
    worst = np.minimum(*(sign * metric(-truth, ranks, mask, per_set=True) for truth in (tied, strict)))
    for some in (scores, 0 * scores):
        value = sign * metric(some, ranks, mask, per_set=True)
        defined = ~np.isnan(value)
        assert (value[defined] <= best[defined] + 1e-12).all()
        if getattr(metric, "__name__", "ndcg") not in TIED_SCORES_COUNT_AT_THEIR_WORST:
            assert (value[defined] >= worst[defined] - 1e-12).all()


@pytest.mark.parametrize(
    "name", sorted(set(METRICS) - TIED_SCORES_COUNT_AT_THEIR_WORST - {"zero_one_accuracy"})
)
@given(seed=seeds)
@settings(max_examples=25, deadline=None)
def test_tied_scores_count_on_average(name, seed):
    rng = np.random.default_rng(seed)
    ranks = rng.integers(0, 3, size=(1, 3))
    assert METRICS[name](np.zeros((1, 3)), ranks) == pytest.approx(
        in_every_order(name, ranks).mean(), nan_ok=True
    )


@pytest.mark.parametrize("name", ["reciprocal_rank", "expected_reciprocal_rank", "zero_one_accuracy"])
@given(seed=seeds)
@settings(max_examples=25, deadline=None)
def test_tied_scores_count_at_their_worst(name, seed):
    ranks = np.random.default_rng(seed).integers(0, 3, size=(1, 3))
    every_way = in_every_order(name, ranks)
    value = METRICS[name](np.zeros((1, 3)), ranks)
    assert np.isnan(value) if np.isnan(every_way).all() else value <= every_way.min() + 1e-12


@every_metric
@given(seed=seeds)
@settings(max_examples=25, deadline=None)
def test_the_mean_is_over_the_sets_that_have_a_value(metric, seed):
    scores, ranks, mask = tied_ranking(seed)
    values = metric(scores, ranks, mask, per_set=True)
    mean = metric(scores, ranks, mask)
    assert isinstance(mean, float)
    assert mean == pytest.approx(np.nanmean(values) if (~np.isnan(values)).any() else np.nan, nan_ok=True)


@every_metric
def test_numpy_and_torch_give_the_same(metric):
    arrays = tied_ranking(4)
    assert metric(*map(torch.from_numpy, arrays)) == metric(*arrays)
    half = torch.from_numpy(arrays[0]).bfloat16().requires_grad_()
    assert metric(half, *map(torch.from_numpy, arrays[1:])) == metric(*arrays)


@every_metric
def test_double_precision_of_a_tensor_is_kept(metric):
    scores, ranks = np.array([[1.0, 1.0 + 1e-12, 0.5]]), [[1, 0, 2]]
    assert (
        metric(torch.from_numpy(scores), ranks) == metric(scores, ranks) == metric([[1.0, 2.0, 0.5]], ranks)
    )


@every_metric
def test_none_is_not_ranked_and_a_mask_may_be_written_as_0_and_1(metric):
    scores, ranks = [[2.0, 3.0, 1.0, 9.0]], [[0, 1, 2, 3]]
    expected = metric([[2.0, 3.0, 1.0]], [[0, 1, 2]])
    assert metric(scores, [[0, 1, 2, None]]) == expected
    assert metric([[2.0, 3.0, 1.0, None]], ranks, [[1, 1, 1, 0]]) == expected


@every_metric
def test_a_batch_of_one_and_a_set_of_one_work(metric):
    scores, ranks, mask = tied_ranking(4)
    together = metric(scores, ranks, mask, per_set=True)
    alone = [metric(scores[i : i + 1], ranks[i : i + 1], mask[i : i + 1], per_set=True)[0] for i in range(6)]
    np.testing.assert_allclose(together, alone)
    assert np.isnan(metric([[1.0]], [[0]])), "one object alone has no order"


@every_metric
def test_a_set_of_equal_ranks_has_no_value_beside_others_and_with_padding(metric):
    ranks = [[0.0, 1.0, 2.0], [0.0, 0.0, 0.0], [0.0, 0.0, np.nan], [0.0, 0.0, 5.0]]
    mask = np.array([[True, True, True]] * 3 + [[True, True, False]])
    values = metric([[3.0, 1.0, 2.0]] * 4, ranks, mask, per_set=True)
    assert np.isnan(values).tolist() == [False, True, True, True]


@every_metric
def test_a_fully_masked_set_leaves_the_mean_alone(metric):
    scores, ranks, mask = tied_ranking(4)
    mean = metric(scores, ranks, mask)
    more = [np.concatenate([a, a[:1] * 0]) for a in (scores, ranks, mask)]
    assert metric(*more) == pytest.approx(mean)
    assert np.isnan(metric(scores, ranks, np.zeros_like(mask)))


@every_metric
def test_wrong_shapes_and_nan_scores_are_refused(metric):
    with pytest.raises(ShapeError, match="pass scores\\[None\\]"):
        metric([1.0, 2.0], [0, 1])
    with pytest.raises(ShapeError, match="mask needs the shape"):
        metric([[1.0, 2.0]], [[0, 1]], [[True]])
    with pytest.raises(DataError, match="set 0, object 1 is NaN"):
        metric([[1.0, np.nan]], [[0, 1]])


@every_metric
def test_large_sets_give_the_same_in_chunks(metric, monkeypatch):
    scores, ranks, mask = random_ranking(3, 60, 0)
    whole = metric(scores, ranks, mask, per_set=True)
    monkeypatch.setattr("entourage.tasks.ranking_metrics._CHUNK", 500)
    np.testing.assert_allclose(metric(scores, ranks, mask, per_set=True), whole)


@every_metric
def test_infinite_scores_are_the_first_or_the_last_and_nothing_else(metric):
    finite, infinite = [[1.0, -5.0, 0.0, 0.0]], [[1.0, -np.inf, 0.0, 0.0]]
    ranks, mask = [[1, 0, 0, 0]], [[True, True, False, False]]
    assert metric(infinite, ranks, mask) == metric(finite, ranks, mask)
    with pytest.raises(DataError, match="Ranks must be finite"):
        metric(finite, [[np.inf, 0, 1, 2]])


@every_metric
def test_sets_without_any_object_have_no_value(metric):
    assert np.isnan(metric(np.zeros((2, 0)), np.zeros((2, 0))))
