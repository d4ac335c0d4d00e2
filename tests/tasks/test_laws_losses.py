"""The laws every registered loss obeys."""

import numpy as np
import pytest
import torch
from cases import random_ranking
from hypothesis import given, settings
from hypothesis import strategies as st

from entourage.losses import LOSSES

every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
seeds = st.integers(0, 10_000)


def ranking(seed: int, n: int = 4, m: int = 5) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return tuple(torch.from_numpy(array) for array in random_ranking(n, m, seed))


@every_loss
@given(seed=seeds)
@settings(max_examples=25, deadline=None)
def test_shuffling_the_objects_changes_nothing(loss, seed):
    scores, ranks, mask = ranking(seed)
    order = torch.from_numpy(np.random.default_rng(seed).permutation(5))
    torch.testing.assert_close(
        loss(scores[:, order], ranks[:, order], mask[:, order]), loss(scores, ranks, mask)
    )


@every_loss
@given(seed=seeds)
@settings(max_examples=25, deadline=None)
def test_padding_changes_nothing(loss, seed):
    scores, ranks, mask = ranking(seed)
    padding = torch.full((4, 2), 50.0, dtype=torch.float64)
    none = torch.zeros(4, 2, dtype=torch.bool)
    for pad_rank in (0.0, torch.nan):
        wider = loss(
            torch.cat([scores, padding], 1),
            torch.cat([ranks, torch.full_like(padding, pad_rank)], 1),
            torch.cat([mask, none], 1),
        )
        torch.testing.assert_close(wider, loss(scores, ranks, mask))


@every_loss
@given(seed=seeds)
@settings(max_examples=25, deadline=None)
def test_unranked_objects_take_no_part_whichever_way_they_are_written(loss, seed):
    scores, ranks, mask = ranking(seed)
    unranked = ranks.isnan()
    moved = torch.where(unranked, scores + 7.0, scores)
    torch.testing.assert_close(loss(moved, ranks, mask), loss(scores, ranks, mask))
    torch.testing.assert_close(
        loss(scores, torch.where(unranked, -1.0, ranks), mask), loss(scores, ranks, mask)
    )


@every_loss
@given(seed=seeds)
@settings(max_examples=25, deadline=None)
def test_only_the_order_of_the_ranks_counts(loss, seed):
    scores, ranks, mask = ranking(seed)
    torch.testing.assert_close(loss(scores, 10 * ranks**2 + 3, mask), loss(scores, ranks, mask))


@every_loss
@given(seed=seeds)
@settings(max_examples=25, deadline=None)
def test_adding_a_constant_to_the_scores_changes_nothing(loss, seed):
    scores, ranks, mask = ranking(seed)
    torch.testing.assert_close(loss(scores + 3.0, ranks, mask), loss(scores, ranks, mask))


@every_loss
@given(seed=seeds)
@settings(max_examples=25, deadline=None)
def test_tied_objects_are_interchangeable(loss, seed):
    scores, ranks, mask = ranking(seed)
    ranks[:, 1] = ranks[:, 0]
    mask[:, 1] = mask[:, 0]
    swapped = scores[:, [1, 0, 2, 3, 4]]
    torch.testing.assert_close(loss(swapped, ranks, mask), loss(scores, ranks, mask))


@every_loss
def test_where_no_order_is_known_the_loss_is_0_without_a_gradient(loss):
    for ranks, mask in [
        (torch.zeros(2, 4), torch.ones(2, 4, dtype=torch.bool)),  # all tied
        (torch.full((2, 4), torch.nan), torch.ones(2, 4, dtype=torch.bool)),  # none ranked
        (torch.arange(4.0).repeat(2, 1), torch.zeros(2, 4, dtype=torch.bool)),  # all padding
        (torch.zeros(2, 1), torch.ones(2, 1, dtype=torch.bool)),  # a set of one
    ]:
        scores = torch.randn(ranks.shape, generator=torch.Generator().manual_seed(0)).requires_grad_()
        value = loss(scores, ranks, mask)
        value.sum().backward()
        assert (value == 0).all()
        assert (scores.grad == 0).all()


@every_loss
def test_a_set_without_an_order_has_the_loss_0_beside_others_too(loss):
    scores = torch.tensor([[1.0, 0.0, 2.0]] * 2)
    value = loss(scores, torch.tensor([[0, 1, 2], [1, 1, 1]]), scores > -9)
    assert value[0] > 0
    assert value[1] == 0


@every_loss
def test_one_value_a_set_as_if_each_came_alone(loss):
    scores, ranks, mask = ranking(3)
    alone = torch.cat([loss(scores[i : i + 1], ranks[i : i + 1], mask[i : i + 1]) for i in range(4)])
    torch.testing.assert_close(loss(scores, ranks, mask), alone)


@every_loss
@pytest.mark.parametrize("seed", range(5))
def test_gradients_match_finite_differences(loss, seed):
    scores, ranks, mask = ranking(seed)
    assert torch.autograd.gradcheck(lambda s: loss(s, ranks, mask), scores.requires_grad_())


@every_loss
def test_extreme_scores_stay_finite(loss):
    scores = torch.tensor([[1e4, -1e4, 0.0]], requires_grad=True)
    ranks = torch.tensor([[2, 0, 1]])
    value = loss(scores, ranks, ranks >= 0)
    value.sum().backward()
    assert value.isfinite().all()
    assert scores.grad.isfinite().all()


@every_loss
def test_a_step_down_the_gradient_improves_the_order(loss):
    scores = torch.zeros(1, 5, dtype=torch.float64, requires_grad=True)
    ranks = torch.tensor([[3, 1, 4, 0, 2]])
    loss(scores, ranks, ranks >= 0).sum().backward()
    assert scores.grad.argmin() == 3, "the best object must be pushed up most"
    assert scores.grad.argmax() == 2, "the worst object must be pushed down most"
