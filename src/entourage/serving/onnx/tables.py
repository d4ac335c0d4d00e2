"""Columns of a table to features, in a graph: what :mod:`entourage.data.columns` does, for cells that are numbers.

A cell comes as one number. Of a number or a flag it is the value; of text it is the place of its level, from 0, or -1
for a text that is none of the levels. NaN is a missing value.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from entourage.data.columns import Column
from entourage.serving.onnx.scorer import MOST, Floats, doubles, finite

__all__ = ["OTHER", "CodedColumns", "PlainFeatures", "draw_cells", "texts_of"]

OTHER = -1.0  # a text that is none of the levels
MISSING = 0.1  # of the cells that are drawn


class PlainFeatures(nn.Module):
    """Features as they are, of a model that was fitted to arrays."""

    most: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("most", doubles(MOST))

    def forward(self, raw: Tensor) -> tuple[Tensor, Tensor]:
        """Return the features, and which are valid: those that are finite."""
        valid = finite(raw, self.most)
        return torch.where(valid, raw, 0.0), valid


class CodedColumns(nn.Module):
    """Cells ``(..., columns)`` to features ``(..., d)``: imputation, indicators, one-hot and codes.

    Every feature is one of three: a value with something in place of missing ones, whether a cell is missing, or
    whether it is a certain level.

    Parameters
    ----------
    columns : of one role
    marks : numbers that stand for a missing value

    Examples
    --------
    >>> columns = [
    ...     Column("age", "number", "object", fill=30.0, indicator=True),
    ...     Column("team", "category", "object", levels=["red", "blue"]),
    ... ]
    >>> coded = CodedColumns(columns)
    >>> coded(torch.tensor([[25.0, 1.0], [torch.nan, -1.0]]).double())[0].tolist()
    [[25.0, 0.0, 0.0, 1.0], [30.0, 1.0, 0.0, 0.0]]
    """

    source: Tensor
    fill: Tensor
    shift: Tensor
    target: Tensor
    is_value: Tensor
    is_missing: Tensor
    text: Tensor
    marks: Tensor
    low: Tensor
    high: Tensor
    whole: Tensor

    def __init__(self, columns: Sequence[Column], marks: Sequence[float] = ()) -> None:
        super().__init__()
        rows: list[tuple[int, str, float, float, float]] = []  # column, what, fill, shift, level
        for i, column in enumerate(columns):
            if column.kind == "code":
                rows.append((i, "value", OTHER, 1.0, 0.0))  # 0 where there is none, or another
            elif column.kind == "category":
                rows += [(i, "level", 0.0, 0.0, float(level)) for level in range(len(column.levels))]
                rows += [(i, "level", 0.0, 0.0, OTHER)] * column.rest
            else:
                rows.append((i, "value", column.fill, 0.0, 0.0))
                rows += [(i, "missing", 0.0, 0.0, 0.0)] * column.indicator
        source, what, fill, shift, target = zip(*rows, strict=True)
        text = [column.kind in ("category", "code") for column in columns]
        bounds = [_bounds(column) for column in columns]
        self.register_buffer("source", torch.tensor(source, dtype=torch.int64))
        self.register_buffer("fill", doubles(fill))
        self.register_buffer("shift", doubles(shift))
        self.register_buffer("target", doubles(target))
        self.register_buffer("is_value", torch.tensor([one == "value" for one in what]))
        self.register_buffer("is_missing", torch.tensor([one == "missing" for one in what]))
        self.register_buffer("text", torch.tensor(text))
        self.register_buffer("marks", doubles(list(marks)))
        self.register_buffer("low", doubles([low for low, _ in bounds]))
        self.register_buffer("high", doubles([high for _, high in bounds]))
        self.register_buffer("whole", torch.tensor([column.kind != "number" for column in columns]))
        self.has_marks = len(marks) > 0

    def forward(self, raw: Tensor) -> tuple[Tensor, Tensor]:
        """Return features, and which cells are valid: finite, a flag 0 or 1, a level one that there is."""
        inside = (raw >= self.low) & (raw <= self.high) & (~self.whole | (raw == raw.floor()))
        absent = torch.isnan(raw)
        if self.has_marks:
            marked = (raw.unsqueeze(-1) == self.marks).any(-1)
            absent = absent | (marked & ~self.text)
        wide, missing = raw.index_select(-1, self.source), absent.index_select(-1, self.source)
        value = torch.where(missing, self.fill, wide) + self.shift
        yes = (self.is_missing & missing) | (~self.is_missing & (wide == self.target))
        return torch.where(self.is_value, value, yes.double()), inside | absent


def _bounds(column: Column) -> tuple[float, float]:
    if column.kind == "number":
        return -MOST, MOST
    return (0.0, 1.0) if column.kind == "flag" else (OTHER, len(column.levels) - 1.0)


def draw_cells(
    columns: Sequence[Column], features: Floats, ids: Sequence[int], rng: np.random.Generator
) -> Floats:
    """Draw cells, given features that were drawn: numbers from these, levels at random, some of both missing.

    ``ids`` are places of features whose column is never missing.
    """
    shape, at, found = features.shape[:-1], 0, []
    for column in columns:
        needed = any(at <= place < at + column.width for place in ids)
        if column.kind == "number":
            cells = features[..., at].copy()
        elif column.kind == "flag":
            cells = rng.integers(0, 2, size=shape).astype(np.float64)
        else:
            cells = rng.integers(0 if needed else -1, len(column.levels), size=shape).astype(np.float64)
        if not needed:
            cells[rng.random(shape) < MISSING] = np.nan
        found.append(cells)
        at += column.width
    return np.stack(found, axis=-1)


def texts_of(cells: NDArray[Any], column: Column, unknown: str) -> list[Any]:
    """Return what a table would hold: numbers, booleans or text, None where it is missing."""
    if column.kind == "number":
        return [None if np.isnan(cell) else float(cell) for cell in cells]
    if column.kind == "flag":
        return [None if np.isnan(cell) else bool(cell) for cell in cells]
    return [None if np.isnan(c) else unknown if c < 0 else column.levels[int(c)] for c in cells]
