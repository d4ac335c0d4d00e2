"""The verdict in words: known answers, the level of the test, what a reader must know besides."""

import dataclasses
from types import SimpleNamespace

import numpy as np

from entourage import FATE, FETA, ContextFree, Ranker
from entourage.baselines import RandomRanker, RankSVM
from entourage.data import Sets, make_hypervolume, make_medoid
from entourage.nets.context_ablated import ContextAblated
from entourage.selection.comparison import compare
from entourage.selection.tiers import ANY_CONTEXT, Step
from entourage.selection.verdict import headline, verdict, warnings_of

X, RANKS = make_hypervolume(n_sets=60, random_state=0)
SETS = Sets.of(X, RANKS)
PAIR = {"linear": (RankSVM(), "context-free"), "chance": (RandomRanker(), "context")}


def small(net, steps):
    return Ranker(
        net, steps=steps, batch_size=64, learning_rate=0.02, validation=0.0, device="cpu", random_state=0
    )


def test_on_the_medoid_task_context_matters():
    sets = Sets.of(*make_medoid(n_sets=200, random_state=0))
    candidates = {
        "linear": (RankSVM(), "context-free"),
        "FETA ablated": (small(ContextAblated(FETA(16)), 60), "context-free"),
        "FETA": (small(FETA(16), 60), "context"),
    }
    found = compare(sets, candidates, folds=3, inner=1)
    assert found.p_value <= 0.001 < 0.02 < found.interval[0]
    sentence = verdict(found)
    assert sentence.startswith(
        f"Significant context effect: FETA − FETA ablated = +{found.gain:.3f}, 95 % CI [0."
    )
    assert f"about {100 * found.gain:.1f} more are ordered rightly." in sentence
    assert "], p < 0.001, n = 200 sets (0/1-ranking accuracy): of 100 pairs" in sentence


def test_on_random_rankings_there_is_no_evidence():
    rng = np.random.default_rng(1)
    sets = Sets.of(X, np.argsort(rng.random(RANKS.shape), axis=1))
    candidates = {"net": (small(ContextFree(8), 30), "context-free"), "FATE": (small(FATE(8), 30), "context")}
    found = compare(sets, candidates, folds=3)
    assert found.p_value > 0.05
    assert verdict(found).startswith("No significant context effect")
    assert ": FATE − net = " in verdict(found)


def test_the_verdict_keeps_to_the_level_and_admits_a_narrow_margin():
    found = compare(SETS, PAIR, folds=2)
    for p, level, says in [
        (
            0.05,
            0.05,
            "Significant context effect: chance − linear = +0.020, 95 % CI [0.010, 0.030], p = 0.050",
        ),
        (
            0.0501,
            0.05,
            "No significant context effect (by the test, although the interval excludes 0): chance − linear = +0.020, "
            "95 % CI [0.010, 0.030], p = 0.050",
        ),
        (
            0.03,
            0.01,
            "No significant context effect (by the test, although the interval excludes 0): chance − linear = +0.020, "
            "99 % CI ",
        ),
    ]:
        changed = dataclasses.replace(found, p_value=p, level=level, gain=0.02, interval=(0.01, 0.03))
        assert verdict(changed).startswith(says)
    narrow = dataclasses.replace(found, p_value=0.04, gain=0.02, interval=(-0.001, 0.041))
    assert verdict(narrow).startswith("Significant context effect (narrowly: ")
    assert "= +0.020, 95 % CI [−0.001, 0.041], p = 0.040, n = 60 sets (0/1-ranking accuracy)" in verdict(
        narrow
    )
    assert "n = 60 sets in 4 groups" in verdict(dataclasses.replace(found, n_groups=4))


