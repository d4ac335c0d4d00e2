"""The page of ``entourage assort``: the set, its probabilities, and the largest value of each size."""

import tempfile
from pathlib import Path

from entourage.decisions import Assortment
from entourage.report.page import Cell, Section, Table, write_report

__all__ = ["write_assortment"]


def write_assortment(path: Path, found: Assortment, *, title: str) -> None:
    """Write the page."""
    names = found.objects.tolist() if found.labels is None else found.labels
    rows: list[list[Cell]] = [
        [str(name), f"{worth:.6g}", f"{p:.4f}", f"{worth * p:.6g}"]
        for name, worth, p in zip(names, found.worth, found.probabilities, strict=True)
    ]
    if found.outside is not None:
        rows.append(["nothing (outside option)", "", f"{found.outside:.4f}", ""])
    lead, *rest = str(found).splitlines()
    caption = "How often each object is chosen, on average over situations."
    if len(found.by_size) > 1:
        caption += f" The largest {found.objective} of a set of each size; the set found is marked."
    with tempfile.TemporaryDirectory() as folder:
        picture = Path(folder) / "assortment.png"
        found.plot(picture)
        table = Table(["object", "value", "probability", "value × probability"], rows)
        write_report(
            path, title, lead, [Section("The set to offer", " ".join(rest), table, [(picture, caption)])]
        )
