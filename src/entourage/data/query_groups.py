"""Sets of what rankers by LightGBM and XGBoost take: rows of features, labels, and the sizes of queries."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from entourage.data.coerce import as_numpy, as_objects, as_targets, offsets_of
from entourage.data.sets import Sets
from entourage.errors import DataError, ParameterError, ShapeError

__all__ = ["sets_from_groups"]


def sets_from_groups(
    X: ArrayLike,
    group: ArrayLike,
    *,
    relevance: ArrayLike | None = None,
    ranks: ArrayLike | None = None,
    situation: ArrayLike | None = None,
) -> Sets:
    """Make sets of rows whose queries stand one after the other, as in ``lgb.Dataset(X, y, group=group)``.

    Parameters
    ----------
    X : array of shape (rows, features)
    group : how many rows each query has; they add up to all rows
    relevance : a grade for each row, larger = better, NaN or negative where it was not judged. The best grade becomes
        rank 0, and grade 0 counts as irrelevant in metrics of grades
    ranks : instead, a rank for each row: smaller = better, NaN or -1 where it is not ranked
    situation : features of the queries, of shape (queries, features)

    Examples
    --------
    >>> sets = sets_from_groups([[0.1], [0.7], [0.3]], group=[2, 1], relevance=[0, 2, 1])
    >>> sets, sets.targets.tolist(), sets.worst
    (Sets(2 sets of 1 to 2 objects, 1 feature, targets), [2.0, 0.0, 1.0], 2.0)
    """
    objects, sizes = as_objects(X), as_numpy(group)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu":
        raise ShapeError(
            f"group needs the size of each query, whole numbers on one axis; got {sizes.dtype} of shape {sizes.shape}."
        )
    if len(sizes) == 0 or sizes.min() < 1:
        raise DataError("group needs at least one row for each query; leave empty queries out.")
    if sizes.sum() != len(objects):
        hint = ""
        if len(sizes) == len(objects):
            hint = (
                " If these are the queries' ids, one a row, pass a table: fit(frame, set_id=..., target=..., "
                'target_kind="relevance").'
            )
        raise ShapeError(
            f"The sizes in group must add up to the {len(objects):,} rows of X; they add up to {sizes.sum():,}.{hint}"
        )
    if relevance is not None and ranks is not None:
        raise ParameterError("relevance and ranks both came; pass the one that your labels are.")
    targets: Any
    if relevance is not None:
        targets, worst = _ranks_of(relevance, len(objects))
    else:
        targets, worst = ranks if ranks is None else as_targets(ranks, len(objects)), None
        if targets is not None:
            targets = np.where(targets == -1, np.nan, targets)
    return Sets(objects, offsets_of(sizes), targets, situation, worst=worst)


def _ranks_of(relevance: ArrayLike, n_objects: int) -> tuple[Any, float | None]:
    """Return the rank of each row, and that of grade 0."""
    grades = as_numpy(relevance)
    if grades.dtype.kind not in "iuf" or grades.shape != (n_objects,):
        raise ShapeError(
            f"relevance needs one number for each of the {n_objects:,} rows of X; got {grades.dtype} of shape "
            f"{grades.shape}."
        )
    grades = np.where(grades < 0, np.nan, grades.astype(np.float64))
    if np.isinf(grades).any():
        raise DataError("relevance holds an infinite grade; grades must be finite, or NaN where not judged.")
    if np.isnan(grades).all():
        return as_targets(grades, n_objects), None
    best = float(np.nanmax(grades))
    return best - grades, best
