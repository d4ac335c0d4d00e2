"""Checks of the content of model files: every value is checked before it is used.

A checksum detects damage, not malice: anybody who changes a file can compute it anew. So
every value must be of the kind that is expected, and every tensor of the shape, type and finite.
"""

import contextlib
import inspect
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from types import UnionType
from typing import Any, NoReturn, TypeAlias, Union, get_args, get_origin

import numpy as np
import torch
from torch import Tensor

from entourage.errors import ModelFileError, UserError

__all__ = [
    "Arrays",
    "Form",
    "check_history",
    "check_optimizer",
    "check_versions",
    "check_weights",
    "fits",
    "forms_of",
    "need",
    "params_of",
    "refuse",
    "refusing",
    "take",
]

Shape: TypeAlias = tuple[int, ...]
Form: TypeAlias = tuple[Shape, torch.dtype]

OPTIMIZERS = {"adamw": {"step", "exp_avg", "exp_avg_sq"}, "sgd": {"momentum_buffer"}}


@contextlib.contextmanager
def refusing(path: Any, error: type[UserError] = ModelFileError) -> Iterator[None]:
    """Turn whatever goes wrong with the content of a file into one error that names the file."""
    try:
        yield
    except UserError as reason:
        raise error(f"{path} can't be used: {str(reason)[:500]}") from reason
    except Exception as reason:  # whatever a malicious file may cause: the cause is kept
        raise error(
            f"{path} can't be used: its content is malformed ({type(reason).__name__}). Take another copy, or train "
            "again."
        ) from reason


def refuse(reason: str) -> NoReturn:
    """Say what is wrong with the content of a file."""
    raise ModelFileError(f"{reason} Take another copy, or train again.")


def need(holds: bool, reason: str) -> None:
    """Refuse the file unless the condition holds."""
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

    Those in ``leave`` are not checked.
    """
    need(isinstance(given, dict), f"the parameters of {kind.__name__} are missing.")
    known = {name: p.annotation for name, p in inspect.signature(kind).parameters.items()} | dict(other or {})
    unknown = sorted(set(given) - set(known))
    need(not unknown, f"{kind.__name__} has no parameter {', '.join(unknown[:3])[:100]}.")
    return {name: take(given, name, known[name], finite=False) for name in given if name not in leave}


def check_versions(content: dict[str, Any]) -> None:
    """Check that the file names the versions that wrote it."""
    versions = content.get("versions")
    right = isinstance(versions, dict) and all(isinstance(value, str) for value in versions.values())
    need(right, "'versions' is missing, or no text.")


def forms_of(weights: Mapping[str, Tensor], members: int = 1) -> dict[str, Form]:
    """Return the names, shapes and types that the weights of so many nets have in a file."""
    if members == 1:
        return {name: (tuple(value.shape), value.dtype) for name, value in weights.items()}
    return {name.replace(".", "/"): ((members, *value.shape), value.dtype) for name, value in weights.items()}


def check_weights(found: Mapping[str, Tensor], expected: Mapping[str, Form], what: str = "the net") -> None:
    """Check that weights have the names, shapes and types of a net, and are finite."""
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


def check_optimizer(found: Mapping[str, Tensor], shapes: Sequence[tuple[int, ...]]) -> set[str]:
    """Check that an optimiser's state is whole, finite and of the shapes of its parameters; return whose it is."""
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


def check_history(section: Any) -> list[dict[str, Any]]:
    """Return the history of a training, if it is rows of numbers."""
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


class Arrays:
    """The arrays of a file, taken one by one."""

    def __init__(self, tensors: dict[str, Tensor]) -> None:
        self.left = dict(tensors)

    def take(
        self, name: str, shape: Shape | None, *dtypes: torch.dtype, finite: bool = False
    ) -> np.ndarray[Any, Any]:
        """Return an array of this shape, or of one axis of any length, in float64 unless said otherwise."""
        need(name in self.left, f"{name!r} is missing.")
        value = self.left.pop(name)
        right = value.dtype in (dtypes or (torch.float64,))
        right = right and (value.ndim == 1 if shape is None else tuple(value.shape) == shape)
        need(
            right, f"{name!r} has shape {tuple(value.shape)} of {value.dtype}, which doesn't fit the others."
        )
        need(not finite or bool(value.isfinite().all()), f"{name!r} is infinite or NaN.")
        return value.numpy().copy()

    def must_be_empty(self) -> None:
        """Refuse arrays that were not taken."""
        need(not self.left, f"it holds arrays that the model doesn't have: {', '.join(self.left)[:100]}.")
