"""The best set to offer: equal to brute force where it is exact, and honest about it where it is not."""

from itertools import combinations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from entourage import FATE, ContextFree, DiscreteChooser, Ranker, SubsetChooser
from entourage.choice import ContextualLogit, MultinomialLogit, NestedLogit
from entourage.decisions import best_assortment, fractional, search
from entourage.decisions.assortment import seconds_to_enumerate
from entourage.decisions.assortment_problem import make_problem
from entourage.decisions.candidates import candidates_of
from entourage.decisions.market import Market
from entourage.errors import DataError, ParameterError, ShapeError, UserError

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def choices():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4, 2))
    return X, (X @ [1.0, -1.0] + rng.gumbel(size=(300, 4))).argmax(1)


@pytest.fixture(scope="module")
def logit(choices):
    return MultinomialLogit().fit(*choices)


@pytest.fixture(scope="module")
def contextual(choices):
    return ContextualLogit().fit(*choices)


@pytest.fixture(scope="module")
def nested():
    rng = np.random.default_rng(0)
    shared = rng.gumbel(size=(1500, 2))[:, [0, 0, 0, 0, 1, 1, 1, 1]] * [0, 1, 1, 1, 1, 1, 1, 1]
    z = rng.normal(size=(1500, 8))
    X = np.stack([np.tile(np.arange(1, 9), (1500, 1)), z], axis=2)
    model = NestedLogit([[2, 3, 4], [5, 6, 7, 8]])
    return model.fit(X, (z + shared + 0.5 * rng.gumbel(size=(1500, 8))).argmax(1))


@pytest.fixture(scope="module")
def nets(choices):
    X, y = choices
    settings = {"outside": True, "steps": 5, "random_state": 0, "device": "cpu"}
    y = np.where(np.arange(len(y)) % 3 == 0, -1, y)
    return [DiscreteChooser(net, **settings).fit(X, y) for net in (FATE(width=8), ContextFree(width=8))]


def best_by_hand(revenue, m, low, high, required=(), forbidden=()):
    """Try every set; ``revenue`` takes all of one size, (c, size)."""
    best = -np.inf
    for size in range(low, high + 1):
        chosen = [
            c for c in combinations(range(m), size) if set(required) <= set(c) and not set(forbidden) & set(c)
        ]
        if chosen:
            best = max(best, np.max(revenue(np.array(chosen))) if size else 0.0)
    return best


def revenue_in(model, objects, value, weights=None, situations=None):
    """Return the revenue of sets, through the model's own probabilities, on average over situations."""
    X, value = np.asarray(objects), np.asarray(value)
    X = X[None] if X.ndim == 2 else X
    n = len(X) if situations is None else len(situations)
    weights = np.full(n, 1 / n) if weights is None else np.asarray(weights) / np.sum(weights)

    def revenue(chosen):
        total = 0.0
        for i in range(n):
            seen = (
                {} if situations is None else {"situation": np.repeat(situations[[i]], len(chosen), axis=0)}
            )
            p = model.predict_proba(X[i if len(X) > 1 else 0][chosen], **seen)
            total = total + weights[i] * (p * value[chosen]).sum(1)
        return total

    return revenue


CONSTRAINTS = [
    {"required": [0]},
    {"required": [0], "size": (2, 3)},
    {"size": (2, 4)},
    {"required": [0, 3], "forbidden": [5], "size": (4, 6)},
]


def test_200_random_context_dependent_instances_equal_brute_force(contextual):
    """The utilities of all 1,013 sets of 2 to 10 objects, from the formula: b'x + the sum of x_j' A x_i over others."""
    rng = np.random.default_rng(1)
    masks = np.array([[(code >> i) & 1 for i in range(10)] for code in range(1024)], dtype=float)
    masks = masks[masks.sum(1) >= 2]
    theta = contextual.theta_
    try:
        for _ in range(200):
            contextual.theta_ = rng.normal(size=6)
            b, A = contextual.theta_[:2], contextual.theta_[2:].reshape(2, 2)
            x, value = rng.normal(size=(10, 2)), rng.uniform(0, 5, 10)
            pull = x @ A @ x.T  # (j, i): what j adds to i
            u = x @ b + masks @ pull - np.diag(pull)
            powers = masks * np.exp(u - u.max(1, keepdims=True))
            revenues = powers @ value / powers.sum(1)
            found = best_assortment(contextual, x, value, size=(2, 10), intervals="none")
            assert found.value == pytest.approx(revenues.max(), abs=1e-9)
            assert (found.method, found.exact, found.evaluated) == ("enumeration", True, 1013)
            own = int(np.flatnonzero((masks == np.isin(np.arange(10), found.objects)).all(1))[0])
            assert revenues[own] == pytest.approx(revenues.max(), abs=1e-9)  # some sets are as good
    finally:
        contextual.theta_ = theta


