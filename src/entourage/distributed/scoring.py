"""A model's predictions for any number of rows, Parquet to Parquet, by many workers: what ``entourage predict`` does.

The rows of all files are one sequence. It is cut into parts where a set ends and another begins
(:mod:`entourage.distributed.ranges`), workers score a part each, and every part becomes a file of its own, in one step.
A manifest says what the run is of and which parts are done, so the same call goes on where an earlier one ended.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from entourage import __version__
from entourage.data.frames import list_columns
from entourage.data.parquet_files import Sources, open_sources
from entourage.data.places import Place, find_files, place_of, would_find
from entourage.distributed.crew import Crew
from entourage.distributed.jobs import MOST_PARTS, CheckPart, ScorePart, Worker, part_name
from entourage.distributed.manifest import NAME, Manifest
from entourage.distributed.ranges import cut_at_sets, wanted_cuts
from entourage.errors import DataError, UserError, check_number
from entourage.estimators import load
from entourage.estimators.inputs import encoder_of

__all__ = ["ROWS_PER_PART", "Progress", "Scored", "predict_parts"]

ROWS_PER_PART = 250_000


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    Attributes
    ----------
    parts, all_parts, rows, all_rows : that are done, those of earlier calls included, and all; no parts are known
        while set ids are read
    new_rows, seconds : what this call scored so far, and in which time
    """

    parts: int
    all_parts: int | None
    rows: int
    all_rows: int
    new_rows: int
    seconds: float

    @property
    def seconds_left(self) -> float | None:
        """How long the rest takes at the rate so far; None before the first part is done."""
        return (self.all_rows - self.rows) * self.seconds / self.new_rows if self.new_rows else None


@dataclass(frozen=True)
class Scored:
    """What a run has written.

    Attributes
    ----------
    folder : with the parts and the manifest
    rows, parts : in all
    new_parts : that this call scored; the others were done before
    seconds : of this call, by what was done: planning (reading set ids, or checking parts that were done) and scoring
    """

    folder: str
    rows: int
    parts: int
    new_parts: int
    seconds: dict[str, float]


