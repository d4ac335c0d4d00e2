"""The laws every registered net obeys."""

import pytest
import torch
from cases import NET_CASES, NET_IDS, VARIANTS, build, describe, random_objects

from entourage.errors import NetError, ParameterError
from entourage.nets import NETS, Net, Scorer, message_passing, pairs, subcontexts
from entourage.nets import layers as layers_module
from entourage.nets.laws import LAWS, check_net
from entourage.nets.layers import linear_map, present

every_net = pytest.mark.parametrize(("name", "variant", "params"), NET_CASES, ids=NET_IDS)


def ragged_batch(n: int = 4, m: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    sizes = torch.tensor([m, m - 1, 2, 1])[:n]
    return random_objects(n, m, 3), torch.arange(m) < sizes[:, None]


def test_every_variant_belongs_to_a_registered_net():
    assert set(VARIANTS) <= set(NETS)


@every_net
def test_every_net_obeys_the_laws(name, variant, params):
    assert len(check_net(describe(name, params))) == len(LAWS)


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


class Flawed(Net):
    """A net with one flaw, which `check_net` must find."""

    def __init__(self, flaw: str = "none") -> None:
        self.flaw = flaw

    def build(self, n_features, generator):
        if self.flaw == "drawn globally":
            return FlawedScorer(self.flaw, torch.nn.Linear(n_features, 1))
        return FlawedScorer(self.flaw, linear_map(n_features, 1, generator))


class FlawedScorer(Scorer):
    def __init__(self, flaw, layer):
        super().__init__()
        self.flaw, self.layer = flaw, layer
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, objects, mask=None):
        flaw, hidden = self.flaw, torch.tanh(self.layer(objects)).squeeze(-1)
        there = torch.ones_like(hidden, dtype=torch.bool) if mask is None else mask
        own = torch.where(there, hidden, 0.0)
        sizes = there.sum(1, keepdim=True)
        if flaw == "sees places":
            hidden = hidden + torch.arange(hidden.shape[1])
        if flaw == "sees padded places":
            hidden = hidden if mask is None else hidden + torch.arange(hidden.shape[1])
        if flaw == "sees padding":
            hidden = hidden - hidden.mean(1, keepdim=True)
        if flaw == "sees padding in training" and self.training:
            hidden = hidden - hidden.mean(1, keepdim=True)
        if flaw == "scores padding":
            return hidden
        if flaw == "sees the batch":
            hidden = hidden - hidden.mean(0, keepdim=True)
        if flaw == "counts padding":
            with torch.no_grad():
                self.seen = self.seen + hidden.numel()
        if flaw == "masks are otherwise":
            hidden = hidden if mask is None or not mask.all() else 2 * hidden
        if flaw == "bare squeeze":
            return present(hidden, mask).squeeze()
        if flaw == "detached":
            hidden = hidden - (own.sum(1, keepdim=True) / sizes.clamp(min=1)).detach()
        if flaw == "divides by 0":
            hidden = hidden - self.layer.bias * own.sum(1, keepdim=True) / sizes
        if flaw == "global dropout":
            hidden = torch.nn.functional.dropout(hidden, 0.5, self.training)
        if flaw == "overflows":
            hidden = hidden + torch.exp(own.abs().sum(1, keepdim=True)).log()
        return present(hidden, mask)


@pytest.mark.parametrize(
    ("flaw", "law"),
    {
        "sees places": "scores follow their objects when shuffled",
        "sees padded places": "scores of a padded set follow their objects when shuffled",
        "sees padding": "padding changes no score",
        "sees padding in training": "padding changes no score",
        "scores padding": "padding changes no score",
        "sees the batch": "padding scores like the set alone",
        "counts padding": "padding moves no running statistic",
        "masks are otherwise": "a mask without padding is no mask",
        "bare squeeze": "a batch of one and a set of one work",
        "detached": "gradients match finite differences",
        "divides by 0": "a set of padding alone gives no NaN",
        "global dropout": "no global generator is drawn from",
        "overflows": "a large set scores like its float64 self",
        "drawn globally": "weights are drawn from the generator",
    }.items(),
)
def test_a_flaw_is_found_and_named(flaw, law):
    with pytest.raises(NetError, match=f"Flawed breaks a law of nets: {law}"):
        check_net(Flawed(flaw))


def test_what_differs_is_said_in_numbers():
    with pytest.raises(
        NetError, match=r"padding changes no score\. \d+ of 24 values differ, by up to [\d.]+\. Leave"
    ):
        check_net(Flawed("sees padding"))


def test_a_module_that_is_no_scorer_is_named():
    class Bare(Flawed):
        def build(self, n_features, generator):
            return linear_map(n_features, 1, generator)

    with pytest.raises(NetError, match=r"build of Bare needs .* entourage\.nets\.Scorer; got Linear"):
        check_net(Bare())


def test_a_net_without_a_flaw_passes():
    check_net(Flawed())


def test_a_constructor_that_does_more_than_store_is_named():
    class Eager(Flawed):
        def __init__(self, flaw: str = "none") -> None:
            self.flaw = flaw.upper()

    with pytest.raises(NetError, match="constructor of Eager needs to store"):
        check_net(Eager())


def test_a_class_is_no_net_yet():
    with pytest.raises(ParameterError, match=r"did you mean Flawed\(\)"):
        check_net(Flawed)
