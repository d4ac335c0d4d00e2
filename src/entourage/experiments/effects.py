"""The appendix's three context effects, learnt from generated rankings."""

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entourage.data.synthetic.context_effects import effect_utilities, make_context_effect, third_objects
from entourage.estimators.base import SetPredictor
from entourage.estimators.baselines import MODELS
from entourage.experiments.paper import read_claims
from entourage.experiments.rows import Job, Options, Row, keep_rows, provenance
from entourage.report.page import Cell, Section, Table, write_report, write_text

__all__ = ["run_effects"]

NAME = "effects"
DRAWN = ("FATE-Net", "FETA-Net", "SetAttention")
GRID = np.linspace(0.02, 0.98, 49)
SHOWN = {  # A, B and a textbook C: in the pair A is a little better, or B where the effect will hurt it
    "compromise": [[0.3, 0.72], [0.68, 0.3], [0.8, 0.18]],
    "attraction": [[0.3, 0.72], [0.68, 0.3], [0.62, 0.24]],
    "similarity": [[0.3, 0.68], [0.7, 0.32], [0.74, 0.28]],
}


@dataclass(frozen=True)
class EffectJob(Job):
    """One model under one effect."""

    n_train: int
    n_test: int
    seed: int
    steps: int

    @property
    def identity(self) -> Row:
        """What a row must have to be this job's, beside its key."""
        return {"n_train": self.n_train, "n_test": self.n_test, "seed": self.seed}


def run_effects(folder: Path, options: Options) -> str:
    """Run what is missing, write rows, table, picture and report into ``folder``; return the Markdown."""
    claims = read_claims(NAME)
    models = [*claims["models"], *claims["beyond"]]
    options.check(tasks=claims["tasks"], models=models, tunes=False)
    limits = claims["modes"][options.mode]
    jobs = [
        EffectJob(
            NAME,
            task,
            model,
            repetition,
            n_train=limits["n_train"],
            n_test=limits["n_test"],
            seed=claims["seed"],
            steps=limits["steps"],
        )
        for repetition in range(options.repetitions or limits["repetitions"])
        for task in claims["tasks"]
        for model in models
        if options.wants(task=task, model=model)
    ]
    rows = keep_rows(folder, jobs, run_jobs, options)
    text = summarise(claims, options.mode, rows)
    write_text(folder / f"{NAME}.md", text)
    drawn = [model for model in DRAWN if any(row["model"] == model for row in rows)]
    if drawn:
        for kind in ("png", "svg"):
            _draw(folder / f"{NAME}.{kind}", rows, drawn)
    _write_report(claims, options.mode, rows, folder, drawn=bool(drawn))
    return text


def run_jobs(jobs: Sequence[EffectJob], device: str) -> list[Row]:
    """Train on rankings of two and three objects; measure which preferences between A and B reverse when C is added."""
    rows = []
    for job in jobs:
        stream = np.random.SeedSequence([job.seed, *job.task.encode(), job.repetition])
        train, test, cases = (np.random.default_rng(s) for s in stream.spawn(3))
        model = MODELS[job.model](job.repetition).set_params(steps=job.steps, device=device)
        start = time.perf_counter()
        model.fit(make_context_effect(job.task, job.n_train, random_state=train))
        seconds = time.perf_counter() - start
        row = provenance(job, device) | {
            "estimator": " ".join(repr(model).split()),
            "fit_seconds": round(seconds, 2),
            "ranking_accuracy": model.score(make_context_effect(job.task, job.n_test, random_state=test)),
            **reversals(model, third_objects(job.task, job.n_test, random_state=cases), job.task),
        }
        if job.repetition == 0:
            row["map"] = [[round(float(v), 3) for v in line] for line in _map(model, job.task)]
        rows.append(row)
    return rows


def reversals(model: SetPredictor, X: NDArray[np.float32], effect: str) -> Row:
    """Measure how often adding C reverses the order of A and B: in truth, as the model predicts, and both."""
    truth = [_gap(effect_utilities(X[:, :2], effect)), _gap(effect_utilities(X, effect))]
    guess = [_gap(model.predict_scores(X[:, :2])), _gap(model.predict_scores(X))]
    reverses, predicted = truth[0] * truth[1] < 0, guess[0] * guess[1] < 0
    right = (truth[0] * guess[0] > 0) & (truth[1] * guess[1] > 0)
    return {  # the names that rows have been kept under so far
        "turned": float(reverses.mean()),
        "followed": float(right[reverses].mean()),
        "turned_wrongly": float(predicted[~reverses].mean()),
    }


def _gap(utilities: NDArray[Any]) -> NDArray[Any]:
    gap: NDArray[Any] = utilities[:, 0] - utilities[:, 1]
    return gap


def _grid(effect: str) -> NDArray[np.float32]:
    """Make the sets {A, B, C} with C everywhere: (points, 3, 2)."""
    a, b, _ = SHOWN[effect]
    x, y = np.meshgrid(GRID, GRID)
    c = np.stack([x.ravel(), y.ravel()], axis=1)
    pair = np.broadcast_to(np.array([a, b]), (len(c), 2, 2))
    return np.concatenate([pair, c[:, None]], axis=1).astype(np.float32)


def _map(model: SetPredictor, effect: str) -> NDArray[Any]:
    """Return U(A) - U(B) for every place of C, in standard deviations of the model's scores."""
    scores = model.predict_scores(_grid(effect))
    gap: NDArray[Any] = _gap(scores) / scores.std()
    return gap.reshape(len(GRID), len(GRID))


