"""The command ``entourage effects``; see :mod:`entourage.cli.program`."""

import json
from pathlib import Path
from typing import Annotated, Any

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
from entourage.errors import UserError
from entourage.files import check_output

__all__ = ["effects"]

_PATIENCE = 600.0  # seconds that refits may take unless their number is given
_MENUS_TOLD = 2  # choice sets that repeat, in the terminal


def effects(
    model: ModelPath,
    table: TablePath,
    group: Annotated[
        str | None,
        typer.Option("--group", help="A column, such as a person, whose sets are resampled together."),
    ] = None,
    refits: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Fit the model again to so many resampled tables, for confidence intervals; 0: none. By default 16, "
            "or as many, from 8 on, as ten minutes allow.",
        ),
    ] = None,
    most_sets: Annotated[int, typer.Option(min=1, help="Measure so many sets, drawn at random.")] = 500,
    draws: Annotated[
        int, typer.Option(min=0, help="Of the test for context in the choices themselves; 0: no test.")
    ] = 199,
    level: Annotated[float, typer.Option(help="What the intervals leave out.")] = 0.05,
    more: Annotated[
        list[str] | None,
        typer.Option(
            "--more-is-better", help="A feature of which more is better; by default the model says."
        ),
    ] = None,
    less: Annotated[
        list[str] | None, typer.Option("--less-is-better", help="A feature of which less is better.")
    ] = None,
    help_row: Annotated[
        int | None, typer.Option(help="A row of TABLE, from 0: find what helps it and what hurts it...")
    ] = None,
    against: Annotated[int | None, typer.Option(help="...against this row.")] = None,
    map_names: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            help="Twice: the features of the map of where a third object helps. By default the two in which the rows "
            "differ most.",
        ),
    ] = None,
    sep: Sep = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf8",
    device: Device = "auto",
    seed: Seed = 0,
    report: Annotated[Path | None, typer.Option(help="An HTML page to write.")] = Path("effects.html"),
    as_json: AsJson = False,
) -> None:
    """Report context effects: pairwise influence, preference reversals, IIA and regularity violations.

    And attraction, compromise and similarity among the alternatives of the table. Where the table has its target, the
    model is fitted again to resampled groups (a person's sets, with --group), and to choices simulated without context
    and with known context effects: for confidence intervals about people, and a reference for what a net shows where
    there is no context. Also a test of the choices themselves, without the model, and the raw shares of choice sets
    that repeat. Of two rows, also which objects of the table would help the first against the second. Example:

    entourage effects trips.entourage trips.csv --group person --less-is-better price --help-row 3 --against 5
    """
    from entourage import load
    from entourage.cli.effects_page import write_effects
    from entourage.data.grouping import groups_of
    from entourage.data.table_places import marks_of_missing, ordered_features
    from entourage.effects.leave_one_out import effects_report
    from entourage.effects.observed import natural_effects
    from entourage.estimators.inputs import encoder_of
    from entourage.report.page import require_report

    _check_pair(help_row, against, map_names)
    better = _better(more or [], less or [])
    if report is not None:
        require_report()
        check_output(report, table, model)
    csv = csv_options(sep, decimal, encoding)
    fitted = load(model)
    encoder = encoder_of(fitted, model)
    run_on(fitted, device)
    frame = read_for(fitted, table, csv, ids=[group])
    known = encoder.target is not None and encoder.target in arrow_columns(frame)
    packed = encoder(frame, with_target=known)
    groups = None if group is None else groups_of(frame, packed, group)
    pair, drawn = None, None
    if help_row is not None and against is not None:
        pair, drawn = _pair(fitted, encoder, packed, help_row, against, map_names, seed)
    again = None
    without: str | None = "--refits 0: no refits, so no confidence intervals."
    if not known:
        missing = (
            f"TABLE has no column {encoder.target!r}" if encoder.target else "The model knows of no target"
        )
        without = f"{missing}: no refits, so no confidence intervals."
    elif refits != 0:
        again, without = _refits(fitted, packed.sets, groups, refits, seed)
    natural = natural_effects(
        fitted,
        packed.sets,
        names=encoder.feature_names,
        ordered=ordered_features(encoder),
        marks=marks_of_missing(encoder),
        better=better,
        refits=again,
        random_state=seed,
    )
    found = effects_report(
        fitted,
        packed.sets,
        groups=groups,
        refits=again,
        most_sets=most_sets,
        draws=draws,
        level=level,
        random_state=seed,
    )
    found |= {
        "no_intervals": without,
        "natural_effects": natural.to_json(level),
        "menus": _menus(fitted, packed, level),
        "pair": pair,
    }
    if report is not None:
        figure = None
        if drawn is not None:
            from entourage.effects.plots import draw_decoys

            figure = draw_decoys(fitted, **drawn)
        write_effects(report, found, title=f"Context effects: {model.name} on {table.name}", decoys=figure)
    if as_json:
        typer.echo(json.dumps(found))
        return
    for line in _effect_lines(found):
        Console().print(line, soft_wrap=True, markup=False)
    if report is not None:
        Console().print(f"Report: {report}", soft_wrap=True)


