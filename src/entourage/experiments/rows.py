"""Rows of an experiment: each is kept as soon as it is done, and none is run twice."""

import hashlib
import json
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
import torch

from entourage import __version__
from entourage.data.sets import Sets
from entourage.errors import UserError, check_choice
from entourage.report.page import make_folder, write_text
from entourage.training.device import find_device
from entourage.training.parallel import open_pool

__all__ = ["MODES", "Job", "Options", "Row", "fingerprint", "keep_rows", "provenance"]

MODES = ("quick", "full")

Row: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[str, str, int]


@dataclass(frozen=True)
class Options:
    """How to run an experiment; what the command line can say."""

    mode: str = "quick"
    device: str = "auto"
    repetitions: int | None = None
    tasks: list[str] | None = None
    models: list[str] | None = None
    workers: int = 1
    tune: bool = False
    trials: int | None = None
    data: Path | None = None  # the folder of an experiment's data: photographs, for table2
    regions: str = "grid"  # how they are cut
    seconds: float | None = None  # after which what trains is kept, to go on in the next call
    on_row: Callable[[int, int, str], None] = field(default=lambda done, total, what: None)

    def __post_init__(self) -> None:
        check_choice("mode", self.mode, MODES)

    def check(self, *, tasks: Sequence[str], models: Sequence[str], tunes: bool) -> None:
        """Check that the tasks and models asked for are known, and that there is something to tune."""
        if self.tune and not tunes:
            raise UserError("There is nothing to tune here; --tune is for table1, table2 and sizes.")
        for task in self.tasks or []:
            check_choice("task", task, tasks)
        for model in self.models or []:
            check_choice("model", model, models)

    def wants(self, *, task: str, model: str) -> bool:
        """Whether a task and a model are among those asked for; all are where none is."""
        return task in (self.tasks or [task]) and model in (self.models or [model])


@dataclass(frozen=True)
class Job:
    """What one row is made by."""

    table: str
    task: str
    model: str
    repetition: int

    @property
    def name(self) -> str:
        """What to call it."""
        return f"{self.task}, {self.model}, repetition {self.repetition + 1}"

    @property
    def key(self) -> Key:
        """What its row is kept under."""
        return self.task, self.model, self.repetition

    @property
    def identity(self) -> Row:
        """What a row must have to be this job's, beside its key."""
        return {}


J = TypeVar("J", bound=Job)


def keep_rows(
    folder: Path,
    jobs: Sequence[J],
    run: Callable[[Sequence[J], str], list[Row]],
    options: Options,
    batches: Sequence[Sequence[J]] | None = None,
) -> list[Row]:
    """Run the jobs whose rows are not yet in ``folder``, and return the rows of all in their order.

    ``run(jobs, device)`` makes the rows of a batch of jobs: of one, unless ``batches`` says otherwise. With
    several workers, batches run in parallel, in processes of one thread each. Rows are written as they come,
    so that an interrupted run goes on where it was.
    """
    make_folder(folder)
    file = folder / "rows.jsonl"
    known = _read_rows(file)
    kept = {job: _checked(known[job.key], job, file) for job in jobs if job.key in known}
    wanted = [[job] for job in jobs] if batches is None else batches
    missing = [left for batch in wanted if (left := [job for job in batch if job not in kept])]
    options.on_row(len(kept), len(jobs), missing[0][0].name if missing else "")
    with open_pool(_OnDevice(run, options.device), options.workers) as pool:
        for batch, rows in pool.run(missing):
            for job, row in zip(batch, rows, strict=True):
                known[job.key] = kept[job] = row
            write_text(file, "".join(json.dumps(known[key]) + "\n" for key in sorted(known)))
            options.on_row(len(kept), len(jobs), batch[-1].name)
    return [kept[job] for job in jobs]


def fingerprint(sets: Sets) -> str:
    """Tell data from other data."""
    digest = hashlib.sha256()
    for array in (sets.objects, sets.offsets, sets.targets, sets.situation):
        digest.update(b"-" if array is None else np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def provenance(job: Job, device: str) -> Row:
    """Return what every row says of where it comes from."""
    used = find_device(device)
    return {
        "table": job.table,
        "task": job.task,
        "model": job.model,
        "repetition": job.repetition,
        **job.identity,
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


@dataclass(frozen=True)
class _OnDevice(Generic[J]):
    """What a worker does with a batch of jobs."""

    run: Callable[[Sequence[J], str], list[Row]]
    device: str

    def __call__(self, batch: Sequence[J]) -> list[Row]:
        return self.run(batch, self.device)


def _read_rows(file: Path) -> dict[Key, Row]:
    if not file.exists():
        return {}
    try:
        rows: list[Row] = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        return {(row["task"], row["model"], row["repetition"]): row for row in rows}
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{file} holds no rows of a reproduction; move it or take another folder.") from None


def _checked(row: Row, job: Job, file: Path) -> Row:
    others = [
        f"{name} is {row.get(name)}, not {value}"
        for name, value in job.identity.items()
        if row.get(name) != value
    ]
    if others:
        raise UserError(f"{file} holds rows of another run ({'; '.join(others)}). Take another folder.")
    return row
