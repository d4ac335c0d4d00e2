"""One self-contained HTML page for a run: tables, pictures, settings. Needs the extra ``[report]``."""

import base64
import importlib.util
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from entourage.data.files import write_atomically
from entourage.errors import UserError

__all__ = ["Cell", "Section", "Table", "make_folder", "require_report", "write_report", "write_text"]

Cell: TypeAlias = str | tuple[str, str]


@dataclass
class Table:
    """Rows under a header; a cell may be (text, "best") to be highlighted, or (text, "text") to be aligned left."""

    header: list[str]
    rows: list[list[Cell]]


@dataclass
class Section:
    """A heading with text, a table and pictures."""

    title: str
    text: str = ""
    table: Table | None = None
    pictures: list[tuple[Path, str]] = field(default_factory=list)  # PNG files and what they show


def require_report() -> None:
    """Raise an error, before any long work, if a package for reports is missing."""
    missing = [name for name in ("matplotlib", "jinja2") if importlib.util.find_spec(name) is None]
    if missing:
        raise UserError(
            f"A report needs {' and '.join(missing)}: run pip install 'entourage[report]' and try again."
        )


def write_report(path: str | os.PathLike[str], title: str, lead: str, sections: list[Section]) -> None:
    """Write the page in one step; pictures are embedded, so that the file is self-contained."""
    from jinja2 import Environment

    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["embed"] = lambda p: base64.b64encode(Path(p).read_bytes()).decode()
    write_text(path, environment.from_string(_PAGE).render(title=title, lead=lead, sections=sections))


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


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }}</title>
<style>
:root { color-scheme: light dark;
        --ink: #1c2430; --soft: #5b6675; --line: #d9dee5; --paper: #fff; --best: #0b6e4f; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ee; --soft: #9aa5b4; --line: #333c48; --paper: #14181f; --best: #5fd3a6; }
}
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper);
       max-width: 54rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; line-height: 1.2; } h2 { margin-top: 2.2rem; font-size: 1.2rem; }
.lead, figcaption { color: var(--soft); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .6rem; border-bottom: 1px solid var(--line);
         text-align: right; vertical-align: bottom; }
td { white-space: nowrap; }
td.text { text-align: left; white-space: normal; }
th:first-child, td:first-child { text-align: left; }
td.best { font-weight: 700; color: var(--best); }
figure { margin: 1rem 0; } img { max-width: 100%; height: auto; border-radius: 6px; background: #fff; }
</style>
</head>
<body>
<h1>{{ title }}</h1>
<p class="lead">{{ lead }}</p>
{% for section in sections %}
<h2>{{ section.title }}</h2>
{% if section.text %}<p>{{ section.text }}</p>{% endif %}
{% if section.table %}
<div class="wide"><table>
<thead><tr>{% for cell in section.table.header %}<th>{{ cell }}</th>{% endfor %}</tr></thead>
<tbody>
{% for row in section.table.rows %}
<tr>{% for cell in row %}{% if cell is string %}<td>{{ cell }}</td>
{%- else %}<td class="{{ cell[1] }}">{{ cell[0] }}</td>{% endif %}{% endfor %}</tr>
{% endfor %}
</tbody></table></div>
{% endif %}
{% for picture, caption in section.pictures %}
<figure><img alt="{{ caption }}" src="data:image/png;base64,{{ picture | embed }}">
<figcaption>{{ caption }}</figcaption></figure>
{% endfor %}
{% endfor %}
</body>
</html>
"""