def summarise(claims: dict[str, Any], mode: str, rows: list[Row]) -> str:
    """Write the table as Markdown."""
    lines = [f"# {claims['title']}", "", _about(mode, rows), ""]
    lines += ["| effect | model | 0/1-ranking accuracy | reversals predicted | false reversals |"]
    lines += ["| --- | --- | ---: | ---: | ---: |"]
    lines += [f"| {' | '.join(cells)} |" for cells in _cells(rows)]
    return "\n".join([*lines, "", _legend(rows), ""])


def _cells(rows: list[Row]) -> list[list[str]]:
    found = []
    for task, model in dict.fromkeys((row["task"], row["model"]) for row in rows):
        mine = [row for row in rows if (row["task"], row["model"]) == (task, model)]
        figures = []
        for name in ("ranking_accuracy", "followed", "turned_wrongly"):
            values = [row[name] for row in mine]
            deviation = f" ± {statistics.stdev(values):.3f}" if len(values) > 1 else ""
            figures.append(f"{statistics.mean(values):.3f}{deviation}")
        found.append([task, model, *figures])
    return found


def _about(mode: str, rows: list[Row]) -> str:
    count = len({row["repetition"] for row in rows})
    machines = ", ".join(sorted({row["machine"] for row in rows}))
    return (
        f"Trained on {rows[0]['n_train']:,} rankings of two or three objects, evaluated on "
        f"{rows[0]['n_test']:,} fresh ones and as many textbook cases; "
        f"{count} repetition{'s' * (count != 1)} (--{mode}); {machines}."
    )


def _legend(rows: list[Row]) -> str:
    share = statistics.mean(row["turned"] for row in rows)
    return (
        f"In a textbook case C is added to A and B where the effect favours one of them; in {share:.0%} of the "
        "cases that reverses their true order. *Reversals predicted*: the share of these in which the model has A "
        "and B in the right order both without and with C. *False reversals*: the share of the other cases in which "
        "the model reverses its preference. A context-free model reverses none."
    )


def _draw(path: Path, rows: list[Row], models: list[str]) -> None:
    from matplotlib.colors import TwoSlopeNorm
    from matplotlib.figure import Figure

    tasks = list(dict.fromkeys(row["task"] for row in rows))
    shape = (len(models), len(tasks))
    figure = Figure(figsize=(3.7 * shape[1], 3.7 * shape[0]), dpi=110, layout="constrained")
    axes = figure.subplots(*shape, sharex=True, sharey=True, squeeze=False)
    for row in rows:
        if row["model"] not in models or "map" not in row:
            continue
        effect = row["task"]
        axis = axes[models.index(row["model"]), tasks.index(effect)]
        gaps = np.array(row["map"])
        truth = _gap(effect_utilities(_grid(effect), effect)).reshape(gaps.shape)
        limit = float(np.quantile(np.abs(gaps), 0.98))
        colours = TwoSlopeNorm(0, -limit, limit)
        axis.pcolormesh(
            GRID, GRID, gaps, cmap="RdBu", norm=colours, shading="nearest", alpha=0.75, rasterized=True
        )
        axis.contour(GRID, GRID, gaps, levels=[0], colors="#1c2430", linewidths=1.6)
        axis.contour(GRID, GRID, truth, levels=[0], colors="#1c2430", linewidths=1.0, linestyles="dashed")
        for (x, y), name in zip(SHOWN[effect], "ABC", strict=True):
            axis.scatter(
                x, y, s=46, color="#1c2430" if name != "C" else "white", edgecolor="#1c2430", zorder=3
            )
            axis.annotate(
                name, (x, y), xytext=(6, 5), textcoords="offset points", fontweight="bold", zorder=3
            )
        if axis in axes[0]:
            axis.set_title(effect, loc="left")
        if axis in axes[-1]:
            axis.set_xlabel("first attribute (quality)")
        if axis in axes[:, 0]:
            axis.set_ylabel(f"{row['model']}\nsecond attribute (economy)")
        axis.set_aspect("equal")
    figure.savefig(path)


def _write_report(claims: dict[str, Any], mode: str, rows: list[Row], folder: Path, *, drawn: bool) -> None:
    body: list[list[Cell]] = [[(cells[0], "text"), (cells[1], "text"), *cells[2:]] for cells in _cells(rows)]
    header = ["effect", "model", "0/1-ranking accuracy", "reversals predicted", "false reversals"]
    caption = (
        "Which is preferred, A (blue) or B (red), for every position of C, as predicted by each net. "
        "On the solid line the net is indifferent, on the dashed one the true preference is. C is drawn "
        "where the textbook puts it."
    )
    pictures = [(folder / f"{NAME}.png", caption)] if drawn else []
    settings: list[list[Cell]] = [
        [f"{row['task']}, {row['model']}", (row["estimator"], "text"), f"{row['fit_seconds']:.0f} s"]
        for row in rows
        if row["repetition"] == 0
    ]
    write_report(
        folder / "report.html",
        claims["title"],
        _about(mode, rows),
        [
            Section("Results", _legend(rows).replace("*", ""), Table(header, body)),
            Section("Where C reverses the preference between A and B", pictures=pictures),
            Section("Settings", table=Table(["model", "estimator", "training"], settings)),
        ],
    )
