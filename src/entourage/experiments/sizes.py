"""The appendix's figure: trained on sets of one size, tested on smaller and larger ones."""

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from entourage.experiments.models import ModelJob, batches_of, fit_all, held_out_data, model_jobs
from entourage.experiments.paper import read_claims
from entourage.experiments.rows import Options, Row, keep_rows
from entourage.report.page import Cell, Section, Table, write_report, write_text

__all__ = ["run_sizes"]

NAME = "sizes"
INK = {
    "ERR": "#c3cad4",
    "RankSVM": "#aab3c0",
    "RankNet": "#8a94a3",
    "ListNet": "#6b7686",
    "RankBoost": "#b59a6a",
    "LambdaMART": "#8c6d2f",
    "FETA-Net": "#1f5fbf",
    "FATE-Net": "#b3261e",
    "FETA-Net, sizes 3-8": "#1f5fbf",
    "FATE-Net, sizes 3-8": "#b3261e",
    "SetAttention": "#0b6e4f",
    "SetAttention, sizes 3-8": "#0b6e4f",
}

Curves = dict[str, dict[str, list[tuple[float, float]]]]  # task -> model -> (mean, sd) at each size


def run_sizes(folder: Path, options: Options) -> str:
    """Run what is missing, write rows, numbers, picture and report into ``folder``; return the Markdown."""
    claims = read_claims(NAME)
    jobs = list(model_jobs(claims, options, name=NAME, folder=str(folder)))
    rows = keep_rows(folder, jobs, run_jobs, options, batches_of(jobs, options))
    curves = curves_of(rows, claims["sizes"])
    text = summarise(claims, options.mode, rows, curves)
    write_text(folder / f"{NAME}.md", text)
    for kind in ("png", "svg"):
        _draw(folder / f"{NAME}.{kind}", claims, curves)
    _write_report(claims, options.mode, rows, curves, folder)
    return text


def run_jobs(jobs: Sequence[ModelJob], device: str) -> list[Row]:
    """Train once and test on every size."""
    sizes = read_claims(NAME)["sizes"]
    rows = []
    for job, (model, row) in zip(jobs, fit_all(jobs, device), strict=True):
        row["ranking_accuracy"] = {str(size): model.score(held_out_data(job, size)) for size in sizes}
        rows.append(row)
    return rows


def curves_of(rows: list[Row], sizes: list[int]) -> Curves:
    """Gather rows into means and deviations over repetitions."""
    curves: Curves = {}
    for row in rows:
        task, model = row["task"], row["model"]
        if model in curves.setdefault(task, {}):
            continue
        mine = [r["ranking_accuracy"] for r in rows if (r["task"], r["model"]) == (task, model)]
        curves[task][model] = [
            (
                statistics.mean(r[str(size)] for r in mine),
                statistics.stdev(r[str(size)] for r in mine) if len(mine) > 1 else float("nan"),
            )
            for size in sizes
        ]
    return curves


def below_context_free(claims: dict[str, Any], curves: Curves) -> list[str]:
    """Say where a context-dependent net is not above every context-free model."""
    found = []
    for task, models in curves.items():
        free = [models[name] for name in claims["context_free"] if name in models]
        for name in models:
            if name in claims["context_free"] or not free:
                continue
            for i, size in enumerate(claims["sizes"]):
                best = max(curve[i][0] for curve in free)
                if models[name][i][0] <= best:
                    found.append(
                        f"{task}: {name} with {models[name][i][0]:.3f} at size {size} (best {best:.3f})"
                    )
    return found


def _verdict(claims: dict[str, Any], curves: Curves) -> str:
    names = {name for models in curves.values() for name in models}
    if not names & set(claims["context_free"]) or names <= set(claims["context_free"]):
        return "Nothing to compare: only context-free models, or none of them, were run."
    found = below_context_free(claims, curves)
    if not found:
        return "Every context-dependent net is above every context-free model at every size."
    return "Not above the best context-free model: " + "; ".join(found) + "."


