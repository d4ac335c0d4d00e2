"""The test of context in choices: it keeps its level, finds context, and is indifferent to order, offset and scale.

``python -m benchmarks.calibration.context_test`` measures the same on more scenarios and data sets.
"""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import kstest

from entourage.data.sets import Sets
from entourage.effects.context_test import context_test
from entourage.errors import DataError, ParameterError

RNG = np.random.default_rng(0)


# --- choices whose reasons are known --------------------------------------------------------------


def choices(seed, n=40, context=0.0, curved=0.0, sizes=(3,), shared_part=0.0):
    rng = np.random.default_rng(seed)
    parts, chosen = [], []
    for i in range(n):
        x = rng.normal(size=(sizes[i % len(sizes)], 2)) + shared_part * rng.normal(size=2)
        utility = x @ [1.0, -0.5] - curved * np.square(x).sum(1) + context * ((x.sum(0) - x) * x).sum(1)
        parts.append(x)
        chosen.append(int((utility + rng.gumbel(size=len(x))).argmax()))
    return parts, np.array(chosen)


def log_price(rng, n):
    """Quality and a price that is about a level between 10 and 500 in each set; its logarithm counts."""
    level = rng.uniform(np.log(10), np.log(500), (n, 1))
    quality, log = rng.normal(size=(n, 4)), level + 0.5 * rng.normal(size=(n, 4))
    chosen = (quality - 2 * log + rng.gumbel(size=(n, 4))).argmax(1)
    return np.stack([quality, np.exp(log)], axis=2), chosen, None


def people(rng, n, *, middle=0.0, tastes=1.0):
    """People choose ten times each, by tastes of their own and, times ``middle``, nearness to the mean of the set."""
    X, groups = rng.normal(size=(n, 4, 2)) + 0.5 * rng.normal(size=(n, 1, 2)), np.arange(n) // 10
    taste = rng.normal([1.0, -0.5], tastes, (n, 2))[groups]
    near = -np.abs(X - X.mean(1, keepdims=True)).sum(2)
    utility = np.einsum("nmd,nd->nm", X, taste) + middle * near
    return X, (utility + rng.gumbel(size=(n, 4))).argmax(1), groups


def favourites(rng, n):
    """Four labelled alternatives, of which three are on offer, and of which everybody has favourites."""
    groups, which = np.arange(n) // 10, rng.permuted(np.tile(np.arange(4), (n, 1)), axis=1)[:, :3]
    liked = rng.normal([0, 0.5, 1.0, 0.5], 1.0, (n, 4))[groups]
    price = rng.normal(size=(n, 3))
    utility = np.take_along_axis(liked, which, axis=1) - price
    X = np.concatenate([np.eye(4)[which][:, :, 1:], price[:, :, None]], axis=2)
    return X, (utility + rng.gumbel(size=(n, 3))).argmax(1), groups


def compromise(rng, n):
    """Of products that are good in one thing or another, those in the middle are preferred."""
    quality = rng.random((n, 3, 1))
    X = np.concatenate([quality, 1 - quality + 0.15 * rng.normal(size=(n, 3, 1))], axis=2)
    extreme = np.abs(X - (X.max(1, keepdims=True) + X.min(1, keepdims=True)) / 2).sum(2)
    return X, (3 * X.sum(2) - 4 * extreme + rng.gumbel(size=(n, 3))).argmax(1), None


def near_the_mean(rng, n):
    return people(rng, n, middle=1.0)


def rejections(scenario, n, data_sets, *, blind=False, **options):
    p = []
    for seed in range(data_sets):
        X, y, groups = scenario(np.random.default_rng([seed, n]), n)
        groups = None if blind else groups
        p.append(context_test(X, y, groups=groups, draws=39, random_state=seed, **options).p_value)
    return np.mean(np.array(p) <= 0.05)


# --- level and power ------------------------------------------------------------------------------


