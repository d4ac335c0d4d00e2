"""Generated tasks of choosing, against slow oracles."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from entourage.data import make_choice, make_digits, make_pareto
from entourage.errors import ParameterError


def test_the_medoid_is_nearest_to_all_others():
    X, y = make_choice("medoid", n_sets=20, n_objects=6, random_state=1)
    for points, chosen in zip(X.astype(float), y, strict=True):
        assert chosen == np.argmin([np.linalg.norm(points - p, axis=1).sum() for p in points])


def test_of_the_two_closest_objects_the_one_with_the_nearer_next_neighbour_is_chosen():
    X, y = make_choice("nearest_neighbour", n_sets=20, n_objects=6, n_features=3, random_state=1)
    for points, chosen in zip(X, y, strict=True):
        distances = [tuple(sorted(np.linalg.norm(points - p, axis=1))[1:3]) for p in points]
        assert distances[chosen] == min(distances)


def test_hypervolume_takes_the_largest_contribution():
    X, y = make_choice("hypervolume", n_sets=50, n_objects=2, random_state=0)
    for (a, b), chosen in zip(-X.astype(float), y, strict=True):  # areas up to the origin
        both = np.minimum(a, b).prod()
        assert chosen == np.argmax([a.prod() - both, b.prod() - both])


def test_pareto_objects_are_not_dominated():
    X, y = make_pareto(n_sets=20, n_objects=7, n_features=3, random_state=2)
    for points, chosen in zip(X, y, strict=True):
        for p, is_chosen in zip(points, chosen, strict=True):
            assert is_chosen == (not any((q > p).all() for q in points))
    assert (y.sum(1) >= 1).all()


@pytest.mark.parametrize("task", ["mode", "unique"])
def test_digits_by_how_often_their_kind_is_there(task):
    pictures, kinds = load_digits(return_X_y=True)
    pictures = (pictures / 16).astype(np.float32)
    known = {picture.tobytes(): kind for picture, kind in zip(pictures, kinds, strict=True)}
    X, y = make_digits(task, n_sets=30, n_objects=8, random_state=0)
    for images, chosen in zip(X, y, strict=True):
        labels = [known[image.tobytes()] for image in images]
        counts = [labels.count(label) for label in labels]
        wanted = max(counts) if task == "mode" else 1
        assert chosen.tolist() == [int(count == wanted) for count in counts]


def test_test_pictures_are_not_training_pictures():
    train, _ = make_digits(n_sets=300, part="train", random_state=0)
    test, _ = make_digits(n_sets=300, part="test", random_state=0)
    seen = {image.tobytes() for image in train.reshape(-1, 64)}
    assert not any(image.tobytes() in seen for image in test.reshape(-1, 64))


def test_the_same_seed_gives_the_same_task_and_wrong_names_are_refused():
    for make in (make_choice, make_pareto, make_digits):
        a, b = make(n_sets=5, random_state=3), make(n_sets=5, random_state=3)
        assert all(np.array_equal(p, q) for p, q in zip(a, b, strict=True))
    with pytest.raises(ParameterError, match="medoid"):
        make_choice("mean")
    with pytest.raises(ParameterError, match="unique"):
        make_digits("odd")
    with pytest.raises(ParameterError, match="n_objects"):
        make_choice("nearest_neighbour", n_objects=2)
