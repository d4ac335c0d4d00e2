"""Attention over pairs on a GPU as one kernel, forward and backward: pair states never reach device memory.

A program holds a block of objects and goes through their partners, one at a time. With ``a_i`` and ``b_j`` the split
first layer, a pair's state is ``g_ij = gelu(a_i + b_j)``, through one layer more at depth 2. Each head has a logit
``u_k . g_ij`` and weighs its own slice of the state by the softmax over partners, which is summed as it goes, beside
the largest logit so far. From heads to units and back is a product with a matrix of zeros and ones.

The way back takes the sum of exponentials of the way forth, so weights are found again without a second softmax. It
goes once over objects and their partners, for what belongs to objects and to the net, and once over partners and the
objects, for what belongs to partners: no program adds to what another one writes.
"""

# mypy: disable-error-code="no-untyped-def,untyped-decorator"

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from entourage.nets.triton_parts import (
    activate,
    first_layer,
    grid_of,
    into_registers,
    options_for,
    product,
    slope_of_gelu,
)

__all__ = ["attend", "serves"]

WIDEST = {torch.bfloat16: 128, torch.float32: 64}  # hidden units: more don't fit into registers
LEAST = 16  # the smallest side of a product


def serves(left: Tensor, heads: int, depth: int) -> bool:
    """Whether the kernel is made for such pairs: one or two layers, float32 or bfloat16, not too wide."""
    return (
        0 < heads <= LEAST
        and depth <= 2
        and left.dtype in WIDEST
        and left.shape[-1] <= WIDEST[left.dtype]
        and not torch._C._functorch.is_batchedtensor(left)
    )


