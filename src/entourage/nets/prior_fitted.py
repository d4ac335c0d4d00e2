"""The prior-fitted net: it reads labelled sets and scores new ones in one pass, without training on them.

An *object* is a token made of its columns, of what ridge logits think of it, and of what is known of the table. Columns
come in an order of their own, the strongest first, so each has a slot, and the order in which a user has them doesn't
matter. *Blocks* of attention within a set, attention to the labelled objects, and an MLP then do the inference. New
sets see labelled ones, never each other.
"""

from dataclasses import dataclass
from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

__all__ = ["EFFECTS", "SHARES", "TASK_KINDS", "Memory", "PriorFittedNet", "Seen", "Verdict", "label_views"]

TASK_KINDS = ("choice", "ranking", "subset")
EFFECTS = ("attraction", "compromise", "similarity")
SHARES = (
    0.0,
    0.02,
    0.05,
    0.1,
    0.15,
    0.2,
    0.3,
    0.4,
    0.55,
    0.75,
    1.0,
)  # borders of the bins of the context's share
VIEWS, LABEL_VIEWS, COLUMN_FACTS, TABLE_FACTS, BASES = 5, 4, 10, 17, 7  # widths of the inputs
SLOTS = 32  # the strongest columns, which an object knows by their place
FEW = 12  # objects of a set up to which attention within it is written as sums of products, on a GPU


class Seen(NamedTuple):
    """What the net sees of some sets.

    Parameters
    ----------
    cells : (W, n, m, d, 5)
    base : (W, n, m, 7)
    mask : (W, n, m) bool, or None
    """

    cells: Tensor
    base: Tensor
    mask: Tensor | None


class Verdict(NamedTuple):
    """Logits of the context's share, "none" and then the bins of `SHARES` (W, 11), and of the effects (W, 3)."""

    share: Tensor
    effects: Tensor


@dataclass(frozen=True)
class Memory:
    """The labelled sets as the net has read them.

    Parameters
    ----------
    facts : (W, width) what is known of the table and of its columns
    states : for each block, the labelled objects (W, objects, width), from which keys and values are made
    bias : (W, objects), the logarithm of how much an object counts, minus infinity for padding; None if all count 1
    gates : (W, 7) the weights of the ridge logits
    verdict : what is said of the context
    """

    facts: Tensor
    states: list[Tensor]
    bias: Tensor | None
    gates: Tensor
    verdict: Verdict

    def to(self, device: torch.device) -> "Memory":
        """Move all tensors."""
        return Memory(
            self.facts.to(device),
            [t.to(device) for t in self.states],
            None if self.bias is None else self.bias.to(device),
            self.gates.to(device),
            Verdict(*(t.to(device) for t in self.verdict)),
        )


def _cut(x: Tensor, axis: int, sizes: tuple[int, ...]) -> Tensor:
    """Make several axes of one."""
    made: Tensor = x.unflatten(axis, sizes)  # type: ignore[no-untyped-call]
    return made


def _at_least_float32(x: Tensor) -> Tensor:
    return x if x.dtype == torch.float64 else x.float()


def _split(x: Tensor, heads: int) -> Tensor:
    """(..., n, width) to (..., heads, n, width / heads)."""
    return _cut(x, -1, (heads, -1)).transpose(-2, -3)


def _join(x: Tensor) -> Tensor:
    return x.transpose(-2, -3).flatten(-2)


def _attend(q: Tensor, k: Tensor, v: Tensor, heads: int, bias: Tensor | None = None) -> Tensor:
    """Attention of (..., n, width) to (..., k, width); leading axes are merged for the kernels."""
    lead = q.shape[:-2]
    q, k, v = (_split(t.flatten(0, -3), heads) for t in (q, k, v))
    if bias is not None:
        bias = bias.to(q.dtype).flatten(0, len(lead) - 1)
    return _cut(_join(F.scaled_dot_product_attention(q, k, v, attn_mask=bias)), 0, lead)


def _attend_few(q: Tensor, k: Tensor, v: Tensor, heads: int, mask: Tensor | None) -> Tensor:
    """Do the same among few objects, as sums of products: on a GPU, kernels of attention are made for many."""
    q, k, v = (_cut(t, -1, (heads, -1)) for t in (q, k, v))
    logits = (q.unsqueeze(-3) * k.unsqueeze(-4)).sum(-1)
    logits = _at_least_float32(logits) * q.shape[-1] ** -0.5
    if mask is not None:
        logits = logits.masked_fill(~mask[..., None, :, None], -1e9)
    share = logits.softmax(-2).to(v.dtype)
    found: Tensor = (share.unsqueeze(-1) * v.unsqueeze(-4)).sum(-3).flatten(-2)
    return found


class _Norm(nn.LayerNorm):
    """Layer norm in the precision of what comes in; its sums are in float32 in any case."""

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast(x.device.type, enabled=False):
            return F.layer_norm(
                x, self.normalized_shape, self.weight.to(x.dtype), self.bias.to(x.dtype), self.eps
            )


def _mlp(width: int, ratio: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, ratio * width), nn.GELU(), nn.Linear(ratio * width, width))


