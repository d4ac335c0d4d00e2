"""What a worker does for the scoring of many rows: read set ids, score a part, check a part that is done."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from pyarrow import parquet
from threadpoolctl import threadpool_limits

from entourage.data.grouping import exact_labels
from entourage.data.parquet_files import Sources, Stretch
from entourage.data.parquet_stream import ROWS, whole_sets
from entourage.data.places import Place
from entourage.data.set_runs import Runs, hash_ids, plain_ids, read_runs, run_starts
from entourage.errors import DataError
from entourage.estimators import load
from entourage.estimators.prediction_tables import predict_table

__all__ = ["MOST_PARTS", "CheckPart", "FindIds", "Part", "ReadIds", "ScorePart", "Worker", "part_name"]

MOST_PARTS = 100_000  # whose names sort in the order of their numbers
_BLOCK = 1 << 22  # bytes of a part that are read at a time to check it


@dataclass(frozen=True)
class ReadIds:
    """Read the set ids of a stretch; see `read_runs`. The result is its :class:`Runs`."""

    stretch: Stretch
    wanted: tuple[int, ...] = ()
    hashed: bool = False


@dataclass(frozen=True)
class FindIds:
    """Find the runs whose id has one of some hashes; the result has the id of each and its first row in the stretch."""

    stretch: Stretch
    hashes: NDArray[np.uint64]  # sorted


@dataclass(frozen=True)
class ScorePart:
    """Score the rows ``first`` to before ``last`` of all, which are whole sets; the result is a :class:`Part`."""

    number: int
    first: int
    last: int


@dataclass(frozen=True)
class Part:
    """A file of predictions that is done."""

    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class CheckPart:
    """Compare a part with what it was when it was done; the result is whether it is the same."""

    number: int
    part: Part


class Worker:
    """What to do with each job, in one thread, by one copy of the model.

    Parameters
    ----------
    model : the bytes of a model file, which need not be where a worker is
    device : where it scores
    sources : the rows
    out : the folder of the parts
    set_id : the column of set ids
    people : the column of decision makers, for models that know some
    """

    def __init__(
        self,
        model: bytes,
        sources: Sources,
        out: Place,
        set_id: str,
        *,
        people: str | None = None,
        device: str = "auto",
    ) -> None:
        self.model, self.sources, self.out = model, sources, out
        self.set_id, self.people, self.device = set_id, people, device

    @cached_property
    def fitted(self) -> Any:
        """The model, read when the first part is scored."""
        with TemporaryDirectory() as folder:
            file = Path(folder) / "model"
            file.write_bytes(self.model)
            fitted = load(file)
        settings = {"device": self.device, "verbose": False}
        known = fitted.get_params(deep=False)
        return fitted.set_params(**{name: value for name, value in settings.items() if name in known})

    def __call__(self, job: Any) -> Any:
        """Do a job."""
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            with threadpool_limits(1):
                match job:
                    case ReadIds():
                        return self._read_ids(job)
                    case FindIds():
                        return self._find_ids(job)
                    case CheckPart():
                        return self._check(job)
                    case ScorePart():
                        return self._score(job)
        finally:
            torch.set_num_threads(threads)
        raise TypeError(f"{type(job).__name__} is no job.")

    def _ids(self, stretch: Stretch) -> Iterator[pa.Array]:
        """Yield the ids of a stretch, none of them missing."""
        row = stretch.first
        for table in self.sources.read(stretch, [self.set_id]):
            try:
                found = exact_labels(table, self.set_id, "set id", "says which set a row belongs to")
            except DataError as error:
                raise self._placed(error, self.sources.files[stretch.source].path, row) from None
            yield plain_ids(found)
            row += table.num_rows

    def _read_ids(self, job: ReadIds) -> Runs:
        found = read_runs(self._ids(job.stretch), job.wanted, hashed=job.hashed)
        if found is None:  # they don't ascend
            found = read_runs(self._ids(job.stretch), job.wanted, hashed=True)
        assert found is not None
        return found

    def _find_ids(self, job: FindIds) -> list[tuple[Any, int]]:
        found: list[tuple[Any, int]] = []
        row, last = job.stretch.first, None
        for ids in self._ids(job.stretch):
            starts = run_starts(ids)
            if last is None or last[0] != ids[0]:
                starts = np.concatenate([[0], starts])
            own = ids.take(pa.array(starts))
            here = np.flatnonzero(np.isin(hash_ids(own), job.hashes))
            found += zip(own.take(pa.array(here)).to_pylist(), (row + starts[here]).tolist(), strict=True)
            row, last = row + len(ids), ids[-1:]
        return found

    def _check(self, job: CheckPart) -> bool:
        place = self.out.child(part_name(job.number))
        info = place.info()
        if not info.is_file or info.size != job.part.bytes:
            return False
        digest = sha256()
        with place.open() as file:
            while block := file.read(_BLOCK):
                digest.update(block)
        return digest.hexdigest() == job.part.sha256

    def _score(self, job: ScorePart) -> Part:
        """Write the predictions of a part, all or nothing."""
        done, writer = job.first, None
        rows = self._gathered(self.sources.stretches(job.first, job.last))
        with self.out.child(part_name(job.number)).replacing() as stream:
            hashed = _Hashed(stream)
            try:
                for table in whole_sets(rows, self.set_id):
                    try:
                        predicted = predict_table(self.fitted, table, self.people)
                    except DataError as error:
                        raise self._placed(error, *self.sources.where(done)) from None
                    if writer is None:
                        writer = parquet.ParquetWriter(hashed, predicted.schema)
                    writer.write_table(predicted)
                    done += table.num_rows
            finally:
                if writer is not None:
                    writer.close()
            if done != job.last:
                raise DataError(
                    f"{job.last - done:,} rows before row {job.last:,} of the data can't be read any more."
                )
        return Part(job.last - job.first, hashed.written, hashed.digest.hexdigest())

    def _gathered(self, stretches: Sequence[Stretch]) -> Iterator[pa.Table]:
        """Yield the rows of stretches in tables that are not needlessly small."""
        some: list[pa.Table] = []
        for stretch in stretches:
            for table in self.sources.read(stretch):
                some.append(table)
                if sum(one.num_rows for one in some) > ROWS // 2:
                    yield pa.concat_tables(some)
                    some = []
        if some:
            yield pa.concat_tables(some)

    @staticmethod
    def _placed(error: DataError, path: str, row: int) -> DataError:
        return type(error)(f"{path}, counting from row {row:,}: {error}" if row else f"{path}: {error}")


def part_name(number: int) -> str:
    """Return the file of a part.

    Examples
    --------
    >>> part_name(7)
    'part-00007.parquet'
    """
    return f"part-{number:05d}.parquet"


class _Hashed:
    """A stream that counts and digests what is written to it."""

    def __init__(self, stream: Any) -> None:
        self.stream, self.digest, self.written, self.closed = stream, sha256(), 0, False

    def write(self, data: Any) -> int:
        self.digest.update(data)
        self.stream.write(data)
        self.written += len(data)
        return len(data)

    def tell(self) -> int:
        return self.written

    def flush(self) -> None:
        """Do nothing: what is written goes to the stream at once."""

    def close(self) -> None:
        """Take nothing more; the stream is closed by who opened it."""
        self.closed = True
