"""Latent classes: the mixture worked by hand, EM and Newton, classes in order, people who are known."""

import numpy as np
import pytest
from logit_cases import check_gradient, chosen_by, ragged

from entourage import load
from entourage.choice import LatentClassLogit, MultinomialLogit
from entourage.errors import DataError, ParameterError, ShapeError


def panel(seed=0, people=60, each=8, share=0.7):
    """Return choices of people of two kinds, who they are, and which kind each is."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(people * each, 3, 2))
    who = np.repeat(np.arange(people), each)
    kind = (np.arange(people) >= share * people).astype(int)
    taste = np.array([[2.0, 0.0], [-1.0, 2.0]])[kind][who]
    y = ((X * taste[:, None]).sum(2) + rng.gumbel(size=X.shape[:2])).argmax(1)
    return X, y, who, kind


@pytest.fixture(scope="module")
def fitted():
    X, y, who, kind = panel()
    return LatentClassLogit(2, restarts=2).fit(X, y, groups=who), X, y, who, kind


def test_gradients_are_derivatives():
    rng = np.random.default_rng(0)
    X = ragged(rng)
    who = rng.integers(0, 12, len(X))
    who = np.unique(who, return_inverse=True)[1]
    z = rng.normal(size=(who.max() + 1, 2))[who]
    model = LatentClassLogit(3)
    sets = model.task.sets_of(X, [rng.integers(len(x)) for x in X], z)
    check_gradient(model, sets, who, rng.normal(size=3 * 3 + 2 * 3))


def test_the_likelihood_is_the_mixture_of_products_worked_by_hand(fitted):
    model, X, y, who, _ = fitted
    prior, total = model.class_probabilities()[0], 0.0
    for person in np.unique(who):
        own = np.flatnonzero(who == person)
        product = np.ones(2)
        for i in own:
            for k in range(2):
                powers = np.exp(X[i] @ model.class_coefficients_[k])
                product[k] *= powers[y[i]] / powers.sum()
        total += np.log(prior @ product)
        assert model.beliefs_[person] == pytest.approx(prior * product / (prior @ product))
    assert model.log_likelihood_ == pytest.approx(total)


def test_classes_are_found_and_ordered_by_their_share(fitted):
    model, *_ = fitted
    assert model.class_shares_ == pytest.approx([0.7, 0.3], abs=0.05)
    away = np.abs(model.coef_[:4] - [2, 0, -1, 2])
    assert (away < 4 * model.standard_errors_[:4]).all()
    assert away.max() < 0.7
    assert model.parameter_names_[-1] == "class 2 membership: constant"
    assert "Mean shares of classes 1: 0.7" in model.summary()


def test_any_seed_finds_the_same_classes_in_the_same_order(fitted):
    model, X, y, who, _ = fitted
    other = LatentClassLogit(2, restarts=2, random_state=7).fit(X, y, groups=who)
    assert other.coef_ == pytest.approx(model.coef_, abs=1e-5)
    again = LatentClassLogit(2, restarts=2).fit(X, y, groups=who)
    assert np.array_equal(again.coef_, model.coef_)


def test_people_are_predicted_by_their_choices(fitted):
    model, X, _, who, kind = fitted
    assert np.array_equal(model.beliefs_.argmax(1), kind)
    assert model.individual_coefficients_ == pytest.approx(model.beliefs_ @ model.class_coefficients_)
    known = model.predict_proba(X[:1], people=[59])
    powers = np.exp(X[0] @ model.class_coefficients_.T)
    assert known[0] == pytest.approx(powers / powers.sum(0) @ model.beliefs_[59])
    new = model.predict_proba(X[:2], people=[59, 1000])
    assert new[1] == pytest.approx(model.predict_proba(X[1:2])[0])
    assert new[0] == pytest.approx(known[0])
    assert model.predict(X, people=who).shape == (len(X),)


def test_people_who_make_no_sense_are_refused(fitted):
    model, X, y, _, _ = fitted
    with pytest.raises(DataError, match="None of these people was learnt from; the first is 'a'"):
        model.predict_proba(X[:1], people=["a"])
    with pytest.raises(ShapeError, match="one label a set"):
        model.predict_proba(X[:2], people=[1])
    with pytest.raises(ParameterError, match="No person is known"):
        LatentClassLogit(2, restarts=1, l2=1.0).fit(X, y).predict_proba(X[:1], people=[1])


def test_the_situation_moves_membership_and_an_offset_changes_nothing():
    rng = np.random.default_rng(3)
    X, z = rng.normal(size=(800, 3, 1)), rng.normal(size=(800, 1))
    first = rng.random(800) < 1 / (1 + np.exp(-2 * z[:, 0]))
    y = chosen_by(np.where(first, 3.0, -1.0)[:, None] * X[..., 0], rng)
    model = LatentClassLogit(2, restarts=2).fit(X, y, situation=z)
    likes = int(model.class_coefficients_[:, 0].argmax())
    p = model.class_probabilities([[-2.0], [2.0]])[:, likes]
    assert p[0] < 0.25
    assert p[1] > 0.75
    far = LatentClassLogit(2, restarts=2).fit(X, y, situation=z + 1e6)
    assert far.log_likelihood_ == pytest.approx(model.log_likelihood_, abs=1e-4)
    assert far.predict_proba(X[:1], situation=z[:1] + 1e6) == pytest.approx(
        model.predict_proba(X[:1], situation=z[:1]), abs=1e-4
    )
    with pytest.raises(DataError, match="the same for all sets of a group"):
        LatentClassLogit(2).fit(X, y, situation=z, groups=np.arange(800) // 2)


def test_a_weight_of_two_is_a_person_twice():
    X, y, who, _ = panel(1, 40, 6)
    model = LatentClassLogit(2, restarts=2)
    weighted = model.fit(X, y, groups=who, sample_weight=np.where(who < 10, 2.0, 1.0)).coef_
    some = who < 10
    twice = model.fit(
        np.concatenate([X, X[some]]), np.append(y, y[some]), groups=np.append(who, who[some] + 100)
    )
    assert weighted == pytest.approx(twice.coef_, abs=1e-5)


def test_one_class_is_refused_and_files_keep_people(fitted, tmp_path):
    model, X, _, who, _ = fitted
    with pytest.raises(ParameterError, match="classes needs a whole number of at least 2"):
        LatentClassLogit(1).fit(X, np.zeros(len(X), int))
    model.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert np.array_equal(loaded.predict_proba(X, people=who), model.predict_proba(X, people=who))


def test_more_classes_fit_no_worse_than_one(fitted):
    model, X, y, _, _ = fitted
    assert model.log_likelihood_ > MultinomialLogit().fit(X, y).log_likelihood_
