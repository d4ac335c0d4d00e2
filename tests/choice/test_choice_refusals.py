"""What choice models refuse, in words that say what to do: parameters, columns, tests of models not nested."""

import numpy as np
import pandas as pd
import pytest

from entourage import Ranker
from entourage.choice import (
    ContextualLogit,
    CrossNestedLogit,
    LatentClassLogit,
    LinearContextLogit,
    MixedLogit,
    MultinomialLogit,
    NestedLogit,
    RandomRegret,
    compare_logits,
    likelihood_ratio_test,
)
from entourage.data import Sets
from entourage.errors import UserError

# sixty choices don't identify all that is fitted here; what is refused is the question
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N = 60
RNG = np.random.default_rng(0)
X = RNG.uniform(1, 5, size=(N, 4, 2))
CHOSEN = (X @ [1.0, -1.0] + RNG.gumbel(size=(N, 4))).argmax(1)
IDS = np.concatenate([np.tile(np.arange(1.0, 5.0)[:, None], (N, 1, 1)), X], axis=2)
MNL = MultinomialLogit().fit(X, CHOSEN)
FRAME = pd.DataFrame(
    {
        "trip": np.repeat(np.arange(N), 4),
        "mode": np.tile(["bus", "car", "rail", "walk"], N),
        "time": X[..., 0].ravel(),
        "cost": X[..., 1].ravel(),
        "taken": np.eye(4, dtype=int)[CHOSEN].ravel(),
    }
)
ROLES = {"set_id": "trip", "target": "taken"}
FELT = np.log1p(np.exp(2 * (X[:, None] - X[:, :, None]) * [1, -1])).sum((2, 3))  # regret; μ is 0.5
REGRETTED = (np.random.default_rng(1).gumbel(size=(N, 4)) - FELT).argmax(1)
THREE = np.stack([np.delete(np.arange(1.0, 5.0), i % 4) for i in range(N)])[..., None]  # one of four is out


def of_table(model, *features):
    return model.fit(FRAME, **ROLES, features=list(features))


# --- which models are nested ----------------------------------------------------------------------

NOT_NESTED = {
    "is not known to be a restricted RandomRegret": (
        lambda: MultinomialLogit().fit(X, REGRETTED),
        lambda: RandomRegret(scale="estimated").fit(X, REGRETTED),
    ),
    "their scales are not 1 and estimated": (
        lambda: RandomRegret(scale=2.0).fit(X, REGRETTED),
        lambda: RandomRegret(scale="estimated").fit(X, REGRETTED),
    ),
    "MultinomialLogit has a penalty": (lambda: MultinomialLogit(l2=1.0).fit(X, CHOSEN), lambda: MNL),
    "the second has no more parameters": (lambda: MNL, lambda: MultinomialLogit().fit(X[..., ::-1], CHOSEN)),
    "alternatives without features": (
        lambda: MultinomialLogit(alternatives=4).fit(THREE, CHOSEN % 3),
        lambda: ContextualLogit(alternatives=4).fit(THREE, CHOSEN % 3),
    ),
    "a lognormal coefficient has a sign": (
        lambda: MNL,
        lambda: MixedLogit({0: "lognormal"}, draws=8).fit(X, CHOSEN),
    ),
    "one learnt from a table and the other did not": (
        lambda: of_table(MultinomialLogit(), "time", "cost"),
        lambda: LinearContextLogit().fit(X, CHOSEN),
    ),
    "their columns are not known to be the same": (
        lambda: MNL,
        lambda: NestedLogit([[1, 2]]).fit(IDS, CHOSEN),
    ),
    "one has effects of positions and the other has not": (
        lambda: MNL,
        lambda: MultinomialLogit().fit(X, CHOSEN, position=np.tile(np.arange(4), (N, 1))),
    ),
    "columns of arrays have no names": (lambda: MultinomialLogit().fit(X[..., :1], CHOSEN), lambda: MNL),
    "the second lacks time": (
        lambda: of_table(MultinomialLogit(), "time"),
        lambda: of_table(MultinomialLogit(), "cost", "mode"),
    ),
    "they learnt from other choices": (lambda: MultinomialLogit().fit(X[1:], CHOSEN[1:]), lambda: MNL),
}


@pytest.mark.parametrize("reason", NOT_NESTED)
def test_models_that_are_not_known_to_be_nested_have_no_likelihood_ratio(reason):
    restricted, full = (make() for make in NOT_NESTED[reason])
    with pytest.raises(UserError, match=f"can't be tested by their likelihood ratio: .*{reason}"):
        likelihood_ratio_test(restricted, full)


def test_fewer_columns_of_a_table_are_nested_in_more():
    few, many = of_table(MultinomialLogit(), "time"), of_table(MultinomialLogit(), "time", "cost")
    found = likelihood_ratio_test(few, many)
    assert found.statistic == pytest.approx(2 * (many.log_likelihood_ - few.log_likelihood_))
    assert found.degrees == 1


