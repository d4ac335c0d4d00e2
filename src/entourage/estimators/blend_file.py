"""What a model file keeps of an automatic model: the blend, with each of its models as in a file of its own."""

from typing import TYPE_CHECKING, Any

from torch import Tensor

from entourage.errors import check_choice
from entourage.estimators.blend import Blend
from entourage.estimators.calibration import Calibration
from entourage.estimators.table_file import check_table
from entourage.training.file_checks import need, take

if TYPE_CHECKING:
    from entourage.estimators.net_estimator import NetEstimator

__all__ = ["blend_from", "describe_blend", "features_of"]


def describe_blend(
    model: "NetEstimator", params: dict[str, Any], versions: dict[str, str]
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return all that is needed to restore an automatic model: the JSON content, and the tensors."""
    blend: Any = model.blend_
    members, tensors = blend.describe()
    calibration = getattr(model, "calibration_", None)
    content = {
        "estimator": type(model).__name__,
        "params": params,
        "blend": members,
        "table": model.table_,
        "calibration": None if calibration is None else calibration.to_json(),
        "fitted": {
            "seed": model.seed_,
            "n_features": [model.n_features_in_, model.n_situation_features_in_],
            "categories": model.categories_,
            "best_score": model.best_score_,
            "held_out_score": model.held_out_score_,
            "tried": [one.to_json() for one in model.tried_],
        }
        | ({"threshold": model.threshold_} if hasattr(model, "threshold_") else {}),
        "versions": versions,
    }
    return content, tensors


def features_of(fitted: Any) -> tuple[tuple[int, int], list[tuple[int, int]]]:
    """Return the numbers of features of objects and situations that a file speaks of, and which are codes."""
    first, second = take(fitted, "n_features", tuple[int, int])
    need(first > 0 and second >= 0, "objects have no features.")
    categories = [(place, levels) for place, levels in take(fitted, "categories", list[tuple[int, int]])]
    places = {place for place, _ in categories}
    right = len(places) == len(categories) and all(0 <= place < first for place in places)
    right = right and all(0 < levels <= 10_000_000 for _, levels in categories)
    need(right, "categories are at places where objects have no feature, or twice at one.")
    return (first, second), categories


def blend_from(model: "NetEstimator", content: dict[str, Any], tensors: dict[str, Tensor]) -> "NetEstimator":
    """Make an automatic model again, if all that the file says of it can be."""
    from entourage.estimators.plugins import automatic

    if model.loss is not None:
        check_choice("loss", model.loss, model.task.losses)
    fitted: Any = content.get("fitted")
    (first, second), categories = features_of(fitted)
    model.n_features_in_, model.n_situation_features_in_ = first, second
    model.categories_, model.seed_ = categories, take(fitted, "seed", int, least=0)
    model.table_ = check_table(content.get("table"), (first, second))
    model.blend_ = Blend.from_file(model.task, content.get("blend"), tensors, (first, second), categories)
    model.best_score_ = take(fitted, "best_score", float)
    model.held_out_score_ = take(fitted, "held_out_score", float)
    tried = fitted.get("tried")
    need(isinstance(tried, list) and all(isinstance(one, dict) for one in tried), "'tried' is malformed.")
    model.tried_ = [automatic().Tried.from_json(one) for one in tried]
    calibration = Calibration.from_json(content.get("calibration"))
    if hasattr(type(model), "calibration_"):
        setattr(model, "calibration_", calibration)  # noqa: B010
    threshold = take({"threshold": None} | fitted, "threshold", float | None)
    if threshold is not None and hasattr(model, "threshold"):
        setattr(model, "threshold_", threshold)  # noqa: B010
    return model
