"""A profile of a table: its sets, sizes, columns and ties."""

from typing import Any

import numpy as np

from entourage.data.encoder import PackedTable, TableEncoder

__all__ = ["describe"]


def describe(packed: PackedTable, encoder: TableEncoder) -> dict[str, Any]:
    """Profile the data: sets, sizes, features, ties."""
    sets = packed.sets
    result: dict[str, Any] = {
        "sets": len(sets),
        "objects": len(sets.objects),
        "smallest": int(sets.sizes.min()),
        "largest": int(sets.sizes.max()),
        "sets_of_one": int((sets.sizes == 1).sum()),
        "columns": [
            {"name": c.name, "kind": c.kind, "role": c.role, "levels": len(c.levels), "missing": c.indicator}
            for c in encoder.columns
        ],
    }
    if sets.targets is not None:
        ties = ordered = 0
        for _, rows in sets.by_size():
            ranks = sets.targets[rows]
            known = ~np.isnan(ranks) & (ranks >= 0)
            both = np.triu(known[:, :, None] & known[:, None, :], 1)
            same = ranks[:, :, None] == ranks[:, None, :]
            ties += int((both & same).sum())
            ordered += int((both & ~same).sum())
        result |= {
            "tied_pairs": ties,
            "ordered_pairs": ordered,
            "unranked": int((np.isnan(sets.targets) | (sets.targets < 0)).sum()),
        }
    return result
