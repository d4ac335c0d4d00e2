"""Figures of elasticities, diversion ratios, willingness to pay, demand curves, prices and audits."""

import os
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from entourage.decisions.auditing import Audit
    from entourage.decisions.demand import DemandCurve
    from entourage.decisions.diversion_ratios import Diversion
    from entourage.decisions.elasticity import Elasticities
    from entourage.decisions.prices import Prices
    from entourage.decisions.trade_offs import WillingnessToPay

__all__ = [
    "draw_audit",
    "draw_demand",
    "draw_diversion",
    "draw_elasticities",
    "draw_prices",
    "draw_willingness",
    "saved",
]

Figure: TypeAlias = Any  # of matplotlib, which is imported only when something is drawn

INK, MARK = "#1c2430", "#b3261e"
_MOST = 20  # labels that are drawn


def saved(figure: Figure, path: str | os.PathLike[str] | None) -> Figure:
    """Write a figure where a path is given, and return it."""
    if path is not None:
        figure.savefig(path)
    return figure


def draw_elasticities(found: "Elasticities") -> Figure:
    """Draw own elasticities: those of labels with their intervals, or their distribution over objects."""
    if len(found.labels) == 1:
        figure, axis = _figure(7.0, 3.2)
        known = found.own[np.isfinite(found.own)]
        _histogram(axis, known, 0.005)
        axis.axvline(found.estimate.value, color=INK, linewidth=1.5)
        axis.set_xlabel(f"own {found.kind} of {found.feature}; line: probability-weighted mean")
        axis.set_ylabel("objects")
        return figure
    shown = np.argsort(-found.shares[: len(found.labels)], kind="stable")[:_MOST][::-1]
    figure, axis = _figure(7.4, 1.0 + 0.34 * len(shown))
    for place, i in enumerate(shown):
        one = found.aggregate_own[i]
        axis.barh(place, one.value, height=0.6, color=MARK, alpha=0.45)
        if one.low is not None:
            axis.plot([one.low, one.high], [place, place], color=INK, linewidth=2, solid_capstyle="round")
    axis.axvline(0, color=INK, linewidth=1)
    axis.set_yticks(range(len(shown)), [_plain(found.labels[i]) for i in shown])
    axis.set_xlabel(f"own {found.kind} of {found.feature}")
    return figure


def draw_diversion(found: "Diversion") -> Figure:
    """Draw the aggregate matrix of diversion ratios."""
    from matplotlib.figure import Figure

    k = min(len(found.labels), _MOST)
    matrix = found.aggregate.value
    names = [*found.labels[:k], *(["outside option"] if len(matrix) > len(found.labels) else [])]
    shown = np.vstack([matrix[:k, :k], matrix[len(found.labels) :, :k]])
    side = 2.6 + 0.55 * k
    figure = Figure(figsize=(side + 0.9, side), dpi=140, layout="constrained")
    axis = figure.subplots()
    image = axis.imshow(
        np.ma.masked_invalid(shown), cmap="Reds", vmin=0, vmax=max(1e-9, float(np.nanmax(shown)))
    )
    if k <= 10:
        for i, j in np.argwhere(np.isfinite(shown)):
            shade = "white" if shown[i, j] > 0.6 * np.nanmax(shown) else INK
            axis.text(j, i, f"{shown[i, j]:.2f}", ha="center", va="center", fontsize=8, color=shade)
    axis.set_xticks(range(k), [_plain(name) for name in found.labels[:k]], rotation=90)
    axis.set_yticks(range(len(names)), [_plain(name) for name in names])
    axis.set_xlabel("of what this loses")
    axis.set_ylabel("this gains")
    figure.colorbar(image, ax=axis, shrink=0.8, label="diversion ratio")
    return figure


def draw_willingness(found: "WillingnessToPay") -> Figure:
    """Draw the distribution of willingness to pay over objects; where it is the same for all, the estimate alone."""
    known = found.values[np.isfinite(found.values)]
    varies = len(known) > 0 and float(np.ptp(known)) > 1e-6 * float(np.abs(known).max())
    bounded = found.estimate.low is not None and np.isfinite(found.estimate.low)
    figure, axis = _figure(7.0, 3.2 if varies else 1.4)
    if varies:
        _histogram(axis, known, 0.02)
        axis.axvline(found.estimate.value, color=INK, linewidth=1.5)
        axis.set_ylabel("objects")
        if bounded:
            axis.axvspan(found.estimate.low, found.estimate.high, color=INK, alpha=0.15)
    else:
        axis.scatter([found.estimate.value], [0], s=60, color=MARK, zorder=2)
        if bounded:
            axis.hlines(0, found.estimate.low, found.estimate.high, color=MARK, linewidth=4, alpha=0.4)
        axis.axvline(0, color=INK, linewidth=0.8)
        axis.set_yticks([])
        axis.spines["left"].set_visible(False)
    axis.set_xlabel(f"willingness to pay for {found.feature}, in {found.cost} times {abs(found.units):g}")
    return figure


