"""The pages of ``entourage elasticities`` and ``entourage audit``."""

import tempfile
from pathlib import Path
from typing import Any

from entourage.decisions import Audit, DemandCurve, Diversion, Elasticities, WillingnessToPay
from entourage.decisions.words import in_words
from entourage.report.page import Cell, Section, Table, write_report

__all__ = ["write_audit", "write_elasticities"]

_MOST = 30  # rows of a table
_RULES = {
    "gradient": "by the gradient",
    "move": "by a finite move",
    "monotone": "somewhere in the range",
}


def write_elasticities(path: Path, found: dict[str, Any], *, title: str) -> None:
    """Write what the command found as an HTML page."""
    with tempfile.TemporaryDirectory() as folder:
        sections = [_section(one, Path(folder) / f"{i}.png") for i, one in enumerate(found.values())]
        first: Elasticities = found["elasticities"]
        lead = f"{len(first.own):,} objects in {len(first.cross):,} choice sets. {' '.join(first.notes)}"
        write_report(path, title, lead, sections)


def _section(one: Any, picture: Path) -> Section:
    one.plot(picture)
    if isinstance(one, Elasticities):
        body: list[list[Cell]] = [
            [label, f"{one.shares[i]:.3f}", in_words(one.aggregate_own[i])]
            for i, label in enumerate(one.labels[:_MOST])
        ]
        text = (
            f"By how many percent choice probabilities change as {one.feature} grows by one percent."
            if one.kind == "elasticity"
            else f"The change of the log-probability by one unit more of {one.feature}."
        )
        table = Table(["", "share", f"own {one.kind}"], body)
        return Section(
            f"Own {one.kind}: {in_words(one.estimate)}", text, table, [(picture, "Own elasticities.")]
        )
    if isinstance(one, Diversion):
        matrix = one.aggregate.value
        names = [*one.labels, "outside option"][: len(matrix)]
        rows: list[list[Cell]] = [
            [name, *(f"{value:.3f}" for value in row[:_MOST])]
            for name, row in zip(names[:_MOST], matrix[:_MOST], strict=True)
        ]
        return Section(
            f"Diversion by {one.by}",
            "Of the choices that the column loses, one object at a time, the share that the row gains.",
            Table(["", *one.labels[:_MOST]], rows),
            [(picture, "Diversion ratios.")],
        )
    lines = str(one).splitlines()
    what = "Demand curve" if isinstance(one, DemandCurve) else "Willingness to pay"
    assert isinstance(one, DemandCurve | WillingnessToPay)
    text = lines[0] if isinstance(one, DemandCurve) else " ".join(line.strip() for line in lines)
    return Section(what, text, None, [(picture, lines[0])])


def write_audit(path: Path, found: Audit, *, title: str) -> None:
    """Write an audit as an HTML page."""
    with tempfile.TemporaryDirectory() as folder:
        sections = []
        if found.signs:
            picture = Path(folder) / "signs.png"
            found.plot(picture)
            rows: list[list[Cell]] = [
                [
                    f"{one.feature} ({one.sign:+d})",
                    *(f"{100 * getattr(one, rule).share:.1f} %" for rule in _RULES),
                    f"{one.monotone.largest:.3g}",
                ]
                for one in found.signs
            ]
            sections.append(
                Section(
                    "Signs and monotonicity",
                    "The share of objects whose own demand moves the wrong way, all other objects as they are.",
                    Table(["column", *_RULES.values(), "largest change of log-odds"], rows),
                    [(picture, "Shares of objects that break a rule.")],
                )
            )
        if found.trade_offs:
            rows = [
                [
                    f"{one.feature} / {one.cost}",
                    f"{one.bounds[0]:.4g} to {one.bounds[1]:.4g}",
                    f"{100 * one.implausible.share:.1f} %",
                    f"{one.unidentified:,}",
                    f"{one.wrong_sign:,}",
                ]
                for one in found.trade_offs
            ]
            header = ["trade-off", "plausible", "beyond", "not identified", "wrong sign of the cost"]
            text = "Willingness to pay for one unit more of the first column, in units of the second."
            sections.append(Section("Trade-offs", text, Table(header, rows)))
        sections += _offenders(found)
        verdict = "No violation." if found.passed else "Violations found."
        lead = f"{verdict} {found.objects:,} objects in {found.sets:,} choice sets."
        write_report(path, title, lead, sections)


def _offenders(found: Audit) -> list[Section]:
    """Return a table of the objects that break each rule most."""
    sections = []
    for one in found.signs:
        for rule, words in _RULES.items():
            worst = getattr(one, rule).worst
            if worst:
                rows: list[list[Cell]] = [
                    [str(o.set), str(o.row), f"{o.value:.4g}", f"{o.amount:.3g}"] for o in worst
                ]
                header = ["set", "row", one.feature, "log-odds, the wrong way"]
                sections.append(Section(f"{one.feature}: {words}", "The worst first.", Table(header, rows)))
    for pair in found.trade_offs:
        if pair.implausible.worst:
            rows = [
                [str(o.set), str(o.row), f"{o.value:.4g}", f"{o.amount:.4g}"] for o in pair.implausible.worst
            ]
            header = ["set", "row", pair.feature, "willingness to pay"]
            title = f"{pair.feature} / {pair.cost}: implausible"
            sections.append(Section(title, "The worst first.", Table(header, rows)))
    return sections
