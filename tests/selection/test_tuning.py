"""Tuning: inner folds choose, outer folds report."""

import numpy as np
import pytest
from sklearn.base import clone

from entourage import FATE, Ranker
from entourage.baselines import MODELS, LambdaMART, RankSVM
from entourage.data import Sets, make_hypervolume
from entourage.data.resampling import fold_indices
from entourage.errors import ParameterError, TrainingError
from entourage.selection.spaces import SPACES, Choice, Real, Whole, few_sets_space, space_of
from entourage.selection.tuning import nested_cross_validation, tune

X, RANKS = make_hypervolume(n_sets=120, random_state=0)
SMALL = Ranker(FATE(width=8), steps=5, batch_size=32, device="cpu", random_state=0)
SPACE = {"learning_rate": Real(1e-4, 1e-1, log=True), "net__width": Choice((4, 8)), "net__depth": Whole(0, 2)}


def test_the_search_begins_with_the_model_as_it_came_and_never_ends_with_worse():
    found = tune(SMALL, X, RANKS, space=SPACE, trials=5, folds=2)
    first = found.trials[0]
    assert first["params"] == {"learning_rate": 0.003, "net__width": 8, "net__depth": 2}
    assert found.score >= first["score"]
    assert found.score == max(t["score"] for t in found.trials if t["score"] is not None)
    assert len(found.trials) == 5
    assert SMALL.get_params()["net__width"] == 8, "the model stays as it is"
    clone(SMALL).set_params(**found.params)


def test_the_score_is_the_mean_over_inner_folds():
    found = tune(RankSVM(), X, RANKS, trials=1, folds=3, random_state=7)
    by_hand = []
    for train, test in fold_indices(len(X), 3, random_state=7):
        by_hand.append(RankSVM().fit(X[train], RANKS[train]).score(X[test], RANKS[test]))
    assert found.score == pytest.approx(np.mean(by_hand))


def test_choices_of_two_parameters_are_set_together():
    space = {"net__activation net__norm": Choice((("relu", "batch"), ("gelu", "layer")))}
    found = tune(SMALL, X, RANKS, space=space, trials=4, folds=1)
    seen = {(t["params"]["net__activation"], t["params"]["net__norm"]) for t in found.trials}
    assert seen <= {("relu", "batch"), ("gelu", "layer")}


def test_a_default_net_can_be_tuned():
    model = Ranker(steps=2, device="cpu", random_state=0)
    found = tune(model, X, RANKS, trials=2, folds=1)
    assert isinstance(clone(model).set_params(**found.params).fit(X, RANKS).net_, FATE)


def test_a_named_net_is_searched_like_the_net_itself():
    named, given = (Ranker(net, steps=2, device="cpu", random_state=0) for net in ("fate", FATE()))
    assert space_of(named) == space_of(given)
    assert few_sets_space(named) == few_sets_space(given)
    space = {"net__width": Choice((4, 8))}
    found = tune(named, X, RANKS, space=space, trials=3, folds=1)
    assert found.score == tune(given, X, RANKS, space=space, trials=3, folds=1).score
    best = clone(named).set_params(**found.params).fit(X, RANKS)
    assert best.net_.width == found.params["net__width"]


def test_settings_that_cannot_be_trained_do_not_stop_the_search():
    space = {"loss": Choice(("hinge", "hing"))}
    found = tune(SMALL, X, RANKS, space=space, trials=6, folds=1)
    assert {t["state"] for t in found.trials} == {"complete", "fail"}
    assert found.params == {"loss": "hinge"}
    with pytest.raises(TrainingError, match="No trial came to an end: loss='hing'"):
        tune(SMALL, X, RANKS, space={"loss": Choice(("hing",))}, trials=2, folds=1)


def test_time_can_be_bounded():
    found = tune(RankSVM(), X, RANKS, trials=1000, seconds=0.0)
    assert len(found.trials) == 1


def test_a_model_without_a_space_is_only_judged():
    found = tune(MODELS["Random"](0), X, RANKS, trials=3)
    assert (found.params, found.trials) == ({}, [])


def test_unknown_parameters_are_named():
    with pytest.raises(ParameterError, match="did you mean 'learning_rate'"):
        tune(SMALL, X, RANKS, space={"learning_rat": Real(0.1, 1.0)}, trials=1)
    with pytest.raises(ParameterError, match="names 2 parameters"):
        tune(SMALL, X, RANKS, space={"l1 l2": Choice((0.1,))}, trials=1)


def test_outer_folds_report_what_inner_folds_chose(tmp_path):
    groups = np.arange(len(X)) // 4
    seen = []

    class Watching(RankSVM):
        def fit(self, X, y=None, **kwargs):
            seen.append({row.tobytes() for row in X.to_list()})
            return super().fit(X, y, **kwargs)

    settings = {"outer": 3, "folds": 2, "trials": 3, "groups": groups, "study": tmp_path / "study"}
    folds = nested_cross_validation(Watching(), X, RANKS, space=SPACES[RankSVM], **settings)
    assert sorted(np.concatenate([fold.test for fold in folds])) == list(range(len(X)))
    assert len(seen) == 3 * (3 * 2 + 1)
    for i, fold in enumerate(folds):
        held_out = {X[j].tobytes() for j in fold.test}
        assert not any(held_out & fitted for fitted in seen[i * 7 : (i + 1) * 7]), "no outer set is seen"
        others = np.setdiff1d(np.arange(len(X)), fold.test)
        assert not set(groups[fold.test]) & set(groups[others])
        best = RankSVM(**fold.params).fit(X[others], RANKS[others])
        assert fold.score == pytest.approx(best.score(X[fold.test], RANKS[fold.test]))
        assert fold.score == pytest.approx(np.nanmean(fold.per_set))
    again = nested_cross_validation(Watching(), X, RANKS, space=SPACES[RankSVM], **settings)
    assert [f.score for f in again] == [f.score for f in folds]
    assert len(seen) == 3 * 7 + 3, "only the last fit of each fold is done again"


def test_ragged_sets_and_situations_can_be_tuned():
    sets = Sets.from_list(
        [x[: 3 + i % 3] for i, x in enumerate(X)], [r[: 3 + i % 3] for i, r in enumerate(RANKS)]
    )
    assert tune(LambdaMART(n_estimators=50), sets, trials=2, folds=2).score > 0.5
    situation = np.ones((len(X), 1))
    assert tune(RankSVM(), X, RANKS, situation=situation, trials=1).score > 0.5
