"""Tables in files: CSV, Parquet, Arrow, JSON lines and svmlight, chosen by extension, compressed or not."""

import gzip
import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from entourage.data.compressed import COMPRESSIONS, READ_ERRORS, open_compressed
from entourage.data.datasets.letor import load_letor
from entourage.data.files import replacing
from entourage.errors import DataError

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

_BLOCK = 1 << 26  # bytes of a CSV that are typed together


def kind_of(path: Path) -> tuple[str, str]:
    """Return what a file is by its name, and its compression or ""."""
    kind, compression = _by_name(path)
    if kind is None:
        raise DataError(
            f"{path.name}: a table needs one of the extensions {', '.join(EXTENSIONS)}, by which it is read; "
            f"behind it may stand {', '.join(sorted(COMPRESSIONS))}. Rename the file to what it is."
        )
    return kind, compression


def _by_name(path: Path) -> tuple[str | None, str]:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compression = suffixes.pop() if suffixes and suffixes[-1] in COMPRESSIONS else ""
    return EXTENSIONS.get(suffixes[-1] if suffixes else ""), compression


def read_table(
    path: str | os.PathLike[str],
    *,
    ids: Sequence[str | None] = (),
    text: Sequence[str] = (),
    sep: str | None = None,
    decimal: str = ".",
    encoding: str = "utf8",
) -> pa.Table:
    r"""Read a table; a svmlight file has the columns qid, relevance and f1, f2, ...

    Parameters
    ----------
    path : the extension says what it is
    ids : columns of labels, which are read exactly: as whole numbers where all fit 64 bits, else as text
    text : columns to read as text even where all cells are numbers
    sep, decimal, encoding : of a CSV or TSV file: what stands between columns, before decimals, and how characters
        are encoded

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "races.csv"
    >>> _ = file.write_text("race,driver_age,rank\n1,31,0\n1,24,1\n")
    >>> read_table(file).column_names
    ['race', 'driver_age', 'rank']
    """
    path = Path(path)
    if path.is_dir():
        raise DataError(f"{path} is a folder; name a file that holds a table.")
    kind, compression = kind_of(path)
    if not path.is_file():
        raise DataError(f"{path} does not exist; name a file that holds a table.")
    if path.stat().st_size == 0:
        raise DataError(f"{path} is empty; a table needs a header and at least one row.")
    if kind == "svmlight":
        return _svmlight(path)
    try:
        if kind in ("csv", "tsv"):
            between = sep or {"csv": ",", "tsv": "\t"}[kind]
            labels = [name for name in ids if name is not None]
            table = _csv(path, between, decimal, encoding, labels, list(text))
        else:
            table = _READERS[kind](path, compression)
    except (pa.ArrowException, ValueError, LookupError, *READ_ERRORS) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        hint = ""
        if "utf8" in reason.lower().replace("-", "") and encoding == "utf8":
            hint = " It is not encoded as UTF-8: save it so, or give encoding='latin-1' (--encoding latin-1)."
        elif kind == "csv" and "columns, got" in reason:
            hint = _hint_of_start(path)
        raise DataError(f"{path} can't be read as {kind}: {reason[:300].rstrip('.')}.{hint}") from error
    if table.num_rows == 0:
        raise DataError(f"{path} holds no rows; a table needs a header and at least one row.")
    if kind == "csv" and table.num_columns == 1:
        other = next(
            (mark for mark in (";", "\t", "|") if mark in table.column_names[0] and mark != sep), None
        )
        if other is not None:
            raise DataError(
                f"{path} has a single column, {table.column_names[0]!r}: columns seem to be separated by {other!r}. "
                f"Give sep={other!r} (--sep '{other}')."
            )
    twice = sorted(name for name, times in Counter(table.column_names).items() if times > 1)
    if twice:
        raise DataError(f"{path} has more than one column named {', '.join(map(repr, twice))}; rename them.")
    return table


def _hint_of_start(path: Path) -> str:
    """Say what the first bytes of a CSV tell of why its rows have differing numbers of columns."""
    with open_compressed(path) as stream:
        start = stream.read(200)
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return " It begins as UTF-16 does: give encoding='utf-16' (--encoding utf-16)."
    first = start.removeprefix(b"\xef\xbb\xbf").lstrip(b'"').splitlines()[:1]
    if first and first[0].startswith((b"sep=", b"#")):
        return f" Its first line, {first[0].decode(errors='replace')[:40]!r}, is no header: delete it."
    return " Where columns are separated by something else than a comma, give sep=';' (--sep ';')."


def write_table(path: str | os.PathLike[str], table: pa.Table) -> None:
    """Write a table, all or nothing, as its extension says."""
    path = Path(path)
    kind, compression = _by_name(path)
    if kind not in _WRITERS or compression not in ("", ".gz"):
        written = [extension for extension, kind in EXTENSIONS.items() if kind in _WRITERS]
        raise DataError(
            f"{path.name}: tables can be written as {', '.join(written)}, plain or with .gz; name another file."
        )
    if kind in ("parquet", "arrow") and compression:
        raise DataError(f"{path.name}: {kind} files are compressed inside; leave {compression} off.")
    try:
        with replacing(path) as temporary:
            _WRITERS[kind](table, temporary, compression)
    except OSError as error:
        reason = error.strerror or str(error)
        raise DataError(f"{path} can't be written: {reason}. What was there before is untouched.") from error


def _csv(path: Path, sep: str, decimal: str, encoding: str, ids: list[str], text: list[str]) -> pa.Table:
    from pyarrow import csv

    # A block at a time is typed by the first: with large blocks a late surprise is rare, and an error.
    # Threads only for several blocks: a process that ends while Arrow's still start, beside torch, is aborted.
    several = path.stat().st_size > _BLOCK
    options = csv.ReadOptions(use_threads=several, block_size=_BLOCK, encoding=encoding)
    convert = csv.ConvertOptions(
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        decimal_point=decimal,
        column_types={name: pa.string() for name in [*ids, *text]},
    )
    with open_compressed(path) as stream:
        table = csv.read_csv(stream, options, csv.ParseOptions(delimiter=sep), convert)
    for name, kind in zip(table.column_names, table.schema.types, strict=True):
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            raise ValueError(f"column {name!r} holds bytes that are no UTF-8")
    for name in ids:
        if name in table.column_names and name not in text:
            at = table.column_names.index(name)
            table = table.set_column(at, name, _whole_numbers(table.column(at)))
    return table


def _whole_numbers(labels: pa.ChunkedArray) -> pa.ChunkedArray:
    """Make whole numbers of texts where that loses nothing: 7 is one, 007, 7.0 and 2^64 are not."""
    try:
        numbers = labels.cast(pa.int64())
    except pa.ArrowInvalid:
        return labels
    return numbers if numbers.cast(pa.string()).equals(labels) else labels


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

    with open_compressed(path) as stream:
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
