"""The page of ``entourage effects``."""

import tempfile
from pathlib import Path
from typing import Any

from scipy.special import expit

from entourage.effects import Decoy, EffectsReport, FirstChoiceTest, NaturalEffects, PairDecoys, Quantity
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
    "decoy_lines",
    "directions",
    "extrapolation",
    "interval",
    "left_out",
    "menu_lines",
    "refit_words",
    "write_effects",
]

#: What the figures of `entourage.effects.effects_report` are called.
EFFECTS = {
    "reversal_rate": "preference-reversal rate when one alternative is removed",
    "iia_violation": "IIA violation: mean absolute change of a pair's log-odds when a third alternative is removed",
    "regularity_rate": "regularity violations: how often adding an alternative raises the probability of another",
    "regularity_amount": "regularity violations: mean increase of probability, 0 where there is none",
}

_LEFT_OUT = {  # why a set says nothing to the test of choices
    "one_object": "of one object",
    "nothing": "in which nothing was chosen or ranked",
    "several": "in which several were chosen or share the first place",
}


_CASES = {  # what A, B and C are to be a case of an effect
    "attraction": "A dominates C, B doesn't",
    "compromise": "A lies between B and C",
    "similarity": "C is like B, not like A",
}


def write_effects(path: Path, found: EffectsReport, *, title: str) -> None:
    """Write what the command found as a page of its own."""
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
        lead = f"{found.model}; {found.sets_seen:,} of {found.sets:,} sets."
        write_report(path, title, lead, [section for section in sections if section is not None])


def _picture(figure: Any, path: Path, caption: str) -> tuple[Path, str]:
    figure.savefig(path)
    return path, caption


def _independence(found: EffectsReport, folder: Path) -> Section:
    body: list[list[Cell]] = [
        [words, *_refit_cells(getattr(found, name), "{:.4f}")] for name, words in EFFECTS.items()
    ]
    return Section(
        "Preference reversals, IIA and regularity",
        "A model that scores each alternative by itself has 0 everywhere; a fitted net has more even where people "
        f"choose without context, since it learns noise as well. {refit_words(found)}",
        Table(["", *_refit_header(found)], body),
        [
            _picture(
                draw_effects(found),
                folder / "effects.png",
                "Values, references (open) and confidence intervals.",
            )
        ],
    )


def _refit_header(found: EffectsReport) -> list[str]:
    return ["this model", "refits", "refits without context", "estimate", f"{100 * (1 - found.level):g} % CI"]


def _refit_cells(entry: Quantity, shape: str) -> list[str]:
    numbers = [entry.value, entry.refits, entry.reference, entry.estimate]
    return ["–" if number is None else shape.format(number) for number in numbers] + [interval(entry)]


def refit_words(found: EffectsReport) -> str:
    """Return what the intervals are, or why there are none."""
    if found.groups is None:
        return found.no_intervals or ""
    return (
        f"Confidence intervals are from refits to {found.groups:,} resampled {found.resampled}, beside refits "
        "to simulated choices without context (the reference) and with known context effects, by which the estimate is "
        "corrected for what fitting adds and shrinks."
    )


def _influence(found: EffectsReport, folder: Path) -> Section | None:
    if found.matrix is None:
        return None
    strongest = found.strongest[0]
    caption = "How the object of the column moves that of the row."
    return Section(
        "Pairwise influence",
        f"Set {strongest.set}, in which object {strongest.place} moves the others more than any "
        "other object of the sets that were measured.",
        pictures=[_picture(draw_influence(found.matrix), folder / "influence.png", caption)],
    )


def _natural(found: EffectsReport, folder: Path) -> Section:
    natural, title = found.natural_effects, "Attraction, compromise, similarity"
    if natural.failed is not None:
        return Section(title, natural.failed)
    body: list[list[Cell]] = [
        [f"{name}: {words}", *_natural_cells(natural, name, found.level)] for name, words in _CASES.items()
    ]
    pictures = []
    if any(natural.effects.values()):
        caption = "Estimates with their confidence intervals; above 0 is the direction of the literature."
        pictures = [_picture(draw_natural_effects(natural, found.level), folder / "natural.png", caption)]
    header = ["", *_refit_header(found), "probability", "triples", "sets"]
    return Section(
        title,
        "By how much the log-odds of A against B rise when C is added, over triples that stand together in a set. "
        f"{directions(natural)} {extrapolation(natural)}Log-odds are differences of utilities; those of a ranker have "
        "no scale of their own.",
        Table(header, body),
        pictures,
    )


