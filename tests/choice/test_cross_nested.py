"""The cross-nested logit: the formula by hand, and its special cases."""

import numpy as np
import pandas as pd
import pytest
from logit_cases import check_gradient

from entourage import load
from entourage.choice import CrossNestedLogit, NestedLogit
from entourage.errors import DataError, ParameterError

RNG = np.random.default_rng(0)
X = [
    np.column_stack([RNG.permutation(4)[:m] + 1, RNG.normal(size=(m, 1))])
    for m in RNG.integers(3, 5, size=400)
]


def choose(x):
    """Choose with errors that 1 and 2 share, and so do 3 and 4, and to a degree 2 and 3."""
    shared = RNG.gumbel(size=3) @ [[1, 1, 0, 0], [0, 0.5, 0.5, 0], [0, 0, 1, 1]]
    return int((x[:, 1] + 1.5 * shared[x[:, 0].astype(int) - 1] + RNG.gumbel(size=len(x))).argmax())


Y = np.array([choose(x) for x in X])


@pytest.mark.parametrize(
    ("nests", "allocation", "parameters"),
    [([[1, 2], [2, 3, 4]], "estimated", 7), ([[1, 2, 4], [2, 3], [4, 3]], "equal", 7)],
)
def test_gradients_are_derivatives(nests, allocation, parameters):
    model = CrossNestedLogit(nests, allocation=allocation)
    sets = model.task.sets_of(X, Y)
    check_gradient(model, sets, np.arange(len(X)), 0.7 * np.random.default_rng(1).normal(size=parameters))


def test_probabilities_are_the_formula_worked_by_hand(tmp_path):
    model = CrossNestedLogit([[1, 2], [2, 3, 4]]).fit(X, Y)
    a = dict(zip([1, 2, 3, 4], np.append(0.0, model.coef_[:3]), strict=True))
    share, (first, second) = model.coef_[4], model.dissimilarities_
    nests = [({1: 1.0, 2: 1 - share}, first), ({2: share, 3: 1.0, 4: 1.0}, second)]
    for x in X[:5]:
        u = {int(i): a[int(i)] + model.coef_[3] * value for i, value in x}
        tops, within = [], []
        for members, scale in nests:
            powers = {i: (alpha * np.exp(u[i])) ** (1 / scale) for i, alpha in members.items() if i in u}
            total = sum(powers.values())
            tops.append(total**scale if powers else 0.0)
            within.append({i: power / total for i, power in powers.items()})
        expected = [
            sum(w.get(int(i), 0.0) * t for w, t in zip(within, tops, strict=True)) / sum(tops)
            for i in x[:, 0]
        ]
        assert model.predict_proba([x])[0] == pytest.approx(np.array(expected))
    assert model.allocations_ == pytest.approx(np.array([[1, 0], [1 - share, share], [0, 1], [0, 1]]))
    model.save(tmp_path / "m")
    assert np.array_equal(load(tmp_path / "m").predict_proba(X)[0], model.predict_proba(X)[0])


def test_without_an_overlap_it_is_a_nested_logit():
    crossed, nested = CrossNestedLogit([[1, 2], [3, 4]]).fit(X, Y), NestedLogit([[1, 2], [3, 4]]).fit(X, Y)
    assert crossed.coef_ == pytest.approx(nested.coef_)
    assert crossed.parameter_names_ == nested.parameter_names_


def test_alternatives_of_a_table_have_names(tmp_path):
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"set": np.repeat(np.arange(200), 3), "mode": np.tile(["car", "bus", "rail"], 200)})
    frame["price"] = rng.normal(size=600)
    u = rng.gumbel(size=600) - frame["price"]
    frame["taken"] = (u == u.groupby(frame["set"]).transform("max")).astype(int)
    roles = {"set_id": "set", "target": "taken"}
    model = NestedLogit([["bus", "rail"]], alternative="mode").fit(frame, **roles)
    ids = frame.assign(mode=frame["mode"].map({"bus": 1, "car": 2, "rail": 3}))
    numbers = NestedLogit([[1, 3]], alternative="mode").fit(ids, **roles)
    assert model.coef_ == pytest.approx(numbers.coef_)
    assert model.parameter_names_ == ["alternative car", "alternative rail", "price", "λ of nest 0"]
    assert "λ of nest 0 against 1: z = " in model.summary()
    z = (model.coef_[-1] - 1) / model.standard_errors_[-1]
    assert f"z = {z:.2f}" in model.summary()
    model.save(tmp_path / "m")
    assert np.array_equal(load(tmp_path / "m").predict_proba(frame), model.predict_proba(frame))
    with pytest.raises(DataError, match="missing or one that was not learnt from"):
        model.predict_proba(frame.assign(mode="boat"))
    with pytest.raises(ParameterError, match="did you mean 'rail'"):
        NestedLogit([["bus", "rial"]], alternative="mode").fit(frame, **roles)
