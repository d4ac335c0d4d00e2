"""What the Triton kernels over pairs of objects share: how they are started, and the steps of one pair.

A program holds a block of objects and goes through their partners, one at a time; programs share the partners between
them in parts. In bfloat16 the block of objects goes through a product with the identity first: it then lies in
registers as tensor cores want it, and no pair state has to pass through shared memory.
"""

# mypy: disable-error-code="no-untyped-def,untyped-decorator"

import os
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

__all__ = [
    "INTERPRETED",
    "activate",
    "first_layer",
    "grid_of",
    "into_registers",
    "options_for",
    "product",
    "slope_of_gelu",
]

BLOCK = 64  # objects a program holds
PROGRAMS = 1024  # enough to keep a GPU busy
MOST_SPLITS = 16
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"  # on a CPU, for the tests
WIDENED = tl.constexpr(
    INTERPRETED
)  # the interpreter can't multiply in bfloat16; in float32 they are the same


def grid_of(n: int, m: int) -> tuple[int, int]:
    """How many blocks a set has, and in how many parts partners are shared out."""
    blocks: int = triton.cdiv(m, BLOCK)
    wanted = max(1, PROGRAMS // (n * blocks))
    return blocks, min(MOST_SPLITS, triton.next_power_of_2(wanted))


def options_for(left: Tensor, *, gelu: bool) -> dict[str, Any]:
    """Return the settings of a kernel that read pairs in the precision of ``left``."""
    exact = torch.get_float32_matmul_precision() == "highest"
    narrow = left.dtype == torch.bfloat16
    return {
        "BLOCK": BLOCK,
        "GELU": gelu,
        "PRECISION": "tf32x3" if exact and not narrow else "tf32",
        "REGISTERS": narrow,
        "PACKED": narrow and not gelu and not INTERPRETED,
        "num_stages": 1,
    }


@triton.jit
def activate(x, GELU: tl.constexpr):
    """Return GELU, or ReLU."""
    if GELU:
        return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    return tl.maximum(x, 0.0)


@triton.jit
def slope_of_gelu(x):
    """Return the derivative of GELU."""
    return 0.5 * (1.0 + tl.erf(x * 0.7071067811865476)) + x * 0.3989422804014327 * tl.exp(-0.5 * x * x)


@triton.jit
def first_layer(a, b, GELU: tl.constexpr, PACKED: tl.constexpr):
    """Return the first layer of the pairs of a block of objects and one partner, in their precision."""
    if PACKED:  # relu(a * 1 + b), two at a time
        return tl.inline_asm_elementwise(
            "{ .reg .b32 one; mov.b32 one, 0x3f803f80; fma.rn.relu.bf16x2 $0, $1, one, $2; }",
            "=r,r,r",
            [a, b[None, :]],
            dtype=tl.bfloat16,
            is_pure=True,
            pack=2,
        )
    return activate(a.to(tl.float32) + b.to(tl.float32)[None, :], GELU).to(a.dtype)


@triton.jit
def product(a, b, PRECISION: tl.constexpr):
    """Multiply matrices, summed in float32."""
    if WIDENED:
        a, b = a.to(tl.float32), b.to(tl.float32)
    return tl.dot(a, b, input_precision=PRECISION)


@triton.jit
def into_registers(a, H: tl.constexpr):
    """Return the same numbers, where tensor cores read them."""
    h = tl.arange(0, H)
    identity = tl.where(h[:, None] == h[None, :], 1.0, 0.0).to(a.dtype)
    return product(a, identity, "tf32").to(a.dtype)
