"""The command whatif: what it prints and writes is what Python finds."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from entourage.choice import MultinomialLogit
from entourage.cli.program import app
from entourage.data import read_table
from entourage.decisions import what_if

COLUMNS = {"set_id": "trip", "target": "bought", "features": ["brand", "price"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("whatif")
    rng = np.random.default_rng(0)
    price = rng.uniform(1, 5, size=(150, 3))
    chosen = (np.array([1.0, 0.0, 0.5]) - 0.8 * price + rng.gumbel(size=(150, 3))).argmax(1)
    table = pd.DataFrame(
        {
            "trip": np.repeat(np.arange(150), 3),
            "brand": np.tile(["x", "y", "z"], 150),
            "price": price.ravel().round(2),
            "bought": (np.arange(3) == chosen[:, None]).ravel().astype(int),
        }
    ).sample(frac=1, random_state=0)
    table.to_csv(place / "trips.csv", index=False)
    MultinomialLogit(l2=1e-3).fit(table, **COLUMNS).save(place / "trips.entourage")
    return place


def run(folder, *options):
    return CliRunner().invoke(
        app, ["whatif", str(folder / "trips.entourage"), str(folder / "trips.csv"), *map(str, options)]
    )


def test_the_command_finds_what_python_finds_and_writes_a_page(folder):
    options = ["--change", "price*=1.1", "--where", 'brand=="x"', "--by", "brand", "--cost", "price"]
    page = run(folder, *options, "-o", folder / "out.html")
    assert page.exit_code == 0, page.output
    html = (folder / "out.html").read_text()
    assert "By brand" in html
    assert "price*=1.1" in html
    found = json.loads(run(folder, *options, "--json").stdout)
    frame = read_table(folder / "trips.csv")
    model = MultinomialLogit(l2=1e-3).fit(frame, **COLUMNS)
    expected = what_if(
        model, frame, change="price*=1.1", where='brand=="x"', by="brand", cost="price"
    ).to_json()
    for one, other in zip(found["shares"], expected["shares"], strict=True):
        assert one["group"] == other["group"]
        for name in ("before", "after", "change", "change_low", "change_high"):
            assert one[name] == pytest.approx(other[name], abs=1e-5)
    assert found["money"]["value"] == pytest.approx(expected["money"]["value"], abs=1e-4)
    assert f"{expected['shares'][0]['after']:.4f}" in page.output


def test_rows_are_added_from_a_file_and_refits_resample(folder):
    pd.DataFrame({"brand": ["y"], "price": [1.0]}).to_csv(folder / "new.csv", index=False)
    result = run(folder, "--add", folder / "new.csv", "--refits", 3, "-o", folder / "rows.csv", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["objects"], found["intervals"]) == ({"added": 150}, "refits")
    assert len(pd.read_csv(folder / "rows.csv")) == 600


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "Nothing changes"),
        (["--change", "price>3"], "assigns"),
        (["--add", "nowhere.csv"], "no file"),
        (["--change", "price*=2", "--group", "brand"], "--refits"),
    ],
)
def test_options_that_make_no_scenario_are_refused(folder, options, words):
    assert words in str(run(folder, *options).exception)
