"""The page of ``entourage effects``."""

import tempfile
from pathlib import Path
from typing import Any

from scipy.special import expit

from entourage.effects import (
    ContextTest,
    Decoy,
    EffectsReport,
    FirstChoiceTest,
    NaturalEffects,
    PairDecoys,
    Quantity,
)
from entourage.effects.plots import (
    draw_context_test,
    draw_decoy_map,
    draw_effects,
    draw_influence,
    draw_natural_effects,
)
from entourage.report.page import Cell, Section, Table, write_report

__all__ = [
    "EFFECTS",
    "context_words",
    "decoy_lines",
    "directions",
    "extrapolation",
    "interval",
    "left_out",
    "menu_lines",
    "refit_words",
    "write_effects",
]

#: The quantities of `entourage.effects.effects_report` in words.
EFFECTS = {
    "reversal_rate": "preference-reversal rate when one alternative is removed",
    "iia_violation": "IIA violation: mean absolute change of a pair's log-odds when a third alternative is removed",
    "regularity_rate": "regularity violations: how often adding an alternative raises the probability of another",
    "regularity_amount": "regularity violations: mean increase of probability, 0 where there is none",
}

_LEFT_OUT = {  # why a set is excluded from the context test
    "one_object": "of one object",
    "nothing": "in which nothing was chosen or ranked",
    "several": "in which several were chosen or share the first place",
}


_CASES = {  # when A, B and C are a case of an effect
    "attraction": "A dominates C, B doesn't",
    "compromise": "A lies between B and C",
    "similarity": "C is similar to B, not to A",
}


