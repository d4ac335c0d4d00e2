"""The command ``entourage compare``: whether there is a context effect in a table, and how large it is."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import Progress, TimeElapsedColumn

from entourage.cli.options import (
    AsJson,
    Decimal,
    Device,
    Encoding,
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
    csv_options,
    outside_settings,
    read_training_table,
)
from entourage.files import check_output

if TYPE_CHECKING:
    from entourage.selection import Comparison

__all__ = ["compare"]

_METRICS = ["ranking_accuracy", "kendall_tau", "top1_accuracy", "ndcg@10"]
_MOST_SETS = 2000  # held-out sets on which columns are shuffled
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
        int, typer.Option(min=1, help="Inner folds, by which they are chosen; 1: one split.")
    ] = 3,
    level: Annotated[float, typer.Option(help="The significance level of the test.")] = 0.05,
    steps: Steps = None,
    workers: Annotated[int, typer.Option(min=1, help="Fits in parallel, of one thread each.")] = 1,
    device: Device = "auto",
    seed: Seed = 0,
    report: Annotated[Path | None, typer.Option(help="An HTML page to write.")] = Path("comparison.html"),
    as_json: AsJson = False,
) -> None:
    """Test whether there is a context effect in a table, and estimate how large it is.

    Context-free models (linear, a net, LambdaMART) and context-dependent ones (FATE, FETA), each net beside its
    context-ablated control, are cross-validated. In each outer fold the best model of either kind is chosen by inner
    folds; their difference on the held-out sets is the context gain, with a confidence interval and a p-value. Example:

    entourage compare races.csv --set-id race --target place --group season
    """
    from entourage.report.page import require_report

    if report is not None:
        require_report()
        check_output(report, table)
    outside_settings(outside, target_kind)
    csv = csv_options(sep, decimal, encoding)

    from entourage.selection import compare as run
    from entourage.selection import fit_best_held_out, refit_chosen, verdict, warnings_of

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
        position=position,
        codes=False,
    )
    metrics = [*_METRICS_OF_CHOICES.get(target_kind, []), *_METRICS]
    with Progress(*Progress.get_default_columns(), TimeElapsedColumn(), console=Console(stderr=True)) as bar:
        line = bar.add_task("comparing", total=None)
        result = run(
            training.packed.sets,
            metrics=metrics,
            metric=metric,
            kind=target_kind,
            outside=outside,
            folds=folds,
            inner=inner,
            groups=training.groups,
            level=level,
            workers=workers,
            steps=steps,
            device=device,
            random_state=seed,
            on_row=lambda row: bar.update(line, advance=1, total=row["fits"], description=row["candidate"]),
        )
    if report is not None:
        from entourage.cli.compare_page import write_comparison
        from entourage.effects import importance
        from entourage.effects.influence import influential_objects

        sets, groups = training.packed.sets, training.groups
        refitted = refit_chosen(result, sets)
        best, fitted, held_out = fit_best_held_out(result, sets, groups)
        some = held_out[:_MOST_SETS]
        own = None if groups is None else groups[some]
        known = (
            result.metric if result.metric in fitted.task.metrics else None
        )  # a ranker of choices has its own
        matters = importance(fitted, sets[some], metric=known, groups=own, level=level, random_state=seed)
        write_comparison(
            report,
            result,
            training,
            refitted,
            influential_objects(refitted["context"], training.packed),
            title=f"Does context matter? {table.name}",
            importance=(best, matters),
        )
    if as_json:
        typer.echo(json.dumps(result.to_json() | {"verdict": verdict(result)}))
        return
    console = Console()
    _print_models(console, result, list(dict.fromkeys([result.metric, *metrics]))[:2])
    for sentence in [verdict(result), *warnings_of(result)]:
        console.print(sentence, soft_wrap=True, markup=False)  # a verdict has brackets
    if report is not None:
        console.print(f"Report: {report}", soft_wrap=True)


def _print_models(console: Console, result: "Comparison", metrics: list[str]) -> None:
    from rich.table import Table

    shown = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    shown.add_column("model", no_wrap=True)
    shown.add_column("kind", no_wrap=True)
    for name in metrics:
        shown.add_column(name, justify="right")
    for model, means in result.means.items():
        cells = []
        for name in metrics:
            low, high = result.intervals[model][name]
            cells.append(f"{means[name]:.4f} [{low:.3f}, {high:.3f}]")
        shown.add_row(model, result.kinds[model], *cells)
    console.print(shown)
