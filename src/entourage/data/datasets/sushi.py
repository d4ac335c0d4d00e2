"""Kamishima's sushi preferences: 5,000 people, each of whom ordered ten kinds of sushi.

Nothing is downloaded here: the files are available from https://www.kamishima.net/sushi/
(sushi3-2016.zip), for research, not to be passed on. T. Kamishima, "Nantonac Collaborative Filtering:
Recommendation Based on Order Responses", KDD 2003.

The item numbers of set A are its own. README-en.txt in that archive lists, under "ID for the item set
A", 0 ebi, 1 anago, 2 maguro, 3 ika, 4 uni, 5 ikura, 6 tamago, 7 toro, 8 tekka_maki, 9 kappa_maki, and
under "ID for the item set B", whose numbers are the rows of sushi3.idata, the same kinds as 0, 1, 2, 3,
4, 6, 7, 8, 26 and 29. Taking the numbers of set A for rows of sushi3.idata gives half of the kinds the
features of others.
"""

import io
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from entourage.data.compressed import READ_ERRORS, find_compressed, open_compressed
from entourage.data.datasets.numbers import read_number
from entourage.data.sets import Sets
from entourage.errors import DataError, check_choice

__all__ = ["ITEM_FEATURES", "SET_A_ROWS", "USER_FEATURES", "load_sushi"]

#: Row in sushi3.idata of each kind in set A.
SET_A_ROWS = (0, 1, 2, 3, 4, 6, 7, 8, 26, 29)

# A column of a file and, where it is categorical, the number of its categories (0 = numeric).
_ITEM_COLUMNS = {
    "style": 2,
    "major_group": 2,
    "minor_group": 12,
    "heaviness": 0,
    "frequency_eaten": 0,
    "price": 0,
    "frequency_sold": 0,
}
_USER_COLUMNS = {
    "gender": 2,
    "age": 6,
    "response_time": 0,
    "prefecture_until_15": 48,
    "region_until_15": 12,
    "east_west_until_15": 2,
    "prefecture": 48,
    "region": 12,
    "east_west": 2,
    "moved": 2,
}
_HOME = "The files are available from https://www.kamishima.net/sushi/ (sushi3-2016.zip)"


def _names(columns: dict[str, int]) -> tuple[str, ...]:
    return tuple(
        name
        for column, count in columns.items()
        for name in ([f"{column}={i}" for i in range(count)] if count else [column])
    )


#: Names of the 20 features of an object.
ITEM_FEATURES = _names(_ITEM_COLUMNS)
#: Names of the 135 features of a situation.
USER_FEATURES = _names(_USER_COLUMNS)


def load_sushi(folder: str | os.PathLike[str], which: str = "a", user_features: bool = True) -> Sets:
    """Load the orders of set A (the same ten kinds for all) or set B (ten of a hundred, drawn for each).

    Style, major and minor group of a kind are one-hot; heaviness (0 = heavy), how often it is eaten,
    price and how often it is sold are numbers, see ``ITEM_FEATURES``. The objects of a set stand in the
    order of their item numbers, so that their places say nothing about their ranks.

    Parameters
    ----------
    folder : holds sushi3.idata, sushi3.udata and sushi3a.5000.10.order or sushi3b.5000.10.order, plain or compressed
    which : "a" or "b"
    user_features : whether who ordered is the situation of each set, see ``USER_FEATURES``
    """
    which = check_choice("which", which, ["a", "b"])
    folder = Path(folder)
    items = _read_features(folder / "sushi3.idata", _ITEM_COLUMNS, skip=2)
    path = folder / f"sushi3{which}.5000.10.order"
    if which == "a":
        if len(items) <= max(SET_A_ROWS):
            raise DataError(
                f"{folder / 'sushi3.idata'} needs a row for every kind in set A, "
                f"{max(SET_A_ROWS) + 1} rows at least; {len(items)} came. {_HOME}."
            )
        items = items[list(SET_A_ROWS)]
    orders = _read_orders(path, len(items))
    situation = None
    if user_features:
        users = folder / "sushi3.udata"
        situation = _read_features(users, _USER_COLUMNS, skip=1)
        if len(situation) != len(orders):
            raise DataError(
                f"{users} needs a line for each of the {len(orders)} orders in {path.name}; "
                f"{len(situation)} came. Take both files from one archive."
            )
    chosen = [np.sort(order) for order in orders]
    targets = np.concatenate([np.argsort(order) for order in orders])  # rank of the smallest number, ...
    offsets = np.cumsum([0, *map(len, orders)])
    return Sets(items[np.concatenate(chosen)], offsets, targets, situation)


