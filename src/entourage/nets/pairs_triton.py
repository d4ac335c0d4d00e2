"""FETA's pairs on a GPU as one kernel, forward and backward: pair states never reach device memory.

A program holds a block of objects and goes through their partners. With ``a_i`` and ``b_j`` the split first layer,
the hidden layer of a pair is ``z_ij = W act(a_i + b_j) + c``, and what is kept is ``sum_j act(z_ij)``: the output
layer is linear, so it comes after the sum. Programs share the partners between them in ``SPLITS`` parts, whose sums
are added up, so the result doesn't depend on which is first.

In bfloat16 the block of objects goes through a product with the identity first: it then lies in registers as tensor
cores want it, and no pair state has to pass through shared memory.
"""

# mypy: disable-error-code="no-untyped-def,untyped-decorator"

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from entourage.nets.layers import MLP
from entourage.nets.triton_parts import (
    activate,
    first_layer,
    grid_of,
    into_registers,
    options_for,
    product,
    slope_of_gelu,
)

__all__ = ["mean_over_others", "serves"]

WIDEST = 128  # hidden units: more don't fit into registers
WIDEST_BACK = {torch.bfloat16: 128, torch.float32: 64}


def serves(utility: MLP, left: Tensor, *, squash: bool) -> bool:
    """Whether the kernel is made for this net: two hidden layers, ReLU or GELU, no norm, not too wide."""
    hidden = left.shape[-1]
    back = torch.is_grad_enabled() and left.requires_grad
    return (
        len(utility.linears) == 3
        and utility.norms is None
        and utility.activation in ("relu", "gelu")
        and not squash
        and left.dtype in WIDEST_BACK
        and hidden <= (WIDEST_BACK[left.dtype] if back else WIDEST)
        and not torch._C._functorch.is_batchedtensor(left)
    )


def mean_over_others(utility: MLP, left: Tensor, right: Tensor, mask: Tensor | None) -> Tensor:
    """Average ``u(x_i, x_j)`` over the others of each object; 0 where there are none, and in the padding.

    Parameters
    ----------
    utility : the net of a pair; see `serves`
    left, right : (n, m, h), its split first layer, the same in float32 or bfloat16
    mask : (n, m), False in the padding
    """
    n, m, width = left.shape
    hidden, last = utility.linears[1], utility.linears[2]
    missing = max(16, triton.next_power_of_2(width)) - width
    tensors: list[Any] = [left, right, hidden.weight, hidden.bias, last.weight[0]]  # type: ignore[index]
    if missing:  # units that are always 0
        pads = [(0, missing), (0, missing), (0, missing, 0, missing), (0, missing), (0, missing)]
        tensors = [F.pad(tensor, pad) for tensor, pad in zip(tensors, pads, strict=True)]
    gelu = utility.activation == "gelu"
    learns = any(tensor.requires_grad for tensor in tensors) and torch.is_grad_enabled()
    if mask is None and m == 1:
        return left.new_zeros(n, m, dtype=torch.float32)
    if mask is None and not learns:  # the kernel does all of it: what is left is starting small kernels
        return _evaluate(*_laid_out(*tensors, last.bias), gelu=gelu, keep=False, alike=True)  # type: ignore[call-arg]
    if mask is None:
        weights = left.new_full((n, m), 1 / (m - 1), dtype=torch.float32)
    else:
        weights = mask / (mask.sum(1, keepdim=True) - 1).clamp(min=1)
    if learns:
        mean: Tensor = _Pairs.apply(*tensors, weights, gelu)  # type: ignore[no-untyped-call]
    else:
        mean = _evaluate(*_laid_out(*tensors, weights), gelu=gelu, keep=False)  # type: ignore[call-arg]
    if mask is None:
        return mean + last.bias  # type: ignore[operator]
    return torch.where(mask, mean + (weights.sum(1, keepdim=True) - weights) * last.bias, 0.0)  # type: ignore[operator]


