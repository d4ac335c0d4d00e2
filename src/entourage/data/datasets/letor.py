"""Learning-to-rank files: svmlight text with query ids, as LETOR and its successors are distributed.

A line is ``2 qid:10032 1:0.05 3:0.7 #docid = GX008``: the relevance, the query, the features by number
from 1 (one that is left out is 0), a comment. Nothing is downloaded here. Where the files are available:

- LETOR 3.0 and 4.0 (OHSUMED, MQ2007, MQ2008):
  https://www.microsoft.com/en-us/research/project/letor-learning-rank-information-retrieval/
- MSLR-WEB10K and MSLR-WEB30K: https://www.microsoft.com/en-us/research/project/mslr/
"""

import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from entourage.data.compressed import READ_ERRORS, find_compressed, open_download
from entourage.data.datasets.numbers import read_number
from entourage.data.grouping import group_rows
from entourage.data.sets import Sets
from entourage.errors import DataError, check_number

__all__ = [
    "Letor",
    "LetorFold",
    "SvmlightTable",
    "load_letor",
    "load_letor_fold",
    "read_svmlight",
]

_HOME = (
    "LETOR 4.0 and MSLR-WEB are available from Microsoft Research, "
    "https://www.microsoft.com/en-us/research/project/letor-learning-rank-information-retrieval/ and "
    "https://www.microsoft.com/en-us/research/project/mslr/"
)
_BLOCK = 1 << 18  # bytes a call: scikit-learn's reader takes time quadratic in the lines it is given
_MOST_FEATURES = 100_000  # objects are kept dense: a feature number beyond this is a slip
_N_FOLDS = 5


@dataclass(frozen=True, eq=False)
class SvmlightTable:
    """The rows of a svmlight file, as they lie in it.

    Attributes
    ----------
    features : float32 array of shape (rows, features)
    relevance : float64 array of shape (rows,)
    qids : int64 array of shape (rows,)
    """

    features: NDArray[np.float32]
    relevance: NDArray[np.float64]
    qids: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Letor:
    """Queries and their documents.

    Attributes
    ----------
    sets : one set a query; the rank of a document is the best grade less its own, NaN where it has none
    qids : int64 array of shape (sets,), the query of each set
    relevance : float64 array of shape (objects,), the grades as they stand in the file, larger = better
    """

    sets: Sets
    qids: NDArray[np.int64]
    relevance: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LetorFold:
    """The three parts of one fold."""

    train: Letor
    validation: Letor
    test: Letor


def read_svmlight(path: str | os.PathLike[str], n_features: int | None = None) -> SvmlightTable:
    r"""Read the rows of a svmlight file with query ids, plain or as .gz, .bz2, .xz or .zst.

    Parameters
    ----------
    path : the file
    n_features : how many features there are; otherwise the largest number that occurs

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "queries.txt"
    >>> _ = file.write_text("2 qid:7 1:0.5 3:1 #docid = a\n0 qid:7 2:0.25\n")
    >>> read_svmlight(file).features.tolist()
    [[0.5, 0.0, 1.0], [0.0, 0.25, 0.0]]
    """
    path = Path(path)
    if n_features is not None:
        check_number("n_features", n_features, least=1, most=_MOST_FEATURES, whole=True)
    parts = [_parse(block, path, first, n_features) for first, block in _blocks(path)]
    parts = [part for part in parts if len(part.qids)]
    if not parts:
        raise DataError(f"{path} holds no row; a line such as '2 qid:10032 1:0.05 2:0.7' is needed.")
    return _stack(parts, n_features)


