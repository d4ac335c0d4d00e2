"""Compressed files: every suffix reads like the plain file, in bytes and in lines."""

import bz2
import gzip
import lzma
from pathlib import Path

import pyarrow as pa
import pytest

from entourage.data.compressed import (
    COMPRESSIONS,
    READ_ERRORS,
    find_compressed,
    open_compressed,
    open_download,
)
from entourage.data.datasets.sushi import load_sushi
from entourage.data.table_files import read_table
from entourage.errors import DataError

TEXT = b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(5000))


def write(path: Path, content: bytes = TEXT) -> Path:
    """Write a file, compressed as its suffix says."""
    if path.suffix == ".zst":
        with pa.output_stream(str(path), compression="zstd") as stream:
            stream.write(content)
        return path
    pack = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}.get(path.suffix, bytes)
    path.write_bytes(pack(content))
    return path


@pytest.mark.parametrize("suffix", ["", *COMPRESSIONS])
def test_every_suffix_reads_like_the_plain_file(tmp_path, suffix):
    file = write(tmp_path / f"t.csv{suffix}")
    with open_compressed(file) as stream:
        assert stream.read() == TEXT
    with open_download(file, "home") as stream:
        assert stream.readline() == b"a,b\n"
        assert sum(1 for _ in stream) == 5000
    assert read_table(file)["b"].to_pylist() == [i * i for i in range(5000)]
    assert find_compressed(tmp_path / "t.csv") == file


@pytest.mark.parametrize("suffix", COMPRESSIONS)
def test_a_file_that_is_cut_or_foreign_is_an_error(tmp_path, suffix):
    file = write(tmp_path / f"t.csv{suffix}")
    for content in (file.read_bytes()[:-20], b"not compressed at all"):
        file.write_bytes(content)
        with pytest.raises(READ_ERRORS), open_compressed(file) as stream:
            stream.read()
        with pytest.raises(DataError, match="can't be read as csv"):
            read_table(file)


def test_what_is_no_data_file_says_so(tmp_path):
    assert find_compressed(tmp_path / "t.csv") is None
    with pytest.raises(DataError, match="does not exist; name the data file. From there."):
        open_download(tmp_path / "t.csv", "From there")
    with pytest.raises(DataError, match="is a folder"):
        open_download(tmp_path, "From there")
    (tmp_path / "t.zip").write_bytes(b"PK")
    with pytest.raises(DataError, match="is an archive; unpack it"):
        open_download(tmp_path / "t.zip", "From there")


def test_sushi_files_may_be_compressed(tmp_path):
    items = [f"{i}\tkind{i}\t{i % 2}\t0\t{i % 12}\t{i / 8}\t1.5\t{i}\t0.5" for i in range(30)]
    write(tmp_path / "sushi3.idata.zst", "\r\n".join(items).encode())
    write(tmp_path / "sushi3b.5000.10.order.gz", b"30 1\n0 3 29 5 8\n0 3 1 2 9\n")
    assert load_sushi(tmp_path, "b", user_features=False).targets.tolist() == [1, 2, 0, 0, 1, 2]
    (tmp_path / "sushi3.idata.zst").write_bytes(b"nothing that was compressed")
    with pytest.raises(DataError, match=r"sushi3\.idata can't be read: ZSTD"):
        load_sushi(tmp_path, "b", user_features=False)
