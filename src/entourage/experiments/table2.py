"""Table 2: the regions of photographs ranked by depth; Make3D as in the paper, KITTI and Middlebury as well."""

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entourage.data.photographs.depth import DepthSets, cut, make_depth_sets
from entourage.data.photographs.photographs import Photograph, find_photographs
from entourage.data.ranks import average_places
from entourage.data.resampling import bootstrap_interval, fold_indices, sign_flip_p_value
from entourage.errors import DataError, UserError
from entourage.estimators import NetEstimator
from entourage.estimators.baselines import MODELS
from entourage.experiments.paper import read_claims
from entourage.experiments.rows import Job, Options, Row, keep_rows, provenance
from entourage.report.page import Cell, Section, Table, make_folder, write_report, write_text
from entourage.selection.spaces import few_sets_space
from entourage.selection.tuning import tune
from entourage.tasks.evaluate import metric_of_sets
from entourage.tasks.ranking_metrics import METRICS
from entourage.training.parallel import map_in_order

__all__ = ["DepthJob", "Split", "draw_orders", "draw_photograph", "run_table2", "splits_of"]

NAME = "table2"
METRIC_NAMES = {"spearman": "Spearman", "ranking_accuracy": "0/1-ranking accuracy"}
BLOCKS = 3  # a drive is split into so many stretches when settings are chosen within it


@dataclass(frozen=True)
class Split:
    """A split of photographs into training and test."""

    task: str
    fold: int
    train: tuple[int, ...]
    test: tuple[int, ...]


@dataclass(frozen=True)
class DepthJob(Job):
    """One model on one split of the photographs of a folder."""

    data: str
    regions: str
    cache: str
    fold: int
    seed: int
    train: tuple[int, ...]
    test: tuple[int, ...]
    settings: tuple[tuple[str, Any], ...]
    tuning: tuple[int, int] | None  # trials, inner folds
    out: str
    fingerprint: str  # of the photographs

    @property
    def identity(self) -> Row:
        """What a row must have to be this job's, beside its key."""
        return {
            "data": self.fingerprint,
            "settings": dict(self.settings),
            "regions": self.regions,
            "fold": self.fold,
            "seed": self.seed,
            "trials": None if self.tuning is None else self.tuning[0],
            "photographs_to_learn_from": len(self.train),
        }


def run_table2(folder: Path, options: Options) -> str:
    """Run what is missing, write rows, tables, pictures and a report into ``folder``; return the Markdown."""
    if options.data is None:
        raise UserError(
            "table2 needs photographs with depth: give their folder with --data. Known are Make3D as it is "
            "distributed, NAME.color.jpg with NAME.depth.png (KITTI), and NAME_left.png with NAME_disp.png "
            "(Middlebury)."
        )
    claims = read_claims(NAME)
    photographs = find_photographs(options.data)
    jobs = list(_jobs(claims, options, photographs, folder))
    make_folder(folder)
    announce = partial(_announce, options, len(photographs))
    _load(str(options.data), options.regions, str(folder / "cues"), options.workers, announce)
    rows = keep_rows(folder, jobs, run_jobs, options)
    text = summarise(claims, photographs, options, rows)
    write_text(folder / f"{NAME}.md", text)
    pictures = _draw(folder, jobs, rows, claims)
    _write_report(claims, photographs, options, rows, pictures, folder)
    return text


def splits_of(photographs: Sequence[Photograph], scene_folds: int) -> list[Split]:
    """Split photographs: as they are distributed, else the largest drive against the rest and back, else by scene.

    Photographs of one group are never separated.
    """
    kind = photographs[0].kind
    places = np.arange(len(photographs))
    groups = np.array([p.group for p in photographs])
    if kind == "make3d":
        test = np.array([p.split == "test" for p in photographs])
        if not test.any() or test.all():
            raise DataError(
                "Make3D comes as 400 training and 134 test photographs, in folders whose names begin with Train and "
                "Test; here all are in one. Keep the folders of the archives."
            )
        return [_split("Make3D", 0, places, test)]
    names, counts = np.unique(groups, return_counts=True)
    if len(names) < 2:
        raise DataError(
            f"All {len(photographs)} photographs are of one drive or scene, {str(names[0])!r}: at least two are "
            "needed, one to train on and one to test on."
        )
    if kind == "metres" and counts.max() > 1:
        drive = groups == names[counts.argmax()]
        return [_split("drive held out", 0, places, drive), _split("scenes held out", 0, places, ~drive)]
    parts = fold_indices(len(groups), min(scene_folds, len(names)), groups=groups, random_state=0)
    return [_split("scenes left out", i, places, np.isin(places, test)) for i, (_, test) in enumerate(parts)]


