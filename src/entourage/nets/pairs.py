"""The one engine that evaluates a net on all pairs of a set and averages over the partners.

The first layer is taken apart (``W [x, y] = W_x x + W_y y``), so its products are linear in the size of
the set; only sums, activations and the later layers are quadratic. Pairs are worked off in tiles: the
states of a tile stay in the cache and memory is bounded by the tile, not by the number of pairs. With
gradients, a tile's states are not kept but computed again on the way back.

On a GPU, large sets go through one kernel where there is one for the net (:mod:`entourage.nets.pairs_triton`).
"""

import functools
import importlib.util
from types import ModuleType

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from entourage.data.shapes import Mask, Objects, Scores
from entourage.nets.layers import MLP

__all__ = ["fits_at_once", "has_triton", "mean_over_others"]

TILE_NUMBERS = {"cpu": 2**19, "cuda": 2**26}  # hidden numbers of a tile where no gradient is needed
GRADIENT_NUMBERS = 2**26  # of all pairs together, above which training computes tiles twice to save memory
FUSED_FROM = 64  # objects in a set; smaller ones leave the kernel's blocks half empty
FUSED_ON = {"cuda"}


def mean_over_others(utility: MLP, objects: Objects, mask: Mask | None = None, *, squash: bool) -> Scores:
    """Average ``utility([x_i, x_j])`` over the others ``j != i`` of each object; 0 where there are none.

    Parameters
    ----------
    utility : a net of two parts, the object and its partner, with one output
    objects : (n, m, d)
    mask : (n, m), False in the padding
    squash : whether the utility of a pair goes through a sigmoid, into [0, 1]
    """
    n, m, _ = objects.shape
    left, right = utility.first(objects, objects)  # (n, m, h) each
    kernel = _kernel(utility, left, squash)
    if kernel is not None:
        means: Tensor = kernel.mean_over_others(utility, left, right, mask)
        return means
    others = max(m - 1, 1) if mask is None else (mask.sum(1, keepdim=True) - 1).clamp(min=1)
    hidden = left.shape[-1]
    if torch.compiler.is_exporting():  # a number of tiles would fix the size of sets in the graph
        whole, limit = True, 0
    elif torch.is_grad_enabled():
        whole = fits_at_once(utility, n, m)
        limit = GRADIENT_NUMBERS // 8
    else:
        whole, limit = False, TILE_NUMBERS.get(left.device.type, TILE_NUMBERS["cpu"])
    if whole or (utility.training and utility.statistics_need_all):
        return _sum_of_tile(utility, squash, left, right, mask, mask, 0, 0) / others
    pairs = max(1, limit // hidden)
    sets, rows, columns = _tile_shape(n, m, pairs)
    # Sums go into one array: small results that outlive large temporaries would leave the heap in pieces.
    total = left.new_zeros(n, m)
    for a in range(0, n, sets):
        s = slice(a, a + sets)
        for i in range(0, m, rows):
            r = slice(i, i + rows)
            for j in range(0, m, columns):
                c = slice(j, j + columns)
                row_mask, column_mask = (None, None) if mask is None else (mask[s, r], mask[s, c])
                total[s, r] += _tile(utility, squash, left[s, r], right[s, c], row_mask, column_mask, i, j)
    return total / others


def _kernel(utility: MLP, left: Tensor, squash: bool) -> ModuleType | None:
    """Return the module of the kernel that does this work, if there is one."""
    if left.shape[1] < FUSED_FROM or left.device.type not in FUSED_ON or not has_triton():
        return None
    from entourage.nets import pairs_triton

    return pairs_triton if pairs_triton.serves(utility, left, squash=squash) else None


@functools.cache
def has_triton() -> bool:
    """Whether kernels can be compiled here."""
    return importlib.util.find_spec("triton") is not None


def fits_at_once(utility: MLP, n: int, m: int) -> bool:
    """Whether the pairs of n sets of m objects are kept for the way back, rather than computed again."""
    return n * m * m * len(utility.linears[0].weight) <= GRADIENT_NUMBERS  # type: ignore[arg-type]


def _tile_shape(n: int, m: int, pairs: int) -> tuple[int, int, int]:
    """How many sets, rows and columns of their pair matrices make a tile of about ``pairs`` pairs."""
    if m * m <= pairs:
        return max(1, pairs // (m * m)), m, m
    columns = min(m, pairs)
    return 1, max(1, pairs // columns), columns


def _tile(
    utility: MLP,
    squash: bool,
    left: Tensor,
    right: Tensor,
    row_mask: Tensor | None,
    column_mask: Tensor | None,
    i: int,
    j: int,
) -> Tensor:
    arguments = (utility, squash, left, right, row_mask, column_mask, i, j)
    if torch.is_grad_enabled():
        again: Tensor = checkpoint(_sum_of_tile, *arguments, use_reentrant=False, preserve_rng_state=False)
        return again
    return _sum_of_tile(*arguments)


def _sum_of_tile(
    utility: MLP,
    squash: bool,
    left: Tensor,  # (n, r, h): rows from i on
    right: Tensor,  # (n, c, h): columns from j on
    row_mask: Tensor | None,
    column_mask: Tensor | None,
    i: int,
    j: int,
) -> Tensor:
    rows = torch.arange(i, i + left.shape[1], device=left.device)
    columns = torch.arange(j, j + right.shape[1], device=left.device)
    counts = (rows[:, None] != columns)[None]  # (1, r, c): no object is its own partner
    if row_mask is not None and column_mask is not None:
        counts = counts & row_mask[:, :, None] & column_mask[:, None, :]  # (n, r, c)
    counts = counts.expand(left.shape[0], -1, -1)
    values = utility.after_first(left[:, :, None] + right[:, None], counts).squeeze(-1)  # (n, r, c)
    if squash:
        values = torch.sigmoid(values)
    return torch.where(counts, values, 0.0).sum(2)
