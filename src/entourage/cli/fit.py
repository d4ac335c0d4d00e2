"""The command ``entourage fit``: learn from a table and write a model file."""

import json
import os
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress

from entourage.cli.options import (
    AsJson,
    Decimal,
    Device,
    Encoding,
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
    csv_options,
    estimator_settings,
    monotone_settings,
    outside_settings,
    read_training_table,
    relative_settings,
)
from entourage.cli.outputs import check_output
from entourage.errors import UserError, check_choice

__all__ = ["fit"]


def fit(
    table: TablePath,
    set_id: SetId,
    target: Target,
    out: ModelOut,
    target_kind: TargetKind = "rank",
    model: Annotated[
        str,
        typer.Option(
            help="context_free, fate, feta, set_attention, or auto: a blend of the best of linear models, boosted "
            "trees and nets; or pretrained: a net that reads the table instead of being trained, for few sets. "
            "Of choices also multinomial_logit, nested_logit, cross_nested_logit, mixed_logit, latent_class, "
            "random_regret, contextual_logit, linear_context_logit, with standard errors."
        ),
    ] = "auto",
    feature: Feature = None,
    situation: Situation = None,
    ignore: Ignore = None,
    missing: Missing = None,
    sep: Sep = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf8",
    relative: Relative = None,
    monotone: Monotone = None,
    group: Group = None,
    loss: Annotated[
        str | None,
        typer.Option(help="Of a net: hinge, logistic, plackett_luce, listnet; of choices, nll, ..."),
    ] = None,
    members: Annotated[int, typer.Option(min=1, help="Nets in an ensemble, trained at once.")] = 1,
    budget: Annotated[
        float | None,
        typer.Option(
            min=1, help="With auto: how many seconds it may take, training included; by default 300."
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="With auto: fits in parallel; by default one a core.")
    ] = None,
    fine_tune: Annotated[
        bool, typer.Option("--fine-tune", help="With pretrained: train it for a few hundred steps more.")
    ] = False,
    outside: Outside = False,
    position: Position = None,
    steps: Steps = None,
    device: Device = "auto",
    seed: Seed = 0,
    processes: Annotated[
        int,
        typer.Option(
            min=1,
            help="Of a net: train in so many processes of this machine, each with a share of every batch. torchrun -m "
            "entourage fit ... does so on several machines.",
        ),
    ] = 1,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Of a net: a folder in which training keeps its state; the same command goes on from there. With "
            "--processes by default MODEL.checkpoint, gone at the end: what is killed is started again from it."
        ),
    ] = None,
    on_disk: Annotated[
        Path | None,
        typer.Option(
            help="A folder for the features of a table that is larger than memory: a Parquet file, a folder of "
            "them, or a pattern such as 'rows/*.parquet'. The rows of a set must be contiguous."
        ),
    ] = None,
    nest: Annotated[
        list[str] | None,
        typer.Option(
            help="Of nested_logit: the alternatives of a nest, with commas between; may be given again."
        ),
    ] = None,
    alternative: Annotated[
        str | None, typer.Option(help="Of nested_logit: the column that says which alternative a row is.")
    ] = None,
    random: Annotated[
        list[str] | None,
        typer.Option(
            help="Of mixed_logit: a column whose coefficient is random, as price or price=-lognormal (normal, "
            "lognormal, -lognormal, triangular, uniform); may be given again."
        ),
    ] = None,
    base: Annotated[
        list[str] | None,
        typer.Option(
            help="Of a logit: the base level of a column of text, as mode=car; by default the most frequent."
        ),
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(help="Of a logit: another setting, as draws=200, classes=3, l2=1, correlated=true."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Learn to rank or to choose from a long table: one row an object, a column for its set, features, a target.

    Numbers, booleans and text can be features. Missing values are imputed and marked by an indicator; text is one-hot
    encoded, or embedded where it has many levels. All of that is kept in the model file, so that
    [bold]entourage predict[/bold] takes tables of the same form. The rows of a set may be anywhere in the table.
    Example:

    entourage fit races.csv --set-id race --target place -o races.entourage

    entourage fit trips.csv --set-id trip --target taken --target-kind choice --model nested_logit --nest train,car
    --alternative mode -o trips.entourage
    """
    check_output(out, table)
    csv = csv_options(sep, decimal, encoding)
    settings = estimator_settings(device, seed, steps) | outside_settings(outside, target_kind)
    settings |= {
        "members": members,
        "relative": relative_settings(relative),
        "monotone": monotone_settings(monotone),
        "workers": workers or os.cpu_count() or 1,
        "fine_tune": fine_tune,
    }
    settings |= {} if loss is None else {"loss": loss}
    settings |= {} if budget is None else {"budget": budget}

    from entourage.choice.registry import LOGITS
    from entourage.cli.fit_logit import LOGIT_OPTIONS, fit_logit, logit_of
    from entourage.cli.launched import save_from_first, start_processes
    from entourage.distributed.joining import launched_processes
    from entourage.estimators import estimator_class
    from entourage.nets import NETS
    from entourage.selection.auto import plan_blend
    from entourage.training.progress import in_words

    check_choice("--model", model, [*NETS, *LOGITS, "auto", "pretrained"])
    if model not in NETS and (processes > 1 or checkpoint is not None or launched_processes() > 1):
        raise UserError(
            f"--processes, --checkpoint and torchrun are for the training of one net: --model {', '.join(NETS)}; got "
            f"{model}."
        )
    own_checkpoint = out.with_name(out.name + ".checkpoint") if checkpoint is None and processes > 1 else None
    settings |= {"checkpoint": checkpoint or own_checkpoint}
    if fine_tune and model != "pretrained":
        raise UserError("--fine-tune belongs to --model pretrained. Leave it out, or name that model.")
    if budget is not None and model != "auto":
        raise UserError(
            f"--budget belongs to --model auto; {model} takes the time that it needs. Leave it out."
        )
    columns: dict[str, Any] = {
        "feature": feature,
        "situation": situation,
        "ignore": ignore,
        "missing": missing,
    }
    if model in LOGITS:
        if target_kind != "choice":
            raise UserError(f"{model} is a model of choices of one: it goes with --target-kind choice.")
        if outside:
            raise UserError(f"{model} has no option of choosing nothing. Leave --outside out, or fit a net.")
        if on_disk is not None or loss is not None or members > 1 or steps is not None or monotone:
            raise UserError(
                f"--on-disk, --loss, --members, --steps and --monotone are about nets; {model} has none."
            )
        given: dict[str, Any] = {"nest": nest, "alternative": alternative, "random": random, "base": base}
        logit = logit_of(model, **given, param=param, relative=relative_settings(relative), seed=seed)
        training = read_training_table(
            table,
            set_id=set_id,
            target=target,
            target_kind=target_kind,
            **columns,
            csv=csv,
            group=group,
            position=position,
            codes=False,
        )
        fit_logit(logit, model, training, group, out, as_json)
        return
    for option, came in zip(LOGIT_OPTIONS, (nest, alternative, random, base, param), strict=True):
        if came:
            raise UserError(
                f"{option} is about logit models; --model {model} is none of {', '.join(LOGITS)}."
            )
    estimator = estimator_class(target_kind)(model, **settings)
    if loss is not None:
        estimator.task.find_loss(loss)  # says which there are
    console = Console(stderr=as_json)
    if processes > 1 and launched_processes() == 1:
        raise typer.Exit(start_processes(processes, own_checkpoint, console))
    estimator.set_params(verbose=Console(stderr=True).is_terminal)
    roles: dict[str, Any] = {"set_id": set_id, "target": target, "target_kind": target_kind}
    if on_disk is not None:
        if model in ("auto", "pretrained"):
            raise UserError(
                "With --on-disk, name the model: --model fate, feta, set_attention or context_free."
            )
        if position is not None:
            raise UserError("--position needs a table in memory; leave --on-disk out.")
        own = {"features": feature, "situation": situation, "ignore": ignore, "missing": missing or []}
        if group is not None:
            raise UserError("--group needs a table in memory; leave --on-disk out.")
        trained = _fit_on_disk(estimator, table, on_disk, roles | own)
        save_from_first(estimator, out)
        console.print(f"{model}, {trained}")
        console.print(f"Model: {out}", soft_wrap=True)
        return
    training = read_training_table(
        table,
        **roles,
        **columns,
        csv=csv,
        group=group,
        position=position,
    )
    sets = training.packed.sets
    if model == "auto":
        estimator.set_params(verbose=False)
        plan = plan_blend(estimator, sets, groups=training.groups, random_state=seed)
        console.print(str(plan), soft_wrap=True)
        begin = time.monotonic()
        estimator.fit(
            sets, groups=training.groups, on_evaluation=lambda one: console.print(str(one), soft_wrap=True)
        )
        shares = {one.name: one.weight for one in estimator.tried_ if one.weight > 0}
        shown = ", ".join(
            f"{name} {share:.0%}" for name, share in sorted(shares.items(), key=lambda s: -s[1])
        )
        console.print(f"Blend: {shown}; {in_words(time.monotonic() - begin)}", soft_wrap=True)
        measured, chosen = plan.metric, "with the weights"
    else:
        estimator.fit(sets, groups=training.groups)
        measured, chosen = estimator.task.criterion_words, "at the step"
    save_from_first(estimator, out)
    result = {
        "model": model,
        "file": str(out),
        "sets": len(sets),
        "objects": len(sets.objects),
        "features": sets.n_features,
        "held_out_score": estimator.held_out_score_,
        "best_score": estimator.best_score_,
        "fine_tune": fine_tune,
        "tried": [one.to_json() for one in getattr(estimator, "tried_", [])],
    }
    if as_json:
        typer.echo(json.dumps(result))
        return
    score = ""
    if estimator.held_out_score_ is not None:
        score = (
            f"; {measured} {estimator.held_out_score_:.4f} on held-out sets, each half {chosen} that the other "
            "half chose"
        )
    done = "read by it:" if model == "pretrained" and not fine_tune else "trained on"
    console.print(
        f"{model}, {done} {len(sets):,} sets of {len(sets.objects):,} objects{score}", soft_wrap=True
    )
    if estimator.reading_ is not None and not outside:
        console.print(f"Instant verdict: {estimator.reading_.verdict()}.", soft_wrap=True, markup=False)
    console.print(f"Model: {out}", soft_wrap=True)


def _fit_on_disk(estimator: Any, table: Path, folder: Path, roles: dict[str, Any]) -> str:
    """Fit to a table that is larger than memory; return in words what it took."""
    from entourage.estimators.fit_on_disk import fit_on_disk

    with Progress(console=Console(stderr=True)) as progress:
        line = progress.add_task("writing features", total=None)
        sets = fit_on_disk(
            table,
            folder,
            estimator,
            lambda done, total: progress.update(line, completed=done, total=total),
            **roles,
            codes=True,
        )
    size = sum(file.stat().st_size for file in folder.iterdir())
    return (
        f"trained on {len(sets):,} sets of {len(sets.objects):,} objects; {size / 1e6:,.0f} MB on disk, "
        f"{_own_memory():,.0f} MB of memory of its own at the end"
    )


def _own_memory() -> float:
    """Return the megabytes this process holds beside mapped files, which the system can take back."""
    try:
        status = Path("/proc/self/status").read_text()
        return int(status.partition("RssAnon:")[2].split()[0]) / 1024
    except (OSError, IndexError, ValueError):  # not Linux
        return float("nan")
