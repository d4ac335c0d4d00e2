"""The command ``entourage predict``: a table with scores and ranks."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

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
from entourage.cli.outputs import check_output
from entourage.errors import UserError

__all__ = ["predict"]


def predict(
    model: ModelPath,
    table: TablePath,
    out: Annotated[
        Path, typer.Option("-o", "--out", help="The table to write, in the format of its extension.")
    ],
    sep: Sep = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf8",
    people: Annotated[
        str | None,
        typer.Option(
            help="Of a mixed_logit or latent_class that was fitted with --group: the column of the person, whose "
            "earlier choices then count."
        ),
    ] = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Add the columns probability, score (larger is better) and rank (0 is best) to a table, in the order of its rows.

    Probability is that of the first place, or of being chosen; a ranker has it where sets were held out when it was
    fitted. A model of choices of some adds chosen (1 or 0) instead of rank. With an outside option
    ([bold]fit --outside[/bold]), choosing nothing takes part in the ranking: where it is the most probable, no row of
    the set has rank 0. Its probability is in probability_of_nothing, the same for all rows of a set.

    From Parquet to Parquet, where the rows of a set are contiguous, the table is read in parts; other tables are read
    whole.
    """
    check_output(out, table, model)
    csv = csv_options(sep, decimal, encoding)

    from entourage import load
    from entourage.data.table_files import kind_of, write_table
    from entourage.estimators.inputs import encoder_of
    from entourage.estimators.prediction_tables import predict_stream, predict_table

    fitted = load(model)
    encoder_of(fitted, model)
    run_on(fitted, device)
    rows = None
    if people is not None and not hasattr(fitted, "people_"):
        raise UserError(
            f"--people is about models that know people by their choices, mixed_logit and latent_class; {model} "
            f"holds a {type(fitted).__name__}."
        )
    if people is None and table.is_file() and kind_of(table) == kind_of(out) == ("parquet", ""):
        with Progress(console=Console(stderr=True), transient=True) as progress:
            line = progress.add_task("predicting", total=None)
            rows = predict_stream(
                fitted, table, out, lambda done, total: progress.update(line, completed=done, total=total)
            )
    if rows is None:
        run_on(fitted, device, show=True)
        predicted = predict_table(fitted, read_for(fitted, table, csv, ids=[people]), people)
        write_table(out, predicted)
        rows = predicted.num_rows
    if as_json:
        typer.echo(json.dumps({"file": str(out), "rows": rows}))
    else:
        Console().print(f"{rows:,} rows: {out}", soft_wrap=True)
