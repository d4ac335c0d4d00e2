"""Batches of whole sets, or people, change no result: every family, by its gradient and by its fit."""

import warnings

import numpy as np
import pytest
from logit_cases import ragged
from sklearn.base import clone

from entourage.choice import (
    ContextualLogit,
    CrossNestedLogit,
    LatentClassLogit,
    LinearContextLogit,
    MixedLogit,
    MultinomialLogit,
    NestedLogit,
    RandomRegret,
)
from entourage.choice.batches import Batches
from entourage.choice.likelihood import Packed, stretches

RNG = np.random.default_rng(0)
X = [x[np.argsort(RNG.random(len(x)))] for x in ragged(RNG, 120, 2, (2, 6))]
IDS = [np.column_stack([RNG.permutation(5)[: len(x)] + 1.0, x]) for x in X]
WHO = RNG.permutation(np.arange(120) % 25)
TASTES = [[1.5, -0.5] if person % 3 else [-1.5, -0.5] for person in WHO]
Y = [int((x @ b + RNG.gumbel(size=len(x))).argmax()) for x, b in zip(X, TASTES, strict=True)]
WEIGHTS = RNG.uniform(0.5, 2.0, 25)[WHO]
CASES = {
    "multinomial": (MultinomialLogit(l2=0.3), X),
    "nested": (NestedLogit([[1, 2], [3, 4]]), IDS),
    "cross-nested": (CrossNestedLogit([[1, 2], [2, 3, 4]], allocation="equal"), IDS),
    "contextual": (ContextualLogit(l2=0.1), X),
    "contextual of rank 1": (ContextualLogit(1, l2=0.5), X),
    "linear context": (LinearContextLogit(), X),
    "regret": (RandomRegret(), X),
    "regret, scale estimated": (RandomRegret(scale="estimated"), X),
    "latent classes": (LatentClassLogit(2, restarts=1, l2=0.01), X),
    "mixed": (MixedLogit([0], draws=20), X),
    "mixed, correlated": (MixedLogit({0: "normal", 1: "normal"}, correlated=True, draws=20), X),
    "mixed, unscrambled": (MixedLogit({1: "-lognormal"}, draws=20, scramble=False), X),
}


def cut_small(monkeypatch):
    """Compute of 40 objects at a time, and draw again for each batch."""
    monkeypatch.setattr("entourage.choice.likelihood.AT_ONCE", 40)
    monkeypatch.setattr("entourage.choice.mixed.CHUNK", 40 * 20)
    monkeypatch.setattr("entourage.choice.mixed.MOST_KEPT", 0)


@pytest.mark.parametrize("name", CASES)
def test_sums_over_batches_are_those_over_all(name, monkeypatch):
    model, sets = CASES[name][0], CASES[name][0].task.sets_of(CASES[name][1], Y)
    model = clone(model)
    model._prepare(sets)
    chosen = np.flatnonzero(sets.targets == 0)
    weights = WEIGHTS[np.unique(WHO, return_index=True)[1]] if model._panel else WEIGHTS
    whole = model._learn_from(sets, WHO)
    steps = model._steps(whole)
    theta = RNG.normal(size=len(steps)) * 0.3 * steps
    cut_small(monkeypatch)
    cut = model._learn_from(sets, WHO)
    assert np.array_equal(cut.features, whole.features)
    assert model._steps(cut) == pytest.approx(steps, rel=1e-12)
    one, many = Batches(whole, chosen, weights, 10**9), Batches(cut, chosen, weights, 40)
    assert len(list(one)) == 1
    assert len(list(many)) > 8
    groups = None if model._panel else WHO
    for found, expected in (
        (data.total(model._contributions, theta) for data in (many, one)),
        (data.outer_products(model._contributions, theta, groups) for data in (many, one)),
    ):
        assert found[0] == pytest.approx(expected[0], rel=1e-12)
        assert found[1] == pytest.approx(expected[1], rel=1e-9, abs=1e-9)
    if model._closed_form:
        found, expected = (data.information(model._information, theta) for data in (many, one))
    else:
        found, expected = (
            data.information_by_differences(model._contributions, theta, steps) for data in (many, one)
        )
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize(
    "name", [name for name in CASES if "estimated" not in name]
)  # μ is not identified here
def test_a_fit_in_batches_has_the_same_maximum(name, monkeypatch):
    model, X = CASES[name]
    with warnings.catch_warnings(action="ignore"):
        whole = clone(model).fit(X, Y, groups=WHO, sample_weight=WEIGHTS)
        predicted = whole.predict_proba(X)
        worth = whole.logsum(X) if whole.has_logsum else None
        cut_small(monkeypatch)
        parts = clone(model).fit(X, Y, groups=WHO, sample_weight=WEIGHTS)
    assert parts.log_likelihood_ == pytest.approx(whole.log_likelihood_, abs=1e-9)
    errors = np.where(whole.open_, 1.0, whole.standard_errors_)
    assert np.abs((parts.coef_ - whole.coef_) / errors).max() < 1e-6
    for key in ("standard_errors_", "robust_standard_errors_"):
        assert getattr(parts, key) == pytest.approx(getattr(whole, key), rel=1e-5, nan_ok=True)
    assert np.concatenate(whole.predict_proba(X)) == pytest.approx(np.concatenate(predicted), abs=1e-12)
    if worth is not None:
        assert whole.logsum(X) == pytest.approx(worth, abs=1e-12)
    if whole._panel:
        assert parts.individual_coefficients_ == pytest.approx(whole.individual_coefficients_, abs=1e-6)
        assert parts.people_ == whole.people_ == list(range(25))


