"""The commands on tables, from a file to a model and back; a user's mistake is one clear sentence."""

import json

import pytest
from commands import run
from long_tables import long_table, sets_together

from entourage import load
from entourage.data.table_files import read_table, write_table

FIT = ("--set-id", "race", "--target", "place", "--ignore", "note", "--steps", "10", "--device", "cpu")


def test_fit_predict_evaluate_and_info(tmp_path, capsys):
    table, file = tmp_path / "t.parquet", tmp_path / "m.entourage"
    write_table(table, long_table())
    code, out, _ = run(capsys, "fit", table, *FIT, "--workers", "1", "--budget", "2", "-o", file, "--json")
    assert code == 0
    result = json.loads(out)
    assert result["model"] == "auto"
    assert {tried["tier"] for tried in result["tried"]} == {"alone", "relative", "net"}
    assert all({"name", "score", "weight", "seconds", "note"} < set(tried) for tried in result["tried"])
    assert sum(tried["weight"] for tried in result["tried"]) == pytest.approx(1)
    code, out, _ = run(capsys, "predict", file, table, "-o", tmp_path / "out.csv", "--json")
    assert (code, json.loads(out)["rows"]) == (0, long_table().num_rows)
    assert read_table(tmp_path / "out.csv").column_names[-2:] == ["score", "rank"]
    code, out, _ = run(capsys, "evaluate", file, table, "--json")
    assert 0 <= json.loads(out)["metrics"]["ranking_accuracy"] <= 1
    code, out, _ = run(capsys, "info", file)
    assert "place (rank)" in out


def test_tune_writes_the_model_of_the_best_trial(tmp_path, capsys):
    pytest.importorskip("optuna")
    table, tuned = tmp_path / "t.parquet", tmp_path / "tuned.entourage"
    write_table(table, long_table())
    code, out, _ = run(capsys, "tune", table, *FIT, "-o", tuned, "--trials", "2", "--folds", "1", "--json")
    assert (code, len(json.loads(out)["trials"])) == (0, 2)
    assert load(tuned).table_["set_id"] == "race"


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


def test_fit_on_disk_lays_out_and_learns(tmp_path, capsys):
    table, file = tmp_path / "t.parquet", tmp_path / "m.entourage"
    write_table(table, sets_together())
    roles = (
        "--set-id",
        "race",
        "--target",
        "place",
        "--situation",
        "laps",
        "--steps",
        "5",
        "--device",
        "cpu",
    )
    common = ("fit", table, *roles, "-o", file, "--on-disk", tmp_path / "d")
    code, _, err = run(capsys, *common)
    assert code == 2
    assert "name the model" in err
    code, out, _ = run(capsys, *common, "--model", "fate")
    assert code == 0
    assert "MB of memory" in " ".join(out.split())
    code, _, _ = run(capsys, "predict", file, table, "-o", tmp_path / "o.csv")
    assert code == 0
