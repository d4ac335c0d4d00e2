"""The page of a comparison: the verdict, all models, what matters, influential objects and the data.

Nothing here is fitted.
"""

import platform
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entourage.cli.compare_fits import PageFits, Reliability
from entourage.cli.options import TrainingTable
from entourage.data.profile import profile_of
from entourage.effects import Importance
from entourage.pretrained import InstantVerdict
from entourage.report.intervals import IntervalPlot, Line
from entourage.report.page import Cell, Live, Section, Table, write_report
from entourage.report.reliability import reliability_picture
from entourage.selection import Comparison, headline, verdict, warnings_of
from entourage.selection.candidates import KINDS, TIERS
from entourage.tasks.ranking_metrics import LOWER_IS_BETTER
from entourage.tasks.reliability import reliability_bins

__all__ = ["write_comparison"]

INK = {"context": "#b3261e", "relative": "#b07d12", "context-free": "#5b6675"}
STEPS = {
    "relative": "the standing of an object in its set, over the best alone",
    "net": "interactions in a net of the whole set, over the best of all others",
}
TIERS_OF_STEPS = {"relative": "relative", "net": "context"}
SHAPES = {"context": "o", "relative": "s", "context-free": "^"}
SHOWN_OBJECTS = 10
SHOWN_COLUMNS = 20


def write_comparison(
    path: Path,
    comparison: Comparison,
    training: TrainingTable,
    fits: PageFits,
    instant: InstantVerdict | None = None,
    *,
    title: str,
    live: Live | None = None,
) -> None:
    """Write the page. It has no dates or durations: one table and one seed give one page.

    Parameters
    ----------
    path : the page to write
    comparison : what was found
    training : the table
    fits : models that were fitted for the page, and what they say (:func:`entourage.cli.compare_fits.fit_for_page`)
    instant : what the pretrained net believes of context in the table
    title : of the page
    live : where the chosen model runs in a page, or how to get one
    """
    chosen = {kind: comparison.most_chosen(kind) for kind in KINDS if kind in comparison.chosen[0]}
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        sections = [
            _gain(comparison),
            *([] if instant is None else [_instant(instant)]),
            _models(comparison),
            _by_size(comparison, training, chosen, folder),
            *([] if fits.reliability is None else [_reliability(fits.best, fits.reliability, folder)]),
            *([] if fits.importance is None else [_importance(fits.best, fits.importance)]),
            *_curves(fits.nets, comparison, folder),
            _influences(fits.influences, fits.influenced, training),
            *_profile(comparison, training, folder),
            _settings(comparison),
        ]
        write_report(
            path,
            title,
            verdict(comparison),
            sections,
            headline=headline(comparison),
            notes=warnings_of(comparison),
            live=live,
        )


def _instant(found: InstantVerdict) -> Section:
    rows: list[list[Cell]] = [["context's share of the gain is under 2 %", f"{found.none:.3f}"]]
    rows += [[f"{name} effect", f"{p:.3f}"] for name, p in found.effects.items()]
    low, high = found.interval
    return Section(
        "Instant verdict",
        "What the pretrained net believes of these sets, read at once and without fitting: posterior probabilities "
        "under the simulated worlds that it learnt from. It is no test; the context gain above is. "
        f"The share of the log-likelihood gain that is due to context: {found.share:.3f}, 90 % interval {low:.3f} to "
        f"{high:.3f}.",
        Table(["what", "probability"], rows),
    )


def _reliability(name: str, found: Reliability, folder: Path) -> Section:
    picture = reliability_picture(found.probabilities, found.outcomes, outcome=found.outcome)
    picture.savefig(folder / "reliability.png")
    rows: list[list[Cell]] = [
        [f"{own.probability:.3f}", f"{own.share:.3f}", _ends((own.low, own.high)), f"{own.count:,}"]
        for own in reliability_bins(found.probabilities, found.outcomes)
    ]
    return Section(
        "Are probabilities right?",
        f"Of the objects to which {name} gives a probability, the share that came true: on the diagonal, it is right. "
        + found.words,
        pictures=[
            (
                folder / "reliability.png",
                "Lines are 95 % intervals; the number of objects is below.",
                "A reliability diagram; the table below has its numbers.",
            )
        ],
        folded=[
            (
                "As a table",
                Table(["mean probability", f"share {found.outcome}", "95 % interval", "objects"], rows),
            )
        ],
    )


