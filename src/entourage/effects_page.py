"""The page of ``entourage effects``."""

import tempfile
from pathlib import Path
from typing import Any

from entourage.effects_plots import draw_effects, draw_influence
from entourage.report import Cell, Section, Table, write_report

__all__ = ["EFFECTS", "interval", "write_effects"]

#: What the figures of `entourage.effects.effects_report` are called.
EFFECTS = {
    "reversal_rate": "a pair turns round when a third object leaves",
    "iia_violation": "log-odds of a pair change by, when a third object leaves",
    "regularity_rate": "an object is chosen more because another joins",
    "regularity_amount": "and by so much probability, on average",
}


def write_effects(path: Path, found: dict[str, Any], *, title: str) -> None:
    """Write what `entourage.effects.effects_report` found as a page of its own."""
    body: list[list[Cell]] = []
    for name, words in EFFECTS.items():
        body.append([words, f"{found[name]['value']:.4f}", interval(found[name])])
    with tempfile.TemporaryDirectory() as folder:
        bars = Path(folder) / "effects.png"
        draw_effects(found).savefig(bars)
        sections = [
            Section(
                "How far from independence",
                "A model that scores each object alone has 0 everywhere. Intervals are over sets.",
                Table(["", "", f"{1 - found['level']:.0%} interval"], body),
                [(bars, "The figures with their intervals.")],
            )
        ]
        if found["matrix"] is not None:
            picture = Path(folder) / "influence.png"
            matrix = [[float("nan") if x is None else x for x in row] for row in found["matrix"]]
            draw_influence(matrix).savefig(picture)
            strongest = found["strongest"][0]
            sections.append(
                Section(
                    "Who moves whom",
                    f"Set {strongest['set']}, in which object {strongest['place']} moves the others more than any "
                    "other object of the sets that were looked at.",
                    pictures=[(picture, "How the object of the column moves that of the row.")],
                )
            )
        tested = found["context_test"]
        if tested is not None:
            text = tested.get("failed") or (
                f"Without the model: does the company enter the choices? Likelihood ratio {tested['statistic']:.1f} on "
                f"{tested['degrees']} degrees of freedom, p = {tested['p_value']:.3g} by simulation from the model "
                f"without context, {tested['p_chi2']:.3g} by the chi-square distribution; {tested['n_sets']:,} choices."
            )
            sections.append(Section("The choices themselves", text))
        lead = f"{found['model']}; {found['sets_seen']:,} of {found['sets']:,} sets."
        write_report(path, title, lead, sections)


def interval(entry: dict[str, Any]) -> str:
    """Return an interval in words; one set alone has none."""
    return "–" if entry["interval"] is None else "{:.4f} to {:.4f}".format(*entry["interval"])
