"""Tables in files: every extension; what is no table says why, and a failed write loses nothing."""

import bz2
import gzip
import lzma

import numpy as np
import pyarrow as pa
import pytest
from long_tables import ROWS, TABLE, long_table
from pyarrow import parquet

from entourage.data import Sets
from entourage.data.encoder import TableEncoder
from entourage.data.table_files import read_table, write_table
from entourage.errors import DataError, UserError


@pytest.mark.parametrize(
    "name", ["t.csv", "t.tsv", "t.parquet", "t.arrow", "t.jsonl", "t.csv.gz", "t.jsonl.gz"]
)
def test_tables_are_written_and_read_by_extension(tmp_path, name):
    write_table(tmp_path / name, TABLE)
    assert read_table(tmp_path / name).to_pydict() == ROWS
    assert [file.name for file in tmp_path.iterdir()] == [name], "nothing is left behind"


@pytest.mark.parametrize(
    ("suffix", "pack"), [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)]
)
def test_compressed_files_are_read(tmp_path, suffix, pack):
    file = tmp_path / f"t.csv.{suffix}"
    file.write_bytes(pack(b"s,x\n1,2\n"))
    assert read_table(file).to_pydict() == {"s": [1], "x": [2]}


def test_svmlight_files_have_query_relevance_and_features(tmp_path):
    file = tmp_path / "t.txt"
    file.write_text("2 qid:7 1:0.5 2:1.0 # doc a\n0 qid:7 1:0.25 2:0.0\n1 qid:8 1:0.0 2:3.0\n")
    table = read_table(file)
    assert table.column_names == ["qid", "relevance", "f1", "f2"]
    assert table["relevance"].to_pylist() == [2, 0, 1]
    assert Sets.from_frame(
        table, set_id="qid", target="relevance", target_kind="relevance"
    ).sizes.tolist() == [2, 1]


def test_files_that_are_no_tables_say_why(tmp_path):
    cases = {
        "missing.csv": (None, "does not exist"),
        "empty.csv": (b"", "is empty"),
        "header.csv": (b"a,b\n", "holds no rows"),
        "ragged.csv": (b"a,b\n1,2\n3\n", "can't be read as csv"),
        "twice.csv": (b"a,a\n1,2\n", "more than one column named 'a'"),
        "wrong.parquet": (b"a,b\n1,2\n", "can't be read as parquet"),
        "broken.jsonl": (b'{"a": 1}\n{"a":', "can't be read as jsonl"),
        "broken.csv.gz": (b"not gzip at all", "can't be read as csv"),
        "t.xlsx": (b"x", "needs one of the extensions"),
    }
    for name, (content, message) in cases.items():
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=message):
            read_table(tmp_path / name)
    with pytest.raises(DataError, match="is a folder"):
        read_table((tmp_path / "folder.csv").mkdir() or tmp_path / "folder.csv")
    write_table(tmp_path / "whole.parquet", TABLE)
    whole = (tmp_path / "whole.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="can't be read as parquet"):
        read_table(tmp_path / "cut.parquet")


def test_a_failed_write_leaves_the_old_file(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("old")
    bad = pa.table({"x": pa.array([[1], [2]])})  # csv can't hold lists
    with pytest.raises((DataError, pa.ArrowInvalid)):
        write_table(file, bad)
    assert file.read_text() == "old"
    with pytest.raises(DataError, match="can't be written"):
        write_table(tmp_path / "nowhere" / "t.csv", TABLE)


def test_a_damaged_parquet_is_a_clean_error_wherever_it_is_damaged(tmp_path):
    write_table(tmp_path / "t.parquet", long_table())
    whole = bytearray((tmp_path / "t.parquet").read_bytes())
    rng = np.random.default_rng(0)
    file = tmp_path / "damaged.parquet"
    for _ in range(60):
        damaged = whole.copy()
        for place in rng.integers(0, len(whole), 5):
            damaged[place] = rng.integers(256)
        file.write_bytes(damaged)
        try:
            TableEncoder.fit(read_table(file), set_id="race", target="place", ignore=["note"])
        except UserError:
            pass
    assert parquet.read_table(tmp_path / "t.parquet").num_rows
