"""The page of ``entourage effects``."""

import tempfile
from pathlib import Path
from typing import Any

from entourage.effects_plots import draw_context_test, draw_effects, draw_influence, draw_natural_effects
from entourage.report import Cell, Section, Table, write_report

__all__ = ["EFFECTS", "directions", "interval", "left_out", "pair_words", "write_effects"]

#: What the figures of `entourage.effects.effects_report` are called.
EFFECTS = {
    "reversal_rate": "a pair turns round when a third object leaves",
    "iia_violation": "log-odds of a pair change by, when a third object leaves",
    "regularity_rate": "an object is chosen more because another joins",
    "regularity_amount": "and by so much probability, on average",
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

    ``found`` is what `entourage.effects.effects_report` returns, with "natural_effects" and "pair" where these were
    asked for.
    """
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        sections = [
            _independence(found, place),
            _influence(found, place),
            _natural(found, place),
            _pair(found, place, decoys),
            _choices(found, place),
        ]
        lead = f"{found['model']}; {found['sets_seen']:,} of {found['sets']:,} sets."
        write_report(path, title, lead, [section for section in sections if section is not None])


def _picture(figure: Any, path: Path, caption: str) -> tuple[Path, str]:
    figure.savefig(path)
    return path, caption


def _independence(found: dict[str, Any], folder: Path) -> Section:
    body: list[list[Cell]] = []
    for name, words in EFFECTS.items():
        body.append([words, f"{found[name]['value']:.4f}", interval(found[name])])
    return Section(
        "How far from independence",
        "A model that scores each object alone has 0 everywhere. Intervals are over sets.",
        Table(["", "", f"{100 * (1 - found['level']):g} % interval"], body),
        [_picture(draw_effects(found), folder / "effects.png", "The figures with their intervals.")],
    )


def _influence(found: dict[str, Any], folder: Path) -> Section | None:
    if found["matrix"] is None:
        return None
    matrix = [[float("nan") if x is None else x for x in row] for row in found["matrix"]]
    strongest = found["strongest"][0]
    caption = "How the object of the column moves that of the row."
    return Section(
        "Who moves whom",
        f"Set {strongest['set']}, in which object {strongest['place']} moves the others more than any "
        "other object of the sets that were looked at.",
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
        cells = ["no case", "", "", "", ""] if entry is None else _natural_cells(entry)
        body.append([f"{name}: {words}", *cells])
    pictures = []
    if any(natural[name] for name in _CASES):
        caption = "The shifts with their intervals; above 0 is the direction of the literature."
        pictures = [_picture(draw_natural_effects(natural), folder / "natural.png", caption)]
    header = ["", "shift", f"{100 * (1 - found['level']):g} % interval", "probability", "triples", "sets"]
    return Section(
        title,
        "By how much the log-odds of A against B rise when C joins them, over triples that stand together in a set; "
        f"triples of one set are resampled together. {directions(natural)} The model is asked for sets of two and of "
        "three: one that has never seen sets as small may be off in them, and these figures with it. Log-odds are "
        "differences of utilities; those of a ranker have no scale of their own.",
        Table(header, body),
        pictures,
    )


def _natural_cells(entry: dict[str, Any]) -> list[str]:
    probability = f"{entry['before']:.3f} to {entry['after']:.3f}"
    return [f"{entry['value']:+.4f}", interval(entry), probability, f"{entry['n']:,}", f"{entry['sets']:,}"]


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
        "categories of A. It changes nothing on a dashed line; A and B turn round on a solid one; a star is the best "
        "place."
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
        f"Without the model: does the company enter the choices? Likelihood ratio {tested['statistic']:.1f} on "
        f"{tested['degrees']} degrees of freedom, p = {tested['p_value']:.3g} by simulation from the model "
        f"without context, {tested['p_chi2']:.3g} by the chi-square distribution; {tested['n_sets']:,} choices."
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
    """Return an interval in words; one set alone has none."""
    return "–" if entry["interval"] is None else "{:.4f} to {:.4f}".format(*entry["interval"])


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