def _refits(
    fitted: Any, sets: Any, groups: Any, refits: int | None, seed: int
) -> tuple[Any, None] | tuple[None, str]:
    """Fit a model again, with a bar, and say beforehand how long it will take; or return why not."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from entourage.effects.resampled import (
        LEAST_REFITS,
        REFITS,
        refit_resampled,
        refits_in,
        seconds_of_refits,
    )
    from entourage.training.progress import in_words

    if len(sets) < 2 or (groups is not None and len(set(groups)) < 2):
        return None, "TABLE has one group, so none can be resampled: no refits, so no confidence intervals."
    console = Console(stderr=True)
    seconds = seconds_of_refits(fitted, sets)
    count = refits_in(_PATIENCE, seconds) if refits is None else max(refits, 2)
    if count == 0:
        return None, (
            f"{LEAST_REFITS} refits would take about {in_words(seconds(LEAST_REFITS))}, so there are no confidence "
            f"intervals. Ask for them by --refits {LEAST_REFITS}."
        )
    fewer = f" {REFITS}, for narrower ones, about {in_words(seconds(REFITS))}." if count < REFITS else ""
    console.print(
        f"{count} refits, for confidence intervals: about {in_words(seconds(count))}.{fewer}", soft_wrap=True
    )
    columns = (TextColumn("refits"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("refits")
        found = refit_resampled(
            fitted,
            sets,
            groups=groups,
            refits=count,
            random_state=seed,
            on_progress=lambda done, total: progress.update(bar, completed=done, total=total),
        )
    return found, None


def _menus(fitted: Any, packed: Any, level: float) -> list[dict[str, Any]]:
    """Return the choice sets that repeat, their alternatives named by a row of the table."""
    from entourage.effects.menus import repeated_menus

    menus = [menu.to_json() for menu in repeated_menus(fitted, packed.sets, level=level)]
    for menu in menus:
        for share in menu["shares"]:
            place = share.pop("place")
            share["row"] = None if place is None else int(packed.order[place])
            copies = f" ({share['copies']} copies)" if share["copies"] > 1 else ""
            share["name"] = "nothing" if place is None else f"row {share['row']}{copies}"
    return menus


def _check_pair(help_row: int | None, against: int | None, map_names: list[str] | None) -> None:
    """See that the options on two rows go together."""
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


def _better(more: list[str], less: list[str]) -> dict[str, str]:
    """Return the direction of each feature that was given one."""
    both = sorted(set(more) & set(less))
    if both:
        raise UserError(
            f"A feature has one direction; {both[0]!r} came with --more-is-better and with --less-is-better. "
            "Leave one of them out."
        )
    return dict.fromkeys(more, "more") | dict.fromkeys(less, "less")


def _pair(
    fitted: Any, encoder: Any, packed: Any, row: int, against: int, map_names: list[str] | None, seed: int
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return what helps one row against another, for JSON, and what `draw_decoys` needs, where there is a map."""
    from scipy.special import expit

    from entourage.data.table_places import marks_of_missing, ordered_features, place_of_row
    from entourage.effects.decoys import decoys_among

    target, competitor = place_of_row(packed, row), place_of_row(packed, against)
    mapped = _mapped(
        packed.sets, target, competitor, encoder.feature_names, ordered_features(encoder), map_names
    )
    if mapped is not None:  # a third object with numbers misses none
        mapped["others"][list(marks_of_missing(encoder).values())] = 0.0
    found = decoys_among(fitted, packed.sets, target, competitor, random_state=seed)
    pair = {
        "row": row,
        "against": against,
        "log_odds": found.before,
        "probability": float(expit(found.before)),
        "tried": found.tried,
        "map": None if mapped is None else list(mapped["names"]),
    }
    for kind, decoys in (("helps", found.helps), ("hurts", found.hurts)):
        pair[kind] = [
            {
                "row": int(packed.order[decoy.candidate]),
                "shift": decoy.shift,
                "before": float(expit(decoy.before)),
                "after": float(expit(decoy.after)),
            }
            for decoy in decoys
        ]
    return pair, None if mapped is None else mapped | {"situation": found.situation}


