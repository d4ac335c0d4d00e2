"""The fused kernel of attention over pairs: on a GPU where there is one, else through Triton's interpreter."""

import copy

import pytest
import torch

pytest.importorskip("triton")

from cases import build
from test_pairs_triton import DEVICE, LAWS, OnKernel

from entourage import SetAttention
from entourage.nets import attention_triton, message_passing, triton_parts
from entourage.nets.message_passing import PairMessage

pytestmark = pytest.mark.heavy

NETS = {
    "one layer": {"rounds": 1, "heads": 2},
    "points, two layers": {"rounds": 1, "heads": 3, "points": 3, "depth": 2},
}


@pytest.fixture
def count(monkeypatch):
    """Let the kernel do sets of any size, and count how often it does."""
    calls = []
    real = attention_triton.attend

    def counted(*arguments):
        calls.append(1)
        return real(*arguments)

    monkeypatch.setattr(message_passing, "FUSED_ON", {"cpu", "cuda"})
    monkeypatch.setattr(message_passing, "FUSED_ALWAYS", True)
    monkeypatch.setattr(message_passing, "FUSED_FROM", 1)
    monkeypatch.setattr(attention_triton, "attend", counted)
    if DEVICE == "cpu":  # the interpreter takes as long for rows that hold nothing
        monkeypatch.setattr(triton_parts, "BLOCK", 16)
        monkeypatch.setattr(triton_parts, "MOST_SPLITS", 2)
    return calls


@pytest.mark.parametrize("kind", NETS)
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_the_laws_of_nets_hold(law, kind, count):
    law(lambda: OnKernel(build("set_attention", NETS[kind])), 3)
    assert count


@pytest.mark.parametrize("precision", ["highest", "high", "bfloat16"])
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize(("m", "o", "width", "heads"), [(20, 20, 24, 4), (3, 37, 16, 1), (70, 70, 64, 8)])
def test_sums_and_gradients_agree_with_float64(m, o, width, heads, depth, precision, count):
    if DEVICE == "cpu" and (precision == "high" or m == 70):
        pytest.skip("the interpreter has one float32, and takes long")
    kind = torch.bfloat16 if precision == "bfloat16" else torch.float32
    generator = torch.Generator().manual_seed(3)
    ours = PairMessage(width, heads=heads, depth=depth, sharpening=2.0, generator=generator)
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
            parameter.copy_(parameter.to(kind))  # both read the same weights
    ours.to(DEVICE)
    exact = copy.deepcopy(ours).double()
    pairs = [torch.randn(2, count, width, generator=generator).to(kind).to(DEVICE) for count in (m, o)]
    weigh = torch.randn(2, m, width, generator=generator).to(DEVICE)
    mask = (torch.arange(o) < torch.tensor([[o], [o - 2]])).to(DEVICE)
    tolerance = {"highest": 5e-5, "high": 0.02, "bfloat16": 0.05}[precision]
    for mask_of_both in (None, mask):
        left, right = (tensor.clone().requires_grad_() for tensor in pairs)
        left_too, right_too = (tensor.double().requires_grad_() for tensor in pairs)
        for net in (ours, exact):
            net.zero_grad()
        torch.set_float32_matmul_precision("high" if precision == "high" else "highest")
        try:
            sums = ours._kernel(left, right)(left, right, mask_of_both)
            (sums * weigh).sum().backward()
        finally:
            torch.set_float32_matmul_precision("highest")
        expected = exact._tile(left_too, right_too, mask_of_both, 0, False)
        (expected * weigh).sum().backward()
        found = [(sums, expected), (left.grad, left_too.grad), (right.grad, right_too.grad)]
        for mine, theirs in zip(ours.parameters(), exact.parameters(), strict=True):
            found += [(mine.grad, theirs.grad)] if theirs.grad is not None else []
        assert len(found) == (5 if depth == 1 else 7)
        for mine, theirs in found:
            assert (mine - theirs).norm() <= tolerance * theirs.norm()
    assert len(count) == 2


def test_sharp_heads_neither_overflow_nor_forget_the_largest_logit(count):
    ours = PairMessage(16, heads=2, generator=torch.Generator().manual_seed(0)).to(DEVICE)
    with torch.no_grad():
        ours.logits.weight.mul_(1e6)  # logits in the thousands, in rising and falling order
    states = torch.linspace(-3, 3, 21)[:, None].expand(21, 16)[None].to(DEVICE)
    with torch.no_grad():
        for order in (states, states.flip(1)):
            left, right = order.contiguous(), order.contiguous()
            sums = ours._kernel(left, right)(left, right, None)
            torch.testing.assert_close(sums, ours._tile(left, right, None, 0, False), rtol=1e-4, atol=1e-5)
    assert len(count) == 2


@pytest.mark.parametrize(
    "params", [{"depth": 3}, {"width": 200, "heads": 1}, {"heads": 20, "width": 20}], ids=str
)
def test_other_nets_take_the_portable_way(params, count):
    scorer = SetAttention(**{"width": 8, "rounds": 1} | params).build(3, torch.Generator().manual_seed(0))
    scorer(torch.randn(1, 6, 3))
    scorer.double()(torch.randn(1, 6, 3).double())
    assert not count


def test_without_being_asked_it_only_scores_in_bfloat16(count, monkeypatch):
    monkeypatch.setattr(message_passing, "FUSED_ALWAYS", False)
    message = PairMessage(16, heads=2, generator=torch.Generator().manual_seed(0)).to(DEVICE)
    states = torch.randn(1, 5, 16, device=DEVICE)
    message(states)
    message.bfloat16()(states.bfloat16())  # with gradients
    with torch.no_grad():
        message.float()(states)
        assert not count
        message.bfloat16()(states.bfloat16())
    assert len(count) == 1


@pytest.mark.skipif(DEVICE == "cpu", reason="there is no GPU here")
def test_on_a_gpu_memory_stays_linear(count):
    scorer = SetAttention(width=64, rounds=1).build(16, torch.Generator().manual_seed(0)).to(DEVICE).eval()
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
