"""The command ``entourage effects``; see :mod:`entourage.cli.program`."""

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from entourage.cli.outputs import check_explorer, check_output
from entourage.errors import UserError

if TYPE_CHECKING:
    from entourage.effects import EffectsReport, Quantity

__all__ = ["effects"]

_PATIENCE = 600.0  # seconds that refits may take unless their number is given
_MENUS_TOLD = 2  # repeated choice sets in the terminal


def effects(
    model: ModelPath,
    table: TablePath,
    group: Annotated[
        str | None,
        typer.Option(
            "--group", help="The column of groups, such as people: a group's sets are resampled together."
        ),
    ] = None,
    refits: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="The number of refits to resampled groups, for confidence intervals; 0: none. By default 16, or, from "
            "8 on, as many as ten minutes allow.",
        ),
    ] = None,
    most_sets: Annotated[
        int, typer.Option(min=1, help="Measure at most this many sets, drawn at random.")
    ] = 500,
    draws: Annotated[
        int, typer.Option(min=0, help="Simulations for the context test of the choices; 0: no test.")
    ] = 199,
    level: Annotated[float, typer.Option(help="Significance level: intervals hold 1 - level.")] = 0.05,
    more: Annotated[
        list[str] | None,
        typer.Option(
            "--more-is-better", help="A feature of which more is better; by default the model decides."
        ),
    ] = None,
    less: Annotated[
        list[str] | None, typer.Option("--less-is-better", help="A feature of which less is better.")
    ] = None,
    help_row: Annotated[
        int | None,
        typer.Option(help="A row of TABLE, from 0: find the decoys that help it and that hurt it..."),
    ] = None,
    against: Annotated[int | None, typer.Option(help="...against this row.")] = None,
    map_names: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            help="Twice: the features of the map of decoys. By default the two in which the rows differ most.",
        ),
    ] = None,
    sep: Sep = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf8",
    device: Device = "auto",
    seed: Seed = 0,
    report: Annotated[Path | None, typer.Option("-o", "--report", help="An HTML page to write.")] = Path(
        "effects.html"
    ),
    explorer: Annotated[
        Path | None,
        typer.Option(
            help="Also write a page in which the model runs; needs the extra onnx. It holds rows of TABLE and the "
            "model."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Report context effects: pairwise influence, preference reversals, IIA and regularity violations.

    Also attraction, compromise and similarity among the alternatives of each choice set. If TABLE has the target,
    effects get confidence intervals: the model is refitted to resampled groups (people, with --group), to choices
    simulated from the context-ablated control, and to choices simulated with known context effects. A score test of
    context dependence uses the choices alone, without the model. For repeated choice sets, observed shares are listed
    with the model's probabilities. With --help-row and --against: the decoys that help one row against another.
    Example:

    entourage effects trips.entourage trips.csv --group person --less-is-better price --help-row 3 --against 5
    """
    from entourage import load
    from entourage.cli.effects_page import write_effects
    from entourage.cli.effects_words import influence_words
    from entourage.cli.explorer_beside import Shown, write_beside
    from entourage.data.frames import arrow_table
    from entourage.data.grouping import groups_of
    from entourage.effects import effects_report
    from entourage.estimators.inputs import encoder_of
    from entourage.report.page import require_report

    pair = _pair(help_row, against, map_names)
    better = _better(more or [], less or [])
    if report is not None:
        require_report()
        check_output(report, table, model)
    if explorer is not None:
        missing = check_explorer(explorer, report, table, model)
        if missing:
            Console(stderr=True).print(f"There will be no explorer. {missing}", soft_wrap=True, markup=False)
    csv = csv_options(sep, decimal, encoding)
    fitted = load(model)
    encoder = encoder_of(fitted, model)
    run_on(fitted, device)
    frame = read_for(fitted, table, csv, ids=[group])
    known = encoder.target is not None and encoder.target in arrow_table(frame).column_names
    packed = encoder(frame, with_target=known)
    groups = None if group is None else groups_of(frame, packed, group)
    count: int | None = None
    why_none: str | None = "--refits 0: no refits, so no confidence intervals."
    if not known:
        absent = (
            f"TABLE has no column {encoder.target!r}" if encoder.target else "The model knows of no target"
        )
        why_none = f"{absent}: no refits, so no confidence intervals."
    elif refits != 0:
        count, why_none = _affordable(fitted, packed.sets, groups, refits)
    with _refit_bar() as show:
        found = effects_report(
            fitted,
            packed.sets,
            groups=groups,
            refits=count,
            better=better,
            pair=pair,
            map_names=(map_names[0], map_names[1]) if map_names else None,
            rows=packed.order,
            most_sets=most_sets,
            draws=draws,
            level=level,
            random_state=seed,
            on_progress=show,
        )
    found = replace(found, no_intervals=why_none)
    if report is not None:
        shown = [
            Shown(int(found.rows[packed.sets.offsets[one.set] + one.place]), influence_words(one.moves))
            for one in found.strongest[:3]
        ]
        title = f"{model.stem}: sets of {table.name}"
        live = write_beside(explorer, report, [(model.stem, fitted)], frame, shown, title=title)
        write_effects(report, found, title=f"Context effects: {model.name} on {table.name}", live=live)
    if as_json:
        typer.echo(json.dumps(found.to_json()))
        return
    for line in _lines(found):
        Console().print(line, soft_wrap=True, markup=False)
    if report is not None:
        Console().print(f"Report: {report}", soft_wrap=True)
        if explorer is not None:
            Console().print(f"Explorer: {explorer}" if live.href else live.text, soft_wrap=True, markup=False)


def _affordable(fitted: Any, sets: Any, groups: Any, refits: int | None) -> tuple[int | None, str | None]:
    """Return the number of refits, and print how long they will take; or return why there are none."""
    from entourage.effects.refits import LEAST_REFITS, REFITS, refits_in, seconds_of_refits
    from entourage.training.progress import in_words

    if getattr(fitted, "blend_", None) is not None:
        return None, (
            "The model is a blend of several (auto), and refits are of one net: no refits, so no confidence intervals. "
            "For these, fit a named model, such as --model fate."
        )
    if getattr(fitted, "position_effects_", None) is not None:
        return None, (
            "The model learnt effects of positions, and refits learn none: no refits, so no confidence intervals. For "
            "these, fit it without --position."
        )
    if len(sets) < 2 or (groups is not None and len(set(groups)) < 2):
        return None, "TABLE has one group, and resampling needs two: no refits, so no confidence intervals."
    seconds = seconds_of_refits(fitted, sets)
    count = refits_in(_PATIENCE, seconds) if refits is None else max(refits, 2)
    if count == 0:
        return None, (
            f"{LEAST_REFITS} refits would take about {in_words(seconds(LEAST_REFITS))}, so there are no confidence "
            f"intervals. Ask for them by --refits {LEAST_REFITS}."
        )
    fewer = f" {REFITS}, for narrower ones, about {in_words(seconds(REFITS))}." if count < REFITS else ""
    Console(stderr=True).print(
        f"{count} refits, for confidence intervals: about {in_words(seconds(count))}.{fewer}", soft_wrap=True
    )
    return count, None


@contextlib.contextmanager
def _refit_bar() -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on the error stream, from the first refit to the last."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("refits"), BarColumn(), TimeRemainingColumn())
    progress = Progress(*columns, console=Console(stderr=True), transient=True)
    bar = progress.add_task("refits")

    def show(done: int, total: int) -> None:
        if not progress.live.is_started:
            progress.start()
        progress.update(bar, completed=done, total=total)
        if done >= total:
            progress.stop()

    try:
        yield show
    finally:
        if progress.live.is_started:
            progress.stop()


def _pair(help_row: int | None, against: int | None, map_names: list[str] | None) -> tuple[int, int] | None:
    """Return the two rows of a pair, None where none is asked for; check that the options on them fit together."""
    if (help_row is None) != (against is None):
        came, missing = ("--help-row", "--against") if against is None else ("--against", "--help-row")
        raise UserError(
            f"A pair needs two rows, --help-row I and --against J; only {came} came. Add {missing}."
        )
    if help_row is not None and help_row == against:
        raise UserError(
            f"A pair needs two different rows; --help-row and --against both are {help_row}. Change one of them."
        )
    if map_names and help_row is None:
        raise UserError(
            "--map is about a pair, and none came. Add --help-row I --against J, or leave --map out."
        )
    if map_names and len(map_names) != 2:
        raise UserError(
            f"A map needs two features; --map came {'once' if len(map_names) == 1 else f'{len(map_names)} times'}. "
            "Give it twice, --map NAME --map NAME, or leave it out."
        )
    return None if help_row is None or against is None else (help_row, against)


def _better(more: list[str], less: list[str]) -> dict[str, str]:
    """Return the direction of each feature that was given one."""
    both = sorted(set(more) & set(less))
    if both:
        raise UserError(
            f"A feature has one direction; {both[0]!r} came with --more-is-better and with --less-is-better. "
            "Leave one of them out."
        )
    return dict.fromkeys(more, "more") | dict.fromkeys(less, "less")


def _lines(found: "EffectsReport") -> list[str]:
    """Return the report as lines of text."""
    from entourage.cli.effects_words import (
        EFFECTS,
        context_words,
        decoy_lines,
        directions,
        extrapolation,
        interval,
        left_out,
        menu_lines,
        refit_words,
    )

    level = f"{100 * (1 - found.level):g} % CI"

    def numbers(entry: "Quantity", shape: str) -> str:
        if entry.interval is None:
            return shape.format(entry.value)
        shown = [shape.format(one) for one in (entry.value, entry.refits, entry.reference, entry.estimate)]
        return (
            "{} (refits {}, context-ablated control {}); estimate {}".format(*shown)
            + f", {level} {interval(entry)}"
        )

    lines = [f"Measured on {found.sets_seen:,} of {found.sets:,} choice sets. {refit_words(found)}"]
    lines += [f"{words}: {numbers(getattr(found, name), '{:.4f}')}" for name, words in EFFECTS.items()]
    natural = found.natural_effects
    if natural.failed is None:
        lines.append(f"Shift of the log-odds of A against B when C is added. {directions(natural)}")
        for name in natural.effects:
            entry = natural.quantity(name, found.level)
            lines.append(
                f"{name}: no case in the choice sets"
                if entry is None
                else f"{name}: {numbers(entry, '{:+.4f}')}; {entry.n:,} triples of {natural.sets[name]:,} sets"
            )
        if natural.extrapolated:
            lines.append(extrapolation(natural).strip())
    else:
        lines.append(natural.failed)
    lines += menu_lines(found, _MENUS_TOLD) + decoy_lines(found)
    if found.context_test is None:
        return lines
    rest, result = left_out(found.context_test), found.context_test.result
    if result is None:
        return [*lines, f"Choices alone: not tested. {found.context_test.failed}{rest}"]
    lines.append(f"Choices alone, score test of context. {context_words(result, found.level)}{rest}")
    return lines + [f"  assumes: {one}" for one in result.assumptions]
