"""What a model file keeps of a fitted model."""

import functools
import platform
import warnings
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import torch
from torch import Tensor

from entourage.errors import ModelFileError
from entourage.nets import NETS, Scorer
from entourage.nets.ensemble import Stack
from entourage.tasks.losses import CHOICE_LOSSES, LOSSES, SUBSET_LOSSES, Loss

__all__ = ["describe", "describe_attributes", "loss_identity", "members_of"]


def describe(model: Any) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return all that is needed to make a fitted estimator again: what is JSON, and the tensors."""
    net = model.net_
    names = {kind: name for name, kind in NETS.items()}
    if type(net) not in names:
        raise ModelFileError(
            f"A model file can hold {', '.join(k.__name__ for k in names)}; this net is a "
            f"{type(net).__name__}. Pickle the estimator instead."
        )
    params = model.get_params(deep=False)
    params["loss"] = _loss_name(model.loss, model.task.losses)
    if params["loss"] is None:
        warnings.warn(
            "A model file holds no code: the loss is left out. To train the loaded model further, give "
            "it again with set_params(loss=...).",
            stacklevel=3,
        )
    del (
        params["checkpoint"],
        params["device"],
    )  # of this machine: never read from a file, so never told to others
    params["random_state"] = model._seed
    params["members"] = members_of(model.scorer_)
    del params["net"]
    content = {
        "estimator": type(model).__name__,
        "params": params,
        "net": {"name": names[type(net)], "params": net.get_params()},
        "table": model.table_,
        "fitted": {
            "seed": model._seed,
            "partial_fits": model._partial_fits,
            "history": model.history_,
            "best_score": model.best_score_,
            "steps": model.n_steps_,
            "interrupted": model.interrupted_,
            "categories": model.categories_,
        }
        | ({"threshold": model.threshold_} if hasattr(model, "threshold_") else {}),
        "versions": _versions(),
    }
    tensors = {f"net.{name}": value for name, value in model.scorer_.state_dict().items()}
    tensors |= {f"optimizer.{name}": value for name, value in model._optimizer_state.items()}
    for i, (mean, scale) in enumerate(zip(model._standardise.means, model._standardise.scales, strict=True)):
        tensors |= {f"mean.{i}": torch.from_numpy(mean), f"scale.{i}": torch.from_numpy(scale)}
    return content, tensors


def describe_attributes(model: Any) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return all that is needed to make a model again whose attributes are numbers, names and arrays."""
    fitted = {name: value for name, value in vars(model).items() if name.endswith("_")}
    arrays = {name: value for name, value in fitted.items() if isinstance(value, np.ndarray)}
    content = {
        "estimator": type(model).__name__,
        "params": {name: _plain(value) for name, value in model.get_params(deep=False).items()},
        "fitted": {name: value for name, value in fitted.items() if name not in arrays},
        "versions": _versions(),
    }
    return content, {name: torch.tensor(value) for name, value in arrays.items()}


def _plain(value: Any) -> Any:
    """Bring a parameter into what JSON can hold, a dict as its pairs: keys need not be text."""
    if isinstance(value, Mapping):
        return {"pairs": [[_plain(key), _plain(item)] for key, item in value.items()]}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value


def members_of(scorer: Scorer) -> int:
    """Return how many nets an ensemble has; 1 for a net alone."""
    return scorer.members if isinstance(scorer, Stack) else 1


def _loss_name(loss: str | Loss, among: dict[str, Loss]) -> str | None:
    if isinstance(loss, str):
        return loss
    return next((name for name, known in among.items() if known is loss), None)


def loss_identity(loss: Any) -> str:
    """Tell one callable loss from another, as well as can be: by name, bound arguments and code."""
    if isinstance(loss, functools.partial):
        return f"{loss_identity(loss.func)}({loss.args}, {loss.keywords})"
    everything = LOSSES | CHOICE_LOSSES | SUBSET_LOSSES
    name = str(_loss_name(loss, everything) or getattr(loss, "__qualname__", type(loss).__qualname__))
    code = getattr(loss, "__code__", None)
    return name if code is None else f"{name}:{code.co_code.hex()}:{code.co_consts!r}"


def _versions() -> dict[str, str]:
    found = {name: _version(name) for name in ("entourage", "torch", "numpy")}
    return found | {"python": platform.python_version()}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # run from a checkout that is not installed
        return "unknown"
