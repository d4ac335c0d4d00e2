"""Long tables: from rows to sets and back, in any frame, any file; bad input is one clear sentence."""

import bz2
import gzip
import json
import lzma

import numpy as np
import pyarrow as pa
import pytest
from commands import run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from entourage import Ranker, load
from entourage.data import Sets
from entourage.data.encoder import TableEncoder, groups_of
from entourage.data.table_files import read_table, write_table
from entourage.effects.influence import influential_objects
from entourage.errors import DataError, UserError
from entourage.estimators.evaluation_tables import evaluate_table
from entourage.estimators.inputs import encoder_of
from entourage.estimators.prediction_tables import predict_table
from entourage.estimators.tables import describe
from entourage.nets import FATE

ROWS = {
    "race": ["b", "a", "b", "a", "c", "b"],
    "age": [31.0, 24.0, None, 40.0, 22.0, 28.0],
    "wet": [True, False, True, False, True, True],
    "team": ["red", "blue", "blue", None, "red", "green"],
    "laps": [50, 60, 50, 60, 70, 50],
    "place": [2, 1, 1, 2, 1, 3],
}
TABLE = pa.table(ROWS)
ROLES = {"set_id": "race", "target": "place", "situation": ["laps", "wet"]}


def frames():
    import pandas as pd
    import polars as pl

    yield "pandas", pd.DataFrame(ROWS)
    yield "pandas, an index of its own", pd.DataFrame(ROWS, index=[5, 3, 8, 1, 9, 0])
    yield "polars", pl.DataFrame(ROWS)
    yield "arrow", TABLE


@pytest.mark.parametrize(("name", "frame"), list(frames()), ids=lambda v: v if isinstance(v, str) else "")
def test_every_frame_makes_the_same_sets(name, frame):
    sets = Sets.from_frame(frame, **ROLES)
    assert sets.sizes.tolist() == [3, 2, 1], "sets in order of appearance, their rows gathered"
    # b: rows 0, 2, 5; a: rows 1, 3; c: row 4
    assert sets.targets.tolist() == [2, 1, 3, 1, 2, 1]
    mean = (31 + 24 + 40 + 22 + 28) / 5
    assert sets.objects[:, 0].tolist() == pytest.approx([31, mean, 28, 24, 40, 22])
    assert sets.objects[:, 1].tolist() == [0, 1, 0, 0, 0, 0], "an indicator says what was missing"
    assert sets.objects[:, 2:].tolist() == [
        [0, 1, 0], [1, 0, 0], [0, 0, 1], [1, 0, 0], [0, 0, 0], [0, 1, 0],
    ], "blue, red, green: by frequency, then by name; a missing team is none of them"  # fmt: skip
    assert sets.situation.tolist() == [[50, 1], [60, 0], [70, 1]]


def test_the_way_back_keeps_the_rows_where_they_were():
    packed = TableEncoder.fit(TABLE, **ROLES)(TABLE)
    assert packed.ids.to_pylist() == ["b", "a", "c"]
    assert packed.in_rows(packed.sets.targets).tolist() == ROWS["place"]
    back = packed.sets.to_frame(["age", "no age", "blue", "red", "green"])
    assert back["target"].to_pylist() == [2, 1, 3, 1, 2, 1]
    assert Sets.from_frame(back, set_id="set", target="target").sizes.tolist() == [3, 2, 1]


def test_unseen_levels_and_missing_values_of_new_tables():
    encoder = TableEncoder.fit(TABLE, **ROLES)
    new = pa.table(
        {"race": [1, 1], "age": [None, 20.0], "wet": [True, True], "team": ["pink", "red"], "laps": [1, 1]}
    )
    objects = encoder(new, with_target=False).sets.objects
    assert objects[0].tolist() == pytest.approx([29, 1, 0, 0, 0])
    assert objects[1].tolist() == [20, 0, 0, 1, 0]