def _split(task: str, fold: int, places: NDArray[np.int64], test: NDArray[np.bool_]) -> Split:
    return Split(task, fold, tuple(map(int, places[~test])), tuple(map(int, places[test])))


def _jobs(
    claims: dict[str, Any], options: Options, photographs: Sequence[Photograph], folder: Path
) -> Iterator[DepthJob]:
    splits = splits_of(photographs, claims["scene_folds"])
    limits = claims["modes"][options.mode]
    known = [*claims["models"], *claims["beyond"]]
    options.check(tasks=list(dict.fromkeys(s.task for s in splits)), models=known, tunes=True)
    budget = limits["tuning"]
    tuning = (options.trials or budget["trials"], budget["folds"]) if options.tune else None
    n_folds = max(split.fold for split in splits) + 1
    digest = hashlib.sha256(json.dumps([(p.name, p.fingerprint()) for p in photographs]).encode())
    for repetition in range(options.repetitions or limits["repetitions"]):
        for split in splits:
            for model in known:
                if not options.wants(task=split.task, model=model):
                    continue
                settings = dict(claims["settings"].get(model, {}))
                if "steps" in settings:
                    settings["steps"] = min(settings["steps"], limits.get("most_steps", settings["steps"]))
                yield DepthJob(
                    table=NAME,
                    task=split.task,
                    model=model,
                    repetition=repetition * n_folds + split.fold,
                    data=str(options.data),
                    regions=options.regions,
                    cache=str(folder / "cues"),
                    fold=split.fold,
                    seed=claims["seed"] + repetition,
                    train=split.train,
                    test=split.test,
                    settings=tuple(sorted(settings.items())),
                    tuning=tuning,
                    out=str(folder),
                    fingerprint=digest.hexdigest()[:16],
                )


def _announce(options: Options, total: int, done: int) -> None:
    options.on_row(done, total, "segmenting and describing photographs")


@lru_cache(maxsize=1)
def _kept(data: str, regions: str, cache: str) -> DepthSets:
    return _load(data, regions, cache, 1, lambda done: None)


def _load(data: str, regions: str, cache: str, workers: int, announce: Any) -> DepthSets:
    photographs = find_photographs(data)
    farthest = np.inf if photographs[0].kind == "disparity" else read_claims(NAME)["farthest"]
    return make_depth_sets(
        photographs,
        regions=regions,
        farthest=farthest,
        cache=cache,
        map_over=partial(map_in_order, workers=workers),
        on_photograph=announce,
    )


def run_jobs(jobs: Sequence[DepthJob], device: str) -> list[Row]:
    """Train on sub-rankings, evaluate on whole photographs; everything needed to do it again goes into the row."""
    return [_run(job, device) for job in jobs]


