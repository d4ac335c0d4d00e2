"""Comparison: folds that keep to themselves, a gain by hand, everything in the result."""

import importlib.util
import json

import numpy as np
import pytest
from pickling_pool import PicklingPool

from entourage import FATE, Ranker
from entourage.baselines import RandomRanker, RankSVM
from entourage.data import Sets, make_hypervolume
from entourage.data.resampling import bootstrap_interval, fold_indices, sign_flip_p_value, widening_of
from entourage.errors import DataError, ParameterError, TrainingError
from entourage.selection import comparison
from entourage.selection.candidates import default_candidates, missing_by_default
from entourage.selection.comparison import compare, refit_chosen
from entourage.selection.verdict import verdict

X, RANKS = make_hypervolume(n_sets=60, random_state=0)
SETS = Sets.of(X, RANKS)
FOUR = np.arange(60) % 4  # groups
PAIR = {"linear": (RankSVM(), "context-free"), "chance": (RandomRanker(), "context")}


class Watching(RankSVM):
    """Remembers which sets each fit saw."""

    seen: list = []  # noqa: RUF012 - shared by all clones, on purpose

    def fit(self, X, y=None, **kwargs):
        Watching.seen.append({row.tobytes() for row in X.to_list()})
        return super().fit(X, y, **kwargs)


def test_no_set_of_an_outer_fold_reaches_any_fit_that_it_judges():
    Watching.seen = []
    groups = np.arange(60) // 3
    candidates = {"A": (Watching(), "context-free"), "B": (Watching(C=0.1), "context-free")}
    candidates["C"] = (RandomRanker(), "context")
    rows = []
    settings = {"folds": 4, "inner": 3, "groups": groups, "random_state": 5}
    found = compare(SETS, candidates, **settings, on_row=rows.append)
    watched = [row for row in rows if row["candidate"] in "AB"]
    assert len(Watching.seen) == len(watched) == 4 * 2 * (1 + 3)
    assert len(rows) == rows[0]["fits"] == 4 * 3 + 4 * 2 * 3, "the only context model needs no choice"
    for i, (train, test) in enumerate(fold_indices(60, 4, groups=groups, random_state=5)):
        assert not set(groups[train]) & set(groups[test])
        held_out = {X[j].tobytes() for j in test}
        mine = [seen for seen, row in zip(Watching.seen, watched, strict=True) if row["fold"] == i]
        assert not any(held_out & seen for seen in mine)
        best = RankSVM().fit(X[train], RANKS[train])
        of_fold = found.values["A"]["ranking_accuracy"][test]
        assert of_fold.mean() == pytest.approx(best.score(X[test], RANKS[test]), abs=0.01)
    assert [{**row, "fits": len(rows), "seconds": 0} for row in found.rows] == [
        {**row, "seconds": 0} for row in rows
    ]


class Cheating(RankSVM):
    """Right on the sets of outer folds alone: it learns from more sets there than in any inner fit."""

    def fit(self, X, y=None, **kwargs):
        self.whole_ = len(X) >= 45
        return super().fit(X, y, **kwargs)

    def _packed_scores(self, sets):
        truth = super()._packed_scores(sets)
        return truth if self.whole_ else -truth


def test_inner_folds_choose_and_not_the_outer_ones():
    sets = Sets.of(X, np.argsort(np.argsort(X[:, :, 0], axis=1), axis=1))  # the first feature decides
    candidates = {
        "chance": (RandomRanker(), "context-free"),
        "cheating": (Cheating(), "context-free"),
        "linear": (RankSVM(), "context"),
    }
    found = compare(sets, candidates, folds=4, inner=3)  # 45 sets to learn from, 30 in an inner fit
    assert found.means["cheating"]["ranking_accuracy"] > 0.95 > found.means["chance"]["ranking_accuracy"]
    assert [fold["context-free"] for fold in found.chosen] == ["chance"] * 4
    values = found.values
    by_hand = values["linear"]["ranking_accuracy"] - values["chance"]["ranking_accuracy"]
    assert found.differences == pytest.approx(by_hand)
    assert found.gain == pytest.approx(by_hand.mean())
    assert found.p_value == sign_flip_p_value(by_hand)
    low, high = bootstrap_interval(by_hand)
    wide = np.sqrt(1 + 4 / 3)  # of four folds
    ends = found.gain - wide * (found.gain - low), found.gain + wide * (high - found.gain)
    assert found.interval == pytest.approx(ends)


