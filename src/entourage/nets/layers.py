"""Layers of the nets: dense layers whose first one can be split, and normalisation that ignores padding."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from entourage.errors import check_choice, check_number

__all__ = [
    "ACTIVATIONS",
    "MLP",
    "NORMS",
    "Dropout",
    "MaskedBatchNorm",
    "gelu",
    "is_one_tile",
    "layer_norm",
    "linear",
    "linear_map",
    "object_tiles",
    "present",
    "runs_of",
    "score_in_tiles",
    "sum_of_objects",
]

_linear, _layer_norm, _gelu = F.linear, torch.layer_norm, F.gelu  # looked up once, as are these:
_is_grad_enabled, _is_compiling = torch.is_grad_enabled, torch.compiler.is_compiling
TILE_OBJECTS = {  # scored at a time when no gradient is needed: fits a core's cache, bounds memory
    "cpu": 2**14,
    "cuda": 2**18,
}


def linear(layer: nn.Module, inputs: Tensor) -> Tensor:
    """Apply an `nn.Linear` to ``(..., n_in)`` without the cost of calling a module, most of it for few objects.

    Its weights are looked up at each call, so they are those that the module has then.
    """
    own = layer._parameters
    return F.linear(inputs, own["weight"], own["bias"])  # type: ignore[arg-type]


def layer_norm(layer: nn.Module, inputs: Tensor) -> Tensor:
    """Apply an `nn.LayerNorm`, or an `nn.Identity`, without the cost of calling a module; see `linear`."""
    if not isinstance(layer, nn.LayerNorm):
        return inputs
    own = layer._parameters
    return torch.layer_norm(inputs, layer.normalized_shape, own["weight"], own["bias"], layer.eps)


def _mapped(inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Apply a linear map; to ``(r, m, k)`` also one map a set, of ``weight (r, h, k)`` and ``bias (r, 1, h)``."""
    if weight.dim() == 2:
        return _linear(inputs, weight, bias)
    return torch.bmm(inputs, weight.mT) if bias is None else torch.baddbmm(bias, inputs, weight.mT)


def _normalised(norm: nn.LayerNorm, inputs: Tensor) -> Tensor:
    """Apply a layer norm; to ``(r, m, h)`` also one with weights ``(r, 1, h)``."""
    own = norm._parameters
    weight, bias = own["weight"], own["bias"]
    if weight is None or bias is None or weight.dim() == 1:
        return _layer_norm(inputs, norm.normalized_shape, weight, bias, norm.eps)
    return torch.addcmul(bias, _layer_norm(inputs, norm.normalized_shape, None, None, norm.eps), weight)


class MaskedBatchNorm(nn.Module):
    """Batch normalisation that ignores padding.

    In training, mean and variance come from the present entries of the batch and are tracked by an exponential
    average, which is used in evaluation. Where several processes share a batch, ``total`` adds up over them.
    """

    total: Callable[[Tensor], Tensor] | None = None

    def __init__(self, width: int, *, momentum: float = 0.1, eps: float = 1e-5) -> None:
        super().__init__()
        self.momentum, self.eps = momentum, eps
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.mean: Tensor
        self.variance: Tensor
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("variance", torch.ones(width))

    def forward(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        """Normalise ``inputs (..., h)``; ``mask (...)`` is False in the padding."""
        if not self.training:
            scale = self.weight * torch.rsqrt(self.variance + self.eps)
            return torch.addcmul(self.bias - self.mean * scale, inputs, scale)
        axes = tuple(range(inputs.ndim - 1))
        if self.total is not None:
            there = (
                inputs.new_ones(*inputs.shape[:-1], 1)
                if mask is None
                else mask.unsqueeze(-1).to(inputs.dtype)
            )
            seen = self.total(there.sum()).clamp(min=1)
            mean = self.total((inputs * there).sum(axes)) / seen
            centred = inputs - mean
            variance = self.total((centred.square() * there).sum(axes)) / seen
            bessel: float | Tensor = seen / (seen - 1).clamp(min=1)
        elif mask is None:
            count: float | Tensor = inputs.numel() / inputs.shape[-1]
            mean = inputs.mean(axes)
            centred = inputs - mean
            variance = centred.square().mean(axes)
            bessel = count / max(count - 1, 1)
        else:
            there = mask.unsqueeze(-1).to(inputs.dtype)
            count = there.sum().clamp(min=1)
            mean = (inputs * there).sum(axes) / count
            centred = inputs - mean
            variance = (centred.square() * there).sum(axes) / count
            bessel = count / (count - 1).clamp(min=1)
        with torch.no_grad():
            unbiased = variance * bessel
            keep = (
                1 - self.momentum
            )  # in place: stacked nets (entourage.training.stacked) follow theirs so as well
            self.mean.mul_(keep).add_(mean.to(self.mean.dtype), alpha=self.momentum)
            self.variance.mul_(keep).add_(unbiased.to(self.variance.dtype), alpha=self.momentum)
        return centred * (self.weight * torch.rsqrt(variance + self.eps)) + self.bias


def gelu(inputs: Tensor) -> Tensor:
    """Return GELU of ``(..., m, h)``; for scoring on a CPU, where oneDNN's kernel takes longer to start than to run.

    PyTorch takes that kernel for contiguous tensors only, so this asks for the transposed one, by its own kernel.
    """
    return _gelu_for(inputs)(inputs)


def _gelu_for(inputs: Tensor) -> Callable[[Tensor], Tensor]:
    if _is_grad_enabled() or inputs.is_cuda or _is_compiling():
        return _gelu
    return _gelu_of_transposed


def _gelu_of_transposed(inputs: Tensor) -> Tensor:
    return _gelu(inputs.mT).mT


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "selu": F.selu, "gelu": gelu}
_IN_PLACE: dict[str, Callable[[Tensor], Tensor]] = {"relu": torch.relu_, "selu": torch.selu_}
NORMS: dict[str, Callable[[int], nn.Module] | None] = {
    "none": None,
    "batch": MaskedBatchNorm,
    "layer": nn.LayerNorm,
}


