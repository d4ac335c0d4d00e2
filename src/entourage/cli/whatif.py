"""The command ``entourage whatif``; see :mod:`entourage.cli.program`."""

import json
from pathlib import Path
from typing import Annotated

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
from entourage.errors import UserError
from entourage.files import check_output

__all__ = ["whatif"]


def whatif(
    model: ModelPath,
    table: TablePath,
    change: Annotated[
        list[str] | None,
        typer.Option(help="A change of a column, such as 'price*=1.1' or 'brand=\"x\"'; may be given again."),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(help="The rows that change, such as 'brand==\"x\" and price>3'; by default all."),
    ] = None,
    add: Annotated[
        str | None,
        typer.Option(
            help="Rows to add: a table (with set ids: to these sets, else to every set), or one row for every set, "
            "such as 'brand=\"x\"; price=3'."
        ),
    ] = None,
    remove: Annotated[str | None, typer.Option(help="The rows to remove, such as 'brand==\"x\"'.")] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            help="A column to group by: of objects (a brand) or of sets (a segment); may be given again."
        ),
    ] = None,
    weight: Annotated[str | None, typer.Option(help="The column of the weights of sets.")] = None,
    cost: Annotated[
        str | None,
        typer.Option(
            help="The column of costs, or the coefficient of cost (negative): surplus in money, too."
        ),
    ] = None,
    refits: Annotated[
        int,
        typer.Option(
            min=0,
            help="Fit the model again to so many resamples of people (--group), for intervals; 0: none.",
        ),
    ] = 0,
    group: Annotated[
        str | None, typer.Option("--group", help="The column of people, resampled together; by default sets.")
    ] = None,
    draws: Annotated[
        int, typer.Option(min=20, help="Draws of coefficients, for intervals of choice models.")
    ] = 200,
    level: Annotated[float, typer.Option(help="Significance level: intervals hold 1 - level.")] = 0.05,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="The page to write (.html), or a table of all rows (.csv, ...)."),
    ] = None,
    sep: Sep = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf8",
    device: Device = "auto",
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Compare shares, probabilities, expected ranks and consumer surplus before and after a change.

    Change columns of some rows, add rows to sets or remove them. Every set is predicted as it is and as it would be.
    Intervals: from the coefficients of a choice model, from the members of an ensemble (initialisation and training
    only), or from --refits. Example:

    entourage whatif trips.entourage trips.csv --change 'price*=1.1' --where 'brand=="x"' --by brand -o whatif.html
    """
    from entourage import load
    from entourage.data.grouping import groups_of
    from entourage.data.table_files import read_table, write_table
    from entourage.decisions import refit_people, what_if
    from entourage.estimators.inputs import encoder_of
    from entourage.report.page import require_report

    page = out is not None and out.suffix.lower() in (".html", ".htm")
    if page:
        require_report()
    if out is not None:
        check_output(out, table, model)
    csv = csv_options(sep, decimal, encoding)
    fitted = load(model)
    encoder = encoder_of(fitted, model)
    run_on(fitted, device)
    frame = read_for(fitted, table, csv, ids=[group])
    rows = add
    if add is not None and "=" not in add:
        if not Path(add).is_file():
            raise UserError(f"--add is a table, or a row such as 'price=3'; there is no file {add!r}.")
        rows = read_table(Path(add), ids=[encoder.set_id], text=encoder.text_columns, **csv)
    models = None
    if refits:
        if refits == 1:
            raise UserError("--refits needs at least 2.")
        packed = encoder(frame)
        people = None if group is None else groups_of(frame, packed, group)
        models = refit_people(fitted, packed.sets, groups=people, refits=refits, random_state=seed)
    elif group is not None:
        raise UserError("--group is about --refits: give how many, such as --refits 30.")
    found = what_if(
        fitted,
        frame,
        change=change or None,
        where=where,
        add=rows,
        remove=remove,
        by=by or None,
        sample_weight=weight,
        cost=_cost(cost),
        refits=models,
        draws=draws,
        level=level,
        random_state=seed,
    )
    if out is not None and page:
        from entourage.cli.whatif_page import write_what_if

        asked = [*(change or []), *([f"where {where}"] if where else [])]
        asked += [f"{name} {text}" for name, text in (("add", add), ("remove", remove)) if text]
        write_what_if(out, found, title=f"What if: {model.name} on {table.name}", asked="; ".join(asked))
    elif out is not None:
        write_table(out, found.to_frame("objects"))
    if as_json:
        typer.echo(json.dumps(found.to_json()))
        return
    console = Console()
    console.print(str(found), soft_wrap=True, markup=False, highlight=False)
    if out is not None:
        console.print(f"{'Report' if page else 'Table'}: {out}", soft_wrap=True)


def _cost(given: str | None) -> str | float | None:
    """Return a column, or a coefficient."""
    try:
        return None if given is None else float(given)
    except ValueError:
        return given
