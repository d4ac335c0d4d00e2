"""Attraction, compromise and similarity in observed choice sets: cases by definition, sizes by construction."""

import itertools
import json

import numpy as np
import pytest
from effect_cases import MIXED, C, Model, T, alone, middle, near_dominated, shared

from entourage.data import Sets
from entourage.effects import decoys_among, natural_effects
from entourage.errors import DataError, ParameterError, ShapeError

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("effect", "utility", "third", "size", "triples"),
    [
        ("attraction", near_dominated, T - 0.1, 2, 2),
        ("compromise", middle, T + np.array([-1.0, 1.0]), 1, 4),  # either neighbour may come second
        ("similarity", shared, C + np.array([0.05, -0.05]), np.log(2), 4),  # and either twin
    ],
)
def test_effects_are_found_in_the_sets_with_the_size_they_were_made_with(
    effect, utility, third, size, triples
):
    found = natural_effects(Model(utility), np.stack([T, C, third], axis=1))
    assert found.better == {"x0": "more", "x1": "more"}
    assert (found.failed, found.left_out, found.sets[effect]) == (None, [], 2)
    np.testing.assert_allclose(found.effects[effect].shift.values, [size] * triples)
    if effect == "attraction":
        assert found.effects["compromise"] is found.effects["similarity"] is None
    assert json.loads(json.dumps(found.to_json(), allow_nan=False))[effect]["sets"] == 2


def kinds_in_words(a, b, c):
    """The definitions of the three effects, for one triple and in plain loops."""

    def dominates(x, y):
        return all(p >= q for p, q in zip(x, y, strict=True)) and any(
            p > q for p, q in zip(x, y, strict=True)
        )

    def traded(x, y):
        return not dominates(x, y) and not dominates(y, x)

    apart = traded(a, b) and traded(a, c) and traded(b, c)
    sides = [(p - q) * (r - p) for p, q, r in zip(a, b, c, strict=True)]
    return {
        "attraction": dominates(a, c) and not dominates(b, c) and traded(a, b),
        "compromise": apart and min(sides) >= 0 and max(sides) > 0,
        "similarity": apart and 3 * np.linalg.norm(c - b) < np.linalg.norm(c - a),
    }


def test_the_cases_are_those_of_the_definitions():
    X = RNG.normal(size=(40, 5, 2))
    X[:20, :, 0] = X[:20, :, 0].round()  # with ties
    scaled = X / X.reshape(-1, 2).std(0)
    counts = dict.fromkeys(("attraction", "compromise", "similarity"), 0)
    for x in scaled:
        for a, b, c in itertools.permutations(x, 3):
            for name, holds in kinds_in_words(a, b, c).items():
                counts[name] += holds
    found = natural_effects(Model(alone), X * [1, -7], better={"x0": "more", "x1": "less"})
    assert {name: one.shift.n for name, one in found.effects.items()} == counts
    assert min(counts.values()) > 10


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_model_without_context_has_exactly_no_natural_effect(dtype):
    found = natural_effects(Model(alone, dtype), RNG.normal(size=(60, 5, 2)))
    for one in found.effects.values():
        assert (one.shift.value, one.shift.interval(), one.reversal_rate) == (0, (0, 0), 0)
        assert one.before == one.after


def test_the_model_says_which_direction_is_better_unless_it_is_given():
    model = Model(lambda x: near_dominated(x * [1, -1]))
    X = np.stack([T, C, T - 0.1], axis=1) * [1, -1]
    found = natural_effects(model, X, names=["quality", "price"])
    assert found.better == {"quality": "more", "price": "less"}
    assert found.slopes["quality"] > 0 > found.slopes["price"]
    assert found.effects["attraction"].shift.value == pytest.approx(2)
    other = natural_effects(model, X, names=["quality", "price"], better={"price": "more"})
    assert other.better == {"quality": "more", "price": "more"}
    assert list(other.slopes) == ["quality"]
    assert other.effects["attraction"] is None


def test_what_has_no_order_takes_no_part_and_too_little_is_said():
    X = np.concatenate([np.stack([T, C, T - 0.1], axis=1), RNG.normal(size=(2, 3, 3))], axis=2)
    X[:, :, 3] = 4.0  # constant; the fifth is nothing to the model; the third is a category
    model = Model(lambda x: near_dominated(x[:, :2]) + x[:, 2])
    found = natural_effects(model, X, ordered=[0, 1, 3, 4])
    assert (list(found.better), found.left_out) == (["x0", "x1"], ["x2", "x3", "x4"])
    assert found.effects["attraction"].shift.n == 2
    few = natural_effects(model, X, ordered=[0, 3])
    assert few.failed.endswith("there is one, 'x0'.")
    assert set(few.effects.values()) == {None}
    assert natural_effects(model, X, ordered=[]).failed.endswith("there is none.")


def test_triples_of_one_set_are_resampled_together_and_work_is_bounded():
    model = Model(lambda x: np.sin(x @ x.sum(0)))
    X = [RNG.normal(size=(m, 2)) for m in (70, 3, 2, 80, 3, 90)]
    found = natural_effects(model, X, most_triples=300)
    one = found.effects["attraction"]
    assert (one.shift.n, found.sets["attraction"]) == (300, len(np.unique(one.shift.groups)))
    again = natural_effects(model, X, most_triples=300)
    np.testing.assert_array_equal(one.shift.values, again.effects["attraction"].shift.values)
    assert natural_effects(model, X[:1]).to_json()["attraction"]["interval"] is None
    assert model.calls < 60


def test_situations_come_along():
    class Tilted:  # what is dominated closely helps only in situation 1
        def predict_scores(self, sets):
            about = sets.situation[:, 0]
            return np.concatenate(
                [
                    x.sum(1) + s * (near_dominated(x) - x.sum(1))
                    for x, s in zip(sets.to_list(), about, strict=True)
                ]
            )

    sets = Sets.of(np.stack([T, C, T - 0.1], axis=1), None, np.array([[1.0], [0.0]]))
    np.testing.assert_allclose(natural_effects(Tilted(), sets).effects["attraction"].shift.values, [2, 0])
    assert [one.candidate for one in decoys_among(Tilted(), sets, 0, 1).helps] == [2]
    assert decoys_among(Tilted(), sets, 3, 4).helps == []


def test_objects_that_miss_a_feature_are_in_no_case():
    X = np.concatenate([np.stack([T, C, T - 0.1], axis=1), np.zeros((len(T), 3, 1))], axis=2)
    X[0, 2, 2] = 1  # the first decoy's second feature was missing
    found = [natural_effects(Model(alone), X, ordered=[0, 1], marks=marks) for marks in (None, {1: 2})]
    assert [one.effects["attraction"].shift.n for one in found] == [len(T), len(T) - 1]


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda: natural_effects(Model(alone), np.zeros((4, 2, 1))), DataError, "at least three objects"),
        (lambda: natural_effects(Model(alone), MIXED, names=["a"]), ShapeError, "one for each of 2"),
        (lambda: natural_effects(Model(alone), MIXED, better={"a": "more"}), ParameterError, "'a' is none"),
        (lambda: natural_effects(Model(alone), MIXED, better={"x0": "most"}), ParameterError, "'more'"),
    ],
)
def test_wrong_input_says_what_is_needed(wrong, error, words):
    with np.errstate(divide="ignore"), pytest.raises(error, match=words):
        wrong()
