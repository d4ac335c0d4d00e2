"""A net of a user's own, registered by name."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from data_files import written

from entourage import FATE, ContextFree, DiscreteChooser, Ranker, load
from entourage.errors import ModelFileError, ParameterError
from entourage.nets import Entry, Net, Scorer, entry_of, register, registry
from entourage.selection.spaces import Choice, space_of

X = np.random.default_rng(0).normal(size=(40, 4, 2))
RANKS = X[..., 0].argsort(1).argsort(1)


class Centred(Net):
    """U(x, C) = w (x - mean of C), with a weight that torch itself draws."""

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def build(self, n_features, generator):
        return CentredScorer(self.scale, torch.randn(n_features, generator=generator))


class CentredScorer(Scorer):
    def __init__(self, scale, weight):
        super().__init__()
        self.scale, self.weight = scale, torch.nn.Parameter(weight)

    def forward(self, objects, mask=None):
        there = torch.ones_like(objects[..., 0]) if mask is None else mask.to(objects.dtype)
        own = objects @ self.weight * self.scale * there
        mean = own.sum(1, keepdim=True) / there.sum(1, keepdim=True).clamp(min=1)
        return (own - mean) * there


@pytest.fixture
def forgets():
    """Let a test register nets, and forget them after it."""
    kept = [(held, dict(held)) for held in (registry.NETS, registry._ENTRIES)]
    yield
    for held, before in kept:
        held.clear()
        held.update(before)


def quick(net, kind=Ranker):
    return kind(net, steps=5, validation=0, random_state=0, device="cpu")


def test_a_registered_net_is_known_by_its_name(forgets):
    register(Entry("centred", Centred, space={"net__scale": Choice((0.5, 1.0))}))
    named, given = quick("centred").fit(X, RANKS), quick(Centred()).fit(X, RANKS)
    assert isinstance(named.net_, Centred)
    assert (named.predict_scores(X) == given.predict_scores(X)).all()
    assert "net__scale" in space_of(given)
    assert entry_of(Centred()).context


@pytest.mark.parametrize(("kind", "targets"), [(Ranker, RANKS), (DiscreteChooser, RANKS.argmin(1))])
def test_a_registered_net_is_saved_and_loaded(kind, targets, forgets, tmp_path):
    model = quick(Centred(2.0), kind).fit(X, targets)
    with pytest.raises(ModelFileError, match="Register it"):
        model.save(tmp_path / "m.entourage")
    register(Entry("centred", Centred))
    model.save(tmp_path / "m.entourage")
    again = load(tmp_path / "m.entourage")
    assert again.net_.scale == 2.0
    assert (again.predict_scores(X) == model.predict_scores(X)).all()


def test_a_file_of_a_net_that_nobody_registered_says_what_to_do(forgets, tmp_path):
    register(Entry("centred", Centred))
    quick("centred").fit(X, RANKS).save(tmp_path / "m.entourage")
    del registry.NETS["centred"]
    with pytest.raises(ModelFileError, match="its net is 'centred'.*import the module that registers it"):
        load(tmp_path / "m.entourage")


MODULE = """
from entourage import ContextFree
from entourage.nets import Entry, register

class Mine(ContextFree):
    def __init__(self, width: int = 8) -> None:
        super().__init__(width)

register(Entry("mine", Mine, context=False))
"""


@pytest.mark.heavy
def test_a_command_knows_a_net_whose_module_is_imported_before_it(tmp_path):
    written(tmp_path / "my_nets.py", MODULE)
    written(
        tmp_path / "t.csv",
        "s,a,place\n" + "".join(f"{s},{s % 7 + i},{i}\n" for s in range(9) for i in (0, 1)),
    )
    start = [sys.executable, "-c", "import my_nets; from entourage.cli import main; main()"]
    fit = ["fit", "t.csv", "--set-id", "s", "--target", "place", "--model", "mine", "-o", "m.entourage"]
    subprocess.run([*start, *fit], cwd=tmp_path, check=True, capture_output=True)
    known = subprocess.run(
        [*start, "info", "m.entourage"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert "mine" in known.stdout.lower()
    unknown = subprocess.run([sys.executable, "-m", "entourage", "info", "m.entourage"], cwd=tmp_path, check=False,
                             capture_output=True, text=True)  # fmt: skip
    assert unknown.returncode == 2
    assert "import THAT_MODULE; from entourage.cli import main; main()" in unknown.stderr


def test_a_cell_that_is_run_again_registers_its_net_anew(forgets):
    def cell():
        class Mine(ContextFree):
            def __init__(self, width: int = 8) -> None:
                super().__init__(width)

        register(Entry("mine", Mine, context=False))
        return Mine

    first, second = cell(), cell()
    assert registry.NETS["mine"] is second
    assert entry_of(second()).net is second
    assert entry_of(first()).name == "context_free"  # what it is derived from


def test_what_cannot_be_registered_is_refused_with_the_reason(forgets):
    class Bare(ContextFree):
        def __init__(self, width=8) -> None:
            super().__init__(width)

    for name in ("fate", "auto", "pretrained"):
        with pytest.raises(ParameterError, match="it is taken"):
            register(Entry(name, Centred))
    with pytest.raises(ParameterError, match="letters, digits and _"):
        register(Entry("max pool", Centred))
    with pytest.raises(ParameterError, match="the class of a net"):
        register(Entry("centred", Centred()))
    with pytest.raises(ParameterError, match="annotation for width"):
        register(Entry("bare", Bare))
    register(Entry("centred", Centred))
    with pytest.raises(ParameterError, match="registered already, for Centred"):
        register(Entry("centred", FATE))
