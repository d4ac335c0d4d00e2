"""Nets trained together end where they would have ended alone."""

import functools
import subprocess
import sys

import numpy as np
import pytest
import torch

from entourage import FATE, FETA, ContextFree, Ranker, SetAttention
from entourage.data import Sets, make_medoid
from entourage.errors import ParameterError, ShapeError
from entourage.estimators import fit_together
from entourage.losses import hinge_ranking_loss
from entourage.nets.ensemble import Stack
from entourage.nets.layers import TILE_OBJECTS
from entourage.training.batches import Resident
from entourage.training.stacked import train_together

DATA = [make_medoid(n_sets=300, random_state=seed) for seed in range(3)]


def rankers(net, **settings):
    settings = {"steps": 60, "batch_size": 64, "device": "cpu"} | settings
    return [Ranker(net, random_state=seed, **settings) for seed in range(3)]


def centred(model, X):
    """Scores up to a shift of the whole set, which no loss sees: only rounding moves the last bias."""
    scores = model.predict_scores(X)
    return scores - scores.mean(1, keepdims=True)


@pytest.mark.parametrize(
    ("net", "settings", "within"),
    [
        (FATE(width=16), {}, 1e-4),
        # A bias before batch normalisation has no gradient but rounding, which AdamW scales to full steps.
        (FATE(width=16, include_self=False, norm="batch", activation="relu"), {}, 5e-2),
        (FETA(width=16), {"optimizer": "sgd"}, 1e-4),
        (FETA(width=16, squash=True), {"clip": None, "ema": None}, 1e-4),
        (ContextFree(width=16), {"loss": "listnet"}, 1e-4),
        (ContextFree(width=16, depth=0), {"l1": 1e-2, "l2": 1e-2, "clip": 0.01}, 1e-4),
        (FATE(width=16), {"loss": "plackett_luce"}, 1e-4),
    ],
)
def test_together_equals_alone(net, settings, within):
    settings |= {"validation": 0.0}  # the last weights: rounding may decide which of two is the best
    together, alone = rankers(net, **settings), rankers(net, **settings)
    fit_together(together, DATA)
    for a, b, (X, ranks) in zip(together, alone, DATA, strict=True):
        b.fit(X, ranks)
        assert np.allclose(centred(a, X), centred(b, X), atol=within)
        assert a.n_steps_ == b.n_steps_
        for mine, theirs in zip(a.history_, b.history_, strict=True):
            assert mine["loss"] == pytest.approx(theirs["loss"], rel=1e-3)
            assert mine["step"] == theirs["step"]


def test_each_is_judged_by_its_own_held_out_sets():
    together, alone = rankers(FATE(width=16)), rankers(FATE(width=16))
    fit_together(together, DATA)
    for a, b, (X, ranks) in zip(together, alone, DATA, strict=True):
        b.fit(X, ranks)
        assert [row["score"] for row in a.history_] == pytest.approx(
            [row["score"] for row in b.history_], abs=0.01
        )
        assert a.best_score_ == max(row["score"] for row in a.history_)
    assert len({model.best_score_ for model in together}) == 3


def test_members_are_different_nets():
    models = rankers(FATE(width=16))
    fit_together(models, [DATA[0]] * 3)
    scores = [model.predict_scores(DATA[0][0]) for model in models]
    assert not np.allclose(scores[0], scores[1], atol=0.1)


def test_each_stops_by_itself():
    together, alone = (
        rankers(ContextFree(width=8), steps=400, patience=2),
        rankers(ContextFree(width=8), steps=400, patience=2),
    )
    fit_together(together, DATA)
    for model, (X, ranks) in zip(alone, DATA, strict=True):
        model.fit(X, ranks)
    stops = [model.n_steps_ for model in alone]
    assert [model.n_steps_ for model in together] == stops
    assert min(stops) < 400


def test_a_model_fitted_together_can_go_on_by_itself():
    together, alone = rankers(FETA(width=8), validation=0.0), rankers(FETA(width=8), validation=0.0)
    fit_together(together, DATA)
    alone[1].fit(*DATA[1])
    for model in (together[1], alone[1]):
        model.partial_fit(*DATA[0])
    X = DATA[2][0]
    assert np.allclose(centred(together[1], X), centred(alone[1], X), atol=5e-3)


def test_what_cannot_be_stacked_is_fitted_one_after_the_other():
    ragged = [Sets.from_list([*DATA[0][0][:50], DATA[0][0][50][:3]], [*DATA[0][1][:50], [0, 1, 2]])] * 2
    cases = [
        (rankers(FETA(width=4, order=2), steps=5), DATA),
        ([Ranker(FATE(width=w), steps=5, random_state=0) for w in (4, 8)], DATA[:2]),
        (rankers(FATE(width=4), steps=5)[:2], [(sets, None) for sets in ragged]),
        (rankers(FATE(width=4), steps=5)[:1], DATA[:1]),
    ]
    for models, data in cases:
        fit_together(models, data)
        assert [model.n_steps_ for model in models] == [5] * len(models)


