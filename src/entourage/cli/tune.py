"""The command ``entourage tune``: the best settings of a net, then a model fitted with them."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

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
    ModelOut,
    Monotone,
    Outside,
    Position,
    Relative,
    Seed,
    Sep,
    SetId,
    Situation,
    Steps,
    TablePath,
    Target,
    TargetKind,
    Workers,
    csv_options,
    estimator_settings,
    monotone_settings,
    outside_settings,
    read_training_table,
    relative_settings,
    workers_of,
)
from entourage.cli.outputs import check_output

__all__ = ["tune"]


def tune(
    table: TablePath,
    set_id: SetId,
    target: Target,
    out: ModelOut,
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
    relative: Relative = None,
    monotone: Monotone = None,
    position: Position = None,
    trials: Annotated[int, typer.Option(min=1, help="Settings to try.")] = 40,
    seconds: Annotated[float | None, typer.Option(min=0, help="Begin no new trial after so long.")] = None,
    folds: Annotated[int, typer.Option(min=1, help="Inner folds; 1: a fifth is held out once.")] = 3,
    workers: Workers = None,
    engine: Engine = "local",
    address: Address = None,
    study: Annotated[
        Path | None, typer.Option(help="The file of the search; by default beside the model.")
    ] = None,
    steps: Steps = None,
    device: Device = "auto",
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Search for the best settings of a net on inner folds, then fit it with them to the whole table.

    The search is kept on disk: started again with the same table and settings, it goes on where it was. Example:

    entourage tune races.csv --set-id race --target place --model fate --trials 40 -o races.entourage
    """
    check_output(out, table, study)
    if study is not None:
        check_output(study, table)
    csv = csv_options(sep, decimal, encoding)
    settings = estimator_settings(device, seed, steps) | outside_settings(outside, target_kind)
    settings |= {"relative": relative_settings(relative), "monotone": monotone_settings(monotone)}

    from entourage.estimators import estimator_class
    from entourage.nets import NETS
    from entourage.selection import tune as search

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
    )
    net = NETS[model]() if model in NETS else model  # a net, so that all that is found are its settings
    estimator = estimator_class(target_kind)(net, **settings)
    terminal = Console(stderr=True).is_terminal
    with workers_of(engine, address, workers) as side_by_side:
        found = search(
            estimator,
            training.packed.sets,
            trials=trials,
            seconds=seconds,
            folds=folds,
            groups=training.groups,
            workers=side_by_side,
            study=out.with_name(f"{out.name}.study") if study is None else study,
            name=model,
            random_state=seed,
            progress=terminal,
        )
    estimator.set_params(**found.params, verbose=terminal).fit(training.packed.sets)
    estimator.set_params(verbose=False).save(out)
    if as_json:
        content = {"score": found.score, "params": found.params, "trials": found.trials, "file": str(out)}
        typer.echo(json.dumps(content))
        return
    console = Console()
    first = found.trials[0]["score"] if found.trials else None
    before = "" if first is None else f" (the defaults: {first:.4f})"
    console.print(
        f"Inner folds: {estimator.task.searched_words} {found.score:.4f}{before}, {len(found.trials)} trials"
    )
    console.print(", ".join(f"{name}={value}" for name, value in found.params.items()), soft_wrap=True)
    console.print(f"Model: {out}", soft_wrap=True)