def _mapped(
    sets: Any, target: int, competitor: int, names: list[str], ordered: list[int], chosen: list[str] | None
) -> dict[str, Any] | None:
    """Return what `draw_decoys` needs beside the model: the pair, the two features and their range."""
    import numpy as np

    from entourage.effects.decoys import map_features

    features = map_features(sets, target, competitor, ordered)
    if chosen:
        varied = {names[i]: i for i in ordered if np.ptp(sets.objects[:, i]) > 0}
        wrong = [name for name in chosen if name not in varied]
        if wrong or chosen[0] == chosen[1]:
            came = repr(wrong[0]) if wrong else f"{chosen[0]!r} twice"
            raise UserError(
                f"--map needs two different features that are numbers and vary in the table; got {came}. "
                f"Choose from {', '.join(map(repr, varied)) or 'another table: there is none'}."
            )
        features = (varied[chosen[0]], varied[chosen[1]])
    if features is None:
        return None
    A, B = sets.objects[[target, competitor]].astype(np.float64)
    others = A.copy()
    others[ordered] = (A[ordered] + B[ordered]) / 2
    columns = sets.objects[:, list(features)]
    return {
        "A": A,
        "B": B,
        "bounds": [columns.min(0), columns.max(0)],
        "names": tuple(names[i] for i in features),
        "features": features,
        "others": others,
    }


def _effect_lines(found: dict[str, Any]) -> list[str]:
    """Say in lines of text what the command found."""
    from entourage.cli.effects_page import (
        EFFECTS,
        directions,
        extrapolation,
        interval,
        left_out,
        menu_lines,
        pair_words,
        refit_words,
    )

    level = f"{100 * (1 - found['level']):g} % CI"

    def numbers(entry: dict[str, Any], shape: str) -> str:
        if entry["interval"] is None:
            return shape.format(entry["value"])
        shown = [shape.format(entry[key]) for key in ("value", "refits", "reference", "estimate")]
        return (
            "{} (refits {}, without context {}); estimate {}".format(*shown) + f", {level} {interval(entry)}"
        )

    lines = [f"{found['sets_seen']:,} of {found['sets']:,} sets. {refit_words(found)}"]
    lines += [f"{words}: {numbers(found[name], '{:.4f}')}" for name, words in EFFECTS.items()]
    natural = found["natural_effects"]
    if natural["failed"] is None:
        lines.append(f"Shift of the log-odds of A against B when C is added. {directions(natural)}")
        for name in ("attraction", "compromise", "similarity"):
            entry = natural[name]
            lines.append(
                f"{name}: no case in the sets that were measured"
                if entry is None
                else f"{name}: {numbers(entry, '{:+.4f}')}; {entry['n']:,} triples of {entry['sets']:,} sets"
            )
        if natural["extrapolated"]:
            lines.append(extrapolation(natural).strip())
    else:
        lines.append(natural["failed"])
    lines += menu_lines(found["menus"][:_MENUS_TOLD])
    pair = found["pair"]
    if pair is not None:
        lines.append(pair_words(pair))
        lines += [
            f"row {one['row']} {kind}: log-odds {one['shift']:+.4f}, probability {one['before']:.4f} to "
            f"{one['after']:.4f}"
            for kind in ("helps", "hurts")
            for one in pair[kind]
        ]
    tested = found["context_test"]
    if tested is not None and "failed" not in tested:
        lines.append(
            f"Choices themselves: score test of context, statistic {tested['statistic']:.1f} on {tested['degrees']} "
            f"degrees of freedom, p = {tested['p_value']:.3g} (calibrated by simulation), {tested['n_sets']:,} choices."
            f"{left_out(tested)}"
        )
        lines += [f"  assumes: {one}" for one in tested["assumptions"]]
    elif tested is not None:
        lines.append(f"Choices themselves: not tested. {tested['failed']}{left_out(tested)}")
    return lines


def arrow_columns(frame: Any) -> list[str]:
    """Return the names of the columns of a table."""
    from entourage.data.frames import arrow_table

    return list(arrow_table(frame).column_names)
