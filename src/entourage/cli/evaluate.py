"""The command ``entourage evaluate``: all metrics of a model on a table that has its target."""

import json

import typer
from rich.console import Console

from entourage.cli.options import (
    AsJson,
    Decimal,
    Device,
    Encoding,
    ModelPath,
    Sep,
    TablePath,
    csv_options,
    read_for,
    run_on,
)

__all__ = ["evaluate"]


def evaluate(
    model: ModelPath,
    table: TablePath,
    sep: Sep = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf8",
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Evaluate a model on a table that has its target: all metrics; with --json also accuracy by set size.

    Example:

    entourage evaluate model.entourage held_out.csv
    """
    csv = csv_options(sep, decimal, encoding)

    from entourage import load
    from entourage.estimators.evaluation_tables import evaluate_table
    from entourage.estimators.inputs import encoder_of

    fitted = load(model)
    encoder_of(fitted, model)
    run_on(fitted, device, show=True)
    result = evaluate_table(fitted, read_for(fitted, table, csv))
    if as_json:
        typer.echo(json.dumps(result))
        return
    console = Console()
    console.print(f"{result['sets']:,} sets, {result['objects']:,} objects")
    for name, value in result["metrics"].items():
        console.print(f"{name:<26} {'–' if value is None else f'{value:.4f}'}")
