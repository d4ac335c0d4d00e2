"""Columns of a CSV file in long form, a row for each object; what is wrong in them is named by its line."""

import os
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv

from entourage.data.compressed import READ_ERRORS, find_compressed, open_download
from entourage.data.datasets.numbers import LARGEST, read_number
from entourage.errors import DataError

__all__ = ["CsvColumns", "find_csv", "read_header"]

Floats = NDArray[np.float64]
Text = NDArray[np.str_]
Index = NDArray[np.int64]


def find_csv(path: str | os.PathLike[str], name: str, home: str) -> Path:
    """Return the file itself, or in a folder the one of that name, compressed or not."""
    path = Path(path)
    if not path.is_dir():
        return path
    file = find_compressed(path / name)
    if file is None:
        raise DataError(f"{path} holds no {name}, plain or compressed; put it there. {home}.")
    return file


def read_header(path: Path, home: str) -> tuple[str, ...]:
    """Return the names of all columns of a CSV file."""
    try:
        with open_download(path, home) as stream:
            return tuple(stream.readline().decode().strip().split(","))
    except (UnicodeDecodeError, *READ_ERRORS) as error:
        raise _unreadable(path, home, error) from None


class CsvColumns:
    """Some columns of a CSV file, kept as text until asked for, so that an error can name its line."""

    def __init__(self, path: Path, columns: Sequence[str], home: str) -> None:
        self.path = path
        self._home = home
        self._cut: DataError | None = None
        try:
            with open_download(path, home) as stream:
                table = csv.read_csv(
                    stream,
                    csv.ReadOptions(use_threads=False),
                    csv.ParseOptions(invalid_row_handler=self._ragged),
                    csv.ConvertOptions(
                        include_columns=list(columns), column_types=dict.fromkeys(columns, pa.string())
                    ),
                )
        except pa.ArrowKeyError as error:
            raise DataError(
                f"{path} needs the columns {', '.join(columns)}; {str(error).strip(chr(34))}. {home}."
            ) from None
        except (pa.ArrowException, *READ_ERRORS) as error:
            if self._cut is not None:
                raise self._cut from None
            raise _unreadable(path, home, error) from None
        if table.num_rows == 0:
            raise DataError(f"{path} holds no row below its header. {home}.")
        self._columns = {name: np.array(table[name].to_pylist(), dtype=np.str_) for name in columns}

    def _ragged(self, row: Any) -> str:
        # Arrow drops what is raised in here; so it is kept, and raised when the reader has given up.
        self._cut = DataError(
            f"{self.where(row.number - 2)}: {row.expected_columns} columns are needed; "
            f"{row.actual_columns} came in {row.text[:60]!r}. The line may be cut short: "
            "put it right or fetch the file again."
        )
        return "error"

    def where(self, row: int) -> str:
        """Name the file and the line of a row; blank lines, which the reader skips, are counted."""
        with open_download(self.path, self._home) as stream:
            written = (number for number, line in enumerate(stream, start=1) if line.strip())
            return f"{self.path}, line {next(islice(written, row + 1, None))}"  # after the header

    def text(self, name: str) -> Text:
        """Return a column as it is written."""
        return self._columns[name]

    def numbers(self, name: str, *, missing: bool = False) -> Floats:
        """Return a column of numbers; an empty place is NaN where ``missing`` allows it."""
        values = np.array([_as_number(word) for word in self._columns[name].tolist()])
        wrong = np.abs(values) > LARGEST
        self._refuse(name, wrong if missing else wrong | np.isnan(values), "a number")
        return values

    def whole(self, name: str) -> Index:
        """Return a column of whole numbers."""
        values = self.numbers(name)
        self._refuse(name, (values != np.floor(values)) | (np.abs(values) > 2**53), "a whole number")
        return values.astype(np.int64)

    def one_hot(self, name: str, codes: Sequence[int]) -> Floats:
        """Return a column of codes as one number a code: 1 where a row has it."""
        values = self.whole(name)
        known = values[:, None] == np.array(codes)  # (rows, codes)
        if not known.any(1).all():
            row = int(np.argmin(known.any(1)))
            raise DataError(
                f"{self.where(row)}: {name} needs one of {', '.join(map(str, codes))}; "
                f"got {values[row]}. Put the line right."
            )
        return np.asarray(known, dtype=np.float64)

    def choices(self, name: str, rows: Index, offsets: Index) -> Floats:
        """Return rank 0 for what was chosen and 1 for the rest; one object of each set must be chosen."""
        chosen = self.numbers(name)[rows]
        wrong = (chosen != 0) & (chosen != 1)
        if wrong.any():
            row = int(rows[np.argmax(wrong)])
            raise DataError(
                f"{self.where(row)}: {name} needs 1 for what was chosen and 0 otherwise; "
                f"got {self.text(name)[row].item()!r}. Put the line right."
            )
        counts = np.add.reduceat(chosen, offsets[:-1])
        if (counts != 1).any():
            i = int(np.argmax(counts != 1))
            raise DataError(
                f"{self.where(int(rows[offsets[i]]))}: of the set that begins here one object must be "
                f"chosen; {int(counts[i])} are. Put {name} right."
            )
        return 1 - chosen

    def _refuse(self, name: str, wrong: NDArray[np.bool_], needed: str) -> None:
        if wrong.any():
            row = int(np.argmax(wrong))
            came = self._columns[name][row].item()
            raise DataError(f"{self.where(row)}: {name} needs {needed}; got {came!r}. Put it right.")


def _unreadable(path: Path, home: str, error: Exception) -> DataError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return DataError(f"{path} can't be read as CSV: {reason}. Fetch it again. {home}.")


def _as_number(word: str) -> float:
    """NaN stands for an empty place, infinity for what is no number."""
    if word.strip().lower() in ("", "na", "nan"):
        return np.nan
    value = read_number(word)
    return np.inf if value is None else value