def _gain(comparison: Comparison) -> Section:
    parts = [
        ("any context", "the context gain", "any", comparison.gain, comparison.interval, comparison.p_value)
    ]
    parts += [
        (f"{name} adds", STEPS[name], TIERS_OF_STEPS[name], step.gain, step.interval, step.p_value)
        for name, step in comparison.steps.items()
    ]
    lines = [
        Line(name, gain, ends, f"{_number(gain, '+.4f')} {_ends(ends)}", note, _p(p), look)
        for name, note, look, gain, ends, p in parts
    ]
    level = f"{100 * (1 - comparison.level):g} %"
    return Section(
        "Context gain",
        "In each outer fold the best model of each tier was chosen by training sets alone: of those that score each "
        "object alone, that also see its standing in the set, and of nets of the whole set. The context gain is the "
        "mean difference of the best with any context and the best without, on the held-out sets of the fold. What "
        "relative adds is over the best alone; what a net adds, over the best of all others. "
        f"Lines are {level} confidence intervals (paired bootstrap over "
        f"{'sets' if comparison.n_groups is None else 'groups'}); p by a one-sided sign-flip test. "
        "Both are corrected for training sets that folds share (Nadeau and Bengio, 2003).",
        plots=[
            IntervalPlot(
                f"Gain in {comparison.metric}; right of the vertical line, context helps.",
                "what",
                f"gain, {level} CI",
                lines,
                zero=0.0,
            )
        ],
    )


def _models(comparison: Comparison) -> Section:
    metrics = list(next(iter(comparison.means.values())))
    sign = -1 if comparison.metric in LOWER_IS_BETTER else 1
    order = sorted(comparison.names, key=lambda name: -sign * comparison.means[name][comparison.metric])
    best = {
        m: (min if m in LOWER_IS_BETTER else max)(means[m] for means in comparison.means.values())
        for m in metrics
    }
    lines, rows = [], []
    for name in order:
        means, kind = comparison.means[name], comparison.kinds[name]
        cells = {m: f"{_number(means[m], '.4f')} {_ends(comparison.intervals[name][m])}" for m in metrics}
        row: list[Cell] = [name, (TIERS[kind], "text")]
        rows.append([*row, *((text, "best") if means[m] == best[m] else text for m, text in cells.items())])
        lines.append(
            Line(
                name,
                means[comparison.metric],
                comparison.intervals[name][comparison.metric],
                cells[comparison.metric],
                TIERS[kind],
                look=kind,
                best=means[comparison.metric] == best[comparison.metric],
            )
        )
    beside = ""
    if comparison.outside:
        beside = (
            " Accuracy and log-likelihood include the sets in which nothing was chosen; metrics of rankings leave them "
            "out."
        )
    level = f"{100 * (1 - comparison.level):g} %"
    what = f"Mean {comparison.metric}, the best first"
    return Section(
        "All models",
        f"Means over the held-out sets of all folds, with {level} bootstrap intervals. A net called ablated is a "
        "context-ablated control: the same net with as many weights, in which every object has the same fixed context."
        + beside,
        plots=[
            IntervalPlot(
                f"{what}{'; smaller is better.' if sign < 0 else '.'}",
                "model",
                f"mean, {level} interval",
                lines,
                legend=tuple((kind, TIERS[kind]) for kind in KINDS if kind in comparison.kinds.values()),
            )
        ],
        folded=[(f"All {len(metrics)} metrics", Table(["model", "tier", *metrics], rows))],
    )


def _number(value: float | None, shape: str) -> str:
    return "–" if value is None or np.isnan(value) else format(value, shape).replace("-", "−")


def _ends(interval: tuple[float, float] | None) -> str:
    return "" if interval is None else f"[{_number(interval[0], '.3f')}, {_number(interval[1], '.3f')}]"


