"""The command ``entourage compare``: whether there is a context effect in a table, and how large it is."""

import json
import math
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress, TimeElapsedColumn

from entourage.cli.options import (
    Address,
    AsJson,
    Decimal,
    Device,
    Encoding,
    Engine,
    Feature,
    Group,
    Ignore,
    Missing,
    Outside,
    Position,
    Seed,
    Sep,
    SetId,
    Situation,
    Steps,
    TablePath,
    Target,
    TargetKind,
    TrainingTable,
    csv_options,
    outside_settings,
    read_training_table,
    workers_of,
)
from entourage.cli.outputs import check_explorer, check_output
from entourage.errors import DataError

if TYPE_CHECKING:
    from entourage.pretrained import InstantVerdict
    from entourage.selection import Comparison

__all__ = ["compare"]

PAGE_TIME = 0.25  # of the budget, for the fits of the page
_METRICS = ["ranking_accuracy", "kendall_tau", "top1_accuracy", "ndcg@10"]
_METRICS_OF_CHOICES = {"choice": ["accuracy"], "subset": ["subset_accuracy", "informedness"]}


def compare(
    table: TablePath,
    set_id: SetId,
    target: Target,
    target_kind: TargetKind = "rank",
    feature: Feature = None,
    situation: Situation = None,
    ignore: Ignore = None,
    missing: Missing = None,
    sep: Sep = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf8",
    group: Group = None,
    outside: Outside = False,
    position: Position = None,
    metric: Annotated[
        str | None,
        typer.Option(
            help="What models are chosen and compared by: by default ranking_accuracy, for choices log_likelihood, for "
            "choices of some f1."
        ),
    ] = None,
    folds: Annotated[int, typer.Option(min=2, help="Outer folds, on which models are compared.")] = 5,
    inner: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Inner folds, by which they are chosen; 1: one split; 0: a fifth of the training sets is set aside. "
            "By default 1 for up to 1,500 sets, 0 for more.",
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            help="A column of years or other numbers: models learn from earlier sets than they are tested on."
        ),
    ] = None,
    models: Annotated[
        str | None,
        typer.Option(help="Models to compare, by name, with commas between; a wrong name lists all."),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(min=1, help="Seconds that all fits may take; those of the page, up to a quarter more."),
    ] = None,
    level: Annotated[float, typer.Option(help="The significance level of the test.")] = 0.05,
    steps: Steps = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Fits in parallel, of one thread each; by default one a CPU.")
    ] = None,
    engine: Engine = "local",
    address: Address = None,
    device: Device = "auto",
    seed: Seed = 0,
    report: Annotated[Path | None, typer.Option("-o", "--report", help="An HTML page to write.")] = Path(
        "comparison.html"
    ),
    explorer: Annotated[
        Path | None,
        typer.Option(
            help="Also write a page in which the chosen model with context runs beside the best without; needs the "
            "extra onnx. It holds rows of TABLE."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Test whether there is a context effect in a table, and estimate how large it is.

    Three tiers of models are cross-validated: those that score each object alone (the best single column, a linear
    model, boosted trees, nets), those that also see its standing in the set, and nets of the whole set (FATE,
    SetAttention, each beside its context-ablated control). In each outer fold the best of each tier is chosen on
    training sets; differences on the held-out sets are what context is worth, with confidence intervals and p-values.
    With few sets (up to 1,000, and 50,000 pairs of objects) the pretrained net takes part, and what it believes at
    once, the instant verdict, is printed below.
    Example:

    entourage compare races.csv --set-id race --target place --group season
    """
    from entourage.report.page import require_report

    if report is not None:
        require_report()
        check_output(report, table)
    if explorer is not None:
        missing_packages = check_explorer(explorer, report, table)
        if missing_packages:
            Console(stderr=True).print(
                f"There will be no explorer. {missing_packages}", soft_wrap=True, markup=False
            )
    outside_settings(outside, target_kind)
    csv = csv_options(sep, decimal, encoding)

    from entourage.selection import compare as run
    from entourage.selection import verdict, warnings_of

    training = read_training_table(
        table,
        set_id=set_id,
        target=target,
        target_kind=target_kind,
        feature=feature,
        situation=situation,
        ignore=ignore,
        missing=missing,
        csv=csv,
        group=group,
        time=time,
        position=position,
    )
    metrics = [*_METRICS_OF_CHOICES.get(target_kind, []), *_METRICS]
    errors = Console(stderr=True)
    with Progress(*Progress.get_default_columns(), TimeElapsedColumn(), console=errors) as bar:
        line = bar.add_task("comparing", total=None, visible=errors.is_terminal)
        rows: list[dict[str, Any]] = []

        def show(row: dict[str, Any]) -> None:
            rows.append(row)
            bar.update(line, advance=1, total=row["fits"], description=row["candidate"])
            if not errors.is_terminal:
                mean = row["means"][next(iter(row["means"]))]
                errors.print(
                    f"{len(rows)} of {row['fits']}: {row['candidate']}, fold {row['fold'] + 1}, {mean:.4f}, "
                    f"{row['seconds']:.0f} s",
                    soft_wrap=True,
                )

        with workers_of(engine, address, workers, here=os.cpu_count() or 1) as side_by_side:
            result = run(
                training.packed.sets,
                metrics=metrics,
                metric=metric,
                kind=target_kind,
                outside=outside,
                models=None if models is None else [name.strip() for name in models.split(",")],
                folds=folds,
                inner=inner,
                groups=training.groups,
                times=training.times,
                budget=budget,
                level=level,
                workers=side_by_side,
                steps=steps,
                device=device,
                random_state=seed,
                on_plan=lambda plan: errors.print(plan, soft_wrap=True),
                on_row=show,
            )
    reads = "pretrained" in result.means
    instant = _instant_verdict(training, target_kind, outside, device, seed) if reads else None
    if report is not None:
        from entourage.cli.compare_fits import fit_for_page, influence_words
        from entourage.cli.compare_page import write_comparison
        from entourage.cli.explorer_beside import Shown, write_beside
        from entourage.training.deadline import time_limit

        with time_limit(math.inf if budget is None else PAGE_TIME * budget):
            fits = fit_for_page(result, training, random_state=seed)
        live = write_beside(
            explorer,
            report,
            fits.with_context(result),
            training.frame,
            [Shown(one["row"], influence_words(one)) for one in fits.influences[:3]],
            rival=fits.without_context(result),
            title=f"{table.name}: the model that compare chose",
        )
        title = f"Does context matter? {table.name}"
        write_comparison(report, result, training, fits, instant, title=title, live=live)
    if as_json:
        beside = {
            "verdict": verdict(result),
            "instant_verdict": None if instant is None else asdict(instant),
        }
        typer.echo(json.dumps(result.to_json() | beside))
        return
    console = Console()
    _print_models(console, result, list(dict.fromkeys([result.metric, *metrics]))[:2])
    said = [] if instant is None else [f"Instant verdict: {instant}."]
    for sentence in [verdict(result), *warnings_of(result), *said]:
        console.print(sentence, soft_wrap=True, markup=False)  # a verdict has brackets
    if report is not None:
        console.print(f"Report: {report}", soft_wrap=True)
        if explorer is not None:
            console.print(f"Explorer: {explorer}" if live.href else live.text, soft_wrap=True, markup=False)


def _instant_verdict(
    training: TrainingTable, kind: str, outside: bool, device: str, seed: int
) -> "InstantVerdict | None":
    """Return what the pretrained net believes; None where it can't say. What was chosen counts, where anything was."""
    import numpy as np

    from entourage.effects import instant_verdict

    sets = training.packed.sets.with_position(None)
    if outside:
        sets = sets[np.minimum.reduceat(np.asarray(sets.targets), sets.offsets[:-1]) == 0]
    try:
        task = kind if kind in ("choice", "subset") else "ranking"
        return instant_verdict(sets, task=task, device=device, random_state=seed)
    except DataError:  # nothing to compare is left, or too much
        return None


def _print_models(console: Console, result: "Comparison", metrics: list[str]) -> None:
    from rich.table import Table

    from entourage.selection.candidates import TIERS

    shown = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    shown.add_column("model", no_wrap=True)
    shown.add_column("tier", no_wrap=True)
    for name in metrics:
        shown.add_column(name, justify="right", no_wrap=True)
    for model, means in result.means.items():
        low, high = result.intervals[model][metrics[0]]
        cells = [f"{means[metrics[0]]:.4f} [{low:.3f}, {high:.3f}]"]
        cells += [f"{means[name]:.4f}" for name in metrics[1:]]
        shown.add_row(model, TIERS[result.kinds[model]], *cells)
    console.print(shown)