def test_the_headline_says_the_same_in_plain_words():
    found = dataclasses.replace(compare(SETS, PAIR, folds=2), gain=0.02)
    sure = dataclasses.replace(found, p_value=0.001, interval=(0.01, 0.03))
    assert headline(sure) == (
        "Significant context effect: models that see the other objects raise 0/1-ranking accuracy by 0.020 "
        "(95 % CI 0.010 to 0.030): of 100 pairs about 2.0 more are ordered rightly."
    )
    narrow = dataclasses.replace(found, p_value=0.04, interval=(-0.001, 0.041))
    assert headline(narrow).startswith("Significant context effect, narrowly: ")
    none = dataclasses.replace(narrow, p_value=0.2, level=0.1)
    assert headline(none) == (
        "No significant context effect: models that see the other objects change 0/1-ranking accuracy by +0.020 "
        "(90 % CI −0.001 to 0.041)."
    )
    few = dataclasses.replace(sure, p_value=0.09)
    assert headline(few).startswith(
        "No significant context effect by the test, although the interval excludes 0: models"
    )
    worse = dataclasses.replace(sure, gain=-0.02, interval=(-0.03, -0.01), p_value=0.99)
    assert headline(worse) == (
        "No significant context effect (models with context predict worse here): models that see the other objects "
        "change 0/1-ranking accuracy by −0.020 (95 % CI −0.030 to −0.010)."
    )
    lower = {"metric": "ranking_loss"}
    assert "objects lower 0/1-ranking loss by 0.020 (" in headline(dataclasses.replace(sure, **lower))
    assert "change 0/1-ranking loss by −0.020 (90 % CI −0.041 to 0.001)" in headline(
        dataclasses.replace(none, **lower)
    )


def gains_over_controls(seeds, *, n_sets, steps):
    """What FATE and FETA gain over their controls on rankings by a linear utility alone, judged by fresh sets."""
    gains = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(n_sets + 500, 5, 4))
        ranks = np.argsort(
            np.argsort(-(x @ [1.0, -0.7, 0.4, 0.0] + rng.gumbel(size=x.shape[:2])), axis=1), axis=1
        )
        values = [
            Ranker(net, steps=steps, batch_size=64, device="cpu", random_state=seed)
            .fit(x[:n_sets], ranks[:n_sets])
            .score(x[n_sets:], ranks[n_sets:])
            for net in (FATE(), ContextAblated(FATE()), FETA(), ContextAblated(FETA()))
        ]
        gains.append([values[0] - values[1], values[2] - values[3]])
    return np.array(gains)


def test_without_a_context_effect_a_net_gains_nothing_over_its_control():
    gains = gains_over_controls(range(3), n_sets=100, steps=60)
    errors = gains.std(0, ddof=1) / np.sqrt(len(gains))
    assert (gains.mean(0) < 0.005 + 2 * errors).all(), "benchmarks/calibration/verdict.py has the many seeds"


# --- sentences of numbers that are given, not fitted ----------------------------------------------


def numbers(**changes):
    """What the sentences are made of: a gain of 0.02 that is significant, on three folds."""
    fields = {
        "metric": "ranking_accuracy",
        "p_value": 0.01,
        "level": 0.05,
        "gain": 0.02,
        "interval": (0.01, 0.03),
        "differences": np.array([0.02, np.nan, 0.02]),
        "n_groups": None,
        "chosen": [{ANY_CONTEXT: "FATE", "context-free": "linear"}] * 3,
        "steps": {},
        "left_out": {},
        "out_of_time": {},
        "still_improving": {},
    }
    assert set(changes) <= set(fields)
    return SimpleNamespace(**fields | changes)


def test_the_verdict_names_the_models_that_most_folds_chose():
    chosen = [
        {ANY_CONTEXT: "FETA", "context-free": "linear"},
        {ANY_CONTEXT: "FATE", "context-free": "trees"},
        {ANY_CONTEXT: "FATE", "context-free": "linear"},
    ]
    assert verdict(numbers(chosen=chosen)) == (
        "Significant context effect: FATE (2 of 3 folds) − linear (2 of 3 folds) = +0.020, 95 % CI [0.010, 0.030], "
        "p = 0.010, n = 2 sets (0/1-ranking accuracy): of 100 pairs about 2.0 more are ordered rightly."
    )


