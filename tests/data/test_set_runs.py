"""Runs of set ids: where sets begin, whether ids ascend, and hashes that tell different ids apart."""

from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from entourage.data.set_runs import hash_ids, read_runs

IDS = {
    "large whole numbers": pa.array([2**63 + 1, 2**63 + 2, 5, 0], pa.uint64()),
    "negative": pa.array([-1, 1, 0, -(2**63)]),
    "texts": pa.array(["", "a", "b", "ab", "ba", "a\0", "\0a", "é", "x" * 70_000, "x" * 70_001]),
    "large texts": pa.array(["", "a", "b"], pa.large_string()),
    "bytes": pa.array([b"", b"\xff", b"\xff\xff"]),
    "fixed bytes": pa.array([b"ab", b"ba"], pa.binary(2)),
    "floats": pa.array([0.5, 1.0, -1.0, 0.0]),
    "dates": pa.array([date(2026, 1, 1), date(2026, 1, 2)]),
    "decimals": pa.array([Decimal("1.10"), Decimal("1.11")]),
    "booleans": pa.array([True, False]),
}


@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
def test_different_ids_have_different_hashes_and_equal_ones_the_same_in_any_slice(ids):
    hashes = hash_ids(ids)
    assert len(set(hashes.tolist())) == len(ids)
    for k in range(len(ids)):
        assert hash_ids(ids[k:]).tolist() == hashes[k:].tolist()
        assert hash_ids(ids[k : k + 1]).tolist() == [hashes[k]]


def test_minus_zero_is_zero():
    assert len(set(hash_ids(pa.array([0.0, -0.0])).tolist())) == 1


def test_hashes_of_a_hundred_thousand_similar_texts_differ():
    ids = pa.array([f"{k % 317}-{k // 317}" for k in range(100_000)])
    assert len(np.unique(hash_ids(ids))) == 100_000


@given(
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=20),
    order=st.sampled_from(["ascending", "falling", "text"]),
    batch=st.integers(1, 9),
    hashed=st.booleans(),
)
def test_runs_are_those_that_one_sees(sizes, order, batch, hashed):
    names = {"ascending": range(0, 60, 3), "falling": range(60, 0, -3), "text": [str(k) for k in range(20)]}[
        order
    ]
    ids = pa.array([names[k] for k, size in enumerate(sizes) for _ in range(size)])
    begins = np.cumsum([0, *sizes])[:-1]
    wanted = list(range(1, len(ids) + 2))
    found = read_runs([ids[k : k + batch] for k in range(0, len(ids), batch)], wanted, hashed=hashed)
    ascend = all(names[k] < names[k + 1] for k in range(len(sizes) - 1))
    if not (hashed or ascend):
        assert found is None
        return
    assert found.ends.to_pylist() == [ids[0].as_py(), ids[-1].as_py()]
    assert found.begins == [next((b for b in begins.tolist() if b >= row), None) for row in wanted]
    expected = hash_ids(pa.array([names[k] for k in range(len(sizes))])).tolist() if hashed else None
    assert (None if found.hashes is None else found.hashes.tolist()) == expected
