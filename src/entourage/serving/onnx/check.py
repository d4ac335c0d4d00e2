"""The comparison of a graph with the model that it was made from, before anything is written."""

import copy
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from entourage.data.columns import Column
from entourage.data.sets import Sets
from entourage.estimators.inputs import given_sets
from entourage.serving.onnx.graph import ModelGraph
from entourage.serving.onnx.refusal import ExportError
from entourage.serving.onnx.scorer import Floats
from entourage.serving.onnx.tables import draw_cells, texts_of

__all__ = ["SIZES", "TOLERANCE", "DrawnSets", "compare_with_model", "draw_sets", "outputs_of_model"]

#: How many objects the sets have by which a graph is checked.
SIZES = (1, 2, 5, 50, 1000)
#: What a score may differ by, relative to its size where that is above 1.
TOLERANCE = 1e-5
FEW = 50  # objects up to which there are several sets at once
UNKNOWN = "none of the levels"


@dataclass(frozen=True)
class DrawnSets:
    """Sets as a graph takes them, and as a model does.

    Attributes
    ----------
    feeds : the inputs of the graph: objects (n, m, columns), mask (n, m), situation (n, columns) where there is one
    sets : the objects that the mask leaves
    """

    feeds: dict[str, NDArray[Any]]
    sets: Sets


def compare_with_model(
    model: Any,
    graph: ModelGraph,
    session: Any,
    tolerance: float = TOLERANCE,
    sizes: Sequence[int] = SIZES,
) -> float:
    """Return the largest deviation of scores of sets of these sizes, relative to their size where that is above 1.

    Raises an error where it, or that of another output, is above the tolerance; where the padding is not 0; and where a
    set that the model would refuse has a score.
    """
    reference, rng, worst = on_cpu(model), np.random.default_rng(0), 0.0
    names = graph.outcome.names
    for size in sizes:
        if graph.scorer.largest is not None and size > graph.scorer.largest:
            continue
        drawn = draw_sets(reference, graph, size, rng)
        mask, wanted = drawn.feeds["mask"], outputs_of_model(reference, drawn, names)
        came = dict(zip(names, session.run(None, drawn.feeds), strict=True))
        for name, deviation in _deviations(graph, wanted, came, mask, tolerance).items():
            worst = max(worst, deviation) if name == "scores" else worst
            if not deviation <= tolerance:  # so that NaN is none
                raise ExportError(
                    f"The graph differs from the model: {name} of sets of {size:,} objects by {deviation:.2g}, where "
                    f"at most {tolerance:g} (of the score, where that is above 1) is allowed. Nothing was written. "
                    "Where it is not much more, it may be the rounding of single precision, in a net of large weights: "
                    "to allow it, give tolerance= (--tolerance)."
                )
            if came[name].ndim > 1 and came[name][~mask].any():  # NaN, too
                raise ExportError(f"The graph has {name} other than 0 in the padding. Nothing was written.")
        if size == sizes[0]:
            _check_refusal(drawn, session)
    return worst


def _deviations(
    graph: ModelGraph,
    wanted: dict[str, NDArray[Any]],
    came: dict[str, NDArray[Any]],
    mask: NDArray[Any],
    tolerance: float,
) -> dict[str, float]:
    """Return the largest deviation of each output: of scores relative, of what is made of them as they allow."""
    scale = np.maximum(1.0, np.abs(wanted["scores"]))
    softest = min(1.0, graph.outcome.temperature or 1.0)  # deviations of scores grow by one over it
    deviations = {}
    for name, values in wanted.items():
        found = came[name][mask.any(1)] if came[name].ndim == 1 else came[name][mask]
        if name == "scores":
            deviations[name] = float((np.abs(found - values) / scale).max())
        elif name == "chosen":
            far = np.abs(wanted["scores"] - graph.outcome.threshold) > tolerance * scale
            deviations[name] = float((found != values)[far].any())
        else:
            deviations[name] = float(np.abs(found - values).max()) * softest / float(scale.max())
    return deviations


