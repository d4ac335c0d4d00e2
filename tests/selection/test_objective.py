"""The objective of a search: the mean over inner folds, reported by one measure."""

import numpy as np
import pytest
from sklearn.base import clone

from entourage import FATE, DiscreteChooser, Ranker, SubsetChooser
from entourage.baselines import RankSVM
from entourage.data import Sets, make_hypervolume
from entourage.data.resampling import fold_indices
from entourage.selection.objective import Objective

X, RANKS = make_hypervolume(n_sets=120, random_state=0)


@pytest.mark.parametrize(
    ("kind", "metric", "y"),
    [
        (DiscreteChooser, "accuracy", RANKS.argmin(1)),
        (SubsetChooser, "f1", RANKS < 2),
        (Ranker, "ndcg", RANKS),
    ],
)
def test_a_trial_is_pruned_by_one_measure_from_its_first_evaluation_to_its_last_fold(kind, metric, y):
    model = kind(FATE(width=8), steps=20, evaluate_every=10, batch_size=32, device="cpu", random_state=0)
    sets = model.task.check(model.task.sets_of(X, y))
    parts = fold_indices(len(X), 2)
    reported = {}
    score = Objective(model, sets, parts, metric)({}, reported.__setitem__)
    criteria, metrics, evaluations = [], [], []
    for train, test in parts:
        fitted = clone(model).fit(sets[train])
        scores = fitted.predict_scores(X[test])
        ranks = sets[test].targets.reshape(len(test), -1)
        criteria.append(fitted.task.criterion(scores, ranks))
        metrics.append(fitted.task.metrics[metric](scores, ranks))
        evaluations.append([row["score"] for row in fitted.history_ if "score" in row])
    assert score == pytest.approx(np.mean(metrics), abs=1e-6)
    expected = {0: evaluations[0][0], 1: evaluations[0][1], 999: criteria[0]}
    expected |= {1000 + k: (criteria[0] + evaluations[1][k]) / 2 for k in (0, 1)} | {1999: np.mean(criteria)}
    assert reported == pytest.approx(expected, abs=1e-6)


def test_without_evaluations_a_trial_is_pruned_by_the_metric_itself():
    parts, reported = fold_indices(len(X), 2), {}
    silent = Ranker(FATE(width=8), steps=5, validation=0.0, device="cpu", random_state=0)
    for model in (RankSVM(), silent):
        reported.clear()
        score = Objective(model, Sets.of(X, RANKS), parts, "ndcg")({}, reported.__setitem__)
        assert list(reported) == [999, 1999]
        assert reported[1999] == score