def test_rare_levels_share_a_column_with_unseen_ones():
    teams = [f"t{i:02}" for i in range(40)] * 2 + ["t00"]
    table = pa.table({"s": [0] * 81, "team": teams, "r": list(range(81))})
    encoder = TableEncoder.fit(table, set_id="s", target="r")
    assert encoder.columns[0].width == 32
    assert encoder.feature_names[0] == "team=t00"
    assert encoder.feature_names[-1] == "team=other"
    objects = encoder(pa.table({"s": [0, 0], "team": ["t39", "new"], "r": [0, 1]})).sets.objects
    assert objects[:, -1].tolist() == [1, 1]


def test_relevance_and_choice_become_ranks():
    table = pa.table({"s": [0, 0, 0], "x": [1, 2, 3], "y": [0, 2, 1]})
    packed = TableEncoder.fit(table, set_id="s", target="y", target_kind="relevance")(table)
    assert packed.sets.targets.tolist() == [2, 0, 1]
    assert (packed.sets.worst - packed.sets.targets).tolist() == [0, 2, 1]
    chosen = table.set_column(2, "y", pa.array([False, True, False]))
    assert TableEncoder.fit(chosen, set_id="s", target="y", target_kind="choice")(chosen).sets.targets.tolist() == [
        1, 0, 1,
    ]  # fmt: skip


def test_encoders_survive_json():
    encoder = TableEncoder.fit(TABLE, **ROLES)
    again = TableEncoder.from_json(json.loads(json.dumps(encoder.to_json())))
    assert np.array_equal(again(TABLE).sets.objects, encoder(TABLE).sets.objects)


def test_columns_may_be_reordered_extra_or_of_another_numeric_type():
    encoder = TableEncoder.fit(TABLE, **ROLES)
    other = TABLE.select(TABLE.column_names[::-1]).append_column("more", pa.array(range(6)))
    assert np.array_equal(encoder(other).sets.objects, encoder(TABLE).sets.objects)
    whole = TABLE.set_column(4, "laps", pa.array(["50", "60", "50", "60", "70", "50"]))
    assert np.array_equal(encoder(whole).sets.situation, encoder(TABLE).sets.situation)


def changed(name, values):
    return TABLE.set_column(TABLE.column_names.index(name), name, pa.array(values))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (TABLE.drop_columns(["age"]), "lacks column 'age', which the model learnt from"),
        (changed("age", [1.0, 2.0, float("inf"), 4.0, 5.0, 6.0]), "'age' is infinite in row 3, set 'b'"),
        (changed("age", ["1", "2", "x", "4", "5", "6"]), "'age' needs numbers.*row 3, set 'b' holds 'x'"),
        (changed("race", ["b", "a", None, "a", "c", "b"]), "missing in row 3"),
        (changed("laps", [50, 60, 51, 60, 70, 50]), "'laps' is of the situation.*differs in row 3, set 'b'"),
        (changed("place", ["1", "2", "3", "4", "5", "6"]), "'place' should hold ranks; it holds string"),
        (changed("place", [1.0, 2.0, float("inf"), 1.0, 1.0, 1.0]), "'place' is infinite in row 3"),
        (TABLE.slice(0, 0), "no rows"),
    ],
)
def test_bad_tables_are_named_by_column_row_and_set(table, message):
    with pytest.raises(DataError, match=message):
        TableEncoder.fit(TABLE, **ROLES)(table)


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ({"set_id": "rase"}, "no column 'rase'; did you mean 'race'"),
        ({"target": "plaze"}, "did you mean 'place'"),
        ({"target_kind": "ranks"}, "did you mean 'rank'"),
        ({"features": ["age", "laps"]}, "'laps' can't be a feature of the objects and something else"),
        ({"ignore": ["age", "team"]}, "No feature column tells the objects|No column is left"),
        ({"target_kind": "choice"}, "should hold choices, 0 or 1; row 1, set 'b' holds 2"),
    ],
)
def test_roles_that_do_not_fit_are_named(roles, message):
    with pytest.raises(UserError, match=message):
        TableEncoder.fit(TABLE, **(ROLES | roles))(TABLE)


def test_dates_are_refused_with_advice():
    import datetime

    table = TABLE.append_column("day", pa.array([datetime.date(2020, 1, 1)] * 6))
    with pytest.raises(DataError, match="'day' holds dates or times.*days since an event"):
        TableEncoder.fit(table, **ROLES)
    with pytest.raises(DataError, match="list"):
        TableEncoder.fit(TABLE.append_column("many", pa.array([[1]] * 6)), **ROLES)
    TableEncoder.fit(table, **ROLES, ignore=["day"])


