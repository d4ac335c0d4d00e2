"""The explorer: one HTML file in which a fitted model runs, for people to change a set and see who gains and loses."""

import base64
import gzip
import html
import json
import math
import os
import re
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from entourage.data.files import write_atomically
from entourage.data.sets import AnySets
from entourage.decisions.auditing import STEPS, TOLERANCE
from entourage.errors import DataError, ParameterError, UserError
from entourage.serving.explorer.cells import MOST_SETS, ShownColumn, ShownSet, ShownSets, show_sets
from entourage.serving.explorer.control import has_control
from entourage.serving.onnx.export import to_onnx
from entourage.tasks import Choice, SubsetChoice

__all__ = ["MODULES", "Explorer", "Preset", "explore", "script_of_page"]

WEB, VENDOR = Path(__file__).parent / "web", Path(__file__).parent / "vendor"
#: The modules of the page, each after those it takes from.
MODULES = (
    "numbers",
    "dom",
    "state",
    "address",
    "judge",
    "words",
    "pieces",
    "runtime",
    "control",
    "influence",
    "decoys",
    "demand",
    "axes",
    "arrows",
    "map",
    "picture",
    "fields",
    "table",
    "matrix",
    "situation",
    "curve",
    "csv",
    "export",
    "finders",
    "analyses",
    "controls",
    "labels",
    "main",
    "start",
)
SIZES = (
    1,
    2,
    5,
    50,
)  # of sets by which its graph is checked: rounding grows with sets, and a page shows 30 objects
MOST_BYTES = 25_000_000  # of a page that can still be mailed


@dataclass(frozen=True)
class Preset:
    """A button of the page that shows a certain set.

    Attributes
    ----------
    name, text : of the button, and what is said of the set
    set : its place among those of the page
    selected : the object that is selected
    """

    name: str
    set: int
    selected: int = 0
    text: str = ""


