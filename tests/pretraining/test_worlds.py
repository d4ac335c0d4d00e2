"""Worlds of the prior are what their shape asks for, and are the same for the same generator."""

import pytest
import torch

from entourage.errors import ParameterError
from entourage.pretraining.prior import FAMILIES, Shape, draw_worlds


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("task", ["choice", "ranking", "subset"])
@pytest.mark.parametrize("ragged", [False, True])
def test_worlds_have_the_shape_asked_for(task, ragged):
    worlds = draw_worlds(Shape(6, 12, 4, 5, task, ragged), generator())
    assert worlds.values.shape == (6, 12, 4, 5)
    assert worlds.values.isfinite().all()
    assert worlds.labels.shape == (6, 12, 4)
    assert worlds.oracle.shape == (6, 12)
    assert worlds.share.shape == (6,)
    assert worlds.effects.shape == (6, 3)
    assert worlds.families.shape == (6, len(FAMILIES))
    if ragged:
        assert worlds.mask.sum(-1).min() >= 2
        assert not worlds.values[~worlds.mask].any()
        assert not worlds.labels[~worlds.mask].any()
    else:
        assert worlds.mask is None


def test_the_same_generator_state_gives_the_same_worlds():
    one, two = (draw_worlds(Shape(4, 8, 3, 4, ragged=True), generator(7)) for _ in range(2))
    assert all(torch.equal(getattr(one, name), getattr(two, name)) for name in vars(one))


def test_a_set_of_one_object_is_refused():
    with pytest.raises(ParameterError, match="2 objects"):
        Shape(1, 1, 1, 1)
