"""Refits to resampled groups: what each is trained on, what it is evaluated on, and that the model stays."""

from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest
import torch
from effect_cases import TINY, choice_sets, small_chooser
from sklearn.base import clone

from entourage import FATE, FETA, ContextFree, DiscreteChooser, Ranker, SetAttention, SubsetChooser
from entourage.baselines import RankSVM
from entourage.data import Sets, make_medoid
from entourage.effects import effects_report
from entourage.effects.refit_nets import Refitter
from entourage.effects.refits import refit_resampled, refits_in, resample_groups, seconds_of_refits
from entourage.errors import DataError, ParameterError


def test_a_member_never_learns_from_the_groups_that_were_not_drawn_for_it():
    sets = choice_sets(0)
    model = small_chooser(sets, validation=0.0)
    counts = resample_groups(np.repeat(np.arange(20), 3), np.random.default_rng(1))
    own = np.asarray(sets.targets)
    other = own.copy()
    left_out = np.repeat(counts == 0, sets.sizes)
    other[left_out] = 1 - other[left_out]  # nonsense, where it must not matter
    scores = []
    for targets in (own, other):
        refit = Refitter(model, sets, 1)
        (one,) = refit(targets[None], counts[None], np.random.default_rng(0))
        scores.append(one.predict_scores(sets))
    np.testing.assert_array_equal(*scores)


def test_a_member_is_evaluated_on_the_groups_that_were_not_drawn_for_it_and_no_others():
    sets = choice_sets(0, n=80)
    trainer = Refitter(small_chooser(sets), sets, 2).trainer
    counts = np.stack([resample_groups(np.arange(80), np.random.default_rng(i)) for i in range(2)])
    run = trainer.run(np.tile(sets.targets, (2, 1)), counts, np.arange(2))
    found = run.held_out_scores(run.stack)
    for i in range(2):
        held_out = sets[np.flatnonzero(counts[i] == 0)]
        model = trainer.fitted(run.stack.scorer(i))
        assert found[i] == pytest.approx(model.log_likelihood(held_out), abs=1e-5)


def test_groups_are_drawn_whole_and_as_many_as_there_are():
    labels = np.repeat(np.arange(10), [1, 2, 3, 4, 5, 5, 4, 3, 2, 1])
    for seed in range(20):
        counts = resample_groups(labels, np.random.default_rng(seed))
        per_group = [set(counts[labels == label].tolist()) for label in range(10)]
        assert all(len(one) == 1 for one in per_group)
        assert sum(one.pop() for one in per_group) == 10


@pytest.fixture(scope="module")
def twice():
    """Refit a small net twice with the same seed; also what it scored, and torch's random state, before and after."""
    sets = choice_sets(0)
    model = small_chooser(sets)
    before = model.predict_scores(sets), torch.random.get_rng_state()
    first, again = (refit_resampled(model, sets, refits=2, random_state=3) for _ in range(2))
    after = model.predict_scores(sets), torch.random.get_rng_state()
    return SimpleNamespace(sets=sets, first=first, again=again, before=before, after=after)


def test_the_same_seed_gives_the_same_bits_and_members_differ(twice):
    sets, first, again = twice.sets, twice.first, twice.again
    for mine, others in ((first.people[0], again.people[0]), (first.null, again.null)):
        for one, other in zip(mine, others, strict=True):
            np.testing.assert_array_equal(one.predict_scores(sets), other.predict_scores(sets))
    scores = [first.people[i][j].predict_scores(sets) for i, j in ((0, 0), (0, 1), (1, 0))]
    assert not np.array_equal(scores[0], scores[1])
    assert not np.array_equal(scores[0], scores[2])
    assert not np.array_equal(scores[0], twice.before[0])


def test_refitting_leaves_the_model_and_the_random_state_as_they_were(twice):
    np.testing.assert_array_equal(twice.after[0], twice.before[0])
    assert torch.equal(twice.after[1], twice.before[1])


FEW = choice_sets(1, n=30)
SITUATIONS = choice_sets(1, n=30, situation=True)
THREES = choice_sets(1, n=30, sizes=(3,))