def test_groups_must_not_part_sets():
    packed = TableEncoder.fit(TABLE, **ROLES)(TABLE)
    assert groups_of(TABLE, packed, "laps").tolist() == [0, 1, 2]
    with pytest.raises(DataError, match="'team' groups sets; it is missing in row 4"):
        groups_of(TABLE, packed, "team")
    with pytest.raises(DataError, match="'age' groups sets.*differs in row 3, set 'b'"):
        groups_of(changed("age", [1, 1, 2, 1, 1, 1]), packed, "age")


# --- files ------------------------------------------------------------------------------------------


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


# --- models of tables -------------------------------------------------------------------------------


def long_table(n=40, seed=0):
    """Rank by the distance to the mean of the set, in rows that are shuffled."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(3, 7, n)
    race = np.repeat(np.arange(n), sizes)
    x = rng.random(len(race))
    mean = np.bincount(race, x) / sizes
    gap = np.abs(x - mean[race])
    place = np.concatenate([np.argsort(np.argsort(gap[race == i])) for i in range(n)])
    order = rng.permutation(len(race))
    columns = {"race": race, "x": x, "note": np.array([f"n{i}" for i in range(len(race))]), "place": place}
    return pa.table({name: values[order] for name, values in columns.items()})


@pytest.fixture(scope="module")
def model():
    table = long_table()
    ranker = Ranker(FATE(width=16), steps=150, batch_size=32, random_state=0, device="cpu")
    ranker.fit(table, set_id="race", target="place", ignore=["note"])
    return ranker


def test_predictions_joined_row_by_row_are_those_of_the_sets(model, tmp_path):
    model.save(tmp_path / "m.entourage")
    again = load(tmp_path / "m.entourage")
    table = long_table(seed=1)
    predicted = predict_table(again, table)
    assert predicted.column_names == [*table.column_names, "score", "rank"]
    assert predicted.select(table.column_names).equals(table), "rows in the order they came, columns kept"
    rows = predicted.to_pylist()
    for race in set(table["race"].to_pylist()):
        mine = [row for row in rows if row["race"] == race]
        scores = model.predict_scores(np.array([[[row["x"]] for row in mine]], dtype=np.float32))[0]
        assert [row["score"] for row in mine] == pytest.approx(scores.tolist(), abs=1e-5)
        assert sorted(mine, key=lambda row: -row["score"]) == sorted(mine, key=lambda row: row["rank"])


def test_a_column_of_the_same_name_is_kept(model):
    table = long_table(seed=1).rename_columns(["race", "x", "note", "rank"])
    predicted = predict_table(model, table)
    assert predicted.column_names[-2:] == ["score", "predicted_rank"]
    assert predicted["rank"].equals(table["rank"])
    with pytest.raises(DataError, match="'predicted_rank' already"):
        predict_table(model, predicted.drop_columns(["score"]))


def test_evaluation_agrees_with_the_estimators_score(model):
    table = long_table(seed=2)
    result = evaluate_table(model, table)
    sets = encoder_of(model)(table).sets
    assert result["metrics"]["ranking_accuracy"] == pytest.approx(model.score(sets))
    assert result["sets"] == 40
    assert set(result["by_size"]) == set(sets.sizes.tolist())
    with pytest.raises(DataError, match="lacks column 'place'"):
        evaluate_table(model, table.drop_columns(["place"]))
    tied = table.set_column(3, "place", pa.array([1] * table.num_rows))
    with pytest.raises(DataError, match="targets are all alike"):
        evaluate_table(model, tied)


def test_graded_metrics_use_the_grades():
    table = pa.table({"q": [0, 0, 0], "x": [3.0, 2.0, 1.0], "rel": [2, 0, 1]})
    encoder = TableEncoder.fit(table, set_id="q", target="rel", target_kind="relevance")

    class Sum:
        task = Ranker.task
        table_ = encoder.to_json()

        def predict_scores(self, sets):
            return sets.objects[:, 0]

    ideal, got = 2 + 1 / np.log2(3), 2 + 1 / np.log2(4)
    assert evaluate_table(Sum(), table)["metrics"]["ndcg"] == pytest.approx(got / ideal)


def test_profiles_count_sets_and_ties():
    encoder = TableEncoder.fit(TABLE, **ROLES)
    profile = describe(encoder(TABLE), encoder)
    assert (profile["sets"], profile["objects"], profile["sets_of_one"]) == (3, 6, 1)
    assert (profile["ordered_pairs"], profile["tied_pairs"], profile["unranked"]) == (4, 0, 0)


def test_influence_is_how_often_the_others_turn_round(model):
    packed = encoder_of(model)(long_table(seed=3))
    found = influential_objects(model, packed, most_sets=10)
    assert found[0]["reversal_rate"] >= found[-1]["reversal_rate"] >= 0
    first = found[0]
    i = packed.ids.to_pylist().index(first["set"])
    rows = packed.order[packed.sets.offsets[i] : packed.sets.offsets[i + 1]]
    assert first["row"] in rows

    rest = np.setdiff1d(rows, first["row"])
    x = long_table(seed=3)["x"].to_numpy()
    whole = dict(zip(rows, model.predict_scores(Sets.of(x[rows][None, :, None])), strict=True))
    without = dict(zip(rest, model.predict_scores(Sets.of(x[rest][None, :, None])), strict=True))
    pairs = [(a, b) for k, a in enumerate(rest) for b in rest[k + 1 :]]
    turned = [(whole[a] - whole[b]) * (without[a] - without[b]) < 0 for a, b in pairs]
    assert (first["reversal_rate"], first["pairs"]) == (pytest.approx(np.mean(turned)), len(pairs))

    class Blind:
        def predict_scores(self, sets):
            return sets.objects[:, 0]

    assert all(entry["reversal_rate"] == 0 for entry in influential_objects(Blind(), packed))


def test_a_model_of_arrays_is_no_model_of_tables():
    ranker = Ranker(FATE(width=4), steps=2, device="cpu", random_state=0)
    ranker.fit(np.random.default_rng(0).random((30, 3, 1)), np.tile(np.arange(3), (30, 1)))
    with pytest.raises(UserError, match="was fitted to arrays"):
        predict_table(ranker, TABLE)


# --- commands ---------------------------------------------------------------------------------------


FIT = ("--set-id", "race", "--target", "place", "--ignore", "note", "--steps", "30", "--device", "cpu")


def test_fit_predict_evaluate_info_and_tune(tmp_path, capsys):
    table, file = tmp_path / "t.parquet", tmp_path / "m.entourage"
    write_table(table, long_table())
    code, out, _ = run(capsys, "fit", table, *FIT, "-o", file, "--json")
    assert code == 0
    result = json.loads(out)
    assert {tried["name"] for tried in result["tried"]} == {"context_free", "fate", "feta", "set_attention"}
    assert result["model"] == max(result["tried"], key=lambda tried: tried["score"])["name"]
    code, out, _ = run(capsys, "predict", file, table, "-o", tmp_path / "out.csv", "--json")
    assert (code, json.loads(out)["rows"]) == (0, long_table().num_rows)
    assert read_table(tmp_path / "out.csv").column_names[-2:] == ["score", "rank"]
    code, out, _ = run(capsys, "evaluate", file, table, "--json")
    assert 0 <= json.loads(out)["metrics"]["ranking_accuracy"] <= 1
    code, out, _ = run(capsys, "info", file)
    assert "place (rank)" in out
    tuned = (
        "tune",
        table,
        *FIT,
        "-o",
        tmp_path / "tuned.entourage",
        "--trials",
        "2",
        "--folds",
        "1",
        "--json",
    )
    code, out, _ = run(capsys, *tuned)
    assert (code, len(json.loads(out)["trials"])) == (0, 2)
    assert load(tmp_path / "tuned.entourage").table_["set_id"] == "race"


def test_a_users_mistake_is_one_sentence_and_exit_code_2(tmp_path, capsys):
    table, file = tmp_path / "t.csv", tmp_path / "m.entourage"
    write_table(table, long_table())
    assert run(capsys, "fit", table, *FIT, "--model", "context_free", "-o", file)[0] == 0
    write_table(tmp_path / "less.csv", long_table().drop_columns(["x"]))
    (tmp_path / "bad.entourage").write_bytes(file.read_bytes()[:-5])
    cases = [
        (("fit", table, "--set-id", "rase", "--target", "place", "-o", file), "did you mean 'race'"),
        (("fit", table, *FIT, "--model", "fat", "-o", file), "did you mean 'fate'"),
        (("fit", tmp_path / "no.csv", *FIT, "-o", file), "does not exist"),
        (("fit", table, *FIT, "--model", "fate", "-o", tmp_path / "no" / "m"), "can't be written"),
        (("predict", file, tmp_path / "less.csv", "-o", tmp_path / "o.csv"), "lacks column 'x'"),
        (("predict", file, table, "-o", tmp_path / "o.doc"), "needs one of the extensions"),
        (("predict", tmp_path / "bad.entourage", table, "-o", tmp_path / "o.csv"), "bad.entourage"),
        (("evaluate", file, tmp_path / "less.csv"), "lacks column 'x'"),
        (("info", table), "t.csv"),
    ]
    before = file.read_bytes()
    for arguments, message in cases:
        code, _, err = run(capsys, *arguments)
        assert code == 2, arguments
        assert message in " ".join(err.split()), err
        assert "Traceback" not in err
    assert file.read_bytes() == before, "nothing saved is lost"
    assert not (tmp_path / "o.csv").exists()


CELL = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**6), 10**6), st.floats(), st.text(max_size=3), st.just(1e300)
)


@given(
    data=st.fixed_dictionaries(
        {name: st.lists(CELL, min_size=6, max_size=6) for name in ("race", "x", "place")}
        | {
            "order": st.permutations(["race", "x", "place"]),
            "drop": st.sampled_from([None, "race", "x", "place"]),
        }
    )
)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.filterwarnings("ignore::entourage.errors.DataWarning")
def test_malformed_tables_give_clean_errors_only(model, data):
    columns = {}
    for name in data["order"]:
        if name == data["drop"]:
            continue
        try:
            columns[name] = pa.array(data[name])
        except (pa.ArrowInvalid, pa.ArrowTypeError):  # mixed types: as a CSV would have them
            columns[name] = pa.array([None if cell is None else str(cell) for cell in data[name]])
    table = pa.table(columns)
    try:
        fitted = Ranker(FATE(width=2), steps=1, device="cpu", random_state=0)
        fitted.fit(table, set_id="race", target="place")
        assert np.isfinite(predict_table(fitted, table)["score"].to_numpy()).all()
    except UserError:
        pass
    try:
        assert np.isfinite(predict_table(model, table)["score"].to_numpy()).all()
    except UserError:
        pass


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


# --- categories of many levels ----------------------------------------------------------------------


def test_many_levels_become_codes_whose_vectors_are_learnt(tmp_path):
    rng = np.random.default_rng(0)
    worth = rng.permutation(60)
    names = np.array([f"team{i}" for i in range(60)])
    team = np.concatenate([rng.choice(60, 5, replace=False) for _ in range(400)])
    race = np.repeat(np.arange(400), 5)
    place = np.concatenate([np.argsort(np.argsort(worth[team[race == i]])) for i in range(400)])
    table = pa.table({"race": race, "noise": rng.random(2000), "team": names[team], "place": place})
    encoder = TableEncoder.fit(table, set_id="race", target="place", codes=True)
    assert encoder.categories == [(1, 60)]
    model = Ranker(FATE(width=16), steps=400, batch_size=64, learning_rate=0.01, device="cpu", random_state=0)
    model.fit(encoder(table).sets)
    assert evaluate_table(model, table)["metrics"]["ranking_accuracy"] > 0.85
    model.save(tmp_path / "m.entourage")
    again = load(tmp_path / "m.entourage")
    assert predict_table(again, table)["score"].equals(predict_table(model, table)["score"])
    unseen = pa.table({"race": [0, 0], "noise": [0.1, 0.1], "team": ["stranger", None]})
    scores = predict_table(again, unseen)["score"].to_pylist()
    assert scores[0] == pytest.approx(scores[1]), "what was never seen has no vector of its own"
