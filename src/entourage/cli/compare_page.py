"""The page of a comparison: the verdict, all models, what matters, influential objects and the data.

Nothing here is fitted.
"""

import platform
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from entourage.cli.compare_fits import PageFits, Reliability
from entourage.cli.options import TrainingTable
from entourage.data.profile import profile_of
from entourage.effects import Importance
from entourage.pretrained import InstantVerdict
from entourage.report.page import Cell, Section, Table, write_report
from entourage.report.reliability import reliability_picture
from entourage.selection import Comparison, verdict, warnings_of
from entourage.selection.candidates import KINDS, TIERS
from entourage.tasks.ranking_metrics import LOWER_IS_BETTER

__all__ = ["write_comparison"]

INK = {"context": "#b3261e", "relative": "#b07d12", "context-free": "#5b6675"}
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
    """
    chosen = {kind: comparison.most_chosen(kind) for kind in KINDS if kind in comparison.chosen[0]}
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        sections = [
            _gain(comparison, folder),
            *([] if instant is None else [_instant(instant)]),
            _models(comparison),
            _by_size(comparison, training, chosen, folder),
            *([] if fits.reliability is None else [_reliability(fits.best, fits.reliability, folder)]),
            *([] if fits.importance is None else [_importance(fits.best, fits.importance, folder)]),
            *_curves(fits.nets, comparison, folder),
            _influences(fits.influences, fits.influenced, training),
            *_profile(comparison, training, folder),
            _settings(comparison),
        ]
        write_report(path, title, " ".join([verdict(comparison), *warnings_of(comparison)]), sections)


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
    return Section(
        "Are probabilities right?",
        f"Of the objects to which {name} gives a probability, the share that came true: on the diagonal, it is right. "
        + found.words,
        pictures=[(folder / "reliability.png", "Lines are 95 % intervals; the number of objects is below.")],
    )


def _gain(comparison: Comparison, folder: Path) -> Section:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 1.1 + 0.4 * (1 + len(comparison.steps))), dpi=140, layout="constrained")
    axis = figure.subplots()
    low, high = comparison.interval
    lines = [("any context", comparison.gain, comparison.interval, "#1f5fbf")]
    lines += [
        (f"{name} adds", step.gain, step.interval, INK["relative" if name == "relative" else "context"])
        for name, step in comparison.steps.items()
    ]
    axis.axvline(0, color="#8a94a3", linewidth=1)
    for place, (_, gain, ends, ink) in enumerate(lines):
        axis.plot(ends, [-place, -place], color=ink, linewidth=3, solid_capstyle="round")
        axis.scatter([gain], [-place], color=ink, s=70, zorder=3)
    axis.set_yticks([-place for place in range(len(lines))], [name for name, *_ in lines])
    axis.tick_params(axis="y", length=0)
    axis.set_ylim(0.7 - len(lines), 0.7)
    axis.margins(x=0.2)
    axis.set_xlabel(f"context gain in {comparison.metric}")
    axis.spines[["top", "right", "left"]].set_visible(False)
    figure.savefig(folder / "gain.png")
    level = f"{100 * (1 - comparison.level):g} %"
    return Section(
        "Context gain",
        "In each outer fold the best model of each tier was chosen by training sets alone: of those that score each "
        "object alone, that also see its standing in the set, and of nets of the whole set. The context gain is the "
        "mean difference of the best with any context and the best without, on the held-out sets of the fold. What "
        "relative adds is over the best alone; what a net adds, over the best of all others. "
        f"Lines are {level} confidence intervals (paired bootstrap over "
        f"{'sets' if comparison.n_groups is None else 'groups'}); p = {comparison.p_value:.4f} for the gain, by a "
        "one-sided sign-flip test. Both are corrected for training sets that folds share (Nadeau and Bengio, 2003).",
        pictures=[(folder / "gain.png", f"{comparison.gain:+.4f}, from {low:+.4f} to {high:+.4f}")],
    )


def _models(comparison: Comparison) -> Section:
    metrics = list(next(iter(comparison.means.values())))
    best = {
        m: (min if m in LOWER_IS_BETTER else max)(means[m] for means in comparison.means.values())
        for m in metrics
    }
    rows: list[list[Cell]] = []
    for name, means in comparison.means.items():
        line: list[Cell] = [name, (TIERS[comparison.kinds[name]], "text")]
        for m in metrics:
            low, high = comparison.intervals[name][m]
            text = f"{means[m]:.4f} [{low:.3f}, {high:.3f}]"
            line.append((text, "best") if means[m] == best[m] else text)
        rows.append(line)
    beside = ""
    if comparison.outside:
        beside = (
            " Accuracy and log-likelihood include the sets in which nothing was chosen; metrics of rankings leave them "
            "out."
        )
    level = f"{100 * (1 - comparison.level):g} %"
    return Section(
        "All models",
        f"Means over the held-out sets of all folds, with {level} bootstrap intervals. A net called ablated is a "
        "context-ablated control: the same net with as many weights, in which every object has the same fixed context."
        + beside,
        Table(["model", "tier", *metrics], rows),
    )


def _by_size(
    comparison: Comparison, training: TrainingTable, chosen: dict[str, str], folder: Path
) -> Section:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.4), dpi=140, layout="constrained")
    axis = figure.subplots()
    sizes = training.packed.sets.sizes
    edges = np.unique(np.quantile(sizes, np.linspace(0, 1, 9)).round())
    for kind, name in chosen.items():
        values = comparison.values[name][comparison.metric]
        points = []
        for low, high in zip(edges, [*edges[1:], np.inf], strict=True):
            inside = (sizes >= low) & (sizes < high) & ~np.isnan(values)
            if inside.any():
                points.append((float(sizes[inside].mean()), float(values[inside].mean()), int(inside.sum())))
        if points:
            x, y, _ = zip(*points, strict=True)
            axis.plot(x, y, "o-", color=INK[kind], linewidth=2, label=name)
    axis.set_xlabel("objects in a set")
    axis.set_ylabel(comparison.metric)
    axis.legend(frameon=False)
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(folder / "sizes.png")
    return Section(
        "By size of the choice set",
        pictures=[(folder / "sizes.png", "Mean over the held-out sets of about the same size.")],
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
    axis.legend(frameon=False)
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(folder / "curves.png")
    caption = (
        "Score on the tenth of all sets that a net holds out for early stopping, fitted to the whole table."
    )
    return [Section("Learning curves", pictures=[(folder / "curves.png", caption)])]


def _importance(name: str, found: Importance, folder: Path) -> Section:
    from entourage.effects.plots import draw_importance

    draw_importance(found, most=SHOWN_COLUMNS).savefig(folder / "importance.png")
    level = f"{100 * (1 - found.level):g} %"
    units = "sets" if found.n_groups is None else "groups"
    rows: list[list[Cell]] = [
        [
            column.name,
            f"{column.drop:.4f} [{column.interval[0]:.4f}, {column.interval[1]:.4f}]",
            (column.note, "text"),
        ]
        for column in found.columns
    ]
    return Section(
        "What matters",
        f"Permutation importance for {name}, the best model by its mean, as fitted in the first outer fold: how much "
        f"worse {found.metric} ({found.baseline:.4f}) is on {found.n_sets:,} sets held out from it when a column is "
        "shuffled among the objects of each set (a column of the situation: among sets). Lines are "
        f"{level} bootstrap intervals over {units}. Columns that say the same share their importance.",
        Table(["column", f"change of {found.metric}", ""], rows),
        pictures=[(folder / "importance.png", "Pale: the interval reaches 0.")],
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
    from matplotlib.figure import Figure

    packed = training.packed
    profile = profile_of(packed.sets)
    figure = Figure(figsize=(7, 2.4), dpi=140, layout="constrained")
    axis = figure.subplots()
    sizes, counts = np.unique(packed.sets.sizes, return_counts=True)
    axis.bar(sizes, counts, color="#1f5fbf", width=0.85)
    axis.set_xlabel("objects in a set")
    axis.set_ylabel("sets")
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(folder / "profile.png")
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
    return [
        Section("The data", text, pictures=[(folder / "profile.png", "Number of sets by their size.")]),
        Section("Columns", table=Table(["column", "kind", "of", "levels", "missing"], rows)),
    ]


def _settings(comparison: Comparison) -> Section:
    rows: list[list[Cell]] = [
        [name, (" ".join(repr(model).split()), "text")] for name, (model, _) in comparison.candidates.items()
    ]
    rows += [[name, (str(value), "text")] for name, value in comparison.settings.items()]
    rows += [[name, (str(value), "text")] for name, value in comparison.versions.items()]
    rows.append(["machine", (platform.machine(), "text")])
    return Section("Settings", table=Table(["what", "value"], rows))
