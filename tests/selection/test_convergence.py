"""Training that ended too early is found, and said."""

import numpy as np
import pytest

from entourage import FATE, Ranker
from entourage.baselines import RandomRanker, RankSVM
from entourage.data import Sets, make_medoid
from entourage.selection.comparison import compare
from entourage.selection.convergence import learning_curve, still_improving
from entourage.selection.verdict import warnings_of

STEPS = np.arange(10, 130, 10.0)


def curve(losses, best_at=11):
    """A fit of twelve evaluations whose held-out score is best at one of them."""
    return np.stack([STEPS, losses, -np.abs(np.arange(12.0) - best_at)], axis=1)


FALLING = np.linspace(1.0, 0.2, 12)
SETTLED = np.r_[np.linspace(1.0, 0.2, 6), np.full(6, 0.2)]


@pytest.mark.parametrize(
    ("curves", "found"),
    [
        ([curve(FALLING)] * 4, {"net": 120}),
        ([curve(SETTLED)] * 4, {}),  # the loss fell early
        ([curve(FALLING, best_at=3)] * 4, {}),  # it overfits
        ([curve(FALLING, best_at=3)] * 3 + [curve(FALLING)] * 2, {"net": 120}),  # two fifths don't
        ([curve(FALLING)], {}),  # one fit says nothing of noise
        ([curve(FALLING)[:5]] * 4, {}),  # nor do a few evaluations
        ([curve(FALLING), curve(1.2 - FALLING)] * 2, {}),  # on the average nothing falls
    ],
)
def test_a_loss_that_still_falls_and_a_score_that_still_rises_are_needed(curves, found):
    assert still_improving({"net": curves, "linear": [np.zeros((0, 3))] * 4}) == found


def test_a_curve_is_what_a_net_recorded_and_nothing_of_other_models():
    X, ranks = make_medoid(n_sets=60, random_state=0)
    net = Ranker(FATE(4), steps=4, evaluate_every=2, device="cpu", random_state=0).fit(X, ranks)
    rows = [row for row in net.history_ if "score" in row]
    assert learning_curve(net).tolist() == [[row["step"], row["loss"], row["score"]] for row in rows]
    assert len(rows) >= 2
    assert learning_curve(RankSVM().fit(X, ranks)).shape == (0, 3)


@pytest.mark.parametrize(("steps", "improving"), [(20, True), (80, False)])
def test_training_that_ended_too_early_is_said(steps, improving):
    sets = Sets.of(*make_medoid(n_sets=300 if improving else 100, random_state=0))
    if not improving:  # the first feature decides, which is soon learnt
        sets = sets.with_targets(sets.objects[:, 0].copy())
    settings = {"steps": steps, "batch_size": 64, "learning_rate": 0.01, "device": "cpu"}
    candidates = {
        "linear": (RankSVM(), "context-free"),
        "FATE": (Ranker(FATE(16 if improving else 8), **settings), "context"),
        "chance": (RandomRanker(), "context"),
    }
    found = compare(sets, candidates, folds=3, inner=2 if improving else 1)
    assert found.still_improving == ({"FATE": steps} if improving else {})
    said = "FATE was still improving when training ended (20 steps): a short training can look like context; "
    assert [sentence.partition("give")[0] for sentence in warnings_of(found)] == ([said] if improving else [])
    assert found.to_json()["warnings"] == warnings_of(found)