@pytest.mark.parametrize("constraints", CONSTRAINTS)
def test_the_logit_optimum_is_that_of_brute_force(logit, constraints):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x, value = rng.normal(size=(8, 2)), np.append(0.0, rng.uniform(0, 5, 7))
        found = best_assortment(logit, x, value, **constraints, intervals="none")
        low, high = constraints.get("size", (1, 8))
        must, never = constraints.get("required", ()), constraints.get("forbidden", ())
        best = best_by_hand(revenue_in(logit, x, value), 8, low, high, must, never)
        assert found.value == pytest.approx(best, abs=1e-9)
        assert found.exact
        assert found.bound == found.value


def test_revenue_ordered_is_the_optimum_worked_by_hand(logit):
    """Weights 1 (nothing), 1, 1 and values 3, 1: {3} earns 1.5, both earn 4/3."""
    found = best_assortment(logit, np.zeros((3, 2)), [0, 3, 1], required=[0])
    assert found.objects.tolist() == [0, 1]
    assert found.value == pytest.approx(1.5)
    assert found.method == "revenue-ordered"
    assert found.interval is not None
    assert found.interval.low <= 1.5 <= found.interval.high
    forced = best_assortment(logit, np.zeros((3, 2)), [0, 3, 1], required=[0], size=(3, 3))
    assert forced.value == pytest.approx(4 / 3)
    assert forced.method == "fractional programming (logit with limits on size)"


def test_several_situations_of_a_logit_are_branched_and_bounded_to_the_optimum(logit):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x, value, weights = rng.normal(size=(5, 8, 2)), rng.uniform(0, 5, 8), rng.dirichlet(np.ones(5))
        value[0] = 0
        settings = {"required": [0], "size": (1, 5), "weights": weights, "intervals": "none"}
        found = best_assortment(logit, x, value, **settings)
        best = best_by_hand(revenue_in(logit, x, value, weights), 8, 1, 5, [0])
        assert found.value == pytest.approx(best, abs=1e-9)
        assert (found.method, found.exact) == ("branch and bound", True)


@pytest.mark.parametrize("constraints", CONSTRAINTS)
@pytest.mark.parametrize("most", [14, 2])
def test_the_nested_optimum_is_that_of_brute_force(nested, constraints, most, monkeypatch):
    """Also where nests are too large to enumerate: then revenue-ordered by nest, or another method that says so."""
    monkeypatch.setattr(fractional, "_MOST_OF_A_NEST", most)
    assert (nested.dissimilarities_ < 1).all()
    for seed in range(3):
        rng = np.random.default_rng(seed)
        x = np.stack([np.arange(1.0, 9), rng.normal(size=8)], axis=1)
        value = np.append(0.0, rng.uniform(0, 5, 7))
        found = best_assortment(nested, x, value, **constraints, intervals="none")
        low, high = constraints.get("size", (1, 8))
        must, never = constraints.get("required", ()), constraints.get("forbidden", ())
        best = best_by_hand(revenue_in(nested, x, value), 8, low, high, must, never)
        assert found.value == pytest.approx(best, abs=1e-9)
        assert found.exact
        if constraints == {"required": [0]}:
            assert found.method == "nest-wise revenue-ordered"


def test_dissimilarities_above_1_are_enumerated_nest_by_nest(nested):
    theta = nested.theta_
    try:
        nested.theta_ = np.append(theta[:-2], np.log([2.5, 0.4]))
        rng = np.random.default_rng(5)
        x = np.stack([np.arange(1.0, 9), rng.normal(size=8)], axis=1)
        value = np.append(0.0, rng.uniform(0, 5, 7))
        found = best_assortment(nested, x, value, required=[0], intervals="none")
        assert found.value == pytest.approx(
            best_by_hand(revenue_in(nested, x, value), 8, 1, 8, [0]), abs=1e-9
        )
        assert found.method == "nest-wise enumeration"
    finally:
        nested.theta_ = theta


