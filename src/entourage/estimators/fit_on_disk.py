"""A model fitted to a table that is larger than memory."""

import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from entourage.data.memory_mapped import fit_encoder, open_sets, write_sets
from entourage.data.parquet_files import open_sources
from entourage.data.places import find_files
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
    here, mark = processes_here(), Path(folder) / "launch.txt"
    again = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0

    def write() -> str:
        own = _identity(path, roles)
        if not (again and mark.exists() and mark.read_text() == own):
            mark.unlink(missing_ok=True)
            write_sets(path, folder, fit_encoder(path, **roles), on_rows)
            mark.write_text(own)
        return own

    written = here.first_does(write)
    if here.several and not (mark.exists() and mark.read_text() == written):
        raise DataError(
            f"{folder} must be seen by all processes; process {here.rank} finds no sets of this launch there."
        )
    sets = open_sets(folder)
    model.fit(sets)
    return sets


def _identity(path: Any, roles: dict[str, Any]) -> str:
    """Identify a launch and what it writes: many launches have the same name ("none", unless one is given)."""
    sources = open_sources(find_files(str(path)))
    files = [(file.path, file.size, file.modified) for file in sources.files]
    content = repr((files, sorted(roles.items())))
    return f"{os.environ.get('TORCHELASTIC_RUN_ID', '')} {sha256(content.encode()).hexdigest()}"
