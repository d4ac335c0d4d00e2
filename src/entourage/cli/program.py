"""The command ``entourage``. Heavy imports wait inside the commands: ``--help`` and a wrong option answer at once."""

import inspect
import os
import sys
import warnings
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from entourage import __version__
from entourage.cli.assort import assort
from entourage.cli.audit import audit
from entourage.cli.compare import compare
from entourage.cli.demo import demo
from entourage.cli.effects import effects
from entourage.cli.elasticities import elasticities
from entourage.cli.evaluate import evaluate
from entourage.cli.explore import explore
from entourage.cli.export import export
from entourage.cli.fit import fit
from entourage.cli.info import info
from entourage.cli.predict import predict
from entourage.cli.prices import prices
from entourage.cli.reproduce import reproduce
from entourage.cli.serve import serve
from entourage.cli.tune import tune
from entourage.cli.whatif import whatif
from entourage.errors import UserError

__all__ = ["app", "main"]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="""Entourage learns to rank objects, and to choose among them, in the company they keep.

The utility of an object depends on its context, the others in the choice set: a decoy makes its neighbour attractive, \
an extreme option makes the middle one attractive. Start with [bold]entourage demo[/bold], which shows a preference \
reversal when one object is added; then, in Python:

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


def _flowing(text: str) -> str:
    """Return a help without the line ends of its source, which Rich would keep besides those of its own."""
    return "\n\n".join(" ".join(block.split()) for block in inspect.cleandoc(text).split("\n\n"))


for command in (
    demo,
    reproduce,
    fit,
    predict,
    evaluate,
    info,
    tune,
    compare,
    effects,
    whatif,
    elasticities,
    audit,
    assort,
    prices,
    export,
    explore,
    serve,
):
    app.command(help=_flowing(command.__doc__ or ""))(command)


def _show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    """Print a warning as one sentence, without the line of code that gave it."""
    Console(stderr=True).print(Text.assemble(("Warning: ", "yellow"), str(message)), soft_wrap=True)


def main() -> None:
    """Run the command line: a user's mistake is one sentence and exit code 2, Ctrl-C is exit code 130."""
    warnings.showwarning = _show_warning
    try:
        if os.environ.get("WORLD_SIZE", "1") != "1" and "RANK" in os.environ:
            from entourage.cli.launched import run_launched

            run_launched(app)
        app()
    except UserError as error:
        Console(stderr=True).print(Text.assemble(("Error: ", "red"), str(error)), soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        Console(stderr=True).print("Interrupted.")
        sys.exit(130)
