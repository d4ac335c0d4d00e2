"""Figures of context effects: pairwise influence, quantities with their intervals, maps of decoys."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entourage.effects.context_test import ContextTest
from entourage.effects.decoys import DecoyMap, decoy_map
from entourage.effects.importance import Importance
from entourage.effects.intervals import Quantity
from entourage.effects.observed import NaturalEffects
from entourage.effects.report import EffectsReport
from entourage.effects.utilities import Model
from entourage.errors import DataError, ShapeError, check_number
from entourage.tasks.ranking_metrics import LOWER_IS_BETTER

__all__ = [
    "draw_context_test",
    "draw_decoy_map",
    "draw_decoys",
    "draw_effects",
    "draw_importance",
    "draw_influence",
    "draw_natural_effects",
]

Figure: TypeAlias = Any  # of matplotlib, which is imported only when something is drawn

INK = "#1c2430"
MARK = "#b3261e"
_BARS = {  # quantities of a report, by unit
    "reversal_rate": ("preference-reversal rate", "share"),
    "regularity_rate": ("regularity violations: rate", "share"),
    "regularity_amount": ("regularity violations: amount", "share"),
    "iia_violation": ("IIA violation", "utility"),
}


def draw_influence(matrix: ArrayLike, names: Sequence[str] | None = None) -> Figure:
    """Draw one influence matrix (m, m): how the object of the column changes the utility of that of the row."""
    from matplotlib.figure import Figure

    values = np.array(matrix, dtype=np.float64)
    if values.ndim != 2 or values.shape[0] != values.shape[1]:
        raise ShapeError(f"One influence matrix is drawn, (objects, objects); got shape {values.shape}.")
    m = len(values)
    labels = [str(i) for i in range(m)] if names is None else list(names)
    if len(labels) != m:
        raise ShapeError(f"names needs one for each of {m} objects; got {len(labels)}.")
    side = min(2.6 + 0.55 * m, 11)
    figure = Figure(figsize=(side + 0.9, side), dpi=140, layout="constrained")
    axis = figure.subplots()
    axis.set_facecolor("#c3cad4")  # shows where there is no value
    limit = _limit(values)
    image = axis.imshow(np.ma.masked_invalid(values), cmap="RdBu", vmin=-limit, vmax=limit)
    if m <= 10:
        for i, j in np.argwhere(np.isfinite(values)):
            shade = "white" if abs(values[i, j]) > 0.6 * limit else INK
            axis.text(j, i, f"{values[i, j]:+z.2f}", ha="center", va="center", fontsize=8, color=shade)
    axis.set_xticks(range(m), labels, rotation=90 if max(map(len, labels)) > 3 else 0)
    axis.set_yticks(range(m), labels)
    axis.set_xlabel("presence of")
    axis.set_ylabel("changes the utility of")
    figure.colorbar(image, ax=axis, shrink=0.8, label="change of utility; blue: helps, red: hurts")
    return figure


def draw_effects(report: EffectsReport) -> Figure:
    """Draw the quantities of :func:`entourage.effects.effects_report`.

    A bar is the value of the model; a point and a line are the estimate and its confidence interval; an open circle is
    the mean over refits without context.
    """
    from matplotlib.figure import Figure

    if not isinstance(report, EffectsReport):
        raise DataError(
            f"What effects_report returns is drawn, an EffectsReport; got {type(report).__name__}."
        )
    figure = Figure(figsize=(7.4, 3.4), dpi=140, layout="constrained")
    axes = figure.subplots(2, 1, height_ratios=[3, 1])
    units = {"share": "share of cases, or probability", "utility": "mean absolute change of log-odds"}
    for axis, (unit, label) in zip(axes, units.items(), strict=True):
        mine = [name for name, (_, its) in _BARS.items() if its == unit][::-1]
        for place, name in enumerate(mine):
            entry: Quantity = getattr(report, name)
            value, ends = entry.value, entry.interval
            axis.barh(place, value, height=0.55, color=MARK, alpha=0.35)
            if ends is not None:
                axis.plot(ends, [place, place], color=INK, linewidth=2, solid_capstyle="round")
                axis.scatter(entry.estimate, place, s=36, color=INK, zorder=3)
                axis.scatter(entry.reference, place, s=46, facecolor="white", edgecolor=MARK, zorder=4)
            where = value if ends is None else max(value, ends[1], entry.reference or 0.0)
            axis.annotate(
                f"{value:.3f}", (where, place), xytext=(6, 0), textcoords="offset points", va="center"
            )
        axis.set_yticks(range(len(mine)), [_BARS[name][0] for name in mine])
        axis.set_ylim(-0.6, len(mine) - 0.4)
        axis.set_xlim(0, axis.get_xlim()[1] * 1.12 or 1)
        axis.set_xlabel(label)
        axis.spines[["top", "right"]].set_visible(False)
    return figure


def draw_importance(found: Importance, *, most: int = 20) -> Figure:
    """Draw the ``most`` important columns, with their intervals; pale where the interval reaches 0."""
    from matplotlib.figure import Figure

    check_number("most", most, least=1, whole=True)
    shown = found.columns[:most][::-1]
    figure = Figure(figsize=(7.4, 0.9 + 0.32 * len(shown)), dpi=140, layout="constrained")
    axis = figure.subplots()
    axis.axvline(0, color=INK, linewidth=1)
    for place, column in enumerate(shown):
        axis.barh(place, column.drop, height=0.6, color=MARK, alpha=0.15 if column.reaches_zero else 0.55)
        axis.plot(column.interval, [place, place], color=INK, linewidth=2, solid_capstyle="round")
    axis.set_yticks(range(len(shown)), [_plain(column.name) for column in shown])
    axis.set_ylim(-0.6, len(shown) - 0.4)
    change = "rise" if found.metric in LOWER_IS_BETTER else "drop"
    axis.set_xlabel(f"{change} of {_plain(found.metric)} when the column is shuffled within sets")
    axis.spines[["top", "right"]].set_visible(False)
    return figure


def draw_natural_effects(found: NaturalEffects, level: float = 0.05) -> Figure:
    """Draw attraction, compromise and similarity with their intervals of 1 - level, but for effects without a case."""
    from matplotlib.figure import Figure

    every = {name: found.quantity(name, level) for name in ("similarity", "compromise", "attraction")}
    entries = {name: entry for name, entry in every.items() if entry is not None}
    if not entries:
        raise DataError(
            "There is nothing to draw: no triple is a case of attraction, compromise or similarity."
        )
    figure = Figure(figsize=(7.4, 1.1 + 0.5 * len(entries)), dpi=140, layout="constrained")
    axis = figure.subplots()
    axis.axvline(0, color=INK, linewidth=1, linestyle="dashed")
    for place, entry in enumerate(entries.values()):
        shown = entry.value if entry.estimate is None else entry.estimate
        if entry.interval is not None:
            axis.plot(entry.interval, [place, place], color=INK, linewidth=2, solid_capstyle="round")
        axis.scatter(shown, place, s=46, color=MARK, zorder=3)
        axis.annotate(
            f"{shown:+.3f}",
            (shown, place),
            xytext=(0, 7),
            textcoords="offset points",
            ha="center",
        )
    axis.set_yticks(range(len(entries)), list(entries))
    axis.set_ylim(-0.5, len(entries) - 0.3)
    axis.margins(x=0.1)
    axis.set_xlabel("shift of the log-odds of A against B when C is added")
    axis.spines[["top", "right"]].set_visible(False)
    return figure


def draw_context_test(tested: ContextTest) -> Figure:
    """Draw the statistic of a context test and its distribution without context.

    Bars are simulated choices, the line is the chi-square distribution.
    """
    from matplotlib.figure import Figure
    from scipy.stats import chi2

    null, statistic = np.asarray(tested.null), tested.statistic
    if len(null) == 0:
        raise DataError("There is nothing to draw: the test simulated no choices. Ask for some draws.")
    figure = Figure(figsize=(7.4, 2.6), dpi=140, layout="constrained")
    axis = figure.subplots()
    end = 1.1 * max(float(null.max()), statistic)
    right = statistic > end / 2
    axis.hist(null, bins=np.linspace(0, float(null.max()), 25).tolist(), density=True, color=MARK, alpha=0.45)
    x = np.linspace(0, end, 400)[1:]
    axis.plot(x, chi2.pdf(x, tested.degrees), color=INK, linewidth=1)
    axis.axvline(statistic, color=INK, linewidth=2)
    axis.annotate(
        f"observed: {statistic:.1f}",
        (statistic, axis.get_ylim()[1]),
        xytext=(-6 if right else 6, -12),
        textcoords="offset points",
        ha="right" if right else "left",
    )
    axis.set_xlim(0, end)
    axis.set_yticks([])
    axis.set_xlabel("score statistic; bars: simulated without context; line: chi-square")
    axis.spines[["top", "right", "left"]].set_visible(False)
    return figure


def draw_decoys(
    model: Model,
    A: ArrayLike,
    B: ArrayLike,
    bounds: ArrayLike,
    *,
    names: tuple[str, str] = ("first feature", "second feature"),
    **options: Any,
) -> Figure:
    """Draw where in a box of two features a third object C helps A against B.

    On the dashed line C has no effect; on the solid line the preference between A and B reverses. The star is the best
    decoy of the grid. ``options`` are those of :func:`entourage.effects.decoy_map`.
    """
    return draw_decoy_map(decoy_map(model, A, B, bounds, names=names, **options))


def draw_decoy_map(found: DecoyMap) -> Figure:
    """Draw a map of :func:`entourage.effects.decoy_map`; see :func:`draw_decoys`."""
    from matplotlib.figure import Figure

    x, y, shifts = found.x, found.y, found.shifts
    figure = Figure(figsize=(6, 5), dpi=140, layout="constrained")
    axis = figure.subplots()
    limit = _limit(shifts)
    image = axis.pcolormesh(
        x, y, shifts, cmap="RdBu", vmin=-limit, vmax=limit, shading="nearest", rasterized=True
    )
    for values, style in ((shifts, "dashed"), (shifts + found.before, "solid")):
        if values.min() < 0 < values.max():
            axis.contour(x, y, values, levels=[0], colors=INK, linewidths=1, linestyles=style)
    for name, one in (("A", found.A), ("B", found.B)):
        place = (float(one[0]), float(one[1]))
        axis.scatter(place[0], place[1], s=46, color=INK, zorder=3)
        axis.annotate(name, place, xytext=(6, 5), textcoords="offset points", fontweight="bold", zorder=3)
    if shifts.max() > 0:
        row, column = np.unravel_index(int(np.argmax(shifts)), shifts.shape)
        axis.scatter(x[column], y[row], s=150, marker="*", color="white", edgecolor=INK, zorder=3)
    axis.set_xlabel(_plain(found.names[0]))
    axis.set_ylabel(_plain(found.names[1]))
    figure.colorbar(image, ax=axis, label="shift of the log-odds; C helps A (blue) or B (red)")
    return figure


def _limit(values: NDArray[Any]) -> float:
    """Return the end of the colour scale: the 99th percentile, so that outliers don't leave all others pale."""
    known = np.abs(values[np.isfinite(values)])
    return float(np.quantile(known, 0.99)) or 1.0 if len(known) else 1.0


def _plain(name: str) -> str:
    """Escape dollar signs, which would begin a formula."""
    return name.replace("$", r"\$")
