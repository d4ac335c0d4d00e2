"""From a torch module to ONNX, by torch's own exporter."""

import contextlib
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from entourage.serving.onnx.refusal import ExportError

__all__ = ["AXES", "inputs_of", "strip", "traced"]

#: The names of the two axes that are symbolic.
AXES = ("sets", "objects")
NOISY = (
    "torch.onnx",
    "torch.export",
    "torch.fx",
    "torch._dynamo",
    "torch._functorch",
    "onnxscript",
    "onnx_ir",
)


def inputs_of(widths: tuple[int, int], largest: int | None) -> dict[str, Tensor]:
    """Return inputs to trace with: of objects, a mask and, where there are any, of the situation."""
    n, m = 2, 3 if largest is None else min(3, largest)
    inputs = {
        "objects": torch.zeros(n, m, widths[0], dtype=torch.float64),
        "mask": torch.ones(n, m, dtype=torch.bool),
    }
    if widths[1]:
        inputs["situation"] = torch.zeros(n, widths[1], dtype=torch.float64)
    return inputs


def traced(
    module: nn.Module,
    inputs: Mapping[str, Tensor],
    outputs: Sequence[str],
    *,
    optimise: bool = True,
    variadic: bool = False,
) -> Any:
    """Return a module as an ONNX model; all inputs have a symbolic axis of sets and, but for the situation, of objects.

    With ``variadic``, the module takes them as ``*given``.
    """
    dims = [torch.export.Dim(name) for name in AXES]
    shapes = tuple({axis: dims[axis] for axis in range(1 if name == "situation" else 2)} for name in inputs)
    try:
        with _quietly(), torch.no_grad():
            program = torch.onnx.export(
                module,
                (*inputs.values(),),
                input_names=list(inputs),
                output_names=list(outputs),
                dynamic_shapes=(shapes,) if variadic else shapes,
                dynamo=True,
                external_data=False,
                optimize=optimise,
                verbose=False,
            )
    except torch.onnx.errors.OnnxExporterError as error:
        reason = str(error.__cause__ or error).strip().splitlines()[0]
        raise ExportError(
            f"torch can't turn this model into a graph: {reason} A net of your own must do without loops and branches "
            "that depend on the number or the values of objects."
        ) from error
    if program is None:
        raise ExportError("torch returned no graph; this is a bug.")
    proto = program.model_proto
    strip(proto.graph)
    return proto


def strip(graph: Any) -> None:
    """Remove what torch notes of where each node came from: paths of this machine, most of a small file."""
    del graph.value_info[:]
    for part in (graph, *graph.node, *graph.input, *graph.output, *graph.initializer):
        if hasattr(part, "metadata_props"):
            del part.metadata_props[:]
        part.doc_string = ""


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Leave out what the exporter says of itself: deprecations within torch, packages that are not needed."""
    loggers = [logging.getLogger(name) for name in NOISY]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
