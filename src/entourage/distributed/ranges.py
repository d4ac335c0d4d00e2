"""Rows cut into parts where a set ends and another begins; sets whose rows don't stand together are found and named.

Only the column of set ids is read, in pieces, by the workers of the crew. Of each piece the driver keeps the first and
the last id and where the next set begins behind each wanted cut. Where ids ascend through all the data, that shows that
no id comes back. Otherwise the driver also keeps 8 bytes a set, a hash of its id; equal hashes are looked up, so the
answer is exact.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from entourage.data.set_runs import Runs
from entourage.distributed.crew import Crew
from entourage.distributed.jobs import FindIds, ReadIds
from entourage.distributed.sources import Sources, Stretch
from entourage.errors import DataError

__all__ = ["cut_at_sets", "wanted_cuts"]

PIECE = 1 << 22  # rows whose ids are read as one job, or a row group
_SUSPECTS = 1000  # equal hashes that are looked up at a time


def cut_at_sets(sources: Sources, set_id: str, rows: int, crew: Crew[Any, Any]) -> list[int]:
    """Return the rows at which parts begin, and the number of all rows: about ``rows`` a part, none with half a set.

    Rows of a set that don't stand together are an error that names the set.
    """
    wanted = wanted_cuts(sources.group_ends, rows)
    pieces = _pieces(sources)
    offsets = np.array([sources.offsets[piece.source] + piece.first for piece in pieces])
    jobs = []
    for piece, offset in zip(pieces, offsets, strict=True):
        inside = wanted[
            np.searchsorted(wanted, offset, "right") : np.searchsorted(
                wanted, offset + piece.last - piece.first
            )
        ]
        jobs.append(ReadIds(piece, (1, *(int(cut - offset) for cut in inside))))
    found = dict(crew.run(jobs))
    runs: list[Runs] = [found[job] for job in jobs]
    fresh = [True] + [not _same(a, b) for a, b in pairwise(runs)]  # begins a piece a set?
    if not _all_ascend(runs, fresh):
        again = [
            ReadIds(piece, hashed=True) for piece, run in zip(pieces, runs, strict=True) if run.hashes is None
        ]
        more = {job.stretch: run.hashes for job, run in crew.run(again)}
        hashes = [
            more.get(piece) if run.hashes is None else run.hashes
            for piece, run in zip(pieces, runs, strict=True)
        ]
        _check_together(sources, set_id, pieces, hashes, fresh, crew)
    cuts = [0]
    for cut in wanted.tolist():
        begin = _next_begin(cut, offsets, jobs, runs, fresh)
        if begin is not None and begin > cuts[-1]:
            cuts.append(begin)
    return [*cuts, sources.rows]


def wanted_cuts(ends: Any, rows: int) -> NDArray[np.int64]:
    """Return where parts of about so many rows should end: where a row group does, if one ends nearby.

    Parameters
    ----------
    ends : of the row groups, among all rows
    rows : of a part; parts have between half and one and a half times as many

    Examples
    --------
    >>> wanted_cuts([100, 200, 300, 1000], 190).tolist()
    [200, 300, 490, 680, 870]
    """
    places, cuts, last = np.unique(np.asarray(ends, dtype=np.int64)), [], 0
    total = int(places[-1])
    while total - last > 1.5 * rows:
        near = places[np.searchsorted(places, last + rows / 2) : np.searchsorted(places, last + 1.5 * rows)]
        last = int(near[np.argmin(np.abs(near - last - rows))]) if len(near) else last + rows
        cuts.append(last)
    return np.array(cuts, dtype=np.int64)


def _pieces(sources: Sources) -> list[Stretch]:
    """Cut every file at ends of row groups, into pieces of so many rows or a row group."""
    found = []
    for at, file in enumerate(sources.files):
        first = 0
        for k, end in enumerate(file.ends):
            if end > first and (end == file.rows or file.ends[k + 1] - first > PIECE):
                found.append(Stretch(at, first, end))
                first = end
    return found


def _same(before: Runs, after: Runs) -> bool:
    """Whether the last id of a piece is the first of the next."""
    return bool(pc.equal(before.ends[1:], after.ends[:1])[0].as_py())


def _all_ascend(runs: Sequence[Runs], fresh: Sequence[bool]) -> bool:
    if any(run.hashes is not None for run in runs):
        return False
    between = zip(runs[:-1], runs[1:], fresh[1:], strict=True)
    return all(pc.less(a.ends[1:], b.ends[:1])[0].as_py() for a, b, new in between if new)


def _next_begin(
    cut: int, offsets: NDArray[np.int64], jobs: Sequence[ReadIds], runs: Sequence[Runs], fresh: Sequence[bool]
) -> int | None:
    """Return the first row, from a wanted cut on, with which a set begins."""
    at = int(np.searchsorted(offsets, cut, side="right")) - 1
    if cut == offsets[at] and fresh[at]:
        return cut
    local = int(cut - offsets[at])
    begin = runs[at].begins[jobs[at].wanted.index(local) if local else 0]
    while begin is None:
        at += 1
        if at == len(runs):
            return None
        begin = 0 if fresh[at] else runs[at].begins[0]
    return int(offsets[at]) + begin


def _check_together(
    sources: Sources,
    set_id: str,
    pieces: Sequence[Stretch],
    hashes: Sequence[NDArray[np.uint64] | None],
    fresh: Sequence[bool],
    crew: Crew[Any, Any],
) -> None:
    """See that no id begins two runs: equal hashes first, then the ids that have them."""
    own = [found if new else found[1:] for found, new in zip(hashes, fresh, strict=True) if found is not None]
    every = np.concatenate(own)
    every.sort()
    suspects = np.unique(every[1:][every[1:] == every[:-1]])
    del every
    for k in range(0, len(suspects), _SUSPECTS):
        some = suspects[k : k + _SUSPECTS]
        jobs = [
            FindIds(piece, some)
            for piece, found in zip(pieces, hashes, strict=True)
            if found is not None and np.isin(found, some).any()
        ]
        rows: dict[Any, list[int]] = defaultdict(list)
        starts = {
            piece: (int(sources.offsets[piece.source]), new) for piece, new in zip(pieces, fresh, strict=True)
        }
        for job, found in crew.run(jobs):
            offset, new = starts[job.stretch]
            for label, row in found:
                if new or row != job.stretch.first:
                    rows[label].append(offset + row)
        torn = sorted((sorted(where)[1], label) for label, where in rows.items() if len(where) > 1)
        if torn:
            row, label = torn[0]
            first, second = (sources.where(one) for one in sorted(rows[label])[:2])
            raise DataError(
                f"The rows of a set don't stand together: {set_id} {label!r} begins in row {first[1] + 1:,} of "
                f"{first[0]} and, after other sets, again in row {second[1] + 1:,} of {second[0]}. Sort the data by "
                f"{set_id!r}, and name the files so that their names sort in the order of their rows. (A table that "
                "fits into memory needs no order: give its file, and -o FILE.)"
            )
