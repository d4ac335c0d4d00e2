"""Table 1: medoid and hypervolume, ours beside the published figures."""

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from entourage.experiments.models import ModelJob, batches_of, fit_all, held_out_data, model_jobs
from entourage.experiments.paper import read_claims
from entourage.experiments.rows import Options, Row, keep_rows
from entourage.report.page import Cell, Section, Table, write_report, write_text
from entourage.tasks.evaluate import evaluate_scores
from entourage.tasks.ranking_metrics import METRICS

__all__ = ["METRIC_NAMES", "entries", "run_table1", "summarise"]

METRIC_NAMES = {
    "spearman": "Spearman",
    "ranking_accuracy": "0/1-ranking accuracy",
    "zero_one_accuracy": "0/1-accuracy",
}


def run_table1(folder: Path, options: Options, *, name: str = "table1") -> str:
    """Run what is missing, write rows, a Markdown table and a report into ``folder``; return the table."""
    jobs = list(model_jobs(read_claims(name), options, name=name, folder=str(folder)))
    rows = keep_rows(folder, jobs, run_jobs, options, batches_of(jobs, options))
    text = summarise(name, options.mode, rows)
    write_text(folder / f"{name}.md", text)
    _write_report(name, options.mode, rows, folder)
    return text


def run_jobs(jobs: Sequence[ModelJob], device: str) -> list[Row]:
    """Train and evaluate; everything that is needed to do it again goes into the rows."""
    rows = []
    for job, (model, row) in zip(jobs, fit_all(jobs, device), strict=True):
        sets = held_out_data(job)
        start = time.perf_counter()
        scores = model.predict_scores(sets)
        row["predict_seconds"] = round(time.perf_counter() - start, 2)
        row["metrics"] = evaluate_scores(sets, scores, {name: METRICS[name] for name in METRIC_NAMES})
        rows.append(row)
    return rows


@dataclass
class Entry:
    """A cell of the table: ours over the repetitions, and what was published."""

    mean: float
    sd: float
    published: Row | None
    best: bool
    mark: str  # "", or how ours lies outside the tolerance


def entries(name: str, rows: list[Row]) -> dict[str, dict[str, dict[str, Entry]]]:
    """Gather rows into task -> metric -> model -> entry."""
    claims = read_claims(name)
    result: dict[str, dict[str, dict[str, Entry]]] = {}
    for task in dict.fromkeys(row["task"] for row in rows):
        mine = [row for row in rows if row["task"] == task]
        models = list(dict.fromkeys(row["model"] for row in mine))
        for metric in claims["metrics"]:
            values = {m: [r["metrics"][metric] for r in mine if r["model"] == m] for m in models}
            means = {m: statistics.mean(v) for m, v in values.items()}
            published = claims["tasks"][task].get("published", {}).get(metric, {})
            for model in models:
                claim = published.get(model)
                gap = 0.0 if claim is None else means[model] - claim["mean"]
                mark = "" if abs(gap) <= claims["tolerance"] else "above" if gap > 0 else "below"
                result.setdefault(task, {}).setdefault(metric, {})[model] = Entry(
                    means[model],
                    statistics.stdev(values[model]) if len(values[model]) > 1 else float("nan"),
                    claim,
                    means[model] == max(means.values()),
                    mark,
                )
    return result


def _describe(task: str, mode: str, rows: list[Row]) -> str:
    mine = [row for row in rows if row["task"] == task]
    count = len({row["repetition"] for row in mine})
    first = mine[0]
    machines = ", ".join(sorted({row["machine"] for row in mine}))
    fewer = "fewer than the paper has: " if mode == "quick" else ""
    return (
        f"{first['n_train']:,} training and {first['n_test']:,} test sets, {count} "
        f"repetition{'s' * (count != 1)} ({fewer}--{mode}); {machines}"
    )


def summarise(name: str, mode: str, rows: list[Row]) -> str:
    """Write the Markdown table: ours, the published figure, and whether they agree."""
    claims = read_claims(name)
    lines = [f"# {claims['title']}", ""]
    for task, metrics in entries(name, rows).items():
        models = list(next(iter(metrics.values())))
        lines += [f"## {task}", "", _describe(task, mode, rows), ""]
        header = [f"{METRIC_NAMES[m]} | paper" for m in metrics]
        lines += [f"| model | {' | '.join(header)} |", "| --- |" + " ---: | ---: |" * len(metrics)]
        for model in models:
            cells = []
            for metric in metrics:
                entry = metrics[metric][model]
                ours = f"{entry.mean:.3f}" + ("" if entry.sd != entry.sd else f" ± {entry.sd:.3f}")
                ours = f"**{ours}**" if entry.best else ours
                ours += f" ({entry.mark})" if entry.mark else ""
                claim = entry.published
                theirs = "" if claim is None else f"{claim['mean']:.3f} ± {claim['sd']:.3f}"
                cells.append(f"{ours} | {theirs}")
            lines.append(f"| {model} | {' | '.join(cells)} |")
        lines.append("")
        footnote = claims["tasks"][task].get("footnote")
        if footnote:
            lines += [footnote, ""]
    lines += [
        "Bold: the best of a column. (above), (below): more than "
        f"{claims['tolerance']} away from the published mean.",
        "",
    ]
    return "\n".join(lines)


def _write_report(name: str, mode: str, rows: list[Row], folder: Path) -> None:
    claims = read_claims(name)
    sections = []
    for task, metrics in entries(name, rows).items():
        body: list[list[Cell]] = []
        for model in next(iter(metrics.values())):
            line: list[Cell] = [model]
            for metric in metrics:
                entry = metrics[metric][model]
                ours = f"{entry.mean:.3f}" + (f" ({entry.mark})" if entry.mark else "")
                line.append((ours, "best") if entry.best else ours)
                line.append("" if entry.published is None else f"{entry.published['mean']:.3f}")
            body.append(line)
        header = ["model", *(cell for m in metrics for cell in (METRIC_NAMES[m], "paper"))]
        text = _describe(task, mode, rows) + ". " + claims["tasks"][task].get("footnote", "")
        sections.append(Section(task, text, Table(header, body)))
    settings: list[list[Cell]] = [
        [f"{row['task']}, {row['model']}", (row["estimator"], "text"), f"{row['fit_seconds']:.0f} s"]
        for row in rows
        if row["repetition"] == 0
    ]
    sections.append(Section("Settings", table=Table(["model", "estimator", "training"], settings)))
    write_report(
        folder / "report.html",
        claims["title"],
        f"Ours beside the paper's figures. (above), (below): more than {claims['tolerance']} away from them.",
        sections,
    )
