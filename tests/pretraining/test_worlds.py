"""Worlds of the prior are what their shape asks for, and are the same for the same generator."""

import pytest
import torch

from entourage.errors import ParameterError
from entourage.pretraining.prior import CONTEXT_FREE, EFFECTS, FAMILIES, Shape, draw_worlds


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


def test_what_is_true_of_a_world_does_not_depend_on_how_many_sets_are_shown():
    few, more = (draw_worlds(Shape(4, sets, 3, 4, ragged=True), generator(7)) for sets in (8, 30))
    assert torch.equal(few.share, more.share)
    assert torch.equal(few.values, more.values[:, :8])
    assert torch.equal(few.labels, more.labels[:, :8])


def test_worlds_are_drawn_in_full_precision_under_autocast():
    with torch.autocast("cpu", torch.bfloat16):
        low = draw_worlds(Shape(4, 8, 3, 4), generator(7))
    assert torch.equal(low.oracle, draw_worlds(Shape(4, 8, 3, 4), generator(7)).oracle)


def test_a_set_of_one_object_is_refused():
    with pytest.raises(ParameterError, match="2 objects"):
        Shape(1, 1, 1, 1)


@pytest.fixture(scope="module")
def many():
    return draw_worlds(Shape(700, 12, 3, 4), generator(3))


def test_half_of_the_worlds_have_context(many):
    free, context = many.families[:, : len(CONTEXT_FREE)] > 0, many.families[:, len(CONTEXT_FREE) :] > 0
    has_context = context.any(1)
    assert abs(has_context.float().mean() - 0.5) < 0.05
    plain = free[:, 0] & ~free[:, 1:].any(1) & ~has_context
    assert abs(plain[~has_context].float().mean() - 0.5) < 0.08
    assert free[~has_context].any(1).all()
    assert set(context[has_context].sum(1).tolist()) == {1, 2, 3}


def test_the_share_of_context_is_0_exactly_without_context(many):
    has_context = (many.families[:, len(CONTEXT_FREE) :] > 0).any(1)
    assert not many.share[~has_context].any()
    assert (many.share[has_context] > 0).float().mean() > 0.95
    assert many.share.amax() <= 1


def test_effects_say_which_families_are_on(many):
    for k, name in enumerate(EFFECTS):
        assert torch.equal(many.effects[:, k], many.families[:, FAMILIES.index(name)] > 0)


def test_the_oracle_beats_uniform_choice(many):
    gain = many.oracle.mean(1) + torch.tensor(3.0).log()
    assert gain.mean() > 0.1
    assert (gain > -0.02).float().mean() > 0.8  # of twelve sets only
    assert (gain.abs() < 0.02).float().mean() > 0.1  # nearly uniform choices are common


def test_many_columns_and_few():
    for columns in (1, 25):
        worlds = draw_worlds(Shape(8, 20, 2, columns, "ranking"), generator())
        assert worlds.values.isfinite().all()
        assert worlds.share.isfinite().all()


def test_labels_depend_on_values_by_the_linear_weights(many):
    """In plainly linear worlds a conditional logit finds its way: the chosen differ from the others."""
    plain = (many.families[:, 0] > 0) & ~(many.families[:, 1:] > 0).any(1)
    values = many.values[plain]
    z = (values - values.mean((1, 2), keepdim=True)) / (values.std((1, 2), keepdim=True) + 1e-6)
    chosen = (z * many.labels[plain][..., None]).sum(2) - z.mean(2)
    strong = (many.oracle[plain].mean(1) + torch.tensor(3.0).log()) > 0.5
    weak = (many.oracle[plain].mean(1) + torch.tensor(3.0).log()).abs() < 0.02
    assert chosen.mean(1)[strong].abs().amax(1).mean() > 1.5 * chosen.mean(1)[weak].abs().amax(1).mean()
