"""What commands share: the options on tables, and how a table is read by them.

Nothing heavy is imported here, so that ``--help`` answers at once.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from entourage.errors import UserError

if TYPE_CHECKING:
    import pyarrow as pa

    from entourage.data.encoder import TableEncoder
    from entourage.data.grouping import PackedTable

__all__ = [
    "Address",
    "AsJson",
    "Decimal",
    "Device",
    "Encoding",
    "Engine",
    "Feature",
    "Group",
    "Ignore",
    "Missing",
    "ModelOut",
    "ModelPath",
    "Monotone",
    "Outside",
    "Position",
    "Relative",
    "Seed",
    "Sep",
    "SetId",
    "Situation",
    "Steps",
    "TablePath",
    "Target",
    "TargetKind",
    "TrainingTable",
    "Workers",
    "csv_options",
    "estimator_settings",
    "monotone_settings",
    "outside_settings",
    "read_for",
    "read_training_table",
    "relative_settings",
    "run_on",
    "workers_of",
]

SetId = Annotated[str, typer.Option("--set-id", help="The column that says which set a row belongs to.")]
Target = Annotated[str, typer.Option("--target", help="The column to learn: ranks, relevances or choices.")]
TargetKind = Annotated[
    str,
    typer.Option(
        "--target-kind",
        help="rank (smaller is better), relevance (larger is better), choice (1 for the chosen row of a set, else "
        "0) or subset (1 for every chosen row).",
    ),
]
Feature = Annotated[
    list[str] | None,
    typer.Option("--feature", help="A feature column; may be given again. By default all others."),
]
Situation = Annotated[
    list[str] | None,
    typer.Option("--situation", help="A column that is the same for a whole set, such as a user's age."),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option("--ignore", help="A column that is no feature (a name, something known only later)."),
]
Group = Annotated[
    str | None,
    typer.Option(
        "--group", help="A column, such as a user, whose sets stay together: in a fold, held out, resampled."
    ),
]
Relative = Annotated[
    list[str] | None,
    typer.Option(
        "--relative",
        help="A numeric column to see relative to its set, too (centred, z-score, rank, gaps); may be given again; "
        "all for all.",
    ),
]
Monotone = Annotated[
    list[str] | None,
    typer.Option(
        "--monotone",
        help="A numeric column and a sign, such as price:-1, by which a higher price never raises the "
        "probability of being chosen (+1: never lowers it); may be given again. Of nets; auto then blends nets only.",
    ),
]
Outside = Annotated[
    bool,
    typer.Option(
        "--outside", help="With choices of one: the outside option, a set in which nothing was chosen."
    ),
]
Position = Annotated[
    str | None,
    typer.Option(
        "--position",
        help="A column with the place at which an object was shown (on a screen, in a list): its effect is learnt in "
        "training and left out in predictions.",
    ),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        "--missing", help="A text that stands for a missing value, such as ---; may be given again."
    ),
]
Sep = Annotated[str | None, typer.Option("--sep", help="The separator of the columns of a CSV, such as ';'.")]
Decimal = Annotated[str, typer.Option("--decimal", help="The decimal mark of a CSV: . or ,")]
Encoding = Annotated[
    str, typer.Option("--encoding", help="The character encoding of a CSV, such as latin-1.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
Device = Annotated[str, typer.Option(help="cpu, cuda, or auto: the GPU where there is one.")]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same result.")]
Steps = Annotated[
    int | None,
    typer.Option(
        min=1, help="Training steps of a net; by default 4,000, in compare and auto by the number of sets."
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Jobs in parallel, of one thread each; by default 1, with --engine ray as many as there are CPUs.",
    ),
]
Engine = Annotated[
    str,
    typer.Option("--engine", help="Where jobs run: local, this machine; or ray, a cluster."),
]
Address = Annotated[
    str | None,
    typer.Option(
        "--address",
        help="With --engine ray: HOST:PORT of the cluster, or auto on one of its machines; by default a Ray of this "
        "machine alone is started, and stopped at the end.",
    ),
]
TablePath = Annotated[
    Path, typer.Argument(help="CSV, TSV, Parquet, Arrow, JSON lines or svmlight; .gz, .bz2, .xz, .zst too.")
]
ModelPath = Annotated[Path, typer.Argument(help="A model file.")]
ModelOut = Annotated[Path, typer.Option("-o", "--out", help="The model file to write.")]


@dataclass(frozen=True)
class TrainingTable:
    """A table to learn from: its rows, how its columns become features, its sets, their groups and times."""

    frame: "pa.Table"
    encoder: "TableEncoder"
    packed: "PackedTable"
    groups: Any = None
    times: Any = None


def estimator_settings(device: str, seed: int, steps: int | None) -> dict[str, Any]:
    """Return what --device, --seed and --steps set."""
    settings: dict[str, Any] = {"device": device, "random_state": seed}
    return settings if steps is None else settings | {"steps": steps}


def relative_settings(columns: list[str] | None) -> bool | list[str]:
    """Return what --relative sets."""
    if not columns:
        return False
    return True if columns == ["all"] else columns


def monotone_settings(given: list[str] | None) -> dict[str | int, int] | None:
    """Return what --monotone sets."""
    found: dict[str | int, int] = {}
    for one in given or []:
        name, _, sign = one.rpartition(":")
        if not name or sign not in ("1", "+1", "-1"):
            raise UserError(f"--monotone needs a column and +1 or -1, such as price:-1; got {one!r}.")
        if name in found:
            raise UserError(f"--monotone names {name!r} twice.")
        found[name] = int(sign)
    return found or None


def outside_settings(outside: bool, kind: str) -> dict[str, Any]:
    """Return what --outside sets; it is for choices of one alone."""
    if outside and kind != "choice":
        raise UserError("--outside is about choices of one: it goes with --target-kind choice.")
    return {"outside": True} if outside else {}


def csv_options(sep: str | None, decimal: str, encoding: str) -> dict[str, Any]:
    """Return how a CSV is to be read."""
    if decimal not in (".", ","):
        raise UserError(f"--decimal is . or a comma; got {decimal!r}.")
    if sep is not None and len(sep.replace("\\t", "\t")) != 1:
        raise UserError(f"--sep is one character, such as ';'; got {sep!r}.")
    return {
        "sep": None if sep is None else sep.replace("\\t", "\t"),
        "decimal": decimal,
        "encoding": encoding,
    }


def run_on(fitted: Any, device: str, *, show: bool = False) -> None:
    """Let a model score on a device, with a progress bar; choice models have neither."""
    known = fitted.get_params(deep=False)
    settings = {"device": device} | ({"verbose": Console(stderr=True).is_terminal} if show else {})
    fitted.set_params(**{name: value for name, value in settings.items() if name in known})


@contextmanager
def workers_of(engine: str, address: str | None, workers: int | None, *, here: int = 1) -> Iterator[int]:
    """Have the pools of the block run by --engine; yield how many jobs run at a time, ``here`` by default."""
    if engine not in ("local", "ray"):
        raise UserError(f"--engine is local or ray; got {engine!r}.")
    if engine == "local":
        if address is not None:
            raise UserError("--address is that of a Ray cluster: it goes with --engine ray.")
        yield workers or here
        return
    from entourage.distributed import ray_engine

    with ray_engine(address, cpus=workers if address is None else None) as ray:
        yield workers or ray.workers


def read_for(fitted: Any, table: Path, csv: dict[str, Any], ids: Sequence[str | None] = ()) -> Any:
    """Read a table for a model: its labels (the set's and ``ids``) exactly, its text as text."""
    from entourage.data.table_files import read_table
    from entourage.estimators.inputs import encoder_of

    encoder = encoder_of(fitted)
    return read_table(table, ids=[encoder.set_id, *ids], text=encoder.text_columns, **csv)


def read_training_table(
    table: Path,
    *,
    set_id: str,
    target: str,
    target_kind: str,
    feature: list[str] | None,
    situation: list[str] | None,
    ignore: list[str] | None,
    missing: list[str] | None,
    csv: dict[str, Any],
    group: str | None = None,
    time: str | None = None,
    position: str | None = None,
    codes: bool = True,
) -> TrainingTable:
    """Read a table to learn from, warning of what looks odd; with ``codes``, many levels become codes."""
    from entourage.data.encoder import TableEncoder
    from entourage.data.grouping import groups_of, positions_of, times_of
    from entourage.data.table_files import read_table
    from entourage.data.table_warnings import warn_of_oddities

    frame = read_table(table, ids=[set_id, group], **csv)
    if position is not None and position in (set_id, target, group, *(feature or []), *(situation or [])):
        raise UserError(f"--position {position} has another role, too; a position is a column of its own.")
    beside = [name for name in (group, time, position) if name is not None and name != set_id]
    beside = [name for name in dict.fromkeys(beside) if name not in (situation or [])]
    encoder = TableEncoder.fit(
        frame,
        set_id=set_id,
        target=target,
        target_kind=target_kind,
        features=feature,
        situation=situation,
        ignore=[*(ignore or []), *beside],
        missing=missing or [],
        codes=codes,
    )
    packed = encoder(frame)
    warn_of_oddities(frame, packed, encoder)
    if position is not None:
        packed.sets = packed.sets.with_position(positions_of(frame, packed, position))
    groups = None if group is None else groups_of(frame, packed, group)
    times = None if time is None else times_of(frame, packed, time)
    return TrainingTable(frame, encoder, packed, groups, times)
