"""A model fitted to a table that is larger than memory."""

from collections.abc import Callable
from typing import Any

from entourage.data.memory_mapped import fit_encoder, write_sets
from entourage.data.sets import Sets
from entourage.estimators.net_estimator import NetEstimator

__all__ = ["fit_on_disk"]


def fit_on_disk(
    path: Any,
    folder: Any,
    model: NetEstimator,
    on_rows: Callable[[int, int], None] = lambda done, total: None,
    **roles: Any,
) -> Sets:
    """Fit an estimator to a Parquet file that need not fit into memory; its features are laid out in ``folder``.

    The rows of a set must stand together. ``roles`` are those of `TableEncoder.fit`.
    """
    encoder = fit_encoder(path, **roles)
    sets = write_sets(path, folder, encoder, on_rows)
    model.fit(sets)
    return sets
