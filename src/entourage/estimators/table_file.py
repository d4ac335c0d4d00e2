"""What a model file keeps of the table that a model learnt from: see :class:`entourage.data.encoder.TableEncoder`."""

import math
from dataclasses import fields
from typing import Any

from entourage.data.columns import Column
from entourage.data.encoder import TARGET_KINDS, TableEncoder
from entourage.errors import check_choice
from entourage.training.file_checks import fits, need

__all__ = ["check_table"]


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
