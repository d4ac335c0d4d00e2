"""Models on fresh synthetic data, as ``paper/*.toml`` lists them."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeVar

import numpy as np

from entourage.data.sets import Sets
from entourage.data.synthetic.hypervolume import make_hypervolume
from entourage.data.synthetic.medoid import make_medoid
from entourage.estimators import NetEstimator, fit_together
from entourage.estimators.base import SetPredictor
from entourage.estimators.baselines import MODELS
from entourage.experiments.rows import Job, Options, Row, provenance
from entourage.selection.tuning import tune
from entourage.training.device import find_device

__all__ = ["ModelJob", "batches_of", "fit_all", "held_out_data", "model_jobs", "training_data"]

J = TypeVar("J", bound=Job)

MAKERS = {"medoid": make_medoid, "hypervolume": make_hypervolume}


@dataclass(frozen=True)
class ModelJob(Job):
    """One model on one fresh data set of one task."""

    kind: str  # the model's name in the registry; `model` may be a variant of it
    make: str
    n_objects: int
    n_features: int
    n_train: int
    n_test: int
    seed: int
    settings: tuple[tuple[str, Any], ...]
    train_sizes: tuple[int, ...] = ()  # sizes to train on, instead of n_objects
    tuning: tuple[int, int, str] | None = None  # trials, inner folds, the folder of the studies

    @property
    def identity(self) -> Row:
        """What a row must have to be this job's, beside its key."""
        trials = None if self.tuning is None else self.tuning[0]
        return {"n_train": self.n_train, "n_test": self.n_test, "seed": self.seed, "trials": trials}


def model_jobs(claims: dict[str, Any], options: Options, *, name: str, folder: str) -> Iterator[ModelJob]:
    """List what is to be run, repetition by repetition, so that an early stop leaves whole ones."""
    limits = claims["modes"][options.mode]
    variants = claims.get("variants", {})
    known = [*claims["models"], *claims.get("beyond", []), *variants]
    options.check(tasks=list(claims["tasks"]), models=known, tunes=True)
    for task, about in claims["tasks"].items():
        if options.tasks is None and task not in limits.get("tasks", claims["tasks"]):
            continue
        for repetition in range(options.repetitions or limits.get("repetitions", about["repetitions"])):
            for model in known:
                if not options.wants(task=task, model=model):
                    continue
                variant = variants.get(model, {})
                kind = variant.get("model", model)
                settings = dict(claims.get("settings", {}).get(about.get("settings", task), {}).get(kind, {}))
                if "steps" in settings:
                    settings["steps"] = min(settings["steps"], limits.get("most_steps", settings["steps"]))
                yield ModelJob(
                    table=name,
                    task=task,
                    model=model,
                    repetition=repetition,
                    kind=kind,
                    make=about["make"],
                    n_objects=about["n_objects"],
                    n_features=about["n_features"],
                    n_train=limits.get("n_train", about["n_train"]),
                    n_test=limits.get("n_test", about["n_test"]),
                    seed=claims["seed"],
                    settings=tuple(sorted(settings.items())),
                    train_sizes=tuple(variant.get("train_sizes", ())),
                    tuning=_tuning(claims, options, folder),
                )


def _tuning(claims: dict[str, Any], options: Options, folder: str) -> tuple[int, int, str] | None:
    if not options.tune:
        return None
    budget = claims["modes"][options.mode]["tuning"]
    return options.trials or budget["trials"], budget["folds"], folder


def batches_of(jobs: Sequence[J], options: Options) -> list[list[J]]:
    """Group the jobs to be trained together: on a GPU the repetitions of one net, else none."""
    if options.workers > 1 or options.tune or find_device(options.device).type != "cuda":
        return [[job] for job in jobs]
    ordered = sorted(jobs, key=lambda job: (job.task, job.model))  # stable: repetitions stay in order
    return [list(batch) for _, batch in groupby(ordered, key=lambda job: (job.task, job.model))]


def _streams(job: ModelJob) -> tuple[np.random.SeedSequence, ...]:
    """Streams of their own for training and test, the same for all models of a repetition."""
    name = int.from_bytes(job.task.encode()[:8].ljust(8, b"\0"), "big")
    return tuple(np.random.SeedSequence([job.seed, name, job.repetition]).spawn(2))


def training_data(job: ModelJob) -> Sets:
    """Make the training sets of a job: of one size, or as many of each of several."""
    make, rng = MAKERS[job.make], np.random.default_rng(_streams(job)[0])
    sizes = job.train_sizes or (job.n_objects,)
    counts = [job.n_train // len(sizes) + (i < job.n_train % len(sizes)) for i in range(len(sizes))]
    parts = [
        Sets.of(*make(count, n_objects=size, n_features=job.n_features, random_state=rng))
        for size, count in zip(sizes, counts, strict=True)
    ]
    return Sets.concatenate(parts)


def held_out_data(job: ModelJob, n_objects: int | None = None) -> Sets:
    """Make the test sets of a job, or those of another size."""
    stream = _streams(job)[1]
    if n_objects is not None:
        stream = np.random.SeedSequence([*stream.entropy, n_objects], spawn_key=stream.spawn_key)  # type: ignore[misc]
    return Sets.of(
        *MAKERS[job.make](
            job.n_test,
            n_objects=n_objects or job.n_objects,
            n_features=job.n_features,
            random_state=np.random.default_rng(stream),
        )
    )


def fit_all(jobs: Sequence[ModelJob], device: str) -> list[tuple[SetPredictor, Row]]:
    """Train the model of each job, together where there are several; also return what goes into the rows."""
    models, data = [], [training_data(job) for job in jobs]
    found: list[Row] = []
    for job, sets in zip(jobs, data, strict=True):
        model = MODELS[job.kind](job.repetition).set_params(**dict(job.settings))
        if "device" in model.get_params():
            model.set_params(device=device)
        tuning_row: Row = {}
        if job.tuning is not None:
            trials, folds, folder = job.tuning
            start = time.perf_counter()
            study = f"{folder}/studies/{job.task}-{job.model}-{job.repetition}.journal"
            result = tune(model, sets, trials=trials, folds=folds, study=study, random_state=job.seed)
            model.set_params(**result.params)
            tuning_row = {
                "tuned": result.params,
                "inner_score": result.score,
                "tuning_seconds": round(time.perf_counter() - start, 2),
            }
        models.append(model)
        found.append(tuning_row)
    start = time.perf_counter()
    if len(models) > 1 and all(isinstance(model, NetEstimator) for model in models):
        fit_together(models, [(sets, None) for sets in data])
    else:
        for model, sets in zip(models, data, strict=True):
            model.fit(sets)
    seconds = round((time.perf_counter() - start) / len(models), 2)
    return [
        (
            model,
            provenance(job, device)
            | {
                "estimator": " ".join(repr(model).split()),
                "fit_seconds": seconds,
                "trained_together": len(models),
            }
            | tuning_row,
        )
        for model, job, tuning_row in zip(models, jobs, found, strict=True)
    ]
