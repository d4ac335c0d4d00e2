"""Files by pattern, on this machine and in a file system that is none; writing in one step."""

import pytest
from pyarrow import fs

from entourage.data import places
from entourage.data.places import Place, find_files, place_of, would_find
from entourage.errors import DataError, UserError

FILES = [
    "D.PARQUET",
    "b.parquet",
    "a.parquet",
    "c.pq",
    "_x.parquet",
    ".y.parquet",
    "t.csv",
    "s/a.parquet",
    "s/d/a.parquet",
    "_s/a.pq",
]


@pytest.fixture(params=["path", "file://", "mock"])
def root(request, tmp_path, monkeypatch):
    """The name of a folder with FILES: a path, an address, or one in a file system of its own."""
    if request.param == "mock":
        from pyarrow._fs import _MockFileSystem

        system = _MockFileSystem()
        monkeypatch.setattr(
            places, "from_address", lambda name: (system, name.removeprefix("mock://").partition("?")[0])
        )
        name = "mock://bucket"
    else:
        system, name = (
            fs.LocalFileSystem(),
            str(tmp_path) if request.param == "path" else f"file://{tmp_path}",
        )
    base = place_of(name)
    for file in FILES:
        Place(system, f"{base.path}/{file}".rpartition("/")[0]).make_folder()
        base.child(file).write(b"x")
    return name


def found(root, pattern):
    base = place_of(root).path
    return [place.path.removeprefix(base + "/") for place in find_files(f"{root}/{pattern}".rstrip("/"))]


def test_files_of_a_folder_and_of_patterns_come_in_the_order_of_their_paths(root):
    assert found(root, "") == ["D.PARQUET", "a.parquet", "b.parquet", "c.pq"]
    assert found(root, "a.parquet") == ["a.parquet"]
    assert found(root, "*.parquet") == ["a.parquet", "b.parquet"]
    assert found(root, "[bc].*") == ["b.parquet", "c.pq"]
    assert found(root, "*/*.parquet") == ["s/a.parquet"]
    assert found(root, "**/a.parquet") == ["a.parquet", "s/a.parquet", "s/d/a.parquet"]
    assert found(root, "s/**/*.parquet") == ["s/a.parquet", "s/d/a.parquet"]


def test_what_is_not_there_is_said(root):
    for name, said in (
        ("x.parquet", "does not exist"),
        ("x*", "No file matches"),
        ("t*/x", "No file matches"),
    ):
        with pytest.raises(DataError, match=said):
            found(root, name)
    place_of(f"{root}/empty").make_folder()
    with pytest.raises(DataError, match=r"subfolders are named by a pattern: '.*empty/\*/\*\.parquet'"):
        found(root, "empty")


def test_a_pattern_that_would_find_what_is_written_is_known(root):
    part = place_of(root).child("s/part-00000.parquet")
    assert would_find(f"{root}/**/*.parquet", part)
    assert would_find(f"{root}/*/*.parquet", part)
    assert would_find(f"{root}/s", part)
    assert not would_find(f"{root}/*.parquet", part)
    assert not would_find(root, part)


def test_a_file_whose_name_looks_like_a_pattern_is_itself(tmp_path):
    (tmp_path / "a[1].parquet").write_bytes(b"x")
    assert [place.name for place in find_files(f"{tmp_path}/a[1].parquet")] == ["a[1].parquet"]


def _write_half(place):
    with place.replacing() as stream:
        stream.write(b"half")
        assert place.read() == b"x"
        raise ZeroDivisionError


def test_a_file_is_written_in_one_step_or_not_at_all(root):
    base = place_of(root)
    place = base.child("a.parquet")
    before = base.children()
    with pytest.raises(ZeroDivisionError):
        _write_half(place)
    assert (place.read(), base.children()) == (b"x", before)
    place.write(b"new")
    assert (place.read(), base.children()) == (b"new", before)


def test_an_address_of_no_known_file_system_is_refused():
    with pytest.raises(DataError, match=r"nowhere://x can't be reached: .* pyarrow\.fs"):
        place_of("nowhere://x")


def test_a_folder_that_cannot_be_made_is_said(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserError, match="can't be made"):
        place_of(str(tmp_path / "file" / "folder")).make_folder()