def load_letor(path: str | os.PathLike[str], n_features: int | None = None) -> Letor:
    r"""Load a learning-to-rank file: a set for each query, in order of first appearance.

    The rows of a query need not be neighbours; within a query they keep their order. A negative
    relevance, as in LETOR's semi-supervised files, means that a document wasn't judged: its rank is NaN.

    Parameters
    ----------
    path : a svmlight file with query ids, plain or as .gz, .bz2, .xz or .zst
    n_features : how many features there are; otherwise the largest number that occurs

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "queries.txt"
    >>> _ = file.write_text("2 qid:7 1:0.5\n1 qid:5 1:0.1\n0 qid:7 1:0.3\n")
    >>> data = load_letor(file)
    >>> data.sets, data.qids.tolist(), data.sets.targets.tolist()
    (Sets(2 sets of 1 to 2 objects, 1 feature, targets), [7, 5], [0.0, 2.0, 1.0])
    """
    table = read_svmlight(path, n_features)
    return _as_letor(table, float(table.relevance.max()))


def load_letor_fold(
    folder: str | os.PathLike[str],
    fold: int,
    n_features: int | None = None,
) -> LetorFold:
    """Load the training, validation and test queries of one fold.

    Two layouts are known. ``Fold1/train.txt``, ``Fold1/vali.txt``, ``Fold1/test.txt`` and so on, as
    LETOR and MSLR-WEB are distributed; and ``Fold1_test.txt`` to ``Fold5_test.txt`` alone, which together
    hold each query once: there the test file of fold k - 1 (of the last, for the first) is for
    validation, as in LETOR, and the other three are for training. Each file may be compressed. All three
    parts have the same features and the same best grade.

    Parameters
    ----------
    folder : what holds the folds
    fold : which of them, from 1
    n_features : how many features there are; otherwise the largest number that occurs in the fold
    """
    check_number("fold", fold, least=1, whole=True)
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder; name the one that holds Fold1 and so on. {_HOME}.")
    files = _files_of_fold(folder, fold)
    tables = [_stack([read_svmlight(file, n_features) for file in part], n_features) for part in files]
    width = max(table.features.shape[1] for table in tables)
    best = max(float(table.relevance.max()) for table in tables)
    train, validation, test = (_as_letor(_stack([table], width), best) for table in tables)
    return LetorFold(train, validation, test)


def _blocks(path: Path) -> Iterator[tuple[int, bytes]]:
    """Cut a file into blocks of whole lines, each with the number of its first line."""
    line, rest = 1, b""
    with open_download(path, _HOME) as stream:
        while True:
            try:
                block = stream.read(_BLOCK)
            except READ_ERRORS as error:
                raise DataError(
                    f"{path} can't be read beyond line {line}: {error}. Fetch the file again."
                ) from error
            if line == 1 and not rest:
                block = block.removeprefix(b"\xef\xbb\xbf")  # the mark some editors put before a text
            rest, whole = (rest + block, b"") if block else (b"", rest)
            if block and (end := rest.rfind(b"\n") + 1):
                whole, rest = rest[:end], rest[end:]
            if whole:
                yield line, whole
                line += whole.count(b"\n")
            if not block:
                return


def _parse(block: bytes, path: Path, first: int, n_features: int | None) -> SvmlightTable:
    """Parse some lines; on trouble, go through them one by one for the line to blame."""
    from sklearn.datasets import load_svmlight_file

    most = n_features or _MOST_FEATURES
    try:
        X, relevance, qids = load_svmlight_file(
            io.BytesIO(block), n_features=most, dtype=np.float32, zero_based=False, query_id=True
        )
    except (ValueError, OverflowError) as error:
        raise _blame(block, path, first, most, str(error)) from None
    rows = len(relevance)
    if len(qids) != rows or not np.isfinite(X.data).all() or not np.isfinite(relevance).all():
        raise _blame(block, path, first, most, "a number or a query is missing")
    features = np.zeros((rows, int(X.indices.max()) + 1 if X.nnz else 0), dtype=np.float32)
    features[np.repeat(np.arange(rows), np.diff(X.indptr)), X.indices] = X.data
    return SvmlightTable(features, np.asarray(relevance), np.asarray(qids))


