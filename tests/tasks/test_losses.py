"""Losses, worked by hand."""

import os
import subprocess
import sys
from functools import partial
from itertools import permutations
from math import exp, log
from pathlib import Path

import pytest
import torch

from entourage.errors import ParameterError
from entourage.losses import (
    LOSSES,
    find_loss,
    hinge_ranking_loss,
    listnet_loss,
    logistic_ranking_loss,
    plackett_luce_loss,
)
from entourage.tasks.losses import loss_identity

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


def test_listnet_of_fewer_objects_than_k_stops_when_all_are_chosen():
    deep, just = partial(listnet_loss, k=5), partial(listnet_loss, k=2)
    assert value(deep, [1.0, 0.0], [0, 1]) == pytest.approx(value(just, [1.0, 0.0], [0, 1]))


def test_listnet_of_a_huge_set_says_what_to_do_instead():
    scores = torch.zeros(1, 2000)
    with pytest.raises(ParameterError, match="plackett_luce"):
        listnet_loss(scores, torch.arange(2000.0)[None], scores == 0, k=3)


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


def environment(seed):
    paths = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    return os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": paths}