@pytest.mark.parametrize("net", [FATE(width=4), FETA(width=4), ContextFree(width=4), SetAttention(width=4)])
def test_many_sets_are_scored_by_all_members_as_by_each(net):
    """More objects than a tile holds: effects of 6,768 sets failed here."""
    scorers = [net.build(2, torch.Generator().manual_seed(seed)) for seed in (0, 1)]
    objects = torch.randn(TILE_OBJECTS["cpu"] // 2 + 1, 2, 2, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        together = Stack(scorers).each(objects)
        each = torch.stack([scorer(objects) for scorer in scorers])
    assert torch.allclose(together, each, atol=1e-5)


def test_weights_and_situations_are_stacked_too():
    rng = np.random.default_rng(0)
    situation, weights = rng.random((300, 2)).astype(np.float32), rng.random(300)
    sets = [Sets.of(X, ranks, situation) for X, ranks in DATA]
    models = rankers(FATE(width=8), validation=0.0)
    starts = [model.prepare(s, None, None, weights) for model, s in zip(models, sets, strict=True)]
    outcomes = train_together(
        [s.scorer for s in starts], hinge_ranking_loss, [s.data for s in starts], [s.plan for s in starts]
    )
    alone = rankers(FATE(width=8), validation=0.0)[2].fit(sets[2], sample_weight=weights)
    for name, value in alone.scorer_.state_dict().items():
        assert torch.allclose(value, outcomes[2].weights[name], atol=1e-3)


def test_a_stack_of_one_is_trained_as_the_net_itself():
    """Its biases have two axes there, but they are no matrices, and so are not decayed."""
    settings = {"validation": 0.0, "weight_decay": 3.0}
    start = rankers(FATE(width=8), **settings)[0].prepare(*DATA[0], None, None)
    (outcome,) = train_together([start.scorer], hinge_ranking_loss, [start.data], [start.plan])
    alone = rankers(FATE(width=8), **settings)[0].fit(*DATA[0])
    for name, value in alone.scorer_.state_dict().items():
        assert torch.allclose(value, outcome.weights[name], atol=1e-3), name


def test_other_shapes_and_losses_of_one_number_are_refused():
    models = rankers(FATE(width=4))[:2]
    starts = [model.prepare(*data, None, None) for model, data in zip(models, DATA, strict=False)]
    short = Resident(Sets.of(DATA[0][0][:9], DATA[0][1][:9]), torch.device("cpu"))
    with pytest.raises(ShapeError, match="data of one shape"):
        train_together(
            [s.scorer for s in starts], hinge_ranking_loss, [starts[0].data, short], [s.plan for s in starts]
        )

    def mean_loss(scores, ranks, mask):
        return hinge_ranking_loss(scores, ranks, mask).mean()

    with pytest.raises(ParameterError, match="when nets are trained together"):
        fit_together(rankers(FATE(width=4), loss=functools.partial(mean_loss)), DATA)


TRACED = """
import functools, warnings
import numpy as np, torch
from entourage import FATE, Ranker
from entourage.data import make_medoid
from entourage.estimators import fit_together

torch.compile = functools.partial(torch.compile, backend="eager")
data = [make_medoid(n_sets=100, random_state=seed) for seed in range(3)]
settings = {"steps": 4, "batch_size": 50, "validation": 0, "device": "cpu"}
plain, traced = (
    [Ranker(FATE(width=8), random_state=seed, compile=compile, **settings) for seed in range(3)]
    for compile in (False, True)
)
fit_together(plain, data)
with warnings.catch_warnings():
    warnings.filterwarnings("error", message="This net and loss can't be compiled")
    fit_together(traced, data)
for one, other in zip(plain, traced):
    np.testing.assert_allclose(one.predict_scores(data[0][0]), other.predict_scores(data[0][0]), atol=1e-4)
"""


@pytest.mark.heavy
def test_steps_of_several_nets_can_be_traced():
    """As `torch.compile` does it, but for making kernels; by itself, since checks of shapes can't be traced."""
    done = subprocess.run([sys.executable, "-c", TRACED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_compiled_steps_of_several_nets_are_of_full_batches_alone(monkeypatch):
    shapes = []

    def look(function, **options):
        def run(*inputs):
            shapes.append(inputs[0].shape[:2])
            return function(*inputs)

        return run

    data = [make_medoid(n_sets=100, random_state=seed) for seed in range(3)]
    settings = {"steps": 4, "batch_size": 64, "validation": 0}
    plain = [Ranker(FATE(width=8), random_state=seed, **settings) for seed in range(3)]
    fit_together(plain, data)
    monkeypatch.setattr(torch, "compile", look)
    compiled = [Ranker(FATE(width=8), random_state=seed, compile=True, **settings) for seed in range(3)]
    fit_together(compiled, data)
    assert shapes == [(3, 64)] * 2
    for one, other in zip(plain, compiled, strict=True):
        np.testing.assert_array_equal(one.predict_scores(data[0][0]), other.predict_scores(data[0][0]))
