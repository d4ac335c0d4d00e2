"""Model files: what is saved of a fitted model, and how it is loaded.

Nothing in a file is code, so opening a stranger's file runs nothing (:mod:`entourage.training.tensor_file`). What it
says is checked before it is used: every value must fit the annotation of the parameter it is for, and a net is first
built without its numbers, on torch's "meta" device, whose shapes must be those of the weights in the file. Only then
is memory taken: about as much as the file has bytes, whatever sizes it speaks of.
"""

import math
import os
import platform
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from entourage.errors import ModelFileError, check_choice
from entourage.estimators.blend_file import blend_from, describe_blend
from entourage.estimators.calibration import Calibration
from entourage.estimators.monotone import constrained
from entourage.estimators.plugins import can_be_in_a_file, model_class, model_names
from entourage.estimators.reading_file import describe_reading, reading_from
from entourage.estimators.table_file import check_table
from entourage.estimators.view_file import describe_relative, describe_view, view_from
from entourage.nets import NETS, Net, Scorer
from entourage.nets.embeddings import build_with_categories
from entourage.nets.ensemble import Stack
from entourage.tasks.losses import loss_name
from entourage.training import tensor_file
from entourage.training.file_checks import (
    check_history,
    check_optimizer,
    check_versions,
    check_weights,
    forms_of,
    need,
    params_of,
    refusing,
    take,
)
from entourage.training.loop import Outcome
from entourage.training.view import View

if TYPE_CHECKING:
    from entourage.estimators.net_estimator import NetEstimator

__all__ = [
    "attributes_of",
    "check_table",
    "content_of",
    "describe_net_estimator",
    "load",
    "load_bytes",
    "members_of",
    "net_estimator_from",
    "save_described",
    "save_net_estimator",
]

MOST_UNUSED = 1_000_000  # a size of a net may exceed its weights where it plays no part: a width, at depth 0
CALLS_A_WEIGHT = 40  # of torch, to build a net, at most; nets need ten
NEVER_FROM_A_FILE = ("checkpoint", "device")  # a stranger's path, and a machine that is not this one


def load(path: str | os.PathLike[str]) -> Any:
    """Read a fitted model that ``model.save(path)`` wrote.

    A file that is damaged, cut short, foreign or of another format is an error that says so, and so is one whose
    content is not what a model has: see :mod:`entourage.estimators.model_file`. No path is taken from a file, and no
    device: a loaded model has ``checkpoint=None`` and ``device="auto"``.
    """
    return _made_of(*tensor_file.read(path, "model"), path)


def load_bytes(data: bytes, path: str | os.PathLike[str]) -> Any:
    """Return the model of a file's content, which was read before; ``path`` is what messages call it."""
    return _made_of(*tensor_file.parse(data, "model", path), path)


def _made_of(content: dict[str, Any], tensors: dict[str, Tensor], path: str | os.PathLike[str]) -> Any:
    with refusing(path):
        check_versions(content)
        name = check_choice("estimator", take(content, "estimator", str), model_names())
        return model_class(name).from_file(content, tensors)


# --- writing --------------------------------------------------------------------------------------


