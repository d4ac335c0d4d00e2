"""What a scoring run is of, how its rows are cut into parts, and which parts are done: ``_manifest.json``."""

import json
import time
from dataclasses import asdict, dataclass, field
from typing import Any

from entourage.distributed.jobs import Part, part_name
from entourage.distributed.places import Place
from entourage.errors import DataError, UserError

__all__ = ["NAME", "Manifest"]

NAME = "_manifest.json"  # names that begin with _ are no data to Arrow, Spark and Dask
FORMAT = 1
SHARE = 0.05  # of the time, at most, goes into writing the file; parts that are in none are done again after a kill


@dataclass
class Manifest:
    """One run: it goes on only with the same model, inputs and options.

    Attributes
    ----------
    place : of the file
    run : what the run is of
    cuts : the first row of each part, and the number of rows behind
    parts : those that are done, by their number
    """

    place: Place
    run: dict[str, Any]
    cuts: list[int]
    parts: dict[int, Part] = field(default_factory=dict)
    _saved: float = 0.0
    _cost: float = 0.0

    @classmethod
    def read(cls, place: Place) -> "Manifest | None":
        """Read the manifest of a run that was begun; None where there is none."""
        if not place.exists():
            return None
        try:
            content = json.loads(place.read())
            if content["format"] != FORMAT:
                raise UserError(
                    f"{place.path} has format {content['format']}, not {FORMAT}: it is of another version of "
                    "Entourage. Name another folder."
                )
            cuts = [int(cut) for cut in content["cuts"]]
            names = {part_name(number): number for number in range(len(cuts) - 1)}
            parts = {names[name]: Part(**part) for name, part in content["parts"].items()}
            return cls(place, dict(content["run"]), cuts, parts)
        except (ValueError, KeyError, TypeError) as error:
            if isinstance(error, UserError):
                raise
            raise DataError(
                f"{place.path} can't be read as a manifest: {error}. Name another folder."
            ) from error

    @property
    def complete(self) -> bool:
        """Whether all parts are done."""
        return len(self.parts) == len(self.cuts) - 1

    def add(self, number: int, part: Part) -> None:
        """Add a part that is done; the file is written at once, or soon where that takes long."""
        self.parts[number] = part
        if time.monotonic() - self._saved > self._cost / SHARE:
            self.save()

    def save(self) -> None:
        """Write the file in one step."""
        begin = time.monotonic()
        content = {
            "format": FORMAT,
            "run": self.run,
            "rows": self.cuts[-1],
            "complete": self.complete,
            "cuts": self.cuts,
            "parts": {part_name(number): asdict(part) for number, part in sorted(self.parts.items())},
        }
        self.place.write((json.dumps(content, indent=1) + "\n").encode())
        self._saved = time.monotonic()
        self._cost = self._saved - begin

    def check_same(self, run: dict[str, Any]) -> None:
        """See that a run is the one that was begun here; the error names what differs."""
        then = self.run
        if then == run:
            return
        raise UserError(
            f"{self.place.path.rsplit('/', 1)[0]} holds parts of another run: {_difference(then, run)}. Name another "
            "folder, or delete this one to start anew."
        )


def _difference(then: dict[str, Any], now: dict[str, Any]) -> str:
    """Say the first thing that differs between two runs."""
    for name, words in (
        ("model", "the model is another (SHA-256 {now:.12}…, not {then:.12}…)"),
        ("columns", "the columns of the inputs are others"),
        ("rows_per_part", "it had --rows-per-part {then}, not {now}"),
        ("people", "it had --people {then}, not {now}"),
        ("entourage", "it was begun by Entourage {then}, this is {now}"),
    ):
        if then.get(name) != now.get(name):
            return words.format(then=str(then.get(name)), now=str(now.get(name)))
    before = {one["path"]: one for one in then["inputs"]}
    after = {one["path"]: one for one in now["inputs"]}
    for path in before:
        if path not in after:
            return f"{path} is no longer among the inputs"
    for path, file in after.items():
        if path not in before:
            return f"{path} was not among the inputs"
        if before[path] != file:
            what = [name for name in file if before[path].get(name) != file[name]]
            said = ", ".join(f"{name} {before[path].get(name)} then and {file[name]} now" for name in what)
            return f"{path} has changed ({said})"
    return "the inputs come in another order"
