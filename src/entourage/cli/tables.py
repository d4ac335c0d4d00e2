"""The commands on tables: fit, predict, evaluate, info, tune and compare; see :mod:`entourage.cli.program`."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress, TimeElapsedColumn
from rich.text import Text

from entourage.errors import UserError
from entourage.files import check_output

__all__ = ["COMMANDS"]

SetId = Annotated[str, typer.Option("--set-id", help="The column that says which set a row belongs to.")]
Target = Annotated[str, typer.Option("--target", help="The column to learn: ranks, relevances or choices.")]
TargetKind = Annotated[
    str,
    typer.Option(
        "--target-kind",
        help="rank (smaller is better), relevance (larger is better), choice (1 for the chosen row of a set, else "
        "0) or subset (1 for every chosen row).",
    ),
]
Feature = Annotated[
    list[str] | None,
    typer.Option("--feature", help="A feature column; may be given again. By default all others."),
]
Situation = Annotated[
    list[str] | None,
    typer.Option("--situation", help="A column that is the same for a whole set, such as a user's age."),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option("--ignore", help="A column that is no feature (a name, something known only later)."),
]
Group = Annotated[
    str | None,
    typer.Option("--group", help="A column, such as a user or a season, whose sets stay in one fold."),
]
Outside = Annotated[
    bool, typer.Option("--outside", help="With choices of one: in some sets nothing was chosen.")
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        "--missing", help="A text that stands for a missing value, such as ---; may be given again."
    ),
]
Sep = Annotated[
    str | None, typer.Option("--sep", help="What stands between the columns of a CSV, such as ';'.")
]
Decimal = Annotated[str, typer.Option("--decimal", help="What stands before decimals in a CSV: . or ,")]
Encoding = Annotated[
    str, typer.Option("--encoding", help="How a CSV's characters are coded, such as latin-1.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
Device = Annotated[str, typer.Option(help="cpu, cuda, or auto: the GPU where there is one.")]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same result.")]
Steps = Annotated[int | None, typer.Option(min=1, help="Training steps of a net; by default 4,000.")]
TablePath = Annotated[
    Path, typer.Argument(help="CSV, TSV, Parquet, Arrow, JSON lines or svmlight; .gz, .bz2, .xz, .zst too.")
]
ModelPath = Annotated[Path, typer.Argument(help="A model file.")]


def own_memory() -> float:
    """Return the megabytes this process holds beside mapped files, which the system can take back."""
    try:
        status = Path("/proc/self/status").read_text()
        return int(status.partition("RssAnon:")[2].split()[0]) / 1024
    except (OSError, IndexError, ValueError):  # not Linux
        return float("nan")


def _settings(device: str, seed: int, steps: int | None) -> dict[str, Any]:
    settings: dict[str, Any] = {"device": device, "random_state": seed}
    return settings if steps is None else settings | {"steps": steps}


def _outside(outside: bool, kind: str) -> dict[str, Any]:
    """Return what --outside sets, seeing that it means something."""
    if outside and kind != "choice":
        raise UserError("--outside is about choices of one: it goes with --target-kind choice.")
    return {"outside": True} if outside else {}


def csv_options(sep: str | None, decimal: str, encoding: str) -> dict[str, Any]:
    """Return how a CSV is to be read."""
    if decimal not in (".", ","):
        raise UserError(f"--decimal is . or a comma; got {decimal!r}.")
    if sep is not None and len(sep.replace("\\t", "\t")) != 1:
        raise UserError(f"--sep is one character, such as ';'; got {sep!r}.")
    return {
        "sep": None if sep is None else sep.replace("\\t", "\t"),
        "decimal": decimal,
        "encoding": encoding,
    }


def run_on(fitted: Any, device: str, *, show: bool = False) -> None:
    """Let a model score on a device, with a bar; choice models know neither."""
    known = fitted.get_params(deep=False)
    settings = {"device": device} | ({"verbose": Console(stderr=True).is_terminal} if show else {})
    fitted.set_params(**{name: value for name, value in settings.items() if name in known})


def read_for(fitted: Any, table: Path, csv: dict[str, Any], ids: Sequence[str | None] = ()) -> Any:
    """Read a table for a model: its labels (the set's and ``ids``) exactly, its text as text."""
    from entourage.data.table_files import read_table
    from entourage.estimators.inputs import encoder_of

    encoder = encoder_of(fitted)
    return read_table(table, ids=[encoder.set_id, *ids], text=encoder.text_columns, **csv)


def load_training(
    table: Path,
    set_id: str,
    target: str,
    kind: str,
    feature: list[str] | None,
    situation: list[str] | None,
    ignore: list[str] | None,
    group: str | None,
    *,
    missing: list[str] | None = None,
    csv: dict[str, Any] | None = None,
    codes: bool = True,
) -> tuple[Any, Any, Any, Any]:
    """Read a table for training: the frame, its encoder, the packed sets, and the group of each set."""
    from entourage.data.encoder import TableEncoder, groups_of, warn_of_oddities
    from entourage.data.table_files import read_table

    frame = read_table(table, ids=[set_id, group], **(csv or {}))
    encoder = TableEncoder.fit(
        frame,
        set_id=set_id,
        target=target,
        target_kind=kind,
        features=feature,
        situation=situation,
        ignore=[*(ignore or []), *([] if group is None or group == set_id else [group])],
        missing=missing or [],
        codes=codes,
    )
    packed = encoder(frame)
    warn_of_oddities(frame, packed, encoder)
    return frame, encoder, packed, None if group is None else groups_of(frame, packed, group)


def fit(
    table: TablePath,
    set_id: SetId,
    target: Target,
    out: Annotated[Path, typer.Option("-o", "--out", help="The model file to write.")],
    target_kind: TargetKind = "rank",
    model: Annotated[
        str, typer.Option(help="context_free, fate, feta, set_attention, or auto: the best of them.")
    ] = "auto",
    feature: Feature = None,
    situation: Situation = None,
    ignore: Ignore = None,
    missing: Missing = None,
    sep: Sep = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf8",
    budget: Annotated[float, typer.Option(min=0, help="Seconds in which auto begins with candidates.")] = 300,
    outside: Outside = False,
    steps: Steps = None,
    device: Device = "auto",
    seed: Seed = 0,
    on_disk: Annotated[
        Path | None,
        typer.Option(
            help="A folder in which to lay out the features of a Parquet table that is larger than memory; "
            "the rows of a set must stand together."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Learn to rank or to choose from a long table: one row an object, a column for its set, features, a target.

    Numbers, booleans and text can be features; missing values are filled in and marked, text becomes one column for
    each level. All of that is kept in the model file, so that [bold]entourage predict[/bold] takes tables of the same
    form. Rows of a set need not stand together. Example:

    entourage fit races.csv --set-id race --target place -o races.entourage
    """
    from entourage.errors import check_choice
    from entourage.estimators.tables import fit_on_disk
    from entourage.selection.auto import CANDIDATES, choose_net, estimator_for
    from entourage.tasks import TASKS

    check_output(out, table)
    check_choice("--model", model, [*CANDIDATES, "auto"])
    csv = csv_options(sep, decimal, encoding)
    console = Console(stderr=as_json)
    extra = _outside(outside, target_kind)
    if on_disk is not None:
        if model == "auto":
            raise UserError(
                "With --on-disk, name the model: --model fate, feta, set_attention or context_free."
            )
        ranker = estimator_for(
            model,
            target_kind,
            **_settings(device, seed, steps),
            **extra,
            verbose=Console(stderr=True).is_terminal,
        )
        with Progress(console=Console(stderr=True)) as bar:
            line = bar.add_task("laying out", total=None)
            sets = fit_on_disk(
                table,
                on_disk,
                ranker,
                lambda done, total: bar.update(line, completed=done, total=total),
                set_id=set_id,
                target=target,
                target_kind=target_kind,
                features=feature,
                situation=situation,
                ignore=ignore,
                missing=missing or [],
                codes=True,
            )
        ranker.set_params(verbose=False).save(out)
        size = sum(file.stat().st_size for file in on_disk.iterdir())
        console.print(
            f"{model}, learnt from {len(sets):,} sets of {len(sets.objects):,} objects; {size / 1e6:,.0f} MB on "
            f"disk, {own_memory():,.0f} MB of memory of its own at the end"
        )
        console.print(f"Model: {out}", soft_wrap=True)
        return
    *_, packed, _ = load_training(
        table, set_id, target, target_kind, feature, situation, ignore, None, missing=missing, csv=csv
    )
    settings = _settings(device, seed, steps) | extra | {"verbose": Console(stderr=True).is_terminal}
    tried = []
    if model == "auto":
        found = choose_net(
            packed.sets,
            lambda name: estimator_for(name, target_kind, **settings),
            seconds=budget,
            on_try=lambda t: console.print(
                f"{t.name}: {TASKS[target_kind].searched_words} {t.score:.4f} on held-out sets, {t.seconds:.0f} s"
            ),
        )
        tried = [vars(t) for t in found]
        model = found[0].name
    ranker = estimator_for(model, target_kind, **settings).fit(packed.sets)
    ranker.set_params(verbose=False).save(out)
    result = {
        "model": model,
        "file": str(out),
        "sets": len(packed.sets),
        "objects": len(packed.sets.objects),
        "features": packed.sets.n_features,
        "held_out_score": ranker.held_out_score_,
        "best_score": ranker.best_score_,
        "tried": tried,
    }
    if as_json:
        typer.echo(json.dumps(result))
        return
    score = ""
    if ranker.held_out_score_ is not None:
        score = (
            f"; {ranker.task.criterion_words} {ranker.held_out_score_:.4f} on held-out sets, each half at the step "
            "that the other half chose"
        )
    console.print(
        f"{model}, learnt from {len(packed.sets):,} sets of {len(packed.sets.objects):,} objects{score}"
    )
    console.print(f"Model: {out}", soft_wrap=True)


def predict(
    model: ModelPath,
    table: TablePath,
    out: Annotated[Path, typer.Option("-o", "--out", help="The table to write; its extension says how.")],
    sep: Sep = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf8",
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Add the columns score (larger is better) and rank (0 is best) to a table, rows in the order they came.

    A model of choices adds probability, too; one of choices of some adds chosen (1 or 0) instead of rank. Where
    nothing may be chosen ([bold]fit --outside[/bold]), nothing has a place among the ranks: no row of a set has rank 0
    where nothing is the most probable. How probable that is says probability_of_nothing, the same for all rows of a
    set.

    From Parquet to Parquet, where the rows of a set stand together, a stretch of rows is in memory at a time; other
    tables are read whole.
    """
    from entourage import load
    from entourage.data.table_files import kind_of, write_table
    from entourage.estimators.inputs import encoder_of
    from entourage.estimators.tables import predict_stream, predict_table

    check_output(out, table, model)
    csv = csv_options(sep, decimal, encoding)
    fitted = load(model)
    encoder_of(fitted, model)
    run_on(fitted, device)
    rows = None
    if table.is_file() and kind_of(table) == kind_of(out) == ("parquet", ""):
        with Progress(console=Console(stderr=True), transient=True) as bar:
            line = bar.add_task("predicting", total=None)
            rows = predict_stream(
                fitted, table, out, lambda done, total: bar.update(line, completed=done, total=total)
            )
    if rows is None:
        run_on(fitted, device, show=True)
        predicted = predict_table(fitted, read_for(fitted, table, csv))
        write_table(out, predicted)
        rows = predicted.num_rows
    if as_json:
        typer.echo(json.dumps({"file": str(out), "rows": rows}))
    else:
        Console().print(f"{rows:,} rows: {out}", soft_wrap=True)


def evaluate(
    model: ModelPath,
    table: TablePath,
    sep: Sep = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf8",
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Judge a model on a table that has its target: all metrics, and 0/1-ranking accuracy by set size."""
    from entourage import load
    from entourage.estimators.inputs import encoder_of
    from entourage.estimators.tables import evaluate_table

    csv = csv_options(sep, decimal, encoding)
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


def info(model: ModelPath, as_json: AsJson = False) -> None:
    """Say what a model file holds: net, settings, columns, versions, and how training went."""
    from entourage import load
    from entourage.training import tensor_file
    from entourage.training.loop import score_not_chosen_by

    loaded = load(model)  # checks all that is shown below
    content, tensors = tensor_file.read(model, "model")
    versions = ", ".join(f"{name} {version}" for name, version in content["versions"].items())
    if not hasattr(loaded, "net_"):  # a choice model
        if as_json:
            typer.echo(json.dumps(content))
        else:
            typer.echo(f"{loaded.summary()}\n\nversions: {versions}")
        return
    net, fitted, table = content["net"], content["fitted"], content.get("table")
    numbers = sum(t.numel() for name, t in tensors.items() if name.startswith("net."))
    held_out, best = score_not_chosen_by(fitted["history"]), fitted["best_score"]
    if as_json:
        typer.echo(
            json.dumps({key: content[key] for key in content if key != "fitted"} | {"numbers": numbers})
        )
        return
    console = Console()
    lines = {
        "estimator": content["estimator"],
        "net": f"{net['name']} {net['params']}",
        "numbers in the net": f"{numbers:,}",
        "loss": loaded.loss,
        "trained": f"{fitted['steps']:,} steps, seed {fitted['seed']}",
        "held-out score": "–" if held_out is None else f"{held_out:.4f} (best of all steps: {best:.4f})",
        "versions": versions,
    }
    if table is not None:
        lines["set id"] = table["set_id"]
        lines["target"] = f"{table['target']} ({table['target_kind']})"
        lines["columns"] = ", ".join(f"{c['name']} ({c['kind']})" for c in table["columns"])
    for name, value in lines.items():
        console.print(Text.assemble((f"{name:<20}", "bold"), str(value)), soft_wrap=True)


def tune(
    table: TablePath,
    set_id: SetId,
    target: Target,
    out: Annotated[Path, typer.Option("-o", "--out", help="The model file to write.")],
    target_kind: TargetKind = "rank",
    model: Annotated[str, typer.Option(help="context_free, fate, feta or set_attention.")] = "fate",
    feature: Feature = None,
    situation: Situation = None,
    ignore: Ignore = None,
    missing: Missing = None,
    sep: Sep = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf8",
    group: Group = None,
    outside: Outside = False,
    trials: Annotated[int, typer.Option(min=1, help="Settings to try.")] = 40,
    seconds: Annotated[float | None, typer.Option(min=0, help="Begin no new trial after so long.")] = None,
    folds: Annotated[int, typer.Option(min=1, help="Inner folds; 1: a fifth is held out once.")] = 3,
    workers: Annotated[int, typer.Option(min=1, help="Trials side by side, of one thread each.")] = 1,
    study: Annotated[
        Path | None, typer.Option(help="Where the search is kept; by default beside the model.")
    ] = None,
    steps: Steps = None,
    device: Device = "auto",
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Search for the best settings of a net on inner folds, then learn with them from the whole table.

    The search is kept on disk: started again with the same table and settings, it goes on where it was.
    """
    from entourage.selection.auto import estimator_for
    from entourage.selection.tuning import tune as search

    check_output(out, table, study)
    if study is not None:
        check_output(study, table)
    csv = csv_options(sep, decimal, encoding)
    extra = _outside(outside, target_kind)
    *_, packed, groups = load_training(
        table, set_id, target, target_kind, feature, situation, ignore, group, missing=missing, csv=csv
    )
    ranker = estimator_for(model, target_kind, **_settings(device, seed, steps), **extra)
    terminal = Console(stderr=True).is_terminal
    found = search(
        ranker,
        packed.sets,
        trials=trials,
        seconds=seconds,
        folds=folds,
        groups=groups,
        workers=workers,
        study=out.with_name(f"{out.name}.study") if study is None else study,
        name=model,
        random_state=seed,
        progress=terminal,
    )
    ranker.set_params(**found.params, verbose=terminal).fit(packed.sets)
    ranker.set_params(verbose=False).save(out)
    if as_json:
        content = {"score": found.score, "params": found.params, "trials": found.trials, "file": str(out)}
        typer.echo(json.dumps(content))
        return
    console = Console()
    first = found.trials[0]["score"] if found.trials else None
    before = "" if first is None else f" (the defaults: {first:.4f})"
    console.print(
        f"Inner folds: {ranker.task.searched_words} {found.score:.4f}{before}, {len(found.trials)} trials"
    )
    console.print(", ".join(f"{name}={value}" for name, value in found.params.items()), soft_wrap=True)
    console.print(f"Model: {out}", soft_wrap=True)


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
    metric: Annotated[
        str | None,
        typer.Option(
            help="What models are chosen and compared by: by default ranking_accuracy, for choices log_likelihood, for "
            "choices of some f1."
        ),
    ] = None,
    folds: Annotated[int, typer.Option(min=2, help="Outer folds, which judge.")] = 5,
    inner: Annotated[int, typer.Option(min=1, help="Inner folds, which choose; 1: one split.")] = 3,
    level: Annotated[float, typer.Option(help="The level of the test.")] = 0.05,
    steps: Steps = None,
    workers: Annotated[int, typer.Option(min=1, help="Fits side by side, of one thread each.")] = 1,
    device: Device = "auto",
    seed: Seed = 0,
    report: Annotated[Path | None, typer.Option(help="An HTML page to write.")] = Path("comparison.html"),
    as_json: AsJson = False,
) -> None:
    """Say whether context matters in a table, and how much.

    Models that score each object alone (linear, a net, LambdaMART) and models that see the whole set (FATE, FETA) are
    cross-validated. In each fold the best of either kind is chosen by inner folds, without a look at the fold; the
    difference on the fold's sets is the context gain, with an interval and a p-value. Example:

    entourage compare races.csv --set-id race --target place --group season
    """
    from rich.table import Table

    from entourage.report.page import require_report
    from entourage.selection import compare as run
    from entourage.selection import refit_chosen, verdict, warnings_of

    if report is not None:
        require_report()
        check_output(report, table)
    _outside(outside, target_kind)
    csv = csv_options(sep, decimal, encoding)
    frame, encoder, packed, groups = load_training(
        table,
        set_id,
        target,
        target_kind,
        feature,
        situation,
        ignore,
        group,
        missing=missing,
        csv=csv,
        codes=False,
    )
    beside = {"choice": ["accuracy"], "subset": ["subset_accuracy", "informedness"]}.get(target_kind, [])
    usual = ["ranking_accuracy", "kendall_tau", "top1_accuracy", "ndcg@10"]
    with Progress(*Progress.get_default_columns(), TimeElapsedColumn(), console=Console(stderr=True)) as bar:
        line = bar.add_task("comparing", total=None)
        result = run(
            packed.sets,
            metrics=[*beside, *usual],
            metric=metric,
            kind=target_kind,
            outside=outside,
            folds=folds,
            inner=inner,
            groups=groups,
            level=level,
            workers=workers,
            steps=steps,
            device=device,
            random_state=seed,
            on_row=lambda row: bar.update(line, advance=1, total=row["fits"], description=row["candidate"]),
        )
    if report is not None:
        from entourage.cli.compare_page import write_comparison

        refitted = refit_chosen(result, packed.sets)
        write_comparison(
            report, result, refitted, frame, packed, encoder, title=f"Does context matter? {table.name}"
        )
    if as_json:
        typer.echo(json.dumps(result.to_json() | {"verdict": verdict(result)}))
        return
    console = Console()
    shown = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    shown.add_column("model", no_wrap=True)
    shown.add_column("kind", no_wrap=True)
    metrics = list(dict.fromkeys([result.metric, *beside, *usual]))[:2]
    for name in metrics:
        shown.add_column(name, justify="right")
    for model_name, means in result.means.items():
        cells = []
        for name in metrics:
            low, high = result.intervals[model_name][name]
            cells.append(f"{means[name]:.4f} [{low:.3f}, {high:.3f}]")
        shown.add_row(model_name, result.kinds[model_name], *cells)
    console.print(shown)
    for sentence in [verdict(result), *warnings_of(result)]:
        console.print(sentence, soft_wrap=True, markup=False)  # a verdict has brackets
    if report is not None:
        console.print(f"Report: {report}", soft_wrap=True)


COMMANDS: list[Callable[..., None]] = [fit, predict, evaluate, info, tune, compare]
