"""Losses, worked by hand."""

import os
import subprocess
import sys
from functools import partial
from itertools import permutations
from math import exp, log
from pathlib import Path

import jaxtyping
import pytest
import torch

from entourage.errors import ParameterError
from entourage.losses import (
    CHOICE_LOSSES,
    LOSSES,
    choice_loss,
    find_loss,
    hinge_ranking_loss,
    listnet_loss,
    logistic_ranking_loss,
    plackett_luce_loss,
    subset_loss,
)
from entourage.tasks.losses import loss_identity, loss_name

ALL = torch.ones(1, 4, dtype=torch.bool)


def value(loss, scores: list[float], ranks: list[float]) -> float:
    s, r = torch.tensor([scores], dtype=torch.float64), torch.tensor([ranks], dtype=torch.float64)
    return loss(s, r, torch.ones_like(r, dtype=torch.bool)).item()


def test_hinge_equals_the_formula_worked_by_hand():
    # scores 2, 0.5, 0 with ranks 0, 2, 1: pairs (0,1), (0,2), (2,1)
    # 1 + 0.5 - 2 < 0, 1 + 0 - 2 < 0, 1 + 0.5 - 0 = 1.5
    assert value(hinge_ranking_loss, [2.0, 0.5, 0.0], [0, 2, 1]) == pytest.approx(1.5 / 3)


def test_hinge_bounds_the_ranking_loss_from_above():
    # both pairs of (1, 0, 0) in the wrong or a tied order cost at least 1 each
    assert value(hinge_ranking_loss, [0.0, 0.0, 1.0], [0, 1, 2]) == pytest.approx((1.0 + 2.0 + 2.0) / 3)


def test_hinge_with_a_tie_divides_by_the_ordered_pairs():
    # ranks 0, 1, 1: only (0,1) and (0,2) are ordered
    assert value(hinge_ranking_loss, [0.0, 0.5, 3.0], [0, 1, 1]) == pytest.approx((1.5 + 4.0) / 2)


def test_logistic_equals_the_formula_worked_by_hand():
    # pairs (0,1), (0,2), (1,2) with differences 1, 3, 2
    expected = (log(1 + exp(-1)) + log(1 + exp(-3)) + log(1 + exp(-2))) / 3
    assert value(logistic_ranking_loss, [3.0, 2.0, 0.0], [0, 1, 2]) == pytest.approx(expected)


def test_the_mean_over_one_pair_is_that_pair():
    assert value(hinge_ranking_loss, [0.0, 0.5], [0, 1]) == 1.5
    assert value(logistic_ranking_loss, [3.0, 2.0], [0, 1]) == pytest.approx(log(1 + exp(-1)))


def test_plackett_luce_equals_the_formula_worked_by_hand():
    # choose 1 of {1, 0, 2}, then 0 of {0, 2}
    expected = log(exp(1) + exp(2) + exp(0)) - 1 + log(exp(2) + exp(0)) - 2
    assert value(plackett_luce_loss, [2.0, 1.0, 0.0], [1, 0, 2]) == pytest.approx(expected)


def test_plackett_luce_with_ties_compares_with_the_strictly_worse_only():
    # 0 and 1 tie before 2: each is chosen from itself and 2
    expected = log(exp(2) + exp(0)) - 2 + log(exp(1) + exp(0)) - 1
    assert value(plackett_luce_loss, [2.0, 1.0, 0.0], [0, 0, 1]) == pytest.approx(expected)


def test_plackett_luce_of_a_top_1_ranking_is_a_softmax_choice():
    expected = log(exp(2) + exp(1) + exp(0)) - 1
    assert value(plackett_luce_loss, [2.0, 1.0, 0.0], [1, 0, 1]) == pytest.approx(expected)


def test_whole_numbers_as_ranks_keep_their_order_in_double_precision():
    ranks = torch.tensor([[2**24, 2**24 + 1]])  # equal in single precision
    scores = torch.zeros(1, 2, dtype=torch.float64)
    assert plackett_luce_loss(scores, ranks, ranks >= 0).item() == pytest.approx(log(2))


