"""``monotone=`` of estimators: names and places, every view of a column, ensembles, files, the command."""

import numpy as np
import pandas as pd
import pytest
from commands import run

from entourage import FATE, ContextFree, DiscreteChooser, Ranker, SubsetChooser, load
from entourage.data import Sets
from entourage.errors import ModelFileError, ParameterError
from entourage.estimators.model_file import describe_net_estimator, net_estimator_from
from entourage.selection.auto import plan_blend

RNG = np.random.default_rng(0)
X = np.exp(1.5 * RNG.normal(size=(120, 4, 3)))  # heavy tails: mapped by quantiles
DEAR = X[..., 1].argmax(1)  # the dearest is chosen: the data say the opposite of what is asked for
QUICK = {"steps": 40, "validation": 0.2, "random_state": 0, "device": "cpu"}


def demand_rises(model, X, place):
    """Return the share of objects whose own probability rises when their column does."""
    n, m, _ = X.shape
    before = model.predict_proba(X)
    rises = np.zeros((n, m), dtype=bool)
    for i in range(m):
        for factor in (1.01, 1.1, 3.0):
            dearer = X.copy()
            dearer[:, i, place] *= factor
            rises[:, i] |= model.predict_proba(dearer)[:, i] > before[:, i] + 1e-6
    return rises.mean()


@pytest.mark.parametrize(
    ("net", "settings"),
    [
        (FATE(width=8), {"relative": "all"}),
        (FATE(width=8), {"standardize": "piecewise", "members": 2}),
        (ContextFree(width=8), {"standardize": "quantiles", "relative": [1]}),
    ],
    ids=["relative", "piecewise-members", "quantiles"],
)
def test_demand_never_rises_with_the_price_whatever_the_view(net, settings, tmp_path):
    model = DiscreteChooser(net, monotone={1: -1}, **settings, **QUICK).fit(X, DEAR)
    assert demand_rises(model, X[:40], 1) == 0
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.monotone == {1: -1}
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_without_it_the_net_learns_what_the_data_say():
    assert demand_rises(DiscreteChooser(FATE(width=8), **QUICK).fit(X, DEAR), X, 1) > 0.5


def test_every_task_and_an_outside_option_have_it():
    outside = np.where(RNG.random(120) < 0.3, -1, DEAR)
    models = [
        DiscreteChooser("fate", outside=True, monotone={1: -1}, **QUICK).fit(X, outside),
        SubsetChooser("fate", monotone={1: -1}, **QUICK).fit(X, X[..., 1] > np.median(X[..., 1])),
        Ranker("fate", monotone={1: -1}, **QUICK).fit(X, (-X[..., 1]).argsort(1).argsort(1)),
    ]
    for model in models:
        assert demand_rises(model, X[:40], 1) == 0, model


def table():
    n, m = 40, 3
    rows = {
        "who": np.repeat(np.arange(n), m),
        "brand": RNG.choice([f"b{i}" for i in range(60)], n * m),  # so many levels are codes
        "price": RNG.random(n * m) + 1,
        "colour": RNG.choice(["red", "blue"], n * m),
        "age": np.repeat(RNG.random(n), m),
    }
    frame = pd.DataFrame(rows)
    best = frame.groupby("who")["price"].transform("max")
    return frame.assign(chosen=(frame["price"] == best).astype(int)).sample(frac=1, random_state=0)


ROLES = {"set_id": "who", "target": "chosen", "situation": ["age"]}


def test_columns_of_tables_are_named_with_codes_before_them_and_rows_in_any_order(tmp_path):
    frame = table()
    model = DiscreteChooser("fate", monotone={"price": -1}, relative=["price"], **QUICK).fit(frame, **ROLES)
    assert model.categories_, "brands are codes"
    model.save(tmp_path / "m")
    for fitted in (model, load(tmp_path / "m")):
        assert fitted.monotone == {"price": -1}
        before = fitted.predict_proba(frame)
        for who in range(3):
            own = (frame["who"] == who).to_numpy() & ~frame["who"].duplicated().to_numpy()
            dearer = frame.assign(price=frame["price"] + 0.7 * own)
            assert fitted.predict_proba(dearer)[own] < before[own] + 1e-7
    again = model.partial_fit(frame)  # keeps the constraint
    assert again.view_.monotone == ((1, -1),)
    with pytest.raises(ParameterError, match="parameters have changed"):
        model.set_params(monotone=None).partial_fit(frame)


@pytest.mark.parametrize(
    ("monotone", "says"),
    [
        ({"prize": -1}, "'prize', which is no feature of the objects; it can be one of 'price'"),
        ({"brand": -1}, "'brand', which is a category"),
        ({"colour": -1}, "'colour', which is a category"),
        ({"age": -1}, "'age', which is the same for all objects"),
        ({"price": -2}, "needs \\+1 .* got 'price': -2"),
        ({"price": True}, "got 'price': True"),
        ({"price": -1, 1: -1}, "names feature 1 twice"),
        ({0: 1}, "feature 0, which holds codes"),
        ({9: 1}, "places of features from 0 to"),
        (["price"], "needs a dict"),
    ],
    ids=str,
)
def test_what_cannot_be_monotone_is_said(monotone, says):
    with pytest.raises(ParameterError, match=says):
        DiscreteChooser("fate", monotone=monotone, **QUICK).fit(table(), **ROLES)


def test_a_name_needs_a_table():
    with pytest.raises(ParameterError, match="there is no table"):
        DiscreteChooser("fate", monotone={"price": -1}, **QUICK).fit(X, DEAR)


def test_auto_blends_nothing_but_nets_that_have_it():
    sets = Sets.of(X, (np.arange(4) != DEAR[:, None]).astype(float))
    plan = plan_blend(DiscreteChooser("auto", monotone={1: -1}), sets)
    assert plan.candidates
    assert all(one.model.monotone == {1: -1} for one in plan.candidates)


@pytest.mark.parametrize(
    "wrong", [[[9, -1]], [[1, 2]], [[1, -1], [1, -1]], [[0.5, 1]], "x", [[0, -1], [1, -1]]], ids=str
)
def test_a_file_that_says_something_else_is_refused(wrong):
    model = DiscreteChooser(FATE(width=4), monotone={1: -1}, **QUICK | {"steps": 2}).fit(X, DEAR)
    content, tensors = describe_net_estimator(model)
    content["view"]["monotone"] = wrong
    with pytest.raises(ModelFileError):
        net_estimator_from(DiscreteChooser, content, tensors)


def test_the_command_takes_columns_and_signs(tmp_path, capsys):
    table().to_csv(tmp_path / "t.csv", index=False)
    options = ["--set-id", "who", "--target", "chosen", "--target-kind", "choice", "--situation", "age"]
    options += ["--model", "fate", "--steps", 5, "-o", tmp_path / "m"]
    code, _, err = run(capsys, "fit", tmp_path / "t.csv", *options, "--monotone", "price:-1")
    assert code == 0, err
    assert load(tmp_path / "m").view_.monotone == ((1, -1),)
    for wrong, says in {
        "price": "such as price:-1",
        "price:2": "got 'price:2'",
        "brand:1": "is a category",
    }.items():
        code, _, err = run(capsys, "fit", tmp_path / "t.csv", *options, "--monotone", wrong)
        assert code == 2
        assert says in " ".join(err.split())
