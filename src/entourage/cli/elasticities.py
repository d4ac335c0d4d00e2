"""The command ``entourage elasticities``; see :mod:`entourage.cli.program`."""

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

__all__ = ["elasticities"]


def elasticities(
    model: ModelPath,
    table: TablePath,
    feature: Annotated[str, typer.Option(help="The column that moves.")] = "price",
    by: Annotated[
        str | None,
        typer.Option(help="A column of labels, such as a brand: elasticities of each label's share."),
    ] = None,
    wtp: Annotated[
        list[str] | None,
        typer.Option(
            help="A column to price: willingness to pay for it, in units of --feature; may be given again."
        ),
    ] = None,
    units: Annotated[
        float, typer.Option(help="What to multiply willingness to pay by: 60 for minutes to hours.")
    ] = 1.0,
    diversion: Annotated[
        str | None, typer.Option(help="removal or price: where the choices go that an object loses.")
    ] = None,
    demand: Annotated[
        int,
        typer.Option(min=0, help="So many points of the demand curve, --feature times 0.5 to 1.5; 0: none."),
    ] = 0,
    where: Annotated[
        str | None,
        typer.Option(help="The rows that move in the demand curve, such as 'brand==\"x\"'; by default all."),
    ] = None,
    weight: Annotated[str | None, typer.Option(help="The column of the weights of sets.")] = None,
    refits: Annotated[
        int,
        typer.Option(
            min=0,
            help="Fit again to so many resamples of people (--group), for intervals; 0: none.",
        ),
    ] = 0,
    group: Annotated[
        str | None, typer.Option("--group", help="The column of people, resampled together; by default sets.")
    ] = None,
    draws: Annotated[int, typer.Option(min=20, help="Draws of the coefficients of a choice model.")] = 200,
    level: Annotated[float, typer.Option(help="Significance level: intervals hold 1 - level.")] = 0.05,
    sep: Sep = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf8",
    device: Device = "auto",
    seed: Seed = 0,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="An HTML page to write.")] = None,
    as_json: AsJson = False,
) -> None:
    """Report elasticities: by how many percent choice probabilities change as a column grows by one percent.

    Own and cross, averaged over all objects and by label (--by), with intervals from the coefficients of a choice model
    or the members of an ensemble. On request also willingness to pay, diversion ratios and a demand curve. Example:

    entourage elasticities trips.entourage trips.csv --feature cost --by mode --wtp time --units 60 -o elasticities.html
    """
    from entourage import decisions, load
    from entourage.report.page import require_report

    if out is not None:
        require_report()
        check_output(out, table, model)
    if where is not None and not demand:
        raise UserError("--where is about the demand curve: give its number of points, such as --demand 11.")
    csv = csv_options(sep, decimal, encoding)
    fitted = load(model)
    run_on(fitted, device)
    frame = read_for(fitted, table, csv, ids=[group])
    settings: dict[str, Any] = {"draws": draws, "level": level, "random_state": seed, "sample_weight": weight}
    settings["refits"] = _refits(fitted, frame, group, refits, seed)
    found: dict[str, Any] = {
        "elasticities": decisions.elasticities(fitted, frame, feature, by=by, **settings)
    }
    for name in wtp or []:
        found[f"willingness to pay for {name}"] = decisions.willingness_to_pay(
            fitted, frame, name, feature, units=units, **settings
        )
    if diversion is not None:
        found["diversion"] = decisions.diversion(
            fitted, frame, by=diversion, feature=feature, labels=by, **settings
        )
    if demand:
        grid = [0.5 + i / max(demand - 1, 1) for i in range(demand)] if demand > 1 else [1.0]
        found["demand"] = decisions.demand_curve(
            fitted, frame, feature, grid, where=where, change="factor", **settings
        )
    if out is not None:
        from entourage.cli.decision_pages import write_elasticities

        write_elasticities(out, found, title=f"Elasticities: {model.name} on {table.name}")
    if as_json:
        typer.echo(json.dumps({name: one.to_json() for name, one in found.items()}))
        return
    for one in found.values():
        Console().print(str(one), soft_wrap=True, markup=False)
    if out is not None:
        Console().print(f"Report: {out}", soft_wrap=True)


def _refits(fitted: Any, frame: Any, group: str | None, refits: int, seed: int) -> list[Any] | None:
    """Return the model fitted to resampled people, None where none is asked for."""
    from entourage.data.grouping import groups_of
    from entourage.decisions import refit_people
    from entourage.estimators.inputs import encoder_of

    if not refits:
        if group is not None:
            raise UserError("--group is about --refits: give how many, such as --refits 30.")
        return None
    if refits == 1:
        raise UserError("--refits needs at least 2.")
    packed = encoder_of(fitted)(frame)
    people = None if group is None else groups_of(frame, packed, group)
    return refit_people(fitted, packed.sets, groups=people, refits=refits, random_state=seed)
