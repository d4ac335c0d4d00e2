"""Weights of the package: they come back, are known by their checksum, and what is none is refused."""

import hashlib

import numpy as np
import pytest
import torch
from prior_fitted_cases import small_net

from entourage import DiscreteChooser, Sets
from entourage.errors import ModelFileError
from entourage.nets.prior_fitted import PriorFittedNet
from entourage.pretrained import Reading, weights
from entourage.tasks import Choice


@pytest.fixture(scope="module")
def net():
    return small_net(8, 1, 2, dtype=torch.float32)


@pytest.fixture
def file(tmp_path, net):
    weights.write_weights(tmp_path / "w.safetensors", net.settings, net.state_dict(), torch.bfloat16)
    return tmp_path / "w.safetensors"


@pytest.fixture
def package(tmp_path, file, monkeypatch):
    """Weights that are those of the package, for the time of a test."""
    checksum = tmp_path / "w.sha256"
    checksum.write_text(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  w.safetensors\n")
    monkeypatch.setattr(weights, "FILE", file)
    monkeypatch.setattr(weights, "CHECKSUM", checksum)
    weights.pretrained_net.cache_clear()
    yield file, checksum
    weights.pretrained_net.cache_clear()


def test_weights_come_back_rounded_to_bfloat16(net, file):
    before = torch.get_rng_state()
    found = weights.read_weights(file)
    assert torch.equal(torch.get_rng_state(), before), "the global generator was touched"
    assert found.settings == net.settings
    for (name, value), (_, own) in zip(found.state_dict().items(), net.state_dict().items(), strict=True):
        assert value.dtype == torch.float32, name
        assert torch.equal(value, own.bfloat16().float()), name
    assert all(p.requires_grad for p in found.parameters())  # training may go on from them


def test_weights_in_single_precision_come_back_to_the_bit(net, tmp_path):
    path = tmp_path / "w"
    weights.write_weights(path, net.settings, net.state_dict(), torch.float32)
    found = weights.read_weights(path).state_dict()
    assert all(torch.equal(found[name], value) for name, value in net.state_dict().items())


def test_the_net_of_the_package_is_read_once_and_not_trained(package):
    found = weights.pretrained_net()
    assert isinstance(found, PriorFittedNet)
    assert found is weights.pretrained_net()
    assert not found.training
    assert not any(p.requires_grad for p in found.parameters())


def test_a_file_that_was_changed_is_refused(package):
    file, _ = package
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(ModelFileError, match="install entourage anew"):
        weights.pretrained_net()


@pytest.mark.parametrize("lost", [0, 1], ids=["weights", "checksum"])
def test_a_package_without_weights_says_so(package, lost):
    assert weights.available()
    package[lost].unlink()
    assert weights.available() is bool(lost)
    words = "Install entourage anew" if lost else "aren't in this copy.*python -m entourage.pretraining"
    with pytest.raises(ModelFileError, match=words):
        weights.pretrained_net()


def test_an_estimator_without_weights_says_how_to_make_them(package):
    package[0].unlink()
    with pytest.raises(ModelFileError, match="aren't in this copy.*python -m entourage.pretraining train"):
        DiscreteChooser("pretrained", device="cpu").fit(np.eye(2)[None], [0])


@pytest.mark.skipif(
    not weights.available(),
    reason="no trained weights in this copy; python -m entourage.pretraining makes them",
)
def test_the_weights_of_the_package_have_learnt_to_choose():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4, 3))
    chosen = (X @ [1.5, -1.0, 0.0] + rng.gumbel(size=(200, 4))).argmax(1)
    sets = Sets.of(X, np.arange(4) != chosen[:, None])
    scores = Reading.read(sets[:100], Choice(), device="cpu").scores(sets[100:], "cpu").reshape(-1, 4)
    best = X[100:] @ [1.5, -1.0, 0.0]
    gains = [
        (s - np.logaddexp.reduce(s, axis=1, keepdims=True))[np.arange(100), chosen[100:]]
        for s in (scores, best)
    ]
    assert gains[0].mean() > gains[1].mean() - 0.05  # near the oracle


def test_an_empty_checksum_is_refused(package):
    package[1].write_text("")
    with pytest.raises(ModelFileError, match="install entourage anew"):
        weights.pretrained_net()


def test_what_holds_no_weights_is_refused(tmp_path, net):
    path = tmp_path / "w"
    own = net.state_dict()
    lacking = {name: value for name, value in own.items() if name != "slots.weight"}
    unsound = own | {"slots.bias": own["slots.bias"] * torch.nan}
    for settings, tensors in [
        (net.settings, lacking),
        (net.settings, own | {"more": torch.zeros(1)}),
        (net.settings, unsound),
        (net.settings | {"width": 16}, own),
        (net.settings | {"depth": 16}, own),
    ]:
        weights.write_weights(path, settings, tensors, torch.bfloat16)
        with pytest.raises(ModelFileError, match="holds no weights"):
            weights.read_weights(path)
    for content in (b"", b"no weights", b"\xff" * 100):
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match="holds no weights"):
            weights.read_weights(path)
    with pytest.raises(ModelFileError, match="holds no weights"):
        weights.read_weights(tmp_path / "nothing")
