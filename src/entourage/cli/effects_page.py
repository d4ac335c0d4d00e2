"""The page of ``entourage effects``."""

import tempfile
from pathlib import Path
from typing import Any

from entourage.effects.plots import draw_context_test, draw_effects, draw_influence, draw_natural_effects
from entourage.report.page import Cell, Section, Table, write_report

__all__ = [
    "EFFECTS",
    "directions",
    "interval",
    "left_out",
    "menu_lines",
    "pair_words",
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


def write_effects(path: Path, found: dict[str, Any], *, title: str, decoys: Any = None) -> None:
    """Write what the command found as a page of its own; ``decoys`` is the figure of a pair's decoys, if any.

    ``found`` is what `entourage.effects.effects_report` returns, with "natural_effects", "menus", "no_intervals" (why
    there are none) and "pair" where these were asked for.
    """
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        sections = [
            _independence(found, place),
            _influence(found, place),
            _natural(found, place),
            _menus(found),
            _pair(found, place, decoys),
            _choices(found, place),
        ]
        lead = f"{found['model']}; {found['sets_seen']:,} of {found['sets']:,} sets."
        write_report(path, title, lead, [section for section in sections if section is not None])


def _picture(figure: Any, path: Path, caption: str) -> tuple[Path, str]:
    figure.savefig(path)
    return path, caption


def _independence(found: dict[str, Any], folder: Path) -> Section:
    body: list[list[Cell]] = [
        [words, *_refit_cells(found[name], "{:.4f}")] for name, words in EFFECTS.items()
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


def _refit_header(found: dict[str, Any]) -> list[str]:
    level = f"{100 * (1 - found['level']):g} % CI"
    return ["this model", "refits", "refits without context", "estimate", level]


def _refit_cells(entry: dict[str, Any], shape: str) -> list[str]:
    numbers = [entry["value"], entry["refits"], entry["reference"], entry["estimate"]]
    return ["–" if number is None else shape.format(number) for number in numbers] + [interval(entry)]


def refit_words(found: dict[str, Any]) -> str:
    """Return what the intervals are, or why there are none."""
    if found.get("groups") is None:
        return found.get("no_intervals") or "No refits, so no confidence intervals."
    return (
        f"Confidence intervals are from refits to {found['groups']:,} resampled {found['resampled']}, beside refits "
        "to simulated choices without context (the reference) and with known context effects, by which the estimate is "
        "corrected for what fitting adds and shrinks."
    )


def _influence(found: dict[str, Any], folder: Path) -> Section | None:
    if found["matrix"] is None:
        return None
    matrix = [[float("nan") if x is None else x for x in row] for row in found["matrix"]]
    strongest = found["strongest"][0]
    caption = "How the object of the column moves that of the row."
    return Section(
        "Pairwise influence",
        f"Set {strongest['set']}, in which object {strongest['place']} moves the others more than any "
        "other object of the sets that were measured.",
        pictures=[_picture(draw_influence(matrix), folder / "influence.png", caption)],
    )


def _natural(found: dict[str, Any], folder: Path) -> Section | None:
    natural = found.get("natural_effects")
    if natural is None:
        return None
    title = "Attraction, compromise, similarity"
    if natural["failed"] is not None:
        return Section(title, natural["failed"])
    body: list[list[Cell]] = []
    for name, words in _CASES.items():
        entry = natural[name]
        cells = ["no case", *[""] * 7] if entry is None else _natural_cells(entry)
        body.append([f"{name}: {words}", *cells])
    pictures = []
    if any(natural[name] for name in _CASES):
        caption = "Estimates with their confidence intervals; above 0 is the direction of the literature."
        pictures = [_picture(draw_natural_effects(natural), folder / "natural.png", caption)]
    header = ["", *_refit_header(found), "probability", "triples", "sets"]
    return Section(
        title,
        "By how much the log-odds of A against B rise when C is added, over triples that stand together in a set. "
        f"{directions(natural)} {extrapolation(natural)}Log-odds are differences of utilities; those of a ranker have "
        "no scale of their own.",
        Table(header, body),
        pictures,
    )


def extrapolation(natural: dict[str, Any]) -> str:
    """Return a sentence, before a space, on sets that are smaller than any the table has; "" where there are pairs."""
    if not natural["extrapolated"]:
        return ""
    return "The table has no sets of two: the model extrapolates to them, which the intervals don't take into account. "


def _natural_cells(entry: dict[str, Any]) -> list[str]:
    probability = f"{entry['before']:.3f} to {entry['after']:.3f}"
    return [*_refit_cells(entry, "{:+.4f}"), probability, f"{entry['n']:,}", f"{entry['sets']:,}"]


def _menus(found: dict[str, Any]) -> Section | None:
    menus = found.get("menus")
    if not menus:
        return None
    body: list[list[Cell]] = []
    for i, menu in enumerate(menus):
        for share in menu["shares"]:
            ends = "[{:.3f}, {:.3f}]".format(*share["interval"])
            body.append(
                [
                    f"{i + 1}",
                    f"{menu['n']:,}",
                    share["name"],
                    f"{share['share']:.3f}",
                    ends,
                    f"{share['model']:.3f}",
                ]
            )
    level = f"{100 * (1 - found['level']):g} % CI"
    return Section(
        "Choice sets that repeat",
        "The raw share in which each alternative was chosen (or came first) from the sets that were offered most "
        "often, beside the model's mean probability. Wilson intervals, which take the choices for independent.",
        Table(["choice set", "offered", "alternative", "share", level, "model"], body),
    )


def menu_lines(menus: list[dict[str, Any]]) -> list[str]:
    """Say in lines of text what was chosen from the sets that repeat, and what the model says."""
    return [
        f"offered {menu['n']:,} times: "
        + "; ".join(
            "{} {:.3f} [{:.3f}, {:.3f}], model {:.3f}".format(
                share["name"], share["share"], *share["interval"], share["model"]
            )
            for share in menu["shares"]
        )
        for menu in menus
    ]


def _pair(found: dict[str, Any], folder: Path, decoys: Any) -> Section | None:
    pair = found.get("pair")
    if pair is None:
        return None
    body: list[list[Cell]] = []
    for kind in ("helps", "hurts"):
        for one in pair[kind]:
            body.append(
                [
                    f"row {one['row']} {kind}",
                    f"{one['shift']:+.4f}",
                    f"{one['before']:.4f}",
                    f"{one['after']:.4f}",
                ]
            )
    header = ["third object", "shift of the log-odds", "probability before", "after"]
    caption = (
        f"A is row {pair['row']}, B row {pair['against']}. C is half way between them in other numbers, and has the "
        "categories of A. It changes nothing on a dashed line; the preference between A and B reverses on a solid one; "
        "a star is the best place."
    )
    return Section(
        f"What helps row {pair['row']} against row {pair['against']}",
        pair_words(pair),
        Table(header, body) if body else None,
        [] if decoys is None else [_picture(decoys, folder / "decoys.png", caption)],
    )


def _choices(found: dict[str, Any], folder: Path) -> Section | None:
    tested = found["context_test"]
    if tested is None:
        return None
    text = tested.get("failed") or (
        f"Without the model: do choices depend on the rest of the set? Score statistic {tested['statistic']:.1f} on "
        f"{tested['degrees']} degrees of freedom, p = {tested['p_value']:.3g} by simulation from the model "
        f"without context, {tested['p_chi2']:.3g} by the chi-square distribution; {tested['n_sets']:,} choices. "
        f"What is assumed: {' '.join(tested['assumptions'])}"
    )
    caption = "Where the choices stand among those simulated without context."
    pictures = (
        [] if "failed" in tested else [_picture(draw_context_test(tested), folder / "test.png", caption)]
    )
    return Section("The choices themselves", f"{text}{left_out(tested)}", pictures=pictures)


def directions(natural: dict[str, Any]) -> str:
    """Return a sentence on which direction of each feature was taken for better.

    Examples
    --------
    >>> directions({"better": {"price": "less", "stars": "more"}, "slopes": {"stars": 0.5}, "left_out": ["brand=x"]})
    'Taken for better: less price (as given), more stars (the model). 1 other feature took no part.'
    """
    parts = [
        f"{direction} {name} ({'the model' if name in natural['slopes'] else 'as given'})"
        for name, direction in natural["better"].items()
    ]
    rest = len(natural["left_out"])
    others = f" {rest} other feature{'s' * (rest != 1)} took no part." if rest else ""
    return f"Taken for better: {', '.join(parts)}.{others}"


def pair_words(pair: dict[str, Any]) -> str:
    """Return a sentence on a pair of rows, and whether anything moves it."""
    tried = f"{pair['tried']:,} other object{'s' * (pair['tried'] != 1)} of the table"
    moved = "" if pair["helps"] or pair["hurts"] else " None of them changes that."
    return (
        f"Row {pair['row']} is preferred to row {pair['against']} with probability {pair['probability']:.4f} where "
        f"there are only these two. Tried as a third: {tried}.{moved}"
    )


def interval(entry: dict[str, Any]) -> str:
    """Return a confidence interval; a dash without refits."""
    return "–" if entry["interval"] is None else "[{:.4f}, {:.4f}]".format(*entry["interval"])


def left_out(tested: dict[str, Any]) -> str:
    """Return a sentence, after a space, on the sets that took no part in the test of choices; "" where all did.

    Examples
    --------
    >>> left_out({"left_out": {"one_object": 1, "nothing": 12}})
    ' Left out: 1 set of one object, 12 sets in which nothing was chosen or ranked.'
    """
    parts = [
        f"{count:,} set{'s' * (count != 1)} {_LEFT_OUT[reason]}"
        for reason, count in tested["left_out"].items()
    ]
    return f" Left out: {', '.join(parts)}." if parts else ""
