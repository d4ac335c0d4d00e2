"""San Francisco: choices among the available modes of travel, with and without features.

Without features a model is a function of the choice set of modes, of which there are few. The entropy of the choices
given the choice set is then a lower bound of the negative log-likelihood: what the best such function has on the trips
it was fitted to. It is too low, since so many frequencies are fitted, which Miller and Madow's correction accounts for.
"""

import functools
import statistics
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from entourage.choice import ContextualLogit, MultinomialLogit
from entourage.data.datasets.san_francisco import load_sf, load_sf_modes
from entourage.data.resampling import fold_indices
from entourage.data.sets import Sets
from entourage.errors import UserError
from entourage.estimators import DiscreteChooser
from entourage.estimators.base import SetPredictor
from entourage.experiments.paper import read_claims
from entourage.experiments.rows import Job, Options, Row, fingerprint, keep_rows, provenance
from entourage.nets import FATE, FETA, ContextFree, Net, SetAttention
from entourage.report.page import Cell, Section, Table, write_report, write_text

__all__ = ["run_sf"]

NAME = "sf"
SETTINGS = {"steps": 400, "batch_size": 256, "learning_rate": 0.01}
BY_NUMBER = {"steps": 1600, "batch_size": 512, "learning_rate": 0.01, "validation": 0.0}
INK = {"logit": "#6b7686", "net": "#b3261e", "published": "#1f5fbf", "floor": "#1c2430"}

Groups: TypeAlias = NDArray[np.int64] | None
Floor: TypeAlias = tuple[float, float, float]


@dataclass(frozen=True)
class TripJob(Job):
    """One model on one fold of the trips, reshuffled for every repetition of the folds."""

    data: str
    which: str
    seed: int
    folds: int
    fingerprint: str  # of the data
    settings: str  # of the model

    @property
    def identity(self) -> Row:
        """What a row must have to be this job's, beside its key."""
        return {
            "seed": self.seed,
            "folds": self.folds,
            "data": self.fingerprint,
            "settings": self.settings,
        }


def by_number(modes: int) -> dict[str, SetPredictor]:
    """Return the models of modes without features, which are known by their number alone."""

    def chooser(net: Net) -> SetPredictor:
        model: SetPredictor = DiscreteChooser(net, categories=[(0, modes)]).set_params(**BY_NUMBER)
        return model

    return {
        "multinomial logit": MultinomialLogit(alternatives=modes),
        "contextual logit": ContextualLogit(alternatives=modes, l2=1.0),
        "contextual logit, rank 2": ContextualLogit(rank=2, alternatives=modes, l2=1.0),
        "FETA": chooser(FETA(width=16, depth=1, activation="gelu")),
        "FATE": chooser(FATE(width=16, depth=1)),
        "SetAttention": chooser(SetAttention(width=8, rounds=2, heads=2, dropout=0.0, features="linear")),
    }


def by_features() -> dict[str, SetPredictor]:
    """Return the models of modes with features: times, costs and who travels."""
    nets = {
        "linear utility": ContextFree(depth=0),
        "ContextFree": ContextFree(width=32),
        "FATE": FATE(width=32),
        "SetAttention": SetAttention(width=32, rounds=2, features="linear"),
    }
    return {name: DiscreteChooser(net).set_params(**SETTINGS) for name, net in nets.items()}


def run_sf(folder: Path, options: Options) -> str:
    """Run what is missing, write rows, table, picture and report into ``folder``; return the Markdown."""
    claims = read_claims(NAME)
    if options.data is None:
        raise UserError(
            "sf needs the San Francisco trips: give their folder with --data (sfwork_long.csv and sfshop_long.csv, "
            "and pcmc_*.csv, where modes have no features)."
        )
    data, tasks = str(options.data), claims["tasks"]
    known = {task: list(by_number(0) if "published" in tasks[task] else by_features()) for task in tasks}
    every = list(dict.fromkeys(model for names in known.values() for model in names))
    options.check(tasks=list(tasks), models=every, tunes=False)
    wanted = [
        (task, model) for task in tasks for model in known[task] if options.wants(task=task, model=model)
    ]
    if not wanted:
        raise UserError(
            "None of these models is for any of these tasks. "
            + " ".join(f"{task} has {', '.join(names)}." for task, names in known.items())
        )
    rounds = options.repetitions or claims["modes"][options.mode]["repetitions"]
    jobs = [
        TripJob(
            NAME,
            task,
            model,
            i,
            data=data,
            which=tasks[task]["which"],
            seed=claims["seed"],
            folds=claims["folds"],
            fingerprint=_fingerprint(data, task, tasks[task]["which"]),
            settings=" ".join(repr(_models(data, task, tasks[task]["which"])[model]).split()),
        )
        for i in range(rounds * claims["folds"])
        for task, model in wanted
    ]
    rows = keep_rows(folder, jobs, run_jobs, options)
    floors = {
        task: floor(load_sf_modes(data, about["which"])[0])
        for task, about in tasks.items()
        if "published" in about and any(row["task"] == task for row in rows)
    }
    text = summarise(claims, options.mode, rows, floors)
    write_text(folder / f"{NAME}.md", text)
    for kind in ("png", "svg"):
        _draw(folder / f"{NAME}.{kind}", claims, rows, floors)
    _write_report(claims, options.mode, rows, floors, folder)
    return text


