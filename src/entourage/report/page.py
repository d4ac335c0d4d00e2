"""One self-contained HTML page for a run: tables, pictures, settings. Needs the extra ``[report]``."""

import base64
import importlib.util
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from entourage.data.files import write_atomically
from entourage.errors import UserError
from entourage.report.intervals import INKS, IntervalPlot
from entourage.report.template import PAGE

__all__ = [
    "Cell",
    "Live",
    "Picture",
    "Section",
    "Table",
    "make_folder",
    "require_report",
    "write_report",
    "write_text",
]

Cell: TypeAlias = str | tuple[str, str]
#: A PNG file, its caption and, where the caption doesn't say what is to be seen, a text instead of the picture.
Picture: TypeAlias = tuple[Path, str] | tuple[Path, str, str]


@dataclass
class Table:
    """Rows under a header; a cell may be (text, "best") to be highlighted, or (text, "text") to be aligned left."""

    header: list[str]
    rows: list[list[Cell]]

    def is_text(self, column: int) -> bool:
        """Return whether the cells of a column are aligned left."""
        own = [row[column] for row in self.rows if column < len(row)]
        return bool(own) and all(not isinstance(cell, str) and cell[1] == "text" for cell in own)


@dataclass
class Section:
    """A heading with text, a table, pictures, intervals, and tables that are folded away under a name."""

    title: str
    text: str = ""
    table: Table | None = None
    pictures: Sequence[Picture] = ()
    plots: list[IntervalPlot] = field(default_factory=list)
    folded: list[tuple[str, Table]] = field(default_factory=list)


@dataclass(frozen=True)
class Live:
    """A sentence on a page in which the model runs, and a link to it; without ``href``, how to get one."""

    text: str
    href: str = ""
    name: str = ""


def require_report() -> None:
    """Raise an error, before any long work, if a package for reports is missing."""
    missing = [name for name in ("matplotlib", "jinja2") if importlib.util.find_spec(name) is None]
    if missing:
        raise UserError(
            f"A report needs {' and '.join(missing)}: run pip install 'entourage[report]' and try again."
        )


def write_report(
    path: str | os.PathLike[str],
    title: str,
    lead: str,
    sections: Sequence[Section],
    *,
    headline: str = "",
    notes: Sequence[str] = (),
    live: Live | None = None,
) -> None:
    """Write the page in one step; pictures are embedded, so that the file is self-contained.

    Parameters
    ----------
    path : of the page
    title, headline, lead : what it is about, the result in one sentence, and what else comes first
    sections : with more than two, there is a table of contents
    notes : what limits the result
    live : about a page in which the model runs
    """
    from jinja2 import Environment

    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["embed"] = lambda p: base64.b64encode(Path(p).read_bytes()).decode()
    page = environment.from_string(PAGE).render(
        title=title,
        headline=headline,
        lead=lead,
        notes=notes,
        live=live,
        sections=sections,
        ids=_ids([section.title for section in sections]),
        looks=list(INKS),
    )
    write_text(path, page)


def _ids(titles: Sequence[str]) -> list[str]:
    """Return the anchors of sections, each one once.

    Examples
    --------
    >>> _ids(["All models", "…", "All models"])
    ['all-models', 'section', 'all-models-2']
    """
    found: list[str] = []
    for title in titles:
        plain = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "section"
        name, count = plain, 1
        while name in found:
            count += 1
            name = f"{plain}-{count}"
        found.append(name)
    return found


def make_folder(path: Path) -> None:
    """Make a folder for results; raise an error where that fails."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{path} can't be made a folder for results: {error.strerror}.") from error


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file, all or nothing."""
    try:
        write_atomically(path, text.encode())
    except OSError as error:
        raise UserError(f"{path} can't be written: {error.strerror}.") from error