def _check_refusal(drawn: DrawnSets, session: Any) -> None:
    """See that a set with an infinite number has no score, and that others have."""
    objects, mask = drawn.feeds["objects"].copy(), drawn.feeds["mask"]
    place = int(np.argmax(mask[0]))
    objects[0, place, 0] = np.inf
    scores = session.run(None, drawn.feeds | {"objects": objects})[0]
    if not np.isnan(scores[0, place]) or np.isnan(scores[1:]).any():
        raise ExportError("The graph scores a set with an infinite number. Nothing was written.")


def on_cpu(model: Any) -> Any:
    """Return the model as a graph computes: on the CPU, in single precision, silently."""
    own = copy.copy(model)
    settings = {"device": "cpu", "precision": "float32", "verbose": False}
    own.set_params(
        **{name: value for name, value in settings.items() if name in model.get_params(deep=False)}
    )
    return own


def draw_sets(model: Any, graph: ModelGraph, size: int, rng: np.random.Generator) -> DrawnSets:
    """Draw sets of up to so many objects, the last one empty, with NaN in the padding, which is anywhere."""
    n = 4 if size <= FEW else 1
    m = size if graph.scorer.largest is not None else size + 2
    mask = np.zeros((n, m), dtype=bool)
    for i, count in enumerate([size, max(1, size // 2), 1, 0][:n]):
        mask[i, rng.permutation(m)[:count]] = True
    features, situation = graph.scorer.draw(n, m, rng)
    cells, shared = features, situation
    if graph.columns:
        cells = draw_cells(graph.columns, features, graph.scorer.ids, rng)
        if graph.situation_columns:
            shared = draw_cells(graph.situation_columns, situation, (), rng)
    feeds: dict[str, NDArray[Any]] = {"objects": np.where(mask[..., None], cells, np.nan), "mask": mask}
    if graph.widths[1]:
        feeds["situation"] = shared
    given: Any
    if graph.columns:
        given = given_sets(model, _table(model, graph, cells[mask], shared, mask.sum(1))).sets
    else:
        rows = [own[there] for own, there in zip(cells, mask, strict=True) if there.any()]
        given = given_sets(model, rows, shared[: len(rows)] if graph.widths[1] else None).sets
    return DrawnSets(feeds, given)


def outputs_of_model(model: Any, drawn: DrawnSets, names: list[str]) -> dict[str, NDArray[Any]]:
    """Return what a model says: packed, or one number a set."""
    sets = drawn.sets
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what the random sets are like
        scores = np.asarray(model.predict_scores(sets))
        columns = model.columns(sets, scores)
    found = {"scores": scores.astype(np.float64)}
    if "probabilities" in names:
        found["probabilities"] = columns["probability"]
    if "probability_of_nothing" in names:
        found["probability_of_nothing"] = columns["probability_of_nothing"][sets.offsets[:-1]]
    if "chosen" in names:
        found["chosen"] = columns["chosen"].astype(bool)
    return found


def _table(
    model: Any, graph: ModelGraph, cells: Floats, shared: Floats, counts: NDArray[np.int64]
) -> pa.Table:
    """Return a table of the cells, as a user would have it."""
    owner = np.repeat(np.arange(len(counts)), counts)
    columns = {model.table_["set_id"]: pa.array(owner)}
    for i, column in enumerate(graph.columns):
        columns[column.name] = _column(cells[:, i], column)
    for i, column in enumerate(graph.situation_columns):
        columns[column.name] = _column(shared[owner, i], column)
    return pa.table(columns)


def _column(cells: Floats, column: Column) -> pa.Array:
    unknown = UNKNOWN
    while unknown in column.levels:
        unknown += "!"
    kinds = {"number": pa.float64(), "flag": pa.bool_()}
    return pa.array(texts_of(cells, column, unknown), kinds.get(column.kind, pa.string()))
