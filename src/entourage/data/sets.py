"""Sets of objects, packed: one array of objects, the offsets of the sets, a target per object."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entourage.data.batch_plan import plan_batches
from entourage.data.coerce import (
    Floats,
    Index,
    Seed,
    as_numpy,
    as_objects,
    as_offsets,
    as_rows,
    as_situation,
    as_targets,
    check_finite,
    offsets_of,
    pack_array,
    pack_list,
)
from entourage.data.joining import check_joinable
from entourage.data.positions import pack_positions
from entourage.data.random_subsets import draw_subsets
from entourage.data.ranks import align_grades
from entourage.data.relative import STANDINGS, Columns, Relative, find_places
from entourage.errors import DataError, ParameterError, ShapeError, check_choice, check_number

__all__ = ["AnySets", "Seed", "Sets", "is_frame"]


class Sets:
    """Many sets of objects, of differing sizes, in one packed array.

    Parameters
    ----------
    objects : array of shape (objects, features)
        The objects of the first set, then those of the second, and so on.
    offsets : integer array of shape (sets + 1,)
        Set ``i`` holds the objects ``offsets[i]`` to ``offsets[i + 1]``. No set is empty.
    targets : array of shape (objects,), optional
        What is known of each object. For ranking: its rank, 0 = best, equal = tied, NaN or -1 = not
        ranked.
    situation : array of shape (sets, situation features), optional
        Covariates of the sets themselves: the user, the day. A net sees these features beside those of every
        object.
    worst : float, optional
        The rank that counts as irrelevant, where targets came from relevance grades: the grade of an object is
        ``worst`` less its rank. Metrics of grades (nDCG, ERR, ...) go by it.
    encoder : TableEncoder, optional
        The encoder that made these sets from a table: its columns, and the levels of its categories. A model fitted to
        such sets refuses sets with other columns or levels.
    position : array of shape (objects,), optional
        Where each object was shown, a whole number or text: an effect to learn, no feature.

    Examples
    --------
    >>> sets = Sets.from_list([np.zeros((3, 2)), np.ones((5, 2))], targets=[[0, 1, 2], [0, 0, 1, 1, -1]])
    >>> sets
    Sets(2 sets of 3 to 5 objects, 2 features, targets)
    >>> sets[1].to_list()[0].shape
    (5, 2)
    """

    def __init__(
        self,
        objects: ArrayLike,
        offsets: ArrayLike,
        targets: ArrayLike | None = None,
        situation: ArrayLike | None = None,
        *,
        worst: float | None = None,
        encoder: Any = None,
        position: Any = None,
    ) -> None:
        self.worst, self.encoder = worst, encoder
        self.objects = as_objects(objects)
        self.offsets = as_offsets(offsets, len(self.objects))
        self.targets = None if targets is None else as_targets(targets, len(self.objects))
        self.situation = None if situation is None else as_situation(situation, len(self))
        check_finite(self.objects, self.offsets, self.situation)
        self.position = None if position is None else pack_positions(position, self.sizes)

    # --- building -------------------------------------------------------------------------------

    @classmethod
    def of(cls, X: "AnySets", targets: Any = None, situation: ArrayLike | None = None) -> "Sets":
        """Make sets of any accepted input: an (n, m, d) array, a list of (m, d) arrays, or `Sets`.

        Examples
        --------
        >>> Sets.of(np.zeros((4, 3, 2)))
        Sets(4 sets of 3 objects, 2 features)
        """
        if isinstance(X, Sets):
            sets = X if targets is None else X.with_targets(targets)
            if situation is None:
                return sets
            if X.situation is not None:
                raise ParameterError("situation came twice: these Sets carry their own.")
            beside = {"worst": sets.worst, "encoder": sets.encoder, "position": sets.position}
            return cls(sets.objects, sets.offsets, sets.targets, situation, **beside)
        if is_frame(X):
            raise ShapeError(
                "X is a table, and a table doesn't say which rows form a set. Name the columns: "
                "Sets.from_frame(table, set_id=..., target=...), or fit(table, set_id=..., target=...)."
            )
        if hasattr(X, "ndim") or hasattr(X, "__array__"):
            array = as_numpy(X)
            if array.ndim == 1 and array.dtype == object:  # ragged sets in an array of arrays
                return cls.from_list(list(array), targets, situation)
            return cls.from_array(array, targets, situation)
        if isinstance(X, Sequence):
            return cls.from_list(X, targets, situation)
        raise ShapeError(
            f"X needs to be an array of shape (sets, objects, features), a list of (objects, features) "
            f"arrays, or Sets; got {type(X).__name__}."
        )

    @classmethod
    def from_array(
        cls, X: ArrayLike, targets: ArrayLike | None = None, situation: ArrayLike | None = None
    ) -> "Sets":
        """Make sets of one size from an ``(n, m, d)`` array, with ``(n, m)`` targets."""
        objects, offsets = pack_array(X)
        if targets is not None or situation is not None:
            return cls._packed(objects, offsets, targets, situation)
        sets = cls._trusted(as_objects(objects), offsets, None, None)
        check_finite(sets.objects, offsets, None)
        return sets

    @classmethod
    def from_list(
        cls, X: Sequence[ArrayLike], targets: Any = None, situation: ArrayLike | None = None
    ) -> "Sets":
        """Make sets from a list of ``(m, d)`` arrays, one a set, with a list of targets."""
        return cls._packed(*pack_list(X), targets, situation)

    @classmethod
    def _packed(
        cls, objects: NDArray[Any], offsets: Index, targets: Any, situation: ArrayLike | None
    ) -> "Sets":
        rows = None if targets is None else np.concatenate(as_rows(targets, np.diff(offsets)))
        return cls(objects, offsets, rows, situation)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        set_id: str | None = None,
        target: str | None = None,
        target_kind: str = "rank",
        features: Sequence[str] | None = None,
        situation: Sequence[str] | None = None,
        ignore: Sequence[str] | None = None,
        missing: Sequence[str] = (),
        like: "Sets | None" = None,
    ) -> "Sets":
        """Make sets of a long table, one row an object; see :mod:`entourage.data.encoder`.

        Text columns are encoded by the levels of *this* table. Sets of two tables that were encoded separately can't
        be mixed: a model refuses sets whose columns or levels differ from those it was fitted to. Encode a second
        table ``like`` the first, or pass frames to ``fit`` and ``predict`` themselves.

        Parameters
        ----------
        frame : pandas, polars or Arrow
        set_id : the column that says which set a row belongs to; rows of a set need not stand together
        target : the column of what is known of each object
        target_kind : "rank" (smaller is better), "relevance" (larger is better), "choice" (1 for the chosen row of a
            set) or "subset" (1 for every chosen row)
        features : columns of the objects; by default all others
        situation : columns that describe the set as a whole
        ignore : columns that are no features
        missing : texts that stand for a missing value, such as "---"
        like : sets of another table, whose columns and levels hold for this one, too; instead of all the above

        Examples
        --------
        >>> import pyarrow as pa
        >>> table = pa.table({"race": [1, 1, 2, 2], "age": [31, 24, 28, 40], "place": [1, 2, 2, 1]})
        >>> sets = Sets.from_frame(table, set_id="race", target="place")
        >>> sets
        Sets(2 sets of 2 objects, 1 feature, targets)
        >>> Sets.from_frame(table.slice(2), like=sets)
        Sets(1 set of 2 objects, 1 feature, targets)
        """
        from entourage.data.encoder import TableEncoder
        from entourage.data.frames import arrow_table

        if like is not None:
            if like.encoder is None:
                raise ParameterError("like needs Sets that came from a table; these came from arrays.")
            known = like.encoder.target in arrow_table(frame).column_names
            made: Sets = like.encoder(frame, with_target=known).sets
            return made
        if set_id is None:
            raise ParameterError("from_frame needs set_id, the column that says which set a row belongs to.")
        encoder = TableEncoder.fit(
            frame,
            set_id=set_id,
            target=target,
            target_kind=target_kind,
            features=features,
            situation=situation,
            ignore=ignore,
            missing=missing,
        )
        return encoder(frame).sets

    def to_frame(self, feature_names: Sequence[str] | None = None) -> Any:
        """Return a long Arrow table: set, the features, target and position where there are such."""
        from entourage.data.frames import frame_of

        return frame_of(self, feature_names)

    @classmethod
    def concatenate(cls, parts: Sequence["Sets"]) -> "Sets":
        """Join several `Sets` into one."""
        check_joinable(parts)
        ranks = [np.empty(0) if p.targets is None else p.targets for p in parts]
        targets, worst = align_grades(ranks, [p.worst for p in parts])
        joined = cls._trusted(
            np.concatenate([p.objects for p in parts]),
            offsets_of(np.concatenate([p.sizes for p in parts])),
            None if parts[0].targets is None else np.concatenate(targets),
            None if parts[0].situation is None else np.concatenate([p.situation for p in parts]),
            like=parts[0],
        )
        joined.worst = worst
        joined.position = None if joined.position is None else np.concatenate([p.position for p in parts])
        return joined

    @classmethod
    def from_disk(
        cls,
        objects: "np.memmap[Any, Any]",
        offsets: Index,
        targets: Floats | None,
        situation: Floats | None,
        *,
        worst: float | None = None,
        encoder: Any = None,
    ) -> "Sets":
        """Make sets whose features stay on disk, as they are; see :mod:`entourage.data.memory_mapped`."""
        sets = cls._trusted(objects, offsets, targets, situation)
        sets.worst, sets.encoder = worst, encoder
        return sets

    @property
    def on_disk(self) -> bool:
        """Whether the features are in a mapped file rather than in memory."""
        return isinstance(self.objects, np.memmap)

    @classmethod
    def _trusted(
        cls,
        objects: Floats,
        offsets: Index,
        targets: Floats | None,
        situation: Floats | None,
        *,
        like: "Sets | None" = None,
        rows: Index | slice | None = None,
    ) -> "Sets":
        """Wrap arrays that were checked before; all else is that of ``like``, of these rows of its objects."""
        sets = cls.__new__(cls)
        sets.objects, sets.offsets, sets.targets, sets.situation = objects, offsets, targets, situation
        sets.worst = None if like is None else like.worst
        sets.encoder = None if like is None else like.encoder
        own = None if like is None else like.position
        sets.position = own if own is None or rows is None else own[rows]
        return sets

    def with_targets(self, targets: Any, *, worst: float | None = None) -> "Sets":
        """Return the same objects with other targets: packed, ``(n, m)`` or a list of rows."""
        packed = isinstance(targets, np.ndarray) and targets.dtype != object and targets.ndim == 1
        flat = targets if packed else np.concatenate(as_rows(targets, self.sizes))
        sets = Sets._trusted(
            self.objects, self.offsets, as_targets(flat, len(self.objects)), self.situation, like=self
        )
        sets.worst = worst
        return sets

    def with_features(self, objects: Floats, situation: Floats | None) -> "Sets":
        """Return the same sets with transformed features, taken as they are."""
        return Sets._trusted(objects, self.offsets, self.targets, situation, like=self)

    def with_position(self, position: Any) -> "Sets":
        """Return the same sets with positions of their objects: packed, ``(n, m)``, rows, or None for none."""
        sets = Sets._trusted(self.objects, self.offsets, self.targets, self.situation, like=self)
        sets.position = None if position is None else pack_positions(position, self.sizes)
        return sets

    def relative(self, columns: Columns = "all", standings: Sequence[str] = STANDINGS) -> "Sets":
        """Return the same sets in which objects also have their standing in the set, behind their features.

        Parameters
        ----------
        columns : names of columns or places of features; "all" for every number
        standings : of :data:`entourage.data.relative.STANDINGS`

        Examples
        --------
        >>> Sets.of([[[1.0], [3.0]]]).relative(standings=["centred", "rank"]).objects.tolist()
        [[1.0, -1.0, 0.25], [3.0, 1.0, 0.75]]
        """
        for standing in standings:
            check_choice("standings", standing, STANDINGS)
        places = find_places(columns, self)
        if places is None:
            return self
        seen = Relative(places, tuple(standings)).of(self)
        wider = self.with_features(np.concatenate([self.objects, seen], axis=1), self.situation)
        wider.encoder = None  # its columns are fewer
        return wider

    # --- inspection -----------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def shape(self) -> tuple[int]:
        """The number of sets, as scikit-learn's splitters ask for it."""
        return (len(self),)

    @property
    def sizes(self) -> Index:
        """How many objects each set holds."""
        return self.offsets[1:] - self.offsets[:-1]

    @property
    def n_features(self) -> int:
        """How many features an object has."""
        return int(self.objects.shape[1])

    @property
    def n_situation_features(self) -> int:
        """How many features a set itself has."""
        return 0 if self.situation is None else int(self.situation.shape[1])

    @property
    def uniform_size(self) -> int | None:
        """The one size of all sets, or None where sizes differ."""
        size = int(self.offsets[1])
        same = len(self.objects) == size * len(self) and (len(self) == 1 or (self.sizes == size).all())
        return size if same else None

    def __repr__(self) -> str:
        sizes = self.sizes
        low, high = int(sizes.min()), int(sizes.max())
        what = [
            f"{len(self)} set{'s' * (len(self) != 1)} of "
            + (f"{low} object{'s' * (low != 1)}" if low == high else f"{low} to {high} objects"),
            f"{self.n_features} feature{'s' * (self.n_features != 1)}",
        ]
        what += ["targets"] * (self.targets is not None)
        what += [f"{self.n_situation_features} situation features"] * (self.situation is not None)
        what += ["positions"] * (self.position is not None)
        return f"Sets({', '.join(what)})"

    # --- selection ------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> "Sets":
        """Return the chosen sets: an integer, a slice, an array of integers or of booleans."""
        if isinstance(key, tuple):  # scikit-learn asks for sets[index, ...]
            key = key[0]
        if isinstance(key, slice):
            start, stop, stride = key.indices(len(self))
            if stride == 1 and stop > start:
                return self._stretch(start, stop)
        if isinstance(key, (int, np.integer)):
            i = int(key) + (len(self) if key < 0 else 0)
            if not 0 <= i < len(self):
                raise IndexError(f"There are {len(self)} sets; set {key} was asked for.")
            return self._stretch(i, i + 1)
        chosen = np.arange(len(self))[key]
        if len(chosen) == 0:
            raise DataError("This choice leaves no set; at least one is needed.")
        return self._take(chosen)

    def __iter__(self) -> Iterator["Sets"]:
        return (self._stretch(i, i + 1) for i in range(len(self)))

    def _stretch(self, start: int, stop: int) -> "Sets":
        """Neighbouring sets, without a copy."""
        first, last = self.offsets[start], self.offsets[stop]
        return Sets._trusted(
            self.objects[first:last],
            self.offsets[start : stop + 1] - first,
            None if self.targets is None else self.targets[first:last],
            None if self.situation is None else self.situation[start:stop],
            like=self,
            rows=slice(first, last),
        )

    def _take(self, chosen: Index) -> "Sets":
        offsets = offsets_of(self.sizes[chosen])
        rows = np.arange(offsets[-1]) + np.repeat(self.offsets[chosen] - offsets[:-1], np.diff(offsets))
        return self._pick(rows, offsets, chosen)

    def _pick(self, rows: Index, offsets: Index, chosen: Index) -> "Sets":
        return Sets._trusted(
            self.objects[rows],
            offsets,
            None if self.targets is None else self.targets[rows],
            None if self.situation is None else self.situation[chosen],
            like=self,
            rows=rows,
        )

    def split(self, fraction: float, random_state: Seed = None) -> tuple["Sets", "Sets"]:
        """Split the sets at random; the second part holds ``fraction`` of them, at least one.

        Examples
        --------
        >>> train, test = Sets.of(np.zeros((10, 3, 2))).split(0.2, random_state=0)
        >>> len(train), len(test)
        (8, 2)
        """
        check_number("fraction", fraction, above=0, below=1)
        if len(self) < 2:
            raise DataError("One set can't be split in two; at least 2 sets are needed.")
        order = np.random.default_rng(random_state).permutation(len(self))
        held = min(max(1, round(fraction * len(self))), len(self) - 1)
        return self._take(np.sort(order[held:])), self._take(np.sort(order[:held]))

    def sample_subsets(self, size: int, random_state: Seed = None, *, per_set: int = 1) -> "Sets":
        """Draw ``per_set`` subsets of ``size`` objects from each set, without replacement.

        Objects keep their order and their targets. A set of at most ``size`` objects is taken whole.

        Examples
        --------
        >>> Sets.of(np.zeros((10, 30, 2))).sample_subsets(5, random_state=0, per_set=3)
        Sets(30 sets of 5 objects, 2 features)
        """
        rows, sizes, chosen = draw_subsets(self.offsets, size, random_state, per_set=per_set)
        return self._pick(rows, offsets_of(sizes), chosen)

    # --- conversion -----------------------------------------------------------------------------

    def to_array(self) -> Floats:
        """Return the objects as an ``(n, m, d)`` array; the sets must be of one size."""
        size = self.uniform_size
        if size is None:
            raise ShapeError(f"{self!r} differ in size; use to_list() or to_padded().")
        return self.objects.reshape(len(self), size, self.n_features)

    def to_list(self) -> list[Floats]:
        """Return the objects as a list of ``(m, d)`` arrays (views, not copies)."""
        return np.split(self.objects, self.offsets[1:-1])

    def to_padded(self) -> tuple[Floats, Floats | None, NDArray[np.bool_]]:
        """Return ``(n, m, d)`` objects padded with 0, ``(n, m)`` targets padded with NaN, and the mask."""
        mask = np.arange(int(self.sizes.max())) < self.sizes[:, None]
        objects = np.zeros((*mask.shape, self.n_features), dtype=self.objects.dtype)
        objects[mask] = self.objects
        return objects, None if self.targets is None else self.pad(self.targets), mask

    def batches(
        self, batch_size: int = 256, *, max_objects: int | None = None, random_state: Seed = None
    ) -> Iterator["Sets"]:
        """Iterate over all sets in batches of about one size; shuffled where a ``random_state`` is given."""
        rng = None if random_state is None else np.random.default_rng(random_state)
        for chosen in plan_batches(self.sizes, batch_size, max_objects=max_objects, rng=rng):
            yield self._take(chosen)

    def by_size(self) -> Iterator[tuple[Index, Index]]:
        """For each size: which sets have it, and the rows of their objects, ``(sets, size)``."""
        sizes = self.sizes
        for size in np.unique(sizes) if self.uniform_size is None else sizes[:1]:
            chosen = np.flatnonzero(sizes == size)
            yield chosen, self.offsets[chosen][:, None] + np.arange(size)

    def pad(self, values: NDArray[Any]) -> Floats:
        """Bring packed values, one an object, into ``(n, m)`` with NaN in the padding, for the metrics."""
        mask = np.arange(int(self.sizes.max())) < self.sizes[:, None]
        padded = np.full(mask.shape, np.nan)
        padded[mask] = values
        return padded

    def unpack(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """Cut packed values, one an object, into one array a set."""
        return np.split(values, self.offsets[1:-1])


AnySets: TypeAlias = "Sets | ArrayLike | Sequence[ArrayLike]"


def is_frame(X: Any) -> bool:
    """Whether this is a table: pandas, polars or Arrow."""
    return hasattr(X, "columns") and not isinstance(X, Sets)
