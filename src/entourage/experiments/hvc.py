"""Hypervolume contributions of sets of non-dominated points: ours and HVC-Net on the same test sets."""

import hashlib
import json
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entourage.data.files import write_atomically
from entourage.data.sets import Sets
from entourage.data.synthetic.boxes import require_compiler
from entourage.data.synthetic.contributions import bounded_contributions, exact_contributions
from entourage.data.synthetic.front_geometry import front_features, ray_contributions
from entourage.errors import UserError
from entourage.estimators import Ranker
from entourage.experiments.hvc_bounds import BetweenBounds
from entourage.experiments.hvc_data import FrontFile, Labelled, load_fronts, make_files, permuted_copies
from entourage.experiments.hvc_loss import contribution_loss
from entourage.experiments.hvc_net import HVCNet
from entourage.experiments.paper import read_claims
from entourage.experiments.rows import Job, Options, Row, keep_rows, provenance
from entourage.nets import Net, SetAttention
from entourage.report.page import Cell, Section, Table, make_folder, write_report, write_text
from entourage.training.deadline import time_limit
from entourage.training.device import find_device

__all__ = ["run_hvc"]

NAME = "hvc"
RIVAL = "HVC-Net"
NETS: dict[str, type[Net]] = {"SetAttention": SetAttention, "learnt": BetweenBounds}
TOLERANCE = ", tolerance "  # what follows it in a model's name is that of its bounds
METRICS = {
    "least": "least found",
    "largest": "largest found",
    "pairs": "pairs in order",
    "error": "relative error",
}
TIMED_EXACTLY = 20.0  # seconds in which exact contributions are timed


class _OutOfTime(Exception):
    """The time that was given is used up; what is done is kept."""


@dataclass(frozen=True)
class ContributionJob(Job):
    """One model for one number of objectives."""

    n_features: int
    folder: str  # of files and checkpoints
    weights: str  # the folder of HVC-Net's
    training: tuple[FrontFile, ...]
    test: tuple[FrontFile, ...]
    larger: tuple[FrontFile, ...]
    copies: int
    steps: int
    n_validation: int
    seed: int
    settings: str  # of training, as JSON
    net: str

    @property
    def kind(self) -> str:
        """What it is, whatever its tolerance."""
        return self.model.split(TOLERANCE)[0]

    @property
    def tolerance(self) -> float | None:
        """Of the bounds that it sees; None if it sees none."""
        return float(self.model.split(TOLERANCE)[1]) if TOLERANCE in self.model else None

    @property
    def identity(self) -> Row:
        """What a row must have to be this job's, beside its key."""
        trained = self.kind in NETS
        return {
            "n_train": sum(file.n_sets for file in self.training) if trained else 0,
            "n_test": sum(file.n_sets for file in self.test),
            "copies": self.copies if trained else 0,
            "steps": self.steps if trained else 0,
            "net": json.loads(self.net),
            "settings": json.loads(self.settings) if trained else {},
            "seed": self.seed,
        }

    @property
    def home(self) -> Path:
        """Where the run of training is kept."""
        content = json.dumps([self.identity, self.task, self.model, self.repetition], sort_keys=True)
        digest = hashlib.sha256(content.encode()).hexdigest()[:12]
        return (
            Path(self.folder)
            / "models"
            / f"{self.task}-{self.model}-{digest}".replace(" ", "").replace(",", "-")
        )