@pytest.mark.parametrize(
    ("model", "sets"),
    [
        (DiscreteChooser(FATE(width=8), **TINY), SITUATIONS),
        (DiscreteChooser(SetAttention(width=8, heads=2), **TINY), THREES),
        (DiscreteChooser(FETA(width=8), members=2, **TINY), FEW),
        (DiscreteChooser(FETA(width=4, order=2), **TINY), FEW),
        (DiscreteChooser(ContextFree(width=8), outside=True, **TINY), FEW),
        (SubsetChooser(FATE(width=8), **TINY), FEW),
    ],
)
def test_any_net_task_and_shape_can_be_refitted(model, sets):
    found = refit_resampled(clone(model).fit(sets), sets, groups=np.arange(30) // 3, refits=2)
    assert (len(found.people), len(found.null), len(found.known), found.groups) == (2, 2, 3, 10)
    for one in [*found.people[1], *found.null, *found.truths, *found.known[2]]:
        assert np.isfinite(one.predict_scores(sets)).all()


def test_rankings_and_models_without_a_net_can_be_refitted(monkeypatch):
    monkeypatch.setattr("entourage.effects.refits.CONTROL_STEPS", 20)
    X, ranks = make_medoid(n_sets=40, random_state=0)
    sets = Sets.of(X, ranks)
    for model in (Ranker(FATE(width=8), subset_size=3, **TINY), RankSVM()):
        found = refit_resampled(model.fit(sets), sets, refits=2)
        report = effects_report(model, sets, refits=found, draws=0, most_triples=100)
        assert np.isfinite(report.iia_violation.interval).all()


def test_the_number_of_refits_fits_into_the_time():
    sets = choice_sets(0)
    seconds = seconds_of_refits(small_chooser(sets), sets)
    assert 0 < seconds(8) < seconds(16)
    assert refits_in(1e9, seconds) == 16
    assert refits_in(0, seconds) == 0


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ({"refits": 1}, ParameterError, "refits"),
        ({"groups": np.zeros(60)}, DataError, "at least two groups"),
        ({"groups": np.zeros(3)}, DataError, "one label a set"),
    ],
)
def test_what_cannot_be_resampled_is_an_error(wrong, error, words):
    sets = choice_sets(0)
    with pytest.raises(error, match=words):
        refit_resampled(small_chooser(sets, steps=1), sets, **wrong)


def test_more_objects_than_single_precision_tells_apart_are_refused(monkeypatch):
    sets = choice_sets(0)
    model = small_chooser(sets)
    monkeypatch.setattr("entourage.effects.refits.MOST_OBJECTS", 50)
    with pytest.raises(ParameterError, match="at most 50 objects"):
        refit_resampled(model, sets, refits=2)


def test_a_blend_is_not_refitted():
    model = Ranker("auto")
    model.blend_ = object()
    sets = Sets.of(np.zeros((3, 2, 1)), np.tile([0, 1], (3, 1)))
    for refit in (refit_resampled, seconds_of_refits):
        with pytest.raises(ParameterError, match="blend of several.*Fit a named model"):
            refit(model, sets)


@pytest.mark.usefixtures("small_pretrained")
def test_refits_of_the_pretrained_net_read_resampled_groups():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(20, 3, 2)), rng.integers(1, 3, size=(20, 3, 1))], axis=2)
    chosen = X[:, :, 0].argmax(1)
    model = DiscreteChooser("pretrained", categories=[(2, 2)], random_state=0, device="cpu", validation=0)
    sets = model.task.sets_of(X, chosen)
    with patch("entourage.effects.refits.CONTROL_STEPS", 2):
        found = refit_resampled(model.fit(sets), sets, refits=2)
    assert [len(draw) for draw in found.people] == [1, 1]
    read = found.people[0][0]
    assert read.net == "pretrained"
    assert read.n_labelled_sets_ < 20  # those that were drawn
    assert not np.array_equal(read.predict_scores(X), model.predict_scores(X))