def test_listnet_of_the_top_1_is_the_cross_entropy_of_two_softmaxes():
    truth = [exp(0), exp(-1), exp(-2)]
    scores = [exp(1), exp(0), exp(2)]
    expected = -sum(t / sum(truth) * log(s / sum(scores)) for t, s in zip(truth, scores, strict=True))
    assert value(partial(listnet_loss, k=1), [1.0, 0.0, 2.0], [0, 1, 2]) == pytest.approx(expected)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_listnet_sums_over_all_ordered_choices(k):
    scores, ranks = [1.0, 0.3, 2.0, -0.4], [0, 2, 2, 1]
    places = [0.0, 2.5, 2.5, 1.0]  # the tied ones share places 2 and 3

    def probability(utilities: list[float], chosen: tuple[int, ...]) -> float:
        p, left = 1.0, set(range(4))
        for i in chosen:
            p *= exp(utilities[i]) / sum(exp(utilities[j]) for j in left)
            left.remove(i)
        return p

    expected = -sum(
        probability([-place for place in places], chosen) * log(probability(scores, chosen))
        for chosen in permutations(range(4), k)
    )
    assert value(partial(listnet_loss, k=k), scores, ranks) == pytest.approx(expected)


def test_listnet_sums_over_the_first_three_by_default():
    scores, ranks = [1.0, 0.3, 2.0, -0.4, 0.0], [0, 2, 3, 1, 4]
    assert value(listnet_loss, scores, ranks) == value(partial(listnet_loss, k=3), scores, ranks)
    assert value(listnet_loss, scores, ranks) != pytest.approx(
        value(partial(listnet_loss, k=4), scores, ranks)
    )


def test_listnet_of_fewer_objects_than_k_stops_when_all_are_chosen():
    deep, just = partial(listnet_loss, k=5), partial(listnet_loss, k=2)
    assert value(deep, [1.0, 0.0], [0, 1]) == pytest.approx(value(just, [1.0, 0.0], [0, 1]))


def test_listnet_of_a_huge_set_says_what_to_do_instead():
    scores = torch.zeros(1, 2000)
    with pytest.raises(ParameterError, match="plackett_luce"):
        listnet_loss(scores, torch.arange(2000.0)[None], scores == 0, k=3)


@pytest.mark.parametrize(
    ("loss", "most"),
    [(listnet_loss, (2**11, 2**6)), (hinge_ranking_loss, (2, 2**15)), (listnet_loss, (2**29, 1))],
    ids=["2^29 choices of 3", "2^31 pairs", "2^29 choices of 1"],
)
def test_what_memory_holds_is_not_refused_and_one_set_more_is(loss, most):
    n, m = most
    for sets, too_many in [(n, False), (n + 1, True)]:
        scores = torch.zeros(sets, m, device="meta")  # shapes alone, without any number
        if too_many:
            with pytest.raises(ParameterError, match="too many to hold in memory"):
                loss(scores, scores, scores == 0)
        else:
            assert loss(scores, scores, scores == 0).shape == (n,)


def test_a_misspelt_loss_is_recognised():
    with pytest.raises(ParameterError, match="did you mean 'hinge'"):
        find_loss("hingee")


def test_axes_are_checked_while_tests_run():
    with pytest.raises(Exception, match="mask"):
        hinge_ranking_loss(torch.zeros(2, 3), torch.zeros(2, 3), torch.ones(2, 4, dtype=torch.bool))


def squared(scale):
    return lambda scores, ranks, mask: (torch.relu(scores) * scale * mask).square().sum(1)


def also_squared(scale):
    return lambda scores, ranks, mask: (torch.abs(scores) * scale * mask).square().sum(1)


def test_a_loss_has_one_identity_in_all_processes():
    """A checkpoint of another process is found by it: no address in memory and no hash is in it."""
    code = (
        "import test_losses as t; from entourage.losses import *; from functools import partial;"
        "print([t.loss_identity(loss) for loss in "
        "[*LOSSES.values(), partial(listnet_loss, k=2), t.squared(2.0), lambda s, r, m: s in {'a', 'b', 'c'}]])"
    )
    found = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=known
        ).stdout
        for known in (environment("1"), environment("2"))
    ]
    assert found[0] == found[1]
    assert "0x" not in found[0]


