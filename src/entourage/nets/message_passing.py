"""Rounds of message passing: the states of the objects of a set are updated by messages from the others.

What the paper's nets do once (aggregate, or evaluate pairs), a round does to states, so that it can be repeated. A
round is residual, and normalised if asked to be: ``h <- h + message(norm(h))``, then ``h <- h + MLP(norm(h))``.
Rounds differ only by their message:

- `SetMessage`: the average of an embedding of all, beside the object's own state. Linear time; FATE's.
- `PairMessage`: a value of each pair, averaged over the others (FETA's) or weighted by attention whose
  logits and values see the pair. Quadratic time, memory bounded.
- `InducedMessage`: a few learnt points attend to all objects, and the objects to the points, both by attention
  over pairs. Linear time.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from entourage.data.shapes import Hidden, Mask, Objects, Scores
from entourage.errors import ParameterError, check_choice, check_number
from entourage.nets.base import Scorer
from entourage.nets.layers import MLP, Dropout, gelu, layer_norm, linear, linear_map, sum_of_objects
from entourage.nets.pairs import has_triton

__all__ = ["FEATURE_MAPS", "InducedMessage", "PairMessage", "RefinedScorer", "Round", "SetMessage", "refine"]

TILE_NUMBERS = {
    "cpu": 2**21,
    "cuda": 2**26,
}  # hidden numbers of the pairs of a tile where no gradient is needed
GRADIENT_NUMBERS = 2**28  # of all pairs together, above which training computes tiles twice to save memory
FUSED_FROM = 64  # partners, from which a kernel's blocks are filled
FUSED_ON = {"cuda"}
FUSED_ALWAYS = False  # not only to score in bfloat16, where it is five times as fast: benchmarks.attention
FREQUENCIES = 8  # of the periodic map, for each feature


class SetMessage(nn.Module):
    """A message from the whole set: pooled embeddings, joined to each object's own state; linear time.

    ``pooling="mean"`` averages; "spread" joins the mean, the standard deviation and the maximum.
    """

    def __init__(self, width: int, *, pooling: str, generator: torch.Generator) -> None:
        super().__init__()
        self.spread = check_choice("pooling", pooling, ["mean", "spread"]) == "spread"
        self.embedding = _two_layers(width, width, generator)
        self.own = linear_map(width, width, generator)
        self.pooled = linear_map(3 * width if self.spread else width, width, generator)
        self.out = linear_map(width, width, generator)

    def forward(self, states: Hidden, mask: Mask | None = None) -> Hidden:
        """Return a message ``(n, m, h)`` for each object."""
        context = linear(self.pooled, self._pool(self.embedding(states), mask))  # (n, 1, h)
        return linear(self.out, gelu(linear(self.own, states) + context))

    def _pool(self, embedded: Tensor, mask: Tensor | None) -> Tensor:
        if mask is not None:
            embedded = torch.where(mask.unsqueeze(-1), embedded, 0.0)
        mean = _mean_of_objects(embedded, mask)
        if not self.spread:
            return mean
        squares = (embedded - mean).square()
        variance = _mean_of_objects(squares, mask)
        if mask is None:
            largest = embedded.amax(1, keepdim=True)
        else:
            there = mask.unsqueeze(-1)
            lowest = torch.finfo(embedded.dtype).min
            largest = torch.where(there, embedded, lowest).amax(1, keepdim=True)
            largest = torch.where(there.any(1, keepdim=True), largest, 0.0)
        return torch.cat([mean, (variance + 1e-6).sqrt(), largest], dim=-1)


class PairMessage(nn.Module):
    """Messages from the other objects: pairs evaluated, then averaged (``heads=0``) or weighted by attention.

    A pair's hidden state ``gelu(A h_i + B h_j)``, through ``depth - 1`` layers more, gives both the attention's
    logits and its values. Each head learns how sharp it is, on a logarithmic scale that is exempt from weight decay
    (``sharpening`` times as fast as other weights; with 0 it isn't learnt): to find the one object that matters (a
    medoid, say), attention must come close to a maximum. Pairs are worked off in tiles of rows; with gradients, large
    tiles are computed again on the way back. There is one kernel for a GPU (:mod:`entourage.nets.attention_triton`).
    """

    def __init__(
        self, width: int, *, heads: int, depth: int = 1, sharpening: float = 0.0, generator: torch.Generator
    ) -> None:
        super().__init__()
        if heads:
            check_number("heads", heads, least=1, whole=True)
            if width % heads:
                raise ParameterError(f"heads must divide width; {heads} does not divide {width}.")
        self.heads, self.sharpening = heads, sharpening
        self.left = linear_map(width, width, generator)
        self.right = linear_map(width, width, generator, bias=False)
        self.more = nn.ModuleList(linear_map(width, width, generator, gain=2.0) for _ in range(depth - 1))
        self.logits = linear_map(width, heads, generator, gain=0.01, bias=False) if heads else None
        self.sharpness = nn.Parameter(torch.zeros(heads)) if heads else None
        self.out = linear_map(width, width, generator)

    def forward(self, states: Tensor, mask: Tensor | None = None, *, others: Tensor | None = None) -> Tensor:
        """Return a message ``(n, m, h)`` for each object, from the objects of its set or from ``others (n, o, h)``.

        ``mask (n, o)`` is False where there is none.
        """
        left, right = linear(self.left, states), linear(self.right, states if others is None else others)
        among_themselves = others is None
        n, m, h = left.shape
        kernel = self._kernel(left, right)
        if kernel is not None:
            return linear(self.out, kernel(left, right, mask))
        pairs = n * right.shape[1] * h  # hidden numbers of a row
        gradients = torch.is_grad_enabled()
        exporting = torch.compiler.is_exporting()  # a number of tiles would fix the size of sets in the graph
        if exporting or (gradients and self.fits_at_once(n, m, right.shape[1])):
            return linear(self.out, self._tile(left, right, mask, 0, among_themselves))
        tile = TILE_NUMBERS["cuda" if left.is_cuda else "cpu"]
        rows = max(1, (GRADIENT_NUMBERS // 8 if gradients else tile) // pairs)
        if not gradients and m <= rows:
            return linear(self.out, self._tile(left, right, mask, 0, among_themselves))
        tiles = []
        for i in range(0, m, rows):
            arguments = (left[:, i : i + rows], right, mask, i, among_themselves)
            if gradients:
                tiles.append(
                    checkpoint(self._tile, *arguments, use_reentrant=False, preserve_rng_state=False)
                )
            else:
                tiles.append(self._tile(*arguments))
        return linear(self.out, torch.cat(tiles, dim=1))

    def _kernel(
        self, left: Tensor, right: Tensor
    ) -> Callable[[Tensor, Tensor, Tensor | None], Tensor] | None:
        """Return what pools all pairs in one kernel, if there is one for them."""
        if left.device.type not in FUSED_ON or right.shape[1] < FUSED_FROM or not has_triton():
            return None
        if not FUSED_ALWAYS and (left.dtype != torch.bfloat16 or torch.is_grad_enabled()):
            return None
        from entourage.nets import attention_triton

        if self.logits is None or self.sharpness is None:
            return None
        if not attention_triton.serves(left, self.heads, 1 + len(self.more)):
            return None
        logits = self.logits.weight * (self.sharpening * self.sharpness).exp().unsqueeze(1)
        more = (self.more[0].weight, self.more[0].bias) if len(self.more) else None
        return lambda left, right, mask: attention_triton.attend(left, right, logits, mask, more)  # type: ignore[arg-type]

    def fits_at_once(self, n: int, m: int, o: int) -> bool:
        """Whether the pairs of m and o objects in n sets are kept for the way back, rather than computed again."""
        return n * m * o * self.left.out_features <= GRADIENT_NUMBERS

    def _tile(
        self, left: Tensor, right: Tensor, mask: Tensor | None, i: int, among_themselves: bool
    ) -> Tensor:
        """Pool the pairs of rows from ``i`` on: ``(n, r, h)``."""
        pair = gelu(left[:, :, None] + right[:, None])  # (n, r, o, h)
        for layer in self.more:
            pair = gelu(linear(layer, pair))
        n, r, o, h = pair.shape
        if self.logits is None or self.sharpness is None:
            return self._mean(pair, mask, i, among_themselves)
        sharpness = (self.sharpening * self.sharpness).exp()
        if mask is not None and torch.compiler.is_exporting():  # fewer steps over all pairs, but for rounding
            logits = F.linear(pair, self.logits.weight * sharpness.unsqueeze(1))
            lowest = torch.finfo(logits.dtype).min / 4
            weights = (logits + torch.where(mask, 0.0, lowest)[:, None, :, None]).softmax(2)
            pooled = (pair.view(n, r, o, self.heads, -1) * weights.unsqueeze(-1)).sum(2)
            return pooled.reshape(n, r, h)
        logits = linear(self.logits, pair) * sharpness  # (n, r, o, k)
        if mask is not None:
            there = mask[:, None, :, None]
            logits = torch.where(there, logits, torch.finfo(logits.dtype).min / 4)
        weights = logits.softmax(2)
        if mask is not None:
            weights = torch.where(there, weights, 0.0)
        pooled = (pair.view(n, r, o, self.heads, -1) * weights.unsqueeze(-1)).sum(2)
        return pooled.reshape(n, r, h)

    def _mean(self, pair: Tensor, mask: Tensor | None, i: int, among_themselves: bool) -> Tensor:
        _, r, o, _ = pair.shape
        counts = torch.ones(1, r, o, dtype=torch.bool, device=pair.device)
        if among_themselves:  # no object is its own partner
            rows = torch.arange(i, i + r, device=pair.device)
            counts = (rows[:, None] != torch.arange(o, device=pair.device))[None]
        if mask is not None:
            counts = counts & mask[:, None]
        weights = counts.to(pair.dtype) / counts.sum(2, keepdim=True).clamp(min=1)
        return (pair * weights.unsqueeze(-1)).sum(2)


class InducedMessage(nn.Module):
    """Attention by way of ``points`` learnt states: these attend to all objects, then each object to them."""

    def __init__(self, width: int, *, points: int, generator: torch.Generator, **pairs: Any) -> None:
        super().__init__()
        self.points = nn.Parameter(torch.randn(points, width, generator=generator))
        self.gather = PairMessage(width, generator=generator, **pairs)
        self.norm = nn.LayerNorm(width)
        self.spread = PairMessage(width, generator=generator, **pairs)

    def forward(self, states: Hidden, mask: Mask | None = None) -> Hidden:
        """Return a message ``(n, m, h)`` for each object."""
        points = self.points.expand(states.shape[0], -1, -1)  # (n, p, h)
        seen = self.norm(points + self.gather(points, mask, others=states))
        message: Tensor = self.spread(states, others=seen)
        return message


class Round(nn.Module):
    """One round: a message for each object, then a small net on each state; residual.

    With ``norm="layer"`` states are normalised before each of the two, with "none" they come as they are.
    """

    def __init__(
        self, message: nn.Module, width: int, *, norm: str, dropout: float, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.message = message
        check_choice("norm", norm, ["layer", "none"])
        self.before, self.between = (nn.LayerNorm(width) if norm == "layer" else nn.Identity() for _ in "ab")
        self.alone = _two_layers(width, width, generator)
        self.drop_message, self.drop_alone = Dropout(dropout), Dropout(dropout)

    def forward(self, states: Hidden, mask: Mask | None = None) -> Hidden:
        """Change the states ``(n, m, h)``."""
        message = self.message(layer_norm(self.before, states), mask)
        states = states + (self.drop_message(message) if self.training else message)
        change = self.alone.forward(layer_norm(self.between, states))
        return states + (self.drop_alone(change) if self.training else change)


class Periodic(nn.Module):
    """Features joined to sines and cosines of them at learnt frequencies, which help a net to learn sharp edges."""

    def __init__(self, n_features: int, width: int, generator: torch.Generator) -> None:
        super().__init__()
        self.frequencies = nn.Parameter(torch.randn(n_features, FREQUENCIES, generator=generator))
        self.out = linear_map(n_features * (1 + 2 * FREQUENCIES), width, generator)

    def forward(self, objects: Tensor) -> Tensor:
        """Map ``(n, m, d)`` to ``(n, m, h)``."""
        angles = (2 * math.pi * self.frequencies * objects.unsqueeze(-1)).flatten(-2)  # (n, m, d f)
        states: Tensor = self.out(torch.cat([objects, angles.sin(), angles.cos()], dim=-1))
        return states


class Centred(nn.Module):
    """Features joined to what is left of them when the mean of their set is taken off."""

    def __init__(self, n_features: int, width: int, generator: torch.Generator) -> None:
        super().__init__()
        self.out = linear_map(2 * n_features, width, generator)

    def forward(self, objects: Tensor, mask: Tensor | None = None) -> Tensor:
        """Map ``(n, m, d)`` to ``(n, m, h)``; ``mask (n, m)`` is False in the padding."""
        centred = objects - _mean_of_objects(objects, mask)
        return linear(self.out, torch.cat([objects, centred], dim=-1))


#: How features become the first state of an object, by name.
FEATURE_MAPS: dict[str, Callable[[int, int, torch.Generator], nn.Module]] = {
    "linear": lambda n_features, width, generator: linear_map(n_features, width, generator),
    "periodic": Periodic,
    "centred": Centred,
}


class RefinedScorer(Scorer):
    """States made from features, changed by rounds, then scored by a net for sets: the paper's, or one a state."""

    def __init__(self, features: nn.Module, rounds: list[Round], width: int, last: Scorer) -> None:
        super().__init__()
        self.features, self.rounds, self.last = features, nn.ModuleList(rounds), last
        self.norm = nn.LayerNorm(width)
        self.stackable = last.stackable

    def in_one_piece(self, n: int, m: int) -> bool:
        pairs = [module for module in self.rounds.modules() if isinstance(module, PairMessage)]
        return all(pair.fits_at_once(n, m, m) for pair in pairs) and self.last.in_one_piece(n, m)

    def forward(self, objects: Objects, mask: Mask | None = None) -> Scores:
        features: nn.Module = self.features
        if isinstance(features, nn.Linear):
            states = linear(features, objects)
        else:
            states = features(objects, mask) if isinstance(features, Centred) else features(objects)
        for one in self.rounds:
            states = one(states, mask)
        scores: Tensor = self.last(layer_norm(self.norm, states), mask)
        return scores


