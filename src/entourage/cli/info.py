"""The command ``entourage info``: what a model file holds and, with a table, which columns matter to the model."""

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from entourage.cli.options import (
    AsJson,
    Decimal,
    Device,
    Encoding,
    ModelPath,
    Seed,
    Sep,
    csv_options,
    read_for,
    run_on,
)
from entourage.errors import UserError

if TYPE_CHECKING:
    from entourage.effects import Importance

__all__ = ["info"]


def info(
    model: ModelPath,
    table: Annotated[
        Path | None,
        typer.Option(
            help="A table with the target, best one that was not learnt from: shows which columns matter."
        ),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            "--group", help="With --table: a column, such as a user, whose sets are resampled together."
        ),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(help="With --table: what is measured; by default what models are compared by."),
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="With --table: permutations of each column.")] = 5,
    sep: Sep = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf8",
    device: Device = "auto",
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Describe a model file: net, settings, columns, versions, and how training went.

    With a table that has the target, show permutation importance instead: how much worse the model predicts when a
    column is shuffled among the objects of each set (a column of the situation: among sets), with 95 % intervals from
    resampling sets. Columns that say the same share their importance. Example:

    entourage info model.entourage --table held_out.csv --group season
    """
    from entourage import load

    loaded = load(model)  # checks all that is shown below
    if table is not None:
        csv = csv_options(sep, decimal, encoding)
        found = _importance(loaded, table, csv, group, metric, repeats, device, seed)
        if as_json:
            typer.echo(json.dumps(found.to_json()))
        else:
            _print_importance(found)
        return
    if group is not None or metric is not None:
        raise UserError("--group and --metric are about a table: give it, too, as --table TABLE.")
    _print_model(model, loaded, as_json)


def _importance(
    loaded: Any,
    table: Path,
    csv: dict[str, Any],
    group: str | None,
    metric: str | None,
    repeats: int,
    device: str,
    seed: int,
) -> "Importance":
    from rich.progress import Progress, TimeElapsedColumn

    from entourage.effects import importance

    run_on(loaded, device)
    frame = read_for(loaded, table, csv, ids=[group])
    console = Console(stderr=True)
    with Progress(*Progress.get_default_columns(), TimeElapsedColumn(), console=console) as bar:
        line = bar.add_task("shuffling", total=None)

        def show(done: int, total: int) -> None:
            if done == 0:
                columns = len(loaded.table_["columns"])
                bar.console.print(
                    f"{columns} columns × {repeats} permutations: the table is scored {1 + columns * repeats} times."
                )
            bar.update(line, completed=done, total=total)

        return importance(
            loaded,
            frame,
            metric=metric,
            repeats=repeats,
            groups=group,
            random_state=seed,
            on_scoring=show,
        )


def _print_importance(found: "Importance") -> None:
    from rich.table import Table

    from entourage.tasks.ranking_metrics import LOWER_IS_BETTER

    console = Console()
    change = "rise" if found.metric in LOWER_IS_BETTER else "drop"
    units = f"{found.n_sets:,} sets" + ("" if found.n_groups is None else f" of {found.n_groups:,} groups")
    console.print(
        f"{found.metric} {found.baseline:.4f} on {units}; {change} when a column is shuffled within sets:"
    )
    shown = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    shown.add_column("column", no_wrap=True)
    shown.add_column(change, justify="right", no_wrap=True)
    shown.add_column(f"{100 * (1 - found.level):g} % interval", no_wrap=True)
    shown.add_column("", no_wrap=True)
    for column in found.columns:
        low, high = column.interval
        cells = [column.name, f"{column.drop:.4f}", f"[{low:.4f}, {high:.4f}]", column.note]
        shown.add_row(*map(Text, cells), style="dim" if column.reaches_zero else "")
    console.print(shown)


def _print_model(path: Path, loaded: Any, as_json: bool) -> None:
    from entourage.training import tensor_file
    from entourage.training.held_out import score_not_chosen_by

    content, tensors = tensor_file.read(path, "model")
    versions = ", ".join(f"{name} {version}" for name, version in content["versions"].items())
    if getattr(loaded, "blend_", None) is not None:
        _print_blend(loaded, content, versions, as_json)
        return
    if getattr(loaded, "reading_", None) is not None:
        _print_reading(loaded, content, versions, as_json)
        return
    if not hasattr(loaded, "net_"):  # a choice model or a baseline
        if as_json:
            typer.echo(json.dumps(content))
        elif hasattr(loaded, "summary"):
            typer.echo(f"{loaded.summary()}\n\nversions: {versions}")
        else:
            params = ", ".join(f"{name}={value}" for name, value in content["params"].items())
            what = {"estimator": content["estimator"], "settings": params} | loaded.facts()
            _show(what | {"versions": versions} | _table_lines(content["fitted"].get("table_")))
        return
    net, fitted, table = content["net"], content["fitted"], content.get("table")
    numbers = sum(t.numel() for name, t in tensors.items() if name.startswith("net."))
    held_out, best = score_not_chosen_by(fitted["history"]), fitted["best_score"]
    if as_json:
        typer.echo(
            json.dumps({key: content[key] for key in content if key != "fitted"} | {"numbers": numbers})
        )
        return
    lines = {
        "estimator": content["estimator"],
        "net": f"{net['name']} {net['params']}",
        "parameters": f"{numbers:,}",
        "loss": loaded.loss,
        "trained": f"{fitted['steps']:,} steps, seed {fitted['seed']}",
        "held-out score": "–" if held_out is None else f"{held_out:.4f} (best of all steps: {best:.4f})",
        "versions": versions,
    }
    if loaded.monotone:
        lines["monotone"] = ", ".join(f"{name}: {sign:+d}" for name, sign in loaded.monotone.items())
    if loaded.position_effects_ is not None:
        effects = loaded.position_effects_.items()
        lines["effects of positions"] = ", ".join(f"{name}: {value:+.3f}" for name, value in effects)
    _show(lines | _table_lines(table))


def _print_reading(loaded: Any, content: dict[str, Any], versions: str, as_json: bool) -> None:
    """Say what the pretrained net has read, and what it believes of context."""
    known = not loaded.task.outside  # with an outside option the net sees one more object in each set
    found = loaded.reading_.verdict() if known else None
    if as_json:
        shown = {key: content[key] for key in content if key != "reading"}
        typer.echo(json.dumps(shown | {"instant_verdict": None if found is None else asdict(found)}))
        return
    said = "–, since there is an outside option" if found is None else str(found)
    _show(
        {
            "estimator": content["estimator"],
            "net": f"pretrained, {'fine-tuned' if loaded.fine_tune else 'not fine-tuned'}",
            "labelled sets": f"{loaded.n_labelled_sets_:,}, seed {loaded.seed_}",
            "instant verdict": said,
            "versions": versions,
        }
        | _table_lines(content.get("table"))
    )


def _print_blend(loaded: Any, content: dict[str, Any], versions: str, as_json: bool) -> None:
    """Say what an automatic model is made of, and what else was tried."""
    if as_json:
        typer.echo(json.dumps({key: content[key] for key in content if key != "blend"}))
        return
    from rich.table import Table

    count = sum(len(part.models) for part in loaded.blend_.parts)
    _show(
        {
            "estimator": content["estimator"],
            "net": f"auto: a blend of {len(loaded.blend_.parts)} candidates, {count} models",
            "trained": f"seed {loaded.seed_}",
            "held-out score": f"{loaded.held_out_score_:.4f} (of the weights chosen on all: {loaded.best_score_:.4f})",
            "versions": versions,
        }
        | _table_lines(content.get("table"))
    )
    shown = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    shown.add_column("candidate", no_wrap=True)
    shown.add_column("tier", no_wrap=True)
    for name in ("score", "weight", "seconds"):
        shown.add_column(name, justify="right", no_wrap=True)
    shown.add_column("")
    for one in loaded.tried_:
        score = "–" if math.isnan(one.score) else f"{one.score:.4f}"
        weight = f"{one.weight:.0%}" if one.weight > 0 else "–"
        cells = [one.name, one.tier, score, weight, f"{one.seconds:.1f}", one.note]
        shown.add_row(*map(Text, cells))
    Console().print(shown)


def _table_lines(table: dict[str, Any] | None) -> dict[str, str]:
    """Say what is known of the table that a model learnt from."""
    if table is None:
        return {}
    return {
        "set id": table["set_id"],
        "target": f"{table['target']} ({table['target_kind']})",
        "columns": ", ".join(f"{c['name']} ({c['kind']})" for c in table["columns"]),
    }


def _show(lines: dict[str, Any]) -> None:
    console = Console()
    for name, value in lines.items():
        console.print(Text.assemble((f"{name:<20}", "bold"), str(value)), soft_wrap=True)
