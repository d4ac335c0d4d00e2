"""A model fitted to a table that is larger than memory."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from entourage.data.memory_mapped import fit_encoder, open_sets, write_sets
from entourage.data.sets import Sets
from entourage.errors import DataError
from entourage.estimators.net_estimator import NetEstimator
from entourage.training.processes import processes_here

__all__ = ["fit_on_disk"]


def fit_on_disk(
    path: Any,
    folder: Any,
    model: NetEstimator,
    on_rows: Callable[[int, int], None] = lambda done, total: None,
    **roles: Any,
) -> Sets:
    """Fit an estimator to a Parquet file that need not fit into memory; its features are laid out in ``folder``.

    The rows of a set must stand together. ``roles`` are those of `TableEncoder.fit`. Of several processes that train
    together the first one writes, and each reads what it needs of every batch. Where a launch starts them again, what
    it has written is kept.
    """
    mark, launch = Path(folder) / "launch.txt", os.environ.get("TORCHELASTIC_RUN_ID", "")

    def write() -> None:
        if launch and mark.exists() and mark.read_text() == launch:
            return
        mark.unlink(missing_ok=True)
        write_sets(path, folder, fit_encoder(path, **roles), on_rows)
        mark.write_text(launch)

    here = processes_here()
    here.first_does(write)
    if here.several and not mark.exists():
        raise DataError(f"{folder} must be seen by all processes; process {here.rank} finds no sets there.")
    sets = open_sets(folder)
    model.fit(sets)
    return sets