def _start_at_0(*layers: nn.Module) -> None:
    for layer in layers:
        for weight in layer.parameters():
            nn.init.zeros_(weight)


class _Block(nn.Module):
    """Attention within a set, attention to the labelled objects, and an MLP."""

    def __init__(self, width: int, heads: int, ratio: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(_Norm(width) for _ in range(3))
        self.within, self.within_out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.ask, self.answer = nn.Linear(width, width), nn.Linear(width, 2 * width)
        self.ask_out = nn.Linear(width, width)
        self.sharpness = nn.Parameter(torch.zeros(heads))  # how the attention narrows as objects abound
        self.mlp = _mlp(width, ratio)
        _start_at_0(self.within_out, self.ask_out, self.mlp[2])

    def inside(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Let the objects of a set (W, n, m, width) look at each other."""
        q, k, v = self.within(self.norms[0](x)).chunk(3, -1)
        if x.is_cuda and x.shape[2] <= FEW:
            few: Tensor = x + self.within_out(_attend_few(q, k, v, self.heads, mask))
            return few
        bias = None
        if mask is not None:
            bias = torch.zeros_like(mask, dtype=q.dtype).masked_fill(~mask, -1e9)[:, :, None, None, :]
            bias = bias.expand(-1, -1, self.heads, x.shape[2], -1)
        many: Tensor = x + self.within_out(_attend(q, k, v, self.heads, bias))
        return many

    def labelled(
        self, x: Tensor, normed: Tensor, state: Tensor, bias: Tensor | None, count: Tensor
    ) -> Tensor:
        """Let objects (W, n, m, width) look at the labelled ones (W, objects, width)."""
        q = self.ask(normed).flatten(1, 2)
        k, v = self.answer(state).chunk(2, -1)
        narrow = 1 + self.sharpness * (count.log() - 5).unsqueeze(-1)  # (W, heads)
        narrow = narrow.to(q.dtype).repeat_interleave(q.shape[-1] // self.heads, -1).unsqueeze(1)
        if bias is not None:
            bias = bias[:, None, None, :].expand(-1, self.heads, q.shape[1], -1)
        x = x + _cut(self.ask_out(_attend(q * narrow, k, v, self.heads, bias)), 1, x.shape[1:3])
        seen: Tensor = x + self.mlp(self.norms[2](x))
        return seen


class PriorFittedNet(nn.Module):
    """A net that has learnt how to learn from labelled sets.

    Parameters
    ----------
    width : of an object
    blocks : how many
    heads : of attention
    """

    def __init__(self, width: int = 256, blocks: int = 6, heads: int = 8) -> None:
        super().__init__()
        self.settings = {"width": width, "blocks": blocks, "heads": heads}
        self.heads = heads
        self.slots = nn.Linear(SLOTS * VIEWS, width)
        self.label = nn.Linear(LABEL_VIEWS, width)
        self.task = nn.Embedding(len(TASK_KINDS), width)
        self.base = nn.Linear(2 * BASES, width)
        self.set_size = nn.Linear(1, width)
        self.facts = nn.Sequential(
            nn.Linear(TABLE_FACTS + SLOTS * COLUMN_FACTS, width), nn.GELU(), nn.Linear(width, width)
        )
        self.blocks = nn.ModuleList(_Block(width, heads, 4) for _ in range(blocks))
        self.norm = _Norm(width)
        self.head = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, len(TASK_KINDS)))
        self.pool_objects = nn.Linear(width, 4)
        self.summary = nn.Sequential(nn.Linear(5 * width, width), nn.GELU())
        self.gates = nn.Linear(width, BASES + 1)
        self.verdict = nn.Linear(width, len(SHARES) + len(EFFECTS))
        _start_at_0(self.head[2], self.gates)

    def read(
        self,
        seen: Seen,
        labels: Tensor,
        columns: Tensor,
        table: Tensor,
        task: int,
        log_weights: Tensor | None = None,
    ) -> tuple[Memory, Tensor]:
        """Read labelled sets, and score the sets behind them.

        Parameters
        ----------
        seen : what is seen of all sets, the labelled ones first
        labels : (W, labelled sets, m, 4); see `label_views`
        columns : (W, d, 10), table : (W, 17); what is known of them
        task : a place in `TASK_KINDS`
        log_weights : (W, labelled sets), where they don't count the same

        Returns
        -------
        What is remembered of the labelled sets, and the utilities of the others (W, n, m).
        """
        n = labels.shape[1]
        bias = self._bias(seen, n, log_weights)
        facts = self.facts(torch.cat([table, _in_slots(columns).flatten(1)], -1)) + self.task.weight[task]
        x = self._objects(facts, seen)
        x = torch.cat([x[:, :n] + self.label(labels), x[:, n:]], 1)
        count = _count(x[:, :n].flatten(1, 2), bias)
        states = []
        for block in self._blocks():
            x = block.inside(x, seen.mask)
            normed = block.norms[1](x)
            states.append(normed[:, :n].flatten(1, 2))
            x = block.labelled(x, normed, states[-1], bias, count)
        x = self.norm(x)
        gates, verdict = self._conclude(x[:, :n].flatten(1, 2), bias, facts)
        memory = Memory(facts, states, bias, gates, verdict)
        return memory, self._utilities(x[:, n:], seen.base[:, n:], gates, task)

    def score(self, memory: Memory, seen: Seen, task: int) -> Tensor:
        """Return the utilities (W, n, m) of the objects of new sets."""
        x = self._objects(memory.facts, seen)
        count = _count(memory.states[0], memory.bias)
        for block, state in zip(self._blocks(), memory.states, strict=True):
            x = block.inside(x, seen.mask)
            x = block.labelled(x, block.norms[1](x), state, memory.bias, count)
        return self._utilities(self.norm(x), seen.base, memory.gates, task)

    def _blocks(self) -> list[_Block]:
        return cast(list[_Block], list(self.blocks))

    @staticmethod
    def _bias(seen: Seen, n: int, log_weights: Tensor | None) -> Tensor | None:
        """Return what is added to the attention to each labelled object (W, objects)."""
        if seen.mask is None and log_weights is None:
            return None
        bias = seen.base.new_zeros((seen.base.shape[0], n, seen.base.shape[2]))
        if log_weights is not None:
            bias = bias + log_weights.unsqueeze(-1)
        if seen.mask is not None:
            bias = bias.masked_fill(~seen.mask[:, :n], -1e9)
        return bias.flatten(1)

    def _objects(self, facts: Tensor, seen: Seen) -> Tensor:
        """Return the first states of the objects (W, n, m, width)."""
        base = seen.base.clamp(-30, 30)
        objects: Tensor = self.slots(_in_slots(seen.cells).flatten(-2))
        objects = objects + self.base(torch.cat([base.clamp(-4, 4), base / 4], -1))
        if seen.mask is None:
            sizes = seen.base.new_full((1, 1, 1, 1), float(seen.base.shape[2]))
        else:
            sizes = seen.mask.sum(2, keepdim=True).unsqueeze(-1).to(seen.base.dtype)
        shared: Tensor = self.set_size(sizes.clamp_min(1).log()) + facts[:, None, None]
        return _at_least_float32(objects) + shared  # in bfloat16, what a block adds would be rounded away

    def _conclude(self, x: Tensor, bias: Tensor | None, facts: Tensor) -> tuple[Tensor, Verdict]:
        """Return the weights of the ridge logits and the verdict, from the labelled objects (W, objects, width)."""
        weight = _at_least_float32(self.pool_objects(x))
        if bias is not None:
            weight = weight + bias.unsqueeze(-1)
        pooled = (weight.softmax(1).transpose(1, 2).to(x.dtype) @ x).flatten(1)
        summary = self.summary(torch.cat([pooled, facts.to(pooled.dtype)], -1))
        gates = _at_least_float32(self.gates(summary))
        verdict = _at_least_float32(self.verdict(summary))
        gates = gates[:, :-1].softmax(-1) * gates[:, -1:].clamp(-4, 4).exp()
        return gates, Verdict(verdict[:, : len(SHARES)], verdict[:, len(SHARES) :])

    def _utilities(self, x: Tensor, base: Tensor, gates: Tensor, task: int) -> Tensor:
        own = _at_least_float32(self.head(x)[..., task])
        return own + (_at_least_float32(base) * gates[:, None, None]).sum(-1)


def _in_slots(columns: Tensor) -> Tensor:
    """Keep the strongest columns (..., d, any), and fill up with 0."""
    kept = columns[..., :SLOTS, :]
    return F.pad(kept, (0, 0, 0, SLOTS - kept.shape[-2]))


def _count(labelled: Tensor, bias: Tensor | None) -> Tensor:
    """Return how many labelled objects there are (W,), at least 2."""
    if bias is not None:
        return _at_least_float32(bias).exp().sum(1).clamp_min(2)
    return torch.full((len(labelled),), max(float(labelled.shape[1]), 2.0), device=labelled.device)


def label_views(ranks: Tensor, mask: Tensor | None, subset: bool = False) -> Tensor:
    """Return what the net sees of labels, (W, n, m, 4): place from 1 (best) to -1, its square, top, not ranked.

    Of a subset (rank 0 is chosen, rank 1 is not), all objects have place 1 where all are chosen, and -1 where none is.
    """
    known = ~ranks.isnan()
    if mask is not None:
        known = known & mask
    clean = torch.where(known, ranks, torch.inf)
    ahead = ((clean.unsqueeze(-1) > clean.unsqueeze(-2)) & known.unsqueeze(-2)).sum(-1)
    level = ((clean.unsqueeze(-1) == clean.unsqueeze(-2)) & known.unsqueeze(-2)).sum(-1)
    most = (known.sum(-1, keepdim=True) - 1).clamp_min(1)
    place = 1 - (2 * ahead + level - 1).to(ranks.dtype) / most
    top = (ahead == 0) & known
    if subset:
        alike = level == known.sum(-1, keepdim=True)
        place = torch.where(alike, 1 - 2 * (ranks > 0).to(ranks.dtype), place)
        top = known & (ranks == 0)
    views = torch.stack([place * known, (place**2) * known, top, ~known], -1)
    return views.to(ranks.dtype)
