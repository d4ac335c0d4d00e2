"""Choice models: values by hand, gradients by differences, simulated truths found again, a published estimate."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from entourage import load
from entourage.choice import ContextualLogit, MixedLogit, MultinomialLogit, NestedLogit
from entourage.choice.optimise import slopes_by_differences
from entourage.data.datasets.san_francisco import load_sf
from entourage.data.sets import Sets
from entourage.errors import DataError, ModelFileError, ParameterError, ShapeError, UserError
from entourage.estimators.base import NotFittedError

REAL = Path(__file__).parents[3] / "shared" / "data" / "sf_mode_choice"


def chosen_by(utilities, rng):
    """Choose with logit probabilities: the best after Gumbel noise."""
    return np.array([int((u + rng.gumbel(size=len(u))).argmax()) for u in utilities])


def drawn_by(probabilities, rng):
    return np.array([rng.choice(len(p), p=p) for p in probabilities])


def ragged(rng, n=300, d=3, sizes=(2, 6)):
    return [rng.normal(size=(m, d)) for m in rng.integers(*sizes, size=n)]


def with_ids(rng, n, k, d, least=2):
    """Sets of some of k alternatives: the id, then d features."""
    found = []
    for _ in range(n):
        ids = rng.permutation(k)[: rng.integers(least, k + 1)] + 1
        found.append(np.column_stack([ids, rng.normal(size=(len(ids), d))]))
    return found


def menus(rng, n, k, least=2):
    return [x[:, :1] for x in with_ids(rng, n, k, 0, least)]


def linear(rng, n=400, b=(1.0, -0.5, 0.3)):
    X = ragged(rng, n, len(b))
    return X, chosen_by([x @ b for x in X], rng)


def nested_probabilities(x, b, intercepts, nests, lambdas):
    """Work out the formula, object by object."""
    u = {int(row[0]): intercepts[int(row[0])] + row[1:] @ b for row in x}
    top, within = {}, {}
    for k, nest in enumerate(nests):
        here = [i for i in nest if i in u]
        if here:
            total = sum(np.exp(u[i] / lambdas[k]) for i in here)
            top[k] = total ** lambdas[k]
            within |= {i: (k, np.exp(u[i] / lambdas[k]) / total) for i in here}
    return np.array([within[int(i)][1] * top[within[int(i)][0]] / sum(top.values()) for i in x[:, 0]])


# --- multinomial logit ----------------------------------------------------------------------------


def test_a_logit_of_one_feature_is_the_formula_worked_by_hand():
    X = np.tile([[[1.0], [0.0]]], (4, 1, 1))
    model = MultinomialLogit().fit(X, [0, 0, 0, 1])  # chosen in 3 of 4: P = 3/4
    assert model.coef_ == pytest.approx([np.log(3)])
    assert model.standard_errors_ == pytest.approx([np.sqrt(1 / (4 * 3 / 4 * 1 / 4))])
    # scores are 1/4 three times and -3/4 once; the information is 3/4
    assert model.robust_standard_errors_ == pytest.approx([np.sqrt(3 / 16 + 9 / 16) / (3 / 4)])
    assert model.z_values_ == pytest.approx([np.log(3) / np.sqrt(4 / 3)])
    assert model.log_likelihood_ == pytest.approx(3 * np.log(3 / 4) + np.log(1 / 4))
    assert model.null_log_likelihood_ == pytest.approx(4 * np.log(1 / 2))
    assert model.rho_squared_ == pytest.approx(1 - model.log_likelihood_ / model.null_log_likelihood_)
    assert model.aic_ == pytest.approx(2 - 2 * model.log_likelihood_)
    assert model.bic_ == pytest.approx(np.log(4) - 2 * model.log_likelihood_)
    assert model.predict_proba(X[:1]) == pytest.approx(np.array([[3 / 4, 1 / 4]]))
    assert model.score(X, [0, 0, 0, 1]) == 3 / 4


def test_errors_by_group_are_the_sandwich_worked_by_hand():
    X, y = np.tile([[[1.0], [0.0]]], (4, 1, 1)), [0, 0, 0, 1]
    model = MultinomialLogit().fit(X, y, groups=["ann", "bob", "ann", "bob"])
    # scores of 1/4 + 1/4 and 1/4 - 3/4; the information is 3/4; two groups, so times 2 / (2 - 1)
    assert model.robust_standard_errors_ == pytest.approx([np.sqrt(2 * (1 / 4 + 1 / 4)) / (3 / 4)])
    assert model.z_values_ == pytest.approx(model.coef_ / model.robust_standard_errors_)
    assert "robust z" in model.summary()
    alone = MultinomialLogit().fit(X, y)
    assert np.array_equal(model.coef_, alone.coef_)
    assert np.array_equal(model.standard_errors_, alone.standard_errors_)
    assert (model.n_sets_, model.n_groups_, alone.n_groups_) == (4, 2, 4)
    assert model.bic_ == alone.bic_
    assert model.summary().startswith("MultinomialLogit: 4 sets in 2 groups, 1 parameters")


def test_intercepts_are_the_log_odds_of_the_shares():
    X = np.tile(np.arange(1.0, 4)[None, :, None], (10, 1, 1))
    model = MultinomialLogit(3).fit(X, [0] * 5 + [1] * 3 + [2] * 2)
    assert model.coef_ == pytest.approx(np.log([3 / 5, 2 / 5]))
    assert model.predict_proba(X[:1]) == pytest.approx(np.array([[0.5, 0.3, 0.2]]))
    assert model.parameter_names_ == ["alternative 2", "alternative 3"]


def test_intervals_hold_the_truth_as_often_as_they_say():
    b, rng = np.array([0.8, -0.4]), np.random.default_rng(0)
    inside = {"standard_errors_": [], "robust_standard_errors_": []}
    for _ in range(100):
        X = ragged(rng, 200, 2)
        model = MultinomialLogit().fit(X, chosen_by([x @ b for x in X], rng))
        for kind, hits in inside.items():
            hits.extend(np.abs(model.coef_ - b) < 1.96 * getattr(model, kind))
    for hits in inside.values():
        assert 0.90 <= np.mean(hits) <= 0.985  # 200 intervals of 95%


def test_a_weight_of_two_is_a_set_twice():
    X, y = linear(np.random.default_rng(1))
    weights = np.ones(len(X))
    weights[:100] = 2
    weighted = MultinomialLogit().fit(X, y, sample_weight=weights)
    twice = MultinomialLogit().fit(X + X[:100], np.append(y, y[:100]))
    assert weighted.coef_ == pytest.approx(twice.coef_)
    assert weighted.log_likelihood(X, y, sample_weight=weights) == pytest.approx(
        twice.log_likelihood(X + X[:100], np.append(y, y[:100]))
    )


def test_units_change_coefficients_and_nothing_else():
    X, y = linear(np.random.default_rng(2))
    units = np.array([1e4, 1e-4, 1.0])
    model, scaled = MultinomialLogit().fit(X, y), MultinomialLogit().fit([x * units for x in X], y)
    assert scaled.coef_ * units == pytest.approx(model.coef_)
    assert scaled.standard_errors_ * units == pytest.approx(model.standard_errors_)
    assert scaled.log_likelihood_ == pytest.approx(model.log_likelihood_)


def test_elasticities_are_derivatives_of_log_probabilities():
    X, y = linear(np.random.default_rng(3))
    model = MultinomialLogit().fit(X, y)
    x = X[0]
    found = model.elasticities([x], 1)[0]
    for j in range(len(x)):
        up, down = x.copy(), x.copy()
        up[j, 1] *= np.exp(1e-5)
        down[j, 1] *= np.exp(-1e-5)
        change = np.log(model.predict_proba([up])[0]) - np.log(model.predict_proba([down])[0])
        assert found[:, j] == pytest.approx(change / 2e-5, rel=1e-5, abs=1e-8)
    assert model.elasticities(np.stack([x, x]), 1).shape == (2, len(x), len(x))


@pytest.fixture(scope="module")
def trips():
    """Trips to work: modes (one-hot, 1 to 6), and what is known of each, packed, by its name."""
    if not REAL.is_dir():
        pytest.skip(f"the real data are not on this machine: {REAL} is missing")
    loaded = load_sf(REAL)
    sets = loaded.sets
    known = dict(zip(loaded.feature_names, sets.objects.astype(np.float64).T, strict=True))
    for name, column in zip(loaded.situation_names, sets.situation.astype(np.float64).T, strict=True):
        known[name] = np.repeat(column, sets.sizes)
    return sets, sets.objects[:, :6].astype(np.float64), known


def fitted_to(model, trips, *columns):
    return model.fit(Sets(np.column_stack(columns), trips[0].offsets, trips[0].targets))


def test_the_published_logit_for_trips_to_work_comes_out(trips):
    """Koppelman and Bhat (2006), the base model: -3626.2, cost -0.00492, time -0.0513.

    Larch, an estimation package, says -3626.18626 (null -7309.60097) for it.
    """
    _, modes, known = trips
    others = modes[:, 1:]  # driving alone, the first, has utility 0
    income = others * known["hhinc"][:, None]
    model = fitted_to(MultinomialLogit(), trips, known["cost"], known["tvtt"], others, income)
    assert model.coef_[0] == pytest.approx(-0.00492, abs=5e-6)
    assert model.coef_[1] == pytest.approx(-0.0513, abs=5e-5)
    assert model.log_likelihood_ == pytest.approx(-3626.18626, abs=1e-4)
    assert model.null_log_likelihood_ == pytest.approx(-7309.60097, abs=1e-4)


def test_the_published_nested_logit_for_trips_to_work_comes_out(trips):
    """Koppelman and Bhat (2006), models 17 and 22, with the values and standard errors that Larch reports."""
    _, modes, known = trips
    mode = modes.argmax(1) + 1
    moves = (mode <= 4).astype(float)
    centre = known["wkccbd"] + known["wknccbd"]
    columns = [
        known["costinc"],
        known["tvtt"] * moves,
        known["tvtt"] * (1 - moves),
        known["ovttbydist"] * moves,
        modes[:, 3:] * known["hhinc"][:, None],
        ((mode == 2) | (mode == 3)) * known["vehbywrk"],
        modes[:, 3:] * known["vehbywrk"][:, None],
        modes[:, 1:] * centre[:, None],
        modes[:, 1:] * known["wkempden"][:, None],
    ]
    logit = fitted_to(MultinomialLogit(), trips, modes[:, 1:], *columns)
    assert logit.log_likelihood_ == pytest.approx(-3444.185, abs=1e-3)
    nested = fitted_to(NestedLogit([[1, 2, 3, 4], [5, 6]]), trips, mode, *columns)
    assert -3441.67253 <= nested.log_likelihood_ < -3441.672  # Larch stops a little below the top
    assert nested.dissimilarities_ == pytest.approx([0.7252, 0.7690], abs=1e-3)
    assert nested.standard_errors_[-2:] == pytest.approx([0.1349, 0.1785], rel=0.02)
    cost = nested.parameter_names_.index("x1")
    assert nested.coef_[cost] == pytest.approx(-0.038593, rel=1e-3)
    assert nested.standard_errors_[cost] == pytest.approx(0.010369, rel=0.02)


# --- all of them ----------------------------------------------------------------------------------

RNG = np.random.default_rng(4)
IDS = with_ids(RNG, 40, 4, 2)
CASES = {
    "logit": (MultinomialLogit(), ragged(RNG, 40)),
    "logit, penalised": (MultinomialLogit(l2=2.0), ragged(RNG, 40)),
    "intercepts": (MultinomialLogit(4), menus(RNG, 40, 4)),
    "nested": (NestedLogit([[1, 2], [3, 4]]), IDS),
    "nested, one alone": (NestedLogit([[1, 4, 2]], intercepts=False), IDS),
    "mixed": (MixedLogit({0: "normal", 2: "lognormal"}, draws=20), ragged(RNG, 40)),
    "mixed, unscrambled": (MixedLogit([1], draws=20, scramble=False), ragged(RNG, 40)),
    "halo": (ContextualLogit(), ragged(RNG, 40)),
    "halo of rank 1": (ContextualLogit(1), ragged(RNG, 40)),
    "pairs": (ContextualLogit(alternatives=4), menus(RNG, 40, 4)),
    "pairs of rank 2": (ContextualLogit(2, alternatives=4), menus(RNG, 40, 4)),
}


@pytest.mark.parametrize("name", CASES)
def test_slopes_and_bends_agree_with_differences(name):
    model, X = CASES[name]
    rng = np.random.default_rng(5)
    sets = model.task.sets_of(X, [int(rng.integers(len(x))) for x in X])
    weights = rng.uniform(0.5, 1.5, len(sets))
    model = clone(model)
    model._prepare(sets)
    model.n_features_in_ = sets.n_features
    packed, chosen = model._design(sets), np.flatnonzero(sets.targets == 0)
    steps = model._steps(packed)
    theta = rng.normal(size=len(steps)) * 0.5 * steps
    _, slopes = model._contributions(theta, packed, chosen)
    assert slopes.shape == (len(sets), len(theta))
    for i in range(len(theta)):
        h = np.zeros(len(theta))
        h[i] = 1e-5 * steps[i]
        ahead, behind = (model._contributions(theta + s * h, packed, chosen)[0] for s in (1, -1))
        assert slopes[:, i] == pytest.approx((ahead - behind) / (2 * h[i]), rel=1e-5, abs=1e-6)
    expected = slopes_by_differences(
        lambda at: -weights @ model._contributions(at, packed, chosen)[1], theta, steps
    )
    if model._closed_form:
        found = model._information(theta, packed, chosen, weights)
        assert found == pytest.approx(expected, rel=1e-5, abs=1e-5)
    reported, by_theta = model._reported(theta)
    assert len(reported) == len(model._names(model._feature_names()))
    for i in range(len(theta)):
        h = np.zeros(len(theta))
        h[i] = 1e-6
        change = model._reported(theta + h)[0] - model._reported(theta - h)[0]
        assert by_theta[:, i] == pytest.approx(change / 2e-6, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_every_model_predicts_in_the_form_of_the_input(name):
    model, X = CASES[name]
    y = np.random.default_rng(6).integers(0, [len(x) for x in X])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # forty sets leave much open
        model = clone(model).fit(X, y)
    p = model.predict_proba(X)
    assert [len(q) for q in p] == [len(x) for x in X]
    assert np.array([q.sum() for q in p]) == pytest.approx(np.ones(len(X)))
    places = model.predict(X)
    assert places.tolist() == [int(q.argmax()) for q in p]
    assert model.log_likelihood(X, y) == pytest.approx(
        np.mean([np.log(q[i]) for q, i in zip(p, y, strict=True)])
    )
    assert model.score(X, y) == pytest.approx(np.mean(places == y), abs=0.2)  # a tie counts its share
    backwards = model.predict_proba([x[::-1] for x in X])
    assert np.concatenate([q[::-1] for q in backwards]) == pytest.approx(np.concatenate(p))
    assert model.predict_proba([X[7]])[0] == pytest.approx(p[7])
    indicators = [np.eye(len(x))[i] for x, i in zip(X, y, strict=True)]
    assert model.log_likelihood(X, indicators) == pytest.approx(model.log_likelihood(X, y))
    rows = model.summary().splitlines()
    assert len(rows) >= 4 + len(model.coef_)
    assert rows[0].startswith(f"{type(model).__name__}: 40 sets")
    if not isinstance(model, MixedLogit):  # which predicts with other draws than it learns from
        assert model.log_likelihood_ == pytest.approx(len(X) * model.log_likelihood(X, y))


@pytest.mark.parametrize("name", CASES)
def test_nothing_beats_the_estimate_nearby(name):
    model, X = CASES[name]
    rng = np.random.default_rng(7)
    y = rng.integers(0, [len(x) for x in X])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = clone(model).fit(X, y)
    assert model.converged_
    sets = model.task.sets_of(X, y)
    packed, chosen = model._design(sets), np.flatnonzero(sets.targets == 0)
    penalty = model._penalty(packed)

    def value(theta):
        return model._contributions(theta, packed, chosen)[0].sum() - 0.5 * penalty @ theta**2

    best = value(model.theta_)
    for _ in range(30):
        assert value(model.theta_ + 0.1 * rng.normal(size=len(penalty)) * model._steps(packed)) <= best + 1e-9


@pytest.mark.parametrize("name", ["logit", "intercepts", "nested", "halo", "halo of rank 1", "pairs"])
def test_choices_told_twice_by_the_same_people_make_nothing_surer(name):
    model, X = CASES[name]
    y = np.random.default_rng(30).integers(0, [len(x) for x in X])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        once = clone(model).fit(X, y)
        twice = clone(model).fit(X + X, np.append(y, y), groups=np.tile(np.arange(len(X)), 2))
    assert twice.coef_ == pytest.approx(once.coef_, abs=1e-5)
    known = ~once.open_
    factor = np.sqrt(len(X) / (len(X) - 1))  # of few groups
    assert twice.robust_standard_errors_[known] == pytest.approx(
        factor * once.robust_standard_errors_[known], rel=1e-4
    )
    assert twice.standard_errors_[known] == pytest.approx(once.standard_errors_[known] / np.sqrt(2), rel=1e-4)


@pytest.mark.parametrize("name", CASES)
def test_a_saved_model_comes_back_to_the_bit(name, tmp_path):
    model, X = CASES[name]
    y = np.random.default_rng(31).integers(0, [len(x) for x in X])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = clone(model).fit(X, y, groups=np.arange(len(X)) // 2)
    model.save(tmp_path / "m.entourage")
    back = load(tmp_path / "m.entourage")
    assert type(back) is type(model)
    assert repr(back) == repr(model)
    for name, value in vars(model).items():
        if name.endswith("_"):
            found = getattr(back, name)
            assert np.array_equal(found, value, equal_nan=np.asarray(value).dtype.kind == "f"), name
            assert np.asarray(found).dtype == np.asarray(value).dtype, name
    assert np.array_equal(back.predict(X), model.predict(X))
    for found, expected in zip(back.predict_proba(X), model.predict_proba(X), strict=True):
        assert np.array_equal(found, expected)
    assert back.log_likelihood(X, y) == model.log_likelihood(X, y)
    assert back.summary() == model.summary()
    if isinstance(model, MultinomialLogit) and model.alternatives is None:
        for found, expected in zip(back.elasticities(X, 1), model.elasticities(X, 1), strict=True):
            assert np.array_equal(found, expected)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.array_equal(back.fit(X, y).coef_, clone(model).fit(X, y).coef_)


@pytest.mark.parametrize(
    "model",
    [
        MixedLogit(np.array([0, 2]), draws=10),
        MixedLogit(range(2), draws=np.int64(10)),
        MixedLogit({np.int64(1): "lognormal"}, draws=10),
        NestedLogit((np.array([1, 2]), (3, 4))),
        NestedLogit([[1, 4, 2]], intercepts=np.bool_(False)),
    ],
    ids=repr,
)
def test_settings_of_any_type_are_saved(model, tmp_path):
    X = [x.astype(np.float32) for x in IDS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, np.random.default_rng(32).integers(0, [len(x) for x in X]))
    model.save(tmp_path / "m.entourage")
    back = load(tmp_path / "m.entourage")
    assert np.array_equal(np.concatenate(back.predict_proba(X)), np.concatenate(model.predict_proba(X)))
    assert back.summary() == model.summary()


def test_a_model_without_parameters_is_saved(tmp_path):
    X = np.tile(np.arange(1.0, 4)[None, :, None], (10, 1, 1))
    model = NestedLogit([[1]], intercepts=False).fit(X, [0, 1] * 5)
    model.save(tmp_path / "m.entourage")
    assert load(tmp_path / "m.entourage").predict_proba(X[:1]) == pytest.approx(np.full((1, 3), 1 / 3))


def test_a_choice_model_of_ones_own_is_pickled_not_saved(tmp_path):
    class Mine(MultinomialLogit):
        pass

    X, y = linear(np.random.default_rng(33), 50)
    with pytest.raises(ModelFileError, match="this is a Mine of your own. Pickle it"):
        Mine().fit(X, y).save(tmp_path / "m")


# --- nested logit ---------------------------------------------------------------------------------


def test_nested_probabilities_are_the_formula_worked_object_by_object():
    model = NestedLogit([[1, 3], [2, 4]])
    X = with_ids(np.random.default_rng(8), 50, 5, 2)
    model._prepare(Sets.of(X))
    theta = np.array([0.3, -0.2, 0.5, 0.1, 0.7, -0.4, np.log(0.4), np.log(0.8)])
    log_p = model._utilities(theta, model._design(Sets.of(X)))
    intercepts = {1: 0.0, 2: 0.3, 3: -0.2, 4: 0.5, 5: 0.1}
    nests, lambdas = [[1, 3], [2, 4], [5]], [0.4, 0.8, 1.0]
    expected = [nested_probabilities(x, theta[4:6], intercepts, nests, lambdas) for x in X]
    assert np.exp(log_p) == pytest.approx(np.concatenate(expected))


def test_at_lambda_one_a_nested_logit_is_the_logit():
    model, X = NestedLogit([[1, 2], [3, 4]], intercepts=False), IDS
    model._prepare(Sets.of(X))
    theta = np.array([0.7, -0.4, 0.0, 0.0])
    packed = model._design(Sets.of(X))
    expected = [np.exp(x[:, 1:] @ theta[:2]) / np.exp(x[:, 1:] @ theta[:2]).sum() for x in X]
    assert np.exp(model._utilities(theta, packed)) == pytest.approx(np.concatenate(expected))


def test_a_nested_logit_finds_simulated_dissimilarities():
    rng = np.random.default_rng(9)
    X = with_ids(rng, 3000, 5, 2, least=3)
    truth = np.array([0.5, -0.5, 0.3, 0.0, 1.0, -0.6, 0.4, 0.8])
    intercepts = dict(zip(range(1, 6), [0.0, *truth[:4]], strict=True))
    nests = [[1, 2], [3, 4, 5]]
    p = [nested_probabilities(x, truth[4:6], intercepts, nests, truth[6:]) for x in X]
    model = NestedLogit(nests).fit(X, drawn_by(p, rng))
    assert (np.abs(model.coef_ - truth) < 3 * model.standard_errors_).all()
    assert model.dissimilarities_[0] == pytest.approx(0.4, abs=0.1)
    assert (model.standard_errors_ < 0.2).all()
    assert model.robust_standard_errors_ == pytest.approx(model.standard_errors_, rel=0.15)
    assert model.outside_ == []


def test_a_nest_less_alike_than_the_rest_is_reported():
    rng = np.random.default_rng(10)
    X = with_ids(rng, 3000, 4, 1, least=3)
    p = [
        nested_probabilities(x, [1.0], dict.fromkeys(range(1, 5), 0.0), [[1, 2], [3, 4]], [2.0, 0.6])
        for x in X
    ]
    with pytest.warns(UserWarning, match="λ of nest 0 is clearly above 1"):
        model = NestedLogit([[1, 2], [3, 4]]).fit(X, drawn_by(p, rng))
    assert model.outside_ == [0]
    assert "λ of nest 0 is above 1" in model.summary()


# --- mixed logit ----------------------------------------------------------------------------------


def test_without_spread_a_mixed_logit_is_the_logit():
    X, y = linear(np.random.default_rng(11), 100)
    logit = MultinomialLogit().fit(X, y)
    model = MixedLogit([0, 2], draws=10)
    sets = model.task.sets_of(X, y)
    model._prepare(sets)
    theta = np.append(logit.coef_, [0.0, 0.0])
    packed, chosen = model._design(sets), np.flatnonzero(sets.targets == 0)
    assert model._contributions(theta, packed, chosen)[0].sum() == pytest.approx(logit.log_likelihood_)
    assert np.exp(model._utilities(theta, packed)) == pytest.approx(np.concatenate(logit.predict_proba(X)))


def test_a_mixed_logit_finds_a_simulated_spread():
    rng = np.random.default_rng(12)
    X = ragged(rng, 2000, 2, sizes=(3, 6))
    y = chosen_by([x @ [1.0 + 1.5 * rng.normal(), -1.0] for x in X], rng)
    model = MixedLogit([0], draws=100).fit(X, y)
    assert model.parameter_names_ == ["mean of x0", "x1", "sd of x0"]
    assert (np.abs(model.coef_ - [1.0, -1.0, 1.5]) < 3 * model.standard_errors_).all()
    assert (model.standard_errors_ < 0.15).all()
    assert (model.means_, model.standard_deviations_) == (model.coef_[[0]], model.coef_[[2]])
    assert model.log_likelihood_ > MultinomialLogit().fit(X, y).log_likelihood_ + 20
    assert model.log_likelihood(X, y) == pytest.approx(model.log_likelihood_ / len(X), abs=0.005)


def test_a_mixed_logit_finds_a_lognormal_coefficient():
    rng = np.random.default_rng(13)
    X = ragged(rng, 2000, 2, sizes=(3, 6))
    y = chosen_by([x @ [np.exp(0.2 + 0.8 * rng.normal()), -1.0] for x in X], rng)
    model = MixedLogit({0: "lognormal"}, draws=100).fit(X, y)
    assert (np.abs(model.coef_ - [0.2, -1.0, 0.8]) < 3 * model.standard_errors_).all()
    assert model.parameter_names_[0] == "mean of log of x0"


def panel(rng, people=400, times=8):
    """Choices of people with a taste each: (X, y, who)."""
    who = np.repeat(np.arange(people), times)
    tastes = np.column_stack([rng.normal(1.0, 1.5, people), np.exp(rng.normal(-0.3, 0.6, people))])
    X = ragged(rng, len(who), 3, sizes=(3, 6))
    y = chosen_by([x @ [tastes[i, 0], -1.0, tastes[i, 1]] for x, i in zip(X, who, strict=True)], rng)
    return X, y, who


PANEL = {0: "normal", 2: "lognormal"}


def test_a_person_is_as_likely_as_the_mean_product_worked_draw_by_draw():
    X, y, _ = panel(np.random.default_rng(34), 10, 2)
    who = np.random.default_rng(35).integers(0, 6, len(X))
    model = MixedLogit(PANEL, draws=5)
    sets = model.task.sets_of(X, y)
    model._prepare(sets)
    theta = np.array([0.5, -0.8, -0.2, 1.2, 0.4])
    normals = model._halton(6)  # one person after the other
    expected = []
    for i in range(6):
        products = []
        for z in normals[i]:
            b = [0.5 + 1.2 * z[0], -0.8, np.exp(-0.2 + 0.4 * z[1])]
            shares = [np.exp(X[t] @ b) / np.exp(X[t] @ b).sum() for t in np.flatnonzero(who == i)]
            products.append(np.prod([p[y[t]] for p, t in zip(shares, np.flatnonzero(who == i), strict=True)]))
        expected.append(np.log(np.mean(products)))
    values, _ = model._contributions(theta, model._learn_from(sets, who), np.flatnonzero(sets.targets == 0))
    assert values == pytest.approx(expected)


def test_slopes_of_a_panel_agree_with_differences():
    X, y, who = panel(np.random.default_rng(36), 12, 4)
    who = np.random.default_rng(37).permutation(who)
    model = MixedLogit(PANEL, draws=20)
    sets = model.task.sets_of(X, y)
    model._prepare(sets)
    packed, chosen = model._learn_from(sets, who), np.flatnonzero(sets.targets == 0)
    theta = np.array([0.5, -0.8, -0.2, 1.2, 0.4])
    _, slopes = model._contributions(theta, packed, chosen)
    assert slopes.shape == (12, 5)
    for i, h in enumerate(1e-5 * np.eye(5)):
        ahead, behind = (model._contributions(theta + s * h, packed, chosen)[0] for s in (1, -1))
        assert slopes[:, i] == pytest.approx((ahead - behind) / 2e-5, rel=1e-5, abs=1e-6)


def test_a_panel_finds_the_tastes_that_people_have():
    X, y, who = panel(np.random.default_rng(38))
    model = MixedLogit(PANEL, draws=60).fit(X, y, groups=who)
    truth = [1.0, -1.0, -0.3, 1.5, 0.6]
    assert model.converged_
    assert (np.abs(model.coef_ - truth) < 3 * model.standard_errors_).all()
    assert (model.standard_errors_ < 0.12).all()
    assert model.robust_standard_errors_ == pytest.approx(model.standard_errors_, rel=0.25)
    assert (model.n_sets_, model.n_groups_) == (3200, 400)
    strangers = MixedLogit(PANEL, draws=60).fit(X, y)
    assert model.log_likelihood_ > strangers.log_likelihood_ + 100
    assert model.bic_ == pytest.approx(np.log(400) * 5 - 2 * model.log_likelihood_)
    assert model.null_log_likelihood_ == strangers.null_log_likelihood_


def test_people_of_one_choice_each_are_no_panel():
    X, y = linear(np.random.default_rng(39), 150)
    plain = MixedLogit([0], draws=30).fit(X, y)
    for labels in (np.arange(150), [f"person {i:03}" for i in range(150)]):
        each = MixedLogit([0], draws=30).fit(X, y, groups=labels)
        for name in ("coef_", "standard_errors_", "robust_standard_errors_", "log_likelihood_", "bic_"):
            assert np.array_equal(getattr(each, name), getattr(plain, name)), name


def test_the_order_of_sets_changes_no_panel():
    X, y, who = panel(np.random.default_rng(40), 60, 4)
    weights = np.random.default_rng(41).uniform(0.5, 1.5, 60)[who]
    order = np.random.default_rng(42).permutation(len(X))
    model = MixedLogit(PANEL, draws=30).fit(X, y, groups=who, sample_weight=weights)
    shuffled = MixedLogit(PANEL, draws=30).fit(
        [X[i] for i in order], y[order], groups=who[order], sample_weight=weights[order]
    )
    assert shuffled.coef_ == pytest.approx(model.coef_, rel=1e-6)
    assert shuffled.robust_standard_errors_ == pytest.approx(model.robust_standard_errors_, rel=1e-5)
    assert shuffled.log_likelihood_ == pytest.approx(model.log_likelihood_)


def test_weights_of_people_count_what_all_they_chose_says():
    X, y, who = panel(np.random.default_rng(43), 40, 4)
    weights = np.random.default_rng(44).uniform(0.5, 1.5, 40)
    model = MixedLogit([0], draws=30).fit(X, y, groups=who, sample_weight=weights[who])
    sets = model.task.sets_of(X, y)
    values, _ = model._contributions(
        model.theta_, model._learn_from(sets, who), np.flatnonzero(sets.targets == 0)
    )
    assert model.log_likelihood_ == pytest.approx(weights @ values / weights.mean())
    doubled = MixedLogit([0], draws=30).fit(X, y, groups=who, sample_weight=2 * weights[who])
    assert doubled.coef_ == pytest.approx(model.coef_)


def test_the_same_seed_gives_the_same_mixed_logit():
    X, y = linear(np.random.default_rng(14), 150)
    first, again, other = (MixedLogit([0], draws=30, random_state=seed).fit(X, y).coef_ for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


# --- contextual logit -----------------------------------------------------------------------------


def context_utilities(x, b, A):
    return [x[i] @ b + sum(x[j] @ A @ x[i] for j in range(len(x)) if j != i) for i in range(len(x))]


def test_without_interactions_a_contextual_logit_is_the_logit():
    X, b = ragged(RNG, 20), np.array([0.5, -1.0, 0.2])
    packed = ContextualLogit()._design(Sets.of(X))
    found = ContextualLogit()._utilities(np.append(b, np.zeros(9)), packed)
    assert found == pytest.approx(np.concatenate([x @ b for x in X]))


def test_contextual_utilities_are_the_formula_worked_pair_by_pair():
    X, b, rng = ragged(RNG, 20), np.array([0.5, -1.0, 0.2]), np.random.default_rng(16)
    left, right = rng.normal(size=(2, 3, 2))
    expected = np.concatenate([context_utilities(x, b, left @ right.T) for x in X])
    packed = ContextualLogit()._design(Sets.of(X))
    assert ContextualLogit()._utilities(np.append(b, left @ right.T), packed) == pytest.approx(expected)
    low = np.concatenate([b, left.ravel(), right.ravel()])
    assert ContextualLogit(2)._utilities(low, packed) == pytest.approx(expected)


@pytest.mark.parametrize("rank", [None, 1])
def test_a_contextual_logit_finds_simulated_interactions(rank):
    rng = np.random.default_rng(17)
    b, A = np.array([0.5, -0.5]), np.outer([0.6, -0.3], [0.5, 1.0])
    X = ragged(rng, 2000, 2)
    y = chosen_by([context_utilities(x, b, A) for x in X], rng)
    model = ContextualLogit(rank).fit(X, y)
    truth = np.append(b, A)
    assert (np.abs(model.coef_ - truth) < 3 * model.standard_errors_).all()
    assert (model.standard_errors_ < 0.1).all()
    assert model.interactions_ == pytest.approx(A, abs=0.15)
    assert model.n_parameters_ == pytest.approx(6 if rank is None else 5)  # a product of rank 1 has 3
    assert model.log_likelihood_ > MultinomialLogit().fit(X, y).log_likelihood_ + 50


def test_a_product_of_full_rank_is_the_full_model():
    rng = np.random.default_rng(18)
    X = ragged(rng, 500, 2)
    y = chosen_by([context_utilities(x, [0.5, 0.5], np.array([[0.3, 0.2], [-0.4, 0.1]])) for x in X], rng)
    full, product = ContextualLogit().fit(X, y), ContextualLogit(2).fit(X, y)
    assert product.log_likelihood_ == pytest.approx(full.log_likelihood_)
    assert product.coef_ == pytest.approx(full.coef_, abs=1e-4)
    assert product.standard_errors_ == pytest.approx(full.standard_errors_, rel=1e-3)


@pytest.mark.parametrize("rank", [None, 2])
def test_pairwise_effects_without_features_are_found(rank):
    rng, k = np.random.default_rng(19), 4
    T, C = rng.normal(size=(2, k, 2)) * 0.8
    U = T @ C.T
    kept = ~np.eye(k, dtype=bool)
    X = menus(rng, 6000, k)
    codes = [x[:, 0].astype(int) - 1 for x in X]
    y = chosen_by([[sum(U[i, j] for j in menu if j != i) for i in menu] for menu in codes], rng)
    model = ContextualLogit(rank, alternatives=k).fit(X, y)
    truth = U[kept] - U[kept].mean()
    assert (np.abs(model.coef_ - truth) < 3.5 * model.standard_errors_).all()
    assert model.interactions_[kept] == pytest.approx(model.coef_)
    assert model.coef_.mean() == pytest.approx(0, abs=1e-9)
    assert model.n_parameters_ == pytest.approx(
        k * (k - 1) - 1
    )  # rank 2 covers all but the diagonal of 4 x 4


def test_pairwise_effects_contain_the_logit():
    rng = np.random.default_rng(20)
    X, v = menus(rng, 300, 4), np.array([0.0, 0.5, -0.5, 1.0])
    y = chosen_by([v[x[:, 0].astype(int) - 1] for x in X], rng)
    model = ContextualLogit(alternatives=4).fit(X, y)
    assert model.log_likelihood_ > MultinomialLogit(4).fit(X, y).log_likelihood_
    theta = np.array([-v[j] for i in range(4) for j in range(4) if i != j])  # U_ij = -v_j
    scores = model._utilities(theta, model._design(Sets.of(X)))
    centred = [u - u[0] for u in Sets.of(X).unpack(scores)]
    assert np.concatenate(centred) == pytest.approx(
        np.concatenate([v[x[:, 0].astype(int) - 1] - v[int(x[0, 0]) - 1] for x in X])
    )


# --- what goes wrong ------------------------------------------------------------------------------


def test_what_the_data_leave_open_is_named():
    X, y = linear(np.random.default_rng(21))
    constant = [np.column_stack([x, np.full(len(x), 7.0)]) for x in X]
    with pytest.warns(ConvergenceWarning, match=re.escape("Not identified: x3. ")):
        model = MultinomialLogit().fit(constant, y)
    assert np.isnan(model.standard_errors_).tolist() == [False, False, False, True]
    expected = MultinomialLogit().fit(X, y)
    assert model.coef_ == pytest.approx(np.append(expected.coef_, 0))
    assert model.standard_errors_[:3] == pytest.approx(expected.standard_errors_)
    assert model.n_parameters_ == pytest.approx(3)
    repeated = [np.column_stack([x, x[:, 0] + x[:, 1]]) for x in X]
    with pytest.warns(ConvergenceWarning, match="Not identified: x0, x1, x3\\. "):
        assert MultinomialLogit().fit(repeated, y).log_likelihood_ == pytest.approx(expected.log_likelihood_)
    assert np.isfinite(MultinomialLogit(l2=1.0).fit(repeated, y).standard_errors_).all()


def test_choices_told_perfectly_have_no_finite_estimate():
    X = np.random.default_rng(22).normal(size=(50, 3, 2))
    with pytest.warns(ConvergenceWarning, match="perfectly"):
        model = MultinomialLogit().fit(X, X[:, :, 0].argmax(1))
    assert np.isnan(model.standard_errors_[0])
    never = np.tile(np.arange(1.0, 4)[None, :, None], (10, 1, 1))
    with pytest.warns(ConvergenceWarning, match="Not identified: alternative 3\\. "):
        MultinomialLogit(3).fit(never, [0, 1] * 5)


def test_a_climb_cut_short_is_said(monkeypatch):
    X, y = linear(np.random.default_rng(23))
    monkeypatch.setattr(MultinomialLogit, "_max_iter", 1)
    with pytest.warns(ConvergenceWarning, match="did not converge to the maximum"):
        model = MultinomialLogit().fit(X, y)
    assert "NOT CONVERGED" in model.summary()


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (MultinomialLogit(1), ParameterError, "alternatives needs a whole number of at least 2"),
        (MultinomialLogit(l2=-1), ParameterError, "l2 needs a number of at least 0"),
        (MultinomialLogit(5), ShapeError, "one feature, the id of the alternative; these have 3"),
        (NestedLogit([1, 2]), ParameterError, "nests is a list of lists of ids"),
        (NestedLogit([[1, 2], []]), ParameterError, "A nest is empty"),
        (NestedLogit([[1, 2], [2, 3]]), ParameterError, "Alternative 2 is in two nests"),
        (NestedLogit([[1, 2]], alternative=9), DataError, "alternative=9 is the column of ids"),
        (NestedLogit([[1, 2]]), DataError, "Column 0 should hold ids"),
        (MixedLogit([]), ParameterError, "Where no coefficient is random, MultinomialLogit"),
        (MixedLogit([3]), ParameterError, "A column of random needs a whole number"),
        (MixedLogit({0: "lognorm"}), ParameterError, "did you mean 'lognormal'"),
        (MixedLogit([0], draws=0), ParameterError, "draws needs"),
        (ContextualLogit(0), ParameterError, "rank needs"),
    ],
)
def test_settings_that_mean_nothing_are_refused(model, error, message):
    X, y = linear(np.random.default_rng(24), 20)
    with pytest.raises(error, match=re.escape(message)):
        model.fit(X, y)


def test_data_that_cannot_be_used_are_refused():
    X, y = linear(np.random.default_rng(25), 20)
    with pytest.raises(DataError, match="Multiply them with features of the objects"):
        MultinomialLogit().fit(X, y, situation=np.ones((20, 1)))
    with pytest.raises(DataError, match="set 0 has"):
        MultinomialLogit().fit(X, np.full(20, 9))
    with pytest.raises(DataError, match="Choices are needed"):
        MultinomialLogit().fit(X)
    with pytest.raises(DataError, match="from 1 to 3; set 0, object 1 has 4"):
        MultinomialLogit(3).fit([[[1.0], [4.0]]], [0])
    with pytest.raises(DataError, match="Alternative 2 is in set 0 twice"):
        ContextualLogit(alternatives=3).fit([[[2.0], [2.0]]], [0])
    with pytest.raises(DataError, match="Alternative 7 of nests is in no set"):
        NestedLogit([[1, 7]]).fit(IDS, [0] * len(IDS))
    with pytest.raises(ShapeError, match="fitted on 3 features; these sets have 2"):
        MultinomialLogit().fit(X, y).predict(np.zeros((1, 2, 2)))
    with pytest.raises(ShapeError, match="3 features; got 1 names"):
        MultinomialLogit().fit(X, y).summary(["one"])
    with pytest.raises(ShapeError, match="no elasticities"):
        MultinomialLogit(2).fit([[[1.0], [2.0]]] * 3, [0, 0, 1]).elasticities([[[1.0], [2.0]]], 0)
    with pytest.raises(NotFittedError, match="call fit"):
        NestedLogit([[1, 2]]).summary()


@pytest.mark.parametrize("model", [MultinomialLogit(), MixedLogit([0], draws=10)], ids=repr)
@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.arange(19), "groups needs one label a set, shape (20,); got (19,)"),
        (np.ones((20, 2)), "groups needs one label a set, shape (20,); got (20, 2)"),
        (["ann"] * 20, "groups needs at least two labels; all 20 sets have"),
        ([0.0, np.nan] * 10, "groups needs a label for every set; that of set 1 is nan"),
        ([None, "ann"] * 10, "groups needs labels that can be sorted"),
    ],
)
def test_groups_that_mean_nothing_are_refused(model, groups, message):
    X, y = linear(np.random.default_rng(46), 20)
    with pytest.raises(DataError, match=re.escape(message)):
        model.fit(X, y, groups=groups)


def test_a_person_has_one_weight():
    X, y = linear(np.random.default_rng(47), 20)
    groups, weights = np.tile(np.arange(10), 2), np.repeat([0.5, 1.5], [19, 1])
    with pytest.raises(DataError, match="same for all sets of a group.* sets 9 and 19 are of one group"):
        MixedLogit([0], draws=10).fit(X, y, groups=groups, sample_weight=weights)
    MultinomialLogit().fit(X, y, groups=groups, sample_weight=weights)


def test_an_alternative_never_seen_is_refused():
    rng = np.random.default_rng(26)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = NestedLogit([[1, 2]]).fit(IDS, rng.integers(0, [len(x) for x in IDS]))
    with pytest.raises(UserError, match="Alternative 9 was not among those learnt from: 1, 2, 3, 4"):
        model.predict([np.array([[9.0, 0.0, 0.0], [1.0, 0.0, 0.0]])])


def test_too_many_parameters_are_refused_before_memory_is_taken(monkeypatch):
    monkeypatch.setattr("entourage.choice.contextual.MOST", 50)
    X, y = linear(np.random.default_rng(27), 20)
    with pytest.raises(DataError, match="Choose a rank"):
        ContextualLogit().fit(X, y)


def test_a_penalty_shrinks():
    X, y = linear(np.random.default_rng(28), 100)
    free, held = MultinomialLogit().fit(X, y), MultinomialLogit(l2=50.0).fit(X, y)
    assert np.linalg.norm(held.coef_) < np.linalg.norm(free.coef_)
    assert held.n_parameters_ < free.n_parameters_ == pytest.approx(3)
    assert np.linalg.norm(MultinomialLogit(l2=1e9).fit(X, y).coef_) < 1e-5


def test_the_table_names_what_it_shows():
    X, y = linear(np.random.default_rng(29), 100)
    text = MultinomialLogit().fit(X, y).summary(["price", "time", "comfort"])
    assert [line.split()[0] for line in text.splitlines()[4:]] == ["price", "time", "comfort"]
    assert "rho squared" in text


def test_too_few_groups_for_clustered_errors_are_said():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3, 2))
    with pytest.warns(UserWarning, match="2 groups are too few for clustered errors of 2 parameters"):
        MultinomialLogit().fit(X, rng.integers(3, size=60), groups=np.arange(60) % 2)