def attend(
    left: Tensor,
    right: Tensor,
    logits: Tensor,
    mask: Tensor | None,
    more: tuple[Tensor, Tensor] | None = None,
) -> Tensor:
    """Return the attention's sum over partners ``(n, m, h)`` for each object; 0 where a set has none.

    Parameters
    ----------
    left, right : (n, m, h) and (n, o, h), the split first layer of objects and of partners, the same in float32 or
        bfloat16
    logits : (k, h), what turns a pair's state into the logits of its heads
    mask : (n, o), False where there is no partner
    more : weight (h, h) and bias (h) of a second layer
    """
    width, heads = left.shape[-1], len(logits)
    missing = max(LEAST, triton.next_power_of_2(width)) - width
    if more is None:
        more = left.new_zeros(1, 1), left.new_zeros(1)
        deep = False
    else:
        more = F.pad(more[0], (0, missing, 0, missing)), F.pad(more[1], (0, missing))
        deep = True
    unit = torch.arange(width, device=left.device)
    owner = torch.arange(heads, device=left.device)[:, None] == (unit // (width // heads))  # (k, h)
    to_pad = (0, missing, 0, LEAST - heads)
    pooled: Tensor = _Attention.apply(  # type: ignore[no-untyped-call]
        F.pad(left, (0, missing)),
        F.pad(right, (0, missing)),
        F.pad(logits, to_pad),
        *more,
        F.pad(owner.float(), to_pad),
        mask,
        deep,
    )
    return pooled[..., :width]


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> Tensor:
        *tensors, mask, deep = arguments
        kind = tensors[0].dtype
        left, right, logits, weight, owner = (tensors[i].to(kind).contiguous() for i in (0, 1, 2, 3, 5))
        bias = tensors[4].float().contiguous()
        there = None if mask is None else mask.to(torch.int8).contiguous()
        n, m, h = left.shape
        blocks, splits = grid_of(n, m)
        sums = left.new_empty(n, splits, m, h, dtype=torch.float32)
        largest, totals = (left.new_empty(n, splits, m, LEAST, dtype=torch.float32) for _ in "ab")
        _forward[(blocks, splits, n)](
            left,
            right,
            logits,
            weight,
            bias,
            owner,
            right if there is None else there,
            sums,
            largest,
            totals,
            m,
            right.shape[1],
            **_options(left, deep, splits, there is not None),
        )
        top = largest.amax(1, keepdim=True)  # (n, 1, m, k)
        shares = torch.where(totals > 0, (largest - top).exp(), 0.0)
        total = (totals * shares).sum(1)  # (n, m, k)
        kept = (sums * (shares @ owner.float())).sum(1)
        pooled = kept / (total @ owner.float()).clamp(min=torch.finfo(torch.float32).tiny)
        log_total = torch.where(total > 0, top.squeeze(1) + total.log(), torch.inf)  # inf: all weights are 0
        ctx.save_for_backward(left, right, logits, weight, bias, owner, pooled, log_total, there)
        ctx.deep = deep
        result: Tensor = pooled.to(kind)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        left, right, logits, weight, bias, owner, pooled, log_total, there = ctx.saved_tensors
        n, m, h = left.shape
        o = right.shape[1]
        wide = gradient.float()
        centre = ((wide * pooled) @ owner.float().T).contiguous()  # (n, m, k)
        gradient = gradient.to(left.dtype).contiguous()
        results = []
        for rows, count in ((True, m), (False, o)):
            blocks, splits = grid_of(n, count)
            to_mine = pooled.new_empty(n, splits, count, h)
            programs = n * splits * blocks if rows else 1
            to_logits = pooled.new_empty(programs, LEAST, h)
            to_weight = pooled.new_empty(programs if ctx.deep else 1, h, h)
            to_bias = pooled.new_empty(programs if ctx.deep else 1, h)
            _backward[(blocks, splits, n)](
                left,
                right,
                logits,
                weight,
                bias,
                owner,
                right if there is None else there,
                gradient,
                centre,
                log_total,
                to_mine,
                to_logits,
                to_weight,
                to_bias,
                m,
                o,
                ROWS=rows,
                **_options(left, ctx.deep, splits, there is not None),
            )
            results.append((to_mine.sum(1).to(left.dtype), to_logits, to_weight, to_bias))
        (to_left, to_logits, to_weight, to_bias), (to_right, *_) = results
        deep = (to_weight.sum(0), to_bias.sum(0)) if ctx.deep else (None, None)
        return to_left, to_right, to_logits.sum(0), *deep, None, None, None


def _options(left: Tensor, deep: bool, splits: int, masked: bool) -> dict[str, Any]:
    shared = options_for(left, gelu=True)
    return {
        "H": left.shape[-1],
        "K": LEAST,
        "BLOCK": shared["BLOCK"],
        "SPLITS": splits,
        "DEEP": deep,
        "MASKED": masked,
        "PRECISION": shared["PRECISION"],
        "REGISTERS": shared["REGISTERS"],
        "num_warps": 4 if shared["REGISTERS"] and left.shape[-1] <= 64 else 8,  # fewer would spill registers
        "num_stages": 1,
    }


@triton.jit
def _forward(
    left,
    right,
    logits,
    weight,
    bias,
    owner,
    there,
    sums,
    largest,
    totals,
    m,
    o,
    H: tl.constexpr,
    K: tl.constexpr,
    BLOCK: tl.constexpr,
    SPLITS: tl.constexpr,
    DEEP: tl.constexpr,
    MASKED: tl.constexpr,
    PRECISION: tl.constexpr,
    REGISTERS: tl.constexpr,
):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part, s = tl.program_id(1), tl.program_id(2).to(tl.int64)
    h, k = tl.arange(0, H), tl.arange(0, K)
    inside = (i < m)[:, None]
    places, head_places = i[:, None] * H + h[None, :], i[:, None] * K + k[None, :]
    right += s * o * H
    a = tl.load(left + s * m * H + places, mask=inside, other=0.0)
    if REGISTERS:
        a = into_registers(a, H)
    u_turned = tl.load(logits + k[None, :] * H + h[:, None])  # (h, k)
    owners = tl.load(owner + k[:, None] * H + h[None, :])  # (k, h)
    if DEEP:
        w_turned = tl.load(weight + h[None, :] * H + h[:, None])  # (in, out)
        c = tl.load(bias + h)
    top = tl.full((BLOCK, K), -1e30, dtype=tl.float32)
    total = tl.zeros((BLOCK, K), dtype=tl.float32)
    kept = tl.zeros((BLOCK, H), dtype=tl.float32)
    for j in range(part, o, SPLITS):
        counts = True
        if MASKED:
            counts = tl.load(there + s * o + j) != 0
        if counts:
            g = first_layer(a, tl.load(right + j * H + h), True, False)
            if DEEP:
                g = activate(product(g, w_turned, PRECISION) + c[None, :], True).to(a.dtype)
            logit = product(g, u_turned, PRECISION)
            new = tl.maximum(top, logit)
            grown = tl.max(tl.max(new - top, 1), 0)
            share = tl.exp(logit - new)
            if grown > 0.0:  # a new largest logit somewhere in the block: what was summed shrinks
                shrunk = tl.exp(top - new)
                total *= shrunk
                kept *= product(shrunk.to(a.dtype), owners, PRECISION)
            top = new
            total += share
            kept += product(share.to(a.dtype), owners, PRECISION) * g.to(tl.float32)
    tl.store(sums + (s * SPLITS + part) * m * H + places, kept, mask=inside)
    tl.store(largest + (s * SPLITS + part) * m * K + head_places, top, mask=inside)
    tl.store(totals + (s * SPLITS + part) * m * K + head_places, total, mask=inside)


@triton.jit
def _backward(
    left,
    right,
    logits,
    weight,
    bias,
    owner,
    there,
    gradient,
    centre,
    log_total,
    to_mine,
    to_logits,
    to_weight,
    to_bias,
    m,
    o,
    ROWS: tl.constexpr,  # a block of objects that goes through partners, or of partners that goes through objects
    H: tl.constexpr,
    K: tl.constexpr,
    BLOCK: tl.constexpr,
    SPLITS: tl.constexpr,
    DEEP: tl.constexpr,
    MASKED: tl.constexpr,
    PRECISION: tl.constexpr,
    REGISTERS: tl.constexpr,
):
    p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part, s = tl.program_id(1), tl.program_id(2).to(tl.int64)
    h, k = tl.arange(0, H), tl.arange(0, K)
    count = m if ROWS else o
    others = o if ROWS else m
    inside = p < count
    places, head_places = p[:, None] * H + h[None, :], p[:, None] * K + k[None, :]
    mine = (left if ROWS else right) + s * count * H
    other = (right if ROWS else left) + s * others * H
    gradient, centre, log_total = gradient + s * m * H, centre + s * m * K, log_total + s * m * K
    a = tl.load(mine + places, mask=inside[:, None], other=0.0)
    if REGISTERS:
        a = into_registers(a, H)
    u = tl.load(logits + k[:, None] * H + h[None, :])  # (k, h)
    u_turned = tl.load(logits + k[None, :] * H + h[:, None])  # (h, k)
    owners = tl.load(owner + k[:, None] * H + h[None, :])  # (k, h)
    owners_turned = tl.load(owner + k[None, :] * H + h[:, None])  # (h, k)
    if DEEP:
        w_plain = tl.load(weight + h[:, None] * H + h[None, :])  # (out, in)
        w_turned = tl.load(weight + h[None, :] * H + h[:, None])  # (in, out)
        c = tl.load(bias + h)
        slopes = tl.zeros((BLOCK, H), dtype=tl.float32)
        products = tl.zeros((H, H), dtype=tl.float32)
    valid = inside[:, None]
    if ROWS:
        given = tl.load(gradient + places, mask=valid, other=0.0).to(tl.float32)
        middle = tl.load(centre + head_places, mask=valid, other=0.0)
        logs = tl.load(log_total + head_places, mask=valid, other=float("inf"))
    elif MASKED:
        valid = (inside & (tl.load(there + s * o + p, mask=inside, other=0) != 0))[:, None]
    to_a = tl.zeros((BLOCK, H), dtype=tl.float32)
    to_u = tl.zeros((K, H), dtype=tl.float32)
    for q in range(part, others, SPLITS):
        counts = True
        if ROWS and MASKED:
            counts = tl.load(there + s * o + q) != 0
        if counts:
            b = tl.load(other + q * H + h)
            x = first_layer(a, b, True, False)
            if DEEP:
                z = product(x, w_turned, PRECISION) + c[None, :]
                g = activate(z, True).to(a.dtype)
            else:
                g = x
            if not ROWS:
                given = tl.load(gradient + q * H + h).to(tl.float32)[None, :]
                middle = tl.load(centre + q * K + k)[None, :]
                logs = tl.load(log_total + q * K + k)[None, :]
            share = tl.where(valid, tl.exp(product(g, u_turned, PRECISION) - logs), 0.0)  # (block, k)
            to_share = product((g.to(tl.float32) * given).to(a.dtype), owners_turned, PRECISION)
            to_logit = (share * (to_share - middle)).to(a.dtype)
            to_g = product(share.to(a.dtype), owners, PRECISION) * given + product(to_logit, u, PRECISION)
            if ROWS:
                to_u += product(tl.trans(to_logit), g, PRECISION)
            if DEEP:
                to_z = to_g * slope_of_gelu(z)
                if ROWS:
                    slopes += to_z
                narrow = to_z.to(a.dtype)
                if ROWS:
                    products += product(tl.trans(narrow), x, PRECISION)
                to_g = product(narrow, w_plain, PRECISION)
            to_a += to_g * slope_of_gelu(a.to(tl.float32) + b.to(tl.float32)[None, :])
    tl.store(to_mine + (s * SPLITS + part) * count * H + places, to_a, mask=inside[:, None])
    if ROWS:
        block = (s * SPLITS + part) * tl.num_programs(0) + tl.program_id(0)
        tl.store(to_logits + block * K * H + k[:, None] * H + h[None, :], to_u)
        if DEEP:
            tl.store(to_weight + block * H * H + h[:, None] * H + h[None, :], products)
            tl.store(to_bias + block * H + h, tl.sum(slopes, 0))