def _blame(block: bytes, path: Path, first: int, most: int, reason: str) -> DataError:
    for number, line in enumerate(block.split(b"\n"), start=first):
        fault = _fault(line.split(b"#", 1)[0].split(), most)
        if fault:
            return DataError(
                f"{path}, line {number}: {fault}. A line such as '2 qid:10032 1:0.05 2:0.7' is needed; "
                "put this one right or leave it out."
            )
    last = first + block.count(b"\n")
    return DataError(f"{path}, between lines {first} and {last}: {reason}. Put the line right.")


def _fault(words: list[bytes], most: int) -> str | None:
    """Say what is wrong with a line, by the rules of scikit-learn's reader."""
    if not words:
        return None
    if read_number(words[0]) is None:
        return f"the relevance needs a number, but {_show(words[0])} came"
    if len(words) < 2 or not words[1].startswith(b"qid:"):
        return "the query is missing: 'qid:' and a whole number must follow the relevance"
    if not words[1][4:].removeprefix(b"-").isdigit() or len(words[1]) > 22:  # 18 digits fit in any case
        return f"a query needs a whole number, but {_show(words[1])} came"
    before = 0
    for word in words[2:]:
        name, colon, value = word.partition(b":")
        if not (colon and name.isdigit() and read_number(value) is not None):
            return f"a feature needs the form number:value, but {_show(word)} came"
        if name.strip(b"0") == b"":
            return f"features are counted from 1, but {_show(word)} came"
        if len(name) > 9 or int(name) > most:
            return f"feature {_show(name)} came where there are at most {most} features"
        if int(name) <= before:
            return f"features must be in increasing order, but {int(name)} came after {before}"
        before = int(name)
    return None


def _show(word: bytes) -> str:
    return repr(word[:40].decode("utf-8", "replace"))


def _stack(parts: Sequence[SvmlightTable], n_features: int | None) -> SvmlightTable:
    """Put the rows of some tables below each other, missing features being 0."""
    width = n_features or max(1, *(part.features.shape[1] for part in parts))
    if len(parts) == 1 and parts[0].features.shape[1] == width:
        return parts[0]
    features = np.zeros((sum(len(part.qids) for part in parts), width), dtype=np.float32)
    start = 0
    for part in parts:
        rows, d = part.features.shape
        features[start : start + rows, :d] = part.features
        start += rows
    return SvmlightTable(
        features,
        np.concatenate([part.relevance for part in parts]),
        np.concatenate([part.qids for part in parts]),
    )


def _as_letor(table: SvmlightTable, best: float) -> Letor:
    rows, offsets, first = group_rows(table.qids)
    relevance = table.relevance[rows]
    ranks = np.where(relevance < 0, np.nan, best - relevance)
    return Letor(Sets(table.features[rows], offsets, ranks, worst=best), table.qids[first], relevance)


def _files_of_fold(folder: Path, fold: int) -> tuple[list[Path], list[Path], list[Path]]:
    if (folder / f"Fold{fold}").is_dir():
        own = folder / f"Fold{fold}"
        train, validation, test = (_variant(own / f"{part}.txt") for part in ("train", "vali", "test"))
        return [train], [validation], [test]
    if find_compressed(folder / "Fold1_test.txt") is None:
        raise DataError(
            f"{folder} holds neither Fold{fold}/train.txt, vali.txt and test.txt nor Fold1_test.txt to "
            f"Fold{_N_FOLDS}_test.txt; name the folder that does. {_HOME}."
        )
    check_number("fold", fold, least=1, most=_N_FOLDS, whole=True)
    tests = [_variant(folder / f"Fold{k}_test.txt") for k in range(1, _N_FOLDS + 1)]
    test, validation = tests[fold - 1], tests[fold - 2]  # the one before the first is the last
    return [file for file in tests if file not in (test, validation)], [validation], [test]


def _variant(path: Path) -> Path:
    """Return the file itself or its compressed form, whichever is there."""
    file = find_compressed(path)
    if file is None:
        raise DataError(f"{path} is missing, plain or compressed; put it there. {_HOME}.")
    return file