def refine(
    net: Any,
    message: Callable[[], nn.Module],
    last: Callable[[int, torch.Generator], Scorer],
    n_features: int,
    generator: torch.Generator,
) -> Scorer:
    """Build a net of ``net.rounds`` rounds: one is the paper's own, ``last``; earlier ones change states for it."""
    check_number("rounds", net.rounds, least=1, whole=True)
    check_number("dropout", net.dropout, least=0, below=1)
    start = FEATURE_MAPS[check_choice("features", net.features, FEATURE_MAPS)]
    if net.rounds == 1:
        for name, off in (("dropout", 0), ("features", "linear"), ("pooling", "mean")):
            if getattr(net, name, off) != off:
                raise ParameterError(
                    f"{name}={getattr(net, name)!r} applies to the rounds before the last, and there are none: give "
                    "rounds=2 or more."
                )
        return last(n_features, generator)
    check_number("width", net.width, least=1, whole=True)
    norm = "layer" if net.norm == "layer" else "none"  # batch statistics stay with the paper's network
    rounds = [
        Round(message(), net.width, norm=norm, dropout=net.dropout, generator=generator)
        for _ in range(net.rounds - 1)
    ]
    return RefinedScorer(
        start(n_features, net.width, generator), rounds, net.width, last(net.width, generator)
    )


def _mean_of_objects(values: Tensor, mask: Tensor | None) -> Tensor:
    """Return the mean of ``(n, m, k)`` over the objects that ``mask (n, m)`` has: (n, 1, k)."""
    if mask is None:
        return values.mean(1, keepdim=True)
    there = mask.unsqueeze(-1)
    return sum_of_objects(torch.where(there, values, 0.0)) / there.sum(1, keepdim=True).clamp(min=1)


def _two_layers(n_in: int, n_out: int, generator: torch.Generator) -> MLP:
    return MLP(n_in, n_out, depth=1, width=2 * n_out, activation="gelu", norm="none", generator=generator)
