"""Predictions from file to file, a stretch at a time, equal those of the whole table."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from entourage import FATE, Ranker
from entourage.data import parquet_stream
from entourage.data.encoder import TableEncoder
from entourage.data.parquet_stream import open_parquet, stretches, torn_sets
from entourage.data.table_files import read_table, write_table
from entourage.errors import DataError
from entourage.estimators.prediction_tables import predict_stream, predict_table


@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=12),
    rows=st.integers(1, 12),
    group=st.integers(1, 30),
    text=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_stretches_hold_all_rows_and_part_no_set(tmp_path_factory, sizes, rows, group, text):
    ids = [f"s{i}" if text else i for i, size in enumerate(sizes) for _ in range(size)]
    table = pa.table({"id": ids, "row": np.arange(len(ids))})
    path = tmp_path_factory.mktemp("t") / "t.parquet"
    parquet.write_table(table, path, row_group_size=group)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_stream, "ROWS", rows)
        parts = list(stretches(open_parquet(path), "id"))
        assert torn_sets(open_parquet(path), "id") == []
    assert pa.concat_tables(parts).equals(table)
    seen = [set(part.column("id").to_pylist()) for part in parts]
    assert sum(map(len, seen)) == len(set().union(*seen)), "a set is in two stretches"


def test_torn_sets_are_named(tmp_path):
    parquet.write_table(pa.table({"id": ["a", "a", "b", "a", None, "c", None]}), tmp_path / "t.parquet")
    assert torn_sets(open_parquet(tmp_path / "t.parquet"), "id") == ["a", None]


@pytest.fixture(scope="module")
def fitted():
    """A model and the table it was fitted to."""
    n, rng = 120, np.random.default_rng(0)
    sizes = rng.integers(2, 9, n)
    race = np.repeat(rng.permutation(n), sizes)
    table = pa.table(
        {
            "race": race,
            "x": rng.normal(size=len(race)),
            "team": rng.choice(["a", "b", "c"], len(race)),
            "place": np.concatenate([rng.permutation(m) for m in sizes]),
            "name": [f"driver {i}" for i in range(len(race))],
        }
    )
    encoder = TableEncoder.fit(table, set_id="race", target="place", features=["x", "team"])
    model = Ranker(FATE(width=8), steps=20, device="cpu", random_state=0)
    model.fit(encoder(table).sets)
    return model, table


def test_a_stream_predicts_what_the_whole_table_gets(fitted, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_stream, "ROWS", 50)
    model, table = fitted
    write_table(tmp_path / "in.parquet", table)
    told = []
    rows = predict_stream(model, tmp_path / "in.parquet", tmp_path / "out.parquet", lambda *x: told.append(x))
    assert rows == table.num_rows
    assert told[-1] == (rows, rows)
    assert len(told) > 5
    streamed, whole = read_table(tmp_path / "out.parquet"), predict_table(model, table)
    numbers = ["probability", "score"]
    assert streamed.drop_columns(numbers).equals(whole.drop_columns(numbers))
    for name in numbers:
        np.testing.assert_allclose(streamed[name].to_numpy(), whole[name].to_numpy(), rtol=1e-4, atol=1e-6)


def test_a_table_whose_sets_are_torn_is_not_streamed(fitted, tmp_path):
    model, table = fitted
    shuffled = table.take(np.random.default_rng(0).permutation(table.num_rows))
    write_table(tmp_path / "in.parquet", shuffled)
    assert predict_stream(model, tmp_path / "in.parquet", tmp_path / "out.parquet") is None
    assert not (tmp_path / "out.parquet").exists()


def test_a_mistake_in_a_late_row_leaves_what_was_there(fitted, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_stream, "ROWS", 50)
    model, table = fitted
    x = table["x"].to_numpy().copy()
    x[-1] = np.inf
    write_table(tmp_path / "in.parquet", table.set_column(1, "x", pa.array(x)))
    (tmp_path / "out.parquet").write_text("earlier")
    with pytest.raises(DataError, match="Counting from row"):
        predict_stream(model, tmp_path / "in.parquet", tmp_path / "out.parquet")
    assert (tmp_path / "out.parquet").read_text() == "earlier"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.parquet", "out.parquet"]
