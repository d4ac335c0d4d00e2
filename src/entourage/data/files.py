"""Atomic writing of files: all or nothing."""

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

__all__ = ["replacing", "write_atomically"]


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a neighbouring file to write, which then takes the place of the old one in one step.

    An `OSError` (a full disk, a folder that isn't there) leaves what was at ``path`` untouched.
    """
    target = Path(path)
    scratch = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        yield scratch
        with scratch.open("rb") as file:
            os.fsync(file.fileno())
        scratch.replace(target)
    finally:
        scratch.unlink(missing_ok=True)


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write bytes, all or nothing; see `replacing`."""
    with replacing(path) as scratch, scratch.open("xb") as file:
        file.write(data)