@dataclass(frozen=True, repr=False)
class Explorer:
    """A page; a notebook shows it in a frame.

    Attributes
    ----------
    page : the HTML
    """

    page: str

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page, all or nothing."""
        try:
            write_atomically(path, self.page.encode())
        except OSError as error:
            raise UserError(f"{path} can't be written: {error.strerror or error}.") from None

    def __repr__(self) -> str:
        return f"Explorer({len(self.page) / 1e6:.1f} MB; .save('explorer.html') writes the page)"

    def _repr_html_(self) -> str:
        frame = '<iframe style="width:100%;height:900px;border:0" sandbox="allow-scripts allow-downloads" srcdoc="'
        return frame + html.escape(self.page, quote=True) + '"></iframe>'


def explore(
    model: Any,
    X: AnySets,
    *,
    situation: ArrayLike | None = None,
    compare: Any = None,
    label: str | None = None,
    price: str | int | None = None,
    sign: int = -1,
    title: str = "Explorer",
    names: tuple[str, ...] | None = None,
    presets: tuple[Preset, ...] = (),
    most_sets: int = MOST_SETS,
) -> Explorer:
    """Make a page in which the model scores sets live: drag an object, and see how the others' chances move.

    The page is one file without any reference to another; the model runs in it (ONNX, WebAssembly). It holds the
    cells of the sets that it shows, and the weights of the model: share it only with those who may see both.

    Parameters
    ----------
    model : any model that `entourage.serving.to_onnx` can export
    X, situation : the sets to begin with: a table, or arrays, as in ``predict``
    compare : a second model, fitted to the same columns, shown side by side; without it, the context-ablated
        control is (each object scored against copies of itself), where the model has one
    label : of a table, the column that names the objects
    price : a numeric column whose demand curve is shown first and audited
    sign : which way demand should move with it, -1 or 1
    title : of the page
    names : of the model, and of the second one
    presets : buttons that show certain sets
    most_sets : the first so many sets are in the page

    Examples
    --------
    >>> import numpy as np
    >>> from entourage import FATE, Ranker
    >>> from entourage.data import make_medoid
    >>> from entourage.serving import explore
    >>> X, ranks = make_medoid(n_sets=50, n_features=2, random_state=0)
    >>> model = Ranker(FATE(width=8), steps=5, random_state=0).fit(X, ranks)
    >>> explore(model, X[:5])  # doctest: +SKIP
    Explorer(5.1 MB; .save('explorer.html') writes the page)
    """
    if sign not in (-1, 1):
        raise ParameterError(f"sign is -1 (demand falls with the price) or 1; got {sign!r}.")
    shown = show_sets(model, X, situation, label=label, most_sets=most_sets)
    models = [model] if compare is None else [model, compare]
    if compare is not None:
        _check_same(model, compare)
    for one in presets:
        if not (0 <= one.set < len(shown.sets) and 0 <= one.selected < len(shown.sets[one.set].labels)):
            raise ParameterError(
                f"The preset {one.name!r} is about a set or an object that the page has not."
            )
    given = names or tuple(_name(one) for one in models)
    if len(given) != len(models):
        raise ParameterError(f"names needs {len(models)}; got {len(given)}.")
    audited = None if price is None else _place(price, shown.columns)
    x, y = _axes(shown, audited)
    content = {
        "title": title,
        "task": _task(model),
        "temperatures": [_temperature(one) for one in models],
        "outsides": [bool(getattr(one.task, "outside", False)) for one in models],
        "columns": [_column(one) for one in shown.columns],
        "situation": [_column(one) for one in shown.situation],
        "sets": [_set(one) for one in shown.sets],
        "left_out": shown.left_out,
        "models": list(given),
        "x": x,
        "y": y,
        "price": audited,
        "sign": sign,
        "steps": STEPS,
        "tolerance": TOLERANCE,
        "control": has_control(model, X, situation),
        "set_column": shown.set_column,
        "label_column": shown.label_column,
        "presets": [vars(one) for one in presets],
    }
    page = _page(content, [_onnx(one) for one in models])
    if len(page) > MOST_BYTES:
        raise DataError(
            f"The page would have {len(page) / 1e6:.0f} MB, more than {MOST_BYTES / 1e6:.0f}. Show fewer sets "
            "(most_sets, --most-sets), or a smaller model."
        )
    return Explorer(page)


def _check_same(model: Any, other: Any) -> None:
    """See that two models take the same cells."""

    def form(one: Any) -> Any:
        if one.table_ is None:
            return one.n_features_in_, one.n_situation_features_in_
        return [
            (c["name"], c["role"], c["kind"] in ("category", "code"), c["levels"])
            for c in one.table_["columns"]
        ]

    if form(model) != form(other):
        raise DataError(
            "The two models were fitted to other columns, or to other levels of a text; one set can't be scored by "
            "both. Fit both to the same table."
        )
    if _task(model) != _task(other):
        raise DataError(
            f"One model is of {_task(model)}, the other of {_task(other)}: there is nothing to compare."
        )


def _task(model: Any) -> str:
    if isinstance(model.task, Choice):
        return "choice"
    return "subset" if isinstance(model.task, SubsetChoice) else "ranking"


def _temperature(model: Any) -> float | None:
    """Return what scores are divided by before they become probabilities; None for a ranker without them."""
    if _task(model) != "ranking":
        return 1.0
    return float(model.temperature_) if getattr(model, "calibration_", None) is not None else None


def _name(model: Any) -> str:
    net = getattr(model, "net_", None)
    return type(model if net is None else net).__name__


def _place(column: str | int, columns: list[ShownColumn]) -> int:
    names = [one.name for one in columns]
    known = [one.name for one in columns if one.kind == "number"]
    place = column if isinstance(column, int) else names.index(column) if column in names else -1
    if not 0 <= place < len(columns) or columns[place].kind != "number":
        raise ParameterError(
            f"price needs a numeric column of the objects: {', '.join(known) or 'none'}; got {column!r}."
        )
    return place


def _axes(shown: ShownSets, price: int | None) -> tuple[int, int]:
    """Choose the price and the numeric column, or the two, that differ most within sets, relative to their range."""
    spreads = []
    for k, column in enumerate(shown.columns):
        values = [one.cells[:, k] for one in shown.sets[:100]]
        size = column.high - column.low
        inner = [np.nanstd(v) for v in values if len(v) > 1 and not np.isnan(v).all()]
        usable = column.kind == "number" and size > 0 and math.isfinite(size) and inner
        spreads.append(float(np.mean(inner)) / size if usable else -1.0)
    order = sorted(range(len(spreads)), key=lambda k: (k != price, -spreads[k]))
    first = sorted(order[:2])
    return (first[0], first[1]) if len(first) > 1 else (first[0], first[0])


def _column(one: ShownColumn) -> dict[str, Any]:
    return vars(one) | {
        "levels": list(one.levels),
        "audited": None if one.audited is None else vars(one.audited),
    }


def _set(one: ShownSet) -> dict[str, Any]:
    return {
        "id": one.id,
        "left_out": one.left_out,
        "rows": [[_cell(v) for v in row] for row in one.cells.tolist()],
        "labels": one.labels,
        "situation": [_cell(v) for v in one.situation.tolist()],
    }


def _cell(value: float) -> float | None:
    return None if math.isnan(value) else value


def _onnx(model: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        to_onnx(model, path, sizes=SIZES)
        return path.read_bytes()


@cache
def script_of_page() -> str:
    """Return all modules as one script: what they import is defined above."""
    parts = ['"use strict";']
    for name in MODULES:
        text = (WEB / f"{name}.js").read_text()
        text = re.sub(r"^import [^;]*;\n", "", text, flags=re.MULTILINE)
        exported = re.findall(r"^export (?:async )?(?:function|class|const) (\w+)", text, flags=re.MULTILINE)
        text = re.sub(r"^export ", "", text, flags=re.MULTILINE)
        names = ", ".join(exported)
        parts.append(f"const {{ {names} }} = (() => {{\n{text}\nreturn {{ {names} }};\n}})();")
    return "\n".join(parts)


def _page(content: dict[str, Any], models: list[bytes]) -> str:
    """Put the page together. In JSON, "<" is escaped, so that no name in a table can end the script."""
    data = json.dumps(content, allow_nan=False).replace("<", "\\u003c")
    embedded = {
        "ort": (VENDOR / "ort.wasm.bundle.min.mjs.gz").read_bytes(),
        "wasm": (VENDOR / "ort-wasm-simd-threaded.wasm.gz").read_bytes(),
    } | {f"model-{i}": gzip.compress(one, mtime=0) for i, one in enumerate(models)}
    elements = "\n".join(
        f'<script type="text/plain" id="{name}">{base64.b64encode(data).decode()}</script>'
        for name, data in embedded.items()
    )
    page = (WEB / "page.html").read_text()
    for mark, text in (
        ("/*STYLE*/", (WEB / "page.css").read_text()),
        ("/*SCRIPT*/", script_of_page()),
        ("<!--DATA-->", data),
        ("<!--EMBEDDED-->", elements),
    ):
        before, after = page.split(mark)
        page = before + text + after
    return page