def test_batches_are_of_whole_people():
    model = MixedLogit([0], draws=3)
    sets = model.task.sets_of(X, Y)
    model._prepare(sets)
    packed = model._learn_from(sets, WHO)
    found = list(Batches(packed, np.flatnonzero(sets.targets == 0), np.ones(25), 40))
    assert [batch.units.start for batch in found[1:]] == [batch.units.stop for batch in found[:-1]]
    assert sum(len(batch.packed.heads) - 1 for batch in found) == 25
    assert sum(len(batch.packed.features) for batch in found) == len(sets.objects)
    big = [len(batch.packed.features) for batch in found if len(batch.packed.heads) > 2]
    assert max(big) <= 40


def test_a_person_of_many_choices_is_computed_a_few_at_a_time(monkeypatch):
    model = MixedLogit({0: "lognormal", 1: "normal"}, draws=20, correlated=True)
    sets = model.task.sets_of(X, Y)
    model._prepare(sets)
    chosen, theta = np.flatnonzero(sets.targets == 0), np.array([0.1, -0.3, 0.4, 0.6, 0.2])
    packed = model._learn_from(sets, np.zeros(len(sets), dtype=int))
    whole = model._simulated(theta, packed, chosen)
    monkeypatch.setattr("entourage.choice.mixed.CHUNK", 20 * 15)
    for found, expected in zip(model._simulated(theta, packed, chosen), whole, strict=True):
        assert found.shape == expected.shape
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_draws_made_again_are_the_same_draws():
    model = MixedLogit({0: "normal", 1: "uniform"}, draws=7)
    model._prepare(model.task.sets_of(X, Y))
    assert np.array_equal(model._halton(4, 3), model._halton(7)[3:])
    model.scramble = False
    assert np.array_equal(model._halton(4, 3), model._halton(7)[3:])


def test_stretches_hold_what_fits_or_one():
    assert list(stretches(np.array([0, 3, 5, 20, 21]), 5)) == [(0, 2), (2, 3), (3, 4)]
    assert list(stretches(np.array([0, 3]), 1)) == [(0, 1)]


def test_what_is_shared_is_taken_away_set_by_set(monkeypatch):
    sets = MultinomialLogit().task.sets_of([x + 1e3 * i for i, x in enumerate(X)], Y)
    whole = Packed.centred(sets).features
    monkeypatch.setattr("entourage.choice.likelihood.AT_ONCE", 7)
    assert np.array_equal(Packed.centred(sets).features, whole)
    assert np.abs(np.add.reduceat(whole, sets.offsets[:-1])).max() < 1e-9
