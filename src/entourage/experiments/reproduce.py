"""Run a table of ``paper/*.toml``: every row is kept as it is done, then ours stand beside the published."""

import json
import multiprocessing
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from entourage import __version__
from entourage.baselines import MODELS
from entourage.batching import find_device
from entourage.data.synthetic import make_hypervolume, make_medoid
from entourage.errors import UserError, check_choice
from entourage.experiments.paper import read_claims
from entourage.metrics import METRICS
from entourage.report import Cell, Section, Table, make_folder, write_report, write_text

__all__ = ["MODES", "Job", "jobs_of", "reproduce_table", "run_job", "summarise"]

MODES = ("quick", "full")
MAKERS = {"medoid": make_medoid, "hypervolume": make_hypervolume}
METRIC_NAMES = {
    "spearman": "Spearman",
    "ranking_accuracy": "0/1-ranking accuracy",
    "zero_one_accuracy": "0/1-accuracy",
}

Row = dict[str, Any]
Key = tuple[str, str, int]


@dataclass(frozen=True)
class Job:
    """One model on one fresh data set of one task."""

    table: str
    task: str
    model: str
    repetition: int
    make: str
    n_objects: int
    n_features: int
    n_train: int
    n_test: int
    seed: int
    settings: tuple[tuple[str, Any], ...]

    @property
    def name(self) -> str:
        """What to call it."""
        return f"{self.task}, {self.model}, repetition {self.repetition + 1}"

    @property
    def key(self) -> Key:
        """What its row is kept under."""
        return self.task, self.model, self.repetition


def jobs_of(
    name: str,
    mode: str,
    *,
    repetitions: int | None = None,
    tasks: list[str] | None = None,
    models: list[str] | None = None,
) -> Iterator[Job]:
    """List what is to be run, repetition by repetition, so that an early stop leaves whole ones."""
    claims = read_claims(name)
    limits = claims["modes"][check_choice("mode", mode, MODES)]
    known = [*claims["models"], *claims.get("beyond", [])]
    for task in tasks or []:
        check_choice("task", task, claims["tasks"])
    for model in models or []:
        check_choice("model", model, known)
    wanted = tasks or limits.get("tasks", claims["tasks"])
    for task, about in claims["tasks"].items():
        if task not in wanted:
            continue
        count = repetitions or limits.get("repetitions", about["repetitions"])
        for repetition in range(count):
            for model in known:
                if models and model not in models:
                    continue
                settings = dict(claims["settings"].get(about.get("settings", task), {}).get(model, {}))
                if "steps" in settings:
                    settings["steps"] = min(settings["steps"], limits.get("most_steps", settings["steps"]))
                yield Job(
                    table=name,
                    task=task,
                    model=model,
                    repetition=repetition,
                    make=about["make"],
                    n_objects=about["n_objects"],
                    n_features=about["n_features"],
                    n_train=about["n_train"],
                    n_test=limits.get("n_test", about["n_test"]),
                    seed=claims["seed"],
                    settings=tuple(sorted(settings.items())),
                )


def data_of(job: Job) -> tuple[Any, Any]:
    """Training and test data from streams of their own: the same for all models of a repetition."""
    name = int.from_bytes(job.task.encode()[:8].ljust(8, b"\0"), "big")
    train, test = np.random.SeedSequence([job.seed, name, job.repetition]).spawn(2)
    make = MAKERS[job.make]
    shape = {"n_objects": job.n_objects, "n_features": job.n_features}
    return (
        make(job.n_train, random_state=np.random.default_rng(train), **shape),
        make(job.n_test, random_state=np.random.default_rng(test), **shape),
    )


def run_job(job: Job, device: str = "auto", verbose: bool = False) -> Row:
    """Train and judge; everything that is needed to do it again goes into the row."""
    (X, ranks), (X_test, ranks_test) = data_of(job)
    model = MODELS[job.model](job.repetition).set_params(**dict(job.settings))
    if "device" in model.get_params():
        model.set_params(device=device, verbose=verbose)
    start = time.perf_counter()
    model.fit(X, ranks)
    if getattr(model, "interrupted_", False):
        raise KeyboardInterrupt
    fitted = time.perf_counter()
    scores = model.predict_scores(X_test)
    done = time.perf_counter()
    used = find_device(device)
    return {
        "table": job.table,
        "task": job.task,
        "model": job.model,
        "repetition": job.repetition,
        "n_train": job.n_train,
        "n_test": job.n_test,
        "metrics": {metric: METRICS[metric](scores, ranks_test) for metric in METRIC_NAMES},
        "estimator": " ".join(repr(model).split()),
        "seed": job.seed,
        "fit_seconds": round(fitted - start, 2),
        "predict_seconds": round(done - fitted, 2),
        "machine": torch.cuda.get_device_name(used) if used.type == "cuda" else f"{platform.machine()} CPU",
        "threads": torch.get_num_threads(),
        "versions": {
            "entourage": __version__,
            "torch": torch.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def reproduce_table(
    name: str,
    folder: Path,
    *,
    mode: str = "quick",
    device: str = "auto",
    repetitions: int | None = None,
    tasks: list[str] | None = None,
    models: list[str] | None = None,
    workers: int = 1,
    on_row: Callable[[int, int, str], None] = lambda done, total, what: None,
) -> str:
    """Run what is missing, write rows, a Markdown table and a report into ``folder``; return the table.

    With several ``workers``, jobs run side by side in processes of one thread each.
    """
    jobs = list(jobs_of(name, mode, repetitions=repetitions, tasks=tasks, models=models))
    make_folder(folder)
    file = folder / "rows.jsonl"
    known = _read_rows(file)
    kept = {job: _checked(known[job.key], job, file) for job in jobs if job.key in known}
    missing = [job for job in jobs if job not in kept]
    on_row(len(kept), len(jobs), missing[0].name if missing else "")
    for job, row in _run_all(missing, device, workers):
        known[job.key] = kept[job] = row
        write_text(file, "".join(json.dumps(known[key]) + "\n" for key in sorted(known)))
        on_row(len(kept), len(jobs), job.name)
    rows = [kept[job] for job in jobs]
    text = summarise(name, mode, rows)
    write_text(folder / f"{name}.md", text)
    _write_report(name, mode, rows, folder)
    return text


def _run_all(jobs: list[Job], device: str, workers: int) -> Iterator[tuple[Job, Row]]:
    if workers == 1:
        yield from ((job, run_job(job, device)) for job in jobs)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_one_thread) as pool:
        running = {pool.submit(run_job, job, device): job for job in jobs}
        try:
            for done in as_completed(running):
                yield running[done], done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _one_thread() -> None:
    torch.set_num_threads(1)


def _read_rows(file: Path) -> dict[Key, Row]:
    if not file.exists():
        return {}
    try:
        rows: list[Row] = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        return {(row["task"], row["model"], row["repetition"]): row for row in rows}
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{file} holds no rows of a reproduction; move it or take another folder.") from None


def _checked(row: Row, job: Job, file: Path) -> Row:
    if (row["n_train"], row["n_test"], row["seed"]) != (job.n_train, job.n_test, job.seed):
        raise UserError(
            f"{file} holds rows of another run ({row['n_train']} training and {row['n_test']} test sets, "
            f"seed {row['seed']}). Take another folder."
        )
    return row


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
