"""CUDA graphs change nothing but the time; tried where there is a GPU."""

import numpy as np
import pytest
import torch

from entourage import FATE, FETA, ContextFree, Ranker, SetAttention
from entourage.data import make_medoid
from entourage.training import cuda_graphs

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")

X, RANKS = make_medoid(n_sets=600, random_state=0)
RAGGED = [part[: 2 + i % 4] for i, part in enumerate(X)], [row[: 2 + i % 4] for i, row in enumerate(RANKS)]
CASES = {
    "fate": (FATE(width=16), {}),
    "feta": (FETA(width=16), {}),
    "listnet": (ContextFree(width=16), {"loss": "listnet"}),
    "batch-norm": (FATE(width=16, activation="relu", norm="batch"), {}),
    "sgd": (FATE(width=16), {"optimizer": "sgd"}),
    "dropout": (SetAttention(width=16, dropout=0.2), {}),
    "ensemble": (SetAttention(width=16, dropout=0.2), {"members": 3}),
    "ensemble-batch-norm": (FATE(width=16, activation="relu", norm="batch"), {"members": 3}),
    "sub-sets": (FATE(width=16), {"subset_size": (2, 4)}),
    "bfloat16": (FATE(width=16), {"precision": "bfloat16"}),
    "l1-weights": (FATE(width=16), {"l1": 1e-4}),
}


def fit(net, data, **settings):
    settings = {"steps": 60, "batch_size": 64, "device": "cuda", "random_state": 0} | settings
    return Ranker(net, **settings).fit(*data)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("data", [(X, RANKS), RAGGED], ids=["one-size", "ragged"])
def test_recorded_steps_end_where_plain_ones_do(case, data, monkeypatch):
    net, settings = CASES[case]
    recorded = fit(net, data, **settings)
    monkeypatch.setattr(cuda_graphs, "WARM_UP", 10**9)
    plain = fit(net, data, **settings)
    np.testing.assert_array_equal(recorded.predict_scores(X), plain.predict_scores(X))


def test_a_step_that_can_not_be_recorded_goes_on_with_a_warning():
    with pytest.warns(UserWarning, match="can't be recorded"):
        model = fit(FETA(width=8, order=2), (X, RANKS))
    assert model.score(X, RANKS) > 0.6


def test_only_so_many_shapes_are_recorded(monkeypatch):
    monkeypatch.setattr(cuda_graphs, "MOST_GRAPHS", 1)
    assert fit(FATE(width=8), RAGGED).score(*RAGGED) > 0.6


def test_an_interrupted_run_goes_on(tmp_path):
    settings = {"evaluate_every": 20, "checkpoint": tmp_path / "run"}

    class StopError(Exception):
        pass

    def stop(score):
        raise StopError

    model = Ranker(FATE(width=8), steps=60, batch_size=64, device="cuda", random_state=0, **settings)
    with pytest.raises(StopError):
        model.fit(X, RANKS, on_evaluation=stop)
    model.fit(X, RANKS)
    whole = fit(FATE(width=8), (X, RANKS), evaluate_every=20)
    np.testing.assert_allclose(model.predict_scores(X), whole.predict_scores(X), rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore")  # what torch says of itself while it compiles
@pytest.mark.parametrize("settings", [{}, {"members": 3}], ids=["one", "ensemble"])
def test_compiled_steps_end_close_to_plain_ones(settings):
    compiled = fit(FATE(width=16), (X, RANKS), compile=True, **settings)
    plain = fit(FATE(width=16), (X, RANKS), **settings)
    np.testing.assert_allclose(compiled.predict_scores(X), plain.predict_scores(X), rtol=0.05, atol=0.05)


def test_members_of_an_ensemble_on_branches_learn_what_each_learns_alone():
    whole = fit(FATE(width=16), (X, RANKS), members=3, validation=0)
    alone = fit(FATE(width=16), (X, RANKS), validation=0)
    whole.scorer_ = whole.scorer_.scorer(0)
    np.testing.assert_allclose(whole.predict_scores(X), alone.predict_scores(X), rtol=1e-3, atol=1e-4)
