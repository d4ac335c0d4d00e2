"""Figures of benchmarks in pages, read from their rows when the pages are built; what isn't there stops the build.

One figure in a sentence::

    FATE takes {row}`time_to.json {seconds, model == "FATE()":.1f} s`.

A file is one of ``benchmarks/results`` or of ``paper/results``: JSON lines, or JSON with its rows in a list. What is in
braces is an expression, then a format. In it a field is what the rows have there, and all of them must agree; after a
comma comes which rows. These reduce rows to one number: ``mean``, ``std`` (between repetitions, n − 1), ``median``,
``least``, ``most``, ``total``, ``share`` (of rows in which something holds), ``count`` (``count(p <= 0.05)``; of all:
``count(True)``), and ``low`` and ``high``: ends of the exact 95 % interval of a share. A second argument says which
rows: ``share(p <= 0.05, n == 150)``. Results may be calculated with: ``{100 * share(p <= 0.05):.1f} %``,
``{one(seconds, net == "A") / one(seconds, net == "B"):.1f}`` (``one(x)`` is the plain field, spelt out).
Fields of fields are ``ensemble.ranking_accuracy``; names that are no names of Python are ``row["temperature fresh"]``.

A table::

    :::{rows} best.jsonl
    first = "task"                                      # heading of the first column; it may be empty
    where = 'versions.entourage == "0.1.0"'             # optional: which rows of the file
    blank = ""                                          # optional: for a cell without rows, otherwise an error

    [lines]                                             # label = which rows
    "medoid" = 'task == "medoid"'
    "hypervolume, d = 2" = 'task == "hypervolume-2"'

    [columns]                                           # heading = text with figures
    "0/1-ranking accuracy" = "{mean(ensemble.ranking_accuracy):.4f} ± {std(ensemble.ranking_accuracy):.4f}"
    "members" = "{members}"
    :::

``by = "task"`` makes a line of each value of a field instead, in the order of the file; with ``[names]`` (label =
value) of these values only, in that order. ``total = "all"`` adds a line of all rows of the lines before.
``bold = {"0/1-ranking accuracy" = "most"}`` (or ``least``) prints the best of that column in bold, by its first figure.

``:::{rows} calibration_rows:logits`` takes rows from a function (here of docs/_ext), not from a file. Of several rows
of one fit in ``real_tables.jsonl`` the last one holds, as in ``python -m benchmarks.real --show``.
"""

from __future__ import annotations

import ast
import importlib
import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from scipy.stats import beta
from sphinx.errors import ExtensionError

__all__ = ["RowError", "fill", "read_rows", "setup", "table"]

ROOT = Path(__file__).parents[2]
FOLDERS = (ROOT / "benchmarks" / "results", ROOT / "paper" / "results")
LAST_HOLDS = {"real_tables.jsonl": ("task", "part", "fold", "model")}  # of several rows of one fit
FIGURE = re.compile(r"\{(?P<code>[^{}]+?)(?::(?P<format>[+,]?[.,]?\d*[\w%]*))?\}")

Row = dict[str, Any]


class RowError(ExtensionError):
    """A figure that a page asks for is not in the rows."""


class _Fields(dict[str, Any]):
    """Fields by attribute, too: ``ensemble.ranking_accuracy``."""

    def __getattr__(self, name: str) -> Any:
        return _wrapped(self[name])


def _wrapped(value: Any) -> Any:
    return _Fields(value) if isinstance(value, dict) else value


def path_of(source: str) -> Path:
    """Return the file of that name."""
    for folder in FOLDERS:
        if (folder / source).is_file():
            return folder / source
    raise RowError(
        f"{source} is neither in {' nor in '.join(str(folder.relative_to(ROOT)) for folder in FOLDERS)}."
    )


def read_rows(source: str) -> list[Row]:
    """Return the rows of a file, or of ``module:function``."""
    if ":" in source:
        module, _, function = source.partition(":")
        if str(ROOT) not in sys.path:
            sys.path.insert(0, str(ROOT))
        return list(getattr(importlib.import_module(module), function)())
    text = path_of(source).read_text(encoding="utf-8")
    if source.endswith(".jsonl"):
        rows = [json.loads(line) for line in text.splitlines() if line.strip()]
        if source in LAST_HOLDS:
            return list({tuple(row[key] for key in LAST_HOLDS[source]): row for row in rows}.values())
        return rows
    whole = json.loads(text)
    if isinstance(whole, list):
        return whole
    inner = next((key for key in ("rows", "results") if isinstance(whole.get(key), list)), None)
    if inner is None:
        return [whole]
    shared = {key: value for key, value in whole.items() if key != inner}
    return [shared | row for row in whole[inner]]


