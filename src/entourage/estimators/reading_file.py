"""What a model file keeps of an estimator of the pretrained net: what was read of the labelled sets."""

from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from entourage.data.sets import Sets
from entourage.errors import ModelFileError, check_choice
from entourage.estimators.blend_file import features_of
from entourage.estimators.calibration import Calibration
from entourage.estimators.pretrained_net import as_read
from entourage.estimators.table_file import check_table
from entourage.pretrained import Reading
from entourage.training.file_checks import need, take

if TYPE_CHECKING:
    from entourage.estimators.net_estimator import NetEstimator

__all__ = ["describe_reading", "reading_from"]


def describe_reading(
    model: "NetEstimator", params: dict[str, Any], versions: dict[str, str]
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return all that is needed to restore the model: the JSON content, and the tensors."""
    reading: Any = model.reading_
    if model.reference_ is not None:
        raise ModelFileError(
            "A model file holds no context-ablated control of the pretrained net. Pickle the estimator instead."
        )
    described, tensors = reading.describe()
    content = {
        "estimator": type(model).__name__,
        "params": params,
        "reading": described,
        "table": model.table_,
        "calibration": None if model.calibration_ is None else model.calibration_.to_json(),
        "fitted": {
            "seed": model.seed_,
            "n_features": [model.n_features_in_, model.n_situation_features_in_],
            "categories": model.categories_,
            "labelled_sets": model.n_labelled_sets_,
        }
        | ({"threshold": model.threshold_} if hasattr(model, "threshold_") else {}),
        "versions": versions,
    }
    return content, {f"reading.{name}": value for name, value in tensors.items()}


def reading_from(
    model: "NetEstimator", content: dict[str, Any], tensors: dict[str, Tensor]
) -> "NetEstimator":
    """Make the model again, if all that the file says of it can be."""
    if model.loss is not None:
        check_choice("loss", model.loss, model.task.losses)
    fitted: Any = content.get("fitted")
    (first, second), categories = features_of(fitted)
    known = all(name.startswith("reading.") for name in tensors)
    need(known, "it holds numbers of which nothing is known.")
    own = {name.removeprefix("reading."): value for name, value in tensors.items()}
    reading = Reading.from_file(content.get("reading"), own)
    blank = Sets(np.zeros((1, first)), [0, 1], None, np.zeros((1, second)) if second else None)
    seen = as_read(blank, categories)
    needed = seen.n_features, seen.n_situation_features
    need(tuple(reading.n_features) == needed, "what was read of labelled sets has other features.")
    kind = {"rank": "ranking"}.get(model.task.kind, model.task.kind)
    same = (reading.kind, reading.outside) == (kind, model.task.outside)
    need(same, "what was read of labelled sets is of another task.")
    model.keep_reading(
        reading,
        categories,
        seed=take(fitted, "seed", int, least=0),
        labelled_sets=take(fitted, "labelled_sets", int, least=1),
    )
    model.n_features_in_, model.n_situation_features_in_ = first, second
    model.table_ = check_table(content.get("table"), (first, second))
    model.calibration_ = Calibration.from_json(content.get("calibration"))
    threshold = take({"threshold": None} | fitted, "threshold", float | None)
    if threshold is not None and hasattr(model, "threshold"):
        setattr(model, "threshold_", threshold)  # noqa: B010
    return model
