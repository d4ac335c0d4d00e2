"""Runs of equal set ids in rows that are read a batch at a time: where they begin, and a hash of each id.

A set whose rows stand together is one run. Whether an id comes back later is decided without keeping the ids: not at
all where they ascend, else by 64-bit hashes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

__all__ = ["Runs", "hash_ids", "plain_ids", "read_runs", "run_starts"]

Hashes: TypeAlias = NDArray[np.uint64]

_BYTES = 1 << 20  # of ids that are hashed at a time


@dataclass(frozen=True)
class Runs:
    """What the set ids of consecutive rows say.

    Attributes
    ----------
    ends : the first id and the last
    begins : for each place that was asked for, the first row at it or after it with which a set begins; None where
        there is none. The first row of all is never meant: what stands before it isn't known here.
    hashes : of the id of each run, in their order; None where the ids ascend, and no hashes were asked for
    """

    ends: pa.Array
    begins: list[int | None]
    hashes: Hashes | None


def plain_ids(ids: Any) -> pa.Array:
    """Return a column of ids as one array, without categories."""
    if isinstance(ids, pa.ChunkedArray):
        ids = ids.combine_chunks()
    if pa.types.is_dictionary(ids.type):
        ids = ids.dictionary_decode()
    return ids.cast(pa.string()) if pa.types.is_string_view(ids.type) else ids


def run_starts(ids: Any) -> NDArray[np.int64]:
    """Return where an id differs from the one before it.

    Examples
    --------
    >>> run_starts(pa.array(["a", "a", "b", None, None, "a"])).tolist()
    [2, 3, 5]
    """
    ids = plain_ids(ids)
    differs = pc.fill_null(pc.not_equal(ids[1:], ids[:-1]), True)
    if ids.null_count:
        both_null = pc.and_(pc.is_null(ids[1:]), pc.is_null(ids[:-1]))
        differs = pc.and_(differs, pc.invert(both_null))
    return np.flatnonzero(differs.to_numpy(zero_copy_only=False)) + 1


def read_runs(
    batches: Iterable[pa.Array], wanted: Sequence[int] = (), *, hashed: bool = False
) -> Runs | None:
    """Read the ids of consecutive rows, none of them missing, a batch at a time.

    Parameters
    ----------
    batches : plain ids
    wanted : rows, ascending, for which the next beginning of a set is looked up
    hashed : whether to hash the ids at once; otherwise None is returned where they don't ascend

    Examples
    --------
    >>> found = read_runs([pa.array([1, 1, 2]), pa.array([2, 5])], [1, 3, 5])
    >>> found.begins, found.ends.to_pylist()
    ([2, 4, None], [1, 5])
    """
    row, first, last = 0, None, None
    begins: list[int | None] = []
    hashes: list[Hashes] = []
    for ids in batches:
        if len(ids) == 0:
            continue
        starts = run_starts(ids)
        if last is None or last[0] != ids[0]:
            starts = np.concatenate([[0], starts])
        own = ids if len(starts) == len(ids) else ids.take(pa.array(starts))
        if hashed:
            hashes.append(hash_ids(own))
        elif not _ascend(own) or (
            last is not None and len(own) and not _ascend(pa.concat_arrays([last, own[:1]]))
        ):
            return None
        places = starts + row
        places = places[places > 0]
        while len(places) and len(begins) < len(wanted) and wanted[len(begins)] <= places[-1]:
            begins.append(int(places[np.searchsorted(places, wanted[len(begins)])]))
        first, last = ids[:1] if first is None else first, ids[-1:]
        row += len(ids)
    if first is None:
        raise ValueError("There are no ids.")
    begins += [None] * (len(wanted) - len(begins))
    return Runs(pa.concat_arrays([first, last]), begins, np.concatenate(hashes) if hashed else None)


def hash_ids(ids: pa.Array) -> Hashes:
    """Return a 64-bit hash of each id; of whole numbers, different ones have different hashes.

    Examples
    --------
    >>> a, b, c = hash_ids(pa.array(["a", "b", "a"]))
    >>> bool(a == c), bool(a == b)
    (True, False)
    """
    kind = ids.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return _mix(ids.to_numpy(zero_copy_only=False).astype(np.uint64))
    if pa.types.is_floating(kind):
        numbers = ids.to_numpy(zero_copy_only=False).astype(np.float64) + 0.0  # -0 is 0
        return _mix(numbers.view(np.uint64))
    if not (pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
        ids = ids.cast(pa.large_string())
    text = ids.cast(pa.large_binary())
    mean = max(1, text.nbytes // max(1, len(text)))
    step = max(1, _BYTES // mean)
    parts = [_hash_bytes(text.slice(k, step)) for k in range(0, len(text), step)]
    return np.concatenate(parts) if parts else np.empty(0, np.uint64)


def _ascend(ids: pa.Array) -> bool:
    """Whether each id is larger than the one before it."""
    return len(ids) < 2 or bool(pc.all(pc.greater(ids[1:], ids[:-1])).as_py())


def _mix(values: Hashes) -> Hashes:
    """Scatter the bits of numbers, one to one (the finalizer of splitmix64)."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(values ^ (values >> np.uint64(31)))


def _hash_bytes(text: pa.Array) -> Hashes:
    """Hash large binaries: the sum of a scattered number for each byte at its place."""
    _, offsets, data = text.buffers()
    ends = np.frombuffer(offsets, np.int64)[text.offset : text.offset + len(text) + 1]
    size = int(ends[-1] - ends[0])
    octets = np.frombuffer(data, np.uint8, size, int(ends[0])) if size else np.empty(0, np.uint8)
    lengths = np.diff(ends)
    place = np.arange(size) - np.repeat(ends[:-1] - ends[0], lengths)
    sums = np.zeros(size + 1, np.uint64)
    np.cumsum(_mix((place.astype(np.uint64) << np.uint64(8)) | octets), out=sums[1:])  # wraps around
    within = ends - ends[0]
    return _mix(sums[within[1:]] - sums[within[:-1]] + lengths.astype(np.uint64))
