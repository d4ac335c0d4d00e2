"""The verdict in words: known answers, the level of the test, what a reader must know besides."""

import dataclasses

import numpy as np

from entourage import FATE, FETA, ContextFree, Ranker
from entourage.baselines import RandomRanker, RankSVM
from entourage.data import Sets, make_hypervolume, make_medoid
from entourage.nets.context_ablated import ContextAblated
from entourage.selection.comparison import compare
from entourage.selection.verdict import headline, verdict

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
    assert verdict(found).startswith("No significant context effect: FATE − net = ")


def test_the_verdict_keeps_to_the_level_and_admits_a_narrow_margin():
    found = compare(SETS, PAIR, folds=2)
    for p, level, says in [
        (
            0.05,
            0.05,
            "Significant context effect: chance − linear = +0.020, 95 % CI [0.010, 0.030], p = 0.050",
        ),
        (0.0501, 0.05, "No significant context effect: chance − linear = +0.020, 95 % CI "),
        (0.03, 0.01, "No significant context effect: chance − linear = +0.020, 99 % CI "),
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