@pytest.mark.parametrize("objective", ["revenue", "share", "surplus"])
def test_nets_with_an_outside_option_equal_brute_force(nets, objective):
    rng = np.random.default_rng(0)
    x, value = rng.normal(size=(7, 2)), rng.uniform(0, 5, 7)
    for net in nets:
        given = value if objective == "revenue" else None
        found = best_assortment(net, x, given, size=(0, 4), objective=objective)
        market = Market(net)

        def of(chosen, market=market):
            sets = market.sets_of(x[chosen])
            nothing = market.outside(sets)
            return {
                "revenue": (market.probabilities(sets).reshape(chosen.shape) * value[chosen]).sum(1),
                "share": 1 - nothing,
                "surplus": -np.log(nothing),
            }[objective]

        assert found.value == pytest.approx(best_by_hand(of, 7, 0, 4), abs=1e-5)
        assert found.exact
        assert found.probabilities.sum() + found.outside == pytest.approx(1)
    assert found.method != "enumeration"  # a context-free net is a logit


def test_situations_are_a_mixture_with_weights(choices):
    rng = np.random.default_rng(3)
    X, y = choices
    net = DiscreteChooser(FATE(width=8), steps=5, random_state=0, device="cpu")
    net.fit(X, y, situation=rng.normal(size=(len(X), 1)))
    x, value, seen = rng.normal(size=(5, 2)), rng.uniform(0, 5, 5), np.array([[-1.0], [2.0], [0.5]])
    weights = np.array([1.0, 0.0, 3.0])
    found = best_assortment(net, x, value, size=(2, 4), situations=seen, weights=weights)
    revenue = revenue_in(net, x, value, weights, seen)
    assert found.value == pytest.approx(best_by_hand(revenue, 5, 2, 4), abs=1e-6)
    without = best_assortment(net, x, value, size=(2, 4), situations=seen[[0, 2]], weights=[1, 3])
    assert np.array_equal(without.objects, found.objects)  # weight 0 = left out


def test_greedy_search_finds_the_optimum_of_small_instances_and_makes_no_promise(contextual):
    hits = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x, value = rng.normal(size=(9, 2)), rng.uniform(0, 5, 9)
        settings = {"size": (3, 6), "required": [4], "forbidden": [0], "intervals": "none"}
        greedy = best_assortment(contextual, x, value, method="greedy", random_state=seed, **settings)
        again = best_assortment(contextual, x, value, method="greedy", random_state=seed, **settings)
        exact = best_assortment(contextual, x, value, **settings)
        assert np.array_equal(greedy.objects, again.objects)
        assert greedy.value <= exact.value + 1e-12
        assert (greedy.exact, greedy.bound, greedy.gap) == (False, None, None)
        assert 4 in greedy.objects
        assert 0 not in greedy.objects
        assert 3 <= len(greedy.objects) <= 6
        hits += greedy.value > exact.value - 1e-9
    assert hits >= 5
    assert "no bound is known" in str(greedy)


def test_sets_to_evaluate_are_not_limited_as_sets_to_learn_from_are(contextual, monkeypatch):
    monkeypatch.setattr("entourage.choice.contextual.MOST", 1)
    x, value = RNG.normal(size=(6, 2)), RNG.uniform(0, 5, 6)
    assert best_assortment(contextual, x, value, intervals="none").evaluated == 63


def test_too_many_sets_are_searched_greedily(contextual):
    x, value = RNG.normal(size=(12, 2)), RNG.uniform(0, 5, 12)
    found = best_assortment(contextual, x, value, most_sets=100, size=(2, 6), restarts=1)
    assert found.method == "greedy with exchanges, 1 random restarts"


