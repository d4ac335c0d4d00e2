"""Tables in files: CSV, Parquet, Arrow, JSON lines and svmlight, chosen by extension, compressed or not."""

import bz2
import gzip
import json
import lzma
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from entourage.data.letor import load_letor
from entourage.errors import DataError
from entourage.files import replacing

__all__ = ["EXTENSIONS", "kind_of", "read_table", "write_table"]

#: What can be read, by extension; behind it may stand .gz, .bz2, .xz or .zst.
EXTENSIONS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "arrow",
    ".arrow": "arrow",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".letor": "svmlight",
    ".txt": "svmlight",
}
COMPRESSIONS = {".gz", ".bz2", ".xz", ".zst"}


def kind_of(path: Path) -> tuple[str, str]:
    """Return what a file is by its name, and its compression or ""."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compression = suffixes.pop() if suffixes and suffixes[-1] in COMPRESSIONS else ""
    kind = EXTENSIONS.get(suffixes[-1] if suffixes else "")
    if kind is None:
        raise DataError(
            f"{path.name}: a table needs one of the extensions {', '.join(EXTENSIONS)}, by which it is read; "
            f"behind it may stand {', '.join(sorted(COMPRESSIONS))}. Rename the file to what it is."
        )
    return kind, compression


def read_table(path: str | os.PathLike[str]) -> pa.Table:
    r"""Read a table; a svmlight file has the columns qid, relevance and f1, f2, ...

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "races.csv"
    >>> _ = file.write_text("race,driver_age,rank\n1,31,0\n1,24,1\n")
    >>> read_table(file).column_names
    ['race', 'driver_age', 'rank']
    """
    path = Path(path)
    kind, compression = kind_of(path)
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise DataError(f"{path} {what}; name a file that holds a table.")
    if path.stat().st_size == 0:
        raise DataError(f"{path} is empty; a table needs a header and at least one row.")
    if kind == "svmlight":
        return _svmlight(path)
    try:
        table = _READERS[kind](path, compression)
    except (pa.ArrowException, OSError, EOFError, ValueError, lzma.LZMAError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DataError(f"{path} can't be read as {kind}: {reason[:300]}") from error
    if table.num_rows == 0:
        raise DataError(f"{path} holds no rows; a table needs a header and at least one row.")
    twice = sorted({name for name in table.column_names if table.column_names.count(name) > 1})
    if twice:
        raise DataError(f"{path} has more than one column named {', '.join(map(repr, twice))}; rename them.")
    return table


def write_table(path: str | os.PathLike[str], table: pa.Table) -> None:
    """Write a table, all or nothing, as its extension says."""
    path = Path(path)
    kind, compression = kind_of(path)
    if kind not in _WRITERS or compression not in ("", ".gz"):
        raise DataError(
            f"{path.name}: tables can be written as {', '.join(_WRITERS)}, plain or with .gz; name another file."
        )
    if kind in ("parquet", "arrow") and compression:
        raise DataError(f"{path.name}: {kind} files are compressed inside; leave {compression} off.")
    try:
        with replacing(path) as temporary:
            _WRITERS[kind](table, temporary, compression)
    except OSError as error:
        reason = error.strerror or str(error)
        raise DataError(f"{path} can't be written: {reason}. What was there before is untouched.") from error


def _open(path: Path, compression: str) -> Any:
    if compression == ".xz":
        return lzma.open(path)
    if compression == ".bz2":
        return bz2.open(path)
    return pa.input_stream(str(path), compression={"": None, ".gz": "gzip", ".zst": "zstd"}[compression])


def _csv(path: Path, compression: str, delimiter: str = ",") -> pa.Table:
    from pyarrow import csv

    # A block at a time is typed by the first: with large blocks a late surprise is rare, and an error.
    options = csv.ReadOptions(block_size=1 << 26)
    convert = csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False)
    with _open(path, compression) as stream:
        return csv.read_csv(stream, options, csv.ParseOptions(delimiter=delimiter), convert)


def _parquet(path: Path, compression: str) -> pa.Table:
    from pyarrow import parquet

    if compression:
        raise ValueError(f"Parquet is compressed inside; unpack the {compression} first")
    return parquet.read_table(path)


def _arrow(path: Path, compression: str) -> pa.Table:
    from pyarrow import feather

    if compression:
        raise ValueError(f"Arrow files are compressed inside; unpack the {compression} first")
    return feather.read_table(path)


def _json_lines(path: Path, compression: str) -> pa.Table:
    from pyarrow import json as arrow_json

    with _open(path, compression) as stream:
        return arrow_json.read_json(stream, arrow_json.ReadOptions(block_size=1 << 26))


def _svmlight(path: Path) -> pa.Table:
    import numpy as np

    found = load_letor(path)
    sets = found.sets
    columns: dict[str, Any] = {
        "qid": np.repeat(np.asarray(found.qids), sets.sizes),
        "relevance": np.asarray(found.relevance),
    }
    columns |= {f"f{i + 1}": sets.objects[:, i] for i in range(sets.n_features)}
    return pa.table(columns)


def _write_csv(table: pa.Table, path: Path, compression: str, delimiter: str = ",") -> None:
    from pyarrow import csv

    opener: Callable[[Path, str], IO[bytes]] = gzip.open if compression else open  # type: ignore[assignment]
    with opener(path, "wb") as file:
        csv.write_csv(table, file, csv.WriteOptions(delimiter=delimiter))


def _write_parquet(table: pa.Table, path: Path, compression: str) -> None:
    from pyarrow import parquet

    parquet.write_table(table, path)


def _write_arrow(table: pa.Table, path: Path, compression: str) -> None:
    from pyarrow import feather

    feather.write_feather(table, str(path))


def _write_json_lines(table: pa.Table, path: Path, compression: str) -> None:
    opener: Callable[[Path, str], IO[bytes]] = gzip.open if compression else open  # type: ignore[assignment]
    with opener(path, "wb") as file:
        for batch in table.to_batches(max_chunksize=10_000):
            file.write("".join(json.dumps(row, default=str) + "\n" for row in batch.to_pylist()).encode())


_READERS: dict[str, Callable[[Path, str], pa.Table]] = {
    "csv": _csv,
    "tsv": lambda path, compression: _csv(path, compression, "\t"),
    "parquet": _parquet,
    "arrow": _arrow,
    "jsonl": _json_lines,
}
_WRITERS: dict[str, Callable[[pa.Table, Path, str], None]] = {
    "csv": _write_csv,
    "tsv": lambda table, path, compression: _write_csv(table, path, compression, "\t"),
    "parquet": _write_parquet,
    "arrow": _write_arrow,
    "jsonl": _write_json_lines,
}