def run_hvc(folder: Path, options: Options) -> str:
    """Run what is missing, write rows, table and report into ``folder``; return the Markdown."""
    if options.data is None:
        raise UserError(
            "hvc needs the published weights of HVC-Net: give the folder of M3_K10.safetensors, M5_K10.safetensors and "
            "M10_K10.safetensors with --data."
        )
    claims = read_claims(NAME)
    jobs = list(_jobs(claims, options, folder))
    require_compiler()
    for job in jobs:
        HVCNet.find(options.data, job.n_features)  # likewise
    make_folder(folder)
    rows: list[Row] = []
    unfinished = ""
    with time_limit(float("inf") if options.seconds is None else options.seconds):
        files = list(dict.fromkeys(file for job in jobs for file in (*job.training, *job.test, *job.larger)))
        announce = partial(_announce, options)
        if not make_files(files, folder / "fronts", workers=options.workers, on_sets=announce):
            raise UserError(
                f"Time was up while sets were made; those that are done are kept in {folder / 'fronts'}. Run the same "
                "command again to go on."
            )
        alone = replace(options, workers=1, on_row=lambda done, total, what: None)
        for place, job in enumerate(jobs):
            options.on_row(place, len(jobs), job.name)
            try:
                rows += keep_rows(folder, [job], run_jobs, alone)
            except _OutOfTime as error:
                unfinished = f"Not finished: {error}. Run the same command again to go on."
                break
        else:
            options.on_row(len(jobs), len(jobs), "")
    text = summarise(claims, options.mode, rows, unfinished)
    write_text(folder / f"{NAME}.md", text)
    _write_report(claims, options.mode, rows, unfinished, folder)
    return text


def _announce(options: Options, done: int, total: int) -> None:
    options.on_row(done, total, "making fronts and exact contributions")


