"""The linear context logit: the formula by hand, offsets, means that never vary."""

import numpy as np
import pytest
from logit_cases import check_gradient, chosen_by, ragged

from entourage import load
from entourage.choice import LinearContextLogit, MultinomialLogit


def test_gradients_are_derivatives():
    rng = np.random.default_rng(0)
    X = ragged(rng, d=2)
    model = LinearContextLogit()
    sets = model.task.sets_of(X, [rng.integers(len(x)) for x in X])
    check_gradient(model, sets, np.arange(len(X)), rng.normal(size=6))


def test_the_truth_is_found_and_probabilities_are_the_formula():
    rng = np.random.default_rng(1)
    X = ragged(rng, 4000, 2)
    b, A = np.array([1.0, -0.5]), np.array([[0.5, 0.0], [-1.0, 0.8]])
    y = chosen_by([x @ (b + A.T @ x.mean(0)) for x in X], rng)
    model = LinearContextLogit().fit(X, y)
    truth = np.append(b, A)
    assert (np.abs(model.coef_ - truth) < 4 * model.standard_errors_).all()
    utilities = X[0] @ (model.coef_[:2] + model.interactions_.T @ X[0].mean(0))
    expected = np.exp(utilities) / np.exp(utilities).sum()
    assert model.predict_proba(X[:1])[0] == pytest.approx(expected)
    far = LinearContextLogit().fit([x + 100 for x in X], y)
    assert far.interactions_ == pytest.approx(model.interactions_, abs=1e-6)
    assert far.log_likelihood_ == pytest.approx(model.log_likelihood_, abs=1e-6)
    assert far.coef_[:2] == pytest.approx(model.coef_[:2] - model.interactions_.T @ [100, 100], abs=1e-3)


def test_a_mean_that_never_varies_has_no_interactions(tmp_path):
    rng = np.random.default_rng(2)
    X = np.concatenate([np.tile(np.eye(3)[:, 1:], (400, 1, 1)), rng.normal(size=(400, 3, 1))], axis=2)
    y = chosen_by(X @ [0.5, -0.5, 1.0], rng)
    model = LinearContextLogit().fit(X, y)
    assert model.varies_.tolist() == [False, False, True]
    assert len(model.coef_) == 3 + 3
    assert np.isfinite(model.standard_errors_).all()
    assert model.interactions_[:2].tolist() == [[0.0] * 3] * 2
    model.save(tmp_path / "m")
    assert np.array_equal(load(tmp_path / "m").predict_proba(X), model.predict_proba(X))
    fixed = LinearContextLogit().fit(X[:, :, :2] + 1e6, y)
    assert fixed.log_likelihood_ == pytest.approx(MultinomialLogit().fit(X[:, :, :2], y).log_likelihood_)
