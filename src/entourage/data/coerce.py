"""Any accepted input as checked arrays: objects, offsets, targets, situation; errors say what was needed."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entourage.errors import DataError, ShapeError

__all__ = [
    "Floats",
    "Index",
    "Seed",
    "as_numpy",
    "as_objects",
    "as_offsets",
    "as_rows",
    "as_situation",
    "as_targets",
    "check_finite",
    "offsets_of",
    "pack_array",
    "pack_list",
]

Floats: TypeAlias = NDArray[np.floating[Any]]
Index: TypeAlias = NDArray[np.int64]
Seed: TypeAlias = int | np.random.Generator | None


def as_numpy(values: Any) -> NDArray[Any]:
    """Make a NumPy array of any array-like, torch tensors included."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        values = values.float() if values.is_floating_point() and values.itemsize < 4 else values
    try:
        return np.asarray(values)
    except ValueError:
        raise ShapeError("Rows of differing lengths can't form an array; pass a list of arrays.") from None


def as_objects(values: ArrayLike) -> Floats:
    """Return features of objects, (objects, features)."""
    return _as_floats(values, "objects", axes="(objects, features)", ndim=2)


def as_situation(values: ArrayLike, n_sets: int) -> Floats:
    """Return features of situations, (sets, situation features), after a check that there is a row for each set."""
    array = _as_floats(values, "situation", axes="(sets, situation features)", ndim=2)
    if len(array) != n_sets:
        raise ShapeError(f"situation needs one row a set: {n_sets} sets, but {len(array)} rows came.")
    return array


def _as_floats(values: ArrayLike, name: str, *, axes: str, ndim: int) -> Floats:
    """Return features as float32 where they are, else as float64; ``name`` and ``axes`` are for errors."""
    array = as_numpy(values)
    if array.ndim != ndim:
        raise ShapeError(f"{name} needs {ndim} axes {axes}; got shape {array.shape}.")
    if array.shape[1] < 1:
        raise ShapeError(f"{name} needs at least one feature; got shape {array.shape}.")
    if array.dtype == np.float32:
        return np.ascontiguousarray(array)
    if array.dtype.kind == "c":
        raise DataError(f"{name} needs real numbers; got {array.dtype}. Pass real and imaginary parts.")
    try:
        return np.ascontiguousarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(
            f"{name} needs numbers; got an array of type {array.dtype}. Encode text and categories first."
        ) from None


def pack_array(X: ArrayLike) -> tuple[NDArray[Any], Index]:
    """Return the objects of an ``(n, m, d)`` array, (n m, d), and the offsets of its sets."""
    array = as_numpy(X)
    if array.ndim != 3:
        single = " For a single set, pass X[None]." if array.ndim == 2 else ""
        raise ShapeError(f"X needs 3 axes (sets, objects, features); got shape {array.shape}.{single}")
    n, m, d = array.shape
    if n * m == 0:
        raise DataError(f"X holds no objects: its shape is {array.shape}. At least one set is needed.")
    return array.reshape(n * m, d), np.arange(0, n * m + 1, m, dtype=np.int64)


def pack_list(X: Sequence[ArrayLike]) -> tuple[NDArray[Any], Index]:
    """Return the objects of a list of ``(m, d)`` arrays, one below the other, and the offsets of the sets."""
    if len(X) == 0:
        raise DataError("X is an empty list. At least one set is needed.")
    parts = [as_numpy(part) for part in X]
    d = parts[0].shape[-1] if parts[0].ndim else 0
    for i, part in enumerate(parts):
        if part.ndim != 2 or part.shape[1] != d:
            raise ShapeError(
                f"Each set needs 2 axes (objects, features) and all sets the same {d} features; "
                f"set {i} has shape {part.shape}."
            )
    return np.concatenate(parts), offsets_of(np.fromiter(map(len, parts), dtype=np.int64, count=len(parts)))


