"""Attraction, compromise and similarity effects: in people's choices, and in nets trained on these choices alone.

Noguchi and Stewart (2014) had people choose among two products, each better in one of two attributes, and a third that
should favour one of the two. A net sees the attributes and the choices, and nothing of the design. An effect is half
the shift in the log-odds of the one against the other between the third products that favour the one and the other:
above 0 is the direction of the literature. Confidence intervals are by bootstrap over people, with nets refitted to
their choices.
"""

import functools
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from entourage.data.datasets.noguchi_stewart import load_noguchi_stewart
from entourage.data.resampling import fold_indices
from entourage.data.sets import Sets
from entourage.effects.decoys import ContextEffect, attraction, compromise, similarity
from entourage.errors import UserError
from entourage.estimators import DiscreteChooser, fit_together
from entourage.experiments.models import batches_of
from entourage.experiments.paper import read_claims
from entourage.experiments.rows import Job, Options, Row, fingerprint, keep_rows, provenance
from entourage.nets import NETS
from entourage.report.page import Cell, Section, Table, write_report, write_text

__all__ = ["run_noguchi"]

NAME = "noguchi"
EFFECTS: dict[str, Callable[..., ContextEffect]] = {
    "attraction": attraction,
    "compromise": compromise,
    "similarity": similarity,
}
PEOPLE, POOLED = "people", "people, pooled over products"
RESAMPLES = 2000  # of people, for the interval of their own choices
INK = {
    PEOPLE: "#1c2430",
    POOLED: "#6b7686",
    "ContextFree": "#aab3c0",
    "FATE": "#b3261e",
    "FETA": "#1f5fbf",
    "SetAttention": "#0b6e4f",
}

Floats: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.int64]


class Design:
    """The choices, who made them, and which product each third one should favour."""

    def __init__(self, path: str | Path) -> None:
        data = load_noguchi_stewart(path)
        self.sets: Sets = data.sets
        self.objects = data.sets.to_array().astype(np.float64)  # (trials, 3, 2): A, B and the third
        self.picked: Index = np.asarray(data.sets.targets).reshape(-1, 3).argmin(1)
        self.person: Index = np.unique(data.participant, return_inverse=True)[1].ravel()
        self.effect = data.effect
        likes_a = np.char.endswith(data.alternative.reshape(-1, 3)[:, 2], "a")
        self.helps_a = likes_a ^ (data.effect == "similarity")  # what is like A takes from A
        names = np.char.add(np.char.add(data.effect, " "), data.choiceset.astype(str))
        self.product: Index = np.unique(names, return_inverse=True)[1].ravel()

    @property
    def people(self) -> int:
        """How many people chose."""
        return int(self.person.max()) + 1

    def resampled(self, seed: Sequence[int]) -> Index:
        """Return the trials of as many people, drawn with replacement: (trials,)."""
        drawn = np.random.default_rng(seed).integers(self.people, size=self.people)
        return np.concatenate([np.flatnonzero(self.person == person) for person in drawn])

    def in_choices(self, effect: str, trials: Index | None = None, *, pooled: bool = False) -> float:
        """Return an effect in the choices themselves; half a choice is added to each count.

        For each product, and the mean over products; or ``pooled``, as one who doesn't know products apart sees
        them: by which attribute an alternative is better in.
        """
        every = np.arange(len(self.sets)) if trials is None else trials
        mine = every[self.effect[every] == effect]
        swapped = self.objects[mine, 0, 0] < self.objects[mine, 1, 0]  # A is worse in the first attribute
        turned = swapped & pooled
        helps = self.helps_a[mine] ^ turned
        won = np.where(turned, 1 - self.picked[mine], self.picked[mine])  # 0, 1, or else the third
        product = np.zeros(len(mine), dtype=np.int64) if pooled else self.product[mine]
        counts = np.full((int(product.max()) + 1, 2, 2), 0.5)
        known = self.picked[mine] < 2
        np.add.at(counts, (product[known], helps[known].astype(int), won[known]), 1)
        counts = counts[np.unique(product)]
        odds = np.log(counts[:, :, 0] / counts[:, :, 1])  # (products, helps)
        return float((odds[:, 1] - odds[:, 0]).mean() / 2)

    def in_model(self, model: DiscreteChooser, effect: str) -> list[float]:
        """Return an effect in a model, for each product."""
        found, measure = [], EFFECTS[effect]
        for product in np.unique(self.product[self.effect == effect]):
            mine = self.product == product
            for_a = self.objects[mine & self.helps_a][0]
            for_b = self.objects[mine & ~self.helps_a][0]
            target, rival = np.stack([for_a[0], for_a[1]]), np.stack([for_a[1], for_a[0]])
            third, other = np.stack([for_a[2], for_b[2]]), np.stack([for_b[2], for_a[2]])
            shift = measure(model, target, rival, third, instead=other).shift
            found.append(round(shift.value / 2, 4))
        return found


