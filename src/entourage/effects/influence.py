"""The objects of a table whose removal reverses the most preferences among the others of their set."""

from typing import Any

import numpy as np

from entourage.data.grouping import PackedTable
from entourage.estimators.base import without_each

__all__ = ["influential_objects"]


def influential_objects(model: Any, packed: PackedTable, *, most_sets: int = 500) -> list[dict[str, Any]]:
    """Return the objects of a table by the preference reversals that their removal causes, the most first.

    The reversal rate of an object is the share of pairs of the others in its set whose order by ``model`` changes when
    it is removed; 0 for a context-free model. Measured on the first ``most_sets`` sets of at least three objects.

    Returns
    -------
    list of dict
        ``row`` of the table, label of its ``set``, ``reversal_rate`` and the number of ``pairs`` it is a share of
    """
    chosen = np.flatnonzero(packed.sets.sizes >= 3)[:most_sets]
    if len(chosen) == 0:
        return []
    sets = packed.sets[chosen]
    whole = model.predict_scores(sets)
    reversed_share = np.empty(len(sets.objects))
    for _, rows, stay, without in without_each(model.predict_scores, sets):
        first, second = np.triu_indices(rows.shape[1] - 1, 1)
        for j, rest in enumerate(stay):
            before, after = whole[rows[:, rest]], without[:, j]  # (n, m - 1)
            gaps = (before[:, first] - before[:, second]) * (after[:, first] - after[:, second])  # (n, pairs)
            reversed_share[rows[:, j]] = (gaps < 0).mean(1)
    found = []
    for i, size, start in zip(chosen, sets.sizes, sets.offsets[:-1], strict=True):
        found += [
            {
                "row": int(packed.order[packed.sets.offsets[i] + j]),
                "set": packed.ids[int(i)].as_py(),
                "reversal_rate": float(reversed_share[start + j]),
                "pairs": int((size - 1) * (size - 2) // 2),
            }
            for j in range(size)
        ]
    return sorted(found, key=lambda entry: -entry["reversal_rate"])
