"""Files that may be compressed: one opener, by the suffix of the name."""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO

from entourage.errors import DataError

__all__ = ["COMPRESSIONS", "READ_ERRORS", "find_compressed", "open_compressed", "open_download"]

#: What may stand behind the extension of a file.
COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")
#: What a stream raises where a file is cut short or damaged.
READ_ERRORS = (OSError, EOFError, lzma.LZMAError, zlib.error)

_ARCHIVES = (".zip", ".7z", ".rar", ".tar", ".tgz")


def open_compressed(path: Path) -> IO[bytes]:
    """Open a file to read its bytes, unpacked as its suffix says."""
    return _OPENERS.get(path.suffix.lower(), _open_plain)(path)


def open_download(path: Path, home: str) -> IO[bytes]:
    """Open a file that a user fetched, unpacked as its suffix says; ``home`` says where to get a missing one."""
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise DataError(f"{path} {what}; name the data file. {home}.")
    if path.suffix.lower() in _ARCHIVES:
        raise DataError(f"{path} is an archive; unpack it and name the file that was in it.")
    try:
        return open_compressed(path)
    except OSError as error:
        raise DataError(f"{path} can't be opened: {error}. Fetch it again.") from None


def find_compressed(path: Path) -> Path | None:
    """Return the file itself or its compressed form, whichever is there."""
    forms = (path.with_name(path.name + suffix) for suffix in ("", *COMPRESSIONS))
    return next((file for file in forms if file.is_file()), None)


def _open_plain(path: Path) -> IO[bytes]:
    return path.open("rb")


def _open_zstd(path: Path) -> IO[bytes]:
    import pyarrow as pa

    return io.BufferedReader(pa.input_stream(str(path), compression="zstd"))  # Arrow's own has no lines


_OPENERS: dict[str, Callable[[Path], IO[bytes]]] = {
    ".gz": gzip.open,  # type: ignore[dict-item]
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": _open_zstd,
}
