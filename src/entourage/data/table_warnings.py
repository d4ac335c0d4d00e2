"""What a training table may not mean: choices read as ranks, rows that stand in a set twice."""

import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from entourage.data.coerce import Floats
from entourage.data.encoder import TableEncoder
from entourage.data.frames import arrow_table
from entourage.data.grouping import PackedTable
from entourage.data.sets import Sets
from entourage.errors import DataWarning

__all__ = ["warn_of_oddities"]

_SETS_AT_ONCE = 10_000  # so that features are not copied as a whole


def warn_of_oddities(frame: Any, packed: PackedTable, encoder: TableEncoder) -> None:
    """Say what a training table may not mean: choices read as ranks, rows that stand in a set twice."""
    if encoder.target_kind == "rank" and _looks_like_choices(packed.sets):
        warnings.warn(
            f"In every set one row has 1 in {encoder.target!r} and all others 0: as ranks, that row is the worst. "
            'Where 1 says what was chosen, give target_kind="choice" (--target-kind choice).',
            DataWarning,
            stacklevel=2,
        )
    elif encoder.target_kind == "rank" and "relevance" in str(encoder.target).lower():
        warnings.warn(
            f"{encoder.target!r} was read as ranks, smaller for better. Where larger is better, give "
            'target_kind="relevance" (--target-kind relevance).',
            DataWarning,
            stacklevel=2,
        )
    elif encoder.target_kind == "rank" and _looks_like_grades(packed.sets):
        warnings.warn(
            f"In most sets more than half of the rows share the best rank in {encoder.target!r}. Ranks are smaller for "
            "better. Where larger is better, as of grades, clicks or purchases, give target_kind (--target-kind): "
            "relevance, choice or subset.",
            DataWarning,
            stacklevel=2,
        )
    if _tells_nothing_apart(packed.sets):
        warnings.warn(
            "No feature differs between the objects of any set, so nothing tells them apart.",
            DataWarning,
            stacklevel=2,
        )
    twice = _rows_twice(arrow_table(frame), packed)
    if len(twice):
        first, second = twice[0]
        warnings.warn(
            f"{len(twice):,} row{'s' * (len(twice) != 1)} stand{'s' * (len(twice) == 1)} in a set twice, the same in "
            f"every column (row {second + 1:,} is row {first + 1:,} again). Where that isn't meant, drop duplicates.",
            DataWarning,
            stacklevel=2,
        )


def _looks_like_choices(sets: Sets) -> bool:
    """Whether in every set of three objects or more just one has a target of 1, and all others 0."""
    enough = np.flatnonzero(sets.sizes >= 3)
    if len(enough) == 0 or sets.targets is None:
        return False
    large = sets[enough]
    targets: Floats = large.targets  # type: ignore[assignment]
    if not np.isin(targets, (0, 1)).all():
        return False
    return bool((np.add.reduceat(targets, large.offsets[:-1]) == 1).all())


def _looks_like_grades(sets: Sets) -> bool:
    """Whether in most sets of three ranked objects or more, not all tied, more than half have the best rank."""
    if sets.targets is None:
        return False
    known = np.where(sets.targets < 0, np.nan, sets.targets)
    starts = sets.offsets[:-1]
    ranked = np.add.reduceat(~np.isnan(known), starts, dtype=np.int64)
    best = np.fmin.reduceat(known, starts)
    tied = np.add.reduceat(known == np.repeat(best, sets.sizes), starts, dtype=np.int64)
    asked = (ranked >= 3) & (tied < ranked)
    return bool(asked.any() and np.median(tied[asked] / ranked[asked]) > 0.5)


def _tells_nothing_apart(sets: Sets) -> bool:
    """Whether the objects of each set are alike in all features, though there are several."""
    if sets.sizes.max() < 2:
        return False
    for begin in range(0, len(sets), _SETS_AT_ONCE):  # mostly the first ones tell
        offsets = sets.offsets[begin : begin + _SETS_AT_ONCE + 1]
        objects = sets.objects[offsets[0] : offsets[-1]]
        first = np.repeat(sets.objects[offsets[:-1]], np.diff(offsets), axis=0)
        if not (objects == first).all():
            return False
    return True


def _rows_twice(table: pa.Table, packed: PackedTable) -> list[tuple[int, int]]:
    """Return pairs of the table's rows that are alike in every column and of one set."""
    sets = packed.sets
    key = sets.objects @ np.random.default_rng(0).normal(size=sets.n_features)  # equal for equal rows
    owner = np.repeat(np.arange(len(sets)), sets.sizes)
    order = np.lexsort((packed.order, key, owner))
    same = (owner[order][1:] == owner[order][:-1]) & (key[order][1:] == key[order][:-1])
    at = np.flatnonzero(same)
    if len(at) == 0:
        return []
    first, second = packed.order[order[at]], packed.order[order[at + 1]]
    alike = np.ones(len(at), dtype=bool)
    for column in table.columns:
        values = column.combine_chunks()
        values = values.indices if pa.types.is_dictionary(values.type) else values
        a, b = values.take(pa.array(first[alike])), values.take(pa.array(second[alike]))
        equal = pc.fill_null(pc.equal(a, b), False).to_numpy(zero_copy_only=False)
        both = pc.and_(a.is_null(), b.is_null()).to_numpy(zero_copy_only=False)
        alike[np.flatnonzero(alike)[~(equal | both)]] = False
        if not alike.any():
            return []
    pairs = zip(first[alike].tolist(), second[alike].tolist(), strict=True)
    return sorted(pairs, key=lambda pair: pair[1])