def _run(job: DepthJob, device: str) -> Row:
    claims = read_claims(NAME)
    data = _kept(job.data, job.regions, job.cache)
    train, test = data[np.array(job.train)], data[np.array(job.test)]
    model = MODELS[job.model](job.seed).set_params(**dict(job.settings))
    sets, groups = train.sets, _blocks(train.photographs)
    if isinstance(model, NetEstimator):
        model.set_params(device=device)
    else:
        per_set = claims["subsets_per_set"]
        sets = sets.sample_subsets(claims["subset_size"], random_state=job.seed, per_set=per_set)
        groups = np.repeat(groups, per_set)
    tuning_row: Row = {}
    if job.tuning is not None:
        trials, folds = job.tuning
        start = time.perf_counter()
        if len(set(groups.tolist())) < 2:
            raise DataError("To choose settings, at least two training photographs are needed; there is one.")
        study = f"{job.out}/studies/{job.task}-{job.model}-{job.repetition}.journal".replace(" ", "-")
        found = tune(
            model,
            sets,
            space=few_sets_space(model),
            trials=trials,
            folds=min(folds, len(set(groups.tolist()))),
            groups=groups,
            study=study,
            random_state=job.seed,
        )
        model.set_params(**found.params)
        tuning_row = {
            "tuned": found.params,
            "inner_score": found.score,
            "tuning_seconds": round(time.perf_counter() - start, 1),
        }
    start = time.perf_counter()
    model.fit(sets)
    fitted = time.perf_counter()
    scores = model.predict_scores(test.sets)
    predicted = time.perf_counter()
    metrics = {name: metric_of_sets(METRICS[name], test.sets, scores) for name in METRIC_NAMES}
    _keep_scores(job, [p.name for p in test.photographs], test.sets.unpack(scores))
    return (
        provenance(job, device)
        | {
            "estimator": " ".join(repr(model).split()),
            "fit_seconds": round(fitted - start, 2),
            "predict_seconds": round(predicted - fitted, 3),
            "photographs": {
                photo.name: {name: float(values[i]) for name, values in metrics.items()}
                for i, photo in enumerate(test.photographs)
            },
        }
        | tuning_row
    )


