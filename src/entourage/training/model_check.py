"""Is what a file says what a model has? All of it is looked at before anything is made of it.

A checksum tells damage from intent, not a friend from a stranger: whoever changes a file can compute it anew. So
every value must fit the annotation of the parameter it is for, and a net is first built without its numbers, on
torch's "meta" device, whose shapes must be those of the weights in the file. Only then is memory taken: about as
much as the file has bytes, whatever sizes it speaks of.
"""

import contextlib
import inspect
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from types import UnionType
from typing import Any, NoReturn, TypeAlias, Union, get_args, get_origin

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from entourage.data.columns import Column
from entourage.data.encoder import TARGET_KINDS, TableEncoder
from entourage.errors import CheckpointError, ModelFileError, UserError, check_choice
from entourage.nets import NETS, Net, Scorer
from entourage.nets.embeddings import build_with_categories
from entourage.nets.ensemble import Stack
from entourage.training import tensor_file as model_file
from entourage.training.standardizer import Standardizer

__all__ = [
    "Kept",
    "check_checkpoint",
    "check_table",
    "check_versions",
    "fits",
    "need",
    "params_of",
    "read_seed",
    "refusing",
    "take",
    "unpack",
]

Form: TypeAlias = tuple[tuple[int, ...], torch.dtype]

MOST_UNUSED = 1_000_000  # a size of a net may exceed its weights where it plays no part: a width, at depth 0
CALLS_A_WEIGHT = 40  # of torch, to build a net, at most; nets need ten
NEVER_FROM_A_FILE = ("checkpoint", "device")  # a stranger's path, and a machine that is not this one
OPTIMIZERS = {"adamw": {"step", "exp_avg", "exp_avg_sq"}, "sgd": {"momentum_buffer"}}


# --- saying no ----------------------------------------------------------------------------------


@contextlib.contextmanager
def refusing(path: Any, error: type[UserError] = ModelFileError) -> Iterator[None]:
    """Turn whatever goes wrong with the content of a file into one error that names the file."""
    try:
        yield
    except UserError as reason:
        raise error(f"{path} can't be used: {str(reason)[:500]}") from reason
    except Exception as reason:  # whatever a stranger thought of: the cause is kept
        raise error(
            f"{path} can't be used: its content is malformed ({type(reason).__name__}). Take another copy, or train "
            "again."
        ) from reason


def refuse(reason: str) -> NoReturn:
    """Say what is wrong with the content of a file."""
    raise ModelFileError(f"{reason} Take another copy, or train again.")


def need(holds: bool, reason: str) -> None:
    """Refuse the file unless it holds."""
    if not holds:
        refuse(reason)


def fits(value: Any, kind: Any) -> bool:
    """Whether a value of JSON is of a kind, written as an annotation; lists stand for tuples and sequences.

    Whole numbers have 64 bits. A flag may be 0 or 1, a float may be infinite but not NaN. A dataclass is a dict of
    its fields, of which those with a default may be missing.

    Examples
    --------
    >>> fits([3, 4], tuple[int, int] | None), fits(True, int), fits(float("nan"), float)
    (True, False, False)
    """
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(fits(value, part) for part in parts)
    if kind in (None, type(None)):
        return value is None
    if kind is bool:
        return isinstance(value, bool) or (isinstance(value, int) and value in (0, 1))
    if kind in (int, float) and isinstance(value, int):
        return not isinstance(value, bool) and abs(value) < 2**63
    if kind is float:
        return isinstance(value, float) and not math.isnan(value)
    if kind is str:
        return isinstance(value, str)
    if origin is tuple:
        return isinstance(value, list) and len(value) == len(parts) and all(map(fits, value, parts))
    if origin in (list, Sequence):
        return isinstance(value, list) and all(fits(item, parts[0]) for item in value)
    if origin is Mapping:  # as entourage.estimators.model_file writes it: keys need not be text
        pairs = value.get("pairs") if isinstance(value, dict) and len(value) == 1 else None
        return isinstance(pairs, list) and all(
            isinstance(pair, list) and len(pair) == 2 and all(map(fits, pair, parts)) for pair in pairs
        )
    if is_dataclass(kind):
        return isinstance(value, dict) and all(
            fits(value[field.name], field.type)
            if field.name in value
            else field.default is not MISSING or field.default_factory is not MISSING
            for field in fields(kind)
        )
    return False


