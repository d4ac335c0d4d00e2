"""Files and folders of this machine or of an object store: found by a pattern, written in one step.

A name with ``://``, such as ``s3://bucket/folder``, is what :class:`pyarrow.fs.FileSystem` makes of it; any other is a
path of this machine.
"""

import contextlib
import os
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import fs

from entourage.errors import DataError, UserError

__all__ = ["Place", "find_files", "from_address", "has_pattern", "is_address", "place_of", "would_find"]

_ENDINGS = (".parquet", ".pq")


@dataclass(frozen=True)
class Place:
    """A file or a folder, which need not exist.

    Attributes
    ----------
    system, path : the file system, and the path in it
    """

    system: Any
    path: str

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rstrip("/").rsplit("/", 1)[-1]

    @property
    def is_local(self) -> bool:
        """Whether it is on this machine."""
        return isinstance(self.system, fs.LocalFileSystem)

    def child(self, name: str) -> "Place":
        """Return a file in this folder."""
        return Place(self.system, f"{self.path.rstrip('/')}/{name}")

    def info(self) -> Any:
        """Return type, size and time of change."""
        with _reaching(self.path):
            return self.system.get_file_info(self.path)

    def exists(self) -> bool:
        """Whether there is a file or a folder."""
        return bool(self.info().type != fs.FileType.NotFound)

    def is_folder(self) -> bool:
        """Whether there is a folder."""
        return bool(self.info().type == fs.FileType.Directory)

    def make_folder(self) -> None:
        """Make the folder, and those above it, where they are lacking."""
        try:
            self.system.create_dir(self.path, recursive=True)
        except (pa.ArrowException, OSError) as error:
            raise UserError(f"{self.path} can't be made: {_reason(error)}. Name another folder.") from error

    def children(self) -> list[str]:
        """Return the names of what is in the folder, sorted."""
        with _reaching(self.path):
            found = self.system.get_file_info(fs.FileSelector(self.path, allow_not_found=True))
        return sorted(info.base_name for info in found)

    def open(self) -> Any:
        """Open a file to read from any place in it."""
        with _reaching(self.path):
            return self.system.open_input_file(self.path)

    def read(self) -> bytes:
        """Return what is in the file."""
        with self.open() as file:
            return bytes(file.read())

    def delete(self) -> None:
        """Delete the file, if it is there."""
        with contextlib.suppress(FileNotFoundError):
            self.system.delete_file(self.path)

    @contextlib.contextmanager
    def replacing(self) -> Iterator[Any]:
        """Give a stream to write, whose content takes the place of the file in one step, at the end, or not at all.

        Until then it is a neighbour whose name begins with a dot and ends with ``.part``.
        """
        folder, _, name = self.path.rpartition("/")
        scratch = f"{folder}/.{name}.{uuid.uuid4().hex[:8]}.part"
        try:
            with self.system.open_output_stream(scratch, compression=None) as stream:
                yield stream
            if self.is_local:
                with Path(scratch).open("rb") as file:
                    os.fsync(file.fileno())
            self.system.move(scratch, self.path)
        except BaseException:
            with contextlib.suppress(OSError):
                self.system.delete_file(scratch)
            raise

    def write(self, content: bytes) -> None:
        """Write a file in one step."""
        try:
            with self.replacing() as stream:
                stream.write(content)
        except OSError as error:
            raise UserError(f"{self.path} can't be written: {_reason(error)}.") from error


def is_address(name: str) -> bool:
    """Whether a name is that of a file system of its own, such as ``s3://...``."""
    return "://" in name


def has_pattern(name: str) -> bool:
    """Whether a name has ``*`` or ``[``, or, of this machine, ``?``, which stand for several names."""
    return any(mark in name for mark in ("*[" if is_address(name) else "*[?"))


def place_of(name: str) -> Place:
    """Return the place of a path or an address."""
    if not is_address(name):
        return Place(fs.LocalFileSystem(), str(Path(name).resolve()))
    try:
        return Place(*from_address(name))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(
            f"{name} can't be reached: {_reason(error)}. An address is one that pyarrow.fs knows, such as "
            "s3://bucket/folder?region=eu-west-1, gs://bucket/folder or file:///folder."
        ) from error


def from_address(name: str) -> tuple[Any, str]:
    """Return the file system of an address, and the path in it."""
    system, path = fs.FileSystem.from_uri(name)
    return system, str(path)


def find_files(name: str) -> list[Place]:
    """Return the Parquet files of a folder, those that match a pattern, or the one file; sorted by their paths.

    Of a folder, those that end in ``.parquet`` or ``.pq``, without subfolders. In a pattern ``*`` stands for any part
    of a name, and ``**`` for any folders. What begins with a dot or ``_`` is left out, as Spark and Arrow do.
    """
    if not has_pattern(name) or (not is_address(name) and Path(name).exists()):
        place = place_of(name)
        kind = place.info().type
        if kind == fs.FileType.NotFound:
            raise DataError(
                f"{name} does not exist; name a folder of Parquet files, or a pattern: 'folder/*.parquet'."
            )
        if kind != fs.FileType.Directory:
            return [place]
        found = [
            place.child(own)
            for own in place.children()
            if own.lower().endswith(_ENDINGS) and own[0] not in "._"
        ]
        if not found:
            raise DataError(
                f"{name} has no files that end in {' or '.join(_ENDINGS)}. Files of subfolders are named by a pattern: "
                f"'{name.rstrip('/')}/*/*.parquet'."
            )
        return found
    base, pattern = _split(name)
    selector = fs.FileSelector(base.path, allow_not_found=True, recursive=len(pattern) > 1)
    with _reaching(name):
        infos = base.system.get_file_info(selector)
    files = sorted(info.path for info in infos if info.type == fs.FileType.File)
    paths = [path for path in files if _matches(_below(base, path), pattern)]
    if not paths:
        raise DataError(f"No file matches {name}; name Parquet files, such as 'folder/*.parquet'.")
    return [Place(base.system, path) for path in paths]


def would_find(name: str, place: Place) -> bool:
    """Whether `find_files` would also find a file that is to be written."""
    if not has_pattern(name):
        own = place_of(name)
        return own.path in (place.path, place.path.rpartition("/")[0])
    base, pattern = _split(name)
    return place.path.startswith(base.path.rstrip("/") + "/") and _matches(_below(base, place.path), pattern)


def _split(name: str) -> tuple[Place, list[str]]:
    """Part a pattern: the folder that it begins with, and the parts behind."""
    address, mark, options = name.partition("?") if is_address(name) else (name, "", "")
    parts = address.split("/")
    first = next(i for i, part in enumerate(parts) if has_pattern(part))
    base = "/".join(parts[:first]) or ("/" if name.startswith("/") else ".")
    return place_of(base + mark + options), parts[first:]


def _below(base: Place, path: str) -> list[str]:
    return path[len(base.path.rstrip("/")) + 1 :].split("/")


def _matches(path: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether a path, in its parts, is one that a pattern stands for."""
    if not pattern:
        return not path
    if pattern[0] == "**":
        return any(_matches(path[k:], pattern[1:]) for k in range(len(path) + 1))
    if not path or (path[0][:1] in "._" and path[0][:1] != pattern[0][:1]):
        return False
    return fnmatchcase(path[0], pattern[0]) and _matches(path[1:], pattern[1:])


@contextlib.contextmanager
def _reaching(name: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{name} can't be reached: {_reason(error)}.") from error


def _reason(error: BaseException) -> str:
    return " ".join(str(getattr(error, "strerror", None) or error).split()).rstrip(".")