def _code(node: ast.expr) -> Callable[[Row], Any]:
    compiled = compile(ast.Expression(node), "<figure>", "eval")
    return lambda row: eval(compiled, {}, {key: _wrapped(value) for key, value in row.items()} | {"row": row})


def _selected(rows: list[Row], condition: ast.expr | None) -> list[Row]:
    """Return the rows in which a condition holds; in a row without one of its fields it doesn't."""
    if condition is None:
        return rows
    holds = _code(condition)

    def found(row: Row) -> bool:
        try:
            return bool(holds(row))
        except (NameError, KeyError):
            return False

    return [row for row in rows if found(row)]


def select(rows: list[Row], condition: str) -> list[Row]:
    """Return the rows in which a condition holds."""
    return _selected(rows, ast.parse(condition, mode="eval").body)


def _one(values: list[Any]) -> Any:
    if any(value != values[0] for value in values):
        raise RowError(f"rows differ ({len(values)}, from {min(values)} to {max(values)}): reduce them")
    return values[0]


def _interval(values: list[Any]) -> tuple[float, float]:
    n, k = len(values), sum(bool(value) for value in values)
    low = float(beta.ppf(0.025, k, n - k + 1)) if k else 0.0
    return low, float(beta.ppf(0.975, k + 1, n - k)) if k < n else 1.0


REDUCE: dict[str, Callable[[list[Any]], Any]] = {
    "one": _one,
    "mean": lambda values: float(np.mean(values)),
    "std": lambda values: float(np.std(values, ddof=1)),
    "median": lambda values: float(np.median(values)),
    "least": min,
    "most": max,
    "total": sum,
    "share": lambda values: float(np.mean([bool(value) for value in values])),
    "count": lambda values: sum(bool(value) for value in values),
    "low": lambda values: _interval(values)[0],
    "high": lambda values: _interval(values)[1],
}