def take(section: Any, name: str, kind: Any, *, least: float | None = None, finite: bool = True) -> Any:
    """Return a value of a section of the file, if it is of this kind."""
    need(isinstance(section, dict) and name in section, f"{name!r} is missing.")
    value = section[name]
    right = fits(value, kind)
    if right and isinstance(value, float):
        right = math.isfinite(value) or not finite
    if right and isinstance(value, str):
        right = len(value) < 1000
    if right and least is not None and value is not None:
        right = value >= least
    need(right, f"{name!r} has a value that no model has.")
    return value


def params_of(
    kind: type, given: Any, *, leave: Sequence[str] = (), other: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return parameters of a constructor: names it knows, values of its annotations, or of those in ``other``.

    Those in ``leave`` are not even looked at.
    """
    need(isinstance(given, dict), f"the parameters of {kind.__name__} are missing.")
    known = {name: p.annotation for name, p in inspect.signature(kind).parameters.items()} | dict(other or {})
    unknown = sorted(set(given) - set(known))
    need(not unknown, f"{kind.__name__} has no parameter {', '.join(unknown[:3])[:100]}.")
    return {name: take(given, name, known[name], finite=False) for name in given if name not in leave}


def check_versions(content: dict[str, Any]) -> None:
    """See that the file says by which versions it was written."""
    versions = content.get("versions")
    right = isinstance(versions, dict) and all(isinstance(value, str) for value in versions.values())
    need(right, "'versions' is missing, or no text.")


# --- an estimator -------------------------------------------------------------------------------


@dataclass
class Kept:
    """What a file keeps of a fitted estimator, all of it checked."""

    params: dict[str, Any]
    net: Net
    scorer: Scorer  # of the right form; the weights are yet to be loaded
    standardise: Standardizer
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


def unpack(kind: type, content: dict[str, Any], tensors: dict[str, Tensor]) -> Kept:
    """Check all that a file says of an estimator, and build its net."""
    groups: dict[str, dict[str, Tensor]] = {"net": {}, "optimizer": {}, "mean": {}, "scale": {}}
    for name, value in tensors.items():
        group, _, rest = name.partition(".")
        need(group in groups, f"it holds numbers of which nothing is known: {name[:100]}.")
        groups[group][rest] = value
    params = params_of(kind, content.get("params"), leave=NEVER_FROM_A_FILE, other={"loss": str | None})
    need("net" not in params, "a net is among the parameters.")
    fitted: Any = content.get("fitted")
    seed = take(fitted, "seed", int, least=0)
    standardise = _standardizer(groups["mean"], groups["scale"])
    own = take({"categories": None} | fitted, "categories", list[tuple[int, int]] | None)
    given = params.get("categories")  # None where the table says it; earlier files have them here alone
    need(own is None or given is None or own == given, "its categories are not those of its parameters.")
    categories = _categories(given if own is None else own, standardise.n_features[0])
    net = _net(content.get("net"), groups["net"])
    members = take({"members": 1} | params, "members", int, least=1)
    outline = _outline(net, sum(standardise.n_features), categories, len(groups["net"]))
    check_weights(groups["net"], _stacked(outline.state_dict(), members))
    shapes = [tuple(p.shape) if members == 1 else (members, *p.shape) for p in _in_order(outline)]
    optimizer = _optimizer_of(groups["optimizer"], shapes, str(params.get("optimizer", "adamw")))
    generator = torch.Generator("cpu").manual_seed(seed)
    one = build_with_categories(net, sum(standardise.n_features), categories, generator)
    return Kept(
        params=params,
        net=net,
        scorer=one if members == 1 else Stack.of_weights(one, groups["net"]),
        standardise=standardise,
        categories=categories,
        weights=groups["net"],
        optimizer=optimizer,
        history=_history(fitted),
        best_score=take(fitted, "best_score", float | None),
        steps=take(fitted, "steps", int, least=0),
        interrupted=take(fitted, "interrupted", bool),
        seed=seed,
        partial_fits=take(fitted, "partial_fits", int, least=0),
        threshold=take({"threshold": None} | fitted, "threshold", float | None),
        table=check_table(content.get("table"), standardise.n_features),
    )


def _net(section: Any, weights: dict[str, Tensor]) -> Net:
    """Return the net, none of whose sizes is beyond what the weights can be for."""
    kind = NETS[check_choice("net", take(section, "name", str), NETS)]
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


def _stacked(weights: Mapping[str, Tensor], members: int) -> dict[str, Form]:
    """Return the names, shapes and types that the weights of so many nets have in a file."""
    if members == 1:
        return {name: (tuple(value.shape), value.dtype) for name, value in weights.items()}
    return {name.replace(".", "/"): ((members, *value.shape), value.dtype) for name, value in weights.items()}


def _in_order(scorer: Scorer) -> list[Tensor]:
    """Return the parameters of one net as its optimiser counts them: see `Plan.make_optimizer`."""
    return sorted(scorer.parameters(), key=lambda p: p.ndim <= 1)


def check_weights(found: Mapping[str, Tensor], expected: Mapping[str, Form], what: str = "the net") -> None:
    """See that weights have the names, shapes and types of a net, and are finite."""
    lacking, strange = sorted(set(expected) - set(found)), sorted(set(found) - set(expected))
    if lacking:
        raise ModelFileError(
            f"weights of {what} are missing: {', '.join(lacking[:3])}. An earlier Entourage wrote the file, or it was "
            "changed. Fit the model again."
        )
    need(not strange, f"{what} has no weights {', '.join(strange[:3])[:200]}.")
    for name, (shape, dtype) in expected.items():
        came = found[name]
        need(
            tuple(came.shape) == shape and came.dtype == dtype,
            f"weights {name} of {what} need shape {shape} of {dtype}; there is {tuple(came.shape)} of {came.dtype}.",
        )
        need(bool(came.isfinite().all()), f"weights {name} of {what} are infinite or NaN.")


def _standardizer(means: dict[str, Tensor], scales: dict[str, Tensor]) -> Standardizer:
    parts = [str(i) for i in range(len(means))]
    right = len(parts) in (1, 2) and set(means) == set(scales) == set(parts)
    need(right, "means and scales of the features are missing, or too many.")
    for part in parts:
        mean, scale = means[part], scales[part]
        right = mean.dtype == scale.dtype == torch.float64 and mean.ndim == 1 and mean.shape == scale.shape
        need(right, "means and scales of the features need one float64 a feature.")
        need(
            bool(mean.isfinite().all() and (scale > 0).all()),
            "means of features must be finite, and scales above 0.",
        )
    need(len(means["0"]) > 0, "objects have no features.")
    return Standardizer(*(tuple(group[part].numpy() for part in parts) for group in (means, scales)))


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


def check_optimizer(found: Mapping[str, Tensor], shapes: Sequence[tuple[int, ...]]) -> set[str]:
    """See that an optimiser's state is whole, finite and of the shapes of its parameters; return whose it is."""
    names: dict[str, set[str]] = {}
    allowed = set().union(*OPTIMIZERS.values())
    places = {str(i): shape for i, shape in enumerate(shapes)}
    for key, value in found.items():
        place, _, name = key.partition(".")
        need(place in places and name in allowed, f"no optimiser has {key[:100]}.")
        shape = () if name == "step" else places[place]
        need(
            tuple(value.shape) == shape and value.dtype == torch.float32 and bool(value.isfinite().all()),
            f"{key} of the optimiser has another shape or type than its weights, or is infinite or NaN.",
        )
        names.setdefault(place, set()).add(name)
    kinds = {kind for kind, whole in OPTIMIZERS.items() if whole in names.values()}
    right = len(kinds) <= 1 and all(own == OPTIMIZERS[kind] for kind in kinds for own in names.values())
    need(right and (not names or bool(kinds)), "the state of the optimiser is not whole.")
    return kinds


def _history(section: Any) -> list[dict[str, Any]]:
    rows: Any = section.get("history") if isinstance(section, dict) else None
    need(isinstance(rows, list), "'history' is missing.")
    for row in rows:
        right = isinstance(row, dict) and {"step", "learning_rate", "loss"} <= set(row)
        halves = row.get("halves", [0.0, 0.0]) if right else []
        right = right and fits(halves, tuple[float, float]) and all(map(math.isfinite, halves))
        right = right and all(
            fits(value, float) and math.isfinite(value) for name, value in row.items() if name != "halves"
        )
        need(right, "a row of 'history' is no row of numbers.")
    return list(rows)


def check_table(table: Any, n_features: tuple[int, int]) -> dict[str, Any] | None:
    """Return what turns tables into sets, if it gives as many features as the model has; None where there is none."""
    if table is None:
        return None
    need(fits(table, TableEncoder), "'table' is not what turns a table into sets.")
    known = {field.name for field in fields(Column)}
    columns = [
        {name: value for name, value in column.items() if name in known} for column in table["columns"]
    ]
    encoder = TableEncoder.from_json(table | {"columns": columns})
    check_choice("target_kind", encoder.target_kind, TARGET_KINDS)
    for column in encoder.columns:
        check_choice("the kind of a column", column.kind, ["number", "flag", "category", "code"])
        check_choice("the role of a column", column.role, ["object", "situation"])
        need(math.isfinite(column.fill), "what stands for a missing number is infinite.")
    widths = tuple(
        sum(column.width for column in encoder.columns if column.role == role)
        for role in ("object", "situation")
    )
    need(
        widths == tuple(n_features),
        f"'table' gives {widths} features, and the model has {tuple(n_features)}.",
    )
    return {**table, "columns": columns}


# --- a checkpoint -------------------------------------------------------------------------------


def read_seed(path: str | os.PathLike[str]) -> int:
    """Return the seed of the run that a checkpoint is of."""
    content, _ = model_file.read(path, "checkpoint")
    with refusing(path, CheckpointError):
        return int(take(content, "seed", int, least=0))


def check_checkpoint(
    path: Any,
    content: dict[str, Any],
    tensors: Mapping[str, Tensor],
    weights: Mapping[str, Tensor],
    parameters: Sequence[Tensor],
    *,
    averaged: bool,
) -> None:
    """See that a checkpoint holds the state of a run with these weights and parameters of its optimiser."""
    with refusing(path, CheckpointError):
        groups: dict[str, dict[str, Tensor]] = {"net": {}, "optimizer": {}, "average": {}, "best": {}}
        for name, value in tensors.items():
            group, _, rest = name.partition(".")
            need(group in groups, f"it holds numbers of which nothing is known: {name[:100]}.")
            groups[group][rest] = value
        best = take(content, "best_score", float | None)
        expected = _stacked(weights, 1)
        for group, there in (("net", True), ("average", averaged), ("best", best is not None)):
            check_weights(groups[group], expected if there else {}, group)
        check_optimizer(groups["optimizer"], [tuple(p.shape) for p in parameters])
        take(content, "step", int, least=0)
        take(content, "since_best", int, least=0)
        _history(content)
