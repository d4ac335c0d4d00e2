"""Predictions in parts equal those of the whole table, for every kind of model and in any layout; restarts."""

import json
import os

import numpy as np
import pyarrow as pa
import pytest
from commands import run
from distributed_layouts import lay_out
from pyarrow import parquet

from entourage import FATE, DiscreteChooser, Ranker, SubsetChooser, load
from entourage.baselines import RankSVM
from entourage.choice import MixedLogit, MultinomialLogit
from entourage.data import places
from entourage.data.places import place_of
from entourage.data.table_files import read_table
from entourage.distributed import jobs, manifest, scoring
from entourage.distributed.jobs import part_name
from entourage.distributed.scoring import predict_parts
from entourage.errors import DataError, UserError
from entourage.estimators.prediction_tables import predict_table

SMALL = {"steps": 10, "device": "cpu", "random_state": 0}
ROLES = {"set_id": "race", "features": ["x", "team"], "situation": ["laps"]}


def races(n=150, seed=0):
    """Sets of one to six, ids in no order; ranks, one choice a set, none in some sets, and some choices."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 7, n)
    race = np.repeat(rng.permutation(n), sizes)
    starts = np.append(0, np.cumsum(sizes)[:-1])
    first = np.zeros(len(race), dtype=int)
    first[starts + rng.integers(0, sizes)] = 1
    columns = {
        "race": race,
        "x": np.where(rng.random(len(race)) < 0.1, np.nan, rng.normal(size=len(race))),
        "team": pa.array(rng.choice(["a", "b", "c"], len(race))).dictionary_encode(),
        "laps": rng.integers(1, 9, n)[race],
        "person": np.repeat(np.arange(n) % 20, sizes),
        "place": np.concatenate([rng.permutation(m) for m in sizes]),
        "first": first,
        "first_or_none": np.where(race % 3 == 0, 0, first),
        "some": rng.integers(0, 2, len(race)),
        "name": [f"driver {i}" for i in range(len(race))],
    }
    return pa.table(columns)


MODELS = {
    "ranker": lambda: Ranker(FATE(width=8), **SMALL).fit(races(), target="place", **ROLES),
    "ensemble": lambda: Ranker(FATE(width=8), members=2, **SMALL).fit(races(), target="place", **ROLES),
    "chooser": lambda: DiscreteChooser(FATE(width=8), **SMALL).fit(races(), target="first", **ROLES),
    "chooser with an outside option": lambda: DiscreteChooser(FATE(width=8), outside=True, **SMALL).fit(
        races(), target="first_or_none", **ROLES
    ),
    "subset chooser": lambda: SubsetChooser(FATE(width=8), **SMALL).fit(races(), target="some", **ROLES),
    "baseline": lambda: RankSVM().fit(races(), target="place", **ROLES),
    "choice model": lambda: MultinomialLogit().fit(
        races(), set_id="race", target="first", features=["x", "team"]
    ),
}


@pytest.fixture(scope="module")
def ranker(tmp_path_factory):
    """The file of a small ranker."""
    file = tmp_path_factory.mktemp("model") / "m"
    MODELS["ranker"]().save(file)
    return file


def parts_of(folder):
    return sorted(path for path in folder.iterdir() if path.name.startswith("part-"))


def joined(folder):
    return pa.concat_tables([parquet.read_table(path) for path in parts_of(folder)])


def check_equal(found, expected):
    """The same columns and values; numbers of other batches differ by their rounding."""
    assert found.schema.equals(expected.schema, check_metadata=True)
    for name in expected.column_names:
        ours, theirs = (table[name].combine_chunks() for table in (found, expected))
        if name in ("probability", "score", "probability_of_nothing"):
            np.testing.assert_allclose(ours.to_numpy(), theirs.to_numpy(), rtol=1e-4, atol=1e-6)
        else:
            np.testing.assert_array_equal(
                *(one.to_numpy(zero_copy_only=False) for one in (ours, theirs)), name
            )


@pytest.mark.parametrize("kind", MODELS)
def test_parts_hold_what_the_whole_table_gets(kind, tmp_path, monkeypatch):
    monkeypatch.setattr("entourage.data.parquet_files.ROWS", 30)
    monkeypatch.setattr(jobs, "ROWS", 60)
    MODELS[kind]().save(tmp_path / "m")
    table = races(seed=1)
    lay_out(table, tmp_path / "in", [1, 0, 200, 3, 2], [1, 50, 7])
    scored = predict_parts(
        tmp_path / "m", str(tmp_path / "in"), str(tmp_path / "out"), rows_per_part=100, device="cpu"
    )
    assert scored.rows == table.num_rows
    assert scored.parts == scored.new_parts == len(parts_of(tmp_path / "out")) > 3
    model = load(tmp_path / "m")
    check_equal(joined(tmp_path / "out"), predict_table(model, table))
    assert (
        parquet.read_table(tmp_path / "out").num_rows == table.num_rows
    )  # the manifest is no data to a reader


@pytest.mark.parametrize("kind", ["text", "category", "large", "float"])
def test_ids_may_be_of_any_type(kind, ranker, tmp_path, monkeypatch):
    monkeypatch.setattr("entourage.data.parquet_files.ROWS", 7)
    monkeypatch.setattr(jobs, "ROWS", 40)
    table = races(n=60)
    race = table["race"].to_pylist()
    text = pa.array([f"race {k}" for k in race])
    ids = {
        "text": text,
        "category": text.dictionary_encode(),
        "large": pa.array([2**64 - 1 - k for k in race], pa.uint64()),
        "float": pa.array([k / 4 for k in race]),
    }[kind]
    table = table.set_column(0, "race", ids)
    lay_out(table, tmp_path / "in", [11, 50], [9])
    given = {"rows_per_part": 50, "device": "cpu"}
    predict_parts(ranker, str(tmp_path / "in"), str(tmp_path / "out"), **given)
    check_equal(joined(tmp_path / "out"), predict_table(load(ranker), table))


def test_people_whose_choices_are_known_are_predicted_so(tmp_path):
    model = MixedLogit(draws=10, random_state=0)
    model.fit(races(), set_id="race", target="first", features=["x"], groups="person")
    model.save(tmp_path / "m")
    table = races(seed=1)
    lay_out(table, tmp_path / "in", [100], [50])
    predict_parts(
        tmp_path / "m", str(tmp_path / "in"), str(tmp_path / "out"), rows_per_part=100, people="person"
    )
    check_equal(joined(tmp_path / "out"), predict_table(load(tmp_path / "m"), table, "person"))


def test_people_are_refused_by_models_that_know_none(ranker, tmp_path):
    lay_out(races(), tmp_path / "in", [], [50])
    with pytest.raises(UserError, match="models that know people"):
        predict_parts(ranker, str(tmp_path / "in"), str(tmp_path / "out"), people="person")


def test_columns_may_come_in_any_order_and_may_be_missing_in_no_row(ranker, tmp_path):
    table = races()
    found = tmp_path / "in"
    lay_out(table.slice(0, 100), found, [], [50])
    rest = table.slice(100)
    required = [field.with_nullable(field.name != "name") for field in rest.schema]
    turned = rest.cast(pa.schema(required)).select(rest.column_names[::-1])
    parquet.write_table(turned, found / "0000b.parquet")
    predict_parts(ranker, str(found), str(tmp_path / "out"), rows_per_part=100)
    check_equal(joined(tmp_path / "out"), predict_table(load(ranker), table))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda t: t.drop_columns(["team"]),
            "b.parquet has other columns than .*0000.parquet: it lacks column 'team'",
        ),
        (lambda t: t.append_column("more", t["x"]), "it has column 'more' besides"),
        (
            lambda t: t.set_column(0, "race", t["race"].cast(pa.int32())),
            "b.parquet: column 'race' is of type int32, but int64 in .*0000.parquet",
        ),
    ],
)
def test_a_file_of_other_columns_is_named(ranker, tmp_path, change, said):
    lay_out(races(), tmp_path / "in", [], [50])
    parquet.write_table(change(races()), tmp_path / "in" / "b.parquet")
    with pytest.raises(DataError, match=said):
        predict_parts(ranker, str(tmp_path / "in"), str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_what_cannot_be_read_or_scored_is_named(ranker, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"a\.parquet can't be read as parquet"):
        predict_parts(ranker, str(tmp_path / "in"), str(tmp_path / "out"))
    parquet.write_table(races().slice(0, 0), tmp_path / "in" / "a.parquet")
    with pytest.raises(DataError, match="holds no rows"):
        predict_parts(ranker, str(tmp_path / "in"), str(tmp_path / "out"))
    parquet.write_table(races().drop_columns(["x"]), tmp_path / "in" / "a.parquet")
    with pytest.raises(DataError, match="lacks column 'x'"):
        predict_parts(ranker, str(tmp_path / "in"), str(tmp_path / "out"))
    table = races()
    x = table["x"].to_numpy().copy()
    x[-1] = np.inf
    parquet.write_table(
        table.set_column(1, "x", pa.array(x)), tmp_path / "in" / "a.parquet", row_group_size=100
    )
    with pytest.raises(DataError, match=r"a\.parquet, counting from row \d+: Column 'x'"):
        predict_parts(ranker, str(tmp_path / "in"), str(tmp_path / "out"), rows_per_part=100)
    kept = json.loads((tmp_path / "out" / manifest.NAME).read_text())
    assert not kept["complete"]
    assert sorted(kept["parts"]) == [path.name for path in parts_of(tmp_path / "out")]  # good parts are kept


class Interrupted(Exception):
    pass


def stop_after(parts):
    def on_progress(progress):
        if progress.all_parts is not None and progress.parts >= parts:
            raise Interrupted

    return on_progress


def test_a_restart_scores_what_is_missing_and_ends_in_the_same_bytes(ranker, tmp_path):
    lay_out(races(), tmp_path / "in", [200], [50])
    given = {"rows_per_part": 100, "device": "cpu"}
    whole = predict_parts(ranker, str(tmp_path / "in"), str(tmp_path / "whole"), **given)
    out = tmp_path / "out"
    with pytest.raises(Interrupted):
        predict_parts(ranker, str(tmp_path / "in"), str(out), on_progress=stop_after(2), **given)
    assert len(parts_of(out)) == 2
    before = [path.stat().st_mtime_ns for path in parts_of(out)]
    parts_of(out)[1].write_bytes(parts_of(out)[1].read_bytes()[:-1])  # cut short
    (out / ".part-00003.parquet.12345678.part").write_bytes(b"half")
    (out / "part-00003.parquet").write_bytes(b"half")  # in no manifest
    seen = []
    again = predict_parts(ranker, str(tmp_path / "in"), str(out), on_progress=seen.append, **given)
    assert again.new_parts == whole.parts - 1
    assert parts_of(out)[0].stat().st_mtime_ns == before[0]  # done parts are not done again
    assert (seen[-1].rows, seen[-1].parts) == (whole.rows, whole.parts)
    for ours, theirs in zip(parts_of(out), parts_of(tmp_path / "whole"), strict=True):
        assert ours.read_bytes() == theirs.read_bytes()
    for folder in (out, tmp_path / "whole"):
        kept = json.loads((folder / manifest.NAME).read_text())
        assert kept["complete"]
        assert kept["rows"] == sum(part["rows"] for part in kept["parts"].values())
    assert not [path for path in out.iterdir() if path.name.endswith(".part")]
    assert predict_parts(ranker, str(tmp_path / "in"), str(out), **given).new_parts == 0


def test_another_run_is_refused_and_what_differs_is_named(ranker, tmp_path):
    lay_out(races(), tmp_path / "in", [200], [50])
    out, first = str(tmp_path / "out"), tmp_path / "in" / "0000.parquet"
    predict_parts(ranker, str(tmp_path / "in"), out)
    before = [path.read_bytes() for path in parts_of(tmp_path / "out")]
    MODELS["ensemble"]().save(tmp_path / "other")
    with pytest.raises(UserError, match="the model is another"):
        predict_parts(tmp_path / "other", str(tmp_path / "in"), out)
    with pytest.raises(UserError, match="it had --rows-per-part 250000, not 100"):
        predict_parts(ranker, str(tmp_path / "in"), out, rows_per_part=100)
    with pytest.raises(UserError, match=r"0001\.parquet is no longer among the inputs"):
        predict_parts(ranker, str(first), out)
    os.utime(first, ns=(1, 1))
    with pytest.raises(UserError, match=r"0000\.parquet has changed \(modified \d+ then and 1 now\)"):
        predict_parts(ranker, str(tmp_path / "in"), out)
    lay_out(races(seed=2), tmp_path / "in", [200], [50])
    with pytest.raises(UserError, match=r"0000\.parquet has changed \(bytes"):
        predict_parts(ranker, str(tmp_path / "in"), out)
    lay_out(races(), tmp_path / "in", [200, 3], [50])
    with pytest.raises(UserError, match=r"0002\.parquet was not among the inputs|has changed"):
        predict_parts(ranker, str(tmp_path / "in"), out)
    assert [path.read_bytes() for path in parts_of(tmp_path / "out")] == before


def test_a_file_that_changes_while_it_is_scored_ends_the_run(ranker, tmp_path):
    lay_out(races(), tmp_path / "in", [200], [50])

    def change(progress):
        if progress.parts == 1:
            os.utime(tmp_path / "in" / "0001.parquet", ns=(1, 1))

    with pytest.raises(DataError, match=r"0001\.parquet has changed since this run began"):
        predict_parts(
            ranker, str(tmp_path / "in"), str(tmp_path / "out"), rows_per_part=100, on_progress=change
        )


def test_a_folder_that_is_used_otherwise_is_left_alone(ranker, tmp_path):
    source = lay_out(races(), tmp_path / "in", [], [50])
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("x")
    (tmp_path / "link").symlink_to(source)
    for out, said in (
        (source, "has inputs in it"),
        (tmp_path / "link", "has inputs in it"),
        (tmp_path / "notes", "is not empty"),
        (ranker, "is a file"),
    ):
        with pytest.raises(UserError, match=said):
            predict_parts(ranker, str(source), str(out))
    with pytest.raises(UserError, match="would also match what is written"):
        predict_parts(ranker, f"{tmp_path}/*/*.parquet", str(tmp_path / "out"))
    assert [path.name for path in source.iterdir()] == ["0000.parquet"]
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / manifest.NAME).write_text("{")
    with pytest.raises(DataError, match="can't be read as a manifest"):
        predict_parts(ranker, str(source), str(tmp_path / "bad"))


def test_more_parts_than_have_names_in_order_are_refused(ranker, tmp_path, monkeypatch):
    assert part_name(scoring.MOST_PARTS - 1) > part_name(scoring.MOST_PARTS - 2)
    assert part_name(scoring.MOST_PARTS) < part_name(scoring.MOST_PARTS - 1)
    monkeypatch.setattr(scoring, "MOST_PARTS", 3)
    source = str(lay_out(races(), tmp_path / "in", [], [50]))
    with pytest.raises(UserError, match="files; there may be 3. Give more --rows-per-part"):
        predict_parts(ranker, source, str(tmp_path / "out"), rows_per_part=100)
    assert not (tmp_path / "out").exists()


def test_two_runs_at_once_into_one_folder_are_refused(ranker, tmp_path):
    source = str(lay_out(races(), tmp_path / "in", [], [50]))

    def second(progress):
        with pytest.raises(UserError, match="Another run is writing"):
            predict_parts(ranker, source, str(tmp_path / "out"))

    assert predict_parts(ranker, source, str(tmp_path / "out"), on_progress=second).parts == 1


def test_another_file_system_serves_as_well(ranker, tmp_path, monkeypatch):
    from pyarrow._fs import _MockFileSystem

    system = _MockFileSystem()
    monkeypatch.setattr(places, "from_address", lambda name: (system, name.removeprefix("mock://")))
    table = races()
    lay_out(table, tmp_path / "in", [200], [50])
    place_of("mock://bucket/in").make_folder()
    for path in (tmp_path / "in").iterdir():
        place_of(f"mock://bucket/in/{path.name}").write(path.read_bytes())
    given = {"rows_per_part": 100}
    with pytest.raises(Interrupted):
        predict_parts(
            ranker, "mock://bucket/in/*.parquet", "mock://bucket/out", on_progress=stop_after(2), **given
        )
    rest = predict_parts(ranker, "mock://bucket/in/*.parquet", "mock://bucket/out", **given)
    assert rest.new_parts == rest.parts - 2
    out = place_of("mock://bucket/out")
    names = [name for name in out.children() if name.startswith("part-")]
    assert out.children() == [manifest.NAME, *names]
    found = pa.concat_tables([parquet.read_table(pa.BufferReader(out.child(name).read())) for name in names])
    check_equal(found, predict_table(load(ranker), table))


def test_the_command_writes_a_folder_from_a_pattern_an_address_or_a_file(ranker, tmp_path, capsys):
    table = races()
    source = lay_out(table, tmp_path / "in", [200], [50])
    expected = predict_table(load(ranker), table)
    more = ("--workers", 1, "--device", "cpu")
    code, out, err = run(capsys, "predict", ranker, f"{source}/*.parquet", "-o", tmp_path / "a", *more)
    assert (code, f"{table.num_rows} rows in 1 part: {tmp_path}/a" in out) == (0, True)
    assert "1 of 1 parts" in err
    code, out, err = run(
        capsys, "predict", ranker, f"file://{source}", "-o", f"file://{tmp_path}/b", "--json", *more
    )
    assert (code, json.loads(out)["rows"], err) == (0, table.num_rows, "")
    code, out, _ = run(capsys, "predict", ranker, source / "0000.parquet", "-o", f"{tmp_path}/c.d/", *more)
    assert code == 0
    check_equal(joined(tmp_path / "a"), expected)
    check_equal(joined(tmp_path / "b"), expected)
    check_equal(joined(tmp_path / "c.d"), predict_table(load(ranker), table.slice(0, 200)))
    code, out, _ = run(capsys, "predict", ranker, f"{source}/*.parquet", "-o", tmp_path / "a", *more)
    assert (code, "1 of them done before" in out) == (0, True)


def test_a_mistake_in_the_command_is_one_sentence(ranker, tmp_path, capsys):
    source = lay_out(races(), tmp_path / "in", [200], [50])
    one = source / "0000.parquet"
    for arguments, said in (
        ((f"{source}/*.parquet", "-o", tmp_path / "o.parquet"), "-o names a folder"),
        ((source, "-o", tmp_path / "o.parquet"), "-o names a folder"),
        ((one, "-o", tmp_path / "o.parquet", "--workers", 2), "name a folder, such as -o scores/"),
        ((one, "-o", tmp_path / "o", "--sep", ";"), "to a folder"),
        ((one, "-o", tmp_path / "o", "--address", "auto"), "--engine ray"),
        ((tmp_path / "no", "-o", tmp_path / "o"), "does not exist"),
        ((ranker, "-o", tmp_path / "o"), "can't be read as parquet"),
    ):
        code, _, err = run(capsys, "predict", ranker, *arguments)
        assert (code, said in " ".join(err.split())) == (2, True), err
    assert not (tmp_path / "o").exists()
    assert read_table(one).num_rows == 200
