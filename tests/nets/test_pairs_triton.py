"""The fused kernel of FETA's pairs: on a GPU where there is one, else through Triton's interpreter."""

import pytest
import torch

pytest.importorskip("triton")

from cases import build
from torch.nn import functional as F

from entourage import FETA
from entourage.nets import Scorer, laws, pairs, pairs_triton, triton_parts
from entourage.nets.layers import ACTIVATIONS, MLP

pytestmark = pytest.mark.heavy

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
NETS = {"relu": {}, "gelu": {"activation": "gelu"}, "rounds": {"rounds": 2}}
LAWS = [
    laws.scores_follow_their_objects_when_shuffled,
    laws.scores_of_a_padded_set_follow_their_objects_when_shuffled,
    laws.padding_scores_like_the_set_alone,
    laws.a_mask_without_padding_is_no_mask,
    laws.a_batch_of_one_scores_as_within_a_batch,
    laws.padding_changes_no_score,
    laws.a_batch_of_one_and_a_set_of_one_work,
    laws.a_set_of_padding_alone_gives_no_NaN,
]


class OnKernel(Scorer):
    """A net in float32 on the kernel's device, for tests of float64."""

    def __init__(self, scorer: Scorer) -> None:
        super().__init__()
        self.scorer = scorer.float().to(DEVICE)

    def forward(self, objects, mask=None):
        mask = None if mask is None else mask.to(DEVICE)
        return self.scorer(objects.float().to(DEVICE), mask).cpu()


@pytest.fixture
def count(monkeypatch):
    """Let the kernel do sets of any size, and count how often it does."""
    calls = []
    real = pairs_triton.mean_over_others

    def counted(*arguments):
        calls.append(1)
        return real(*arguments)

    monkeypatch.setattr(pairs, "FUSED_ON", {"cpu", "cuda"})
    monkeypatch.setattr(pairs, "FUSED_FROM", 1)
    monkeypatch.setattr(pairs_triton, "mean_over_others", counted)
    return calls


@pytest.mark.parametrize("kind", NETS)
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_the_laws_of_nets_hold(law, kind, count):
    law(lambda: OnKernel(build("feta", NETS[kind])), 3)
    assert count


def rounded(values, kind):
    """Round as the kernel does; gradients don't see it."""
    return values + (values.to(kind).double() - values).detach()


@pytest.mark.parametrize("precision", ["highest", "high", "bfloat16"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize(("m", "width"), [(7, 24), (70, 16), (5, 64)])
def test_means_and_gradients_agree_with_float64(m, width, activation, precision, monkeypatch):
    if DEVICE == "cpu" and (precision == "high" or (m == 70 and activation == "gelu")):
        pytest.skip("the interpreter has one float32, and shows two blocks with relu alone")
    if m == 70 and DEVICE == "cpu":  # two blocks as well, and a tenth of the pairs for the interpreter
        monkeypatch.setattr(triton_parts, "BLOCK", 16)
        m = 20
    if precision == "high" and DEVICE == "cuda":
        torch.set_float32_matmul_precision("high")
        monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: "high")
    kind = torch.bfloat16 if precision == "bfloat16" else torch.float32
    # the interpreter cuts bfloat16 off where a GPU rounds, and some units of a ReLU then switch
    tolerance = {"highest": 5e-6, "high": 0.05, "bfloat16": 0.02 if DEVICE == "cuda" else 0.1}[precision]

    def net() -> MLP:
        generator = torch.Generator().manual_seed(3)
        sizes = {"depth": 2, "width": width, "activation": activation, "norm": "none"}
        mlp = MLP((3, 3), 1, **sizes, generator=generator).to(DEVICE)
        with torch.no_grad():
            for p in mlp.parameters():
                p.add_(0.1 * torch.randn(p.shape, generator=generator).to(DEVICE))
        return mlp

    generator = torch.Generator().manual_seed(4)
    objects = torch.randn(2, m, 3, generator=generator).to(DEVICE)
    mask = (torch.arange(m) < torch.tensor([[m], [m - 2]])).to(DEVICE)
    weigh = torch.randn(2, m, generator=generator).to(DEVICE)
    try:
        ours, exact = net(), net().double()
        left, right = ours.first(objects, objects)
        assert pairs_triton.serves(ours, left, squash=False)
        means = pairs_triton.mean_over_others(ours, left.to(kind), right.to(kind), mask)
        (means * weigh).sum().backward()
    finally:
        torch.set_float32_matmul_precision("highest")
    a, b = exact.first(objects.double(), objects.double())
    a, b, w = (rounded(t, kind) for t in (a, b, exact.linears[1].weight))
    act = ACTIVATIONS[activation]
    hidden = F.linear(rounded(act(a[:, :, None] + b[:, None]), kind), w, exact.linears[1].bias)
    values = exact.linears[2](act(hidden)).squeeze(-1)
    others = mask[:, None] & mask[:, :, None] & ~torch.eye(m, dtype=torch.bool, device=DEVICE)
    expected = torch.where(others, values, 0.0).sum(2) / (mask.sum(1, keepdim=True) - 1)
    (expected * weigh).sum().backward()
    with torch.no_grad():
        again = pairs_triton.mean_over_others(ours, left.to(kind), right.to(kind), mask)
        everybody = torch.ones_like(mask)
        alike = pairs_triton.mean_over_others(ours, left.to(kind), right.to(kind), None)
        by_mask = pairs_triton.mean_over_others(ours, left.to(kind), right.to(kind), everybody)
    assert (again - means).norm() <= 1e-6 * means.norm()
    assert (alike - by_mask).norm() <= 1e-5 * by_mask.norm()
    assert (means - expected).norm() <= tolerance * expected.norm()
    for mine, theirs in zip(ours.parameters(), exact.parameters(), strict=True):
        assert (mine.grad - theirs.grad).norm() <= tolerance * theirs.grad.norm()


@pytest.mark.parametrize(
    "params",
    [
        {"depth": 1},
        {"norm": "layer"},
        {"activation": "selu"},
        {"squash": True},
        {"width": 200},
    ],
    ids=str,
)
def test_other_nets_take_the_portable_way(params, count):
    scorer = FETA(**{"width": 8} | params).build(3, torch.Generator().manual_seed(0))
    scorer(torch.randn(1, 6, 3))
    assert not count


def test_float64_and_small_sets_take_the_portable_way(count, monkeypatch):
    scorer = FETA(width=8).build(3, torch.Generator().manual_seed(0))
    scorer.double()(torch.randn(1, 6, 3).double())
    monkeypatch.setattr(pairs, "FUSED_FROM", 7)
    scorer.float()(torch.randn(1, 6, 3))
    assert not count
    scorer.to(DEVICE)(torch.randn(1, 7, 3, device=DEVICE))
    assert count


@pytest.mark.skipif(DEVICE == "cpu", reason="there is no GPU here")
def test_on_a_gpu_large_sets_take_the_kernel_and_memory_stays_linear():
    scorer = FETA(width=64).build(16, torch.Generator().manual_seed(0)).to(DEVICE)
    peaks = []
    for m in (4_000, 16_000):
        objects = torch.randn(1, m, 16, device=DEVICE)
        with torch.no_grad():
            scorer(objects)
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            scorer(objects)
        peaks.append(torch.cuda.max_memory_allocated() - before)
    assert peaks[1] < 5 * peaks[0]
