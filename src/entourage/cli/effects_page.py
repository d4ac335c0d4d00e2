"""The page of ``entourage effects``."""

import tempfile
from math import isnan
from pathlib import Path
from typing import Any

from scipy.special import expit

from entourage.cli.effects_words import (
    EFFECTS,
    context_words,
    decoys_of,
    directions,
    extrapolation,
    headline,
    interval,
    left_out,
    pair_words,
    refit_words,
)
from entourage.effects import EffectsReport, NaturalEffects, PairDecoys, Quantity
from entourage.effects.plots import draw_context_test, draw_decoy_map, draw_influence
from entourage.report.intervals import IntervalPlot, Line, Mark
from entourage.report.page import Cell, Live, Section, Table, write_report

__all__ = ["write_effects"]

_SCALES = {  # quantities by their unit, with a name that is shorter than the sentence
    "Share of cases, or change of a probability": {
        "reversal_rate": ("preference-reversal rate", "when one alternative is removed"),
        "regularity_rate": ("regularity violations: rate", "probability raised by an added alternative"),
        "regularity_amount": ("regularity violations: amount", "mean increase of probability"),
    },
    "Mean absolute change of log-odds": {
        "iia_violation": ("IIA violation", "of a pair when a third is removed"),
    },
}
_MARKS = (Mark("this model", "ring"), Mark("context-ablated control", "cross"))
_CASES = {  # when A, B and C are a case of an effect
    "attraction": "A dominates C, B doesn't",
    "compromise": "A lies between B and C",
    "similarity": "C is similar to B, not to A",
}


