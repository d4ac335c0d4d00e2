"""From photographs to sets: each photograph a set of regions, described by cues, ranked by depth.

Cutting and describing takes a second or so a photograph, so it can be done in several processes, and is kept in a
folder under the content of its files: the same photograph is never described twice, under whatever name.
"""

import hashlib
import os
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from entourage.data.files import replacing
from entourage.data.photographs import cues, photographs, regions
from entourage.data.photographs.photographs import Photograph
from entourage.data.photographs.regions import (
    Regions,
    grid_regions,
    region_distances,
    require_image,
    superpixels,
)
from entourage.data.ranks import ranks_from_scores
from entourage.data.sets import Sets
from entourage.errors import DataError, ParameterError, UserError, check_choice

__all__ = ["CUTS", "DepthSets", "Described", "cut", "depth_ranks", "make_depth_sets"]

#: Cues and distances of the regions of a photograph.
Described: TypeAlias = tuple[NDArray[np.float32], NDArray[np.float32]]

#: How a photograph can be cut into regions, by name.
CUTS: dict[str, Callable[[NDArray[Any]], Regions]] = {"grid": grid_regions, "superpixels": superpixels}


@dataclass(frozen=True)
class DepthSets:
    """Photographs as sets: the objects are regions, their targets the ranks by depth, 0 = nearest."""

    sets: Sets
    photographs: list[Photograph]
    regions: str  # how they were cut: a name of `CUTS`

    def __getitem__(self, chosen: NDArray[Any]) -> "DepthSets":
        """Return the chosen photographs."""
        places = np.arange(len(self.photographs))[chosen]
        return DepthSets(self.sets[places], [self.photographs[i] for i in places], self.regions)


def cut(image: NDArray[Any], how: str = "grid") -> Regions:
    """Cut a photograph: into the paper's 61 × 55 patches ("grid"), or into about 1,000 "superpixels"."""
    return CUTS[check_choice("regions", how, CUTS)](image)


def depth_ranks(distances: NDArray[Any], farthest: float = 80.0) -> NDArray[np.float64]:
    """Rank regions by distance: 0 is the nearest, beyond ``farthest`` all tie, NaN stays unranked.

    Examples
    --------
    >>> depth_ranks(np.array([12.0, 95.0, np.nan, 3.5, 81.0]))
    array([ 1.,  2., nan,  0.,  2.])
    """
    if not farthest > 0:
        raise ParameterError(f"farthest needs a distance above 0, or infinity; got {farthest!r}.")
    known = ~np.isnan(distances)
    nearness = -np.minimum(np.where(known, distances, 0.0), farthest)
    ranks = ranks_from_scores(nearness[None], known[None])[0]
    return np.where(known, ranks, np.nan)


def make_depth_sets(
    photographs: Sequence[Photograph],
    *,
    regions: str = "grid",
    farthest: float = 80.0,
    cache: str | os.PathLike[str] | None = None,
    map_over: Callable[[Callable[[Photograph], Described], Sequence[Photograph]], Iterable[Described]] = map,
    on_photograph: Callable[[int], None] = lambda done: None,
) -> DepthSets:
    """Cut, describe and rank photographs.

    Parameters
    ----------
    photographs : see :mod:`entourage.data.photographs.photographs`
    regions : "grid" or "superpixels"
    farthest : distances beyond it tie; the paper has 80 m, the reach of the laser
    cache : a folder in which what was computed is kept, under the content of the files
    map_over : applies a function to all photographs, in their order; the built-in `map` takes one after the other.
        For several processes, ``functools.partial(entourage.training.parallel.map_in_order, workers=4)``; each needs
        about 0.5 GB for a photograph of 4 megapixels
    on_photograph : called with the number done so far

    A photograph in which no two regions can be ranked is an error: there is nothing to learn or to evaluate.

    Examples
    --------
    >>> from entourage.data.photographs.photographs import load_motorcycle
    >>> make_depth_sets([load_motorcycle()], farthest=np.inf).sets
    Sets(1 set of 3355 objects, 42 features, targets)
    """
    check_choice("regions", regions, CUTS)
    if len(photographs) == 0:
        raise DataError("There is no photograph; at least one is needed.")
    if cache is not None:
        try:
            Path(cache).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"{cache} can't be a folder for what was computed: {error.strerror}.") from error
    features, ranks = [], []
    results = map_over(partial(_described, how=regions, cache=cache), photographs)
    try:
        for i, (described, distances) in enumerate(results):
            own = depth_ranks(distances, farthest)
            if np.unique(own[~np.isnan(own)]).size < 2:
                raise DataError(
                    f"{photographs[i].depth} gives no two regions a different depth, so there is nothing to rank. "
                    "Leave this photograph out."
                )
            features.append(described)
            ranks.append(own)
            on_photograph(i + 1)
    finally:
        if isinstance(results, Generator):
            results.close()  # photographs that wait are dropped now, not when the error is forgotten
    return DepthSets(Sets.from_list(features, ranks), list(photographs), regions)


def _described(photograph: Photograph, how: str, cache: str | os.PathLike[str] | None) -> Described:
    """Return cues and distances of the regions of one photograph, from the cache where possible."""
    if cache is None:
        return _describe(photograph, how)
    content = hashlib.sha256(f"{photograph.fingerprint()} {how} {_code()}".encode()).hexdigest()
    file = Path(cache) / f"{content[:32]}.npz"
    if file.exists():
        try:
            with file.open("rb") as source, np.load(source) as kept:
                return kept["cues"], kept["distances"]
        except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile, zlib.error):
            pass  # damaged: it is computed again
    described, distances = _describe(photograph, how)
    try:
        with replacing(file) as scratch, scratch.open("xb") as out:
            np.savez_compressed(out, cues=described, distances=distances)
    except OSError as error:
        raise UserError(f"{file} can't be written: {error.strerror}.") from error
    return described, distances


def _describe(photograph: Photograph, how: str) -> Described:
    require_image()
    image, distances = photograph.read()
    parts = cut(image, how)
    return cues.describe(image, parts), region_distances(parts, distances).astype(np.float32)


def _code() -> str:
    """Identify this version of cutting and describing, so that results of another are not used."""
    digest = hashlib.sha256()
    for module in (cues, photographs, regions):
        digest.update(Path(str(module.__file__)).read_bytes())
    return digest.hexdigest()
