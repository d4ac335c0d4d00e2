"""The laws every registered net obeys."""

import numpy as np
import pytest
import torch
from cases import NET_CASES, NET_IDS, VARIANTS, build, describe, random_objects
from torch.func import functional_call

from entourage.nets import NETS, message_passing, pairs, subcontexts
from entourage.nets import layers as layers_module

every_net = pytest.mark.parametrize(("name", "variant", "params"), NET_CASES, ids=NET_IDS)


def ragged_batch(n: int = 4, m: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    sizes = torch.tensor([m, m - 1, 2, 1])[:n]
    return random_objects(n, m, 3), torch.arange(m) < sizes[:, None]


def test_every_variant_belongs_to_a_registered_net():
    assert set(VARIANTS) <= set(NETS)


@every_net
def test_scores_follow_their_objects_when_shuffled(name, variant, params):
    scorer, objects = build(name, params), random_objects(4, 6, 3)
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    torch.testing.assert_close(scorer(objects[:, order]), scorer(objects)[:, order])


@every_net
def test_scores_of_a_padded_set_follow_their_objects_when_shuffled(name, variant, params):
    scorer, (objects, mask) = build(name, params), ragged_batch()
    order = torch.tensor([3, 0, 5, 1, 4, 2])  # now padding stands among the objects
    torch.testing.assert_close(scorer(objects[:, order], mask[:, order]), scorer(objects, mask)[:, order])


@every_net
@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
def test_padding_changes_no_score(name, variant, params, training):
    objects, mask = ragged_batch()
    wider = torch.cat([objects, 100 * random_objects(4, 3, 3, seed=9)], dim=1)
    wider_mask = torch.cat([mask, torch.zeros(4, 3, dtype=torch.bool)], dim=1)
    scores = build(name, params).train(training)(objects, mask)
    padded = build(name, params).train(training)(wider, wider_mask)
    torch.testing.assert_close(padded[:, :6], scores)
    assert (padded[~wider_mask] == 0).all()


@every_net
def test_padding_scores_like_the_set_alone(name, variant, params):
    scorer, (objects, mask) = build(name, params), ragged_batch()
    together = scorer(objects, mask)
    for i, size in enumerate(mask.sum(1).tolist()):
        torch.testing.assert_close(together[i : i + 1, :size], scorer(objects[i : i + 1, :size]))


@every_net
def test_padding_moves_no_running_statistic(name, variant, params):
    objects, mask = ragged_batch()
    wider = torch.cat([objects, 100 * random_objects(4, 3, 3, seed=9)], dim=1)
    wider_mask = torch.cat([mask, torch.zeros(4, 3, dtype=torch.bool)], dim=1)
    one, other = build(name, params).train(), build(name, params).train()
    one(objects, mask)
    other(wider, wider_mask)
    for a, b in zip(one.buffers(), other.buffers(), strict=True):
        torch.testing.assert_close(a, b)


@every_net
def test_a_mask_without_padding_is_no_mask(name, variant, params):
    objects = random_objects(4, 6, 3)
    for training in (False, True):
        masked = build(name, params).train(training)(objects, torch.ones(4, 6, dtype=torch.bool))
        torch.testing.assert_close(masked, build(name, params).train(training)(objects))


@every_net
@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
def test_a_batch_of_one_and_a_set_of_one_work(name, variant, params, training):
    scorer = build(name, params).train(training)
    for shape in [(1, 6, 3), (4, 1, 3), (1, 1, 3), (2, 2, 3)]:
        scores = scorer(random_objects(*shape))
        assert scores.shape == shape[:2]
        assert scores.isfinite().all()


@every_net
def test_a_batch_of_one_scores_as_within_a_batch(name, variant, params):
    scorer, objects = build(name, params), random_objects(4, 6, 3)
    torch.testing.assert_close(scorer(objects[2:3]), scorer(objects)[2:3])


@every_net
@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
def test_gradients_match_finite_differences(name, variant, params, training):
    if "sampled" in variant:  # every call in training draws other sub-contexts: two calls are two functions
        training = False
    scorer, (objects, mask) = build(name, params).train(training), ragged_batch(n=3, m=4)
    assert torch.autograd.gradcheck(lambda x: scorer(x, mask), objects.requires_grad_())
    weights = {k: v.detach() for k, v in scorer.named_parameters()}
    directions = {k: random_objects(*v.shape, seed=5) for k, v in weights.items()}

    def along(t: torch.Tensor) -> torch.Tensor:
        moved = {k: weights[k] + t * directions[k] for k in weights}
        return functional_call(scorer, moved, (objects.detach(), mask))

    assert torch.autograd.gradcheck(along, torch.zeros((), dtype=torch.float64, requires_grad=True))


@every_net
@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
def test_no_nan_under_a_full_mask(name, variant, params, training):
    scorer = build(name, params).train(training)
    objects = random_objects(2, 4, 3).requires_grad_()
    mask = torch.tensor([[True] * 4, [False] * 4])
    for some in (mask, torch.zeros_like(mask)):
        scores = scorer(objects, some)
        assert (scores[~some] == 0).all()
        scores.sum().backward()
        assert objects.grad.isfinite().all()
        assert all(p.grad is None or p.grad.isfinite().all() for p in scorer.parameters())


@every_net
@pytest.mark.parametrize("gradients", [False, True], ids=["no-grad", "grad"])
def test_working_in_tiles_changes_nothing(name, variant, params, gradients, monkeypatch):
    objects, mask = ragged_batch()
    scorer = build(name, params)
    if gradients and "batch" in variant:
        scorer.eval()  # in training, batch statistics need all pairs at once: nothing is tiled
    results = []
    for small in (False, True):
        if small:
            monkeypatch.setattr(layers_module, "TILE_OBJECTS", {"cpu": 8})
            monkeypatch.setattr(pairs, "TILE_NUMBERS", {"cpu": 24})
            monkeypatch.setattr(pairs, "GRADIENT_NUMBERS", 24 * 8)
            monkeypatch.setattr(message_passing, "TILE_NUMBERS", {"cpu": 300})
            monkeypatch.setattr(message_passing, "GRADIENT_NUMBERS", 300)
            monkeypatch.setattr(subcontexts, "TILE_NUMBERS", 300)
            monkeypatch.setattr(subcontexts, "GRADIENT_NUMBERS", 300)
        with torch.set_grad_enabled(gradients):
            inputs = objects.clone().requires_grad_(gradients)
            scores = scorer(inputs, mask)
            if gradients:
                scores.square().sum().backward()
            results.append((scores.detach(), inputs.grad))
    torch.testing.assert_close(results[0], results[1])


@every_net
def test_the_same_generator_builds_the_same_net(name, variant, params):
    def weights(seed: int) -> list[torch.Tensor]:
        scorer = describe(name, params, 4).build(3, torch.Generator().manual_seed(seed))
        return [p.detach() for p in scorer.parameters()]

    before = torch.get_rng_state()
    assert all(torch.equal(a, b) for a, b in zip(weights(0), weights(0), strict=True))
    assert any(not torch.equal(a, b) for a, b in zip(weights(0), weights(1), strict=True))
    assert torch.equal(torch.get_rng_state(), before), "the global generator was touched"


@every_net
def test_a_large_set_scores_like_its_float64_self(name, variant, params):
    scorer, objects = build(name, params), random_objects(1, 300, 3).float().double()
    with torch.no_grad():
        exact = scorer(objects)
        single = scorer.float()(objects.float())
    np.testing.assert_allclose(single.numpy(), exact.numpy(), rtol=1e-3, atol=1e-4)