def test_losses_that_differ_have_identities_that_differ():
    losses = [*LOSSES.values(), partial(listnet_loss, k=2), partial(listnet_loss, k=3)]
    losses += [squared(2.0), squared(3.0), also_squared(2.0)]
    assert len({loss_identity(loss) for loss in losses}) == len(losses)


def test_choice_loss_equals_the_formula_worked_by_hand():
    total = exp(1) + exp(0) + exp(2)
    assert value(choice_loss, [1.0, 0.0, 2.0], [0, 1, 1]) == pytest.approx(log(total) - 1)
    assert value(choice_loss, [1.0, 0.0, 2.0], [0, 0, 1]) == pytest.approx(2 * log(total) - 1), "two choices"
    assert value(choice_loss, [1.0, 0.0, 2.0], [1, 1, 1]) == 0.0, "none"
    # an unranked alternative was there to be chosen
    assert value(choice_loss, [1.0, 0.0, 2.0], [0, 1, float("nan")]) == pytest.approx(log(total) - 1)


def test_choice_loss_with_an_outside_option_worked_by_hand():
    outside, total = partial(choice_loss, outside=True), exp(1) + exp(-2) + 1
    assert value(outside, [1.0, -2.0], [1, 0]) == pytest.approx(log(total) + 2)
    assert value(outside, [1.0, -2.0], [1, 1]) == pytest.approx(log(total)), "nothing was chosen"


def test_padding_is_no_alternative_of_a_choice():
    scores, ranks = torch.tensor([[1.0, 0.0, 9.0], [1.0, 0.0, 9.0]]), torch.tensor([[0, 1, 0], [1, 1, 0]])
    mask = torch.tensor([[True, True, False]] * 2)
    expected = log(exp(1) + exp(0)) - 1
    assert choice_loss(scores, ranks, mask).tolist() == pytest.approx([expected, 0.0])
    with_outside = log(exp(1) + exp(0) + 1)
    found = choice_loss(scores, ranks, mask, outside=True)
    assert found.tolist() == pytest.approx([with_outside - 1, with_outside])
    alone = choice_loss(scores[:, 2:], ranks[:, 2:], mask[:, 2:], outside=True)
    assert alone.tolist() == [0.0, 0.0], "the outside option is all there is"


def test_subset_loss_equals_the_formula_worked_by_hand():
    expected = (log(1 + exp(-2)) + log(1 + exp(-1)) + log(1 + exp(3))) / 3
    assert value(subset_loss, [2.0, -1.0, 3.0], [0, 1, 1]) == pytest.approx(expected)
    two = (log(1 + exp(-2)) + log(1 + exp(3))) / 2
    assert value(subset_loss, [2.0, 9.0, 3.0], [0, float("nan"), 1]) == pytest.approx(two)
    assert value(subset_loss, [2.0, 9.0], [-1, -1]) == 0.0, "nothing is known"
    assert value(subset_loss, [2.0], [0]) == pytest.approx(log(1 + exp(-2)))
    padded = torch.tensor([[2.0, 3.0, 9.0]]), torch.tensor([[0, 1, 0]]), torch.tensor([[True, True, False]])
    assert subset_loss(*padded).item() == pytest.approx(two)
    together = torch.tensor([[2.0, 3.0], [0.0, 1.0]]), torch.tensor([[0, 1], [0, -1]])
    assert subset_loss(*together, together[0] > -9).tolist() == pytest.approx([two, log(2)])


def test_losses_keep_the_precision_of_the_scores():
    ranks = torch.tensor([[0.0, 1.0, 1.0]])
    for loss in (*LOSSES.values(), choice_loss, partial(choice_loss, outside=True), subset_loss):
        for dtype in (torch.bfloat16, torch.float32, torch.float64):
            assert loss(torch.zeros(1, 3, dtype=dtype), ranks, ranks >= 0).dtype == dtype