def save_net_estimator(model: "NetEstimator", path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator of a net."""
    _check_class(model)
    tensor_file.write(path, "model", *describe_net_estimator(model))


def save_described(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model whose ``describe`` returns the content of a file, and the tensors."""
    _check_class(model)
    tensor_file.write(path, "model", *model.describe())


def _check_class(model: Any) -> None:
    """See that the model can be made again: a file holds no code, so no class of a user's own."""
    if not can_be_in_a_file(type(model)):
        raise ModelFileError(
            f"A model file can hold {', '.join(model_names())}; this is a {type(model).__name__} of your own. "
            "Pickle it instead."
        )


def describe_net_estimator(model: "NetEstimator") -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return all that is needed to restore a fitted estimator: the JSON content, and the tensors."""
    if model.blend_ is not None:
        return describe_blend(model, _params_of(model), _versions())
    if model.reading_ is not None:
        return describe_reading(model, _params_of(model), _versions())
    net = model.net_
    names = {kind: name for name, kind in NETS.items()}
    if type(net) not in names:
        raise ModelFileError(
            f"A model file can hold {', '.join(k.__name__ for k in names)}; this net is a "
            f"{type(net).__name__}. Register it (entourage.nets.register), or pickle the estimator."
        )
    params = _params_of(model) | {"members": members_of(model.scorer_)}
    content = {
        "estimator": type(model).__name__,
        "params": params,
        "net": {"name": names[type(net)], "params": net.get_params()},
        "table": model.table_,
        "calibration": None if model.calibration_ is None else model.calibration_.to_json(),
        "fitted": {
            "seed": model.seed_,
            "partial_fits": model.n_partial_fits_,
            "history": model.history_,
            "best_score": model.best_score_,
            "steps": model.n_steps_,
            "interrupted": model.interrupted_,
            "categories": model.categories_,
        }
        | ({"threshold": model.threshold_} if hasattr(model, "threshold_") else {})
        | _describe_positions(model),
        "versions": _versions(),
    }
    tensors = {f"net.{name}": value for name, value in model.scorer_.state_dict().items()}
    tensors |= {f"optimizer.{name}": value for name, value in model.optimizer_state_.items()}
    content["view"], of_view = describe_view(model.view_)
    return content, tensors | of_view


def _params_of(model: "NetEstimator") -> dict[str, Any]:
    """Return the parameters that a file holds; the net has a place of its own."""
    params: dict[str, Any] = model.get_params(deep=False)
    params["loss"] = loss_name(model.loss, model.task.losses)
    if params["loss"] is None:
        warnings.warn(
            "A model file holds no code: the loss is left out. To train the loaded model further, give "
            "it again with set_params(loss=...).",
            stacklevel=5,
        )
    for name in (*NEVER_FROM_A_FILE, "net"):
        del params[name]
    return params | {"random_state": model.seed_, "monotone": _plain(model.monotone)}


def _describe_positions(model: "NetEstimator") -> dict[str, Any]:
    """Return the effects of positions as pairs, since keys of JSON are text; nothing where there are none."""
    effects = model.position_effects_
    return {} if effects is None else {"position_effects": [[name, value] for name, value in effects.items()]}


def attributes_of(model: Any) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return all that is needed to restore a model whose attributes are numbers, names and arrays."""
    fitted = {name: value for name, value in vars(model).items() if name.endswith("_")}
    arrays = {name: value for name, value in fitted.items() if isinstance(value, np.ndarray)}
    plain = {name: value for name, value in fitted.items() if name not in arrays}
    content = content_of(model, plain | {"relative_": describe_relative(model.relative_)})
    return content, {name: torch.tensor(value) for name, value in arrays.items()}


def content_of(model: Any, fitted: dict[str, Any]) -> dict[str, Any]:
    """Return what a file says of a model beside its numbers: its class, parameters and what was learnt."""
    return {
        "estimator": type(model).__name__,
        "params": {name: _plain(value) for name, value in model.get_params(deep=False).items()},
        "fitted": fitted,
        "versions": _versions(),
    }


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
    """Return how many nets an ensemble has; 1 for a single net."""
    return scorer.members if isinstance(scorer, Stack) else 1


def _versions() -> dict[str, str]:
    found = {name: _version(name) for name in ("entourage", "torch", "numpy")}
    return found | {"python": platform.python_version()}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # run from a checkout that is not installed
        return "unknown"


# --- reading --------------------------------------------------------------------------------------


def net_estimator_from(
    kind: type["NetEstimator"], content: dict[str, Any], tensors: dict[str, Tensor]
) -> "NetEstimator":
    """Make an estimator of a net again, if all that the file says of it can be."""
    if "blend" in content:
        return blend_from(kind("auto", **_params_from(kind, content)), content, tensors)
    if "reading" in content:
        return reading_from(kind("pretrained", **_params_from(kind, content)), content, tensors)
    kept = _unpack(kind, content, tensors)
    model = kind(kept.net, **kept.params)
    if model.loss is not None:
        check_choice("loss", model.loss, model.task.losses)
    check_choice("precision", model.precision, ["float32", "bfloat16"])
    outcome = Outcome(
        weights=kept.weights,
        optimizer=kept.optimizer,
        history=kept.history,
        best_score=kept.best_score,
        steps=kept.steps,
        interrupted=kept.interrupted,
    )
    model.keep(
        kept.net,
        kept.scorer,
        kept.view,
        kept.categories,
        outcome,
        seed=kept.seed,
        partial_fits=kept.partial_fits,
    )
    model.table_ = kept.table
    model.position_effects_ = kept.position_effects
    model.calibration_ = kept.calibration
    if kept.threshold is not None and hasattr(model, "threshold"):
        model.threshold_ = kept.threshold
    return model


def _params_from(kind: type["NetEstimator"], content: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters that a file holds."""
    params = params_of(kind, content.get("params"), leave=NEVER_FROM_A_FILE, other={"loss": str | None})
    need("net" not in params, "a net is among the parameters.")
    if params.get("monotone") is not None:
        params["monotone"] = dict(params["monotone"]["pairs"])
    return params


@dataclass
class _Kept:
    """What a file keeps of a fitted estimator, all of it checked."""

    params: dict[str, Any]
    net: Net
    scorer: Scorer  # of the right form; the weights are yet to be loaded
    view: View
    categories: list[tuple[int, int]]
    weights: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    history: list[dict[str, Any]]
    best_score: float | None
    steps: int
    interrupted: bool
    seed: int
    partial_fits: int
    threshold: float | None
    table: dict[str, Any] | None
    position_effects: dict[Any, float] | None
    calibration: Calibration | None


def _unpack(kind: type["NetEstimator"], content: dict[str, Any], tensors: dict[str, Tensor]) -> _Kept:
    """Check all that a file says of an estimator, and build its net."""
    groups: dict[str, dict[str, Tensor]] = {"net": {}, "optimizer": {}, "mean": {}, "scale": {}}
    for name, value in tensors.items():
        group, _, rest = name.partition(".")
        need(group in groups, f"it holds numbers of which nothing is known: {name[:100]}.")
        groups[group][rest] = value
    params = _params_from(kind, content)
    fitted: Any = content.get("fitted")
    seed = take(fitted, "seed", int, least=0)
    view = view_from(content.get("view"), groups["mean"], groups["scale"])
    own = take({"categories": None} | fitted, "categories", list[tuple[int, int]] | None)
    given = params.get("categories")  # None where the table says it; earlier files have them only here
    need(own is None or given is None or own == given, "its categories are not those of its parameters.")
    categories = _categories(given if own is None else own, view.n_features[0])
    net = _net(content.get("net"), groups["net"])
    members = take({"members": 1} | params, "members", int, least=1)
    sizes = [levels for _, levels in categories]
    counts = view.level_counts
    need(not counts or [len(own) for own in counts] == sizes, "its levels were counted wrongly.")
    free = {place for place, _ in view.monotone}.isdisjoint(place for place, _ in categories)
    need(free, "a monotone feature is a category.")
    made = constrained(net, view, categories)
    outline = _outline(made, view.n_inputs, categories, len(groups["net"]))
    check_weights(groups["net"], forms_of(outline.state_dict(), members))
    shapes = [tuple(p.shape) if members == 1 else (members, *p.shape) for p in _in_order(outline)]
    optimizer = _optimizer_of(groups["optimizer"], shapes, str(params.get("optimizer", "adamw")))
    generator = torch.Generator("cpu").manual_seed(seed)
    one = build_with_categories(made, view.n_inputs, categories, generator, counts)
    return _Kept(
        params=params,
        net=net,
        scorer=one if members == 1 else Stack.of_weights(one, groups["net"]),
        view=view,
        categories=categories,
        weights=groups["net"],
        optimizer=optimizer,
        history=check_history(fitted),
        best_score=take(fitted, "best_score", float | None),
        steps=take(fitted, "steps", int, least=0),
        interrupted=take(fitted, "interrupted", bool),
        seed=seed,
        partial_fits=take(fitted, "partial_fits", int, least=0),
        threshold=take({"threshold": None} | fitted, "threshold", float | None),
        table=check_table(content.get("table"), view.n_features),
        position_effects=_position_effects(fitted),
        calibration=Calibration.from_json(content.get("calibration")),
    )


def _position_effects(fitted: Any) -> dict[Any, float] | None:
    given = take(
        {"position_effects": None} | fitted, "position_effects", list[tuple[int | str, float]] | None
    )
    if given is None:
        return None
    found = {position: float(effect) for position, effect in given}
    right = len(found) == len(given) > 1 and len({type(position) for position in found}) == 1
    right = right and all(map(math.isfinite, found.values()))
    need(right, "its positions are not of one kind with an effect each.")
    return found


def _net(section: Any, weights: dict[str, Tensor]) -> Net:
    """Return the net, none of whose sizes is beyond what the weights can be for."""
    name = take(section, "name", str)
    if name not in NETS:
        raise ModelFileError(
            f"its net is {name[:100]!r}, of which nothing is known here. If it is a net of your own, import the module "
            "that registers it (entourage.nets.register) before the file is loaded; for a command, start it by: python "
            '-c "import THAT_MODULE; from entourage.cli import main; main()"'
        )
    kind = NETS[name]
    params = params_of(kind, section.get("params"))
    most = max(MOST_UNUSED, sum(value.numel() for value in weights.values()))
    for name, value in params.items():
        small = name == "max_subcontexts" or not isinstance(value, int) or value <= most
        need(small, f"{name}={value} is more than {kind.__name__} can have with the weights that are there.")
    return kind(**params)


class _WithoutNumbers(TorchFunctionMode):
    """Puts every tensor that is made on the meta device, and stops after ``most`` calls of torch."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.left = most

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self.left -= 1
        need(self.left > 0, "its net has more layers than there are weights.")
        moved = {name: "meta" if name == "device" else value for name, value in (kwargs or {}).items()}
        return func(*args, **moved)


def _outline(net: Net, n_features: int, categories: list[tuple[int, int]], count: int) -> Scorer:
    """Build a net of ``count`` tensors without taking memory for any."""
    gradients = torch.set_grad_enabled(
        torch.is_grad_enabled()
    )  # set back even if building stops while they are off
    with gradients, torch.device("meta"), _WithoutNumbers(CALLS_A_WEIGHT * (count + 10)):
        return build_with_categories(net, n_features, categories, torch.Generator("cpu"))


def _in_order(scorer: Scorer) -> list[Tensor]:
    """Return the parameters of one net as its optimiser counts them: see `Plan.make_optimizer`."""
    return sorted(scorer.parameters(), key=lambda p: p.ndim <= 1)


def _categories(given: list[list[int]] | None, n_features: int) -> list[tuple[int, int]]:
    categories = [(place, levels) for place, levels in given or ()]
    places = {place for place, _ in categories}
    right = len(places) == len(categories) and all(0 <= place < n_features for place in places)
    need(right, "categories are at places where objects have no feature, or twice at one.")
    return categories


def _optimizer_of(
    found: dict[str, Tensor], shapes: list[tuple[int, ...]], optimizer: str
) -> dict[str, Tensor]:
    """Return the state of the optimiser; nothing where it is that of another one than is set now."""
    kinds = check_optimizer(found, shapes)
    return found if kinds <= {optimizer} else {}
