"""A blend as a graph: models of one architecture share a function of ONNX, which gets the weights of each.

torch takes seconds to trace a model, and a blend has dozens, but of few architectures. Each of these is traced once,
and becomes a function whose inputs are what is seen of sets, and all weights. The graph calls it once a model.
Runtimes put the function in place of each call when they read the file.
"""

from collections.abc import Hashable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from entourage.serving.onnx.baselines import TreesOfFeatures
from entourage.serving.onnx.blends import BlendScores
from entourage.serving.onnx.graph import ModelGraph
from entourage.serving.onnx.scorer import FeatureScorer
from entourage.serving.onnx.trace import inputs_of, strip, traced

__all__ = ["architecture", "exported_blend"]

DOMAIN = "entourage"
SCORES = "scores_of_model_{}"
#: What models see: features with codes of levels, without, and those of the situation.
SEEN = ("seen_with_codes", "seen_without_codes", "seen_of_situation")
_OF_TORCH = frozenset(vars(nn.Module()))  # what every module has, beside what was put there


class _Alone(nn.Module):
    """A model of a blend, as a module that may be called without a situation."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, objects: Tensor, mask: Tensor, situation: Tensor | None = None) -> Tensor:
        """Score objects."""
        scores: Tensor = self.model(objects, mask, situation)
        return scores


class _Rest(nn.Module):
    """A graph without the models of its blend: their scores come in, and what they see goes out, behind the outputs."""

    def __init__(self, graph: ModelGraph, blend: BlendScores) -> None:
        super().__init__()
        self.whole, self.blend, self.count = graph, blend, 2 + (graph.widths[1] > 0)

    def forward(self, *given: Tensor) -> tuple[Tensor, ...]:
        """Return the outputs, and what models see."""
        inputs, scores = given[: self.count], given[self.count :]
        features, shared, right = self.whole.encoded(*inputs)
        mixed = self.blend.mixed(scores, inputs[1])
        seen = [features + 0.0, self.blend.without_codes(features) + 0.0]  # no output may be an input
        seen += [] if shared is None else [shared + 0.0]
        return *self.whole.outputs(mixed, inputs[1], right), *seen


def exported_blend(graph: ModelGraph, blend: BlendScores) -> Any:
    """Return the graph of a blend as ONNX has it."""
    trees = [module for module in blend.modules() if isinstance(module, TreesOfFeatures)]
    for own in trees:
        own.depth = max(one.depth for one in trees)  # who is at a leaf stays there
    main, widths = _traced_rest(graph, blend)
    functions: dict[Hashable, tuple[str, list[str]]] = {}
    stored: dict[Hashable, str] = {}
    calls = []
    for i, model in enumerate(blend.models):
        codes = blend.knows_codes[i]
        alone = _Alone(model).eval()
        key = codes, architecture(model)
        if key not in functions:
            inputs = inputs_of((widths[0] if codes else widths[1], widths[2]), None)
            function, weights = _function(alone, inputs, f"architecture_{len(functions)}")
            main.functions.append(function)
            functions[key] = function.name, weights
        name, weights = functions[key]
        tensors = _tensors(alone)
        seen = [SEEN[0] if codes else SEEN[1], "mask", *([SEEN[2]] if widths[2] else [])]
        given = [*seen, *(_stored(tensors[weight], main.graph, stored) for weight in weights)]
        calls.append((name, given, SCORES.format(i)))
    _insert(main.graph, calls)
    main.opset_import.add(domain=DOMAIN, version=1)
    return main


def architecture(module: nn.Module) -> Hashable:
    """Return all of a module that its graph depends on, but the values of its weights: equal ones have equal graphs.

    Examples
    --------
    >>> architecture(nn.Linear(2, 3)) == architecture(nn.Linear(2, 3))
    True
    >>> architecture(nn.Linear(2, 3)) == architecture(nn.Linear(2, 3, bias=False))
    False
    """
    parts: list[Hashable] = []
    for name, one in module.named_modules():
        left_out = _OF_TORCH | (one.drawn_by if isinstance(one, FeatureScorer) else frozenset())
        own = {key: value for key, value in vars(one).items() if key not in left_out}
        any_size: frozenset[str] = getattr(
            one, "any_size", frozenset()
        )  # weights whose sizes are not in the graph
        tensors = tuple(
            (key, value.dtype, None if key in any_size else tuple(value.shape))
            for key, value in [*one.named_parameters(recurse=False), *one.named_buffers(recurse=False)]
        )
        parts.append((name, type(one), one.training, _frozen(own), tensors))
    return tuple(parts)


def _frozen(value: Any) -> Hashable:
    """Return what is equal where values are; of what is not known, that is where they are the same object."""
    if value is None or isinstance(value, bool | int | float | str | bytes | type):
        return type(value), value
    if isinstance(value, dict):
        return dict, tuple((_frozen(key), _frozen(one)) for key, one in value.items())
    if isinstance(value, list | tuple):
        return type(value), tuple(map(_frozen, value))
    if isinstance(value, np.ndarray) and value.dtype != object:
        return np.ndarray, str(value.dtype), value.shape, value.tobytes()
    if isinstance(value, Tensor):  # a constant of the graph, unlike weights
        return Tensor, _frozen(value.detach().cpu().numpy())
    if isinstance(value, torch.device):
        return torch.device, str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return type(value), tuple(_frozen(getattr(value, one.name)) for one in fields(value))
    return type(value), id(value)


def _traced_rest(graph: ModelGraph, blend: BlendScores) -> tuple[Any, tuple[int, int, int]]:
    """Return the graph without its models, and how many numbers are seen of each kind."""
    inputs = inputs_of(graph.widths, None)
    with torch.no_grad():
        features, shared, _ = graph.encoded(*inputs.values())
    widths = (
        features.shape[-1],
        blend.without_codes(features).shape[-1],
        0 if shared is None else shared.shape[-1],
    )
    scores = {
        SCORES.format(i): torch.zeros(features.shape[:2], dtype=torch.float64)
        for i in range(len(blend.models))
    }
    seen = SEEN[: 2 + (shared is not None)]
    main = traced(_Rest(graph, blend).eval(), inputs | scores, [*graph.outcome.names, *seen], variadic=True)
    for values, left_out in ((main.graph.input, scores), (main.graph.output, seen)):
        kept = [value for value in values if value.name not in left_out]
        del values[:]
        values.extend(kept)
    return main, widths


def _function(alone: nn.Module, inputs: dict[str, Tensor], name: str) -> tuple[Any, list[str]]:
    """Return a model as a function, and the names of the weights that are its inputs behind those of sets."""
    import onnx
    from onnxscript.optimizer import optimize

    proto = traced(alone, inputs, ["scores"], optimise=False)
    known = _tensors(alone)
    weights = [one for one in proto.graph.initializer if one.name in known]
    for (
        one
    ) in weights:  # inputs of which nothing but the type is known: no value, no size gets into the graph
        proto.graph.input.append(onnx.helper.make_tensor_value_info(one.name, one.data_type, None))
        proto.graph.initializer.remove(one)
    proto = optimize(proto)
    strip(proto.graph)
    constants = [
        onnx.helper.make_node("Constant", [], [one.name], value=one) for one in proto.graph.initializer
    ]
    names = [one.name for one in weights]
    function = onnx.helper.make_function(
        DOMAIN, name, [*inputs, *names], ["scores"], [*constants, *proto.graph.node], proto.opset_import
    )
    return function, names


def _tensors(module: nn.Module) -> dict[str, Tensor]:
    return dict(module.named_parameters()) | dict(module.named_buffers())


def _stored(tensor: Tensor, graph: Any, stored: dict[Hashable, str]) -> str:
    """Return the name of a tensor of the graph; those that are equal are one."""
    import onnx

    values = tensor.detach().cpu().contiguous().numpy()
    key = str(values.dtype), values.shape, values.tobytes()
    if key not in stored:
        stored[key] = f"weights_{len(stored)}"
        graph.initializer.append(onnx.numpy_helper.from_array(values, stored[key]))
    return stored[key]


def _insert(graph: Any, calls: Sequence[tuple[str, list[str], str]]) -> None:
    """Put calls of functions in front of all that needs their outputs."""
    import onnx

    early, late, made = [], [], {output for _, _, output in calls}
    for node in graph.node:
        if made.intersection(node.input):
            made.update(node.output)
            late.append(node)
        else:
            early.append(node)
    between = [
        onnx.helper.make_node(name, given, [output], output, domain=DOMAIN) for name, given, output in calls
    ]
    nodes = [*early, *between, *late]
    del graph.node[:]
    graph.node.extend(nodes)
