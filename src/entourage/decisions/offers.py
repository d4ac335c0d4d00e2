"""What was offered: the sets that a question is about, the way back to their table, labels and columns by name."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entourage.choice import NestedLogit
from entourage.data.frames import arrow_table, column_of
from entourage.data.grouping import weights_of
from entourage.data.sets import AnySets, Sets, is_frame
from entourage.data.table_places import marks_of_missing, ordered_features
from entourage.errors import DataError, ParameterError, ShapeError, check_choice, check_number
from entourage.estimators.inputs import check_weights, encoder_of

__all__ = ["Floats", "Index", "Offers", "Pairs"]

MOST_LABELS = 200
Floats: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Offers:
    """Sets, and where their objects came from.

    Attributes
    ----------
    sets : the choice sets
    order : of each packed object, its row in the table; its place among the objects where there is no table
    ids : of each set, its id in the table, or its number
    weights : of each set, mean 1
    frame : the table, None where there is none
    encoder : how the model reads a table, None where it was fitted to arrays
    model : whom the question is put to
    """

    sets: Sets
    order: Index
    ids: list[Any]
    weights: Floats
    frame: Any = None
    encoder: Any = None
    model: Any = None

    @classmethod
    def of(
        cls, model: Any, X: AnySets, situation: ArrayLike | None = None, sample_weight: Any = None
    ) -> "Offers":
        """Read what a model is asked about; a table as the model learnt to read it.

        Examples
        --------
        >>> Offers.of(None, np.zeros((2, 3, 1))).ids
        [0, 1]
        """
        if is_frame(X):
            if situation is not None:
                raise ParameterError(
                    "The columns of the situation were given to fit; leave situation out here."
                )
            encoder = encoder_of(model)
            table = arrow_table(X)
            packed = encoder(table, with_target=False)
            if isinstance(sample_weight, str):
                sample_weight = weights_of(table, packed, sample_weight)
            weights = _scaled(check_weights(sample_weight, len(packed.sets)), len(packed.sets))
            return cls(packed.sets, packed.order, packed.ids.to_pylist(), weights, table, encoder, model)
        if isinstance(sample_weight, str):
            raise ParameterError(
                f"sample_weight={sample_weight!r} names a column, but there is no table. Pass one weight a set."
            )
        sets = Sets.of(X, None, situation)
        weights = _scaled(check_weights(sample_weight, len(sets)), len(sets))
        encoder = sets.encoder
        if encoder is None and getattr(model, "table_", None) is not None:
            encoder = encoder_of(model)
        return cls(sets, np.arange(len(sets.objects)), list(range(len(sets))), weights, None, encoder, model)

    def some(self, chosen: Index) -> "Offers":
        """Return some of the sets, by number; rows and ids stay those of the input."""
        sets = self.sets[chosen]
        parts = self.sets.unpack(self.order)
        rows = np.concatenate([parts[i] for i in chosen])
        ids = [self.ids[i] for i in chosen]
        return Offers(sets, rows, ids, self.weights[chosen], self.frame, self.encoder, self.model)

    @property
    def names(self) -> list[str]:
        """What the features of objects are called."""
        if self.encoder is None:
            return [f"x{i}" for i in range(self.sets.n_features)]
        return list(self.encoder.feature_names)

    @property
    def owner(self) -> Index:
        """The set of each object."""
        return np.repeat(np.arange(len(self.sets)), self.sets.sizes)

    def place_of(self, feature: str | int, what: str = "feature") -> int:
        """Return the place of a column that can be moved by itself: a number of the objects.

        Examples
        --------
        >>> Offers.of(None, np.zeros((2, 3, 1))).place_of("x0")
        0
        """
        if not isinstance(feature, str):
            check_number(what, feature, least=0, below=self.sets.n_features, whole=True)
            place = int(feature)
        else:
            place = self._named(feature, what)
        if self.encoder is not None and place not in ordered_features(self.encoder):
            raise DataError(
                f"{what}={feature!r} is {self.names[place]!r}, no number: a category, or a mark of missing values, "
                "can't grow by one percent. To compare its levels, change it with entourage whatif."
            )
        if place in [at for at, _ in getattr(self.model, "categories_", None) or []]:
            raise DataError(
                f"{what}={feature!r} holds codes of levels, which have no order and can't be moved."
            )
        ids = isinstance(self.model, NestedLogit) and self.model.is_id(place)
        if ids or getattr(self.model, "alternatives", None) is not None:
            raise DataError(
                f"{what}={feature!r} holds ids of alternatives, which have no order and can't be moved."
            )
        return place

    def _named(self, feature: str, what: str) -> int:
        names = self.names
        if feature in names:
            return names.index(feature)
        if self.encoder is not None:
            for column in self.encoder.columns:
                if column.name == feature and column.role == "situation":
                    raise DataError(
                        f"{what}={feature!r} is a column of the situation, the same for all objects of a set. Name a "
                        "column of the objects; to change the situation, see entourage whatif."
                    )
                if column.name == feature:
                    raise DataError(
                        f"{what}={feature!r} holds categories, which can't grow by one percent. To compare its levels, "
                        "change it with entourage whatif."
                    )
        elif not (feature.startswith("x") and feature[1:].isdigit()):
            raise ParameterError(
                f"{what}={feature!r} names a column, but the model and the sets came from arrays. Give the place of "
                f"the column, 0 to {self.sets.n_features - 1}."
            )
        check_choice(what, feature, names)
        raise AssertionError  # check_choice raises

    def values(self, place: int) -> Floats:
        """Return a column in double precision, NaN where the table has no value."""
        values = self.sets.objects[:, place].astype(np.float64)
        mark = self.mark_of_missing(place)
        return values if mark is None else np.where(self.sets.objects[:, mark] == 1, np.nan, values)

    def mark_of_missing(self, place: int) -> int | None:
        """Return the place of the feature that is 1 where a column was missing; None where there is none."""
        return None if self.encoder is None else marks_of_missing(self.encoder).get(place)

    def labels(self, by: str | ArrayLike | None) -> tuple[Index, list[Any]]:
        """Return of each object the place of its label, and the labels.

        ``by`` is a column of the table, "place" (where an object stands in its set), or one label an object.
        """
        if by is None:
            return np.zeros(len(self.sets.objects), dtype=np.int64), ["all"]
        if isinstance(by, str) and (self.frame is None or by not in self.frame.column_names):
            if by == "place":
                values: Any = np.arange(len(self.sets.objects)) - self.sets.offsets[self.owner]
            elif self.frame is None:
                values = self.values(self.place_of(by, "by"))
            else:
                values = column_of(self.frame, by, "column by=").to_numpy()
        elif isinstance(by, str):
            values = column_of(self.frame, by).combine_chunks().to_numpy(zero_copy_only=False)[self.order]
        else:
            values = np.asarray(by)
            if values.shape != (len(self.order),):
                raise ShapeError(
                    f"by needs one label for each of {len(self.order)} objects; got shape {values.shape}."
                )
            values = values[self.order]
        kinds = values.dtype.kind
        if kinds in "iufb" and not (kinds == "f" and np.isnan(values).any()):
            found, codes = np.unique(values, return_inverse=True)
            names = [f"{v:g}" if kinds == "f" else str(v) for v in found.tolist()]
        else:
            texts = np.array(["missing" if v is None or v != v else str(v) for v in values.tolist()])
            found, codes = np.unique(texts, return_inverse=True)
            names = found.tolist()
        if len(names) > MOST_LABELS:
            raise DataError(
                f"There are {len(names):,} labels, and {MOST_LABELS} are the most. Round them, or take another column."
            )
        return codes.reshape(-1), names

    def in_rows(self, packed: NDArray[Any]) -> NDArray[Any]:
        """Return packed values in the order of the input: the rows of a table."""
        values = np.empty_like(packed)
        values[self.order] = packed
        return values


@dataclass(frozen=True, eq=False)
class Pairs:
    """All pairs (i, j) of objects of one set, packed: row i of the matrix of the first set first.

    Examples
    --------
    >>> pairs = Pairs.of(Sets.of([[[1.0], [2.0]], [[3.0]]]))
    >>> pairs.i.tolist(), pairs.j.tolist(), pairs.own.tolist()
    ([0, 0, 1, 1, 2], [0, 1, 0, 1, 2], [0, 3, 4])
    """

    i: Index
    j: Index
    own: Index  # where i = j
    sizes: Index

    @classmethod
    def of(cls, sets: Sets) -> "Pairs":
        """Make the pairs of all sets."""
        sizes = sets.sizes
        m = np.repeat(sizes, sizes)  # of the set of each object
        first = np.repeat(sets.offsets[:-1], sizes)
        i = np.repeat(np.arange(len(m)), m)
        begins = np.cumsum(m) - m
        j = np.arange(int(m.sum())) - np.repeat(begins - first, m)
        own = begins + np.arange(len(m)) - first
        return cls(i, j, own, sizes)

    @staticmethod
    def pack(matrices: Sequence[Floats]) -> Floats:
        """Join matrices, one a set."""
        return np.concatenate([np.asarray(matrix, dtype=np.float64).ravel() for matrix in matrices])

    def unpack(self, flat: Floats) -> list[Floats]:
        """Cut packed values into one (m, m) matrix a set."""
        ends = np.cumsum(self.sizes**2)[:-1]
        return [part.reshape(m, m) for part, m in zip(np.split(flat, ends), self.sizes, strict=True)]


def _scaled(weights: Floats | None, n: int) -> Floats:
    return np.ones(n) if weights is None else weights / weights.mean()
