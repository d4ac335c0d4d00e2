"""The command ``entourage demo``: three nets on the medoid task, beside the paper's figures."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

__all__ = ["demo"]


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the pictures and report.html.")] = Path("demo"),
    train_sets: Annotated[int, typer.Option(min=100, help="How many sets to train on.")] = 10_000,
    test_sets: Annotated[int, typer.Option(min=1000, help="How many fresh sets to test on.")] = 20_000,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Training steps of each net; by default 4,000.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same figures.")] = 0,
) -> None:
    """Train three nets on the medoid task and compare them with the paper (two minutes on two cores).

    Points are ranked by their distance to the medoid of their set. A context-free net, which scores each point by
    itself, can't learn that; FETA and FATE, which see the others, can. Prints a table beside the paper's figures and
    writes report.html, with a picture of a preference reversal: a set in which adding one point swaps the order of two
    others.
    """
    from entourage.report.page import require_report

    require_report()
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from entourage.experiments.demo import METRIC_NAMES, reversals_in_words, run_demo

    console = Console()
    results, reversal = run_demo(
        out,
        n_train=train_sets,
        n_test=test_sets,
        steps=steps,
        seed=seed,
        verbose=console.is_terminal,
        announce=lambda name: console.print(f"Training the {name} net on {train_sets:,} sets of 5 points"),
    )
    table = Table(
        title=f"Medoid task, {test_sets:,} fresh sets",
        title_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    table.add_column("net", no_wrap=True)
    for name in METRIC_NAMES.values():
        table.add_column(name, justify="right")
        table.add_column("paper", justify="right", style="dim")
    table.add_column("training", justify="right")
    for r in results:
        cells = [text for m in METRIC_NAMES for text in (f"{r.ours[m]:.3f}", f"{r.published[m]:.3f}")]
        table.add_row(r.name, *cells, f"{r.seconds:.0f} s")
    console.print(table)
    console.print(reversals_in_words(reversal))
    console.print(f"Report: {out / 'report.html'}", soft_wrap=True)
