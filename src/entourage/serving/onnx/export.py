"""From a fitted model to an ONNX file."""

import importlib.util
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from entourage import __version__
from entourage.data.columns import Column
from entourage.data.files import write_atomically
from entourage.errors import UserError, check_number
from entourage.serving.onnx.blends import BlendScores
from entourage.serving.onnx.check import SIZES, TOLERANCE, compare_with_model
from entourage.serving.onnx.graph import ModelGraph
from entourage.serving.onnx.refusal import ExportError
from entourage.serving.onnx.sharing import exported_blend
from entourage.serving.onnx.trace import AXES, inputs_of, traced

__all__ = ["AXES", "METADATA", "Exported", "to_onnx"]

#: The key of the metadata of a graph under which a JSON text says what its columns and outputs are.
METADATA = "entourage"
PACKAGES = ("onnx", "onnxscript", "onnxruntime")


@dataclass(frozen=True)
class Exported:
    """What was written.

    Attributes
    ----------
    file : where
    inputs, outputs : each by its name: the type and the axes, in words
    size : in bytes
    deviation : the largest of a score from the model's, relative to its size where that is above 1
    """

    file: str
    inputs: dict[str, str]
    outputs: dict[str, str]
    size: int
    deviation: float


def to_onnx(
    model: Any,
    path: str | os.PathLike[str],
    *,
    tolerance: float = TOLERANCE,
    sizes: Sequence[int] = SIZES,
) -> Exported:
    """Write a fitted model as an ONNX graph.

    Inputs are ``objects`` (sets, objects, columns), numbers in double precision, ``mask`` (sets, objects), False in the
    padding, and ``situation`` (sets, columns) where the model has situation features. Of a table, a cell is its value
    or the place of its level, -1 for a text that is none of the levels, NaN where it is missing; the levels are in the
    metadata, under the key "entourage", as JSON. Outputs are ``scores`` and, where the model has them,
    ``probabilities``, ``probability_of_nothing`` and ``chosen``. A set that the model would refuse, such as one with an
    infinite number, has the score NaN.

    Parameters
    ----------
    model : any model that a file can hold, but for FETA of order 2 or more and the pretrained net
    path : of the file to write
    tolerance : what a score of the graph may differ from the model's by, relative to its size where that is above 1;
        where it differs by more on random sets, nothing is written
    sizes : how many objects these sets have

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from entourage.baselines import LinearRanker
    >>> X = np.random.default_rng(0).normal(size=(50, 4, 2))
    >>> model = LinearRanker().fit(X, X[..., 0].argsort(1).argsort(1))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = to_onnx(model, Path(folder) / "model.onnx")
    >>> written.inputs["objects"], written.deviation < 1e-12
    ('double (sets, objects, 2)', True)
    """
    check_number("tolerance", tolerance, above=0, most=0.01)
    _check_packages()
    graph = ModelGraph(model).eval()
    proto = _exported(graph)
    _check_axes(proto)
    about = proto.metadata_props.add()
    about.key, about.value = METADATA, json.dumps(_about(model, graph), allow_nan=False)
    data = proto.SerializeToString()
    deviation = compare_with_model(model, graph, _session(data), tolerance, sizes)
    try:
        write_atomically(path, data)
    except OSError as error:
        raise UserError(f"{path} can't be written: {error.strerror or error}.") from None
    shapes = [
        {value.name: _words(value) for value in values} for values in (proto.graph.input, proto.graph.output)
    ]
    return Exported(str(path), shapes[0], shapes[1], len(data), deviation)


def _check_packages() -> None:
    lacking = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if lacking:
        raise UserError(f"An ONNX file needs {', '.join(lacking)}: run pip install 'entourage[onnx]'.")


def _exported(graph: ModelGraph) -> Any:
    """Return the graph as ONNX has it."""
    if isinstance(graph.scorer, BlendScores):
        return exported_blend(graph, graph.scorer)
    return traced(graph, inputs_of(graph.widths, graph.scorer.largest), graph.outcome.names)


def _check_axes(proto: Any) -> None:
    """See that a graph takes any number of sets of any size."""
    for value in (*proto.graph.input, *proto.graph.output):
        axes = [axis.dim_param for axis in value.type.tensor_type.shape.dim]
        wanted = AXES[:1] if value.name in ("situation", "probability_of_nothing") else AXES
        if tuple(axes[: len(wanted)]) != wanted:
            raise ExportError(
                f"The graph has a fixed size: {value.name} is {_words(value)}. A net of your own must not turn "
                "shapes into numbers."
            )


def _words(value: Any) -> str:
    import onnx

    kind = value.type.tensor_type
    name = onnx.TensorProto.DataType.Name(kind.elem_type).lower()
    axes = ", ".join(str(axis.dim_param or axis.dim_value) for axis in kind.shape.dim)
    return f"{name} ({axes})"


def _session(data: bytes) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.enable_cpu_mem_arena = False  # what sets of 1,000 objects need is given back
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def _about(model: Any, graph: ModelGraph) -> dict[str, Any]:
    """Return what a user of the graph must know of its inputs and outputs."""
    found: dict[str, Any] = {"version": __version__, "estimator": type(model).__name__}
    found |= graph.outcome.about()
    found |= {"outputs": graph.outcome.names, "columns": None, "situation": None, "missing": graph.missing}
    if graph.columns:
        found["set_id"] = model.table_["set_id"]
        found["columns"] = [_column(column) for column in graph.columns]
        found["situation"] = [_column(column) for column in graph.situation_columns]
    return found


def _column(column: Column) -> dict[str, Any]:
    if column.kind in ("number", "flag"):
        return {"name": column.name, "kind": column.kind}
    return {"name": column.name, "kind": "text", "levels": column.levels}