def test_branch_and_bound_that_is_cut_short_has_a_valid_bound(logit, monkeypatch):
    rng = np.random.default_rng(0)
    x, value = 2 * rng.normal(size=(6, 9, 2)), np.append(0.0, rng.uniform(0, 5, 8))
    best = best_assortment(logit, x, value, required=[0], size=(1, 4), intervals="none")
    monkeypatch.setattr(search, "_NODES", 1)
    short = best_assortment(logit, x, value, required=[0], size=(1, 4), intervals="none", most_sets=1)
    assert best.exact
    assert not short.exact
    assert short.value <= best.value + 1e-12 <= short.bound + 1e-9
    assert short.method.startswith("branch and bound, stopped after 1 branches; greedy")


def test_a_frame_is_an_array_with_names(choices):
    X, y = choices
    long = pd.DataFrame(X.reshape(-1, 2), columns=["quality", "price"])
    long["shelf"], long["bought"] = np.repeat(np.arange(len(X)), 4), np.eye(4, dtype=int)[y].ravel()
    model = MultinomialLogit().fit(long, set_id="shelf", target="bought", target_kind="choice")
    x = np.random.default_rng(2).normal(size=(6, 2))
    products = pd.DataFrame(x, columns=["quality", "price"])[["price", "quality"]]
    products["margin"], products["name"] = [0, 3, 1, 4, 1, 5], list("abcdef")
    settings = {"required": [0], "size": (2, 4), "intervals": "none"}
    by_name = best_assortment(model, products, "margin", **settings)
    by_array = best_assortment(MultinomialLogit().fit(X, y), x, products["margin"].to_numpy(), **settings)
    assert np.array_equal(by_name.objects, by_array.objects)
    assert by_name.value == pytest.approx(by_array.value)
    named = best_assortment(
        model, products, "margin", object_id="name", required=["a"], forbidden=["d"], size=(2, 4)
    )
    assert named.labels[0] == "a"
    assert "d" not in named.labels
    assert isinstance(named.to_frame(), pa.Table)
    weeks = pd.concat([products.assign(shelf=1), products[::-1].assign(shelf=2, price=0.0)])
    both = best_assortment(model, weeks, "margin", object_id="name", required=["a"], size=(2, 4))
    stacked = np.stack([x, np.stack([x[:, 0], np.zeros(6)], axis=1)])
    same = best_assortment(MultinomialLogit().fit(X, y), stacked, products["margin"], **settings)
    assert both.value == pytest.approx(same.value)
    assert both.objects.tolist() == same.objects.tolist()
    with pytest.raises(DataError, match="Say which rows are the same object"):
        best_assortment(model, weeks, "margin")
    with pytest.raises(DataError, match="needs the same objects"):
        best_assortment(model, weeks[1:], "margin", object_id="name")


def test_situations_of_a_table_come_as_a_table(choices):
    X, y = choices
    rng = np.random.default_rng(4)
    long = pd.DataFrame(X.reshape(-1, 2), columns=["quality", "price"])
    long["shelf"], long["bought"] = np.repeat(np.arange(len(X)), 4), np.eye(4, dtype=int)[y].ravel()
    long["age"] = np.repeat(rng.normal(size=len(X)), 4)
    net = DiscreteChooser(FATE(width=8), steps=5, random_state=0, device="cpu")
    net.fit(long, set_id="shelf", target="bought", situation=["age"])
    products = pd.DataFrame(X[0], columns=["quality", "price"]).assign(margin=[1, 4, 2, 3])
    people = pd.DataFrame({"age": [-1.0, 2.0]})
    found = best_assortment(net, products, "margin", size=(2, 3), situations=people, weights=[1, 2])
    given = Market(net).model
    rows = [products.iloc[found.objects].assign(shelf=i, age=age) for i, age in enumerate(people.age)]
    p = given.predict_proba(pd.concat(rows)).reshape(2, -1)
    assert found.value == pytest.approx(np.average((p * found.worth).sum(1), weights=[1, 2]), abs=1e-6)
    with pytest.raises(ParameterError, match="situations is a table, too"):
        best_assortment(net, products, "margin", situations=[[1.0]])
    with pytest.raises(DataError, match="age"):
        best_assortment(net, products, "margin")