def write_effects(path: Path, found: EffectsReport, *, title: str, live: Live | None = None) -> None:
    """Write the report as an HTML page; ``live`` is about a page in which the model runs."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        sections = [
            _independence(found),
            _influence(found, place),
            _natural(found),
            _menus(found),
            _pair(found, place),
            _choices(found, place),
        ]
        write_report(
            path,
            title,
            f"{found.model}. Measured on {found.sets_seen:,} of {found.sets:,} choice sets.",
            [section for section in sections if section is not None],
            headline=headline(found),
            live=live,
        )


def _picture(figure: Any, path: Path, caption: str, instead: str) -> tuple[Path, str, str]:
    figure.savefig(path)
    return path, caption, instead


def _independence(found: EffectsReport) -> Section:
    body: list[list[Cell]] = [
        [(words, "text"), *_refit_cells(getattr(found, name), "{:.4f}")] for name, words in EFFECTS.items()
    ]
    plots = [
        IntervalPlot(
            f"{what}.",
            "effect",
            _numbers(found),
            [
                _line(found, name, note, getattr(found, effect), "{:.4f}")
                for effect, (name, note) in own.items()
            ],
            zero=0.0,
            marks=_marks(found),
        )
        for what, own in _SCALES.items()
    ]
    return Section(
        "Preference reversals, IIA and regularity",
        "All are 0 for a context-free model. A fitted net has positive values even where there is no context effect, "
        f"since it also fits noise. {refit_words(found)}",
        plots=plots,
        folded=[("All numbers", Table(["", *_refit_header(found)], body))],
    )


def _marks(found: EffectsReport) -> tuple[Mark, ...]:
    return () if found.groups is None else _MARKS


def _numbers(found: EffectsReport) -> str:
    return "this model" if found.groups is None else f"estimate, {100 * (1 - found.level):g} % CI"


def _line(found: EffectsReport, name: str, note: str, entry: Quantity, shape: str) -> Line:
    """Return a line of a plot: the estimate with its interval or, without refits, the value of the model."""
    if entry.interval is None or entry.estimate is None or entry.reference is None:
        marks = tuple(None for _ in _marks(found))
        return Line(name, entry.value, None, _signed(shape, entry.value), note, look="any", marks=marks)
    return Line(
        name,
        entry.estimate,
        entry.interval,
        f"{_signed(shape, entry.estimate)} {interval(entry)}".replace("-", "−"),
        note,
        f"model {_signed(shape, entry.value)}, control {_signed(shape, entry.reference)}",
        look="any",
        marks=(entry.value, entry.reference),
    )


def _signed(shape: str, value: float) -> str:
    return shape.format(value).replace("-", "−")


def _refit_header(found: EffectsReport) -> list[str]:
    return [
        "this model",
        "refits",
        "context-ablated control",
        "estimate",
        f"{100 * (1 - found.level):g} % CI",
    ]


def _refit_cells(entry: Quantity, shape: str) -> list[str]:
    numbers = [entry.value, entry.refits, entry.reference, entry.estimate]
    return ["–" if number is None else shape.format(number) for number in numbers] + [interval(entry)]


def _influence(found: EffectsReport, folder: Path) -> Section | None:
    if found.matrix is None:
        return None
    strongest = found.strongest[0]
    caption = "How the presence of the column's object changes the utility of the row's object."
    size = len(found.matrix)
    rows: list[list[Cell]] = [
        [f"{i}", *("–" if isnan(entry) else _signed("{:+.3f}", entry) for entry in row)]
        for i, row in enumerate(found.matrix.tolist())
    ]
    header = ["changes the utility of", *(f"presence of {j}" for j in range(size))]
    return Section(
        "Pairwise influence",
        f"Choice set {strongest.set}. Its object {strongest.place} has the largest mean influence on the others among "
        "all measured sets.",
        pictures=[
            _picture(
                draw_influence(found.matrix),
                folder / "influence.png",
                caption,
                f"A matrix of colours, {size} by {size}; the table below has its numbers.",
            )
        ],
        folded=[("As a table", Table(header, rows))],
    )


def _natural(found: EffectsReport) -> Section:
    natural, title = found.natural_effects, "Attraction, compromise, similarity"
    if natural.failed is not None:
        return Section(title, natural.failed)
    body: list[list[Cell]] = [
        [(f"{name}: {words}", "text"), *_natural_cells(natural, name, found.level)]
        for name, words in _CASES.items()
    ]
    lines = []
    for name, words in _CASES.items():
        entry = natural.quantity(name, found.level)
        lines.append(
            Line(name, None, None, "no case", words, marks=tuple(None for _ in _marks(found)))
            if entry is None
            else _line(found, name, words, entry, "{:+.4f}")
        )
    header = ["", *_refit_header(found), "probability", "triples", "sets"]
    return Section(
        title,
        "Mean shift of the log-odds of A against B when C is added, over triples of alternatives of one choice set. "
        f"{directions(natural)} {extrapolation(natural)}Log-odds are differences of utilities; those of a ranker have "
        "no scale of their own.",
        plots=[
            IntervalPlot(
                "Shift of the log-odds of A against B when C is added; right of the vertical line: the direction of "
                "the literature.",
                "effect",
                _numbers(found),
                lines,
                zero=0.0,
                marks=_marks(found),
            )
        ],
        folded=[("All numbers", Table(header, body))],
    )


def _natural_cells(natural: NaturalEffects, name: str, level: float) -> list[str]:
    effect, entry = natural.effects[name], natural.quantity(name, level)
    if effect is None or entry is None:
        return ["no case", *[""] * 7]
    probability = f"{effect.before:.3f} to {effect.after:.3f}"
    return [*_refit_cells(entry, "{:+.4f}"), probability, f"{entry.n:,}", f"{natural.sets[name]:,}"]


def _menus(found: EffectsReport) -> Section | None:
    if not found.menus:
        return None
    body: list[list[Cell]] = [
        [
            f"{i + 1}",
            f"{menu.n:,}",
            found.name_of(share),
            f"{share.share:.3f}",
            "[{:.3f}, {:.3f}]".format(*share.interval),
            f"{share.model:.3f}",
        ]
        for i, menu in enumerate(found.menus)
        for share in menu.shares
    ]
    level = f"{100 * (1 - found.level):g} % CI"
    plots = [
        IntervalPlot(
            f"Choice set {i + 1}, offered {menu.n:,} times.",
            "alternative",
            f"observed share, {level}",
            [
                Line(
                    found.name_of(share),
                    share.share,
                    share.interval,
                    "{:.3f} [{:.3f}, {:.3f}]".format(share.share, *share.interval),
                    beside=f"model {share.model:.3f}",
                    look="any",
                    marks=(share.model,),
                )
                for share in menu.shares
            ],
            zero=0.0,
            marks=(Mark("the model's mean probability", "ring"),),
        )
        for i, menu in enumerate(found.menus)
    ]
    header = ["choice set", "offered", "alternative", "observed share", level, "model"]
    return Section(
        "Repeated choice sets",
        "Observed choice shares (of rankings: of first places) in the choice sets that were offered most often, with "
        "Wilson intervals, which assume independent choices; and the model's mean probabilities.",
        plots=plots,
        folded=[("As a table", Table(header, body))],
    )


def _pair(found: EffectsReport, folder: Path) -> Section | None:
    pair = found.pair
    if pair is None:
        return None
    body: list[list[Cell]] = [
        [
            f"row {row} {does}",
            f"{decoy.shift:+.4f}",
            f"{expit(decoy.before):.4f}",
            f"{expit(decoy.after):.4f}",
        ]
        for row, does, decoy in decoys_of(found, pair)
    ]
    header = ["third alternative", "shift of the log-odds", "probability before", "after"]
    caption = (
        f"A is row {pair.row}, B is row {pair.against}. In other numbers C is half way between them; it has the "
        "categories of A. Dashed line: no effect. Solid line: the preference between A and B reverses. Star: the best "
        "decoy."
    )
    return Section(
        f"Decoys: what helps row {pair.row} against row {pair.against}",
        pair_words(pair),
        Table(header, body) if body else None,
        []
        if pair.map is None
        else [_picture(draw_decoy_map(pair.map), folder / "decoys.png", caption, _map_words(pair))],
    )


def _map_words(pair: PairDecoys) -> str:
    """Say what a map of decoys shows, for those who don't see it."""
    assert pair.map is not None
    shifts = pair.map.shifts
    return (
        f"A map over {pair.map.names[0]} and {pair.map.names[1]}: C helps A in {(shifts > 0).mean():.0%} of places, "
        f"by at most {shifts.max():+.3f}, and hurts it by at most {shifts.min():+.3f}."
    )


def _choices(found: EffectsReport, folder: Path) -> Section | None:
    tested = found.context_test
    if tested is None:
        return None
    title, result = "Context test of the choices", tested.result
    if result is None:
        return Section(title, f"{tested.failed}{left_out(tested)}")
    text = (
        "Do choices depend on the rest of the choice set? A test of the choices themselves, without the model. "
        f"{context_words(result, found.level)} By the chi-square distribution p = {result.p_chi2:.3g}. Assumptions: "
        f"{' '.join(result.assumptions)}"
    )
    caption = "The score statistic of the choices, and its distribution without context."
    instead = (
        f"{caption} Observed: {result.statistic:.1f}; larger in {result.p_value:.1%} of the simulations."
    )
    pictures = [_picture(draw_context_test(result), folder / "test.png", caption, instead)]
    return Section(title, f"{text}{left_out(tested)}", pictures=pictures)
