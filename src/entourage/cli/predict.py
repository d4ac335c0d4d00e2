"""The command ``entourage predict``: a table with scores and ranks, or a folder of them."""

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress

from entourage.cli.options import (
    Address,
    AsJson,
    Decimal,
    Device,
    Encoding,
    Engine,
    ModelPath,
    Sep,
    csv_options,
    read_for,
    run_on,
    workers_of,
)
from entourage.cli.outputs import check_output
from entourage.errors import UserError

__all__ = ["predict"]


def predict(
    model: ModelPath,
    table: Annotated[
        str,
        typer.Argument(
            help="CSV, TSV, Parquet, Arrow, JSON lines or svmlight; .gz, .bz2, .xz, .zst too. Or many Parquet files: a "
            "folder, a pattern such as 'folder/*.parquet' in quotes, an address such as s3://bucket/folder."
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            "-o",
            "--out",
            help="The table to write, in the format of its extension. Or a folder: Parquet files in parts.",
        ),
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
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="To a folder: parts scored in parallel, in one thread each; by default as many as there are CPUs.",
        ),
    ] = None,
    rows_per_part: Annotated[
        int | None,
        typer.Option(min=1, help="To a folder: about how many rows a part has; by default 250,000."),
    ] = None,
    engine: Engine = "local",
    address: Address = None,
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

    To a folder, [bold]-o scores/[/bold], many workers score Parquet files in parts that end where a set does. Rows of a
    set must stand together; they may run across files, which are taken in the order of their names. The same command
    goes on where an earlier one was interrupted. Example:

    entourage predict model.entourage races.csv -o ranked.csv
    """
    csv = csv_options(sep, decimal, encoding)
    if _is_folder(out):
        if (sep, decimal, encoding) != (None, ".", "utf8"):
            raise UserError(
                f"--sep, --decimal and --encoding are of a CSV; to a folder, {out}, goes Parquet."
            )
        scored = _to_folder(
            model, table, out, people, workers, rows_per_part, engine, address, device, quiet=as_json
        )
        rows, before = scored.rows, scored.parts - scored.new_parts
        said = f"{scored.parts:,} part{'s' * (scored.parts > 1)}" + (
            f", {before:,} of them done before" if before else ""
        )
        told = {"parts": scored.parts, "new_parts": scored.new_parts, "seconds": scored.seconds}
    else:
        if workers is not None or rows_per_part is not None or engine != "local" or address is not None:
            raise UserError(
                "--workers, --rows-per-part, --engine and --address are for many Parquet files: name a folder, such as "
                f"-o scores/; got -o {out}."
            )
        _check_single(table, out)
        rows, told, said = _to_file(model, Path(table), Path(out), csv, people, device), {}, ""
    if as_json:
        typer.echo(json.dumps({"file": out, "rows": rows} | told))
    else:
        Console().print(f"{rows:,} rows{said and ' in '}{said}: {out}", soft_wrap=True)


def _is_folder(out: str) -> bool:
    """Whether a name is that of a folder: it ends so, is one, is an address, or has no extension."""
    return "://" in out or out.endswith("/") or Path(out).is_dir() or not Path(out).suffix


def _check_single(table: str, out: str) -> None:
    from entourage.data.places import has_pattern, is_address

    if is_address(table) or Path(table).is_dir() or (has_pattern(table) and not Path(table).exists()):
        raise UserError(f"{table} may be many files, so -o names a folder, such as scores/; got {out}.")


def _to_file(
    model: Path, table: Path, out: Path, csv: dict[str, Any], people: str | None, device: str
) -> int:
    """Write one table."""
    check_output(out, table, model)

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
    return rows


def _to_folder(
    model: Path,
    table: str,
    out: str,
    people: str | None,
    workers: int | None,
    rows_per_part: int | None,
    engine: str,
    address: str | None,
    device: str,
    *,
    quiet: bool,
) -> Any:
    """Write a folder of tables; return what was done."""
    from entourage.distributed.scoring import ROWS_PER_PART, predict_parts

    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with workers_of(engine, address, workers, here=cpus) as count, _Bar(quiet=quiet) as bar:
        return predict_parts(
            model,
            table,
            out,
            workers=count,
            rows_per_part=rows_per_part or ROWS_PER_PART,
            people=people,
            device=device,
            on_progress=bar.show,
        )


class _Bar:
    """How far scoring is, on the error stream: a bar, or a line now and then where that is no terminal."""

    def __init__(self, *, quiet: bool) -> None:
        self.console = Console(stderr=True)
        self.bar = Progress(console=self.console, transient=True, disable=not self.console.is_terminal)
        self.line = self.bar.add_task("reading set ids", total=None)
        self.quiet, self.told = quiet, 0.0

    def show(self, progress: Any) -> None:
        """Show how far it is."""
        from entourage.training.progress import in_words

        if progress.all_parts is None:
            self._say(f"{progress.all_rows:,} rows.")
            return
        self.bar.update(self.line, description="scoring", completed=progress.rows, total=progress.all_rows)
        share, left = progress.rows / progress.all_rows, progress.seconds_left
        if self.told == 0 or share >= self.told + 0.1 or share == 1:
            self.told = share
            rest = f", about {in_words(left)} left" if left else ""
            said = f"{progress.parts:,} of {progress.all_parts:,} parts, {progress.rows:,} rows{rest}."
            self._say(said)

    def _say(self, said: str) -> None:
        if not self.quiet and not self.console.is_terminal:
            self.console.print(said, soft_wrap=True)

    def __enter__(self) -> "_Bar":
        self.bar.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.bar.__exit__(*error)