@dataclass(frozen=True)
class ProductJob(Job):
    """One net on the choices of resampled people, or (``task`` "held out") of all but a fold of people."""

    data: str
    seed: int
    net: tuple[tuple[str, Any], ...]
    settings: tuple[tuple[str, Any], ...]
    fingerprint: str  # of the data

    @property
    def identity(self) -> Row:
        """What a row must have to be this job's, beside its key."""
        return {
            "seed": self.seed,
            "net": dict(self.net),
            "settings": dict(self.settings),
            "data": self.fingerprint,
        }


def run_noguchi(folder: Path, options: Options) -> str:
    """Run what is missing, write rows, table, picture and report into ``folder``; return the Markdown."""
    claims = read_claims(NAME)
    if options.data is None:
        raise UserError(
            "noguchi needs the choices of Noguchi and Stewart (2014): give the folder of choices_long.csv with --data."
        )
    design = Design(options.data)
    options.check(tasks=["effects", "held out"], models=list(claims["models"]), tunes=False)
    count = {
        "effects": 1 + (options.repetitions or claims["modes"][options.mode]["resamples"]),
        "held out": claims["folds"],
    }
    jobs = [
        ProductJob(
            NAME,
            task,
            model,
            repetition,
            data=str(options.data),
            seed=claims["seed"],
            net=tuple(sorted(claims["models"][model].items())),
            settings=tuple(sorted(claims["settings"].items())),
            fingerprint=fingerprint(design.sets),
        )
        for task in count
        for model in claims["models"]
        for repetition in range(count[task])
        if options.wants(task=task, model=model)
    ]
    rows = keep_rows(folder, jobs, run_jobs, options, batches_of(jobs, options))
    found = intervals(design, rows, claims)
    text = summarise(claims, options.mode, design, rows, found)
    write_text(folder / f"{NAME}.md", text)
    for kind in ("png", "svg"):
        _draw(folder / f"{NAME}.{kind}", claims["effects"], found)
    _write_report(claims, options.mode, design, rows, found, folder)
    return text


@functools.cache
def _design(path: str) -> Design:
    return Design(path)


def run_jobs(jobs: Sequence[ProductJob], device: str) -> list[Row]:
    """Train the nets of some jobs, together where there are several, and measure the effects in each."""
    design, claims = _design(jobs[0].data), read_claims(NAME)
    models, trials, held = [], [], []
    for job in jobs:
        about = dict(job.net)
        net = NETS[about.pop("net")](**about)
        models.append(DiscreteChooser(net, device=device, random_state=job.repetition, **dict(job.settings)))
        train, test = np.arange(len(design.sets)), np.zeros(0, dtype=np.int64)  # the first are all people
        if job.task == "held out":
            folds = fold_indices(len(train), claims["folds"], groups=design.person, random_state=job.seed)
            train, test = folds[job.repetition]
        elif job.repetition:
            train = design.resampled([job.seed, job.repetition])
        trials.append(train)
        held.append(test)
    start = time.perf_counter()
    fit_together(models, [(design.sets[train], None) for train in trials])
    seconds = round((time.perf_counter() - start) / len(models), 2)
    rows = []
    for job, model, test in zip(jobs, models, held, strict=True):
        row = provenance(job, device) | {"estimator": " ".join(repr(model).split()), "fit_seconds": seconds}
        if job.task == "held out":
            row["log_likelihood"], row["trials"] = model.log_likelihood(design.sets[test]), len(test)
        else:
            row["effects"] = {effect: design.in_model(model, effect) for effect in claims["effects"]}
        rows.append(row)
    return rows


Found: TypeAlias = dict[str, dict[str, tuple[float, float]]]  # who -> effect -> estimate, half its interval


def intervals(design: Design, rows: list[Row], claims: dict[str, Any]) -> Found:
    """Return every effect with half its 95 % bootstrap interval over people; NaN where there is none.

    That half is the standard deviation over resamples times the quantile of Student's t, since resamples may be few.
    """
    drawn = [design.resampled([claims["seed"], 0, i]) for i in range(RESAMPLES)]
    found: Found = {PEOPLE: {}, POOLED: {}}
    for effect in claims["effects"]:
        for name, pooled in ((PEOPLE, False), (POOLED, True)):
            again = [design.in_choices(effect, trials, pooled=pooled) for trials in drawn]
            found[name][effect] = design.in_choices(effect, pooled=pooled), _half(again)
    for row in rows:
        if row["task"] != "effects" or row["repetition"] > 0:
            continue
        mine = [
            r for r in rows if r["task"] == "effects" and r["model"] == row["model"] and r["repetition"] > 0
        ]
        for effect in claims["effects"]:
            again = [statistics.mean(r["effects"][effect]) for r in mine]
            found.setdefault(row["model"], {})[effect] = statistics.mean(row["effects"][effect]), _half(again)
    return found


def _half(values: list[float]) -> float:
    if len(values) < 2:
        return float("nan")
    return float(stdtrit(len(values) - 1, 0.975)) * statistics.stdev(values)