@pytest.mark.parametrize("own", ["linear", "quadratic", "spline"])
def test_without_context_p_values_are_uniform(own):
    found = [
        context_test(*choices(seed, 60), own=own, draws=99, random_state=10_000 + seed) for seed in range(80)
    ]
    p = np.array([one.p_value for one in found])  # 0.01, 0.02, ..., 1
    assert kstest(p - 0.005, "uniform").pvalue > 0.002
    assert np.mean(p <= 0.05) <= 0.11


def test_a_logarithm_over_prices_of_many_levels_is_not_taken_for_context():
    assert rejections(log_price, 150, 40) <= 0.15
    assert rejections(log_price, 300, 20) <= 0.15
    assert rejections(log_price, 300, 20, own="quadratic") >= 0.3  # which is why it isn't the default


def test_tastes_of_people_are_not_taken_for_context_where_the_test_knows_who_chose():
    assert rejections(people, 300, 25) <= 0.16
    assert rejections(favourites, 150, 15) <= 0.2
    assert rejections(people, 300, 15, blind=True) >= 0.3  # groups are needed


def test_context_is_found():
    assert rejections(compromise, 300, 15) >= 0.8
    assert rejections(near_the_mean, 300, 15) >= 0.8
    for sizes in ((3,), (2, 5, 3)):
        p = [context_test(*choices(s, 200, 0.6, sizes=sizes), draws=39).p_value for s in range(15)]
        assert np.mean(np.array(p) <= 0.05) > 0.8