def draw_demand(found: "DemandCurve") -> Figure:
    """Draw a demand curve with its band."""
    figure, axis = _figure(7.0, 3.6)
    order = np.argsort(found.values)
    x = found.values[order]
    if found.share.low is not None:
        axis.fill_between(
            x, found.share.low[order], found.share.high[order], color=MARK, alpha=0.2, linewidth=0
        )
    axis.plot(
        x, found.share.value[order], color=MARK, linewidth=2, marker="o", markersize=3, label="moved objects"
    )
    if found.outside is not None:
        axis.plot(
            x, found.outside.value[order], color=INK, linewidth=1.2, linestyle="--", label="outside option"
        )
        axis.legend(frameon=False)
    axis.set_xlabel(f"{found.feature} ({found.change})")
    axis.set_ylabel("share")
    axis.set_ylim(bottom=0)
    return figure


def draw_prices(found: "Prices") -> Figure:
    """Draw the prices that change, before (open) and after (filled), and how often each object is chosen."""
    from matplotlib.figure import Figure

    shown = found.changed[np.argsort(-found.probabilities[found.changed], kind="stable")][:_MOST][::-1]
    figure = Figure(figsize=(8.6, 1.2 + 0.38 * len(shown)), dpi=140, layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    places = np.arange(len(shown))
    left.hlines(places, found.old[shown], found.prices[shown], color=INK, linewidth=1, alpha=0.5, zorder=1)
    left.scatter(found.old[shown], places, s=42, facecolor="white", edgecolor=INK, zorder=2, label="before")
    left.scatter(found.prices[shown], places, s=42, color=MARK, zorder=2, label="after")
    left.set_yticks(places, [_plain(found.names[i]) for i in shown])
    left.set_xlabel("price")
    right.barh(places, found.probabilities[shown], height=0.6, color=MARK, alpha=0.45)
    right.set_xlabel("choice probability at the new prices")
    for axis in (left, right):
        axis.set_ylim(-0.7, len(shown) - 0.3)
        axis.spines[["top", "right"]].set_visible(False)
    figure.legend(*left.get_legend_handles_labels(), frameon=False, loc="outside upper right", ncols=2)
    return figure


def draw_audit(found: "Audit") -> Figure:
    """Draw the shares of violations of each signed column."""
    figure, axis = _figure(7.4, 1.1 + 0.6 * max(len(found.signs), 1))
    kinds = (
        ("gradient", "by the gradient"),
        ("move", "by a finite move"),
        ("monotone", "somewhere in the range"),
    )
    for k, (name, words) in enumerate(kinds):
        values = [getattr(one, name).share for one in found.signs[::-1]]
        places = np.arange(len(values)) + 0.25 * (1 - k)
        axis.barh(places, values, height=0.22, color=MARK, alpha=0.25 + 0.25 * k, label=words)
    axis.set_yticks(range(len(found.signs)), [_plain(one.feature) for one in found.signs[::-1]])
    axis.set_xlabel("share of objects whose demand moves the wrong way")
    axis.set_xlim(left=0)
    axis.legend(frameon=False, fontsize=8)
    return figure


def _figure(width: float, height: float) -> tuple[Figure, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=140, layout="constrained")
    axis = figure.subplots()
    axis.spines[["top", "right"]].set_visible(False)
    return figure, axis


def _histogram(axis: Any, values: Any, tail: float) -> None:
    """Draw a histogram whose ends gather the tails; none where all values are the same."""
    low, high = np.quantile(values, [tail, 1 - tail]) if len(values) else (0.0, 0.0)
    if high - low > 1e-6 * max(abs(low), abs(high)):
        axis.hist(np.clip(values, low, high), bins=40, color=MARK, alpha=0.55)


def _plain(text: str) -> str:
    """Return text that matplotlib takes as it is."""
    shown = text if len(text) <= 28 else f"{text[:27]}…"
    return shown.replace("$", r"\$")
