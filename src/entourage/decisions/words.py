"""Estimates in words and in JSON."""

from typing import Any

import numpy as np

from entourage.decisions.intervals import Estimate

__all__ = ["as_json", "in_words", "matrix_json"]


def in_words(found: Estimate, shape: str = "{:.4g}") -> str:
    """Say a number with its interval, and where that is from.

    Examples
    --------
    >>> in_words(Estimate(-1.25, -1.5, -1.0, "draws")), in_words(Estimate(-1.25))
    ('-1.25 [-1.5, -1] (draws)', '-1.25')
    """
    value = shape.format(found.value)
    if found.low is None or np.isnan(found.low):
        return "not identified" if np.isnan(found.value) else value
    return f"{value} [{shape.format(found.low)}, {shape.format(found.high)}] ({found.method})"


def as_json(found: Estimate) -> dict[str, Any]:
    """Return a number with its interval; None where it is not known."""
    return {
        "value": _number(found.value),
        "interval": None if found.low is None else [_number(found.low), _number(found.high)],
        "method": found.method,
    }


def matrix_json(matrix: Any) -> list[list[float | None]]:
    """Return a matrix, None where a number is not known."""
    return [[_number(value) for value in row] for row in np.asarray(matrix).tolist()]


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