def _p(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def _by_size(
    comparison: Comparison, training: TrainingTable, chosen: dict[str, str], folder: Path
) -> Section:
    sizes = training.packed.sets.sizes
    title = "By size of the choice set"
    if sizes.min() == sizes.max():
        return Section(title, f"All sets have {sizes.min()} objects.")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.4), dpi=140, layout="constrained")
    axis = figure.subplots()
    edges = np.unique(np.quantile(sizes, np.linspace(0, 1, 9)).round())
    rows: list[list[Cell]] = []
    for kind, name in chosen.items():
        values = comparison.values[name][comparison.metric]
        points = []
        for low, high in zip(edges, [*edges[1:], np.inf], strict=True):
            inside = (sizes >= low) & (sizes < high) & ~np.isnan(values)
            if inside.any():
                points.append((float(sizes[inside].mean()), float(values[inside].mean())))
                seen = sizes[inside]
                of = f"{seen.min()}" if seen.min() == seen.max() else f"{seen.min()} to {seen.max()}"
                rows.append([name, of, f"{inside.sum():,}", f"{points[-1][1]:.4f}"])
        if points:
            axis.plot(
                *zip(*points, strict=True), f"{SHAPES[kind]}-", color=INK[kind], linewidth=2, label=name
            )
    axis.set_xlabel("objects in a set")
    axis.set_ylabel(comparison.metric)
    figure.legend(loc="outside upper left", ncols=3, frameon=False)
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(folder / "sizes.png")
    return Section(
        title,
        pictures=[
            (
                folder / "sizes.png",
                "Mean over the held-out sets of about the same size.",
                f"Lines of {comparison.metric} by the size of the set; the table below has their numbers.",
            )
        ],
        folded=[("As a table", Table(["model", "objects in a set", "sets", comparison.metric], rows))],
    )


def _curves(fitted: dict[str, Any], comparison: Comparison, folder: Path) -> list[Section]:
    from matplotlib.figure import Figure

    curves = {
        name: [(row["step"], row["score"]) for row in model.history_ if "score" in row]
        for name, model in fitted.items()
    }
    curves = {name: points for name, points in curves.items() if points}
    if not curves:
        return []
    figure = Figure(figsize=(7, 3.2), dpi=140, layout="constrained")
    axis = figure.subplots()
    for name, points in curves.items():
        axis.plot(*zip(*points, strict=True), color=INK[comparison.kinds[name]], linewidth=2, label=name)
    axis.set_xlabel("training steps")
    axis.set_ylabel(next(iter(fitted.values())).task.criterion_words)
    figure.legend(loc="outside upper left", ncols=3, frameon=False)
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(folder / "curves.png")
    caption = (
        "Score on the tenth of all sets that a net holds out for early stopping, fitted to the whole table."
    )
    ends = "; ".join(
        f"{name}: {points[-1][1]:.4f} after {points[-1][0]:,.0f} steps" for name, points in curves.items()
    )
    return [Section("Learning curves", pictures=[(folder / "curves.png", caption, f"{caption} {ends}.")])]


def _importance(name: str, found: Importance) -> Section:
    level = f"{100 * (1 - found.level):g} %"
    units = "sets" if found.n_groups is None else "groups"
    texts = [f"{_number(one.drop, '.4f')} {_ends(one.interval)}" for one in found.columns]
    lines = [
        Line(
            one.name,
            one.drop,
            one.interval,
            text,
            one.note,
            look="context-free" if one.reaches_zero else "any",
        )
        for one, text in zip(found.columns, texts, strict=True)
    ]
    rows: list[list[Cell]] = [
        [one.name, text, (one.note, "text")] for one, text in zip(found.columns, texts, strict=True)
    ]
    change = "rise" if found.metric in LOWER_IS_BETTER else "drop"
    rest = [(f"All {len(rows)} columns", Table(["column", f"{change} of {found.metric}", ""], rows))]
    return Section(
        "What matters",
        f"Permutation importance for {name}, the best model by its mean, as fitted in the first outer fold: how much "
        f"worse {found.metric} ({found.baseline:.4f}) is on {found.n_sets:,} sets held out from it when a column is "
        "shuffled among the objects of each set (a column of the situation: among sets). Lines are "
        f"{level} bootstrap intervals over {units}. Columns that say the same share their importance.",
        plots=[
            IntervalPlot(
                f"{change.capitalize()} of {found.metric} when the column is shuffled within sets.",
                "column",
                f"{change}, {level} interval",
                lines[:SHOWN_COLUMNS],
                zero=0.0,
            )
        ],
        folded=rest if len(rows) > SHOWN_COLUMNS else [],
    )