def test_losses_work_where_the_scores_are_whatever_the_default_device():
    scores, ranks = torch.tensor([[1.0, 0.0, 2.0]]), torch.tensor([[0, 1, 1]])
    for loss in (*LOSSES.values(), choice_loss, partial(choice_loss, outside=True), subset_loss):
        expected = loss(scores, ranks, ranks >= 0)
        with torch.device("meta"):  # of which no number can be read
            found = loss(scores, ranks, ranks >= 0)
        assert found.tolist() == expected.tolist()


def test_scores_that_are_far_apart_give_finite_losses_and_gradients():
    ranks, mask = torch.tensor([[0.0, 1.0, 2.0, 0.0]]), torch.tensor([[True, True, True, False]])
    for loss in (*LOSSES.values(), choice_loss, partial(choice_loss, outside=True), subset_loss):
        scores = torch.tensor([[-1e4, 1e4, 0.0, 3e38]], requires_grad=True)
        found = loss(scores, ranks, mask)
        found.sum().backward()
        assert found.isfinite().all()
        assert scores.grad.isfinite().all()
        assert scores.grad[0, 3] == 0.0, "of the padding"


def test_pairs_of_a_huge_set_are_refused_before_they_are_made():
    scores = torch.zeros(1, 50_000)
    for loss in (hinge_ranking_loss, logistic_ranking_loss):
        with pytest.raises(ParameterError, match=r"all pairs of 50,000 objects.*plackett_luce"):
            loss(scores, torch.zeros_like(scores), scores == 0)


def test_listnet_needs_a_whole_number_of_choices():
    jaxtyping.config.update("jaxtyping_disable", True)  # as users run it; the next test checks axes again
    scores = torch.zeros(1, 2)
    for k in (0, 1.5):
        with pytest.raises(ParameterError, match=f"^k needs a whole number of at least 1; got {k}"):
            listnet_loss(scores, scores, scores == 0, k=k)


def test_a_loss_is_found_by_name_or_is_one():
    assert find_loss("plackett_luce") is plackett_luce_loss
    assert find_loss("nll", CHOICE_LOSSES) is choice_loss
    assert find_loss(subset_loss, CHOICE_LOSSES) is subset_loss
    with pytest.raises(ParameterError, match="saved with a custom loss"):
        find_loss(None)
    assert loss_name("nll", LOSSES) == "nll"
    assert loss_name(plackett_luce_loss, LOSSES) == "plackett_luce"
    assert loss_name(choice_loss, LOSSES) is None


def test_identities_keep_their_form():
    """Checkpoints hold them: of another form, training would not go on."""

    def own(scores, ranks, mask, scale=2.0, *, names=frozenset({"b", "a"})):
        return scores * scale

    class Loss:
        def __call__(self, scores, ranks, mask):
            return scores.sum(1)

    code = own.__code__
    consts = "(" + ", ".join(map(repr, code.co_consts)) + ")"
    bound = "((2.0), {'names': {'a', 'b'}}, ())"
    whole = f"{own.__qualname__}({code.co_code.hex()}, {code.co_names}, {consts}, {bound})"
    assert loss_identity(own) == f":{whole}"
    assert (
        loss_identity(partial(own, 1, k=[2, 3], j={}))
        == f":partial({whole}, (1), {{'k': (2, 3), 'j': {{}}}})"
    )
    assert loss_identity(partial(own, {2, 1})) == f":partial({whole}, ({{1, 2}}), {{}})"
    assert loss_identity(Loss()) == f":{Loss.__qualname__}"
    assert loss_identity(Loss) == f":{Loss.__qualname__}", "a class has a name of its own"
    assert loss_identity(len) == ":len"
    assert loss_identity(squared(2.0)).endswith(", (None, None, (2.0)))")
    assert loss_identity(hinge_ranking_loss).startswith("hinge:hinge_ranking_loss(")
    assert loss_identity(choice_loss).startswith("nll:choice_loss(")
    assert loss_identity(subset_loss).startswith("binary:subset_loss(")


def environment(seed):
    paths = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    return os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": paths}
