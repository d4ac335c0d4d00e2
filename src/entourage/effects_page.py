"""The page of ``entourage effects``."""

import tempfile
from pathlib import Path
from typing import Any

from entourage.effects_plots import draw_effects, draw_influence
from entourage.report import Cell, Section, Table, write_report

__all__ = ["EFFECTS", "interval", "left_out", "write_effects"]

#: What the figures of `entourage.effects.effects_report` are called.
EFFECTS = {
    "reversal_rate": "a pair turns round when a third object leaves",
    "iia_violation": "log-odds of a pair change by, when a third object leaves",
    "regularity_rate": "an object is chosen more because another joins",
    "regularity_amount": "and by so much probability, on average",
}

_LEFT_OUT = {  # why a set says nothing to the test of choices
    "one_object": "of one object",
    "nothing": "in which nothing was chosen or ranked",
    "several": "in which several were chosen or share the first place",
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
            sections.append(Section("The choices themselves", f"{text}{left_out(tested)}"))
        lead = f"{found['model']}; {found['sets_seen']:,} of {found['sets']:,} sets."
        write_report(path, title, lead, sections)


def interval(entry: dict[str, Any]) -> str:
    """Return an interval in words; one set alone has none."""
    return "–" if entry["interval"] is None else "{:.4f} to {:.4f}".format(*entry["interval"])


def left_out(tested: dict[str, Any]) -> str:
    """Return a sentence, after a space, on the sets that took no part in the test of choices; "" where all did.

    Examples
    --------
    >>> left_out({"left_out": {"one_object": 1, "nothing": 12}})
    ' Left out: 1 set of one object, 12 sets in which nothing was chosen or ranked.'
    """
    parts = [
        f"{count:,} set{'s' * (count != 1)} {_LEFT_OUT[reason]}"
        for reason, count in tested["left_out"].items()
    ]
    return f" Left out: {', '.join(parts)}." if parts else ""