def test_the_verdict_counts_thousands_and_says_where_lower_is_better():
    lower = numbers(
        metric="ranking_loss",
        differences=np.zeros(1234),
        n_groups=1200,
        gain=-0.02,
        interval=(-0.03, -0.01),
        p_value=0.9,
    )
    assert verdict(lower) == (
        "No significant context effect (models with context predict worse here): FATE − linear = −0.020, 95 % CI "
        "[−0.030, −0.010], p = 0.900, n = 1,234 sets in 1,200 groups (0/1-ranking loss, by which it is lower)."
    )


def test_small_p_values_are_said_to_be_small_from_one_in_a_thousand_down():
    for p, says in [(0.0, "p < 0.001"), (0.00099, "p < 0.001"), (0.001, "p = 0.001"), (0.0126, "p = 0.013")]:
        assert f", {says}, n = " in verdict(numbers(p_value=p))
        step = Step("net", ["FATE"], ["relative"], 0.02, (0.01, 0.03), p, np.zeros(2))
        assert f" [0.010, 0.030], {says} (FATE − relative)" in verdict(numbers(steps={"net": step}))


def test_metrics_without_a_meaning_in_words_leave_it_out():
    assert verdict(numbers(metric="ndcg")).endswith(", n = 2 sets (NDCG).")
    assert headline(numbers(metric="ndcg")).endswith(" raise NDCG by 0.020 (95 % CI 0.010 to 0.030).")


def test_a_gain_means_so_many_of_a_hundred():
    for sentence in (verdict, headline):
        assert ": of 100 pairs about 20.0 more are ordered rightly." in sentence(numbers(gain=0.2))


def test_an_interval_that_ends_at_0_is_narrow():
    for low, narrow in [(-0.001, True), (0.0, True), (0.001, False)]:
        for sentence in (verdict, headline):
            assert ("narrowly" in sentence(numbers(interval=(low, 0.03)))) is narrow
    assert "narrowly" not in verdict(numbers(interval=(-0.001, 0.03), p_value=0.5))


def test_an_interval_that_ends_at_0_does_not_exclude_it():
    for low, excluded in [(0.0, False), (0.001, True)]:
        for sentence in (verdict, headline):
            found = sentence(numbers(interval=(low, 0.03), p_value=0.5))
            assert ("although the interval excludes 0" in found) is excluded


def test_a_p_value_at_the_level_is_significant():
    for p, says in [(0.05, "Significant"), (0.0501, "No significant")]:
        assert verdict(numbers(p_value=p)).startswith(says)
        assert headline(numbers(p_value=p)).startswith(says)


def test_steps_say_what_each_tier_adds_to_the_one_before():
    steps = {
        "relative": Step(
            "relative", ["rel", "rel"], ["linear", "linear"], 0.015, (0.005, 0.025), 0.004, np.zeros(2)
        ),
        "net": Step("net", ["FATE", "FATE"], ["rel", "linear"], -0.002, (-0.01, 0.006), 0.61, np.zeros(2)),
    }
    assert verdict(numbers(steps=steps)).endswith(
        " Step by step: the standing of an object in its set +0.015 [0.005, 0.025], p = 0.004 (rel − linear); then "
        "interactions in a net of the whole set −0.002 [−0.010, 0.006], p = 0.610 (FATE − rel (1 of 2 folds))."
    )


def test_what_a_reader_must_know_besides():
    assert warnings_of(numbers()) == []
    assert warnings_of(numbers(left_out={"FATE": "it needs numbers", "SVM": "no time"})) == [
        "FATE was left out: it needs numbers.",
        "SVM was left out: no time.",
    ]
    assert warnings_of(numbers(out_of_time={"FATE": 2, "FETA": 1})) == [
        "The time limit ended the training of FATE (in 2 fits), FETA (in 1 fits): these may do better; give more time "
        "(--budget)."
    ]
    end = (
        "still improving when training ended (1,500 steps): a short training can look like context; give more "
        "steps (--steps)."
    )
    for names, joined in [
        (["A"], "A was"),
        (["A", "B"], "A and B were"),
        (["A", "B", "C"], "A, B and C were"),
    ]:
        improving = dict.fromkeys(names, 300) | {names[0]: 1500}
        assert warnings_of(numbers(still_improving=improving)) == [f"{joined} {end}"]
