"""Parts end where a set does, in any layout; sets whose rows don't stand together are found, exactly."""

import numpy as np
import pyarrow as pa
import pytest
from distributed_layouts import lay_out
from hypothesis import given, settings
from hypothesis import strategies as st

from entourage.data import set_runs
from entourage.distributed import ranges, sources
from entourage.distributed.crew import Crew
from entourage.distributed.jobs import Worker
from entourage.distributed.places import find_files, place_of
from entourage.distributed.ranges import cut_at_sets, wanted_cuts
from entourage.distributed.sources import open_sources
from entourage.errors import DataError

NAMES = {
    "ascending": lambda k: k,
    "scattered": lambda k: (k * 7919) % 10_007,
    "large": lambda k: 2**63 + (k * 7919) % 10_007,
    "text": lambda k: f"set {k}",
    "category": lambda k: f"set {k % 50}/{k // 50}",
}
LAYOUT = {
    "kind": st.sampled_from(list(NAMES)),
    "files": st.lists(st.integers(0, 12), max_size=5),
    "groups": st.lists(st.integers(1, 9), min_size=1, max_size=3),
    "rows": st.integers(1, 20),
    "piece": st.integers(1, 30),
    "batch": st.integers(1, 10),
}


def ids_of(names, order, kind):
    column = pa.array([names(k) for k in order], pa.uint64() if names is NAMES["large"] else None)
    return column.dictionary_encode() if kind == "category" else column


def cut(folder, rows, piece=1 << 22, batch=1 << 18):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranges, "PIECE", piece)
        patch.setattr(sources, "ROWS", batch)
        found = open_sources(find_files(str(folder)))
        with Crew(Worker(b"", found, place_of(str(folder)), "id")) as crew:
            return cut_at_sets(found, "id", rows, crew)


@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=12), **LAYOUT)
@settings(max_examples=40, deadline=None)
def test_parts_begin_with_a_set(tmp_path_factory, kind, sizes, files, groups, rows, piece, batch):
    ids = ids_of(NAMES[kind], np.repeat(np.arange(len(sizes)), sizes).tolist(), kind)
    folder = lay_out(pa.table({"id": ids}), tmp_path_factory.mktemp("t"), files, groups)
    cuts = cut(folder, rows, piece, batch)
    assert (cuts[0], cuts[-1]) == (0, len(ids))
    assert np.all(np.diff(cuts) > 0)
    assert set(cuts) <= {0, *np.cumsum(sizes).tolist()}
    assert max(np.diff(cuts)) <= 1.5 * rows + max(sizes) + 1


@given(order=st.lists(st.integers(0, 6), min_size=1, max_size=14), weak=st.booleans(), **LAYOUT)
@settings(max_examples=60, deadline=None)
def test_an_id_that_comes_back_is_found_and_no_other(
    tmp_path_factory, kind, weak, order, files, groups, rows, piece, batch
):
    ids = ids_of(NAMES[kind], order, kind)
    folder = lay_out(pa.table({"id": ids}), tmp_path_factory.mktemp("t"), files, groups)
    runs = [k for i, k in enumerate(order) if i == 0 or order[i - 1] != k]
    torn = {NAMES[kind](k) for k in runs if runs.count(k) > 1}
    with pytest.MonkeyPatch.context() as patch:
        if weak:  # hashes collide
            strong = set_runs.hash_ids
            patch.setattr("entourage.data.set_runs.hash_ids", lambda ids: strong(ids) % np.uint64(2))
            patch.setattr("entourage.distributed.jobs.hash_ids", lambda ids: strong(ids) % np.uint64(2))
        if not torn:
            assert cut(folder, rows, piece, batch)[-1] == len(ids)
            return
        with pytest.raises(DataError, match="don't stand together") as caught:
            cut(folder, rows, piece, batch)
    assert any(f"id {label!r} begins" in str(caught.value) for label in torn)


def test_the_rows_of_a_torn_set_are_named(tmp_path):
    lay_out(pa.table({"id": ["b", "b", "a", "c", "a"]}), tmp_path / "t", [2, 2], [9])
    with pytest.raises(DataError) as caught:
        cut(tmp_path / "t", 10)
    file = tmp_path / "t" / "000"
    said = (
        f"id 'a' begins in row 1 of {file}1.parquet and, after other sets, again in row 1 of {file}2.parquet"
    )
    assert said in str(caught.value)


def test_a_missing_id_is_named_with_its_file_and_row(tmp_path):
    lay_out(pa.table({"id": [1, 1, 2, 2, None]}), tmp_path / "t", [2], [9])
    with pytest.raises(DataError, match=r"0001\.parquet: Column 'id' says .* missing in row 3"):
        cut(tmp_path / "t", 10)


def test_parts_end_with_row_groups_where_these_end_nearby():
    assert wanted_cuts([100, 200, 300, 1000], 190).tolist() == [200, 300, 490, 680, 870]
    assert wanted_cuts(list(range(1, 1001)), 300).tolist() == [300, 600]
    assert wanted_cuts([10], 10).tolist() == []
    million = wanted_cuts(np.arange(1, 11) * 1_048_576, 500_000)
    assert set((np.arange(1, 10) * 1_048_576).tolist()) <= set(million.tolist())