class MLP(nn.Module):
    """Hidden layers (linear, norm, activation), then a linear output; ``depth=0`` is one linear map.

    The first linear map can be taken apart: its input is the concatenation of several parts, and
    ``W [a, b] = W_a a + W_b b``. Each product is taken once for each ``a`` and each ``b``, and only
    their sum is formed for each pair, so that the first layer of a pair net costs as much as that of
    an object net (see :mod:`entourage.nets.pairs`).

    Of inputs ``(r, m, k)`` each of the r may have weights of its own: matrices have an axis of r in front, vectors are
    ``(r, 1, h)``. So the members of an ensemble score one set (:class:`entourage.nets.ensemble.Stack`).

    Parameters
    ----------
    n_inputs : the number of input features, or those of each part
    n_outputs, depth, width : sizes
    activation : "relu", "selu" or "gelu"
    norm : "none", "batch" or "layer", before each activation
    generator : draws the initial weights
    """

    def __init__(
        self,
        n_inputs: int | tuple[int, ...],
        n_outputs: int,
        *,
        depth: int,
        width: int,
        activation: str,
        norm: str,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        check_number("depth", depth, least=0, whole=True)
        check_number("width", width, least=1, whole=True)
        self.parts = (n_inputs,) if isinstance(n_inputs, int) else n_inputs
        self.activation = check_choice("activation", activation, ACTIVATIONS)
        make_norm = NORMS[check_choice("norm", norm, NORMS)]
        sizes = [sum(self.parts), *[width] * depth, n_outputs]
        self.linears = nn.ModuleList(
            linear_map(n_in, n_out, generator, gain=1.0 if activation == "selu" else 2.0)
            for n_in, n_out in itertools.pairwise(sizes)
        )
        self.norms = nn.ModuleList(make_norm(width) for _ in range(depth)) if make_norm else None
        self.statistics_need_all = norm == "batch" and depth > 0

    def forward(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        """Map ``inputs (..., n_inputs)`` to ``(..., n_outputs)``."""
        own = self._first()
        return self.after_first(_mapped(inputs, own["weight"], own["bias"]), mask)

    def _first(self) -> dict[str, Any]:
        """Return weight and bias of the first linear map."""
        return self._modules["linears"]._modules["0"]._parameters  # type: ignore[union-attr]

    def first(self, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
        """Return both summands of the first linear map of two parts; the bias is in the first."""
        own = self._first()
        weight: Tensor = own["weight"]
        kind = "cuda" if weight.is_cuda else "cpu"  # .device.type is slow
        if torch.is_autocast_enabled(kind) and weight.dtype == torch.float32:
            dtype = torch.get_autocast_dtype(kind)
            weight, narrow = weight.to(dtype), left.to(dtype)  # once, not for every part
            left, right = narrow, narrow if right is left else right.to(dtype)
        if torch.compiler.is_exporting():  # slices of a constant are constants of a graph
            at = self.parts[0]
            of_left, of_right = weight[:, :at], weight[:, at:]
        else:
            of_left, of_right = weight.split_with_sizes(self.parts, -1)
        return _mapped(left, of_left, own["bias"]), _mapped(right, of_right, None)

    def after_first(self, hidden: Tensor, mask: Tensor | None = None) -> Tensor:
        """Continue from the output of the first linear map, which is overwritten where no gradient is needed."""
        if self.activation == "gelu":
            activate = _gelu_for(hidden)  # asked for once
        else:
            activate = (ACTIVATIONS if _is_grad_enabled() else _IN_PLACE)[self.activation]
        modules: dict[str, Any] = (
            self._modules
        )  # straight from here: attributes of modules are slow to look up
        layers = iter(modules["linears"]._modules.values())
        next(layers)
        norms = iter(modules["norms"]._modules.values() if "norms" in modules else ())
        for layer in layers:
            norm = next(norms, None)
            if norm is not None:
                hidden = (
                    norm(hidden, mask) if isinstance(norm, MaskedBatchNorm) else _normalised(norm, hidden)
                )
            own = layer._parameters
            hidden = _mapped(activate(hidden), own["weight"], own["bias"])
        return hidden


def linear_map(
    n_in: int, n_out: int, generator: torch.Generator, *, gain: float = 1.0, bias: bool = True
) -> nn.Linear:
    """Return a linear map with weights from our own generator: a gain of 1 keeps variances, 2 is He's before ReLU."""
    linear: nn.Linear = nn.utils.skip_init(nn.Linear, n_in, n_out, bias=bias)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        linear.weight.normal_(0.0, (gain / n_in) ** 0.5, generator=generator)
        if bias:
            linear.bias.zero_()
    return linear


class Dropout(nn.Module):
    """Dropout that draws from a given generator; without one, it does nothing.

    See `entourage.nets.Scorer.draw_from`.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        check_number("dropout", share, least=0, below=1)
        self.share = share
        self.generator: torch.Generator | None = None
        self.part: tuple[int, slice] | None = None  # of how many sets, and which come

    def forward(self, inputs: Tensor) -> Tensor:
        """Set entries to 0 and scale the others up; in evaluation return the input."""
        if not self.training or self.share == 0 or self.generator is None:
            return inputs
        shape, share = inputs.shape, slice(None)
        if self.part is not None:
            shape, share = torch.Size([self.part[0], *shape[1:]]), self.part[1]
        dropped = min(round(self.share * 2**16), 2**16 - 1)
        kept = _drawn(shape, self.generator, inputs.device)[share] >= dropped - 2**15
        return inputs * kept.to(inputs.dtype).mul_(1 / (1 - dropped / 2**16))


def _drawn(shape: torch.Size, generator: torch.Generator, device: torch.device) -> Tensor:
    """Draw numbers from -2^15 up to 2^15. On a CPU four are cut from one, which takes half the time."""
    if device.type != "cpu":
        return torch.rand(shape, generator=generator, device=device) * 2**16 - 2**15
    count = shape.numel()
    drawn = torch.randint(-(2**63), 2**63 - 1, (-(-count // 4),), generator=generator)  # 64 bits each
    return drawn.view(torch.int16)[:count].view(shape)


def sum_of_objects(values: Tensor) -> Tensor:
    """Return the sum over the objects of ``(n, m, k)``: (n, 1, k).

    In a graph in double precision: onnxruntime adds one number after the other, which loses two digits over 1,000
    objects; torch adds in a tree.
    """
    if torch.compiler.is_exporting():
        return values.double().sum(1, keepdim=True).to(values.dtype)
    return values.sum(1, keepdim=True)


def is_one_tile(objects: Tensor) -> bool:
    """Whether all objects ``(n, m, d)`` are scored at once; see `object_tiles`.

    So they are while a net is exported: the number of tiles would fix the size of sets in the graph.
    """
    if torch.is_grad_enabled() or torch.compiler.is_exporting():
        return True
    n, m, _ = objects.shape
    return m == 1 or n * m <= TILE_OBJECTS["cuda" if objects.is_cuda else "cpu"]


def object_tiles(objects: Tensor, mask: Tensor | None) -> Iterator[tuple[slice, Tensor, Tensor | None]]:
    """Cut the object axis so that scoring needs bounded memory; one piece where gradients are needed.

    One piece as well while a net is exported: the number of tiles would fix the size of sets in the graph.
    """
    if torch.compiler.is_exporting():
        yield slice(None), objects, mask
        return
    n, m, _ = objects.shape
    most = TILE_OBJECTS["cuda" if objects.is_cuda else "cpu"]
    step = m if torch.is_grad_enabled() else max(1, most // n)
    for start in range(0, m, step):
        tile = slice(start, start + step)
        yield tile, objects[:, tile], None if mask is None else mask[:, tile]


def score_in_tiles(
    utility: Callable[[Tensor, Tensor | None], Tensor], objects: Tensor, mask: Tensor | None
) -> Tensor:
    """Apply ``utility``, ``(n, t, d)`` to ``(n, t, 1)``, to all objects, tile by tile: ``(n, m)``.

    Tiles are written into one array: many small results that outlive large temporaries would leave the heap
    in pieces, and memory would grow with the set after all.
    """
    if is_one_tile(objects):
        return utility(objects, mask).squeeze(-1)
    scores = objects.new_empty(objects.shape[:2])
    for tile, some, there in object_tiles(objects, mask):
        scores[:, tile] = utility(some, there).squeeze(-1)
    return scores


def runs_of(places: Sequence[int]) -> list[tuple[int, int]]:
    """Return where stretches of consecutive places begin and end: slices are quicker than an index.

    Examples
    --------
    >>> runs_of([0, 1, 2, 5])
    [(0, 3), (5, 6)]
    """
    starts = [i for i, place in enumerate(places) if i == 0 or places[i - 1] != place - 1]
    return [(places[a], places[b - 1] + 1) for a, b in itertools.pairwise([*starts, len(places)])]


def present(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Set the scores of the padding to 0."""
    return scores if mask is None else torch.where(mask, scores, 0.0)