def test_groups_without_differences_of_taste_cost_little_power():
    X, y, _ = people(np.random.default_rng(0), 300, middle=1.0, tastes=0.0)
    assert context_test(X, y, groups=np.arange(300) // 5, draws=39).p_value == 1 / 40


# --- what must not matter -------------------------------------------------------------------------


def test_order_offset_and_scale_do_not_matter():
    X, y, groups = people(np.random.default_rng(1), 100)
    for who in (None, groups):
        found = context_test(X, y, groups=who, draws=39)
        order = RNG.permutation(100)
        turned = [RNG.permutation(len(X[i])) for i in order]
        shuffled = context_test(
            [X[i][turn] for i, turn in zip(order, turned, strict=True)],
            [int(np.flatnonzero(turn == y[i])[0]) for i, turn in zip(order, turned, strict=True)],
            groups=None if who is None else who[order],
            draws=39,
        )
        assert shuffled == found
        moved = context_test([30 * x + 1.7e9 for x in X], y, groups=who, draws=39)
        assert moved.p_value == found.p_value
        assert moved.statistic == pytest.approx(found.statistic, rel=1e-3)


def test_the_same_seed_gives_the_same_bits_and_another_seed_another_null():
    X, y = choices(0, 60)
    groups = np.arange(60) // 6
    assert context_test(X, y, groups=groups, draws=9) == context_test(X, y, groups=groups, draws=9)
    assert (
        context_test(X, y, draws=9).null
        != context_test(X, y, draws=9, random_state=np.random.default_rng(1)).null
    )


def test_sets_of_one_object_take_no_part_and_neither_do_their_groups():
    X, y = choices(2, 60)
    groups = np.arange(60) // 6
    found = context_test([*X, np.ones((1, 2))], [*y, 0], groups=[*groups, 99], draws=9)
    assert found == context_test(X, y, groups=groups, draws=9)
    assert (found.n_sets, found.n_groups) == (60, 10)


@pytest.mark.parametrize("grouped", [False, True])
def test_unfriendly_data_get_a_p_value_without_warnings(grouped):
    X = RNG.normal(size=(40, 3, 2))
    y = RNG.integers(0, 3, 40)
    ties = RNG.integers(0, 2, size=(40, 3, 2)).astype(float)
    cases = {
        "separable": (X, X[:, :, 0].argmax(1)),
        "constant column": (np.concatenate([X, np.ones((40, 3, 1))], axis=2), y),
        "the same column twice": (X[:, :, [0, 1, 0]], y),
        "of a level only": (np.concatenate([X, np.repeat(X[:, :1, :1], 3, axis=1)], axis=2), y),
        "heavy tails": (np.sinh(6 * X), y),
        "0 and 1": (ties, y),
        "seven sets": (X[:7], y[:7]),
        "the first always": (X, np.zeros(40, dtype=int)),
        "float32": (X.astype(np.float32), y),
    }
    for name, (offers, chosen) in cases.items():
        groups = np.arange(len(offers)) // 4 if grouped else None
        found = context_test(offers, chosen, groups=groups, draws=9)
        assert 0 < found.p_value <= 1, name
        assert np.isfinite([found.statistic, *found.null]).all(), name


def test_the_null_is_not_drawn_from_the_numbers_that_made_the_features():
    rng = np.random.default_rng(0)
    quality = rng.random((2_000, 3, 1))
    X = np.concatenate([quality, 1 - quality + 0.15 * rng.normal(size=(2_000, 3, 1))], axis=2)
    chosen = (3 * X.sum(2) + rng.gumbel(size=(2_000, 3))).argmax(1)
    assert max(context_test(X, chosen, draws=19, random_state=0).null) < 20


def test_the_package_exports_the_function_of_this_name_not_the_module():
    import entourage.effects

    assert entourage.effects.context_test is context_test
    assert callable(entourage.effects.context_test)


# --- what is said ---------------------------------------------------------------------------------


def test_the_null_is_the_maximum_of_the_likelihood():
    X, y = choices(3, 60)
    given = np.stack(X)

    def loss(b):
        u = given @ b
        return (np.log(np.exp(u).sum(1)) - u[np.arange(60), y]).sum()

    found = context_test(X, y, own="linear", draws=1)
    assert found.without_context == pytest.approx(-minimize(loss, np.zeros(2)).fun, abs=1e-3)
    assert (found.degrees, found.interaction) == (4, "full")


def test_many_features_or_few_people_are_tested_by_the_diagonal():
    X = RNG.normal(size=(100, 3, 6))
    found = context_test(X, RNG.integers(0, 3, 100), draws=1)
    assert (found.interaction, found.degrees) == ("diagonal", 6)
    few = context_test(*choices(0, 60), groups=np.arange(60) // 10, draws=1)
    assert (few.interaction, few.degrees) == ("diagonal", 2)


def test_assumptions_stand_beside_the_p_value():
    X, y = choices(0, 60)
    plain = " ".join(context_test(X, y, draws=1).assumptions)
    assert "smooth in each feature" in plain
    assert "give groups" in plain
    assert "Everyone has the same tastes" in plain
    people = " ".join(context_test(X, y, groups=np.arange(60) // 6, draws=1).assumptions)
    assert "normally distributed between the 10 groups" in people
    assert "Everyone" not in people
    assert "linear" in context_test(X, y, own="linear", draws=1).assumptions[0]
    alone = context_test(X, y, groups=["me"] * 60, draws=9)
    assert "The one group" in alone.assumptions[1]
    assert alone.p_value == context_test(X, y, draws=9).p_value


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda: context_test(np.zeros((3, 1, 1)), [0, 0, 0]), DataError, "two objects"),
        (lambda: context_test(np.zeros((3, 2, 1))), DataError, "Choices are needed"),
        (lambda: context_test(np.ones((3, 2, 1)), [0, 1, 0]), DataError, "alike"),
        (lambda: context_test(Sets.of(RNG.normal(size=(9, 2, 1))), np.zeros(9)), DataError, "Larger sets"),
        (lambda: context_test(*choices(0), own="cubic"), ParameterError, "own='cubic'"),
        (lambda: context_test(*choices(0), interaction="half"), ParameterError, "interaction='half'"),
        (lambda: context_test(*choices(0), draws=0), ParameterError, "draws"),
        (lambda: context_test(*choices(0), groups=[1, 2]), DataError, r"one label a set, shape \(40,\)"),
    ],
)
def test_wrong_input_says_what_is_needed(wrong, error, words):
    with pytest.raises(error, match=words):
        wrong()
