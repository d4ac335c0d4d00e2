"""Sets on disk learn what sets in memory learn, and are never read whole."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from long_tables import sets_together

from entourage import FATE, Ranker
from entourage.data import memory_mapped, parquet_files
from entourage.data.encoder import TableEncoder
from entourage.data.memory_mapped import fit_encoder, open_sets, write_sets
from entourage.data.table_files import write_table
from entourage.errors import DataError
from entourage.estimators.fit_on_disk import fit_on_disk

ROLES = {"set_id": "race", "target": "place", "situation": ["laps"]}


@pytest.fixture
def both(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_files, "ROWS", 100)  # so that sets are cut by the ends of stretches
    table = sets_together()
    write_table(tmp_path / "t.parquet", table)
    encoder = fit_encoder(tmp_path / "t.parquet", **ROLES)
    return TableEncoder.fit(table, **ROLES)(table).sets, write_sets(
        tmp_path / "t.parquet", tmp_path / "d", encoder
    )


def test_the_same_sets_come_from_disk(both, tmp_path):
    memory, disk = both
    assert disk.on_disk
    assert not memory.on_disk
    assert np.array_equal(disk.objects, memory.objects)
    assert np.array_equal(disk.offsets, memory.offsets)
    assert np.array_equal(disk.targets, memory.targets)
    assert np.array_equal(disk.situation, memory.situation)
    assert np.array_equal(open_sets(tmp_path / "d").objects, memory.objects)


def test_training_and_prediction_agree_with_those_in_memory(both):
    memory, disk = both
    models = [Ranker(FATE(width=8), steps=40, batch_size=32, device="cpu", random_state=0) for _ in range(2)]
    models[0].fit(memory)
    models[1].fit(disk)
    assert np.allclose(models[0].predict_scores(memory), models[1].predict_scores(disk), atol=1e-3)
    assert models[0].score(memory) == pytest.approx(models[1].score(disk), abs=0.01)


def test_training_copies_no_more_than_batches_and_the_held_out(both, monkeypatch):
    _, disk = both
    taken = []
    real = type(disk)._take

    def watched(self, chosen):
        taken.append(len(chosen))
        return real(self, chosen)

    monkeypatch.setattr(type(disk), "_take", watched)
    Ranker(FATE(width=4), steps=4, batch_size=16, device="cpu", random_state=0).fit(disk)
    assert taken == [30, 30], "the held-out tenth: to stop early, and to calibrate"


def test_sets_that_are_torn_apart_and_half_written_folders_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_files, "ROWS", 4)
    torn = pa.table({"race": [0, 0, 1, 1, 0, 0, 2, 2], "x": np.arange(8.0), "place": [0, 1] * 4})
    write_table(tmp_path / "t.parquet", torn)
    encoder = fit_encoder(tmp_path / "t.parquet", set_id="race", target="place")
    with pytest.raises(DataError, match="set 0 are not contiguous; sort the table by 'race'"):
        write_sets(tmp_path / "t.parquet", tmp_path / "d", encoder)
    with pytest.raises(DataError, match="holds no sets, or only a part"):
        open_sets(tmp_path / "d")
    (tmp_path / "no.parquet").write_text("no")
    with pytest.raises(DataError, match="can't be read as parquet"):
        fit_encoder(tmp_path / "no.parquet", set_id="race", target="place")


def test_heavy_tails_codes_and_standings_are_learnt_from_disk_to_the_bit(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_files, "ROWS", 100)
    rng = np.random.default_rng(0)
    races = np.repeat(np.arange(80), rng.integers(1, 8, size=80))
    count = len(races)
    table = pa.table(
        {
            "race": races,
            "odds": np.exp(3 * rng.normal(size=count)),
            "jockey": [f"j{i}" for i in rng.integers(50, size=count)],
            "weight": rng.normal(size=count),
            "place": np.concatenate([rng.permutation(m) for m in np.bincount(races)]),
        }
    )
    write_table(tmp_path / "t.parquet", table)
    settings = {
        "steps": 10,
        "batch_size": 16,
        "device": "cpu",
        "random_state": 0,
        "relative": ["odds", "weight"],
    }
    disk, memory = Ranker(FATE(width=4), **settings), Ranker(FATE(width=4), **settings)
    sets = fit_on_disk(
        tmp_path / "t.parquet", tmp_path / "d", disk, set_id="race", target="place", codes=True
    )
    assert sets.on_disk
    memory.fit(table, set_id="race", target="place")
    assert disk.view_.maps[0].places == memory.view_.maps[0].places != ()
    assert disk.view_.level_counts == memory.view_.level_counts
    np.testing.assert_array_equal(disk.predict_scores(table), memory.predict_scores(table))
    np.testing.assert_array_equal(disk.predict_scores(sets), memory.predict_scores(table))


def test_files_that_follow_each_other_are_one_table(tmp_path):
    table = sets_together()
    write_table(tmp_path / "whole.parquet", table)
    folder = tmp_path / "parts"
    folder.mkdir()
    cuts = [0, 7, 8, 50, table.num_rows]  # within sets
    for i, (begin, end) in enumerate(pairwise(cuts)):
        write_table(folder / f"{i}.parquet", table.slice(begin, end - begin))
    whole = write_sets(
        tmp_path / "whole.parquet", tmp_path / "a", fit_encoder(tmp_path / "whole.parquet", **ROLES)
    )
    for name in (folder, folder / "*.parquet"):
        parts = write_sets(name, tmp_path / "b", fit_encoder(name, **ROLES))
        assert parts.encoder.to_json() == whole.encoder.to_json()
        for one, other in zip(
            (parts.objects, parts.offsets, parts.targets, parts.situation),
            (whole.objects, whole.offsets, whole.targets, whole.situation),
            strict=True,
        ):
            np.testing.assert_array_equal(one, other)


def test_a_folder_that_is_written_anew_is_no_sets_until_it_is_done(tmp_path, monkeypatch):
    write_table(tmp_path / "t.parquet", sets_together())
    encoder = fit_encoder(tmp_path / "t.parquet", **ROLES)
    write_sets(tmp_path / "t.parquet", tmp_path / "d", encoder)

    def fail(rows, set_id):
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(memory_mapped, "whole_sets", fail)
    with pytest.raises(KeyboardInterrupt):
        write_sets(tmp_path / "t.parquet", tmp_path / "d", encoder)
    with pytest.raises(DataError, match="holds no sets, or only a part"):
        open_sets(tmp_path / "d")


def test_a_folder_is_kept_by_restarts_of_its_launch_only(tmp_path, monkeypatch):
    """Launches of torchrun on several machines are all called "none", unless they are given a name."""
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    table = sets_together()
    write_table(tmp_path / "a.parquet", table)
    write_table(tmp_path / "b.parquet", table.slice(0, 100))

    def fit(name, restarts, **more):
        monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", str(restarts))
        model, shown = Ranker(FATE(width=4), steps=1, device="cpu", random_state=0), []
        sets = fit_on_disk(
            tmp_path / name, tmp_path / "d", model, lambda *rows: shown.append(rows), **ROLES, **more
        )
        return len(sets.objects), bool(shown)

    assert fit("a.parquet", 0) == (table.num_rows, True)
    assert fit("a.parquet", 1) == (table.num_rows, False)
    assert fit("b.parquet", 0) == (100, True)
    assert fit("a.parquet", 1) == (table.num_rows, True)  # it died before it wrote
    assert fit("a.parquet", 1, ignore=["team"]) == (table.num_rows, True)
