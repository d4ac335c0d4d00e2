"""``entourage compare``: terminal, JSON and page say the same."""

import dataclasses
import importlib.util
import json

import numpy as np
import pandas as pd
import pytest
from commands import run

from entourage.data import make_hypervolume

QUICK = ("--workers", "1", "--steps", "4", "--folds", "2", "--inner", "1", "--level", "0.05", "--seed", "0")


@pytest.fixture
def races(tmp_path, monkeypatch):
    """Return a table of races in the current folder."""
    X, ranks = make_hypervolume(n_sets=40, random_state=0)
    rows = X.reshape(-1, X.shape[2])
    frame = pd.DataFrame(rows, columns=[f"x{i}" for i in range(rows.shape[1])])
    frame = frame.assign(race=np.repeat(np.arange(40), X.shape[1]), place=ranks.ravel())
    frame.to_csv(tmp_path / "races.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "races.csv"


def compare(capsys, races, *options):
    code, out, err = run(capsys, "compare", races, "--set-id", "race", "--target", "place", *QUICK, *options)
    assert code == 0, err
    return out


def test_one_seed_gives_one_page_and_without_lightgbm_all_say_so(races, tmp_path, monkeypatch, capsys):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "lightgbm" else found(name))
    printed = compare(capsys, races, "--report", "one.html")
    plain = json.loads(compare(capsys, races, "--report", "two.html", "--json"))
    page = (tmp_path / "one.html").read_bytes()
    assert page == (tmp_path / "two.html").read_bytes()
    for text in (printed, plain["warnings"][0], page.decode()):
        assert "LambdaMART was left out: LightGBM is not installed" in text
    assert "LambdaMART" in plain["left_out"]
    assert plain["verdict"] in printed
    assert "significant context effect" in plain["verdict"].lower()
    words = page.decode()
    for heading in (
        "Context gain",
        "All models",
        "By size of the choice set",
        "What matters",
        "Influential objects",
        "Columns",
    ):
        assert f"<h2>{heading}</h2>" in words
    assert "http" not in words, "self-contained"


def test_a_page_is_made_of_what_it_is_given_and_fits_nothing(tmp_path, monkeypatch):
    from entourage import FATE, Ranker
    from entourage.baselines import RankSVM
    from entourage.cli.compare_fits import fit_for_page
    from entourage.cli.compare_page import write_comparison
    from entourage.cli.options import read_training_table
    from entourage.selection import compare, verdict

    X, ranks = make_hypervolume(n_sets=20, random_state=0)
    rows = pd.DataFrame(X.reshape(-1, 2), columns=["a", "b"])
    rows.assign(s=np.repeat(np.arange(20), 5), y=ranks.ravel()).to_csv(tmp_path / "t.csv", index=False)
    about = {"set_id": "s", "target": "y", "target_kind": "rank"}
    others = dict.fromkeys(["feature", "situation", "ignore", "missing"])
    training = read_training_table(tmp_path / "t.csv", **about, **others, csv={}, codes=False)
    candidates = {"linear": (RankSVM(), "context-free"), "net": (Ranker(FATE(4), steps=2), "context")}
    result = compare(training.packed.sets, candidates, folds=2)
    fits = fit_for_page(result, training)
    for kind in (RankSVM, Ranker):
        monkeypatch.setattr(kind, "fit", None)
    none = dataclasses.replace(fits, influences=[])
    write_comparison(tmp_path / "p.html", result, training, none, title="Given")
    assert (
        "Removing an object reverses no preference between the others for net."
        in (tmp_path / "p.html").read_text()
    )
    most = [fits.influences[0] | {"reversal_rate": 0.5}]
    write_comparison(
        tmp_path / "p.html", result, training, dataclasses.replace(fits, influences=most), title="Given"
    )
    page = (tmp_path / "p.html").read_text()
    assert "<td>50.0%</td>" in page
    assert verdict(result) in page
