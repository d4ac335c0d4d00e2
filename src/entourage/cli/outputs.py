"""Whether a file that a command shall write can be written, found out before any long work."""

import importlib.util
import os
from pathlib import Path

from entourage.errors import UserError

__all__ = ["check_explorer", "check_output", "missing_for_explorer"]


def check_output(path: str | os.PathLike[str], *inputs: str | os.PathLike[str] | None) -> None:
    """Check, before any long work, that a file can be written there, and that it is none of the inputs.

    An input is the same file under any name: a relative path, a symbolic or a hard link.
    """
    for given in inputs:
        if given is not None and _same_file(Path(path), Path(given)):
            raise UserError(
                f"{path} can't be written: it is also an input ({given}), and would be overwritten. Name another file."
            )
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise UserError(f"{path} can't be written: there is no folder {folder}. Make it first.")
    if Path(path).is_dir():
        raise UserError(f"{path} can't be written: it is a folder. Name a file.")
    if not os.access(folder, os.W_OK):
        raise UserError(f"{path} can't be written: the folder {folder} is read-only. Name another one.")


def check_explorer(path: Path, page: Path | None, *inputs: Path) -> str:
    """Check that an explorer can be written beside a page; return what is missing for it, "" where nothing is."""
    check_output(path, *inputs)
    if page is not None and _same_file(path, page):
        raise UserError(f"--explorer and the report are the same file, {path}. Name another one.")
    return missing_for_explorer()


def missing_for_explorer() -> str:
    """Return which packages an explorer needs, and how to get them; "" where all are there."""
    needed = ("onnx", "onnxscript", "onnxruntime")
    lacking = [name for name in needed if importlib.util.find_spec(name) is None]
    return f"An explorer needs {', '.join(lacking)}: run pip install 'entourage[onnx]'." if lacking else ""


def _same_file(a: Path, b: Path) -> bool:
    try:
        return a.resolve() == b.resolve() or (a.exists() and b.exists() and a.samefile(b))
    except (OSError, RuntimeError):  # a link to itself, a folder that can't be entered
        return a.absolute() == b.absolute()
