"""The command ``entourage demo``: four nets on the medoid task, beside the paper's figures; two run in a page."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from entourage.cli.outputs import missing_for_explorer

if TYPE_CHECKING:
    from entourage.experiments.demo import Result, Reversal
    from entourage.report.page import Live

__all__ = ["demo"]

_SETS = 30  # fresh ones, in the explorer


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the pictures, report.html and explorer.html.")] = Path(
        "demo"
    ),
    train_sets: Annotated[int, typer.Option(min=100, help="How many sets to train on.")] = 10_000,
    test_sets: Annotated[int, typer.Option(min=1000, help="How many fresh sets to test on.")] = 20_000,
    steps: Annotated[
        int | None,
        typer.Option(min=1, help="Training steps of each net, of SetAttention an eighth; by default 4,000."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same figures.")] = 0,
) -> None:
    """Train four nets on the medoid task and compare them with the paper (about two minutes on two cores).

    Points are ranked by their distance to the medoid of their set. A context-free net, which scores each point by
    itself, can't learn that; FETA, FATE and SetAttention, which see the others, can. Prints a table beside the paper's
    figures and writes report.html, with a picture of a preference reversal: a set in which adding one point swaps the
    order of two others. Where the extra onnx is installed, also explorer.html, in which FATE and SetAttention run:
    drag a point, and see how the others' ranks change.
    """
    from entourage.report.page import Live, require_report

    require_report()
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from entourage.experiments.demo import METRIC_NAMES, reversals_in_words, run_demo

    console = Console()
    pages: list[Live] = []

    def write_explorer(results: "list[Result]", found: "Reversal") -> Live:
        console.print("Writing the explorer")
        pages.append(_explorer(out / "explorer.html", results, found, seed))
        return pages[-1]

    results, reversal = run_demo(
        out,
        n_train=train_sets,
        n_test=test_sets,
        steps=steps,
        seed=seed,
        verbose=console.is_terminal,
        announce=lambda name: console.print(f"Training the {name} net on {train_sets:,} sets of 5 points"),
        explorer=write_explorer,
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
    table.add_column("steps", justify="right")
    table.add_column("time", justify="right")
    for r in results:
        cells = [text for m in METRIC_NAMES for text in (f"{r.ours[m]:.3f}", r.paper(m))]
        table.add_row(r.name, *cells, f"{r.steps:,}", f"{r.seconds:.0f} s")
    console.print(table)
    console.print(reversals_in_words(reversal))
    console.print(f"Report: {out / 'report.html'}", soft_wrap=True)
    for page in pages:
        where = f"Explorer: {out / page.href}. " if page.href else ""
        console.print(where + page.text, soft_wrap=True, markup=False)


def _explorer(path: Path, results: "list[Result]", found: "Reversal", seed: int) -> "Live":
    """Write the page in which FATE and SetAttention run, and return what the report says of it; or what is missing."""
    from entourage.report.page import Live

    missing = missing_for_explorer()
    if missing:
        return Live(missing)
    import numpy as np

    from entourage.data.synthetic.medoid import make_medoid
    from entourage.errors import UserError
    from entourage.experiments.demo import SHOWN
    from entourage.serving.explorer import Preset, explore

    models = {r.name: r.model for r in results}
    others = make_medoid(_SETS - 1, random_state=np.random.default_rng([seed, _SETS]))[0]
    sets = np.concatenate([found.points[None], others])
    said = (
        f"Take the selected point off the offer: points {found.a + 1} and {found.b + 1} change their order."
    )
    title, presets = "The medoid task", (Preset("Preference reversal", 0, 4, said),)
    rival, why = "SetAttention", ""
    try:
        both = (SHOWN, rival)
        page = explore(models[SHOWN], sets, compare=models[rival], names=both, title=title, presets=presets)
    except UserError as error:  # a graph that rounds more than is allowed
        why = f" {rival} is not beside it: {error}"
        page = explore(models[SHOWN], sets, names=(SHOWN,), title=title, presets=presets)
    page.save(path)
    beside = "the context-ablated control" if why else rival
    return Live(
        f"{SHOWN} runs in it beside {beside}, on sets that you change: drag a point, and see how the others' ranks "
        f"move.{why}",
        path.name,
        "Open the explorer.",
    )
