"""Parquet files as one sequence of rows: what is in each, and reading any stretch of it in bounded memory."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

from entourage.data.frames import list_columns
from entourage.data.parquet_stream import ROWS
from entourage.distributed.places import Place
from entourage.errors import DataError

__all__ = ["Source", "Sources", "Stretch", "open_sources"]

_BUFFER = 1 << 20  # bytes of a column that are read ahead: a column chunk may be larger than memory
_AT_ONCE = 16  # footers that are read at a time: of an object store, each takes a while to come


@dataclass(frozen=True)
class Source:
    """One file of rows.

    Attributes
    ----------
    path, size, modified : where it is, its bytes, and the time of its last change in nanoseconds, None where unknown
    ends : where each row group ends, counted from the first row of the file
    """

    path: str
    size: int
    modified: int | None
    ends: tuple[int, ...]

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.ends[-1] if self.ends else 0


@dataclass(frozen=True)
class Stretch:
    """Consecutive rows of one file: ``first`` to before ``last``, counted from the first row of the file."""

    source: int
    first: int
    last: int


@dataclass(frozen=True)
class Sources:
    """Files whose rows follow each other.

    Attributes
    ----------
    system : the file system
    files : in their order, those without rows too
    schema : the columns, in the order of the first file that has rows
    """

    system: Any
    files: tuple[Source, ...]
    schema: pa.Schema

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """Where the rows of each file begin, and the number of all rows behind."""
        return np.concatenate([[0], np.cumsum([file.rows for file in self.files], dtype=np.int64)])

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(file.rows for file in self.files)

    @property
    def group_ends(self) -> NDArray[np.int64]:
        """Where each row group ends, among all rows."""
        ends = [np.asarray(file.ends, dtype=np.int64) for file in self.files]
        return np.concatenate([offset + own for offset, own in zip(self.offsets, ends, strict=False)])

    @property
    def fingerprint(self) -> str:
        """A digest of the names and types of the columns."""
        lines = [f"{field.name}\t{field.type}" for field in self.schema]
        return sha256("\n".join(lines).encode()).hexdigest()

    def stretches(self, first: int, last: int) -> list[Stretch]:
        """Return where the rows ``first`` to before ``last`` of all are."""
        offsets = self.offsets
        at = int(np.searchsorted(offsets, first, side="right")) - 1
        found = []
        while first < last:
            end = min(last, int(offsets[at + 1]))
            if end > first:
                found.append(Stretch(at, first - int(offsets[at]), end - int(offsets[at])))
            first, at = max(first, end), at + 1
        return found

    def where(self, row: int) -> tuple[str, int]:
        """Return the file of a row of all, and its number there."""
        offsets = self.offsets
        at = int(np.searchsorted(offsets, row, side="right")) - 1
        return self.files[at].path, row - int(offsets[at])

    def read(self, stretch: Stretch, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield the rows of a stretch in order, in tables of bounded size; a file that has changed is refused."""
        file = self.files[stretch.source]
        place = Place(self.system, file.path)
        info = place.info()
        if (info.size, info.mtime_ns) != (file.size, file.modified):
            raise DataError(f"{file.path} has changed since this run began; start anew, into another folder.")
        ends = np.array(file.ends)
        first_group = int(np.searchsorted(ends, stretch.first, side="right"))
        last_group = int(np.searchsorted(ends, stretch.last, side="left"))
        skip = stretch.first - (file.ends[first_group - 1] if first_group else 0)
        left = stretch.last - stretch.first
        names = self.schema.names if columns is None else list(columns)
        schema = pa.schema([self.schema.field(name) for name in names])
        if columns is None:
            schema = self.schema
        with place.open() as stream:
            opened = parquet.ParquetFile(stream, buffer_size=_BUFFER)
            groups = range(first_group, last_group + 1)
            try:
                for batch in opened.iter_batches(ROWS, row_groups=groups, columns=columns, use_threads=False):
                    if skip >= batch.num_rows:
                        skip -= batch.num_rows
                        continue
                    batch = batch.slice(skip, left)
                    skip, left = 0, left - batch.num_rows
                    yield pa.Table.from_arrays([batch.column(name) for name in names], schema=schema)
                    if not left:
                        return
            except (pa.ArrowException, OSError) as error:
                raise _unreadable(file.path, error) from error


def open_sources(places: Sequence[Place]) -> Sources:
    """Read what files say of themselves: all that have rows need the same columns, in any order."""
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        found = list(threads.map(_read_footer, places))
    filled = [(source, schema) for source, schema in found if source.rows]
    if not filled:
        raise DataError(
            f"{places[0].path} and {len(places) - 1} other files hold no rows."
            if len(places) > 1
            else f"{places[0].path} holds no rows; a table needs at least one row."
        )
    first, reference = filled[0]
    if len(set(reference.names)) < len(reference.names):
        twice = next(name for name in reference.names if reference.names.count(name) > 1)
        raise DataError(f"{first.path} has more than one column named {twice!r}; rename them.")
    for source, schema in filled[1:]:
        _check_same_columns(source.path, schema, first.path, reference)
    optional = {field.name for _, schema in filled for field in schema if field.nullable}
    fields = [field.with_nullable(field.name in optional) for field in reference]
    return Sources(
        places[0].system, tuple(source for source, _ in found), pa.schema(fields, reference.metadata)
    )


def _read_footer(place: Place) -> tuple[Source, pa.Schema]:
    info = place.info()
    try:
        with place.open() as stream:
            file = parquet.ParquetFile(stream)
            sizes = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
            schema = file.schema_arrow
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(place.path, error) from error
    ends = tuple(np.cumsum(sizes, dtype=np.int64).tolist())
    return Source(place.path, info.size, info.mtime_ns, ends), schema


def _check_same_columns(path: str, schema: pa.Schema, first: str, reference: pa.Schema) -> None:
    lacking = [name for name in reference.names if name not in set(schema.names)]
    more = [name for name in schema.names if name not in set(reference.names)]
    if lacking or more:
        said = [f"it lacks {list_columns(lacking)}"] * bool(lacking) + [
            f"it has {list_columns(more)} besides"
        ] * bool(more)
        raise DataError(
            f"{path} has other columns than {first}: {' and '.join(said)}. Files of one run need the same."
        )
    for field in reference:
        other = schema.field(field.name)
        if other.type != field.type:
            raise DataError(
                f"{path}: column {field.name!r} is of type {other.type}, but {field.type} in {first}. Files of one run "
                "need the same types: write one of them anew."
            )


def _unreadable(path: str, error: BaseException) -> DataError:
    return DataError(f"{path} can't be read as parquet: {' '.join(str(error).split())}")
