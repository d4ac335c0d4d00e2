"""A monotone net: no finite move of a column in its direction lowers the own probability; context remains."""

import functools

import numpy as np
import pytest
import torch
from cases import random_objects
from hypothesis import given, settings
from hypothesis import strategies as st

from entourage.data import Sets
from entourage.data.relative import MONOTONE_STANDINGS, STANDINGS, within_sets
from entourage.errors import ParameterError
from entourage.nets import FATE, FETA, ContextAblated, ContextFree, SetAttention
from entourage.nets.embeddings import build_with_categories
from entourage.nets.ensemble import Stack
from entourage.nets.monotone import Monotone

NETS = {
    "fate": FATE(width=6),
    "fate-linear": FATE(width=6, depth=0),
    "fate-rounds": FATE(width=6, rounds=2),
    "feta": FETA(width=6),
    "feta-2": FETA(width=6, order=2, squash=True),
    "set_attention": SetAttention(width=6, heads=2, rounds=1),
    "context_free": ContextFree(width=6),
    "ablated": ContextAblated(FATE(width=6)),
}
SIGNS = [(0, -1), (2, 1)]  # of 4 features


@functools.cache
def build(name, seed):
    """Build a net whose weights are large and random, so that its functions are steep and bent."""
    generator = torch.Generator().manual_seed(seed)
    scorer = Monotone(NETS[name], SIGNS).build(4, generator).double()
    with torch.no_grad():
        for parameter in scorer.parameters():
            parameter += torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return scorer.eval()


@given(
    name=st.sampled_from(list(NETS)),
    seed=st.integers(0, 3),
    size=st.integers(1, 6),
    draw=st.integers(0, 10**6),
    column=st.sampled_from(SIGNS),
    step=st.floats(1e-6, 1e3),
)
@settings(max_examples=60, deadline=None)
def test_no_finite_move_lowers_the_own_utility_or_raises_another(name, seed, size, draw, column, step):
    scorer, (place, sign) = build(name, seed), column
    before = random_objects(1, size, 4, seed=draw).repeat(
        size, 1, 1
    )  # each object is moved in a set of its own
    after = before.clone()
    own = torch.arange(size)
    after[own, own, place] += sign * step
    with torch.no_grad():
        old, new = scorer(before), scorer(after)
    change, others = new - old, ~torch.eye(size, dtype=torch.bool)
    assert (change[own, own] >= -1e-12).all()
    assert (change[others] <= 1e-12).all()
    for probability in (lambda u: u.softmax(1), lambda u: torch.cat([u, 0 * u[:, :1]], 1).softmax(1)):
        assert (probability(new)[own, own] >= probability(old)[own, own] - 1e-12).all()


@given(
    values=st.lists(st.floats(-10, 10), min_size=2, max_size=6),
    step=st.floats(1e-3, 30),
    which=st.integers(0, 5),
)
@settings(max_examples=60, deadline=None)
def test_standings_rise_with_the_own_value_and_fall_with_those_of_others(values, step, which):
    column, i = np.array(values)[:, None], which % len(values)
    moved = column.copy()
    moved[i] += step
    sets = Sets.of(column[None])
    change = within_sets(moved, sets, [0], MONOTONE_STANDINGS) - within_sets(
        column, sets, [0], MONOTONE_STANDINGS
    )
    assert (change[i] >= -1e-12).all()
    assert (np.delete(change, i, axis=0) <= 1e-12).all()


def test_the_z_score_of_another_object_can_rise_so_it_is_no_monotone_standing():
    sets = Sets.of([[[0.0], [1.0], [1.0]]])
    moved = np.array([[0.0], [1.0], [9.0]])
    change = within_sets(moved, sets, [0], ["z-score"]) - within_sets(sets.objects, sets, [0], ["z-score"])
    assert change[0] > 0
    assert set(STANDINGS) - set(MONOTONE_STANDINGS) == {"z-score"}


def test_another_objects_price_matters_in_a_context_net_and_not_in_a_context_free_one():
    objects = random_objects(1, 3, 4)
    dearer = objects.clone()
    dearer[0, 2, 0] += 1
    for name, matters in {"fate": True, "feta": True, "context_free": False, "ablated": False}.items():
        change = (build(name, 0)(dearer) - build(name, 0)(objects))[0, :2]
        assert bool((change.abs() > 1e-9).all()) == matters, name


def test_a_linear_net_stays_linear():
    scorer = Monotone(ContextFree(depth=0), [(1, -1)]).build(2, torch.Generator().manual_seed(0)).double()
    x, y = random_objects(1, 4, 2), random_objects(1, 4, 2, seed=1)
    torch.testing.assert_close(scorer(x + y) + scorer(0 * x), scorer(x) + scorer(y))


def test_an_ensemble_computes_its_members_at_once_as_one_by_one():
    made = Monotone(FATE(width=6), SIGNS)
    stack = Stack([made.build(4, torch.Generator().manual_seed(i)) for i in range(3)])
    objects, mask = random_objects(2, 5, 4).float(), torch.arange(5) < torch.tensor([[5], [3]])
    alone = torch.stack([stack.scorer(i)(objects, mask) for i in range(3)])
    torch.testing.assert_close(stack.each(objects, mask), alone)


def test_categories_are_vectors_behind_the_monotone_numbers():
    made = Monotone(FATE(width=6), [(1, -1)])  # of the numbers: features 1 and 2, as feature 0 is a code
    scorer = build_with_categories(made, 3, [(0, 4)], torch.Generator().manual_seed(0)).eval()
    objects = torch.tensor([[[1.0, 0.2, 0.5], [3.0, 0.1, 0.4]]])
    dearer = objects + torch.tensor([[[0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]])
    change = (scorer(dearer) - scorer(objects))[0]
    assert change[0] < 0 <= change[1]


@pytest.mark.parametrize(
    "wrong",
    [{"own": []}, {"own": [(0, 2)]}, {"own": [(0, 1)], "ignored": [0]}, {"own": [(7, 1)]}],
    ids=repr,
)
def test_places_and_signs_are_checked(wrong):
    with pytest.raises(ParameterError, match="monotone"):
        Monotone(FATE(), **wrong).build(3, torch.Generator())