def extrapolation(natural: NaturalEffects) -> str:
    """Return a sentence, before a space, on sets that are smaller than any the table has; "" where there are pairs."""
    if not natural.extrapolated:
        return ""
    return "The table has no sets of two: the model extrapolates to them, which the intervals don't take into account. "


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
        "Choice sets that repeat",
        "The raw share in which each alternative was chosen (or came first) from the sets that were offered most "
        "often, beside the model's mean probability. Wilson intervals, which take the choices for independent.",
        Table(["choice set", "offered", "alternative", "share", level, "model"], body),
    )


def menu_lines(found: EffectsReport, most: int) -> list[str]:
    """Say in lines of text what was chosen from the sets that repeat, and what the model says."""
    return [
        f"offered {menu.n:,} times: "
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
    header = ["third object", "shift of the log-odds", "probability before", "after"]
    caption = (
        f"A is row {pair.row}, B row {pair.against}. C is half way between them in other numbers, and has the "
        "categories of A. It changes nothing on a dashed line; the preference between A and B reverses on a solid one; "
        "a star is the best place."
    )
    return Section(
        f"What helps row {pair.row} against row {pair.against}",
        _pair_words(pair),
        Table(header, body) if body else None,
        [] if pair.map is None else [_picture(draw_decoy_map(pair.map), folder / "decoys.png", caption)],
    )


def _choices(found: EffectsReport, folder: Path) -> Section | None:
    tested = found.context_test
    if tested is None:
        return None
    title, result = "The choices themselves", tested.result
    if result is None:
        return Section(title, f"{tested.failed}{left_out(tested)}")
    text = (
        f"Without the model: do choices depend on the rest of the set? Score statistic {result.statistic:.1f} on "
        f"{result.degrees} degrees of freedom, p = {result.p_value:.3g} by simulation from the model "
        f"without context, {result.p_chi2:.3g} by the chi-square distribution; {result.n_sets:,} choices. "
        f"What is assumed: {' '.join(result.assumptions)}"
    )
    caption = "Where the choices stand among those simulated without context."
    pictures = [_picture(draw_context_test(result), folder / "test.png", caption)]
    return Section(title, f"{text}{left_out(tested)}", pictures=pictures)


def directions(natural: NaturalEffects) -> str:
    """Return a sentence on which direction of each feature was taken for better.

    Examples
    --------
    >>> directions(NaturalEffects({}, {}, {"price": "less", "stars": "more"}, {"stars": 0.5}, ["brand=x"]))
    'Taken for better: less price (as given), more stars (the model). 1 other feature took no part.'
    """
    parts = [
        f"{direction} {name} ({'the model' if name in natural.slopes else 'as given'})"
        for name, direction in natural.better.items()
    ]
    rest = len(natural.left_out)
    others = f" {rest} other feature{'s' * (rest != 1)} took no part." if rest else ""
    return f"Taken for better: {', '.join(parts)}.{others}"


def decoy_lines(found: EffectsReport) -> list[str]:
    """Say in lines of text what helps one row against another; none where no pair was asked for."""
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
    """Return a sentence on a pair of rows, and whether anything moves it."""
    tried = f"{pair.found.tried:,} other object{'s' * (pair.found.tried != 1)} of the table"
    moved = "" if pair.found.helps or pair.found.hurts else " None of them changes that."
    return (
        f"Row {pair.row} is preferred to row {pair.against} with probability {pair.probability:.4f} where "
        f"there are only these two. Tried as a third: {tried}.{moved}"
    )


def interval(entry: Quantity) -> str:
    """Return a confidence interval; a dash without refits."""
    return "–" if entry.interval is None else "[{:.4f}, {:.4f}]".format(*entry.interval)


def left_out(tested: FirstChoiceTest) -> str:
    """Return a sentence, after a space, on the sets that took no part in the test of choices; "" where all did.

    Examples
    --------
    >>> left_out(FirstChoiceTest(None, "", {"one_object": 1, "nothing": 12}))
    ' Left out: 1 set of one object, 12 sets in which nothing was chosen or ranked.'
    """
    parts = [
        f"{count:,} set{'s' * (count != 1)} {_LEFT_OUT[reason]}" for reason, count in tested.left_out.items()
    ]
    return f" Left out: {', '.join(parts)}." if parts else ""
