"""One path scores, few sets or many: what it keeps between calls is never stale, and threads may share it."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import torch

from entourage import FATE, FETA, ContextFree, DiscreteChooser, Ranker, SetAttention
from entourage.data import make_medoid
from entourage.nets import ensemble
from entourage.nets.context_ablated import ContextAblated
from entourage.nets.embeddings import build_with_categories
from entourage.nets.ensemble import Stack
from entourage.nets.monotone import Monotone
from entourage.training.batches import Resident, predict_packed
from entourage.training.device import placed

X, RANKS = make_medoid(n_sets=40, random_state=0)
SMALL = {"steps": 4, "batch_size": 16, "validation": 0, "random_state": 0, "device": "cpu"}

NETS = [
    *(
        kind(width=8, activation=a, norm=b)
        for kind in (FATE, FETA, ContextFree)
        for a, b in (("relu", "batch"), ("selu", "none"), ("gelu", "layer"))
    ),
    *(kind(width=8, depth=0) for kind in (FATE, FETA, ContextFree)),
    FATE(width=8, include_self=False),
    FATE(width=8, rounds=3, pooling="spread", features="periodic"),
    FETA(width=8, rounds=2),
    FETA(width=8, order=2),
    FETA(width=8, squash=True),
    SetAttention(width=8),
    SetAttention(width=8, depth=2, norm="layer"),
    SetAttention(width=8, points=3),
    Monotone(FATE(width=8), own=[(1, -1)]),
    ContextAblated(FATE(width=8)),
    ContextAblated(SetAttention(width=8)),
]


def build(net, seed=0, categories=((2, 6),)):
    generator = torch.Generator().manual_seed(seed)
    return build_with_categories(net, 5, [*categories], generator).eval()


def some_objects():
    objects = torch.randn(7, 6, 5, generator=torch.Generator().manual_seed(1))
    objects[..., 2] = torch.randint(0, 8, (7, 6), generator=torch.Generator().manual_seed(2))
    mask = torch.arange(6) < torch.tensor([6, 1, 2, 3, 4, 5, 6])[:, None]
    return objects * mask.unsqueeze(-1), mask


@pytest.mark.parametrize("net", NETS, ids=repr)
@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("categories", [(), ((2, 6),)], ids=["numbers", "categories"])
def test_scores_without_gradients_are_those_of_training_in_double_precision(net, members, categories):
    scorers = [build(net, seed, categories) for seed in range(members)]
    for one in scorers:
        for place, value in enumerate([*one.parameters(), *one.buffers()]):  # none is 0 or 1 as it begins
            if value.is_floating_point():
                value.data += 0.1 * torch.rand(value.shape, generator=torch.Generator().manual_seed(place))
    scorer = scorers[0] if members == 1 else Stack(scorers).eval()
    objects, mask = some_objects()
    exact = torch.stack([copy.deepcopy(one).double()(objects.double(), mask) for one in scorers]).mean(0)
    with torch.no_grad():
        padded, whole = scorer(objects, mask), scorer(objects[:1])
    torch.testing.assert_close(padded.double(), exact.detach(), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(whole.double(), exact[:1].detach(), rtol=1e-5, atol=1e-5)
    assert not padded.requires_grad


@pytest.mark.parametrize("members", [1, 3])
def test_a_pass_of_training_is_seen_by_the_next_prediction(members):
    model = Ranker(FATE(width=8), members=members, **SMALL).partial_fit(X, RANKS)
    before = model.predict_scores(X[:1])
    model.partial_fit(X, RANKS)
    after = model.predict_scores(X[:1])
    assert (before != after).any()
    np.testing.assert_array_equal(after, pickle.loads(pickle.dumps(model)).predict_scores(X[:1]))  # noqa: S301


def stack_of_three():
    stack = Stack([build(FATE(width=8, norm="batch"), seed, ()) for seed in range(3)]).eval()
    objects, mask = some_objects()
    return stack, objects, mask


@torch.no_grad()
def scores_of_copies(stack, objects, mask):
    return torch.stack([stack.scorer(i)(objects, mask) for i in range(3)]).mean(0)


def changed_in_place(stack):
    for weight in stack.parameters():
        weight.data.mul_(1.5)


def loaded(stack):
    stack.load_state_dict({name: 0.5 * value for name, value in stack.state_dict().items()})


def assigned(stack):
    for weight in stack.parameters():
        weight.data = 0.5 * weight.data


def with_other_buffers(stack):
    for name, buffer in list(stack._buffers.items()):
        stack._buffers[name] = buffer + 0.5


def there_and_back(stack):
    changed_in_place(stack.double())
    stack.float()


@pytest.mark.parametrize(
    "change",
    [changed_in_place, loaded, assigned, with_other_buffers, there_and_back],
    ids=lambda f: f.__name__,
)
def test_members_of_an_ensemble_have_the_weights_of_now(change):
    stack, objects, mask = stack_of_three()
    with torch.no_grad():
        before, one = stack(objects, mask), stack(objects[:1])
        change(stack)
        after, one_after = stack(objects, mask), stack(objects[:1])
    assert (before != after).any()
    assert (one != one_after).any()
    torch.testing.assert_close(after, scores_of_copies(stack, objects, mask), rtol=0, atol=0)
    torch.testing.assert_close(one_after, scores_of_copies(stack, objects[:1], None))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda stack: pickle.loads(pickle.dumps(stack))])  # noqa: S301
def test_a_copy_of_an_ensemble_has_weights_of_its_own(copied):
    stack, objects, mask = stack_of_three()
    with torch.no_grad():
        before = stack(objects, mask)
        other = copied(stack)
        changed_in_place(other)
        assert (other(objects, mask) != before).any()
        torch.testing.assert_close(stack(objects, mask), before, rtol=0, atol=0)
        torch.testing.assert_close(
            other(objects, mask), scores_of_copies(other, objects, mask), rtol=0, atol=0
        )


def test_gradients_reach_an_ensemble_that_has_scored():
    stack, objects, mask = stack_of_three()
    with torch.no_grad():
        stack(objects, mask)
    stack(objects, mask).sum().backward()
    assert all(weight.grad is not None and weight.grad.abs().sum() > 0 for weight in stack.parameters())


def test_members_are_made_once(monkeypatch):
    model = Ranker(SetAttention(width=8), members=3, **SMALL).fit(X, RANKS)
    first = model.predict_scores(X[:1], return_std=True)

    def refuse(*arguments):
        raise AssertionError("a net was copied to score")

    monkeypatch.setattr(ensemble.copy, "deepcopy", refuse)
    again = model.predict_scores(X[:1], return_std=True)
    np.testing.assert_array_equal(first, again)


def test_threads_share_a_model():
    frame = pd.DataFrame({"set": np.repeat(np.arange(40), 5), "x": X[..., 0].ravel(), "y": X[..., 1].ravel()})
    frame["kind"] = np.where(frame.x > 0.5, "a", "b")
    chosen = frame.assign(chosen=(RANKS == 0).ravel())
    models = [
        lambda: Ranker(FATE(width=8), members=3, **SMALL).fit(X, RANKS),
        lambda: DiscreteChooser(SetAttention(width=8), **SMALL).fit(chosen, set_id="set", target="chosen"),
    ]
    for make, given_data in zip(models, (X, frame), strict=True):
        expected, model = make().predict_scores(given_data), make()
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda _, m=model, d=given_data: m.predict_scores(d), range(40)))
        for scores in found:
            np.testing.assert_array_equal(scores, expected)


def test_a_model_fitted_to_another_table_reads_that_table():
    frame = pd.DataFrame({"set": np.repeat(np.arange(40), 5), "x": X[..., 0].ravel(), "place": RANKS.ravel()})
    other = frame.rename(columns={"x": "z"}).assign(kind=np.where(frame.x > 0.5, "a", "b"))
    columns = {"set_id": "set", "target": "place"}
    model = Ranker(FATE(width=8), **SMALL).fit(frame, **columns)
    model.predict_scores(frame)
    scores = model.fit(other, **columns).predict_scores(other)
    np.testing.assert_array_equal(
        scores, Ranker(FATE(width=8), **SMALL).fit(other, **columns).predict_scores(other)
    )


def test_a_net_is_moved_only_where_it_is_elsewhere(monkeypatch):
    scorer = build(FATE(width=8))
    assert placed(scorer, torch.device("meta")) is scorer
    assert next(scorer.parameters()).device.type == "meta"
    monkeypatch.setattr(type(scorer), "to", None)  # calling it would be an error
    assert placed(scorer, torch.device("meta")) is scorer


def test_a_net_in_training_is_evaluated_to_score():
    scorer = FATE(width=8, norm="batch").build(2, torch.Generator().manual_seed(0)).train()
    model = Ranker(FATE(width=8), **SMALL).fit(X, RANKS)
    data = Resident(model.view_(model._evaluation_sets(X, RANKS, None, None)[0]), torch.device("cpu"))
    statistics = {name: value.clone() for name, value in scorer.named_buffers()}
    predict_packed(scorer, data)
    assert not scorer.training
    for name, value in scorer.named_buffers():
        torch.testing.assert_close(value, statistics[name], rtol=0, atol=0)