def _jobs(claims: dict[str, Any], options: Options, folder: Path) -> Iterator[ContributionJob]:
    limits = claims["modes"][options.mode]
    options.check(tasks=list(claims["tasks"]), models=claims["models"], tunes=False)
    chosen = options.models or limits.get("models", claims["models"])
    for task, d in claims["tasks"].items():
        seed = claims["seed"]
        n_train, part = limits["n_train"][task] + limits["n_validation"], claims["part"]
        small, large = tuple(claims["sizes"]), tuple(claims["larger"])
        training = tuple(
            FrontFile(seed, d, "training", i, min(part, n_train - i * part), small)
            for i in range(-(-n_train // part))
        )
        for repetition in range(options.repetitions or 1):
            for model in claims["models"]:
                if model not in chosen or not options.wants(task=task, model=model):
                    continue
                kind = model.split(TOLERANCE)[0]
                settings = claims["settings"] | claims["nets"].get(kind, {})
                net = settings.pop("net", {})
                yield ContributionJob(
                    table=NAME,
                    task=task,
                    model=model,
                    repetition=repetition,
                    n_features=d,
                    folder=str(folder),
                    weights=str(options.data),
                    training=training if kind in NETS else (),
                    test=(FrontFile(seed, d, "test", 0, limits["n_test"], small),),
                    larger=(FrontFile(seed, d, "larger", 0, limits["n_larger"], large),),
                    copies=limits.get("copies", {}).get(task, 1),
                    steps=limits["steps"],
                    n_validation=limits["n_validation"],
                    seed=seed + repetition,
                    settings=json.dumps(settings),
                    net=json.dumps(net),
                )


def run_jobs(jobs: Sequence[ContributionJob], device: str) -> list[Row]:
    """Train where there is something to train, then score the test sets."""
    return [_run(job, device) for job in jobs]


def _run(job: ContributionJob, device: str) -> Row:
    score, row = _scorer(job, device)
    on_cpu = find_device(device).type == "cpu"
    clock = time.process_time if on_cpu else time.perf_counter  # on a CPU, what else runs there doesn't count
    for name, files in (("test", job.test), ("larger", job.larger)):
        data = load_fronts(files, Path(job.folder) / "fronts")
        score(data.sets[:8])  # what is compiled or loaded first is not timed
        start = clock()
        found = score(data.sets)
        seconds = clock() - start
        row[name] = metrics_of(data, found) | {
            "milliseconds_a_set": round(1000 * seconds / len(data.sets), 4),
            "exact_milliseconds_a_set": _time_exactly(files, Path(job.folder) / "fronts"),
        }
    return provenance(job, device) | row


def _scorer(job: ContributionJob, device: str) -> tuple[Any, Row]:
    """Return what scores sets by their contributions, and what the row says of how it was made."""
    if job.model == RIVAL:
        net = HVCNet.find(Path(job.weights), job.n_features)
        return partial(net.contributions, device=find_device(device)), {"fit_seconds": 0.0}
    if job.kind.endswith(" rays"):
        return partial(ray_contributions, rays=int(job.kind.split()[0])), {"fit_seconds": 0.0}
    if job.kind not in NETS and job.tolerance is not None:
        return partial(_estimates, job.tolerance), {"fit_seconds": 0.0}
    model, row = _trained(job, device)
    return partial(_model_contributions, model, job.tolerance), row


def _estimates(tolerance: float, sets: Sets) -> NDArray[np.float64]:
    found = [bounded_contributions(points, tolerance=tolerance).estimate for points in sets.to_list()]
    return np.concatenate(found)


def _model_contributions(model: Ranker, tolerance: float | None, sets: Sets) -> NDArray[np.float64]:
    seen = sets if tolerance is None else front_features(sets, tolerance=tolerance)
    return np.exp(np.asarray(model.predict_scores(seen), dtype=np.float64))


def _trained(job: ContributionJob, device: str) -> tuple[Ranker, Row]:
    """Train, going on where an earlier call was out of time."""
    start = time.perf_counter()
    data = load_fronts(job.training, Path(job.folder) / "fronts").sets
    if job.tolerance is not None:
        data = front_features(data, tolerance=job.tolerance)
    if job.copies > 1:
        data = permuted_copies(data, job.copies, job.n_features, job.seed)
    settings = json.loads(job.settings)
    loss = partial(contribution_loss, **settings.pop("loss"))
    model = Ranker(
        NETS[job.kind](**json.loads(job.net)),
        loss=loss,
        steps=job.steps,
        validation=job.n_validation / len(data),
        device=device,
        checkpoint=job.home,
        random_state=job.seed,
        **settings,
    )
    clock = job.home / "seconds.json"
    before = json.loads(clock.read_text()) if clock.exists() else 0.0
    model.fit(data)
    seconds = before + time.perf_counter() - start
    write_atomically(clock, json.dumps(seconds).encode())
    if model.out_of_time_:
        raise _OutOfTime(f"{job.name} is at step {model.n_steps_:,} of {job.steps:,}")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="A model file holds no code")
        model.save(job.home / "model.entourage")
    curve = [[entry["step"], entry["score"]] for entry in model.history_]
    return model, {
        "estimator": " ".join(repr(model).split()),
        "fit_seconds": round(seconds, 1),
        "parameters": sum(p.numel() for p in model.scorer_.parameters()),
        "validation": model.best_score_,
        "learning_curve": curve,
    }


def metrics_of(data: Labelled, found: NDArray[np.float64]) -> dict[str, float]:
    """Compare estimated contributions with exact ones, over sets of at least two points.

    ``least`` and ``largest``: shares of sets whose least, largest contributor is found. ``pairs``: mean share of
    pairs in the right order. ``error``: median relative error of a contribution.

    Examples
    --------
    >>> data = Labelled(Sets.of(np.zeros((1, 3, 2))), np.array([0.1, 0.2, 0.4]))
    >>> metrics_of(data, np.array([0.1, 0.3, 0.2]))
    {'sets': 1, 'least': 1.0, 'largest': 0.0, 'pairs': 0.6667, 'error': 0.5}
    """
    values: list[tuple[bool, bool, float]] = []
    for truth, guess in zip(data.sets.unpack(data.contributions), data.sets.unpack(found), strict=True):
        if len(truth) > 1:
            i, j = np.triu_indices(len(truth), 1)
            right = np.sign(truth[i] - truth[j]) == np.sign(guess[i] - guess[j])
            values.append((truth.argmin() == guess.argmin(), truth.argmax() == guess.argmax(), right.mean()))
    least, largest, pairs = np.mean(values, axis=0)
    error = np.median(np.abs(found / data.contributions - 1))
    shares = {"least": least, "largest": largest, "pairs": pairs, "error": error}
    return {"sets": len(values)} | {name: round(float(value), 4) for name, value in shares.items()}


@lru_cache(maxsize=8)
def _time_exactly(files: tuple[FrontFile, ...], folder: Path) -> float:
    """Return the milliseconds that exact contributions of a set take, on one core: of as many as there is time for."""
    start, done = time.process_time(), 0
    for points in load_fronts(files, folder).sets.to_list():
        exact_contributions(points)
        done += 1
        seconds = time.process_time() - start
        if seconds > TIMED_EXACTLY:
            break
    return round(1000 * seconds / done, 4)


# --- what comes out -----------------------------------------------------------------------------


def _cells(claims: dict[str, Any], rows: Sequence[Row], task: str, which: str) -> list[list[str]]:
    """Return the lines of a table: a model, its metrics, seconds to train, milliseconds to score a set."""
    mine = [row for row in rows if row["task"] == task]
    lines = []
    for row in mine:
        own = row[which]
        trained = f"{row['fit_seconds']:,.0f} s" if row["fit_seconds"] else "–"
        shares = [f"{own[name]:.3f}" for name in METRICS]
        lines.append([row["model"], *shares, trained, f"{own['milliseconds_a_set']:.2g}"])
    published = claims["published"].get(task)
    if which == "test" and published:
        lines.append(
            ["*published: HVC-Net, 5 rounds*", published["least"], published["largest"], "", "", "", ""]
        )
    if mine:
        exact = min(row[which]["exact_milliseconds_a_set"] for row in mine)
        lines.append(["*exact*", "1", "1", "1", "0", "–", f"{exact:.2g}"])
    return lines


HEADER = ["model", *METRICS.values(), "training", "ms a set"]
TITLES = {"test": "sets of 1 to 100 points", "larger": "sets of 101 to 200 points, none in training"}


def summarise(claims: dict[str, Any], mode: str, rows: Sequence[Row], unfinished: str) -> str:
    """Write the tables as Markdown."""
    lines = [f"# {claims['title']}", "", *([unfinished, ""] if unfinished else []), _about(mode, rows), ""]
    for task in dict.fromkeys(row["task"] for row in rows):
        for which, title in TITLES.items():
            lines += [f"## {task}, {title}", "", "| " + " | ".join(HEADER) + " |"]
            lines += ["| --- |" + " ---: |" * (len(HEADER) - 1)]
            lines += ["| " + " | ".join(cells) + " |" for cells in _cells(claims, rows, task, which)]
            lines.append("")
    return "\n".join([*lines, _legend(), ""])


def _about(mode: str, rows: Sequence[Row]) -> str:
    if not rows:
        return "No model is finished."
    sizes = sorted({row["n_test"] for row in rows})
    trained = sorted({row["n_train"] for row in rows if row["n_train"]})
    machines = ", ".join(sorted({row["machine"] for row in rows}))
    learnt = f"; ours had {' or '.join(f'{n:,}' for n in trained)}, validation included" if trained else ""
    tested = " or ".join(f"{n:,}" for n in sizes)
    return f"{tested} test sets for each number of objectives{learnt} (--{mode}); {machines}."


def _legend() -> str:
    return (
        "Least and largest found: shares of sets. Pairs in order: mean over sets. Relative error: median over points. "
        "Milliseconds include the features; on a CPU they are those of a core, and exact contributions' always. Rays "
        "are estimates by lines; bounds are those of `entourage.data.bounded_contributions`, of which the estimate is "
        "shown; what is learnt is where between the bounds a contribution lies. Neither rays nor bounds learn anything."
    )


def _write_report(
    claims: dict[str, Any], mode: str, rows: Sequence[Row], unfinished: str, folder: Path
) -> None:
    sections = []
    for task in dict.fromkeys(row["task"] for row in rows):
        for which, title in TITLES.items():
            body: list[list[Cell]] = [
                [(cells[0].strip("*"), "text"), *cells[1:]] for cells in _cells(claims, rows, task, which)
            ]
            sections.append(Section(f"{task}, {title}", table=Table(HEADER, body)))
    settings: list[list[Cell]] = [
        [f"{row['task']}, {row['model']}", (row["estimator"], "text"), f"{row['parameters']:,}"]
        for row in rows
        if "estimator" in row
    ]
    if settings:
        sections.append(Section("Settings", table=Table(["model", "estimator", "parameters"], settings)))
    lead = " ".join(filter(None, [unfinished, _about(mode, rows), _legend()]))
    write_report(folder / "report.html", claims["title"], lead, sections)
