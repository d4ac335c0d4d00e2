"""Three tiers: what each adds, chosen on other sets than those it is compared on."""

import json
import time

import numpy as np
import pandas as pd
import pytest

from entourage import FATE, ContextFree, Ranker
from entourage.baselines import LinearRanker, RandomRanker, RankSVM
from entourage.data import Sets
from entourage.errors import DataError, ParameterError
from entourage.selection import compare, verdict, warnings_of
from entourage.selection.tiers import choose_by_tier, rivals_of

SETTINGS = {"folds": 3, "inner": 0, "resamples": 200}


def standing_matters(n=150, m=6):
    """Return sets whose best object is the one nearest the middle of its set in its only feature."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, m, 1)) + 10 * rng.normal(size=(n, 1, 1))
    distance = np.abs(X - X.mean(1, keepdims=True))[..., 0]
    return Sets.of(X, distance.argsort(1).argsort(1))


def test_unions_of_kinds_and_single_candidates_need_no_score():
    rivals = rivals_of({"a": "context-free", "b": "relative", "c": "context"})
    assert rivals["any context"] == ["b", "c"]
    assert rivals["without net"] == ["a", "b"]
    chosen = choose_by_tier(rivals, {"a": 1.0, "b": 3.0, "c": 2.0}.__getitem__)
    assert chosen == {
        "context-free": "a",
        "relative": "b",
        "context": "c",
        "any context": "b",
        "without net": "b",
    }


def test_where_the_standing_in_the_set_is_all_there_is_the_relative_tier_gains_and_the_net_adds_nothing():
    quick = {"steps": 150, "batch_size": 64, "learning_rate": 0.01, "device": "cpu", "random_state": 0}
    candidates = {
        "alone": (Ranker(ContextFree(16), **quick), "context-free"),
        "relative": (Ranker(ContextFree(16), relative=True, **quick), "relative"),
        "chance": (RandomRanker(), "context"),
    }
    found = compare(standing_matters(), candidates, **SETTINGS)
    relative, net = found.steps["relative"], found.steps["net"]
    assert relative.gain > 0.2
    assert relative.interval[0] > 0.1
    assert relative.p_value <= 0.05
    assert net.gain < -0.2
    assert net.p_value > 0.9
    assert found.gain == pytest.approx(relative.gain), "the best with any context is the relative one"
    by_hand = found.values["relative"]["ranking_accuracy"] - found.values["alone"]["ranking_accuracy"]
    assert relative.gain == pytest.approx(np.nanmean(by_hand))
    said = verdict(found)
    assert said.startswith("Significant context effect: relative − alone = +0.")
    assert "Step by step: the standing of an object in its set +0." in said
    assert "then interactions in a net of the whole set −0." in said
    plain = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert plain["steps"]["relative"]["gain"] == relative.gain


def test_without_relative_candidates_there_are_no_steps():
    pair = {"linear": (RankSVM(), "context-free"), "chance": (RandomRanker(), "context")}
    found = compare(standing_matters(60), pair, **SETTINGS)
    assert found.steps == {}
    assert "Step by step" not in verdict(found)


def test_relative_candidates_alone_count_as_context():
    pair = {
        "alone": (LinearRanker(l2=1.0), "context-free"),
        "relative": (LinearRanker(l2=1.0, relative=True), "relative"),
    }
    found = compare(standing_matters(60), pair, **SETTINGS)
    assert found.most_chosen("any context") == "relative"
    assert list(found.steps) == ["relative"]


def test_forward_in_time_each_model_learns_from_earlier_sets_and_the_column_is_no_feature():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"race": np.repeat(np.arange(60), 4), "x": rng.normal(size=240)})
    frame["year"] = 1990 + frame.race // 3
    frame["place"] = frame.groupby("race").x.rank() + 1
    pair = {"linear": (RankSVM(), "context-free"), "chance": (RandomRanker(), "context")}
    found = compare(
        frame.sample(frac=1, random_state=0), pair, times="year", set_id="race", target="place", **SETTINGS
    )
    assert found.settings["forward_in_time"] is True
    assert int(np.isfinite(found.differences).sum()) == 45, "the first quarter is never held out"
    learnt, held_out = found.first_fold
    assert len(learnt) + len(held_out) <= 30
    with pytest.raises(ParameterError, match="names a column, but there is no table"):
        compare(standing_matters(60), pair, times="year", **SETTINGS)
    with pytest.raises(DataError, match="year first, as in 2019-03-31; it holds '01/02/2019'"):
        compare(frame.assign(day="01/02/2019"), pair, times="day", set_id="race", target="place", **SETTINGS)


def test_default_candidates_can_be_named_and_a_wrong_name_lists_them():
    found = compare(standing_matters(60), models=["linear", "linear relative"], **SETTINGS)
    assert found.names == ["linear", "linear relative"]
    with pytest.raises(ParameterError, match="SetAttention relative"):
        compare(standing_matters(60), models=["linear", "FAET"], **SETTINGS)


def test_a_budget_ends_training_and_the_result_says_which(capsys):
    slow = Ranker(FATE(), steps=100_000, batch_size=64, device="cpu", random_state=0, patience=None)
    plans = []
    begin = time.monotonic()
    pair = {"linear": (RankSVM(), "context-free"), "FATE": (slow, "context")}
    found = compare(standing_matters(60), pair, budget=2, on_plan=plans.append, **SETTINGS)
    assert time.monotonic() - begin < 30
    assert found.out_of_time == {"FATE": 3}
    assert "at most 2 seconds" in plans[0]
    assert any("time limit ended the training of FATE (in 3 fits)" in said for said in warnings_of(found))


def test_models_chosen_on_sets_set_aside_are_the_same_whatever_is_held_out():
    sets = standing_matters(80)
    candidates = {
        "a": (LinearRanker(l2=1.0), "context-free"),
        "b": (RandomRanker(), "context-free"),
        "c": (LinearRanker(l2=1.0, relative=True), "relative"),
    }
    found = compare(sets, candidates, folds=2, inner=0, resamples=100)
    learnt, held_out = found.first_fold
    assert len(learnt) == 32, "of 40 training sets a fifth is set aside"
    other = np.array(sets.targets)
    rows = np.concatenate([np.arange(*sets.offsets[i : i + 2]) for i in held_out])
    other[rows] = np.random.default_rng(0).permutation(other[rows])
    again = compare(sets.with_targets(other), candidates, folds=2, inner=0, resamples=100)
    assert again.chosen[0] == found.chosen[0]


class _Grouped(LinearRanker):
    """Refuses to learn without groups."""

    def _learn(self, sets: Sets, weights: np.ndarray) -> None:
        assert self._units is not None
        super()._learn(sets, weights)


def test_candidates_hold_out_whole_groups() -> None:
    pair = {"alone": (_Grouped(), "context-free"), "relative": (_Grouped(relative=True), "relative")}
    found = compare(standing_matters(60), pair, groups=np.arange(60) // 2, **SETTINGS)
    assert found.n_groups == 30


@pytest.mark.parametrize("times", [["31.12.2018", "01.02.2019"] * 30, [np.nan] + [1.0] * 59])
def test_times_without_an_order_are_refused(times: list[object]) -> None:
    pair = {"alone": (LinearRanker(), "context-free"), "relative": (LinearRanker(relative=True), "relative")}
    with pytest.raises(DataError, match="times needs one number or date"):
        compare(standing_matters(60), pair, times=times, **SETTINGS)
