"""The command ``entourage``. Heavy imports wait inside the commands, so that ``--help`` answers at once."""

import sys
import warnings
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress, TimeElapsedColumn
from rich.text import Text

from entourage import __version__
from entourage.cli.effects import effects
from entourage.cli.tables import COMMANDS
from entourage.errors import UserError

__all__ = ["app", "main"]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="""Entourage learns to rank objects, and to choose among them, in the company they keep.

The utility of an object depends on which others are on offer: a decoy makes its neighbour shine, \
an extreme option makes the middle one attractive. Start with [bold]entourage demo[/bold], which shows a \
preference that turns round when one object is added; then, in Python:

model = entourage.Ranker(entourage.FATE()).fit(X, ranks)

where X is (sets, objects, features) and rank 0 is best; model.predict(X_new) ranks sets of any size.
""",
    rich_markup_mode="rich",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def entourage(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Learn to rank objects in the company they keep."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the pictures and report.html.")] = Path("demo"),
    train_sets: Annotated[int, typer.Option(min=100, help="How many sets to learn from.")] = 10_000,
    test_sets: Annotated[int, typer.Option(min=1000, help="How many fresh sets to judge by.")] = 20_000,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Training steps of each net; by default 4,000.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same figures.")] = 0,
) -> None:
    """Learn the medoid task with three nets and compare with the paper (two minutes on two cores).

    Points are ranked by their distance to the medoid of their set. A context-free net, which scores each
    point alone, can't learn that; FETA and FATE, which see the others, can. Prints a table beside the
    paper's figures and writes report.html, with a picture of a set in which adding one point turns a
    preference round.
    """
    from entourage.report.page import require_report

    require_report()
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from entourage.experiments.demo import METRIC_NAMES, run_demo

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
    console.print(
        f"When a point is added, {reversal.true_share:.1%} of all pairs turn round. Of these turns, "
        + ", ".join(f"{name} follows {share:.1%}" for name, share in reversal.found.items())
        + "."
    )
    console.print(f"Report: {out / 'report.html'}", soft_wrap=True)


@app.command()
def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            help="What to reproduce: table1, table2, sizes, effects, expressivity, sf or noguchi."
        ),
    ],
    full: Annotated[
        bool, typer.Option("--full/--quick", help="The paper's protocol, or fewer repetitions (the default).")
    ] = False,
    device: Annotated[str, typer.Option(help="cpu, cuda, or auto: the GPU where there is one.")] = "auto",
    folds: Annotated[int | None, typer.Option(min=1, help="Repetitions, instead of the mode's.")] = None,
    task: Annotated[list[str] | None, typer.Option(help="Only this task; may be given again.")] = None,
    model: Annotated[list[str] | None, typer.Option(help="Only this model; may be given again.")] = None,
    workers: Annotated[int, typer.Option(min=1, help="Jobs side by side, of one thread each.")] = 1,
    tune: Annotated[
        bool, typer.Option("--tune", help="Search for settings on each repetition's training data.")
    ] = False,
    trials: Annotated[int | None, typer.Option(min=1, help="Settings to try, instead of the mode's.")] = None,
    data: Annotated[
        Path | None, typer.Option(help="For table2, sf and noguchi: the folder of the data; see below.")
    ] = None,
    regions: Annotated[
        str, typer.Option(help="For table2: how photographs are cut, grid (61 × 55) or superpixels.")
    ] = "grid",
    out: Annotated[Path | None, typer.Option(help="Folder for rows, table and report.")] = None,
) -> None:
    """Run a table or figure of the paper and show ours beside what was published.

    [bold]table1[/bold]: the medoid and hypervolume tasks with ERR, RankSVM, RankNet, ListNet, FETA-Net and \
FATE-Net, and RankBoost and LambdaMART beside them; a figure outside the tolerance around the published one \
is marked.

    [bold]table2[/bold]: the regions of photographs ranked by depth. --data is a folder of Make3D as it is \
distributed, of NAME.color.jpg with NAME.depth.png (KITTI), or of NAME_left.png with NAME_disp.png or .npz (Middlebury).

    [bold]sizes[/bold]: all of them trained on sets of 5 and tested on sets of 3 to 24.

    [bold]effects[/bold]: the compromise, attraction and similarity effects, learnt from rankings.

    [bold]expressivity[/bold]: Proposition 1, executed, and how many ranking functions each order reaches.

    [bold]sf[/bold]: people's choices of a mode of travel, with and without features, by choice models and nets. \
--data is the folder of sfwork_long.csv, sfshop_long.csv and their pcmc files.

    [bold]noguchi[/bold]: attraction, compromise and similarity in people's choices, and in nets that learn from them. \
--data is the folder of choices_long.csv.

    Every row is kept as it is finished: started again in the same folder, an interrupted run goes on.
    """
    from entourage.report.page import require_report

    require_report()
    from rich.markdown import Markdown

    from entourage.experiments.reproduce import reproduce as run
    from entourage.experiments.rows import Options

    mode = "full" if full else "quick"
    folder = Path(f"reproduction-{name}-{mode}{'-tuned' if tune else ''}") if out is None else out
    console = Console()
    with Progress(*Progress.get_default_columns(), TimeElapsedColumn(), console=Console(stderr=True)) as bar:
        line = bar.add_task(name, total=None)

        def show(done: int, total: int, what: str) -> None:
            bar.update(line, completed=done, total=total, description=what or "done")

        options = Options(
            mode=mode,
            device=device,
            repetitions=folds,
            tasks=task,
            models=model,
            workers=workers,
            tune=tune,
            trials=trials,
            data=data,
            regions=regions,
            on_row=show,
        )
        text = run(name, folder, options)
    console.print(Markdown(text))
    console.print(f"Rows, tables, pictures and report: {folder}", soft_wrap=True)


for command in [*COMMANDS, effects]:
    app.command()(command)


def _show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    """Print a warning as one sentence, without the line of code that gave it."""
    Console(stderr=True).print(Text.assemble(("Warning: ", "yellow"), str(message)), soft_wrap=True)


def main() -> None:
    """Run the command line: a user's mistake is one sentence and exit code 2, Ctrl-C is exit code 130."""
    warnings.showwarning = _show_warning
    try:
        app()
    except UserError as error:
        Console(stderr=True).print(Text.assemble(("Error: ", "red"), str(error)), soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        Console(stderr=True).print("Interrupted.")
        sys.exit(130)