def test_pairs_that_are_said_to_be_nested_are_tested():
    models = {
        "mnl": MultinomialLogit().fit(X, REGRETTED),
        "regret": RandomRegret(scale="estimated").fit(X, REGRETTED),
    }
    assert compare_logits(models).tests == ()
    (found,) = compare_logits(models, nested=[("mnl", "regret")]).tests
    assert (found.restricted, found.full, found.degrees) == ("mnl", "regret", 1.0)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: compare_logits({}), "needs fitted models by name; got none"),
        (
            lambda: compare_logits({"a": MNL}, nested=[("a", "b")]),
            "nested names 'b', which is not among .*: a",
        ),
        (
            lambda: compare_logits({"a": MNL, "b": RandomRegret().fit(X, CHOSEN)}, nested=[("a", "b")]),
            r"'a' is a restricted 'b', which has no more identified parameters \(2 and 2\)",
        ),
        (lambda: compare_logits({"a": MNL, "b": Ranker()}), "'b' is a Ranker; models of entourage.choice"),
        (
            lambda: compare_logits({"a": MNL, "b": MultinomialLogit().fit(X[1:], CHOSEN[1:])}),
            "'b' can't be compared with 'a': they learnt from other choices",
        ),
    ],
)
def test_a_comparison_that_makes_no_sense_is_refused(call, says):
    with pytest.raises(UserError, match=says):
        call()


# --- parameters and columns -----------------------------------------------------------------------

REFUSED = {
    "base names a level of each category": lambda: MultinomialLogit(base="car").fit(FRAME, **ROLES),
    "base names columns of a table, but these": lambda: MultinomialLogit(base={"mode": "car"}).fit(X, CHOSEN),
    "base names 'time', which is no column of text": lambda: MultinomialLogit(base={"time": "1"}).fit(
        FRAME, **ROLES
    ),
    "correlated is True, False or a list": lambda: MixedLogit([0], correlated="yes").fit(X, CHOSEN),
    "random names a column twice: time": lambda: of_table(MixedLogit(["time", 0], draws=8), "time", "cost"),
    'scale needs a number above 0, or "estimated"': lambda: RandomRegret(scale="auto").fit(X, CHOSEN),
    "nests is a list of lists of ids": lambda: NestedLogit(["ab", "cd"]).fit(IDS, CHOSEN),
    "A nest is empty": lambda: NestedLogit([[1, 2], []]).fit(IDS, CHOSEN),
    "alternative='mode' names a column, but there is no table": lambda: NestedLogit(
        [["bus", "car"]], alternative="mode"
    ).fit(IDS, CHOSEN),
    "alternative=7 is the column of ids, but objects have 3": lambda: NestedLogit(
        [[1, 2]], alternative=7
    ).fit(IDS, CHOSEN),
    "have no standing in a set: leave relative out": lambda: MultinomialLogit(
        alternatives=4, relative=True
    ).fit(IDS[..., :1], CHOSEN),
    "Alternatives without features have no elasticities": lambda: (
        MultinomialLogit(alternatives=4).fit(IDS[..., :1], CHOSEN).elasticities(IDS[..., :1], 0)
    ),
    "a feature also acts through the standings": lambda: (
        MultinomialLogit(relative=True).fit(X, CHOSEN).elasticities(X, 0)
    ),
    "is the base level of a category, which has no coefficient": lambda: of_table(
        MultinomialLogit(), "mode", "time"
    ).elasticities(Sets.from_frame(FRAME, **ROLES, target_kind="choice", features=["mode", "time"]), 0),
    "names a column, but X is no table": lambda: (
        LatentClassLogit(2, restarts=1)
        .fit(X, CHOSEN, groups=np.arange(N) % 9)
        .predict_proba(X, people="person")
    ),
    "No person is known: give fit the decision maker": lambda: (
        LatentClassLogit(2, restarts=1).fit(X, CHOSEN).predict_proba(X, people=np.arange(N))
    ),
}


@pytest.mark.parametrize("says", REFUSED)
def test_what_a_choice_model_can_not_do_is_said_in_words(says):
    with pytest.raises(UserError, match=says):
        REFUSED[says]()


def test_people_of_a_table_choose_rows_of_it():
    people = FRAME.assign(person=FRAME.trip % 9)
    given = {"features": ["time", "cost"], "groups": "person"}
    model = LatentClassLogit(2, restarts=1).fit(people, **ROLES, **given)
    rows = model.predict(people, people="person")
    p = model.predict_proba(people, people="person")
    assert rows.reshape(N, 4).sum(1).tolist() == [1] * N
    np.testing.assert_array_equal(rows.reshape(N, 4).argmax(1), p.reshape(N, 4).argmax(1))
    labels = np.arange(N) % 9
    sets = Sets.from_frame(people, **ROLES, target_kind="choice", features=["time", "cost"])
    np.testing.assert_array_equal(model.predict(sets, people=labels), rows.reshape(N, 4).argmax(1))


def test_a_base_that_no_set_holds_is_refused():
    rare = FRAME.assign(mode=FRAME["mode"].where(FRAME.trip > 0, "ferry"))
    model = CrossNestedLogit([["bus", "car"], ["car", "rail"]], alternative="mode", base={"mode": "tram"})
    with pytest.raises(UserError, match="base of 'mode'='tram' is not known"):
        model.fit(rare, **ROLES, features=["mode", "time"])


def test_drawn_coefficients_of_a_panel_spread_as_its_robust_errors():
    groups = np.repeat(np.arange(N // 6), 6)
    model = MultinomialLogit().fit(X, CHOSEN, groups=groups)
    spread = np.std([one.coef_ for one in model.drawn(400, 1)], axis=0)
    np.testing.assert_allclose(spread, model.robust_standard_errors_, rtol=0.15)
    plain = np.std([one.coef_ for one in MNL.drawn(400, 1)], axis=0)
    np.testing.assert_allclose(plain, MNL.standard_errors_, rtol=0.15)
