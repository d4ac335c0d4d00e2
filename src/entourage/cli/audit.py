"""The command ``entourage audit``; see :mod:`entourage.cli.program`."""

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
from entourage.cli.outputs import check_output
from entourage.errors import UserError

__all__ = ["audit"]


def audit(
    model: ModelPath,
    table: TablePath,
    sign: Annotated[
        list[str] | None,
        typer.Option(
            help="price=-1: more of it must not raise demand; +1: must not lower it. May be given again."
        ),
    ] = None,
    trade_off: Annotated[
        list[str] | None,
        typer.Option(
            help="time/price, or time/price=LOW:HIGH: willingness to pay for time, with its plausible bounds. May be "
            "given again."
        ),
    ] = None,
    most_sets: Annotated[
        int, typer.Option(min=1, help="Check at most this many sets, drawn at random.")
    ] = 2000,
    steps: Annotated[int, typer.Option(min=2, help="Values of each column's range that are tried.")] = 9,
    tolerance: Annotated[float, typer.Option(help="Smaller changes of log-odds count as none.")] = 1e-3,
    strict: Annotated[bool, typer.Option("--strict", help="Exit code 1 where a rule is broken.")] = False,
    sep: Sep = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf8",
    device: Device = "auto",
    seed: Seed = 0,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="An HTML page to write.")] = None,
    as_json: AsJson = False,
) -> None:
    """Audit a model economically: whether a higher price raises demand somewhere, and trade-offs are plausible.

    Each object is moved by itself, all others as they are: by the gradient, by a finite move, and over the range of the
    column. The objects that break a rule are named. Example:

    entourage audit trips.entourage trips.csv --sign price=-1 --sign time=-1 --trade-off time/price=-2:0 -o audit.html
    """
    from entourage import decisions, load
    from entourage.report.page import require_report

    signs = dict(map(_sign, sign or []))
    pairs = dict(map(_trade_off, trade_off or []))
    if not signs and not pairs:
        raise UserError("Nothing to audit. Give a rule: --sign price=-1, or --trade-off time/price.")
    if out is not None:
        require_report()
        check_output(out, table, model)
    csv = csv_options(sep, decimal, encoding)
    fitted = load(model)
    run_on(fitted, device)
    frame = read_for(fitted, table, csv)
    found = decisions.audit(
        fitted,
        frame,
        signs,
        pairs,
        steps=steps,
        tolerance=tolerance,
        most_sets=most_sets,
        random_state=seed,
    )
    if out is not None:
        from entourage.cli.decision_pages import write_audit

        write_audit(out, found, title=f"Economic audit: {model.name} on {table.name}")
    if as_json:
        typer.echo(json.dumps(found.to_json()))
    else:
        Console().print(str(found), soft_wrap=True, markup=False)
        if out is not None:
            Console().print(f"Report: {out}", soft_wrap=True)
    if strict and not found.passed:
        raise typer.Exit(1)


def _sign(text: str) -> tuple[str | int, int]:
    """Read NAME=-1 or NAME=+1.

    Examples
    --------
    >>> _sign("price=-1")
    ('price', -1)
    """
    name, _, value = text.rpartition("=")
    if not name or value.strip() not in ("-1", "1", "+1"):
        raise UserError(f"A sign is a column and a direction, --sign price=-1; got {text!r}.")
    return name, int(value)


def _trade_off(text: str) -> tuple[tuple[str, str], tuple[float, float] | None]:
    """Read FEATURE/COST or FEATURE/COST=LOW:HIGH.

    Examples
    --------
    >>> _trade_off("time/price=-2:0")
    (('time', 'price'), (-2.0, 0.0))
    """
    columns, _, ends = text.partition("=")
    feature, _, cost = columns.partition("/")
    try:
        bounds = tuple(float(end) for end in ends.split(":")) if ends else None
    except ValueError:
        bounds = ()
    if not feature or not cost or (bounds is not None and len(bounds) != 2):
        raise UserError(
            f"A trade-off is two columns, and bounds where you like, --trade-off time/price=-2:0; got {text!r}."
        )
    return (feature, cost), None if bounds is None else (bounds[0], bounds[1])
