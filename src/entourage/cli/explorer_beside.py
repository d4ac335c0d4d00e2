"""A page in which a model runs, written beside the page of a command and linked from it; or why there is none."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote

import numpy as np

from entourage.cli.outputs import missing_for_explorer
from entourage.data.frames import arrow_table
from entourage.errors import UserError
from entourage.estimators.inputs import encoder_of
from entourage.report.page import Live

if TYPE_CHECKING:
    from entourage.serving.explorer import Preset

__all__ = ["SHOWN_SETS", "Shown", "write_beside"]

Named: TypeAlias = tuple[str, Any]

SHOWN_SETS = 100  # of the table, in the page


@dataclass(frozen=True)
class Shown:
    """A set that has a button in the page.

    Attributes
    ----------
    row : of the table, the object that is selected
    text : what is said of it
    """

    row: int
    text: str


def write_beside(
    explorer: Path | None,
    page: Path | None,
    models: Sequence[Named],
    frame: Any,
    shown: Sequence[Shown] = (),
    *,
    rival: Named | None = None,
    title: str,
) -> Live:
    """Write the explorer, and return what a page says of it. Where there can be none, the sentence says why.

    Parameters
    ----------
    explorer : the file to write; None for none
    page : that links to it
    models : the first of them that can run in a page does
    frame : the table
    shown : the buttons; their sets come first
    rival : shown beside, where it can run in a page, too
    title : of the explorer
    """
    if explorer is None:
        return Live(
            "With the option --explorer explorer.html there is also a page in which the model runs: change, drag and "
            "remove objects, and see who gains and who loses."
        )
    missing = missing_for_explorer()
    if missing:
        return Live(f"There is no explorer. {missing}")
    from entourage.serving.explorer import explore

    why: list[str] = []
    for name, model in models:
        ordered, presets = _in_front(model, frame, shown)
        for other in dict.fromkeys([rival, None]):
            names = (name,) if other is None else (name, other[0])
            compare = None if other is None else other[1]
            options: dict[str, Any] = {"names": names, "presets": presets, "title": title}
            try:
                explore(model, ordered, compare=compare, most_sets=SHOWN_SETS, **options).save(explorer)
            except UserError as error:
                why.append(f"{' beside '.join(names)}: {error}")
                continue
            beside = (
                "the context-ablated control"
                if other is None
                else f"{other[0]}, the best that sees no context"
            )
            left = f" ({' '.join(why)})" if why else ""
            return Live(
                f"In it, {name} runs beside {beside}{left}: change, drag and remove objects, and see who gains "
                "and who loses. It holds rows of the table and the weights of models: share it only with those who may "
                "see them.",
                _address(explorer, page),
                "Open the explorer.",
            )
    return Live(f"There is no explorer. {' '.join(why)}")


def _address(explorer: Path, page: Path | None) -> str:
    """Return where the explorer is, as seen from the page."""
    folder = Path() if page is None else page.absolute().parent
    return quote(Path(os.path.relpath(explorer.absolute(), folder.absolute())).as_posix())


def _in_front(model: Any, frame: Any, shown: Sequence[Shown]) -> tuple[Any, tuple["Preset", ...]]:
    """Return the rows of the first sets, those with buttons before all others, and the buttons."""
    from entourage.serving.explorer import Preset
    from entourage.serving.explorer.cells import MOST_OBJECTS

    table = arrow_table(frame)
    packed = encoder_of(model)(table, with_target=False)
    place = np.empty(len(packed.order), dtype=np.int64)
    place[packed.order] = np.arange(len(packed.order))
    of_row = np.searchsorted(packed.sets.offsets, place, side="right") - 1  # the set of each row
    wanted = [one for one in shown if packed.sets.sizes[of_row[one.row]] <= MOST_OBJECTS]
    first = list(dict.fromkeys(int(of_row[one.row]) for one in wanted))
    rest = [i for i in range(min(len(packed.sets), SHOWN_SETS)) if i not in first]
    kept = [*first, *rest][:SHOWN_SETS]
    offsets = packed.sets.offsets
    rows = np.concatenate([packed.order[offsets[i] : offsets[i + 1]] for i in kept])
    presets = tuple(
        Preset(
            f"Set {packed.ids[int(of_row[one.row])].as_py()}",
            kept.index(int(of_row[one.row])),
            int(place[one.row] - offsets[of_row[one.row]]),
            one.text,
        )
        for one in wanted
    )
    return table.take(rows), presets