def _cells(rows: list[Row], found: Found, effects: list[str]) -> list[list[str]]:
    lines = []
    for name in dict.fromkeys([*found, *(row["model"] for row in rows)]):
        held = [r for r in rows if r["task"] == "held out" and r["model"] == name]
        trials = sum(r["trials"] for r in held)
        cells = []
        for effect in effects:
            value, half = found[name][effect] if name in found else (float("nan"), float("nan"))
            ends = "" if half != half else f" [{value - half:+.2f}, {value + half:+.2f}]"
            cells.append("" if value != value else f"{value:+.2f}{ends}")
        likelihood = f"{sum(r['log_likelihood'] * r['trials'] for r in held) / trials:.4f}" if held else ""
        lines.append([name, *cells, likelihood])
    return lines


def verdict(found: Found, effects: list[str]) -> str:
    """Say which effects each context-dependent net shows."""
    parts = []
    for name, own in found.items():
        if name in (PEOPLE, POOLED, "ContextFree"):
            continue
        said: dict[str, list[str]] = {}
        for effect in effects:
            said.setdefault(_in_words(*own[effect]), []).append(effect)
        words = [f"{', '.join(names)} {what}" for what, names in said.items()]
        parts.append(f"{name}: {'; '.join(words)}.")
    return " ".join(parts)


def _in_words(value: float, half: float) -> str:
    way = "in the direction of the literature" if value > 0 else "against the literature"
    if half != half:
        return f"{way}, with no interval"
    if abs(value) <= half:
        return f"{way}, 0 inside the interval"
    return "found, 0 outside the interval" if value > 0 else f"{way}, 0 outside the interval"


def _about(mode: str, design: Design, rows: list[Row]) -> str:
    again = len({r["repetition"] for r in rows if r["task"] == "effects"} - {0})
    times = f", {again} time{'s' * (again != 1)} for nets" if again else ""
    machines = ", ".join(sorted({row["machine"] for row in rows}))
    return (
        f"{len(design.sets):,} choices of {design.people} people among three products; nets see two attributes and "
        "the choices, not the design. Half the shift in log-odds between the third products that favour the one and "
        f"the other; 95 % intervals by bootstrap over people{times} (--{mode}); {machines}."
    )


def _legend() -> str:
    return (
        "Last column: mean log-likelihood of the choices of held-out people, five folds. Most products look alike to "
        "nets, which see two attributes alone, so what they learn is close to the effect in people pooled over "
        "products. Intervals account for the sampling of people, not of products."
    )


def summarise(claims: dict[str, Any], mode: str, design: Design, rows: list[Row], found: Found) -> str:
    """Write the table as Markdown."""
    effects = claims["effects"]
    lines = [f"# {claims['title']}", "", _about(mode, design, rows), ""]
    lines += [f"| | {' | '.join(effects)} | held out |", "| --- |" + " ---: |" * (len(effects) + 1)]
    lines += [f"| {' | '.join(cells)} |" for cells in _cells(rows, found, effects)]
    return "\n".join([*lines, "", _legend(), "", verdict(found, effects), ""])


def _draw(path: Path, effects: list[str], found: Found) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 0.9 + 0.42 * len(found)), dpi=150, layout="constrained")
    axes = figure.subplots(1, len(effects), sharey=True, squeeze=False)[0]
    for axis, effect in zip(axes, effects, strict=True):
        for place, (name, own) in enumerate(found.items()):
            value, half = own[effect]
            axis.errorbar(
                value,
                place,
                xerr=None if half != half else half,
                color=INK[name],
                marker="o",
                markersize=6,
                capsize=3,
            )
        axis.axvline(0, color="#d9dee5", linewidth=1, zorder=0)
        axis.set_title(effect, loc="left")
        axis.set_xlabel("shift of the log-odds")
        axis.spines[["top", "right", "left"]].set_visible(False)
        axis.tick_params(left=False)
    axes[0].set_yticks(range(len(found)), [name.replace(", ", ",\n") for name in found])
    axes[0].invert_yaxis()
    figure.savefig(path)


def _write_report(
    claims: dict[str, Any], mode: str, design: Design, rows: list[Row], found: Found, folder: Path
) -> None:
    effects = claims["effects"]
    body: list[list[Cell]] = [[(cells[0], "text"), *cells[1:]] for cells in _cells(rows, found, effects)]
    settings: list[list[Cell]] = [
        [row["model"], (row["estimator"], "text"), f"{row['fit_seconds']:.0f} s"]
        for row in rows
        if row["task"] == "effects" and row["repetition"] == 0
    ]
    picture = (
        folder / f"{NAME}.png",
        "The three effects; bars are 95 % intervals by bootstrap over people.",
    )
    write_report(
        folder / "report.html",
        claims["title"],
        _about(mode, design, rows),
        [
            Section(
                "Effects",
                f"{verdict(found, effects)} {_legend()}",
                Table(["", *effects, "held out"], body),
            ),
            Section("Picture", pictures=[picture]),
            Section("Settings", table=Table(["model", "estimator", "training"], settings)),
        ],
    )