@functools.cache
def _trips(data: str, task: str, which: str) -> tuple[Sets, Groups, int]:
    """Return the trips, whose households must not be split, and how many modes there are."""
    if task.endswith("features"):
        trips = load_sf(data, which)
        return trips.sets, trips.household, 0
    sets, modes = load_sf_modes(data, which)
    return sets, None, len(modes)


@functools.cache
def _fingerprint(data: str, task: str, which: str) -> str:
    sets = _trips(data, task, which)[0]
    return fingerprint(sets)


def _models(data: str, task: str, which: str) -> dict[str, SetPredictor]:
    modes = _trips(data, task, which)[2]
    return by_number(modes) if modes else by_features()


def run_jobs(jobs: Sequence[TripJob], device: str) -> list[Row]:
    """Fit a model to four folds and evaluate it on the fifth."""
    rows = []
    for job in jobs:
        sets, groups, _ = _trips(job.data, job.task, job.which)
        shuffle, fold = divmod(job.repetition, job.folds)
        folds = fold_indices(len(sets), job.folds, groups=groups, random_state=job.seed + shuffle)
        train, test = folds[fold]
        model: Any = _models(job.data, job.task, job.which)[job.model]
        if isinstance(model, DiscreteChooser):
            model.set_params(device=device, random_state=job.repetition)
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # of what is not identified
            model.fit(sets[train])
        seconds = round(time.perf_counter() - start, 2)
        count = _parameters(model.scorer_) if hasattr(model, "scorer_") else len(model.theta_)
        row = provenance(job, device) | {
            "estimator": " ".join(repr(model).split()),
            "parameters": count,
            "converged": bool(getattr(model, "converged_", True)),
            "fit_seconds": seconds,
            "nll": -model.log_likelihood(sets[test]),
            "trips": len(test),
        }
        rows.append(row)
    return rows


def _parameters(scorer: Any) -> int:
    return sum(p.numel() for p in scorer.parameters())


def floor(sets: Sets) -> Floor:
    """Return the entropy of the choices given the set of modes, in nats: as it is, corrected, and its standard error.

    Miller and Madow's correction counts the frequencies that are not 0, so it is low where many modes were never taken.
    """
    keys, taken = [], []
    targets = np.asarray(sets.targets)
    for start, end in zip(sets.offsets[:-1], sets.offsets[1:], strict=True):
        modes = sets.objects[start:end, 0]
        keys.append(tuple(sorted(modes.tolist())))
        taken.append(modes[targets[start:end] == 0][0].item())
    of_set, of_choice = Counter(keys), Counter(zip(keys, taken, strict=True))
    plain = -sum(count * np.log(count / of_set[key]) for (key, _), count in of_choice.items()) / len(keys)
    free = len(of_choice) - len(of_set)  # frequencies that were fitted
    costs = [-np.log(of_choice[pair] / of_set[pair[0]]) for pair in zip(keys, taken, strict=True)]
    error = np.std(costs) / len(costs) ** 0.5
    return float(plain), float(plain + free / (2 * len(keys))), float(error)


Line: TypeAlias = tuple[str, int, float, float, float]  # model, parameters, mean, deviation, share below


def _lines(rows: list[Row], task: str, published: float | None) -> list[Line]:
    found: list[Line] = []
    mine = [row for row in rows if row["task"] == task]
    for model in dict.fromkeys(row["model"] for row in mine):
        own = [row for row in mine if row["model"] == model]
        values = [row["nll"] for row in own]
        mean = sum(row["nll"] * row["trips"] for row in own) / sum(row["trips"] for row in own)
        deviation = statistics.stdev(values) if len(values) > 1 else float("nan")
        below = float("nan") if published is None else statistics.mean(v < published for v in values)
        found.append((model, own[0]["parameters"], mean, deviation, below))
    return found


def summarise(claims: dict[str, Any], mode: str, rows: list[Row], floors: dict[str, Floor]) -> str:
    """Write the tables as Markdown."""
    lines = [f"# {claims['title']}", "", _about(claims, mode, rows), ""]
    for task, about in claims["tasks"].items():
        published = about.get("published", {})
        best = min(published.values()) if published else None
        own = _lines(rows, task, best)
        if not own:
            continue
        top = min(line[2] for line in own)
        last = [] if best is None else [f"folds below {best:.3f}"]
        header = ["model", "parameters", "mean", *last]
        lines += [f"## {task}", "", f"| {' | '.join(header)} |", "| --- |" + " ---: |" * (len(header) - 1)]
        for model, count, mean, _, below in own:
            value = f"**{mean:.4f}**" if mean == top else f"{mean:.4f}"
            cells = [model, f"{count:,}", value, *([] if below != below else [f"{below:.0%}"])]
            lines.append(f"| {' | '.join(cells)} |")
        lines += [f"| *published: {name}* | | {value:.3f} | |" for name, value in published.items()]
        lines += ["", *([_on_floor(task, floors[task], published), ""] if task in floors else [])]
    return "\n".join(lines)


