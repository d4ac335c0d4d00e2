"""Choice models from files: parameters that the constructor knows and arrays of the right shapes, or nothing."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from entourage.choice.base import ChoiceModel
from entourage.choice.contextual import ContextualLogit
from entourage.choice.cross_nested import CrossNestedLogit
from entourage.choice.latent import LatentClassLogit
from entourage.choice.linear_context import LinearContextLogit
from entourage.choice.logit import MultinomialLogit
from entourage.choice.mixed import MixedLogit
from entourage.choice.nested import NestedLogit
from entourage.choice.people import PanelModel
from entourage.choice.regret import RandomRegret
from entourage.data.encoder import TableEncoder
from entourage.estimators.table_file import check_table
from entourage.estimators.view_file import relative_from
from entourage.training.file_checks import Arrays, fits, need, params_of, take

__all__ = ["remake"]

MOST_CLASSES = 10_000
MOST_IDS = 100  # columns without a number of their own: those that say which alternative an object is
MOST_DRAWS = 10_000_000  # each costs memory whenever something is predicted
FLAGS = ("converged_",)
COUNTS = ("n_features_in_", "n_sets_", "n_groups_")
NUMBERS = (  # NaN and infinite where a parameter is not identified
    "log_likelihood_",
    "null_log_likelihood_",
    "n_parameters_",
    "rho_squared_",
    "aic_",
    "bic_",
)


def remake(kind: type[ChoiceModel], content: dict[str, Any], tensors: dict[str, Tensor]) -> ChoiceModel:
    """Restore the model that `entourage.estimators.model_file.attributes_of` described."""
    params = params_of(kind, content.get("params"), other=_other(kind))
    for key, value in params.items():
        if isinstance(value, dict):
            params[key] = dict(value["pairs"])
    model = kind(**params)
    model.check_parameters()
    fitted: Any = content.get("fitted")
    for key in FLAGS:
        setattr(model, key, take(fitted, key, bool))
    for key in COUNTS:
        setattr(model, key, take(fitted, key, int, least=1))
    for key in NUMBERS:
        need(isinstance(fitted.get(key), float) or fits(fitted.get(key), float), f"{key} is no number.")
        setattr(model, key, fitted[key])
    numbers = sum(value.numel() for value in tensors.values())
    need(model.n_features_in_ <= numbers + MOST_IDS, "it has more features than numbers.")
    situation = take(fitted, "n_situation_features_in_", int, least=0)
    need(
        situation <= numbers + MOST_IDS or kind.drops_situation, "it has more of the situation than numbers."
    )
    knows = kind.drops_situation or kind.uses_situation
    need(situation == 0 or knows, "this choice model knows no situation.")
    model.n_situation_features_in_ = situation
    if "positions_" in fitted:
        need(isinstance(model, MultinomialLogit), "only MultinomialLogit has positions.")
        setattr(model, "positions_", _positions(fitted["positions_"]))  # noqa: B010
    model.relative_ = relative_from(fitted.get("relative_"), model.n_features_in_)
    if "table_" in fitted:
        setattr(model, "table_", check_table(fitted["table_"], (model.n_features_in_, situation)))  # noqa: B010
    arrays = Arrays(tensors)
    if "dropped_" in tensors:
        model.dropped_ = _places(arrays, "dropped_", model.n_features_in_)
    known = next(base for base in kind.__mro__ if base in _ARRAYS)
    parameters, reported = _ARRAYS[known](model, arrays)
    if isinstance(model, PanelModel):
        _people_of(
            model, fitted, arrays, model.classes if isinstance(model, LatentClassLogit) else model.draws
        )
    model.theta_ = arrays.take("theta_", (parameters,), finite=True)
    for key in ("coef_", "standard_errors_", "robust_standard_errors_", "z_values_"):
        setattr(model, key, arrays.take(key, (reported,)))
    model.covariance_ = arrays.take("covariance_", (reported, reported))
    model.open_ = arrays.take("open_", (reported,), torch.bool)
    arrays.must_be_empty()
    names = fitted.get("parameter_names_")
    need(fits(names, list[str]) and len(names) == reported, "'parameter_names_' is not a name each.")
    model.parameter_names_ = names
    return model


def _other(kind: type[ChoiceModel]) -> dict[str, Any]:
    """Return what the parameters of a file may be, where annotations say less."""
    law = str | tuple[str, float, float]
    random = str | Sequence[int | str] | Mapping[int, law] | Mapping[str, law] | Mapping[int | str, law]
    return {"nests": Sequence[Sequence[float | str]], "random": random} if "__init__" in vars(kind) else {}


def _places(arrays: Arrays, name: str, width: int) -> Any:
    """Take places of columns, which ascend."""
    found = arrays.take(name, None, torch.int64)
    right = bool((np.diff(found) > 0).all()) and all(0 <= place < width for place in found)
    need(right, f"{name!r} are no places of columns.")
    return found


def _people_of(model: Any, fitted: Any, arrays: Arrays, width: int) -> None:
    """Take what is known of people, where there is something."""
    if "people_" not in fitted:
        return
    labels = fitted["people_"]
    right = fits(labels, list[int | float | str]) and len(labels) == len(set(labels)) == model.n_groups_
    need(right, "'people_' are not one label a group.")
    model.people_ = labels
    model.beliefs_ = arrays.take("beliefs_", (len(labels), width), finite=True)
    sums = model.beliefs_.sum(1)
    need(
        bool((model.beliefs_ >= 0).all() and (abs(sums - 1) < 1e-6).all()), "'beliefs_' are no probabilities."
    )


def _positions(given: Any) -> list[Any]:
    right = (fits(given, list[int]) or fits(given, list[str])) and len(given) > 1
    need(right and all(a < b for a, b in pairwise(given)), "'positions_' don't ascend.")
    return list(given)


# Each of these takes the arrays that only its model has, and returns how many parameters there are, and how many
# numbers are reported.


def _logit(model: Any, arrays: Arrays) -> tuple[int, int]:
    shown = 0 if model.positions_ is None else len(model.positions_) - 1
    if model.alternatives is None:
        return model.n_columns + shown, model.n_columns + shown
    need(model.n_features_in_ == 1, "alternatives without features have one, their id.")
    return model.alternatives - 1 + shown, model.alternatives - 1 + shown


def _contextual(model: Any, arrays: Arrays) -> tuple[int, int]:
    with_features = model.alternatives is None
    need(with_features or model.n_features_in_ == 1, "alternatives without features have one, their id.")
    d = model.n_columns if with_features else model.alternatives
    reported = d + d * d if with_features else d * (d - 1)
    if model.rank is None:
        return reported, reported
    return 2 * d * model.rank + d * with_features, reported


def _mixed(model: Any, arrays: Arrays) -> tuple[int, int]:
    need(model.draws <= MOST_DRAWS, f"draws={model.draws} is more than memory holds.")
    arrays.left.pop("lognormal_", None)  # of an earlier Entourage
    columns = arrays.take("columns_", None, torch.int64)
    model.arrange(model.column_names, model.n_columns + len(model.dropped_))
    need(np.array_equal(model.columns_, columns), "'columns_' are not those of random.")
    model.start_ = arrays.take("start_", (model.n_columns,), finite=True)
    count = model.n_estimated
    return count, count


def _latent(model: Any, arrays: Arrays) -> tuple[int, int]:
    need(model.classes <= MOST_CLASSES, f"classes={model.classes} is more than a model has.")
    model.situation_columns_ = _places(arrays, "situation_columns_", model.n_situation_features_in_)
    model.situation_centre_ = arrays.take("situation_centre_", (len(model.situation_columns_),), finite=True)
    model.class_shares_ = arrays.take("class_shares_", (model.classes,), finite=True)
    model.begin_ = arrays.take("begin_", (model.n_columns,), finite=True)
    count = model.classes * model.n_columns + (model.classes - 1) * (1 + len(model.situation_columns_))
    return count, count


def _regret(model: Any, arrays: Arrays) -> tuple[int, int]:
    model.linear_ = arrays.take("linear_", (model.n_columns,), torch.bool)
    model.begin_ = arrays.take("begin_", (model.n_columns,), finite=True)
    count = model.n_columns + (model.scale == "estimated")
    return count, count


def _linear_context(model: Any, arrays: Arrays) -> tuple[int, int]:
    model.centre_ = arrays.take("centre_", (model.n_columns,), finite=True)
    model.varies_ = arrays.take("varies_", (model.n_columns,), torch.bool)
    count = model.n_columns * (1 + int(model.varies_.sum()))
    return count, count


def _nested(model: Any, arrays: Arrays) -> tuple[int, int]:
    encoder = None if model.table_ is None else TableEncoder.from_json(model.table_)
    model.find_ids(encoder, model.column_names)
    ids = arrays.take("alternatives_", None, torch.float32, torch.float64, finite=True).astype(np.float64)
    need(len(ids) > 0 and bool((np.diff(ids) > 0).all()), "'alternatives_' don't ascend.")
    model.alternatives_ = ids
    named = {model.number_of(i) for nest in model.nests for i in nest}
    need(named <= set(ids.tolist()), "nests name alternatives that are not there.")
    nest_of = arrays.take("nest_of_", ids.shape, torch.int64)
    estimated = arrays.take("estimated_", None, torch.int64)
    model.allocate()
    right = np.array_equal(model.nest_of_, nest_of) and np.array_equal(model.estimated_, estimated)
    need(right, "'nest_of_' or 'estimated_' are not what nests say.")
    count = (len(ids) - 1 if model.intercepts else 0) + model.n_allocations + len(estimated)
    count += model.n_columns - model.n_id_columns
    return count, count


_ARRAYS: dict[type, Any] = {
    MultinomialLogit: _logit,
    NestedLogit: _nested,
    CrossNestedLogit: _nested,
    MixedLogit: _mixed,
    ContextualLogit: _contextual,
    LatentClassLogit: _latent,
    RandomRegret: _regret,
    LinearContextLogit: _linear_context,
}
