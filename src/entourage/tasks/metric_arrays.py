"""What all metrics share: checked arrays in, a value for each set or their mean out."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from entourage.errors import DataError, ShapeError

__all__ = ["Bools", "Floats", "as_arrays", "over_sets"]

Floats: TypeAlias = NDArray[Any]
Bools: TypeAlias = NDArray[Any]


def as_arrays(scores: Any, ranks: Any, mask: Any) -> tuple[Floats, Floats, Bools]:
    """Return scores, ranks and which objects are ranked, as checked arrays."""
    s, r = (_as_numpy(values, np.float64) for values in (scores, ranks))
    if s.ndim != 2 or s.shape != r.shape:
        raise ShapeError(
            "scores and ranks need the same shape (sets, objects); "
            f"got {s.shape} and {r.shape}. For a single set, pass scores[None] and ranks[None]."
        )
    known = r >= 0  # False for NaN too
    if mask is not None:
        there = _as_numpy(mask, np.bool_)
        if there.shape != s.shape:
            raise ShapeError(f"mask needs the shape of scores, {s.shape}; got {there.shape}.")
        known = known & there
    if np.isinf(r[known]).any():
        raise DataError("Ranks must be finite; for 'not ranked' give NaN or -1.")
    if np.isnan(s[known]).any():
        i, j = np.argwhere(known & np.isnan(s))[0]
        raise DataError(f"Scores must be numbers; that of set {i}, object {j} is NaN.")
    largest = np.finfo(np.float64).max  # an infinite score is still before the padding
    return np.where(known, np.clip(s, -largest, largest), 0.0), np.where(known, r, 0.0), known


def _as_numpy(values: Any, dtype: type[np.generic]) -> NDArray[Any]:
    if hasattr(values, "detach"):  # a torch tensor, wherever it is
        values = values.detach().cpu()
        values = values.float() if values.is_floating_point() and values.itemsize < 4 else values
    return np.asarray(values, dtype=dtype)


def over_sets(values: Floats, defined: Bools, per_set: bool) -> Any:
    """Return a value for each set, NaN where it has none, or their mean."""
    if per_set:
        return np.where(defined, values, np.nan)
    return float(values[defined].mean()) if defined.any() else float("nan")
