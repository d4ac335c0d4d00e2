"""Context-ablated controls: the same net and weights, every object in the same fixed context."""

import pytest
import torch

from entourage import FATE, FETA
from entourage.nets.context_ablated import ContextAblated

NETS = [
    FATE(8),
    FATE(8, include_self=False),
    FATE(8, rounds=2),
    FETA(8),
    FETA(8, squash=True),
    FETA(8, order=2),
]


@pytest.mark.parametrize("net", NETS, ids=repr)
def test_a_control_has_the_same_weights_but_sees_no_context(net):
    objects = torch.randn(3, 5, 2, generator=torch.Generator().manual_seed(0))
    seeing, blind = (n.build(2, torch.Generator().manual_seed(1)) for n in (net, ContextAblated(net)))
    weights = [w.shape for w in seeing.parameters()]
    assert weights == [w.shape for w in blind.parameters()]
    assert torch.allclose(blind(objects)[:, :2], blind(objects[:, :2]), atol=1e-6)
    assert torch.allclose(blind(objects)[1:2], blind(objects[1:2]), atol=1e-6)
    assert not torch.allclose(seeing(objects)[:, :2], seeing(objects[:, :2]), atol=1e-3)
    blind(objects).square().sum().backward()
    assert all(w.grad is not None and w.grad.abs().sum() > 0 for w in blind.parameters()), "all in use"


@pytest.mark.parametrize("net", [FATE(8, include_self=False), FETA(8), FETA(8, squash=True)], ids=repr)
def test_a_control_scores_an_object_as_its_net_does_among_the_references(net):
    blind = ContextAblated(net).build(2, torch.Generator().manual_seed(1))
    objects = torch.randn(2, 3, 2, generator=torch.Generator().manual_seed(0))
    among = torch.cat([objects.view(6, 1, 2), blind.context.expand(6, -1, -1)], dim=1)
    assert torch.allclose(blind(objects).view(6), blind.scorer(among)[:, 0], atol=1e-6)


@pytest.mark.parametrize("net", [FATE(8, norm="batch"), FETA(8, norm="batch"), FATE(8, rounds=2)], ids=repr)
def test_padding_scores_zero_and_changes_no_score_of_a_control(net):
    blind = ContextAblated(net).build(2, torch.Generator().manual_seed(1)).eval()
    objects = torch.randn(2, 5, 2, generator=torch.Generator().manual_seed(0))
    mask = torch.tensor([[True, True, True, False, False], [False] * 5])
    scores = blind(objects, mask)
    assert torch.allclose(scores[0, :3], blind(objects[:1, :3])[0], atol=1e-6)
    assert (scores[~mask] == 0).all()
