"""The position of objects: the place on a screen or in a list at which each was shown, a whole number or text."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from entourage.errors import DataError, ParameterError, ShapeError

__all__ = ["MOST_POSITIONS", "code_positions", "levels_of_positions", "pack_positions"]

Index: TypeAlias = NDArray[np.int64]

#: A column of more different values is no place on a screen.
MOST_POSITIONS = 1000


def pack_positions(position: Any, sizes: Index) -> NDArray[Any]:
    """Return positions, packed: whole numbers or text, one an object.

    Parameters
    ----------
    position : (n, m) array, a list of rows, or packed
    sizes : of the sets

    Examples
    --------
    >>> pack_positions([[0, 1], [2.0]], np.array([2, 1])).tolist()
    [0, 1, 2]
    """
    if isinstance(position, str):
        raise ParameterError(
            f"position={position!r} names a column, but X is no table. Pass one entry an object."
        )
    total = int(sizes.sum())
    rows = list(position)
    if rows and all(np.ndim(row) == 1 for row in rows):
        given = np.array([len(row) for row in rows])
        if given.shape != sizes.shape or (given != sizes).any():
            raise ShapeError(
                "position needs one entry an object, in rows as long as the sets; "
                f"{len(rows)} rows came for {len(sizes)} sets, or rows of other lengths."
            )
        labels = np.concatenate([np.asarray(row) for row in rows])
    else:
        labels = np.asarray(position)
    if labels.shape != (total,):
        raise ShapeError(f"position needs one entry an object, {total} in all; got shape {labels.shape}.")
    if labels.dtype.kind == "O":
        labels = np.array(labels.tolist())  # of text alone, or of numbers alone
    if labels.dtype.kind in "SU":
        return labels.astype(np.str_)
    if labels.dtype.kind in "biu" and labels.dtype != np.uint64:
        return labels.astype(np.int64)
    if labels.dtype.kind in "uf":
        numbers = labels.astype(np.float64)
        whole = np.abs(numbers) < 2.0**53
        whole[whole] = numbers[whole] == np.round(numbers[whole])
        if whole.all():
            return numbers.astype(np.int64)
        odd = numbers[int(np.argmin(whole))]
        raise DataError(
            f"position needs whole numbers or text, one an object; there is {odd:g}. Number the places from 0."
        )
    raise DataError(f"position needs whole numbers or text, one an object; got {labels.dtype}.")


def levels_of_positions(labels: NDArray[Any]) -> list[int] | list[str]:
    """Return the different positions, in order.

    Examples
    --------
    >>> levels_of_positions(np.array([2, 0, 2]))
    [0, 2]
    """
    found: list[Any] = np.unique(labels).tolist()
    if len(found) > MOST_POSITIONS:
        raise DataError(
            f"position holds {len(found):,} different values; a place on a screen or in a list has few. Check which "
            "column it is."
        )
    if len(found) < 2:
        raise DataError(
            f"position is {found[0]!r} for all objects, so it has no effect to learn. Leave it out."
        )
    return found


def code_positions(labels: NDArray[Any], levels: list[Any]) -> Index:
    """Return the place of each position among the levels, from 1; 0 for others.

    Examples
    --------
    >>> code_positions(np.array([2, 0, 7]), [0, 2]).tolist()
    [2, 1, 0]
    """
    known = np.array(levels)
    places = np.minimum(np.searchsorted(known, labels), len(known) - 1)
    return np.where(known[places] == labels, places + 1, 0).astype(np.int64)
