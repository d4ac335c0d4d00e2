"""Automatic models on the command line: fit says what it does; other commands take the file or say why not."""

import json

import numpy as np
import pandas as pd
import pytest
from commands import run

from entourage import load


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    home = tmp_path_factory.mktemp("auto")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"race": np.repeat(np.arange(24), 4), "odds": np.exp(2 * rng.normal(size=96))})
    frame["jockey"] = rng.choice(["ann", "bob", "eve"], 96)
    frame["place"] = frame.groupby("race").odds.rank().astype(int) - 1
    frame["grade"] = 3 - frame.place
    frame.to_csv(home / "races.csv", index=False)
    return home


def fit(capsys, folder, *options, target="place"):
    other = "grade" if target == "place" else "place"
    columns = ["--set-id", "race", "--target", target, "--ignore", other]
    quick = ["--budget", 60, "--workers", 1, "--steps", 2]
    return run(capsys, "fit", folder / "races.csv", *columns, *quick, "-o", folder / "m", *options)


def test_fit_predict_evaluate_info_and_effects(folder, capsys):
    code, out, err = fit(capsys, folder)
    assert code == 0, err
    text = " ".join(out.split())
    assert "each fitted to 5 folds" in text
    assert "At most 60 seconds" in text
    assert "Blend: " in text
    assert "ranking_accuracy" in text.partition("auto, trained on")[2]
    assert "with the weights that the other half chose" in text
    model = load(folder / "m")

    code, out, _ = run(capsys, "info", folder / "m")
    assert code == 0
    for tried in model.tried_:
        assert tried.name in out
    best = max(model.tried_, key=lambda one: one.weight)
    line = next(line for line in out.splitlines() if line.startswith(f"{best.name} "))
    assert f"{best.score:.4f}" in line
    assert f"{best.weight:.0%}" in line
    assert best.tier in line
    assert "odds (number), jockey (category)" in out
    code, out, _ = run(capsys, "info", folder / "m", "--json")
    assert [one["name"] for one in json.loads(out)["fitted"]["tried"]] == [one.name for one in model.tried_]

    assert run(capsys, "predict", folder / "m", folder / "races.csv", "-o", folder / "p.csv")[0] == 0
    frame, predicted = pd.read_csv(folder / "races.csv"), pd.read_csv(folder / "p.csv")
    np.testing.assert_allclose(predicted["score"], model.predict_scores(frame), rtol=1e-6)
    code, out, _ = run(capsys, "evaluate", folder / "m", folder / "races.csv")
    assert f"{model.score(frame):.4f}" in out

    code, out, err = run(
        capsys,
        "effects",
        folder / "m",
        folder / "races.csv",
        "--json",
        "--draws",
        0,
        "--report",
        folder / "effects.html",
    )
    assert code == 0, err
    found = json.loads(out)
    assert "blend of several" in found["no_intervals"]


def test_the_score_of_graded_tables_is_named_as_what_it_is(folder, capsys):
    code, out, err = fit(capsys, folder, "--target-kind", "relevance", target="grade")
    assert code == 0, err
    assert "; ndcg@10 " in " ".join(out.split())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--relative", "jockey"), "'jockey', which is no numeric column"),
        (("--loss", "hinges"), "did you mean 'hinge'"),
        (("--group", "stable"), "stable"),
        (("--ignore", "odds", "--ignore", "jockey"), "No column is left"),
    ],
)
def test_what_does_not_fit_is_one_sentence(folder, capsys, options, says):
    code, _, err = fit(capsys, folder, *options)
    assert code == 2
    assert says in " ".join(err.split())


def test_tune_searches_the_settings_of_one_net(folder, capsys):
    options = ("--set-id", "race", "--target", "place", "--model", "auto", "-o", folder / "t")
    code, _, err = run(capsys, "tune", folder / "races.csv", *options)
    assert code == 2
    assert 'name one, such as "fate"' in " ".join(err.split())