def test_one_inner_split_holds_out_a_fifth():
    candidates = PAIR | {"other": (RankSVM(C=0.1), "context-free")}
    found = compare(SETS, candidates, folds=3, inner=1)
    inner = [row for row in found.rows if row["inner"] is not None]
    assert {(row["learnt_from"], row["judged_by"]) for row in inner} == {(32, 8)}
    assert len(inner) == 3 * 2


def test_every_fit_has_its_own_seed_and_the_same_seed_gives_the_same_comparison():
    seeds = []

    class Seeded(RandomRanker):
        def fit(self, X, y=None, **kwargs):
            seeds.append(self.random_state)
            return super().fit(X, y, **kwargs)

    candidates = {
        "a": (Seeded(), "context"),
        "b": (Seeded(), "context"),
        "linear": (RankSVM(), "context-free"),
    }
    first = compare(SETS, candidates, folds=3, inner=2)
    assert len(set(seeds)) == len(seeds) == 2 * 3 * 3
    again = compare(SETS, candidates, folds=3, inner=2)
    assert again.p_value == first.p_value
    assert np.array_equal(again.differences, first.differences)


def test_workers_come_to_the_same_result(monkeypatch):
    monkeypatch.setattr(comparison, "open_pool", PicklingPool)
    before = PicklingPool.opened
    one, two = (compare(SETS, PAIR, folds=2, workers=workers) for workers in (1, 2))
    assert PicklingPool.opened == before + 1
    assert np.array_equal(one.differences, two.differences)
    assert [row["means"] for row in one.rows] == [row["means"] for row in two.rows]


def test_sets_without_an_order_take_no_part():
    ranks = RANKS.astype(float)
    ranks[::4] = 0.0  # all tied
    found = compare(Sets.of(X, ranks), PAIR, folds=3)
    without = compare(Sets.of(np.delete(X, np.s_[::4], 0), np.delete(ranks, np.s_[::4], 0)), PAIR, folds=3)
    assert found.n_sets == 45
    assert np.isnan(found.differences[::4]).all()
    assert (found.gain, found.interval, found.p_value) == (without.gain, without.interval, without.p_value)
    assert found.to_json(per_set=True)["differences"][0] is None


def test_groups_widen_the_interval_where_their_sets_are_alike():
    copies, groups = (
        Sets.of(np.repeat(X[:15], 6, axis=0), np.repeat(RANKS[:15], 6, axis=0)),
        np.arange(90) // 6,
    )
    found = compare(copies, PAIR, folds=3, groups=groups)
    low, high = bootstrap_interval(found.values["linear"]["ranking_accuracy"])
    mine = found.intervals["linear"]["ranking_accuracy"]
    assert mine[1] - mine[0] > 1.5 * (high - low)
    assert found.n_groups == 15
    assert found.p_value == sign_flip_p_value(found.differences, groups, widening=widening_of(3))


def test_a_loss_is_gained_by_lowering_it():
    right = compare(SETS, PAIR, folds=3)
    wrong = compare(SETS, PAIR, folds=3, metric="ranking_loss")
    assert wrong.gain == pytest.approx(right.gain)
    candidates = {"linear": (RankSVM(), "context"), "worse": (RandomRanker(), "context")}
    candidates["chance"] = (RandomRanker(), "context-free")
    lowered = compare(SETS, candidates, folds=3, metric="ranking_loss")
    assert [fold["context"] for fold in lowered.chosen] == ["linear"] * 3
    assert f"= +{lowered.gain:.3f}, 95 % CI" in verdict(lowered)
    assert "(0/1-ranking loss, by which it is lower)" in verdict(lowered)


