"""Trees as arrays: the scores of LightGBM to the bit, and no file of them that is none."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from entourage.errors import ModelFileError
from entourage.estimators.baselines.trees import Trees
from entourage.training.file_checks import Arrays

lightgbm = pytest.importorskip("lightgbm")


def booster(X, y, rounds=20, **params):
    settings = {
        "num_leaves": 15,
        "min_data_in_leaf": 2,
        "verbose": -1,
        "num_threads": 1,
        "use_missing": False,
    }
    return lightgbm.train(settings | params, lightgbm.Dataset(X, y), rounds)


def awkward_numbers(n=400, d=4):
    """Numbers that equal thresholds, zeros of both signs, large and small ones."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    X[:, 1] = rng.integers(-2, 3, size=n)
    X[::3, 2] = 0.0
    X[::5, 2] = -0.0
    X[:, 3] *= np.exp(rng.normal(size=n) * 20)
    return X, np.sin(3 * X[:, 0]) + X[:, 1] + (X[:, 2] > 0) + (X[:, 3] > 1)


def test_scores_are_those_of_lightgbm_to_the_bit():
    X, y = awkward_numbers()
    model = booster(X, y)
    trees = Trees.of(model)
    assert np.array_equal(trees.score(X), model.predict(X))
    at_thresholds = np.repeat(trees.threshold[:, None], 4, axis=1)
    for shift in (-np.inf, 0, np.inf):
        inputs = np.nextafter(at_thresholds, shift) if shift else at_thresholds
        assert np.array_equal(trees.score(inputs), model.predict(inputs))
    zeros = np.array([[0.0] * 4, [-0.0] * 4, [1e-40] * 4, [-1e-40] * 4, [1e308] * 4])
    assert np.array_equal(trees.score(zeros), model.predict(zeros))


def test_rows_are_scored_alike_in_any_block(monkeypatch):
    X, y = awkward_numbers()
    trees = Trees.of(booster(X, y))
    whole = trees.score(X)
    monkeypatch.setattr("entourage.estimators.baselines.trees.ROWS", 7)
    assert np.array_equal(trees.score(X), whole)
    assert trees.score(X[:0]).shape == (0,)
    assert np.array_equal(trees.score(X.astype(np.float32)), trees.score(X.astype(np.float32).astype(float)))


def test_the_first_trees_a_tree_of_one_leaf_and_a_mean():
    X, y = awkward_numbers()
    model = booster(X, y)
    assert np.array_equal(Trees.of(model, 3).score(X), model.predict(X, num_iteration=3))
    flat = booster(X, np.ones(len(X)), rounds=1)
    assert np.array_equal(Trees.of(flat).score(X), flat.predict(X))
    both = Trees.mean([Trees.of(model, 3), Trees.of(model, 5)], base=2.0)
    expected = 2 + (model.predict(X, num_iteration=3) + model.predict(X, num_iteration=5)) / 2
    np.testing.assert_allclose(both.score(X), expected, rtol=1e-12)
    assert both.count == 9


def test_splits_of_categories_are_refused_rather_than_misread():
    X = np.random.default_rng(0).integers(0, 9, size=(300, 1)).astype(float)
    settings = {"verbose": -1, "min_data_in_leaf": 1, "min_data_per_group": 1}
    data = lightgbm.Dataset(X, (X[:, 0] % 3 == 0) * 1.0, categorical_feature=[0])
    with pytest.raises(NotImplementedError, match="splits of numbers"):
        Trees.of(lightgbm.train(settings, data, 2))


def read(tensors, n_features=4):
    arrays = Arrays(tensors)
    trees = Trees.taken_from(arrays, n_features)
    arrays.must_be_empty()
    return trees


@pytest.fixture(scope="module")
def kept():
    X, y = awkward_numbers()
    return Trees.mean([Trees.of(booster(X, y, 4))], base=0.5).tensors()


def test_what_is_kept_comes_back(kept):
    X, _ = awkward_numbers()
    assert np.array_equal(read(kept).score(X), read(read(kept).tensors()).score(X))
    with pytest.raises(ModelFileError, match="features that are none"):
        read(kept, n_features=2)


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("left", 0, 0),  # a node that is its own child
        ("right", 3, 1),  # a child before its parent
        ("left", 0, 10**6),
        ("left", 0, -(10**6)),
        ("left", 1, -(2**63)),
        ("feature", 0, -1),
        ("feature", 0, 4),
        ("threshold", 0, float("nan")),
        ("threshold", 0, float("inf")),
        ("value", 0, float("inf")),
        ("leaves", 0, 0),
        ("leaves", 0, -1),
        ("leaves", 0, 2**62),
    ],
)
def test_arrays_that_are_no_trees_are_refused(kept, name, place, value):
    changed = {key: tensor.clone() for key, tensor in kept.items()}
    changed[f"trees.{name}"][place] = value
    with pytest.raises(ModelFileError):
        read(changed)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_whatever_the_children_are_scoring_ends(data):
    children = st.lists(st.integers(-4, 3), min_size=3, max_size=3)
    tensors = {
        "trees.feature": torch.zeros(3, dtype=torch.int64),
        "trees.threshold": torch.zeros(3, dtype=torch.float64),
        "trees.left": torch.tensor(data.draw(children)),
        "trees.right": torch.tensor(data.draw(children)),
        "trees.value": torch.arange(4, dtype=torch.float64),
        "trees.leaves": torch.tensor([4]),
    }
    try:
        trees = read(tensors)
    except ModelFileError:
        return
    assert set(trees.score(np.array([[-1.0], [1.0]]))) <= {0.0, 1.0, 2.0, 3.0}