def test_an_interrupted_branch_and_bound_is_not_followed_by_another_search(logit):
    rng = np.random.default_rng(0)
    x, value = 2 * rng.normal(size=(6, 9, 2)), np.append(0.0, rng.uniform(0, 5, 8))

    def stop(done, total):
        raise KeyboardInterrupt

    settings = {"required": [0], "size": (1, 4), "intervals": "none"}
    best = best_assortment(logit, x, value, **settings)
    found = best_assortment(logit, x, value, **settings, on_progress=stop, on_interrupt="keep")
    assert found.method == "branch and bound, interrupted"
    assert found.value <= best.value + 1e-12 <= found.bound + 1e-9


def test_rankers_and_subset_choosers_say_what_their_value_is(choices):
    X, _ = choices
    ranks = (-X.sum(2)).argsort(1).argsort(1)
    ranker = Ranker(ContextFree(width=8), steps=5, random_state=0, device="cpu").fit(X, ranks)
    found = best_assortment(ranker, X[0], [1, 2, 3, 4], size=(2, 3))
    assert "first place" in found.notes[-1]
    assert found.value == pytest.approx(
        best_by_hand(revenue_in(ranker, X[0], [1, 2, 3, 4]), 4, 2, 3), abs=1e-6
    )
    some = SubsetChooser(ContextFree(width=8), steps=5, random_state=0, device="cpu").fit(X, X[..., 0] > 0)
    several = best_assortment(some, X[0], [1, 2, 3, 4])
    assert several.objects.tolist() == [0, 1, 2, 3]  # chosen independently, all values positive
    assert several.method == "enumeration"
    assert several.value == pytest.approx(some.predict_proba(X[:1])[0] @ [1, 2, 3, 4], abs=1e-6)
    with pytest.raises(ParameterError, match="shares don't sum to 1"):
        best_assortment(some, X[0], objective="share")


def test_an_interruption_keeps_the_best_so_far_where_that_is_asked_for(contextual):
    x, value = RNG.normal(size=(8, 2)), RNG.uniform(0, 5, 8)

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        best_assortment(contextual, x, value, on_progress=stop)
    found = best_assortment(contextual, x, value, on_progress=stop, on_interrupt="keep")
    assert not found.exact
    assert found.method == "enumeration, interrupted after 8 of 255 sets"


def test_the_time_of_an_enumeration_is_estimated(contextual, capsys):
    x, value = RNG.normal(size=(7, 2)), RNG.uniform(0, 5, 7)
    market = Market(contextual)
    offer = make_problem(
        market,
        candidates_of(contextual, x),
        value=value[None],
        objective="revenue",
        size=None,
        required=None,
        forbidden=None,
        weights=None,
    )
    assert 0 < seconds_to_enumerate(offer) < 10
    best_assortment(contextual, x, value, verbose=True)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"value": None}, "Revenue needs value"),
        ({"value": [1, 2]}, "one number for each of 4 objects"),
        ({"value": [1, 2, 3, np.nan]}, "value of object 3 is missing"),
        ({"value": "margin"}, "names a column, but the objects are no table"),
        ({"objective": "profit"}, "objective='profit' is not known"),
        ({"objective": "share", "value": None}, "every set has share 1"),
        ({"objective": "share"}, "1 for objects whose share counts"),
        ({"objective": "surplus", "model": "contextual"}, "not identified"),
        ({"size": (0, 2)}, "needs an outside option"),
        ({"size": (3, 2)}, "at least 3"),
        ({"size": (5, 9)}, "only 4 may be offered"),
        ({"size": 1, "required": [0, 1]}, "2 objects are required"),
        ({"required": [0], "forbidden": [0]}, "required and forbidden"),
        ({"required": [4]}, "from 0 to 3; got 4"),
        ({"required": ["a"]}, "give object_id"),
        ({"weights": [1.0, 2.0]}, "one entry for each of 1 situations"),
        ({"weights": [-1.0]}, "none negative"),
        ({"method": "magic"}, "method='magic' is not known"),
        ({"objects": np.zeros(3)}, "objects needs the axes"),
    ],
)
def test_what_does_not_fit_is_refused(logit, contextual, settings, said):
    given = {"model": "logit", "objects": np.zeros((4, 2)), "value": [1, 2, 3, 4]} | settings
    model = {"logit": logit, "contextual": contextual}[given.pop("model")]
    with pytest.raises(UserError, match=said):
        best_assortment(model, given.pop("objects"), **given)
    assert issubclass(ShapeError, UserError)