class _Pairs(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> Tensor:
        *tensors, gelu = arguments
        laid_out = _laid_out(*tensors)
        sums = _evaluate(*laid_out, gelu=gelu, keep=True)  # (n, m, h)
        ctx.save_for_backward(*laid_out, sums)
        ctx.gelu = gelu
        return (sums * laid_out[4]).sum(2)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        left, right, w, c, v, weights, sums = ctx.saved_tensors
        n, m, h = left.shape
        blocks, splits = grid_of(n, m)
        gradient = gradient.float().contiguous()
        to_left, to_right = (sums.new_empty(n, splits, m, h) for _ in "ab")
        to_c, to_w = sums.new_empty(n * splits * blocks, h), sums.new_empty(n * splits * blocks, h, h)
        for rows, mine in ((True, to_left), (False, to_right)):
            _backward[(blocks, splits, n)](
                left,
                right,
                w,
                c,
                v,
                weights,
                gradient,
                mine,
                to_c,
                to_w,
                m,
                ROWS=rows,
                H=h,
                SPLITS=splits,
                num_warps=8 if rows and h > 64 else 4,
                **options_for(left, gelu=ctx.gelu),
            )
        return (
            to_left.sum(1).to(left.dtype),
            to_right.sum(1).to(right.dtype),
            to_w.sum(0),
            to_c.sum(0) * v,
            (gradient.unsqueeze(2) * sums).sum((0, 1)),
            None,
            None,
        )


def _laid_out(
    left: Tensor, right: Tensor, w: Tensor, c: Tensor, v: Tensor, weights: Tensor
) -> tuple[Tensor, ...]:
    """Return the tensors as the kernels read them: contiguous, the pairs' in one precision, the rest in float32."""
    pair = (tensor.to(left.dtype).contiguous() for tensor in (left, right, w))
    return *pair, *(tensor.float().contiguous() for tensor in (c, v, weights))


def _evaluate(
    left: Tensor,
    right: Tensor,
    w: Tensor,
    c: Tensor,
    v: Tensor,
    weights: Tensor,
    *,
    gelu: bool,
    keep: bool,
    alike: bool = False,
) -> Tensor:
    """Return the weighted sums over partners of the last hidden layer ``(n, m, h)``, or of the output ``(n, m)``.

    Where all partners count ``alike``, the bias of the output comes in place of the weights, and is added.
    """
    n, m, h = left.shape
    blocks, splits = grid_of(n, m)
    sums = left.new_empty((n, splits, m, h) if keep else (n, splits, m), dtype=torch.float32)
    _forward[(blocks, splits, n)](
        left,
        right,
        w,
        c,
        v,
        weights,
        sums,
        m,
        KEEP=keep,
        ALIKE=alike,
        H=h,
        SPLITS=splits,
        num_warps=4,
        **options_for(left, gelu=gelu),
    )
    return sums.sum(1) if splits > 1 else sums.squeeze(1)


@triton.jit
def _forward(
    left,
    right,
    w,
    c,
    v,
    weights,
    sums,
    m,
    KEEP: tl.constexpr,  # the last hidden layer, not only the output
    ALIKE: tl.constexpr,  # all partners count alike, and ``weights`` is the bias of the output
    H: tl.constexpr,
    BLOCK: tl.constexpr,
    SPLITS: tl.constexpr,
    GELU: tl.constexpr,
    PRECISION: tl.constexpr,
    REGISTERS: tl.constexpr,
    PACKED: tl.constexpr,
):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part, s = tl.program_id(1), tl.program_id(2).to(tl.int64)
    h = tl.arange(0, H)
    places = i[:, None] * H + h[None, :]
    left, right = left + s * m * H, right + s * m * H
    each = 1.0 / (m - 1)
    a = tl.load(left + places, mask=(i < m)[:, None], other=0.0)
    if REGISTERS:
        a = into_registers(a, H)
    w_turned = tl.load(w + h[None, :] * H + h[:, None])  # (in, out)
    bias = tl.load(c + h)
    total = tl.zeros((BLOCK, H), dtype=tl.float32)
    for j in range(part, m, SPLITS):
        x = first_layer(a, tl.load(right + j * H + h), GELU, PACKED)
        z = product(x, w_turned, PRECISION) + bias[None, :]
        counts = tl.where(i == j, 0.0, each if ALIKE else tl.load(weights + s * m + j))
        total += counts[:, None] * activate(z, GELU)
    if KEEP:
        tl.store(sums + (s * SPLITS + part) * m * H + places, total, mask=(i < m)[:, None])
    else:
        values = tl.sum(total * tl.load(v + h)[None, :], 1)
        if ALIKE:
            values += tl.where(part == 0, tl.load(weights), 0.0)
        tl.store(sums + (s * SPLITS + part) * m + i, values, mask=i < m)


@triton.jit
def _backward(
    left,
    right,
    w,
    c,
    v,
    weights,
    gradient,
    to_mine,
    to_c,
    to_w,
    m,
    ROWS: tl.constexpr,  # a block of objects that goes through partners, or of partners that goes through objects
    H: tl.constexpr,
    BLOCK: tl.constexpr,
    SPLITS: tl.constexpr,
    GELU: tl.constexpr,
    PRECISION: tl.constexpr,
    REGISTERS: tl.constexpr,
    PACKED: tl.constexpr,
):
    p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part, s = tl.program_id(1), tl.program_id(2).to(tl.int64)
    h = tl.arange(0, H)
    places = p[:, None] * H + h[None, :]
    square = h[:, None] * H + h[None, :]
    mine = (left if ROWS else right) + s * m * H
    other = (right if ROWS else left) + s * m * H
    factor_mine = (gradient if ROWS else weights) + s * m
    factor_other = (weights if ROWS else gradient) + s * m
    a = tl.load(mine + places, mask=(p < m)[:, None], other=0.0)
    if REGISTERS:
        a = into_registers(a, H)
    w_plain = tl.load(w + square)  # (out, in)
    w_turned = tl.load(w + h[None, :] * H + h[:, None])  # (in, out)
    bias, last = tl.load(c + h), tl.load(v + h)
    own = tl.load(factor_mine + p, mask=p < m, other=0.0)
    to_a = tl.zeros((BLOCK, H), dtype=tl.float32)
    slopes = tl.zeros((BLOCK, H), dtype=tl.float32)
    products = tl.zeros((H, H), dtype=tl.float32)
    for q in range(part, m, SPLITS):
        b = tl.load(other + q * H + h)
        x = first_layer(a, b, GELU, PACKED)
        z = product(x, w_turned, PRECISION) + bias[None, :]
        g = tl.where(p == q, 0.0, own * tl.load(factor_other + q))
        if GELU:  # noqa: SIM108 - chosen when it is compiled
            to_z = g[:, None] * slope_of_gelu(z)
        else:
            to_z = tl.where(z > 0, g[:, None], 0.0)
        if ROWS:
            slopes += to_z
        to_z = (to_z * last[None, :]).to(w_turned.dtype)
        to_x = product(to_z, w_plain, PRECISION)
        if GELU:
            to_a += to_x * slope_of_gelu(a.to(tl.float32) + b.to(tl.float32)[None, :])
        else:
            to_a += tl.where(x.to(tl.float32) > 0, to_x, 0.0)
        if ROWS:
            products += product(tl.trans(to_z), x, PRECISION)
    tl.store(to_mine + (s * SPLITS + part) * m * H + places, to_a, mask=(p < m)[:, None])
    if ROWS:
        block = (s * SPLITS + part) * tl.num_programs(0) + tl.program_id(0)
        tl.store(to_c + block * H + h, tl.sum(slopes, 0))
        tl.store(to_w + block * H * H + square, products)
