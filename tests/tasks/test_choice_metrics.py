"""Metrics of choices, worked by hand, and the laws they share. Chosen objects have rank 0, the others 1."""

from functools import partial
from math import exp, log

import numpy as np
import pytest

from entourage.metrics import (
    choice_accuracy,
    f1,
    hamming_accuracy,
    informedness,
    log_likelihood,
    subset_accuracy,
    subset_log_likelihood,
)

METRICS = {
    "choice_accuracy": choice_accuracy,
    "choice_accuracy, outside": partial(choice_accuracy, outside=True),
    "log_likelihood": log_likelihood,
    "log_likelihood, outside": partial(log_likelihood, outside=True),
    "subset_log_likelihood": subset_log_likelihood,
    "f1": f1,
    "subset_accuracy": subset_accuracy,
    "hamming_accuracy": hamming_accuracy,
    "informedness": informedness,
}
every_metric = pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS.keys())


def test_choice_accuracy_is_the_share_of_the_chosen_among_the_highest():
    scores = [[3.0, 1.0, 2.0], [3.0, 3.0, 2.0], [1.0, 3.0, 3.0]]
    ranks = [[0, 1, 1], [1, 0, 1], [0, 1, 1]]
    assert choice_accuracy(scores, ranks, per_set=True).tolist() == [1.0, 0.5, 0.0]
    assert choice_accuracy(scores, ranks) == 0.5


def test_a_set_without_a_choice_has_a_value_only_where_there_is_an_outside_option():
    scores, ranks = [[-1.0, -2.0], [-1.0, 2.0], [0.0, -2.0]], [[1, 1]] * 3
    for metric in (choice_accuracy, log_likelihood):
        assert np.isnan(metric(scores, ranks, per_set=True)).all()
    # of the outside option's 0: above all; below 2; tied with one object
    assert choice_accuracy(scores, ranks, outside=True, per_set=True).tolist() == [1.0, 0.0, 0.5]


def test_an_outside_option_of_higher_utility_makes_a_choice_wrong():
    assert choice_accuracy([[-1.0, -2.0]], [[0, 1]]) == 1.0
    assert choice_accuracy([[-1.0, -2.0]], [[0, 1]], outside=True) == 0.0
    assert choice_accuracy([[0.0, -2.0]], [[0, 1]], outside=True) == 0.5


def test_log_likelihood_equals_the_formula_worked_by_hand():
    assert log_likelihood([[1.0, 0.0, 2.0]], [[0, 1, 1]]) == pytest.approx(1 - log(exp(1) + 1 + exp(2)))
    # the outside option adds e^0, and has the probability e^0 / total itself
    total = exp(1) + exp(-2) + 1
    outside = partial(log_likelihood, outside=True)
    assert outside([[1.0, -2.0]], [[1, 0]]) == pytest.approx(-2 - log(total))
    assert outside([[1.0, -2.0]], [[1, 1]]) == pytest.approx(0 - log(total))


def test_log_likelihood_of_two_choices_is_the_sum_of_both():
    total = exp(1) + exp(0) + exp(2)
    assert log_likelihood([[1.0, 0.0, 2.0]], [[0, 0, 1]]) == pytest.approx(1 + 0 - 2 * log(total))


@pytest.mark.parametrize("offset", [-1e30, -1e4, 1e4, 1e30])
def test_log_likelihood_keeps_its_precision_far_from_zero(offset):
    assert log_likelihood([[offset, offset]], [[0, 1]]) == pytest.approx(-log(2))
    assert log_likelihood([[1e30, -1e30]], [[0, 1]]) == 0.0
    assert log_likelihood([[1e30, -1e30]], [[1, 0]]) == pytest.approx(-2e30)


def test_an_infinite_score_is_chosen_for_certain():
    assert log_likelihood([[np.inf, 0.0]], [[0, 1]]) == 0.0
    assert log_likelihood([[0.0, -np.inf]], [[0, 1]]) == 0.0
    assert log_likelihood([[np.inf, np.inf]], [[0, 1]]) == pytest.approx(-log(2))


def test_single_precision_scores_are_evaluated_in_double_precision():
    scores = np.array([[100.0, 99.0]], dtype=np.float32)
    assert log_likelihood(scores, [[0, 1]]) == pytest.approx(-log(1 + exp(-1)), rel=1e-12)


def test_subset_log_likelihood_equals_the_formula_worked_by_hand():
    # chosen with 2, left out with -1 and 4: log-probabilities of a sigmoid
    expected = -(log(1 + exp(-2)) + log(1 + exp(-1)) + log(1 + exp(4))) / 3
    assert subset_log_likelihood([[2.0, -1.0, 4.0]], [[0, 1, 1]]) == pytest.approx(expected)


def test_a_set_of_one_object_is_divided_by_one():
    assert subset_log_likelihood([[2.0]], [[0]]) == pytest.approx(-log(1 + exp(-2)))
    assert hamming_accuracy([[2.0]], [[0]]) == 1.0


def test_f1_worked_by_hand():
    # predicted 0 and 1; right 0 and 2: one hit, 2 · 1 / (2 + 2)
    assert f1([[1.0, 1.0, -1.0, -1.0]], [[0, 1, 0, 1]]) == 0.5
    # predicted 0; right 0, 1 and 2: 2 · 1 / (1 + 3)
    assert f1([[1.0, -1.0, -1.0, -1.0]], [[0, 0, 0, 1]]) == 0.5
    # predicted all three, one right: 2 · 1 / (3 + 1)
    assert f1([[1.0, 1.0, 1.0]], [[0, 1, 1]]) == 0.5