def test_the_result_is_plain_data_with_everything_in_it():
    found = compare(SETS, PAIR, folds=3, metrics=("spearman",))
    plain = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert plain["kinds"] == {"linear": "context-free", "chance": "context"}
    assert list(plain["means"]["linear"]) == ["ranking_accuracy", "spearman"]
    low, high = plain["intervals"]["linear"]["spearman"]
    assert low < plain["means"]["linear"]["spearman"] < high
    assert plain["verdict"] == verdict(found)
    assert {"python", "torch", "numpy"} <= set(plain["versions"])
    assert "values" not in plain
    assert len(found.to_json(per_set=True)["values"]["linear"]["spearman"]) == 60


def test_without_lightgbm_its_candidate_is_left_out(monkeypatch):
    without = {"lightgbm": None}
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: without.get(name, "there"))
    assert "LambdaMART" not in default_candidates(100)
    assert list(missing_by_default("choice")) == ["BoostedLogit"]
    monkeypatch.setattr(comparison, "default_candidates", lambda *_, **__: PAIR)  # as without, but fast
    found = compare(SETS, folds=2)
    assert "pip install 'entourage[boost]'" in found.left_out["LambdaMART"]
    assert found.to_json()["left_out"] == found.left_out
    assert found.to_json()["warnings"] == [f"LambdaMART was left out: {found.left_out['LambdaMART']}."]
    assert compare(SETS, PAIR, folds=2).left_out == {}, "who names candidates is told of no others"


def test_models_are_refitted_from_seeds_of_the_comparison():
    candidates = {
        "linear": (RankSVM(), "context-free"),
        "FATE": (Ranker(FATE(8), steps=5, device="cpu", random_state=0), "context"),
    }
    found = compare(SETS, candidates, folds=2, random_state=3)
    one, two = (refit_chosen(found, SETS)["context"] for _ in range(2))
    assert np.array_equal(one.predict_scores(X), two.predict_scores(X))
    assert one.random_state != candidates["FATE"][0].random_state


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"metric": "ranking_acuracy"}, ParameterError, "did you mean 'ranking_accuracy'"),
        ({"metrics": ["sperman"]}, ParameterError, "did you mean 'spearman'"),
        ({"level": 0.6}, ParameterError, "level needs a number above 0 and below 0.5"),
        ({"resamples": 10}, ParameterError, "resamples needs a whole number of at least 19"),
        ({"groups": FOUR}, DataError, "5 outer folds need at least 5 groups .* there are 4"),
        ({"groups": FOUR, "folds": 4}, DataError, "at least 5 groups .* never below 0.0625"),
        ({"groups": np.arange(9)}, DataError, r"one label a set, shape \(60,\); got \(9,\)"),
        ({"candidates": {"a": (RankSVM(), "context")}}, ParameterError, "there is no context-free one"),
        ({"candidates": {"a": RankSVM()}}, ParameterError, "needs an estimator and its kind"),
        ({"candidates": {"a": (RankSVM(), "contxt")}}, ParameterError, "did you mean 'context'"),
    ],
)
def test_what_cannot_be_compared_is_said(changes, error, message):
    with pytest.raises(error, match=message):
        compare(SETS, **{"candidates": PAIR, **changes})


def test_too_few_sets_for_the_inner_folds_are_counted_before_any_fit():
    candidates = PAIR | {"other": (RankSVM(C=0.1), "context-free")}
    with pytest.raises(DataError, match="2 outer folds, each with 5 inner ones, need at least 10 sets"):
        compare(SETS[:9], candidates, folds=2, inner=5)
    compare(SETS[:10], candidates, folds=2, inner=5)


def test_sets_that_order_nothing_are_refused():
    with pytest.raises(DataError, match="rank two objects differently; there are none"):
        compare(Sets.of(X, np.zeros_like(RANKS)), PAIR)


def test_an_error_in_a_fit_names_its_candidate():
    class Failing(RankSVM):
        def fit(self, X, y=None, **kwargs):
            raise TrainingError("It went wrong.")

    with pytest.raises(TrainingError, match="bad one, fold 1: It went wrong"):
        compare(SETS, PAIR | {"bad one": (Failing(), "context-free")})
