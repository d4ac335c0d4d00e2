"""The command ``entourage reproduce``: a table or figure of the paper, ours beside the published one."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress, TimeElapsedColumn

from entourage.cli.options import Address, Engine, Workers, workers_of

__all__ = ["reproduce"]


def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            help="What to reproduce: table1, table2, sizes, effects, expressivity, sf, noguchi or hvc."
        ),
    ],
    full: Annotated[
        bool, typer.Option("--full/--quick", help="The paper's protocol, or fewer repetitions (the default).")
    ] = False,
    device: Annotated[str, typer.Option(help="cpu, cuda, or auto: the GPU where there is one.")] = "auto",
    folds: Annotated[int | None, typer.Option(min=1, help="Repetitions, instead of the mode's.")] = None,
    task: Annotated[list[str] | None, typer.Option(help="Only this task; may be given again.")] = None,
    model: Annotated[list[str] | None, typer.Option(help="Only this model; may be given again.")] = None,
    workers: Workers = None,
    engine: Engine = "local",
    address: Address = None,
    tune: Annotated[
        bool, typer.Option("--tune", help="Search for settings on each repetition's training data.")
    ] = False,
    trials: Annotated[int | None, typer.Option(min=1, help="Settings to try, instead of the mode's.")] = None,
    data: Annotated[
        Path | None, typer.Option(help="For table2, sf, noguchi and hvc: the folder of the data; see above.")
    ] = None,
    regions: Annotated[
        str,
        typer.Option(help="For table2: how photographs are segmented, grid (61 × 55) or superpixels."),
    ] = "grid",
    seconds: Annotated[
        float | None,
        typer.Option(min=0, help="For hvc: stop after so many seconds; run it again to go on."),
    ] = None,
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

    [bold]noguchi[/bold]: attraction, compromise and similarity in people's choices, and in nets trained on them. \
--data is the folder of choices_long.csv.

    [bold]hvc[/bold]: hypervolume contributions of sets of 1 to 100 points, ours and HVC-Net. --data is the folder of \
the published weights, M3_K10.safetensors and so on.

    Every row is kept as soon as it is finished: started again in the same folder, an interrupted run goes on. Example:

    entourage reproduce table1 --task medoid --model FATE-Net --folds 1
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

        with workers_of(engine, address, workers) as side_by_side:
            options = Options(
                mode=mode,
                device=device,
                repetitions=folds,
                tasks=task,
                models=model,
                workers=side_by_side,
                tune=tune,
                trials=trials,
                data=None if data is None else data.absolute(),
                regions=regions,
                seconds=seconds,
                on_row=show,
            )
            text = run(name, folder.absolute(), options)  # workers elsewhere look for it, too
    console.print(Markdown(text))
    console.print(f"Rows, tables, pictures and report: {folder}", soft_wrap=True)
