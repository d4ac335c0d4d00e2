"""What scores the features of objects in a graph: the same for every model, so that the rest needs to know none."""

from abc import ABC, abstractmethod
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

__all__ = [
    "MOST",
    "FeatureScorer",
    "Floats",
    "at_set",
    "doubles",
    "finite",
    "look_up",
    "mean_of_set",
    "table_of",
    "with_situation",
    "without",
]

Floats: TypeAlias = NDArray[np.float64]

MOST = float(np.finfo(np.float64).max)  # the largest number that is finite


class FeatureScorer(nn.Module, ABC):
    """A fitted model as a module: features in double precision in, scores in double precision out.

    What stands in the padding is finite, and has no effect. Scores of the padding may be anything finite. Numbers that
    single precision can't hold are buffers, since torch writes those of the code in single precision.

    Attributes
    ----------
    largest : how many objects a set may have; None for any number
    ids : places of features that say which alternative an object is, and so are never missing
    drawn_by : names of attributes that `draw` alone uses, and that so play no part in the graph
    """

    largest: int | None = None
    ids: tuple[int, ...] = ()
    drawn_by: frozenset[str] = frozenset()

    @abstractmethod
    def forward(self, objects: Tensor, mask: Tensor, situation: Tensor | None) -> Tensor:
        """Score ``objects (n, m, d)`` with ``mask (n, m)`` and ``situation (n, s)``: ``(n, m)``.

        NaN in a set that the model would refuse.
        """

    @abstractmethod
    def draw(self, n: int, m: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw features as they might come, to check a graph by: of objects (n, m, d), of situations (n, s)."""


def doubles(values: ArrayLike) -> Tensor:
    """Return a constant of a graph, in double precision."""
    return torch.tensor(np.asarray(values, dtype=np.float64))


def finite(values: Tensor, most: Tensor) -> Tensor:
    """Return which values are finite, given a buffer of `MOST`; ``torch.isinf`` of a graph takes them as single."""
    return (values >= -most) & (values <= most)


def table_of(values: Tensor) -> Tensor:
    """Return a table for `look_up`, of values (k,)."""
    return values.unsqueeze(1)


def look_up(table: Tensor, at: Tensor) -> Tensor:
    """Return the entries of a table at some places: one step of a graph, in which no size of the table stands."""
    return torch.nn.functional.embedding(at, table).squeeze(-1)


def with_situation(objects: Tensor, situation: Tensor | None) -> Tensor:
    """Return each object's features with those of its set's situation behind them."""
    if situation is None:
        return objects
    shared = situation.unsqueeze(1).expand(-1, objects.shape[1], -1)
    return torch.cat([objects, shared], dim=-1)


def at_set(values: Tensor, mask: Tensor) -> Tensor:
    """Return values (n, m, p) with 0 in the padding."""
    return torch.where(mask.unsqueeze(-1), values, 0.0)


def mean_of_set(values: Tensor, mask: Tensor) -> Tensor:
    """Average values (n, m, p) over the objects of each set: (n, 1, p); 0 where there is none."""
    count = mask.sum(1).clamp(min=1).to(values.dtype)[:, None, None]
    return at_set(values, mask).sum(1, keepdim=True) / count


def without(values: Tensor, places: Any) -> Tensor:
    """Leave out the features at some places."""
    left_out = {int(place) for place in places}
    if not left_out:
        return values
    kept = [place for place in range(values.shape[-1]) if place not in left_out]
    return values.index_select(-1, torch.tensor(kept, dtype=torch.int64))