def offsets_of(sizes: NDArray[np.integer[Any]]) -> Index:
    """Return where sets of these sizes begin, and where the last one ends.

    Examples
    --------
    >>> offsets_of(np.array([3, 5])).tolist()
    [0, 3, 8]
    """
    offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
    sizes.cumsum(out=offsets[1:])
    return offsets


def as_offsets(values: ArrayLike, n_objects: int) -> Index:
    """Check offsets: they run from 0 to the number of objects, and no set is empty."""
    given = np.asarray(values)
    if given.dtype.kind not in "iu":
        raise ShapeError(f"offsets needs whole numbers; got {given.dtype}.")
    offsets = np.ascontiguousarray(given, dtype=np.int64)
    if offsets.ndim != 1 or len(offsets) < 2:
        raise ShapeError(
            f"offsets needs one axis of (sets + 1) entries; got shape {offsets.shape}. "
            "At least one set is needed."
        )
    if offsets[0] != 0 or offsets[-1] != n_objects:
        raise ShapeError(
            f"offsets must run from 0 to the number of objects, {n_objects}; "
            f"they run from {offsets[0]} to {offsets[-1]}."
        )
    sizes = offsets[1:] - offsets[:-1]
    if sizes.min() < 1:
        raise DataError(
            f"Set {int(np.argmax(sizes < 1))} holds no object; leave empty sets out, "
            "since there is nothing in them to rank."
        )
    return offsets


def as_rows(targets: Any, sizes: Index) -> list[Floats]:
    """Check that there is a row of targets for each set, with an entry for each of its objects."""
    if not hasattr(targets, "__len__"):
        raise ShapeError(f"Targets need a row for each of {len(sizes)} sets; got {targets!r}.")
    if len(targets) != len(sizes):
        raise ShapeError(f"{len(sizes)} sets came with the targets of {len(targets)}.")
    if hasattr(targets, "detach") or (isinstance(targets, np.ndarray) and targets.dtype != object):
        array = _numbers(as_numpy(targets))  # no Python loop over sets
        if array.ndim != 2 or (sizes != array.shape[1]).any():
            wanted = (len(sizes), int(sizes[0])) if (sizes == sizes[0]).all() else "one row a set"
            raise ShapeError(f"Targets need one entry per object, {wanted}; got shape {array.shape}.")
        return [array.reshape(-1)]
    rows = [_numbers(as_numpy(row)).reshape(-1) for row in targets]
    given = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    if (given != sizes).any():
        i = int(np.argmax(given != sizes))
        raise ShapeError(f"Set {i} has {sizes[i]} objects but {given[i]} targets.")
    return rows


def as_targets(targets: ArrayLike, n_objects: int) -> Floats:
    """Check packed targets, one an object."""
    array = np.ascontiguousarray(_numbers(as_numpy(targets)))
    if array.shape != (n_objects,):
        raise ShapeError(
            f"Targets need one entry per object, {n_objects} in all; got shape {np.shape(targets)}."
        )
    return array


def check_finite(objects: Floats, offsets: Index, situation: Floats | None) -> None:
    """Refuse features that are NaN or infinite, and say where the first of them is."""
    if not np.isfinite(objects).all():
        row, feature = np.argwhere(~np.isfinite(objects))[0]
        i = int(np.searchsorted(offsets, row, side="right")) - 1
        raise DataError(
            f"Features must be finite; set {i}, object {row - offsets[i]}, feature {feature} is "
            f"{objects[row, feature]}. Impute or drop it first."
        )
    if situation is not None and not np.isfinite(situation).all():
        i, feature = np.argwhere(~np.isfinite(situation))[0]
        raise DataError(
            f"Situation features must be finite; set {i}, feature {feature} is "
            f"{situation[i, feature]}. Impute or drop it first."
        )


def _numbers(array: NDArray[Any]) -> Floats:
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError("Targets need numbers: a rank for each object, NaN where there is none.") from None
