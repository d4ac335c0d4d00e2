"""Outside results: Biogeme's published reports on Swissmetro.

They are in its repository, github.com/michelbierlaire/biogeme, examples/swissmetro, at commit
01c8da0caeff631001a7f6448f0558795def2cd0: 01logit, 09nested.html, 11cnl.html and 05normalMixtureIntegral.html, whose
integral is by quadrature and so has no simulation noise. The scripts that made them lie beside them.
"""

import numpy as np
import pytest
from data_files import real

from benchmarks.real.swissmetro import load
from entourage.choice import CrossNestedLogit, MixedLogit, MultinomialLogit, NestedLogit


@pytest.fixture(scope="module")
def views():
    return load(real("swissmetro").parent).views


def test_the_published_multinomial_logit_comes_out(views):
    model = MultinomialLogit().fit(views["usual"])  # time, cost, train, car
    assert model.log_likelihood_ == pytest.approx(-5331.252, abs=1e-3)
    assert model.coef_ == pytest.approx([-1.278, -1.084, -0.701, -0.155], abs=5e-4)
    assert model.robust_standard_errors_ == pytest.approx([0.104, 0.0682, 0.0826, 0.0582], rel=0.01)
    assert model.null_log_likelihood_ == pytest.approx(-6964.663, abs=1e-3)


def test_the_published_nested_logit_comes_out(views):
    model = NestedLogit([[1, 3]]).fit(views["nested"])  # train, Swissmetro, car
    assert model.log_likelihood_ == pytest.approx(-5236.900, abs=1e-3)
    assert 1 / model.dissimilarities_ == pytest.approx([2.05], abs=5e-3)
    swissmetro, car, time, cost, _ = model.coef_
    assert [-swissmetro, car - swissmetro] == pytest.approx([-0.512, -0.167], abs=5e-4)
    assert [time, cost] == pytest.approx([-0.899, -0.857], abs=5e-4)
    assert model.standard_errors_[2:4] == pytest.approx([0.057, 0.0463], rel=0.01)
    assert model.robust_standard_errors_[2:4] == pytest.approx([0.107, 0.06], rel=0.01)


def test_the_published_cross_nested_logit_comes_out(views):
    model = CrossNestedLogit([[1, 3], [1, 2]]).fit(views["nested"])  # what exists; what is public
    assert model.log_likelihood_ == pytest.approx(-5214.049, abs=1e-3)
    assert 1 / model.dissimilarities_ == pytest.approx([2.51, 4.11], abs=6e-3)
    assert model.allocations_[0] == pytest.approx([0.495, 0.505], abs=5e-4)
    assert model.standard_errors_[4] == pytest.approx(0.0289, rel=0.01)
    assert model.coef_[2:4] == pytest.approx([-0.777, -0.819], abs=5e-4)


def test_the_likelihood_of_the_published_mixed_logit_comes_out_within_simulation_noise(views):
    """Of the published estimates, rounded to three digits; `benchmarks.calibration.mixed_swissmetro` fits the model."""
    model = MixedLogit([0], draws=200)
    sets = views["usual"]
    model._prepare(sets)
    packed = model._learn_from(sets, np.arange(len(sets)))
    theta, chosen = np.array([-2.26, -1.29, -0.401, 0.137, 1.65]), np.flatnonzero(sets.targets == 0)
    z = np.linspace(-8, 8, 200)  # integrated without draws, by the trapezoidal rule
    taste = np.stack([theta[0] + theta[4] * z, *(np.full(200, b) for b in theta[1:4])])
    log_p = packed.log_softmax(packed.features @ taste)[chosen] - z**2 / 2
    exact = (np.logaddexp.reduce(log_p, axis=1) - np.logaddexp.reduce(-(z**2) / 2)).sum()
    assert exact == pytest.approx(-5214.879, abs=0.03)
    values, _ = model._contributions(theta, packed, chosen)
    assert values.sum() == pytest.approx(exact, abs=1.0)
