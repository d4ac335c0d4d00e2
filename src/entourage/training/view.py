"""What a net sees of sets: numbers brought to a common scale and, if asked for, their standing in the set.

In this order: columns with heavy tails are mapped by their quantiles (:mod:`entourage.training.quantile_map`), chosen
columns are also seen relative to their set (:mod:`entourage.data.relative`) or piecewise, and all are standardised
(:mod:`entourage.training.standardizer`). Everything is learnt from training data and kept with the model.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from entourage.data.relative import MONOTONE_STANDINGS, Relative
from entourage.data.sets import Sets
from entourage.errors import ParameterError
from entourage.training.quantile_map import QuantileMap
from entourage.training.standardizer import Standardizer

__all__ = ["SCALINGS", "Piecewise", "View"]

Floats: TypeAlias = NDArray[np.float64]

#: How numbers may be brought to a common scale.
SCALINGS = (True, False, "moments", "quantiles", "piecewise")

BINS = 12  # of a column seen piecewise, at most
_SMALL = 1e-6  # the step of finite differences, in standard deviations
_ROWS = 1 << 18  # of a table on disk, transformed at a time


@dataclass(frozen=True)
class Piecewise:
    """Columns as piecewise-linear encodings: how much of each stretch between two quantiles a value has passed.

    Examples
    --------
    >>> Piecewise((0,), (np.array([0.0, 1.0, 3.0]),)).of(np.array([[0.5], [2.0], [9.0]])).tolist()
    [[0.5, 0.0], [1.0, 0.5], [1.0, 1.0]]
    """

    places: tuple[int, ...]
    edges: tuple[Floats, ...]  # of each column, increasing

    @classmethod
    def fit(cls, values: NDArray[Any], places: Sequence[int]) -> Self:
        """Learn edges from the quantiles of these columns; one of fewer than three values has none."""
        kept, edges = [], []
        for place in places:
            ends = np.unique(np.quantile(values[:, place], np.linspace(0, 1, BINS + 1), method="lower"))
            if len(ends) > 2:
                kept.append(int(place))
                edges.append(ends.astype(np.float64))
        return cls(tuple(kept), tuple(edges))

    @property
    def width(self) -> int:
        """How many numbers it adds to an object."""
        return sum(len(ends) - 1 for ends in self.edges)

    def of(self, values: NDArray[Any]) -> Floats:
        """Return these numbers, (objects, width)."""
        parts = [
            np.clip((values[:, place, None] - ends[:-1]) / np.diff(ends), 0.0, 1.0)
            for place, ends in zip(self.places, self.edges, strict=True)
        ]
        return np.concatenate([np.empty((len(values), 0)), *parts], axis=1)


@dataclass(frozen=True)
class View:
    """What a net sees of sets; see :mod:`entourage.training.view`.

    Examples
    --------
    >>> sets = Sets.of(np.array([[[1.0, 5.0], [3.0, 5.0]]]))
    >>> View.fit(sets)(sets).objects.tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    >>> view = View.fit(sets, relative=Relative((0,), ("rank",)))
    >>> view(sets).objects.tolist(), view.n_features, view.n_inputs
    ([[-1.0, 0.0, -1.0], [1.0, 0.0, 1.0]], (2, 0), 3)
    """

    standardise: Standardizer
    n_features: tuple[int, int]  # that objects have, and that situations have
    maps: tuple[QuantileMap | None, QuantileMap | None] = (None, None)  # of objects and of situations
    relative: Relative | None = None
    piecewise: Piecewise | None = None
    level_counts: tuple[tuple[int, ...], ...] = ()  # how often each level of each category was seen
    monotone: tuple[
        tuple[int, int], ...
    ] = ()  # places of features, and the signs of their effects on own demand

    @classmethod
    def fit(
        cls,
        sets: Sets,
        scaling: bool | str = True,
        categories: Sequence[tuple[int, int]] = (),
        *,
        relative: Relative | None = None,
        weights: Floats | None = None,
        ignore_constant: bool = True,
        monotone: Sequence[tuple[int, int]] = (),
    ) -> Self:
        """Learn from sets.

        Parameters
        ----------
        sets : what to learn from
        scaling : True to standardise, after a map of columns with heavy tails; "moments" without that map;
            "quantiles" with every number mapped; "piecewise" with every number also encoded piecewise; False
            leaves numbers as they are, but for constant ones
        categories : places of features that are codes, which stay as they are, and their numbers of levels
        relative : which columns to see relative to their set, too
        weights : one a set
        ignore_constant : see `Standardizer.fit`
        monotone : places of features, and the signs of their effects on own demand; see `monotone_inputs`
        """
        if scaling not in SCALINGS:
            shown = ", ".join(map(repr, SCALINGS))
            raise ParameterError(f"standardize needs one of {shown}; got {scaling!r}.")
        n_features = sets.n_features, sets.n_situation_features
        leave = [place for place, _ in categories]
        blank = cls(Standardizer((), ()), n_features, (None, None), relative, None)
        if scaling not in (False, "moments"):
            of_objects = None if weights is None else np.repeat(weights, sets.sizes)
            every = scaling == "quantiles"
            numbers = [place for place in range(sets.n_features) if place not in set(leave)]
            first = QuantileMap.fit(sets.objects, numbers, of_objects, every=every)
            second = None
            if sets.situation is not None:
                second = QuantileMap.fit(
                    sets.situation, range(sets.n_situation_features), weights, every=every
                )
            maps = tuple(found if found and found.places else None for found in (first, second))
            blank = cls(blank.standardise, n_features, (maps[0], maps[1]), relative, None)
            if scaling == "piecewise":
                sample = blank._mapped(sets.objects[:: -(-len(sets.objects) // 200_000)], 0)
                encoded = Piecewise.fit(sample, numbers)
                blank = cls(blank.standardise, n_features, blank.maps, relative, encoded)
        standardise = Standardizer.fit(
            blank._pieces(sets),
            None if sets.situation is None else blank._mapped(sets.situation, 1),
            scaling is not False,
            leave,
            weights=weights,
            sizes=sets.sizes,
            ignore_constant=ignore_constant,
        )
        counts: tuple[tuple[int, ...], ...] = ()
        if ignore_constant:  # else more sets will come, with levels that are not here: none is shrunk
            counts = tuple(_count_levels(sets.objects[:, place], levels) for place, levels in categories)
        return cls(standardise, n_features, blank.maps, relative, blank.piecewise, counts, tuple(monotone))

    @property
    def n_inputs(self) -> int:
        """How many numbers a net sees of an object, those of its situation included."""
        return sum(len(means) for means in self.standardise.means)

    @property
    def monotone_inputs(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]], list[int]]:
        """Which inputs come from monotone features: see :class:`entourage.nets.monotone.Monotone`.

        Those of the object alone and those that say where it stands in its set, each with its sign, and those that
        are not monotone (the z-score within the set). Every map of a view is increasing, so signs stay.

        Examples
        --------
        >>> sets = Sets.of(np.array([[[1.0, 5.0], [3.0, 4.0]]]))
        >>> view = View.fit(sets, relative=Relative((1,), ("rank", "z-score")), monotone=[(1, -1)])
        >>> view.monotone_inputs
        ([(1, -1)], [(2, -1)], [3])
        """
        signs, at = dict(self.monotone), self.n_features[0]
        own, standings, ignored = list(self.monotone), [], []
        if self.relative is not None:
            for place, standing in itertools.product(self.relative.places, self.relative.standings):
                if place in signs and standing in MONOTONE_STANDINGS:
                    standings.append((at, signs[place]))
                elif place in signs:
                    ignored.append(at)
                at += 1
        if self.piecewise is not None:
            for place, edges in zip(self.piecewise.places, self.piecewise.edges, strict=True):
                if place in signs:
                    own += [(at + i, signs[place]) for i in range(len(edges) - 1)]
                at += len(edges) - 1
        return own, standings, ignored

    def __call__(self, sets: Sets) -> Sets:
        """Return the same sets as a net sees them, in float32."""
        return sets.with_features(self.standardise(self._wider(sets, sets.objects), 0), self._situation(sets))

    def situations(self, sets: Sets) -> Sets:
        """Return the same sets with the situations that a net sees, their objects as they are."""
        return sets.with_features(sets.objects, self._situation(sets))

    def with_slopes(self, sets: Sets, column: int) -> tuple[Floats, Floats]:
        """Return what a net sees of sets, in double precision, and its derivatives by a raw column of the objects.

        Both are (objects, inputs), the situation behind the features; each object's inputs by its own value. Where a
        map has a kink, the mean of both sides. Not with ``relative``: there an input depends on the other objects.
        """
        if self.relative is not None:
            raise ParameterError("What is seen relative to the set has no derivative by one object alone.")
        values = np.array(sets.objects, dtype=np.float64)
        own = values[:, column]
        step = _SMALL * (float(own.std()) or float(np.abs(own).max()) or 1.0)
        step = max(step, 64 * float(np.spacing(np.abs(own).max())))
        ahead, behind = values.copy(), values.copy()
        ahead[:, column] += step
        behind[:, column] -= step
        width = ahead[:, column] - behind[:, column]  # after rounding
        scales = self.standardise.scales[0]
        seen = (self._wider(sets, values) - self.standardise.means[0]) / scales
        slopes = (self._wider(sets, ahead) - self._wider(sets, behind)) / scales / width[:, None]
        if sets.situation is not None:
            shared = self._mapped(sets.situation, 1) - self.standardise.means[1]
            seen = np.concatenate(
                [seen, np.repeat(shared / self.standardise.scales[1], sets.sizes, axis=0)], axis=1
            )
            slopes = np.concatenate([slopes, np.zeros((len(slopes), shared.shape[1]))], axis=1)
        return seen, slopes

    def on_batch(self, objects: Tensor, mask: Tensor) -> Tensor:
        """Return gathered objects (n, m, d) as a net sees them, for sets whose features stay on disk."""
        values = objects[mask].numpy()  # packed
        offsets = np.concatenate([[0], np.cumsum(mask.sum(1).numpy())])
        some = Sets(np.zeros((len(values), 1)), offsets)
        seen = torch.from_numpy(self.standardise(self._wider(some, values), 0))
        padded = seen.new_zeros((*mask.shape, seen.shape[1]))
        padded[mask] = seen
        return padded

    def _situation(self, sets: Sets) -> NDArray[np.float32] | None:
        if sets.situation is None:
            return None
        return self.standardise(self._mapped(sets.situation, 1), 1)

    def _mapped(self, values: NDArray[Any], part: int) -> NDArray[Any]:
        found = self.maps[part]
        return values if found is None else found(values)

    def _wider(self, sets: Sets, values: NDArray[Any]) -> NDArray[Any]:
        """Return all numbers of objects, not yet standardised; ``sets`` says which belong together."""
        mapped = self._mapped(values, 0)
        if self.relative is None and self.piecewise is None:
            return mapped
        parts = [mapped]
        if self.relative is not None:
            parts.append(self.relative.of_values(mapped, sets))
        if self.piecewise is not None:
            parts.append(self.piecewise.of(mapped))
        return np.concatenate(parts, axis=1)

    def _pieces(self, sets: Sets) -> Callable[[], Iterator[NDArray[Any]]]:
        """Return what iterates over all numbers of all objects, some rows at a time."""
        if self.maps[0] is None and self.relative is None and self.piecewise is None:
            plain = sets.objects
            return lambda: (plain[start : start + _ROWS] for start in range(0, len(plain), _ROWS))
        borders = [0]
        while borders[-1] < len(sets):  # whole sets, about _ROWS objects at a time
            most = sets.offsets[borders[-1]] + _ROWS
            borders.append(max(int(np.searchsorted(sets.offsets, most, side="right")) - 1, borders[-1] + 1))
        if not sets.on_disk:  # in the same pieces, so that sums are the same to the bit
            values, ends = self._wider(sets, sets.objects), sets.offsets[borders]
            return lambda: (values[begin:end] for begin, end in itertools.pairwise(ends))

        def transformed() -> Iterator[NDArray[Any]]:
            for begin, end in itertools.pairwise(borders):
                some = sets[begin:end]
                yield self._wider(some, some.objects)

        return transformed


def _count_levels(codes: NDArray[Any], levels: int) -> tuple[int, ...]:
    """Count the codes 1 to ``levels``; others are levels never seen."""
    known = codes[(codes >= 1) & (codes <= levels)].astype(np.int64) - 1
    return tuple(np.bincount(known, minlength=levels).tolist())
