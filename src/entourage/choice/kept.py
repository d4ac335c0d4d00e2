"""Choice models from files: parameters that the constructor knows and arrays of the right shapes, or nothing."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from entourage.choice.base import ChoiceModel
from entourage.choice.contextual import ContextualLogit
from entourage.choice.logit import MultinomialLogit
from entourage.choice.mixed import MixedLogit
from entourage.choice.nested import NestedLogit
from entourage.estimators.model_file import check_table
from entourage.estimators.view_file import relative_from
from entourage.training.file_checks import Arrays, fits, need, params_of, take

__all__ = ["remake"]

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
    params = params_of(kind, content.get("params"), other={"nests": Sequence[Sequence[float]]})
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
    situation = take(fitted, "n_situation_features_in_", int, least=0)
    need(situation == 0 or kind.drops_situation, "choice models know no situation.")
    model.n_situation_features_in_ = situation
    if "positions_" in fitted:
        need(isinstance(model, MultinomialLogit), "only MultinomialLogit has positions.")
        setattr(model, "positions_", _positions(fitted["positions_"]))  # noqa: B010
    model.relative_ = relative_from(fitted.get("relative_"), model.n_features_in_)
    arrays = Arrays(tensors)
    known = next(base for base in kind.__mro__ if base in _ARRAYS)
    parameters, reported = _ARRAYS[known](model, arrays)
    model.theta_ = arrays.take("theta_", (parameters,), finite=True)
    for key in ("coef_", "standard_errors_", "robust_standard_errors_", "z_values_"):
        setattr(model, key, arrays.take(key, (reported,)))
    model.covariance_ = arrays.take("covariance_", (reported, reported))
    model.open_ = arrays.take("open_", (reported,), torch.bool)
    arrays.must_be_empty()
    names = fitted.get("parameter_names_")
    need(fits(names, list[str]) and len(names) == reported, "'parameter_names_' is not a name each.")
    model.parameter_names_ = names
    if "table_" in fitted:
        setattr(model, "table_", check_table(fitted["table_"], (model.n_features_in_, situation)))  # noqa: B010
    return model


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
    kinds = model.random if isinstance(model.random, dict) else dict.fromkeys(model.random, "normal")
    right = all(0 <= column < model.n_columns for column in kinds)
    right = right and set(kinds.values()) <= {"normal", "lognormal"}
    need(right, "random names columns that objects don't have, or no distribution.")
    model.columns_ = arrays.take("columns_", (len(kinds),), torch.int64)
    model.lognormal_ = arrays.take("lognormal_", (len(kinds),), torch.bool)
    expected = [(column, kinds[column] == "lognormal") for column in sorted(kinds)]
    found = list(zip(model.columns_.tolist(), model.lognormal_.tolist(), strict=True))
    need(found == expected, "'columns_' are not those of random.")
    model.start_ = arrays.take("start_", (model.n_columns,), finite=True)
    count = model.n_columns + len(kinds)
    return count, count


def _nested(model: Any, arrays: Arrays) -> tuple[int, int]:
    need(model.alternative < model.n_columns, "the column of ids is none that objects have.")
    ids = arrays.take("alternatives_", None, torch.float32, torch.float64, finite=True)
    need(len(ids) > 0 and bool((np.diff(ids) > 0).all()), "'alternatives_' don't ascend.")
    model.alternatives_ = ids
    nests = {float(i): k for k, nest in enumerate(model.nests) for i in nest}
    need(set(nests) <= set(ids.tolist()), "nests name alternatives that are not there.")
    alone = [i for i in ids.tolist() if i not in nests]
    nests |= {i: len(model.nests) + k for k, i in enumerate(alone)}
    nest_of = np.array([nests[i] for i in ids.tolist()])
    model.nest_of_ = arrays.take("nest_of_", ids.shape, torch.int64)
    model.estimated_ = arrays.take("estimated_", None, torch.int64)
    right = np.array_equal(model.nest_of_, nest_of)
    right = right and np.array_equal(model.estimated_, np.flatnonzero(np.bincount(nest_of) > 1))
    need(right, "'nest_of_' or 'estimated_' are not what nests say.")
    intercepts = len(ids) - 1 if model.intercepts else 0
    count = intercepts + model.n_columns - 1 + len(model.estimated_)
    return count, count


_ARRAYS: dict[type, Any] = {
    MultinomialLogit: _logit,
    NestedLogit: _nested,
    MixedLogit: _mixed,
    ContextualLogit: _contextual,
}
