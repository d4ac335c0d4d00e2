"""The command ``entourage assort``; see :mod:`entourage.cli.program`."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from entourage.cli.options import (
    AsJson,
    Decimal,
    Device,
    Encoding,
    ModelPath,
    Seed,
    Sep,
    TablePath,
    csv_options,
    read_for,
    run_on,
)
from entourage.cli.outputs import check_output
from entourage.errors import UserError

__all__ = ["assort", "numbered_or_named", "weights_of_sets"]


def assort(
    model: ModelPath,
    table: TablePath,
    value: Annotated[
        str | None,
        typer.Option(
            "--value", help="The column of what a choice of each object is worth, such as a margin."
        ),
    ] = None,
    size: Annotated[
        str | None,
        typer.Option("--size", help="The largest size of a set, 8, or the least and the largest, 2:8."),
    ] = None,
    required: Annotated[
        list[str] | None,
        typer.Option(
            "--required", help="An object that every set has: its row, from 0, or its name with --object."
        ),
    ] = None,
    forbidden: Annotated[
        list[str] | None, typer.Option("--forbidden", help="An object that no set has, likewise.")
    ] = None,
    objective: Annotated[
        str,
        typer.Option(
            "--objective",
            help="revenue (of --value), share (of all objects, or of those of --value 1) or surplus (logsum).",
        ),
    ] = "revenue",
    object_id: Annotated[
        str | None,
        typer.Option(
            "--object",
            help="The column that names the objects. With it, TABLE may have several sets, the situations, with the "
            "same objects in each.",
        ),
    ] = None,
    weight: Annotated[
        str | None,
        typer.Option(
            "--weight", help="The column of how often a situation occurs, the same in all rows of a set."
        ),
    ] = None,
    method: Annotated[
        str, typer.Option("--method", help="auto, enumeration (all sets, however long it takes) or greedy.")
    ] = "auto",
    sep: Sep = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf8",
    device: Device = "auto",
    seed: Seed = 0,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", "--report", help="An HTML page to write.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find the set to offer: the one of the largest expected revenue, share or consumer surplus.

    TABLE has a row for each object that may be offered, with the columns that the model was fitted to; it needs no set
    id. The set found is exact where that can be proven (logit, nested logit, up to 2 million sets of any model), and
    the output says whether it is. Ctrl-C ends the search with the best set so far. Example:

    entourage assort shop.entourage products.csv --value margin --size 8 --object name --required coffee -o out.html
    """
    from entourage import load
    from entourage.data.frames import arrow_table
    from entourage.decisions import best_assortment
    from entourage.estimators.inputs import encoder_of
    from entourage.report.page import require_report

    limits = _limits(size)
    if out is not None:
        require_report()
        check_output(out, table, model)
    fitted = load(model)
    encoder = encoder_of(fitted, model)
    run_on(fitted, device)
    frame = arrow_table(read_for(fitted, table, csv_options(sep, decimal, encoding), ids=[object_id]))
    found = best_assortment(
        fitted,
        frame,
        value,
        size=limits,
        required=numbered_or_named(required, object_id, "--required"),
        forbidden=numbered_or_named(forbidden, object_id, "--forbidden"),
        objective=objective,
        weights=None if weight is None else weights_of_sets(frame, encoder, weight),
        object_id=object_id,
        method=method,
        random_state=seed,
        on_interrupt="keep",
        verbose=Console(stderr=True).is_terminal,
    )
    if out is not None:
        from entourage.cli.assort_page import write_assortment

        write_assortment(out, found, title=f"Assortment: {model.name} on {table.name}")
    if as_json:
        typer.echo(json.dumps(found.to_json()))
        return
    console = Console()
    console.print(str(found), soft_wrap=True, markup=False)
    names = found.objects.tolist() if found.labels is None else found.labels
    for name, worth, p in zip(names, found.worth, found.probabilities, strict=True):
        console.print(f"  {name}: value {worth:.6g}, probability {p:.4f}", soft_wrap=True, markup=False)
    if found.outside is not None:
        console.print(f"  nothing: probability {found.outside:.4f}", soft_wrap=True)
    if out is not None:
        console.print(f"Report: {out}", soft_wrap=True)


def _limits(size: str | None) -> tuple[int, int] | None:
    """Return the least and the largest size that --size names."""
    if size is None:
        return None
    try:
        numbers = [int(part) for part in size.split(":")]
    except ValueError:
        numbers = []
    if len(numbers) not in (1, 2):
        raise UserError(f"--size is the largest size, 8, or the least and the largest, 2:8; got {size!r}.")
    return (1, numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[1])


def numbered_or_named(given: list[str] | None, object_id: str | None, option: str) -> list[Any] | None:
    """Return rows as numbers, or names as they are."""
    if not given or object_id is not None:
        return given or None
    try:
        return [int(entry) for entry in given]
    except ValueError:
        raise UserError(
            f"{option} is the row of an object, from 0; got {', '.join(given)}. To name objects, add --object COLUMN."
        ) from None


def weights_of_sets(frame: Any, encoder: Any, name: str) -> Any:
    """Return the weight of each situation."""
    from entourage.data.grouping import weights_of

    if encoder.set_id not in frame.column_names:
        raise UserError(
            f"--weight is of situations, the sets of TABLE, which has no column {encoder.set_id!r}: one situation "
            "needs no weight."
        )
    return weights_of(frame, encoder(frame, with_target=False), name)
