"""Training and test sets of the experiment ``hvc``: made once, kept in files by what made them."""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entourage.data.files import replacing
from entourage.data.sets import Sets
from entourage.data.synthetic.fronts import make_fronts
from entourage.errors import DataError
from entourage.report.page import make_folder
from entourage.training.deadline import time_is_up
from entourage.training.parallel import open_pool

__all__ = ["FrontFile", "Labelled", "call", "load_fronts", "make_files", "permuted_copies"]

VERSION = 2  # of the protocol: another one makes other files
ROLES = ("training", "test", "larger")


@dataclass(frozen=True)
class FrontFile:
    """What a file of fronts is made by; its name is a digest of it."""

    seed: int
    n_features: int
    role: str
    part: int
    n_sets: int
    sizes: tuple[int, int]

    def path(self, folder: Path) -> Path:
        """Where it is kept."""
        content = json.dumps([VERSION, asdict(self)], sort_keys=True)
        return (
            folder / f"{self.role}-{self.n_features}-{hashlib.sha256(content.encode()).hexdigest()[:16]}.npz"
        )


@dataclass(frozen=True)
class Labelled:
    """Sets of points and their exact contributions, packed."""

    sets: Sets
    contributions: NDArray[np.float64]


def make_files(
    files: Sequence[FrontFile], folder: Path, *, workers: int, on_sets: Callable[[int, int], None]
) -> bool:
    """Make the files that are missing; return whether all are there, False where time was up.

    ``on_sets`` is called with how many of the missing sets are made.
    """
    make_folder(folder)
    missing = [file for file in files if not file.path(folder).exists()]
    if not missing:
        return True
    done, total = 0, sum(file.n_sets for file in missing)
    with open_pool(call, workers) as pool:

        def map_over(function: Callable[[Any], Any], jobs: Sequence[Any]) -> Iterable[Any]:
            return pool.map([(function, job) for job in jobs])

        for file in missing:
            if time_is_up():
                return False
            entropy = [file.seed, file.n_features, ROLES.index(file.role), file.part]
            before = done
            made = make_fronts(
                file.n_sets,
                file.n_features,
                np.random.default_rng(entropy),
                sizes=file.sizes,
                map_over=map_over,
                on_sets=lambda n, before=before: on_sets(before + n, total),  # type: ignore[misc]
            )
            done += file.n_sets
            with replacing(file.path(folder)) as scratch, scratch.open("xb") as out:
                np.savez(
                    out,
                    objects=made.sets.objects,
                    offsets=made.sets.offsets,
                    contributions=made.contributions,
                )
    return True


def call(job: tuple[Callable[[Any], Any], Any]) -> Any:
    """Apply a function to its argument: one pool serves several functions."""
    function, argument = job
    return function(argument)


def load_fronts(files: Sequence[FrontFile], folder: Path) -> Labelled:
    """Read the sets of several files, one after the other.

    Targets are minus the logarithms of the contributions, so that smaller is better.
    """
    parts = []
    for file in files:
        path = file.path(folder)
        try:
            with np.load(path, allow_pickle=False) as arrays:
                parts.append((Sets(arrays["objects"], arrays["offsets"]), arrays["contributions"]))
        except (OSError, ValueError, KeyError) as error:
            raise DataError(f"{path} can't be read ({error}); delete it, and it is made again.") from None
    contributions = np.concatenate([labels for _, labels in parts])
    targets = -np.log(np.maximum(contributions, 1e-30)).astype(np.float32)
    return Labelled(Sets.concatenate([sets for sets, _ in parts]).with_targets(targets), contributions)


def permuted_copies(sets: Sets, copies: int, n_features: int, seed: int) -> Sets:
    """Return sets with copies whose objectives, the first features, are permuted: contributions stay as they are."""
    rng = np.random.default_rng([seed, 0])
    parts = [sets]
    for _ in range(copies - 1):
        objects = sets.objects.copy()
        order = rng.permuted(np.tile(np.arange(n_features), (len(sets), 1)), axis=1)  # one a set
        objects[:, :n_features] = np.take_along_axis(
            objects[:, :n_features], np.repeat(order, sets.sizes, axis=0), axis=1
        )
        parts.append(Sets(objects, sets.offsets, sets.targets))
    return sets if copies == 1 else Sets.concatenate(parts)