def _about(mode: str, rows: list[Row]) -> str:
    parts = []
    for task in dict.fromkeys(row["task"] for row in rows):
        mine = [row for row in rows if row["task"] == task]
        count = len({row["repetition"] for row in mine})
        machines = ", ".join(sorted({row["machine"] for row in mine}))
        parts.append(
            f"{task}: {mine[0]['n_train']:,} training sets, {mine[0]['n_test']:,} test sets of each size, "
            f"{count} repetition{'s' * (count != 1)} (--{mode}), {machines}"
        )
    return "; ".join(parts)


def summarise(claims: dict[str, Any], mode: str, rows: list[Row], curves: Curves) -> str:
    """Write the numbers behind the picture as Markdown."""
    lines = [f"# {claims['title']}", "", f"0/1-ranking accuracy. {_about(mode, rows)}.", ""]
    for task, models in curves.items():
        shown = {size: i for i, size in enumerate(claims["sizes"]) if size in claims["printed"]}
        best = {i: max(curve[i][0] for curve in models.values()) for i in shown.values()}
        lines += [f"## {task}", "", f"| objects | {' | '.join(map(str, shown))} |"]
        lines.append("| --- |" + " ---: |" * len(shown))
        for model, curve in models.items():
            means = [(curve[i][0], best[i]) for i in shown.values()]
            cells = [f"**{mean:.3f}**" if mean == top else f"{mean:.3f}" for mean, top in means]
            lines.append(f"| {model} | {' | '.join(cells)} |")
        lines.append("")
    lines += [
        "All sizes are in the report and in the rows.",
        "",
        _verdict(claims, curves),
        "",
        "What the paper says of its curves:",
        "",
    ]
    return "\n".join([*lines, *(f"- {claim}" for claim in claims["claims"]), ""])


def _draw(path: Path, claims: dict[str, Any], curves: Curves) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6 * len(curves), 4.6), dpi=150, layout="constrained")
    axes = figure.subplots(1, len(curves), squeeze=False)[0]
    sizes = claims["sizes"]
    for axis, (task, models) in zip(axes, curves.items(), strict=True):
        for model, curve in models.items():
            means = [mean for mean, _ in curve]
            variant = model in claims["variants"]
            axis.plot(
                sizes,
                means,
                color=INK[model],
                linewidth=1.3 if model in claims["context_free"] else 2.2,
                linestyle="--" if variant else "-",
                marker="o",
                markersize=3,
                label=model,
            )
            deviations = [0.0 if sd != sd else sd for _, sd in curve]
            axis.fill_between(
                sizes,
                [m - s for m, s in zip(means, deviations, strict=True)],
                [m + s for m, s in zip(means, deviations, strict=True)],
                color=INK[model],
                alpha=0.15,
                linewidth=0,
            )
        axis.axvline(5, color="#d9dee5", linewidth=1, zorder=0)
        axis.set_title(task, loc="left")
        axis.set_xlabel("objects in a set (trained on 5)")
        axis.set_ylabel("0/1-ranking accuracy")
        axis.spines[["top", "right"]].set_visible(False)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False, fontsize=9)
    figure.savefig(path)


def _write_report(claims: dict[str, Any], mode: str, rows: list[Row], curves: Curves, folder: Path) -> None:
    sections = [
        Section(
            "The figure",
            _verdict(claims, curves) + " Bands are one standard deviation over repetitions.",
            pictures=[
                (folder / f"{NAME}.png", "0/1-ranking accuracy by size; dashed: trained on sizes 3 to 8.")
            ],
        )
    ]
    for task, models in curves.items():
        body: list[list[Cell]] = [
            [str(size), *(f"{curve[i][0]:.3f}" for curve in models.values())]
            for i, size in enumerate(claims["sizes"])
        ]
        sections.append(Section(task, table=Table(["objects", *models], body)))
    settings: list[list[Cell]] = [
        [f"{row['task']}, {row['model']}", (row["estimator"], "text"), f"{row['fit_seconds']:.0f} s"]
        for row in rows
        if row["repetition"] == 0
    ]
    sections.append(Section("Settings", table=Table(["model", "estimator", "training"], settings)))
    write_report(folder / "report.html", claims["title"], _about(mode, rows) + ".", sections)
