"""What an effects report says, in words: for the terminal and for the page."""

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

__all__ = [
    "EFFECTS",
    "context_words",
    "decoy_lines",
    "decoys_of",
    "directions",
    "extrapolation",
    "headline",
    "influence_words",
    "interval",
    "left_out",
    "menu_lines",
    "pair_words",
    "refit_words",
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


_SHORT = {
    "reversal_rate": "preference reversals",
    "iia_violation": "IIA violations",
    "regularity_rate": "regularity violations",
}


def headline(found: EffectsReport) -> str:
    """Say in a sentence or two which context effects there are, and how far that can be trusted."""
    return " ".join(filter(None, [_of_model(found), _of_choices(found)]))


def _of_model(found: EffectsReport) -> str:
    rate, violation = found.reversal_rate, found.iia_violation
    if found.groups is None:
        if rate.value == violation.value == 0:
            return (
                "No context effect: removing an alternative changes nothing between the others in this model."
            )
        return (
            f"In this model, removing one alternative reverses {rate.value:.1%} of the preferences between the others; "
            "without refits it is open how much of that is noise."
        )
    natural = found.natural_effects
    entries = {words: getattr(found, name) for name, words in _SHORT.items()}
    entries |= {name: natural.quantity(name, found.level) for name in natural.effects}
    significant = []
    for name, entry in entries.items():
        if entry is None or entry.interval is None:
            continue
        low, high = entry.interval
        if low > 0 or high < 0:
            significant.append(f"reversed {name}" if high < 0 else name)
    if not significant:
        return f"No significant context effect at level {found.level:g}: all confidence intervals include 0."
    return f"Significant context effects at level {found.level:g}: {', '.join(significant)}."


def _of_choices(found: EffectsReport) -> str:
    tested = found.context_test
    if tested is None or tested.result is None:
        return ""
    p = tested.result.p_value
    what = "Significant" if p <= found.level else "No significant"
    return f"{what} context dependence in the choices themselves (p = {p:.3g})."


def influence_words(moves: float) -> str:
    """Say how much an influential object changes the others."""
    return f"The selected object changes the utilities of the others by {moves:.3f} on average."


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


def extrapolation(natural: NaturalEffects) -> str:
    """Return a sentence, and a space, on extrapolation to pairs; "" where the table has pairs."""
    if not natural.extrapolated:
        return ""
    return "The table has no choice sets of two: the model extrapolates to pairs. Intervals don't account for that. "


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
        pair_words(found.pair),
        *[
            f"row {row} {does}: log-odds {decoy.shift:+.4f}, probability {expit(decoy.before):.4f} to "
            f"{expit(decoy.after):.4f}"
            for row, does, decoy in decoys_of(found, found.pair)
        ],
    ]


def decoys_of(found: EffectsReport, pair: PairDecoys) -> list[tuple[int, str, Decoy]]:
    """Return the row of each decoy, and whether it helps or hurts."""
    both = {"helps": pair.found.helps, "hurts": pair.found.hurts}
    return [(int(found.rows[one.candidate]), does, one) for does, decoys in both.items() for one in decoys]


def pair_words(pair: PairDecoys) -> str:
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
