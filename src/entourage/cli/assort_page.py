"""The pages of ``entourage assort`` and ``entourage prices``: the set, or its prices, with choice probabilities."""

import tempfile
from pathlib import Path

from entourage.decisions import Assortment, Prices
from entourage.report.page import Cell, Section, Table, write_report

__all__ = ["write_assortment", "write_prices"]


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


def write_prices(path: Path, found: Prices, *, title: str) -> None:
    """Write the page of prices."""
    rows: list[list[Cell]] = []
    for i, name in enumerate(found.names):
        changes, note = i in found.changed, "at a bound" if found.at_bound[i] else ""
        new = f"{found.prices[i]:.6g}" if changes else "as before"
        rows.append([name, f"{found.old[i]:.6g}", new, f"{found.probabilities[i]:.4f}", note])
    if found.outside is not None:
        rows.append(["nothing (outside option)", "", "", f"{found.outside:.4f}", ""])
    lead, _, *rest = str(found).splitlines()
    with tempfile.TemporaryDirectory() as folder:
        picture = Path(folder) / "prices.png"
        found.plot(picture)
        table = Table(["object", "price before", "price after", "probability", ""], rows)
        caption = "Prices before and after, and how often each object is chosen at the new prices."
        write_report(path, title, lead, [Section("The prices", " ".join(rest), table, [(picture, caption)])])
