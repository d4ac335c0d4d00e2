"""Time limits: the earlier one holds, they end with their block, and training ends with what it has learnt."""

import math
import time

import numpy as np
import pytest

from entourage import FATE, Ranker
from entourage.baselines import LambdaMART
from entourage.data import make_medoid
from entourage.errors import ParameterError
from entourage.selection.candidates import LinearLogit
from entourage.training.deadline import time_is_up, time_left, time_limit


def test_an_earlier_limit_outside_stays_and_limits_end_with_their_block():
    with time_limit(50):
        with time_limit(500):
            assert time_left() <= 50
        with time_limit(5):
            assert time_left() <= 5
        assert 5 < time_left() <= 50
    assert time_left() == math.inf


def test_a_limit_ends_with_its_block_also_by_an_error():
    with pytest.raises(ZeroDivisionError), time_limit(0):
        print(1 / (1 - time_is_up()))
    assert not time_is_up()


def test_a_limit_is_a_time():
    with pytest.raises(ParameterError, match="seconds"), time_limit(-1):
        pass


def test_training_ends_with_what_it_has_learnt():
    X, ranks = make_medoid(n_sets=200, random_state=0)
    begin = time.monotonic()
    with time_limit(0.5):
        model = Ranker(FATE(width=16), steps=1_000_000, patience=None, random_state=0).fit(X, ranks)
    assert time.monotonic() - begin < 20
    assert model.out_of_time_
    assert 0 < model.n_steps_ < 1_000_000
    assert np.isfinite(model.predict_scores(X)).all()


@pytest.mark.parametrize("model", [Ranker(FATE(width=4), steps=50), LambdaMART(50)])
def test_a_model_without_any_time_still_scores(model):
    X, ranks = make_medoid(n_sets=60, random_state=0)
    with time_limit(0):
        model.fit(X, ranks)
    assert np.isfinite(model.predict_scores(X)).all()


def test_an_exact_logit_ends_after_a_step_of_newtons_method():
    X = np.random.default_rng(0).normal(size=(200, 4, 3))
    y = (3 * X[..., 0] - X[..., 1]).argmax(1)
    with time_limit(0):
        model = LinearLogit().fit(X, y)
    assert not model.converged_
    assert model.score(X, y) > 0.5
    assert LinearLogit().fit(X, y).converged_
