"""The page of ``entourage whatif``."""

import tempfile
from pathlib import Path

import numpy as np

from entourage.decisions import Estimate, Shift, WhatIf
from entourage.decisions.what_if_result import METHOD_WORDS
from entourage.report.page import Cell, Section, Table, write_report

__all__ = ["write_what_if"]

_MOST_SETS = 20  # sets listed: those in which most changes


def write_what_if(path: Path, found: WhatIf, *, title: str, asked: str) -> None:
    """Write what changes as an HTML page."""
    done = ", ".join(f"{n:,} {role}" for role, n in found.counts().items())
    lead = (
        f"{asked}. {len(found.ids):,} choice sets; objects: {done}. Intervals: {METHOD_WORDS[found.method]}"
    )
    with tempfile.TemporaryDirectory() as folder:
        sections = [
            _shares(found, by, Path(folder) / f"{i}.png")
            for i, by in enumerate(dict.fromkeys(one.by for one in found.shifts))
        ]
        write_report(path, title, " ".join([lead, *found.notes]), [*sections, _surplus(found), _sets(found)])


def _shares(found: WhatIf, by: str, picture: Path) -> Section:
    shifts = [one for one in found.shifts if one.by == by]
    level = f"{100 * (1 - found.level):g} % CI"
    header = ["", "before", "after", "change", level]
    if any(one.ranks is not None for one in shifts):
        header += ["expected rank before", "after", f"change, {level}"]
    if any(one.surplus is not None for one in shifts):
        header += ["surplus, utils", level]
    if any(one.money is not None for one in shifts):
        header += ["surplus, money", level]
    body = [_row(one, header) for one in shifts]
    found.draw(by).savefig(picture)
    text = {
        "choice": "Mean choice probabilities over sets.",
        "ranking": "Mean probabilities of the first place over sets; expected ranks from 0, the best.",
        "subset": "Expected numbers of chosen objects a set.",
    }[found.kind]
    if shifts[0].what.startswith("affected"):
        text += " In each group of sets: of the affected objects (changed, added or removed)."
    title = "The whole table" if by == "role" else f"By {by}"
    return Section(
        title,
        text,
        Table(header, body),
        [(picture, "Open: before. Filled: after. Bars: intervals after the change.")],
    )


def _row(one: Shift, header: list[str]) -> list[Cell]:
    cells: list[Cell] = [
        (one.group, "text"),
        _number(one.before),
        _number(one.after),
        _number(one.change, "+.4f"),
    ]
    cells.append(_interval(one.change))
    if any(name.startswith("expected rank") for name in header):
        ranks = one.ranks
        cells += (
            ["–"] * 3
            if ranks is None
            else [_number(ranks[0]), _number(ranks[1]), f"{_number(ranks[2], '+.4f')} {_interval(ranks[2])}"]
        )
    for name, value in (("surplus, utils", one.surplus), ("surplus, money", one.money)):
        if name in header:
            cells += ["–", "–"] if value is None else [_number(value, "+.4f"), _interval(value)]
    return cells


def _number(found: Estimate, shape: str = ".4f") -> str:
    return format(found.value, shape) if np.isfinite(found.value) else "–"


def _interval(found: Estimate) -> str:
    if found.low is None or not np.isfinite(found.low):
        return "–"
    return f"[{found.low:.4f}, {found.high:.4f}]"


def _surplus(found: WhatIf) -> Section:
    title = "Consumer surplus"
    if found.surplus is None:
        return Section(title, f"Not identified. {found.no_surplus}")
    body: list[list[Cell]] = [[("utils", "text"), _number(found.surplus, "+.4f"), _interval(found.surplus)]]
    if found.money is not None:
        body.append([("money", "text"), _number(found.money, "+.4f"), _interval(found.money)])
    return Section(
        title,
        "Mean change of the logsum a set: the expected maximal utility."
        + ("" if found.money is None else " In money: over minus the coefficient of cost."),
        Table(["", "change", f"{100 * (1 - found.level):g} % CI"], body),
    )


def _sets(found: WhatIf) -> Section:
    before, after = found.affected
    moved = np.asarray(after.value) - np.asarray(before.value)
    order = np.argsort(-np.abs(moved), kind="stable")[:_MOST_SETS]
    header = ["set", "affected objects before", "after", "change"]
    header += [] if found.outside is None else ["nothing chosen before", "after"]
    header += [] if found.surplus_by_set is None else ["surplus, utils"]
    body: list[list[Cell]] = []
    for i in order.tolist():
        cells: list[Cell] = [str(found.ids[i]), _number(before[i]), _number(after[i]), f"{moved[i]:+.4f}"]
        cells += [] if found.outside is None else [_number(one[i]) for one in found.outside]
        cells += [] if found.surplus_by_set is None else [_number(found.surplus_by_set[i], "+.4f")]
        body.append(cells)
    return Section(
        "Sets in which most changes",
        f"The {len(order)} sets in which the share of the affected objects changes most.",
        Table(header, body),
    )