def _influences(influences: Sequence[dict[str, Any]], name: str, training: TrainingTable) -> Section:
    title = "Influential objects"
    found = [entry for entry in influences if entry["reversal_rate"] > 0][:SHOWN_OBJECTS]
    if not found:
        return Section(title, f"Removing an object reverses no preference between the others for {name}.")
    columns = [column.name for column in training.encoder.columns][:6]
    rows: list[list[Cell]] = []
    for entry in found:
        values = [training.frame.column(column)[entry["row"]].as_py() for column in columns]
        shown = [f"{v:.4g}" if isinstance(v, float) else "–" if v is None else str(v) for v in values]
        rows.append([f"{entry['row'] + 1}", str(entry["set"]), f"{entry['reversal_rate']:.1%}", *shown])
    return Section(
        title,
        "The objects whose removal from their set causes the most preference reversals among the others, as predicted "
        f"by {name} fitted to the whole table (measured on 500 sets at most).",
        Table(["row", "set", "preference-reversal rate", *columns], rows),
    )


def _profile(comparison: Comparison, training: TrainingTable, folder: Path) -> list[Section]:
    packed = training.packed
    profile = profile_of(packed.sets)
    useless = (
        "" if comparison.outside or comparison.target_kind == "subset" else ", which are not informative"
    )
    text = (
        f"{profile.objects:,} objects in {profile.sets:,} sets of {profile.smallest} to "
        f"{profile.largest}; {profile.sets_of_one:,} sets of one object{useless}; "
    )
    if comparison.target_kind in ("choice", "subset"):
        chosen = np.logical_or.reduceat(packed.sets.targets == 0, packed.sets.offsets[:-1])
        text += f"in {int((~chosen).sum()):,} sets nothing was chosen."
    else:
        pairs = profile.ordered_pairs + profile.tied_pairs
        text += (
            f"{profile.tied_pairs / max(pairs, 1):.1%} of the pairs that are ranked are tied; "
            f"{profile.unranked:,} objects are not ranked."
        )
    rows: list[list[Cell]] = [
        [
            c.name,
            (c.kind, "text"),
            (c.role, "text"),
            str(c.levels) if c.levels else "–",
            "some" if c.missing else "none",
        ]
        for c in profile.columns
    ]
    pictures = [] if profile.smallest == profile.largest else [_sizes(packed.sets.sizes, folder)]
    return [
        Section("The data", text, pictures=pictures),
        Section("Columns", table=Table(["column", "kind", "of", "levels", "missing"], rows)),
    ]


def _sizes(each: NDArray[np.int64], folder: Path) -> tuple[Path, str, str]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 2.4), dpi=140, layout="constrained")
    axis = figure.subplots()
    sizes, counts = np.unique(each, return_counts=True)
    axis.bar(sizes, counts, color="#1f5fbf", width=0.85)
    axis.set_xlabel("objects in a set")
    axis.set_ylabel("sets")
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(folder / "profile.png")
    most = sizes[counts.argmax()]
    caption = "Number of sets by their size."
    return folder / "profile.png", caption, f"{caption} Most have {most} objects ({counts.max():,} sets)."


def _settings(comparison: Comparison) -> Section:
    rows: list[list[Cell]] = [
        [name, (" ".join(repr(model).split()), "text")] for name, (model, _) in comparison.candidates.items()
    ]
    rows += [[name, (str(value), "text")] for name, value in comparison.settings.items()]
    rows += [[name, (str(value), "text")] for name, value in comparison.versions.items()]
    rows.append(["machine", (platform.machine(), "text")])
    return Section("Settings", table=Table(["what", "value"], rows))