def _on_floor(task: str, entropy: Floor, published: dict[str, float]) -> str:
    name = min(published, key=lambda key: published[key])
    where = "below" if published[name] < entropy[1] else "above"
    return (
        f"{task}: the entropy of the choices given the choice set is {entropy[0]:.4f} on the trips themselves and "
        f"{entropy[1]:.4f} with Miller and Madow's correction (standard error {entropy[2]:.4f}): about the lowest "
        f"expected negative log-likelihood of any function of the choice set. The published {published[name]:.3f} "
        f"({name}), of another split, is {abs(published[name] - entropy[1]):.4f} {where} that."
    )


def _about(claims: dict[str, Any], mode: str, rows: list[Row]) -> str:
    rounds = (1 + max(row["repetition"] for row in rows)) // claims["folds"]
    machines = ", ".join(sorted({row["machine"] for row in rows}))
    return (
        f"Mean negative log-likelihood of held-out choices: {claims['folds']} folds, {rounds} "
        f"time{'s' * (rounds != 1)} (--{mode}); with features, households are not split; {machines}. Published "
        "figures are about other splits."
    )


def _draw(path: Path, claims: dict[str, Any], rows: list[Row], floors: dict[str, Floor]) -> None:
    from matplotlib.figure import Figure

    tasks = [task for task in claims["tasks"] if any(row["task"] == task for row in rows)]
    figure = Figure(figsize=(9.6, 2.9 * -(-len(tasks) // 2)), dpi=150, layout="constrained")
    axes = figure.subplots(-(-len(tasks) // 2), 2, squeeze=False).ravel()
    for axis in axes[len(tasks) :]:
        axis.set_visible(False)
    for axis, task in zip(axes, tasks, strict=False):
        published = claims["tasks"][task].get("published", {})
        own = _lines(rows, task, None)
        names = [line[0] for line in own]
        for place, (model, _, mean, _, _) in enumerate(own):
            kind = "logit" if "logit" in model or "linear" in model else "net"
            axis.plot(mean, place, color=INK[kind], marker="o")
        for name, value in published.items():
            if name != "MNL":  # far off, which would press all others together
                axis.axvline(value, color=INK["published"], linewidth=1, linestyle=":")
                axis.text(value, -0.75, name, color=INK["published"], fontsize=8, ha="center")
        if task in floors:
            axis.axvspan(*floors[task][:2], color=INK["floor"], alpha=0.15, linewidth=0)
        axis.set_yticks(range(len(names)), names)
        axis.set_ylim(len(names) - 0.5, -1.0)
        axis.margins(x=0.12)
        axis.set_title(task, loc="left")
        axis.set_xlabel("negative log-likelihood")
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)


def _write_report(
    claims: dict[str, Any], mode: str, rows: list[Row], floors: dict[str, Floor], folder: Path
) -> None:
    caption = (
        "Means over folds; dotted: published figures of other splits; grey: between the entropy of the choices given "
        "the choice set and its corrected value, about the lowest expected of any function of the choice set."
    )
    sections = [Section("All models", pictures=[(folder / f"{NAME}.png", caption)])]
    for task, about in claims["tasks"].items():
        published = about.get("published", {})
        own = _lines(rows, task, min(published.values()) if published else None)
        if not own:
            continue
        top = min(line[2] for line in own)
        body: list[list[Cell]] = [
            [
                (model, "text"),
                f"{count:,}",
                (f"{mean:.4f}", "best") if mean == top else f"{mean:.4f}",
                "" if deviation != deviation else f"{deviation:.4f}",
                "" if below != below else f"{below:.0%}",
            ]
            for model, count, mean, deviation, below in own
        ]
        body += [
            [(f"published: {name}", "text"), "", f"{value:.3f}", "", ""] for name, value in published.items()
        ]
        note = _on_floor(task, floors[task], published) if task in floors else ""
        header = ["model", "parameters", "mean", "deviation over folds", "folds below the best published"]
        sections.append(Section(task, note, Table(header, body)))
    settings: list[list[Cell]] = [
        [f"{row['task']}, {row['model']}", (row["estimator"], "text"), f"{row['fit_seconds']:.1f} s"]
        for row in rows
        if row["repetition"] == 0
    ]
    sections.append(Section("Settings", table=Table(["model", "estimator", "training"], settings)))
    write_report(folder / "report.html", claims["title"], _about(claims, mode, rows), sections)
