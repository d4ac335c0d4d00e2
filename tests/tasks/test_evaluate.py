"""The one loop of a metric over sets: ragged sets, grades, weights, sets without a value."""

from functools import partial
from math import log2

import numpy as np
import pytest

from entourage.data.sets import Sets
from entourage.metrics import ndcg, ranking_accuracy, reciprocal_rank
from entourage.tasks.evaluate import evaluate_scores, mean_over_sets, metric_of_sets

RANKS = [[0.0, 1.0], [0.0, 1.0, 2.0], [1.0, 0.0], [0.0]]
SCORES = np.array([2.0, 1.0, 1.0, 2.0, 3.0, 5.0, 4.0, 0.0])  # right; all wrong; wrong; one object
SETS = Sets.from_list([np.zeros((len(ranks), 1)) for ranks in RANKS], RANKS)


def test_each_set_has_its_own_value_in_its_own_place():
    values = metric_of_sets(ranking_accuracy, SETS, SCORES)
    np.testing.assert_array_equal(values, [1.0, 0.0, 0.0, np.nan])


def test_the_mean_is_over_the_sets_with_a_value():
    assert mean_over_sets(np.array([1.0, 0.0, np.nan, 0.5])) == 0.5
    assert np.isnan(mean_over_sets(np.array([np.nan, np.nan])))


def test_sets_weigh_as_much_as_they_are_given():
    values = np.array([1.0, 0.0, np.nan, 0.5])
    assert mean_over_sets(values, np.array([3.0, 1.0, 9.0, 0.0])) == 0.75
    assert mean_over_sets(values, np.array([0.0, 0.0, 9.0, 2.0])) == 0.5
    assert mean_over_sets(values, np.array([0.25, 0.5, 0.0, 0.25])) == pytest.approx(0.375)
    assert np.isnan(mean_over_sets(values, np.array([0.0, 0.0, 9.0, 0.0])))


def test_all_metrics_are_evaluated_with_the_same_weights():
    metrics = {"ranking_accuracy": ranking_accuracy, "first": reciprocal_rank}
    # reciprocal ranks: 1, 1/3, 1/2
    assert evaluate_scores(SETS, SCORES, metrics) == pytest.approx(
        {"ranking_accuracy": 1 / 3, "first": (1 + 1 / 3 + 1 / 2) / 3}
    )
    weighted = evaluate_scores(SETS, SCORES, metrics, np.array([1.0, 0.0, 3.0, 5.0]))
    assert weighted == pytest.approx({"ranking_accuracy": 1 / 4, "first": (1 + 3 / 2) / 4})


def test_metrics_of_grades_are_given_the_irrelevant_grade_of_the_data():
    """Ranks 0 and 1 are the grades 2 and 1 where the worst is 2: by default, 1 would be irrelevant."""
    sets = Sets.from_array(np.zeros((1, 2, 1)), [[0.0, 1.0]])
    graded, scores = sets.with_targets(np.array([0.0, 1.0]), worst=2.0), np.array([1.0, 2.0])
    assert metric_of_sets(ndcg, sets, scores)[0] == pytest.approx(1 / log2(3))
    expected = (1 + 2 / log2(3)) / (2 + 1 / log2(3))
    for metric in (ndcg, partial(ndcg, k=10)):
        assert metric_of_sets(metric, graded, scores)[0] == pytest.approx(expected)
    assert metric_of_sets(ranking_accuracy, graded, scores)[0] == 0.0, "which knows no grades"