def test_f1_is_1_where_nothing_is_chosen_and_nothing_was():
    scores, ranks = [[-1.0, -1.0], [-1.0, -1.0], [1.0, -1.0]], [[1, 1], [0, 1], [1, 1]]
    assert f1(scores, ranks, per_set=True).tolist() == [1.0, 0.0, 0.0]


def test_subset_and_hamming_accuracy_worked_by_hand():
    scores = [[1.0, -1.0, -1.0], [1.0, 1.0, -1.0], [-1.0, 1.0, 1.0]]
    ranks = [[0, 1, 1]] * 3
    assert subset_accuracy(scores, ranks, per_set=True).tolist() == [1.0, 0.0, 0.0]
    assert hamming_accuracy(scores, ranks, per_set=True).tolist() == pytest.approx([1.0, 2 / 3, 0.0])


def test_informedness_worked_by_hand():
    # two of three chosen are found, one of two others is taken, too: 2/3 - 1/2
    scores, ranks = [[1.0, 1.0, -1.0, 1.0, -1.0]], [[0, 0, 0, 1, 1]]
    assert informedness(scores, ranks) == pytest.approx(2 / 3 - 1 / 2)
    assert informedness([[-1.0, 1.0]], [[0, 1]]) == -1.0
    assert informedness([[1.0, 1.0]], [[0, 1]]) == 0.0


def test_informedness_has_no_value_where_all_were_chosen_or_none():
    values = informedness([[1.0, -1.0]] * 3, [[0, 0], [1, 1], [0, 1]], per_set=True)
    assert np.isnan(values).tolist() == [True, True, False]
    assert informedness([[1.0, -1.0]] * 3, [[0, 0], [1, 1], [0, 1]]) == 1.0


@pytest.mark.parametrize("metric", [f1, subset_accuracy, hamming_accuracy, informedness])
def test_only_scores_above_the_threshold_are_chosen(metric):
    scores, ranks = [[0.5, 0.2, 0.0]], [[0, 1, 1]]
    assert metric(scores, ranks, threshold=0.2) == 1.0, "0.2 itself is not above it"
    assert metric(scores, ranks) < 1.0, "0 is the default, and 0.2 is above it"
    assert metric(scores, [[0, 0, 1]]) == 1.0, "0 itself is not above 0"


@every_metric
def test_padding_and_unranked_objects_change_nothing(metric):
    scores, ranks = np.array([[0.5, -0.2, 1.4], [-1.0, -0.3, -0.5]]), np.array([[0, 1, 1], [1, 1, 0]])
    expected = metric(scores, ranks, per_set=True)
    for value in (9.0, -9.0):
        for rank in (0.0, 1.0, np.nan):
            wide = np.c_[scores, np.full((2, 2), value)]
            beside = np.c_[ranks, np.full((2, 2), rank)]
            mask = np.c_[np.ones((2, 3), dtype=bool), np.zeros((2, 2), dtype=bool)]
            np.testing.assert_allclose(metric(wide, beside, mask, per_set=True), expected)
    unranked = np.c_[ranks, [[-1.0], [np.nan]]]
    np.testing.assert_allclose(metric(np.c_[scores, [[9.0], [9.0]]], unranked, per_set=True), expected)


@every_metric
def test_the_mean_is_over_the_sets_that_have_a_value(metric):
    rng = np.random.default_rng(0)
    scores, ranks = rng.normal(size=(20, 3)), rng.integers(0, 2, size=(20, 3))
    ranks[:5], ranks[5:10] = [0, 0, 0], [1, 1, 1]
    values = metric(scores, ranks, per_set=True)
    assert values.shape == (20,)
    assert metric(scores, ranks) == pytest.approx(np.nanmean(values))


@every_metric
def test_sets_of_one_batch_have_the_values_that_they_have_alone(metric):
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(40, 3)) * np.logspace(-1, 4, 40)[:, None]
    ranks, mask = rng.integers(0, 2, size=(40, 3)), rng.random((40, 3)) < 0.7
    mask[7] = False  # nothing but padding
    alone = [metric(*(own[None] for own in one)) for one in zip(scores, ranks, mask, strict=True)]
    np.testing.assert_allclose(metric(scores, ranks, mask, per_set=True), alone)


def test_sets_without_any_object_have_no_value_without_an_outside_option():
    for name, metric in METRICS.items():
        value = metric(np.zeros((2, 0)), np.zeros((2, 0)))
        expected = {"choice_accuracy, outside": 1.0, "log_likelihood, outside": 0.0}
        assert value == pytest.approx(expected.get(name, np.nan), nan_ok=True), name


def test_padding_alone_has_no_value_without_an_outside_option():
    for name, metric in METRICS.items():
        value = metric([[1.0, 2.0]], [[0, 1]], [[False, False]])
        expected = {"choice_accuracy, outside": 1.0, "log_likelihood, outside": 0.0}  # it is all there is
        assert value == pytest.approx(expected.get(name, np.nan), nan_ok=True), name
