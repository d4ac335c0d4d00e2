"""The command ``entourage prices``; see :mod:`entourage.cli.program`."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from entourage.cli.assort import numbered_or_named, weights_of_sets
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

__all__ = ["prices"]


def prices(
    model: ModelPath,
    table: TablePath,
    bounds: Annotated[
        str,
        typer.Option(
            "--bounds", help="The lowest and the highest price, 1:10. A model knows little beyond its data."
        ),
    ],
    price: Annotated[str, typer.Option("--price", help="The column of prices.")] = "price",
    cost: Annotated[
        str, typer.Option("--cost", help="What an object costs: a column, or one number for all.")
    ] = "0",
    own: Annotated[
        list[str] | None,
        typer.Option(
            "--own",
            help="An object whose profit counts and whose price is to be found: its row, from 0, or its name with "
            "--object. By default all; others keep their prices.",
        ),
    ] = None,
    fixed: Annotated[
        list[str] | None, typer.Option("--fixed", help="An own object that keeps its price, likewise.")
    ] = None,
    object_id: Annotated[
        str | None,
        typer.Option(
            "--object",
            help="The column that names the objects. With it, TABLE may have several sets, the situations, with the "
            "same objects at the same prices in each.",
        ),
    ] = None,
    weight: Annotated[
        str | None,
        typer.Option(
            "--weight", help="The column of how often a situation occurs, the same in all rows of a set."
        ),
    ] = None,
    restarts: Annotated[int, typer.Option(min=0, help="Random starts of the search.")] = 4,
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
    """Find the prices of the largest expected profit of a set that is offered.

    TABLE has a row for each object on offer, with the columns that the model was fitted to; it needs no set id. The
    profit is that of a choice situation, the sum of (price - cost) times choice probability over own objects.
    Example:

    entourage prices shop.entourage products.csv --cost cost --bounds 1:10 --object name --own coffee -o prices.html
    """
    from entourage import load
    from entourage.data.frames import arrow_table
    from entourage.decisions import best_prices
    from entourage.estimators.inputs import encoder_of
    from entourage.report.page import require_report

    limits = _bounds(bounds)
    if out is not None:
        require_report()
        check_output(out, table, model)
    fitted = load(model)
    encoder = encoder_of(fitted, model)
    run_on(fitted, device)
    frame = arrow_table(read_for(fitted, table, csv_options(sep, decimal, encoding), ids=[object_id]))
    found = best_prices(
        fitted,
        frame,
        price,
        cost=_cost(cost, frame.column_names),
        bounds=limits,
        own=numbered_or_named(own, object_id, "--own"),
        fixed=numbered_or_named(fixed, object_id, "--fixed"),
        weights=None if weight is None else weights_of_sets(frame, encoder, weight),
        object_id=object_id,
        restarts=restarts,
        random_state=seed,
        intervals="auto",
    )
    if out is not None:
        from entourage.cli.assort_page import write_prices

        write_prices(out, found, title=f"Prices: {model.name} on {table.name}")
    if as_json:
        typer.echo(json.dumps(found.to_json()))
        return
    console = Console()
    console.print(str(found), soft_wrap=True, markup=False)
    for i, name in enumerate(found.names):
        moved = (
            f"{found.old[i]:.6g} to {found.prices[i]:.6g}" if i in found.changed else f"{found.old[i]:.6g}"
        )
        bound = " (at a bound)" if found.at_bound[i] else ""
        text = f"  {name}: price {moved}{bound}, probability {found.probabilities[i]:.4f}"
        console.print(text, soft_wrap=True, markup=False)
    if found.outside is not None:
        console.print(f"  nothing: probability {found.outside:.4f}", soft_wrap=True)
    if out is not None:
        console.print(f"Report: {out}", soft_wrap=True)


def _bounds(given: str) -> tuple[float, float]:
    """Return the lowest and the highest price that --bounds names."""
    try:
        low, high = (float(part) for part in given.split(":"))
    except ValueError:
        raise UserError(f"--bounds is the lowest and the highest price, 1:10; got {given!r}.") from None
    return low, high


def _cost(given: str, columns: list[str]) -> str | float:
    """Return a number, or the name of a column; a column goes first."""
    if given in columns:
        return given
    try:
        return float(given)
    except ValueError:
        return given  # the error that follows says which columns there are