def _reduces(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in REDUCE


class _Empty(RowError):
    """No row is left."""


def evaluate(code: str, rows: list[Row]) -> Any:
    """Return the value of an expression over rows."""
    tree = ast.parse(f"({code},)", mode="eval").body
    assert isinstance(tree, ast.Tuple)
    expression, *rest = tree.elts
    if rest:
        rows = _selected(rows, rest[0])

    class Reduced(ast.NodeTransformer):
        """Puts numbers in place of calls that reduce rows, and of fields outside of them."""

        def visit_Call(self, node: ast.Call) -> ast.AST:
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            if name not in REDUCE:
                whole = name not in BUILT_IN and not any(
                    map(_reduces, ast.walk(node))
                )  # such as what.upper()
                return ast.Constant(reduced("one", node, rows)) if whole else self.generic_visit(node)
            mine = _selected(rows, node.args[1] if len(node.args) > 1 else None)
            return ast.Constant(reduced(name, node.args[0], mine))

        def visit_Name(self, node: ast.Name) -> ast.AST:
            return node if node.id in BUILT_IN else ast.Constant(reduced("one", node, rows))

        def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
            return ast.Constant(reduced("one", node, rows))

        def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
            return ast.Constant(reduced("one", node, rows))

    def reduced(name: str, node: ast.expr, mine: list[Row]) -> Any:
        if not mine:
            raise _Empty(f"no row for {{{code}}}")
        value = _code(node)
        try:
            return REDUCE[name]([value(row) for row in mine])
        except (NameError, KeyError, AttributeError) as problem:
            raise RowError(f"{{{code}}}: {problem}; a row has {', '.join(mine[0])}") from None

    result = ast.fix_missing_locations(ast.Expression(Reduced().visit(expression)))
    return eval(compile(result, "<figure>", "eval"), {"__builtins__": {}}, dict(BUILT_IN))


BUILT_IN: dict[str, Any] = {"round": round, "abs": abs, "max": max, "min": min, "len": len, "str": str}


def fill(text: str, rows: list[Row]) -> str:
    """Return a text with its figures filled in."""
    if not FIGURE.search(text):
        raise RowError(f"no figure in {text!r}: it needs an expression in braces")

    def figure(match: re.Match[str]) -> str:
        value = evaluate(match["code"].strip(), rows)
        printed = format(value, match["format"] or "")
        return re.sub(r"^-(?=[\d.])", "−", printed)

    return FIGURE.sub(figure, text)


def _lines(settings: dict[str, Any], rows: list[Row]) -> Iterator[tuple[str, list[Row]]]:
    if "by" in settings:
        value = _code(ast.parse(settings["by"], mode="eval").body)
        found = list(dict.fromkeys(str(value(row)) for row in rows))
        names = settings.get("names", {name: name for name in found})
        for label, name in names.items():
            yield label, [row for row in rows if str(value(row)) == str(name)]
    else:
        for label, condition in settings["lines"].items():
            yield label, select(rows, condition)


def table(source: str, body: str) -> str:
    """Return a table in Markdown."""
    settings = tomllib.loads(body)
    unknown = set(settings) - {"first", "where", "blank", "by", "names", "lines", "columns", "total", "bold"}
    if unknown or "columns" not in settings or ("by" in settings) == ("lines" in settings):
        raise RowError(f"rows of {source}: needs columns, and lines or by; unknown: {sorted(unknown)}")
    rows = read_rows(source)
    if "where" in settings:
        rows = select(rows, settings["where"])
    lines = list(_lines(settings, rows))
    if "total" in settings:
        lines.append((settings["total"], [row for _, mine in lines for row in mine]))
    cells = []
    for label, mine in lines:
        if not mine:
            raise RowError(f"rows of {source}: no row for the line {label!r}")
        cells.append([_cell(text, mine, settings.get("blank")) for text in settings["columns"].values()])
    if "bold" in settings:
        _embolden(
            cells, {list(settings["columns"]).index(name): which for name, which in settings["bold"].items()}
        )
    head = [settings.get("first", ""), *settings["columns"]]
    ruler = ["---", *["---:" if _is_number(column) else "---" for column in zip(*cells, strict=True)]]
    return "\n".join(
        "| " + " | ".join(line) + " |"
        for line in [
            head,
            ruler,
            *([label, *row] for (label, _), row in zip(lines, cells, strict=True)),
        ]
    )


def _cell(text: str, rows: list[Row], blank: str | None) -> str:
    try:
        return fill(text, rows)
    except _Empty:
        if blank is None:
            raise
        return blank


def _number(cell: str) -> float | None:
    found = re.search(r"[−-]?[\d,]*\.?\d+", cell)
    return float(found[0].replace("−", "-").replace(",", "")) if found else None


def _is_number(column: tuple[str, ...]) -> bool:
    return all(re.match(r"^([−+\d(*]|$|–)", cell) for cell in column)


def _embolden(cells: list[list[str]], best_of: dict[int, str]) -> None:
    for j, which in best_of.items():
        values = {i: value for i, row in enumerate(cells) if (value := _number(row[j])) is not None}
        best = {"most": max, "least": min}[which](values.values())
        for i, value in values.items():
            if value == best:
                cells[i][j] = f"**{cells[i][j]}**"


class RowsDirective(Directive):
    """A table of rows."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Make the table as Markdown, and have that parsed."""
        source = self.arguments[0]
        where = f"{self.state.document.current_source}:{self.lineno}"
        try:
            text = table(source, "\n".join(self.content))
        except (RowError, tomllib.TOMLDecodeError, SyntaxError) as problem:
            raise RowError(f"{where}: {source}: {problem}") from None
        _depend(self.state.document.settings.env, source)
        holder = nodes.container(classes=["rows"])
        self.state.nested_parse(StringList(text.splitlines(), source=where), self.content_offset, holder)
        return [holder]


def row_role(
    name: str, rawtext: str, text: str, lineno: int, inliner: Any, options: Any = None, content: Any = None
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    """Return figures in a sentence."""
    source, _, rest = text.partition(" ")
    document = inliner.document
    try:
        filled = fill(rest, read_rows(source))
    except (RowError, SyntaxError) as problem:
        raise RowError(f"{document.current_source}:{lineno}: {source}: {problem}") from None
    _depend(document.settings.env, source)
    return [nodes.Text(filled)], []


def _depend(env: Any, source: str) -> None:
    """Read a page again when its rows change."""
    if ":" not in source:
        env.note_dependency(str(path_of(source)))
    else:
        env.note_reread()


def setup(app: Any) -> dict[str, bool]:
    """Tell Sphinx of the role and the directive."""
    app.add_directive("rows", RowsDirective)
    app.add_role("row", row_role)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