def _read_features(path: Path, columns: dict[str, int], skip: int) -> NDArray[np.float32]:
    """Read a tab-separated file with ``skip`` columns before the features, one-hot where categorical."""
    lines = _read_lines(path)
    features = np.zeros((len(lines), len(_names(columns))), dtype=np.float32)
    for row, (number, line) in enumerate(lines):
        words = line.rstrip("\r\n").split("\t")
        if len(words) != skip + len(columns):
            raise DataError(
                f"{path}, line {number}: {skip + len(columns)} columns separated by tabs are needed; "
                f"{len(words)} came. {_HOME}."
            )
        if skip == 2 and words[0].strip() != str(row):
            raise DataError(
                f"{path}, line {number}: item {row} is needed here, since an item's number is its row; "
                f"{words[0]!r} came. Put the file back as it was."
            )
        at = 0
        for word, (column, count) in zip(words[skip:], columns.items(), strict=True):
            value = read_number(word)
            if value is None or (count and value not in range(count)):
                needed = f"a whole number from 0 to {count - 1}" if count else "a number"
                raise DataError(
                    f"{path}, line {number}: {column} needs {needed}; got {word!r}. Put the line right."
                )
            features[row, at + int(value) if count else at] = 1 if count else value
            at += count or 1
    return features


def _read_orders(path: Path, n_items: int) -> list[NDArray[np.int64]]:
    (_, header), *lines = _read_lines(path)
    if header.split()[:1] != [str(n_items)] or len(header.split()) != 2:
        raise DataError(
            f"{path}, line 1: the header '{n_items} 1' is needed, {n_items} kinds being known; "
            f"got {header.strip()!r}. Take all files from one archive."
        )
    if not lines:
        raise DataError(f"{path} holds no order below its header. {_HOME}.")
    return [_order(line.split(), f"{path}, line {number}", n_items) for number, line in lines]


def _order(words: Sequence[str], where: str, n_items: int) -> NDArray[np.int64]:
    if not all(word.isdigit() for word in words):
        raise DataError(
            f"{where}: whole numbers, separated by spaces, are needed; got {' '.join(words)!r}. "
            "Put the line right."
        )
    if len(words) < 3 or len(words) != 2 + int(words[1]):
        raise DataError(
            f"{where}: 0, the number of kinds and as many kinds are needed; got {' '.join(words)!r}. "
            "The line may be cut short."
        )
    order = np.array(words[2:], dtype=np.int64)
    if order.max() >= n_items or len(np.unique(order)) != len(order):
        raise DataError(
            f"{where}: kinds are numbered 0 to {n_items - 1} and come once; "
            f"got {' '.join(words[2:])!r}. Put the line right."
        )
    return order


def _read_lines(path: Path) -> list[tuple[int, str]]:
    """Read the lines that aren't blank, with their numbers."""
    try:
        stream = open_compressed(find_compressed(path) or path)
        with io.TextIOWrapper(stream, encoding="utf-8", errors="replace") as lines:
            text = lines.read()  # names may be in any encoding; they are not used
    except READ_ERRORS as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(f"{path} can't be read: {reason}. {_HOME}.") from None
    written = [(i, line) for i, line in enumerate(text.split("\n"), start=1) if line.strip()]
    if not written:
        raise DataError(f"{path} is empty. {_HOME}.")
    return written