def _blocks(photographs: Sequence[Photograph]) -> NDArray[np.int64]:
    """Group photographs for inner folds: by drive or scene, or, within a single drive, by stretches of it."""
    labels = np.unique([p.group for p in photographs], return_inverse=True)[1]
    if labels.max() > 0:
        return np.asarray(labels, dtype=np.int64)
    order = np.argsort(np.argsort([p.name for p in photographs]))
    return np.asarray(order * BLOCKS // len(photographs), dtype=np.int64)


# --- what comes out -----------------------------------------------------------------------------


def per_photograph(rows: Sequence[Row], task: str, model: str, metric: str) -> dict[str, float]:
    """Return the metric of each photograph, averaged over repetitions."""
    found: dict[str, list[float]] = {}
    for row in rows:
        if (row["task"], row["model"]) == (task, model):
            for name, values in row["photographs"].items():
                found.setdefault(name, []).append(values[metric])
    return {name: float(np.mean(values)) for name, values in found.items()}


def _paired(rows: Sequence[Row], task: str, metric: str, first: str, second: str) -> NDArray[np.float64]:
    a, b = (per_photograph(rows, task, model, metric) for model in (first, second))
    return np.array([a[name] - b[name] for name in a if name in b])


def summarise(
    claims: dict[str, Any], photographs: Sequence[Photograph], options: Options, rows: Sequence[Row]
) -> str:
    """Write the Markdown: means over photographs with intervals, beside the paper's where the data is the paper's."""
    lines = [f"# {claims['title']}", "", _about(photographs, options), ""]
    for task in dict.fromkeys(row["task"] for row in rows):
        table, published = _table(claims, photographs, rows, task)
        lines += [f"## {task}", "", _describe(rows, task, options), ""]
        lines += [
            "| " + " | ".join(table.header) + " |",
            "| --- |" + " ---: |" * (len(table.header) - 1),
            *("| " + " | ".join(_markdown(cell) for cell in row) + " |" for row in table.rows),
            "",
            *_verdict(claims, rows, task),
            "",
        ]
        if published:
            lines += [
                f"(above), (below): more than {claims['tolerance']} away from the published figure.",
                "",
            ]
    return "\n".join(lines)


def _about(photographs: Sequence[Photograph], options: Options) -> str:
    cut_how = {"grid": "a grid of 61 × 55 patches", "superpixels": "superpixels"}[options.regions]
    return (
        f"{len(photographs)} photographs, each segmented into {cut_how}. Trained on sub-rankings, evaluated on all "
        "regions with a depth reading; in brackets the 95 % bootstrap interval over photographs, taken as independent."
    )


def _describe(rows: Sequence[Row], task: str, options: Options) -> str:
    mine = [row for row in rows if row["task"] == task]
    tested = sorted({name for row in mine for name in row["photographs"]})
    trained_on = sorted({row["photographs_to_learn_from"] for row in mine})
    tuned = ", settings chosen by inner folds of these" if options.tune else ""
    machines = ", ".join(sorted({row["machine"] for row in mine}))
    seeds = len({row["seed"] for row in mine})
    return (
        f"Trained on {' or '.join(map(str, trained_on))} photographs{tuned}; evaluated on {len(tested)}; "
        f"{seeds} seed{'s' * (seeds != 1)} (--{options.mode}); {machines}."
    )


def _table(
    claims: dict[str, Any], photographs: Sequence[Photograph], rows: Sequence[Row], task: str
) -> tuple[Table, bool]:
    published = claims["published"] if photographs[0].kind == "make3d" else {}
    models = [m for m in [*claims["models"], *claims["beyond"]] if per_photograph(rows, task, m, "spearman")]
    values = {
        (model, metric): np.array(list(per_photograph(rows, task, model, metric).values()))
        for model in models
        for metric in claims["metrics"]
    }
    header, body = ["model"], [[model] for model in models]
    lines: list[list[Cell]] = [list(row) for row in body]
    for metric in claims["metrics"]:
        header += [METRIC_NAMES[metric], *(["paper"] if published else [])]
        best = max(float(np.nanmean(values[model, metric])) for model in models)
        for model, line in zip(models, lines, strict=True):
            own = values[model, metric]
            mean = float(np.nanmean(own))
            interval = ""
            if len(own) > 1:
                low, high = bootstrap_interval(own)
                interval = f" [{low:.3f}, {high:.3f}]"
            claim = published.get(metric, {}).get(model)
            mark = ""
            if claim is not None and abs(mean - claim) > claims["tolerance"]:
                mark = " (above)" if mean > claim else " (below)"
            text = f"{mean:.3f}{interval}{mark}"
            line.append((text, "best") if mean == best else text)
            if published:
                line.append("" if claim is None else f"{claim:.3f}")
    return Table(header, lines), bool(published)


def _markdown(cell: Cell) -> str:
    return cell if isinstance(cell, str) else f"**{cell[0]}**"


def _verdict(claims: dict[str, Any], rows: Sequence[Row], task: str) -> list[str]:
    """Compare the best context-dependent net with the best context-free model."""
    lines = []
    for metric in claims["metrics"]:
        means = {}
        for model in [*claims["models"], *claims["beyond"]]:
            own = list(per_photograph(rows, task, model, metric).values())
            if own:
                means[model] = float(np.mean(own))
        with_context = {m: v for m, v in means.items() if m in claims["context"]}
        context_free = {m: v for m, v in means.items() if m not in claims["context"]}
        if not with_context or not context_free:
            continue
        first, second = (
            max(with_context, key=with_context.__getitem__),
            max(context_free, key=context_free.__getitem__),
        )
        differences = _paired(rows, task, metric, first, second)
        text = f"- {METRIC_NAMES[metric]}: {first} − {second} = {differences.mean():+.3f}"
        if len(differences) > 1:
            low, high = bootstrap_interval(differences)
            text += f" [{low:+.3f}, {high:+.3f}], p = {sign_flip_p_value(differences):.3f}"
        lines.append(text)
    return lines


def _keep_scores(job: DepthJob, names: Sequence[str], scores: Sequence[NDArray[Any]]) -> None:
    """Keep the scores of a context-dependent net, for the pictures."""
    if job.model in read_claims(NAME)["context"]:
        make_folder(Path(job.out) / "scores")
        named = {name: np.asarray(own, np.float32) for name, own in zip(names, scores, strict=True)}
        np.savez_compressed(_scores_file(job), **named)  # type: ignore[arg-type]


def _scores_file(job: DepthJob) -> Path:
    return Path(job.out) / "scores" / f"{job.task}-{job.model}-{job.repetition}.npz".replace(" ", "-")


def _draw(
    folder: Path, jobs: Sequence[DepthJob], rows: Sequence[Row], claims: dict[str, Any]
) -> list[tuple[Path, str]]:
    """Draw the best, the middle and the worst photograph of each task, by the better context-dependent net."""
    pictures = []
    for task in dict.fromkeys(job.task for job in jobs):
        accuracies = {
            model: per_photograph(rows, task, model, "ranking_accuracy") for model in claims["context"]
        }
        model = max(accuracies, key=lambda m: float(np.mean(list(accuracies[m].values()) or [-1.0])))
        ordered = sorted(accuracies[model], key=accuracies[model].__getitem__, reverse=True)
        if not ordered:
            continue
        mine = [job for job in jobs if (job.task, job.model) == (task, model) and _scores_file(job).exists()]
        chosen = {"best": ordered[0], "middle": ordered[len(ordered) // 2], "worst": ordered[-1]}
        for which, name in chosen.items():
            file = folder / f"{task}-{which}.png".replace(" ", "-")
            if any(draw_photograph(file, job, name) for job in mine):
                text = f"{task}, {which} of {len(ordered)}: {name}. Yellow: near, blue: far; white: no depth reading."
                pictures.append((file, text))
    return pictures


def draw_photograph(file: Path, job: DepthJob, name: str) -> bool:
    """Draw a photograph, its true order and the one a job predicted, side by side; False where it is not its test."""
    data = _kept(job.data, job.regions, job.cache)
    with np.load(_scores_file(job)) as kept:
        if name not in kept:
            return False
        scores = kept[name].astype(np.float64)
    place = next(i for i, photo in enumerate(data.photographs) if photo.name == name)
    image, _ = data.photographs[place].read()
    targets: NDArray[Any] = data.sets[place].targets  # type: ignore[assignment]
    accuracy = METRICS["ranking_accuracy"](scores[None], targets[None])
    titles = (name, "true order of depth", f"{job.model}: {accuracy:.3f} of all pairs in order")
    draw_orders(file, image, cut(image, job.regions).labels, targets, -scores, titles)
    return True


def draw_orders(
    file: Path,
    image: NDArray[Any],
    labels: NDArray[Any],
    truth: NDArray[Any],
    predicted: NDArray[Any],
    titles: tuple[str, str, str],
) -> None:
    """Draw a photograph and two orders of its regions, from near (yellow) to far (blue), where the truth is known."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    known = ~np.isnan(truth)
    orders = [
        np.where(known, average_places(values[None], known[None])[0], np.nan) / max(known.sum() - 1, 1)
        for values in (truth, predicted)
    ]
    side = image.shape[1] / image.shape[0]
    wide = side > 2  # a panorama
    size = (7.0, 3 * (7.0 / side + 0.35)) if wide else (10.0, 10.0 / 3 / side + 0.35)
    figure, axes = plt.subplots(*((3, 1) if wide else (1, 3)), figsize=size, layout="constrained")
    for axis, title, order in zip(axes, titles, [None, *orders], strict=True):
        axis.set_title(title, fontsize=10, loc="left")
        axis.axis("off")
        if order is None:
            axis.imshow(image)
        else:
            axis.imshow(np.ma.masked_invalid(order[labels]), cmap="viridis_r", vmin=0, vmax=1)
    figure.savefig(file, dpi=110)
    plt.close(figure)


def _write_report(
    claims: dict[str, Any],
    photographs: Sequence[Photograph],
    options: Options,
    rows: Sequence[Row],
    pictures: list[tuple[Path, str]],
    folder: Path,
) -> None:
    sections = []
    for task in dict.fromkeys(row["task"] for row in rows):
        text = " ".join(
            [_describe(rows, task, options), *(line[2:] + "." for line in _verdict(claims, rows, task))]
        )
        own = [picture for picture in pictures if picture[1].startswith(f"{task},")]
        sections.append(Section(task, text, _table(claims, photographs, rows, task)[0], own))
    settings: list[list[Cell]] = [
        [f"{row['task']}, {row['model']}", (row["estimator"], "text"), f"{row['fit_seconds']:.0f} s"]
        for row in rows
        if row["repetition"] == 0
    ]
    sections.append(Section("Settings", table=Table(["model", "estimator", "training"], settings)))
    write_report(folder / "report.html", claims["title"], _about(photographs, options), sections)