def predict_parts(
    model: str | os.PathLike[str],
    inputs: str,
    out: str,
    *,
    workers: int = 1,
    rows_per_part: int = ROWS_PER_PART,
    people: str | None = None,
    device: str = "auto",
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> Scored:
    """Score the rows of Parquet files; write them, with what is predicted, to a folder of Parquet files.

    The parts, in the order of their names, have the rows of the files, in the order of theirs; each column is as
    `entourage.estimators.prediction_tables.predict_table` makes it. Rows of a set must stand together; they may run
    across row groups and files, and are scored as one set. A call that is repeated after an interruption scores only
    the parts that are not done; with another model, other inputs or other options it is refused.

    Parameters
    ----------
    model : a model file
    inputs : a folder, a file or a pattern such as ``"folder/*.parquet"``, of this machine or of an object store
        (``s3://bucket/folder``); files are taken in the order of their paths
    out : a new or empty folder, or that of a run to go on with; every machine must see it at the same path
    workers : processes of one thread each; inside ``with ray_engine(...)``, tasks of Ray
    rows_per_part : about how many rows a part has
    people : the column of the decision maker, for models that know some
    device : "cpu", "cuda" or "auto"
    on_progress : called after each part
    """
    check_number("workers", workers, least=1, whole=True)
    check_number("rows_per_part", rows_per_part, least=1, whole=True)
    begin = time.monotonic()
    fitted = load(model)
    encoder = encoder_of(fitted, model)
    if people is not None and not hasattr(fitted, "people_"):
        raise UserError(
            f"--people is about models that know people by their choices, mixed_logit and latent_class; {model} holds "
            f"a {type(fitted).__name__}."
        )
    folder = place_of(out)
    places = find_files(inputs)
    _check_folder(folder, inputs, places)
    sources = open_sources(places)
    needed = [encoder.set_id, *(column.name for column in encoder.columns), *([people] if people else [])]
    lacking = [name for name in dict.fromkeys(needed) if name not in sources.schema.names]
    if lacking:
        raise DataError(
            f"The table lacks {list_columns(lacking)}, which the model was fitted to; it has "
            f"{list_columns(sources.schema.names)}."
        )
    most = len(wanted_cuts(sources.group_ends, rows_per_part)) + 1
    if most > MOST_PARTS:
        raise UserError(
            f"{sources.rows:,} rows in parts of about {rows_per_part:,} would be up to {most:,} files; there may be "
            f"{MOST_PARTS:,}. Give more --rows-per-part."
        )
    content = Path(model).read_bytes()
    run = _describe(content, sources, rows_per_part, people)
    folder.make_folder()
    with _locked(folder):
        manifest = Manifest.read(folder.child(NAME))
        if manifest is None:
            _check_empty(folder)
        else:
            manifest.check_same(run)
        for name in folder.children():
            if name.startswith((".part-", f".{NAME}")) and name.endswith(".part"):
                folder.child(name).delete()  # half a file of a run that was killed
        worker = Worker(content, sources, folder, encoder.set_id, people=people, device=device)
        with Crew(worker, min(workers, most)) as crew:
            on_progress(Progress(0, None, 0, sources.rows, 0, 0.0))
            if manifest is None:
                cuts = cut_at_sets(sources, encoder.set_id, rows_per_part, crew)
                manifest = Manifest(folder.child(NAME), run, cuts)
                manifest.save()
            else:
                _drop_changed(manifest, crew)
            planned = time.monotonic()
            new = _score(manifest, crew, on_progress)
    rows, parts = sources.rows, len(manifest.parts)
    seconds = {"planning": planned - begin, "scoring": time.monotonic() - planned}
    return Scored(folder.path, rows, parts, new, seconds)


def _score(manifest: Manifest, crew: Crew[Any, Any], on_progress: Callable[[Progress], None]) -> int:
    """Score all parts that are not done; return how many."""
    begin, new_rows, cuts = time.monotonic(), 0, manifest.cuts
    jobs = [
        ScorePart(number, cuts[number], cuts[number + 1])
        for number in range(len(cuts) - 1)
        if number not in manifest.parts
    ]
    before = sum(part.rows for part in manifest.parts.values())
    folder = Place(manifest.place.system, manifest.place.path.rpartition("/")[0])
    try:
        for job, part in crew.run(jobs):
            if folder.child(part_name(job.number)).info().size != part.bytes:
                raise UserError(
                    f"A worker wrote {part_name(job.number)}, but it is not in {folder.path} as this process sees it. "
                    "All machines need the folder at the same path: name one that they share, or an object store."
                )
            new_rows += part.rows
            manifest.add(job.number, part)
            seconds = time.monotonic() - begin
            on_progress(
                Progress(len(manifest.parts), len(cuts) - 1, before + new_rows, cuts[-1], new_rows, seconds)
            )
    finally:
        manifest.save()
    return len(jobs)


def _drop_changed(manifest: Manifest, crew: Crew[Any, Any]) -> None:
    """Take the parts for undone whose files are no longer as they were."""
    jobs = [CheckPart(number, part) for number, part in manifest.parts.items()]
    for job, same in crew.run(jobs):
        if not same:
            del manifest.parts[job.number]


def _describe(model: bytes, sources: Sources, rows_per_part: int, people: str | None) -> dict[str, Any]:
    """Return what a run is of: nothing of it may differ when it goes on."""
    return {
        "entourage": __version__,
        "model": sha256(model).hexdigest(),
        "columns": sources.fingerprint,
        "rows_per_part": rows_per_part,
        "people": people,
        "inputs": [
            {"path": file.path, "bytes": file.size, "modified": file.modified, "rows": file.rows}
            for file in sources.files
        ],
    }


def _check_folder(folder: Place, inputs: str, places: Sequence[Place]) -> None:
    """See that no input is where parts will be, now or when the call is repeated."""
    if folder.info().is_file:
        raise UserError(f"{folder.path} is a file; -o names a folder here.")
    own = os.path.realpath(folder.path) if folder.is_local else folder.path
    for place in places:
        parent = place.path.rpartition("/")[0]
        if (
            os.path.realpath(parent) if place.is_local else parent
        ) == own and place.is_local == folder.is_local:
            raise UserError(f"{folder.path} has inputs in it ({place.name}); name another folder.")
    if would_find(inputs, folder.child(part_name(0))):
        raise UserError(
            f"{inputs} would also match what is written to {folder.path}; name a folder elsewhere."
        )


def _check_empty(folder: Place) -> None:
    there = [name for name in folder.children() if not name.startswith(".")]
    if there:
        raise UserError(
            f"{folder.path} is not empty (it has {there[0]}), and has no {NAME} of a run to go on with; name a new "
            "folder."
        )


@contextlib.contextmanager
def _locked(folder: Place) -> Iterator[None]:
    """Let one run at a time write to a folder of this machine; the lock ends with its process, however that ends."""
    if not folder.is_local or os.name != "posix":
        yield
        return
    import fcntl

    with Path(folder.child(".lock").path).open("wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"Another run is writing to {folder.path}; wait for its end, or name another folder."
            ) from None
        yield