def write_effects(path: Path, found: EffectsReport, *, title: str) -> None:
    """Write the report as an HTML page."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        sections = [
            _independence(found, place),
            _influence(found, place),
            _natural(found, place),
            _menus(found),
            _pair(found, place),
            _choices(found, place),
        ]
        lead = f"{found.model}. Measured on {found.sets_seen:,} of {found.sets:,} choice sets."
        write_report(path, title, lead, [section for section in sections if section is not None])


def _picture(figure: Any, path: Path, caption: str) -> tuple[Path, str]:
    figure.savefig(path)
    return path, caption


def _independence(found: EffectsReport, folder: Path) -> Section:
    body: list[list[Cell]] = [
        [(words, "text"), *_refit_cells(getattr(found, name), "{:.4f}")] for name, words in EFFECTS.items()
    ]
    return Section(
        "Preference reversals, IIA and regularity",
        "All are 0 for a context-free model. A fitted net has positive values even where there is no context effect, "
        f"since it also fits noise. {refit_words(found)}",
        Table(["", *_refit_header(found)], body),
        [
            _picture(
                draw_effects(found),
                folder / "effects.png",
                "Bars: this model."
                if found.groups is None
                else "Bars: this model. Open circles: context-ablated control. Points and lines: estimates with "
                "confidence intervals.",
            )
        ],
    )


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


def refit_words(found: EffectsReport) -> str:
    """Return what the intervals are, or why there are none."""
    if found.groups is None:
        return found.no_intervals or ""
    return (
        f"Confidence intervals are from refits to {found.groups:,} resampled {found.resampled}. The estimate is "
        "corrected for noise that was fitted (refits to choices simulated from the context-ablated control) and for "
        "shrinkage (refits to choices with known context effects). An effect is significant at level "
        f"{found.level:g} where its interval excludes 0."
    )


def _influence(found: EffectsReport, folder: Path) -> Section | None:
    if found.matrix is None:
        return None
    strongest = found.strongest[0]
    caption = "How the presence of the column's object changes the utility of the row's object."
    return Section(
        "Pairwise influence",
        f"Choice set {strongest.set}. Its object {strongest.place} has the largest mean influence on the others among "
        "all measured sets.",
        pictures=[_picture(draw_influence(found.matrix), folder / "influence.png", caption)],
    )


def _natural(found: EffectsReport, folder: Path) -> Section:
    natural, title = found.natural_effects, "Attraction, compromise, similarity"
    if natural.failed is not None:
        return Section(title, natural.failed)
    body: list[list[Cell]] = [
        [(f"{name}: {words}", "text"), *_natural_cells(natural, name, found.level)]
        for name, words in _CASES.items()
    ]
    pictures = []
    if any(natural.effects.values()):
        caption = (
            "Points: estimates, or values of this model without refits. Lines: confidence intervals. Positive: the "
            "direction of the literature."
        )
        pictures = [_picture(draw_natural_effects(natural, found.level), folder / "natural.png", caption)]
    header = ["", *_refit_header(found), "probability", "triples", "sets"]
    return Section(
        title,
        "Mean shift of the log-odds of A against B when C is added, over triples of alternatives of one choice set. "
        f"{directions(natural)} {extrapolation(natural)}Log-odds are differences of utilities; those of a ranker have "
        "no scale of their own.",
        Table(header, body),
        pictures,
    )


def extrapolation(natural: NaturalEffects) -> str:
    """Return a sentence, and a space, on extrapolation to pairs; "" where the table has pairs."""
    if not natural.extrapolated:
        return ""
    return "The table has no choice sets of two: the model extrapolates to pairs. Intervals don't account for that. "


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
    return Section(
        "Repeated choice sets",
        "Observed choice shares (of rankings: of first places) in the choice sets that were offered most often, with "
        "Wilson intervals, which assume independent choices; and the model's mean probabilities.",
        Table(["choice set", "offered", "alternative", "observed share", level, "model"], body),
    )


def menu_lines(found: EffectsReport, most: int) -> list[str]:
    """Return a line of text for each repeated choice set: observed shares and the model's probabilities."""
    return [
        f"choice set offered {menu.n:,} times: "
        + "; ".join(
            "{} {:.3f} [{:.3f}, {:.3f}], model {:.3f}".format(
                found.name_of(share), share.share, *share.interval, share.model
            )
            for share in menu.shares
        )
        for menu in found.menus[:most]
    ]


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
        for row, does, decoy in _decoys(found, pair)
    ]
    header = ["third alternative", "shift of the log-odds", "probability before", "after"]
    caption = (
        f"A is row {pair.row}, B is row {pair.against}. In other numbers C is half way between them; it has the "
        "categories of A. Dashed line: no effect. Solid line: the preference between A and B reverses. Star: the best "
        "decoy."
    )
    return Section(
        f"Decoys: what helps row {pair.row} against row {pair.against}",
        _pair_words(pair),
        Table(header, body) if body else None,
        [] if pair.map is None else [_picture(draw_decoy_map(pair.map), folder / "decoys.png", caption)],
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
    pictures = [_picture(draw_context_test(result), folder / "test.png", caption)]
    return Section(title, f"{text}{left_out(tested)}", pictures=pictures)


def context_words(result: ContextTest, level: float) -> str:
    """Return a sentence on the result of a context test at a significance level."""
    what = "Significant" if result.p_value <= level else "No significant"
    return (
        f"{what} context dependence: score statistic {result.statistic:.1f}, {result.degrees} degrees of freedom, "
        f"p = {result.p_value:.3g} (by simulation), n = {result.n_sets:,} choices."
    )


def directions(natural: NaturalEffects) -> str:
    """Return a sentence on the better direction of each feature.

    Examples
    --------
    >>> directions(NaturalEffects({}, {}, {"price": "less", "stars": "more"}, {"stars": 0.5}, ["brand=x"]))
    'Better: less price (given), more stars (by the model). Not used: 1 other feature.'
    """
    parts = [
        f"{direction} {name} ({'by the model' if name in natural.slopes else 'given'})"
        for name, direction in natural.better.items()
    ]
    rest = len(natural.left_out)
    others = f" Not used: {rest} other feature{'s' * (rest != 1)}." if rest else ""
    return f"Better: {', '.join(parts)}.{others}"


def decoy_lines(found: EffectsReport) -> list[str]:
    """Return lines of text on the decoys of a pair of rows; none where no pair was asked for."""
    if found.pair is None:
        return []
    return [
        _pair_words(found.pair),
        *[
            f"row {row} {does}: log-odds {decoy.shift:+.4f}, probability {expit(decoy.before):.4f} to "
            f"{expit(decoy.after):.4f}"
            for row, does, decoy in _decoys(found, found.pair)
        ],
    ]


def _decoys(found: EffectsReport, pair: PairDecoys) -> list[tuple[int, str, Decoy]]:
    """Return the row of each decoy, and whether it helps or hurts."""
    both = {"helps": pair.found.helps, "hurts": pair.found.hurts}
    return [(int(found.rows[one.candidate]), does, one) for does, decoys in both.items() for one in decoys]


def _pair_words(pair: PairDecoys) -> str:
    """Return sentences on a pair of rows, and whether anything affects it."""
    tried = f"{pair.found.tried:,} other object{'s' * (pair.found.tried != 1)} of the table"
    none = "" if pair.found.helps or pair.found.hurts else " None has an effect."
    return (
        f"Row {pair.row} is preferred to row {pair.against} with probability {pair.probability:.4f} in the choice set "
        f"of these two. Tried as a third alternative: {tried}.{none}"
    )


def interval(entry: Quantity) -> str:
    """Return a confidence interval; a dash without refits."""
    return "–" if entry.interval is None else "[{:.4f}, {:.4f}]".format(*entry.interval)


def left_out(tested: FirstChoiceTest) -> str:
    """Return a space and a sentence on the sets left out of the context test; "" where none was.

    Examples
    --------
    >>> left_out(FirstChoiceTest(None, "", {"one_object": 1, "nothing": 12}))
    ' Left out: 1 set of one object, 12 sets in which nothing was chosen or ranked.'
    """
    parts = [
        f"{count:,} set{'s' * (count != 1)} {_LEFT_OUT[reason]}" for reason, count in tested.left_out.items()
    ]
    return f" Left out: {', '.join(parts)}." if parts else ""
