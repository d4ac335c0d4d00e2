"""What tests of choice models share: simulated choices, and gradients by differences."""

import numpy as np


def ragged(rng, n=60, d=3, sizes=(2, 5)):
    return [rng.normal(size=(m, d)) for m in rng.integers(*sizes, size=n)]


def chosen_by(utilities, rng):
    """Choose with logit probabilities: the best after Gumbel noise."""
    return np.array([int((u + rng.gumbel(size=len(u))).argmax()) for u in utilities])


def check_gradient(model, sets, people, theta):
    """Compare the gradients of the likelihood, and of what is reported, with differences."""
    model._prepare(sets)
    packed, chosen = model._learn_from(sets, people), np.flatnonzero(sets.targets == 0)
    assert len(model._start(packed)) == len(theta)
    model.n_features_in_ = sets.n_features
    _, slopes = model._contributions(theta, packed, chosen)
    _, reported = model._reported(theta)
    for i, step in enumerate(1e-6 * np.eye(len(theta))):
        change = (
            model._contributions(theta + step, packed, chosen)[0]
            - model._contributions(theta - step, packed, chosen)[0]
        )
        assert np.abs(slopes[:, i] - change / 2e-6).max() < 1e-6
        change = model._reported(theta + step)[0] - model._reported(theta - step)[0]
        assert np.abs(reported[:, i] - change / 2e-6).max() < 1e-6
