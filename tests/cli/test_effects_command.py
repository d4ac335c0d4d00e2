"""The command effects: what it prints and writes is what the report has, and options that don't fit are refused."""

import json
import re
from contextlib import nullcontext
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from effect_cases import TINY
from scipy.special import expit
from typer.testing import CliRunner

from entourage import FATE, ContextFree, DiscreteChooser, Ranker, load
from entourage.cli.program import app
from entourage.data.encoder import TableEncoder
from entourage.data.synthetic.context_effects import make_context_effect
from entourage.effects import context_effect, effects_report
from entourage.errors import UserError


@pytest.fixture(scope="module")
def products(tmp_path_factory):
    """A table of products subject to attraction, a net that sees it and one that sees each product alone."""
    folder = tmp_path_factory.mktemp("products")
    sets = make_context_effect("attraction", 800, random_state=0)
    columns = {
        "offer": np.repeat(np.arange(len(sets)), sets.sizes),
        "brand": np.random.default_rng(0).choice(["x", "y"], len(sets.objects)),
        "quality": sets.objects[:, 0],
        "price": 100 * (1 - sets.objects[:, 1]),
        "place": sets.targets,
    }
    frame = pd.DataFrame(columns).sample(frac=1, random_state=0, ignore_index=True)  # rows of a set apart
    frame.to_csv(folder / "products.csv", index=False)
    for name, net, steps in (("seeing", FATE(width=32), 600), ("blind", ContextFree(width=16), 200)):
        encoder = TableEncoder.fit(frame, set_id="offer", target="place")
        ranker = Ranker(net, steps=steps, device="cpu", random_state=1)
        ranker.fit(encoder(frame).sets)
        ranker.save(folder / f"{name}.entourage")
    return folder


def effects_command(folder, name, *options):
    files = [folder / f"{name}.entourage", folder / "products.csv", "--report", folder / f"{name}.html"]
    return invoke(*files, "--draws", 0, "--refits", 0, *options)


def invoke(*arguments):
    """Run the command; with --json no page is drawn, which takes most of the time."""
    drawn = patch("entourage.cli.effects_page.write_effects") if "--json" in arguments else nullcontext()
    with drawn:
        return CliRunner().invoke(app, ["effects", *map(str, arguments), "--device", "cpu"])


def test_the_command_finds_attraction_where_it_is_and_exactly_none_without_context(products):
    found = json.loads(effects_command(products, "seeing", "--json").stdout)
    assert found["pair"] is None
    natural = found["natural_effects"]
    assert natural["better"] == {"quality": "more", "price": "less"}
    assert sorted(natural["left_out"]) == ["brand=x", "brand=y"]
    assert natural["attraction"]["value"] > 0.1
    assert natural["attraction"]["interval"] is None
    assert found["no_intervals"] == "--refits 0: no refits, so no confidence intervals."
    assert natural["attraction"]["sets"] > 100
    told = effects_command(products, "seeing").stdout
    assert "more quality (by the model), less price (by the model). Not used: 2 other features." in told
    assert f"attraction: {natural['attraction']['value']:+.4f}" in told
    page = (products / "seeing.html").read_text()
    rate = found["reversal_rate"]["value"]
    assert f'<p class="headline">In this model, removing one alternative reverses {rate:.1%} of' in page
    assert page.count('class="intervals"') >= 3
    assert "A lies between B and C" in page
    assert "extrapolates" not in page  # the table has pairs
    assert "no refits, so no confidence intervals" in page
    effects_command(products, "blind")
    assert (
        "No context effect: removing an alternative changes nothing" in (products / "blind.html").read_text()
    )
    blind = json.loads(effects_command(products, "blind", "--json").stdout)["natural_effects"]
    for name in ("attraction", "compromise", "similarity"):
        assert blind[name]["value"] == 0
    given = effects_command(products, "seeing", "--more-is-better", "price")
    assert "more price (given)" in given.stdout


def test_the_command_says_what_helps_a_row_against_another(products):
    frame = pd.read_csv(products / "products.csv")
    one = frame[frame.offer == 0].index
    row, against = int(one[0]), int(one[1])
    options = ["--help-row", row, "--against", against]
    pair = json.loads(effects_command(products, "seeing", *options, "--json").stdout)["pair"]
    assert (pair["row"], pair["against"], pair["map"]) == (row, against, ["quality", "price"])
    assert pair["probability"] == pytest.approx(float(expit(pair["log_odds"])))
    shifts = [entry["shift"] for entry in pair["helps"]]
    assert shifts == sorted(shifts, reverse=True)
    assert len(pair["hurts"]) == 5
    best = pair["hurts"][0]
    assert best["after"] < best["before"] == pair["probability"]
    told = effects_command(products, "seeing", *options, "--map", "price", "--map", "quality").stdout
    assert f"Row {row} is preferred to row {against} with probability {pair['probability']:.4f}" in told
    assert f"row {best['row']} hurts: log-odds {best['shift']:+.4f}" in told
    page = (products / "seeing.html").read_text()
    assert f"Decoys: what helps row {row} against row {against}" in page
    assert "Dashed line: no effect." in page
    assert "None has an effect." in effects_command(products, "blind", *options).stdout


def test_the_shift_that_the_command_says_is_that_of_the_rows(products):
    frame = pd.read_csv(products / "products.csv")
    options = ["--help-row", 7, "--against", 3, "--json"]
    pair = json.loads(effects_command(products, "seeing", *options).stdout)["pair"]
    third = pair["hurts"][0]
    model = load(products / "seeing.entourage")
    encoder = TableEncoder.from_json(model.table_)
    objects = encoder(frame.iloc[[7, 3, third["row"]]].assign(offer=0)).sets.objects
    assert context_effect(model, *objects).shift.value == pytest.approx(third["shift"], rel=1e-4)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--help-row", 1], "only --help-row came. Add --against"),
        (["--against", 1], "only --against came. Add --help-row"),
        (["--help-row", 1, "--against", 1], "two different rows"),
        (["--help-row", 1, "--against", 99999], "from 0 to 1,999; got 99,999"),
        (["--help-row", -1, "--against", 1], "got -1"),
        (["--map", "price", "--map", "quality"], "--map is about a pair, and none came"),
        (["--help-row", 1, "--against", 2, "--map", "price"], "--map came once"),
        (["--help-row", 1, "--against", 2, *["--map", "price"] * 3], "--map came 3 times"),
        (["--help-row", 1, "--against", 2, *["--map", "price"] * 2], "got 'price' twice"),
        (
            ["--help-row", 1, "--against", 2, "--map", "price", "--map", "brand"],
            "got 'brand'. Choose from 'quality', 'price'",
        ),
        (["--more-is-better", "price", "--less-is-better", "price"], "'price' came with"),
        (["--less-is-better", "brand"], "'brand' is none of them. Choose from 'quality', 'price'"),
    ],
)
def test_options_that_do_not_go_together_get_one_sentence(options, words, products):
    result = effects_command(products, "blind", *options)
    assert isinstance(result.exception, UserError)
    assert words in str(result.exception)


@pytest.fixture(scope="module")
def trips(tmp_path_factory):
    """A table of choices by 20 people, from sets that repeat, and a small net fitted to it."""
    folder = tmp_path_factory.mktemp("trips")
    rng = np.random.default_rng(0)
    menus = [rng.normal(size=(m, 2)).round(1) for m in (3, 3, 4, 2)]
    rows = []
    for i in range(120):
        x = menus[i % 4][rng.permutation(len(menus[i % 4]))]
        chosen = (x.sum(1) + rng.gumbel(size=len(x))).argmax()
        rows += [
            {"trip": i, "who": f"p{i % 20}", "speed": a, "cheap": b, "chosen": int(j == chosen)}
            for j, (a, b) in enumerate(x)
        ]
    frame = pd.DataFrame(rows)
    frame.to_csv(folder / "trips.csv", index=False)
    frame.drop(columns="chosen").to_csv(folder / "new.csv", index=False)
    encoder = TableEncoder.fit(frame, set_id="trip", target="chosen", target_kind="choice", ignore=["who"])
    model = DiscreteChooser(FATE(width=8), **TINY)
    model.fit(encoder(frame).sets)
    model.save(folder / "trips.entourage")
    return folder


def test_a_model_with_effects_of_positions_is_reported_without_intervals(products, tmp_path):
    frame = pd.read_csv(products / "products.csv").query("offer < 40")
    frame.assign(slot=frame.groupby("offer").cumcount()).to_csv(tmp_path / "shown.csv", index=False)
    roles = {"set_id": "offer", "target": "place", "position": "slot"}
    model = Ranker(FATE(width=8), steps=4, device="cpu", random_state=0)
    model.fit(pd.read_csv(tmp_path / "shown.csv"), **roles).save(tmp_path / "m.entourage")
    found = invoke(
        tmp_path / "m.entourage",
        tmp_path / "shown.csv",
        "--draws",
        0,
        "--json",
        "--report",
        tmp_path / "e.html",
    )
    assert found.exception is None, found.exception
    assert "effects of positions, and refits learn none" in json.loads(found.stdout)["no_intervals"]


def run_command(folder, table, *options):
    files = [folder / "trips.entourage", folder / table, "--report", folder / "page.html"]
    result = invoke(*files, "--draws", 0, *options)
    assert result.exception is None, result.exception
    return result


@pytest.fixture(scope="module")
def resampled(trips):
    """What the command prints with refits to resampled people, on both streams."""
    options = ["--help-row", 3, "--against", 5, "--less-is-better", "speed", "--json"]
    return run_command(trips, "trips.csv", "--group", "who", "--refits", 2, *options)


def test_the_command_resamples_people_and_says_so(trips, resampled, monkeypatch):
    found = json.loads(resampled.stdout)
    assert "2 refits, for confidence intervals: about" in resampled.stderr
    assert (found["groups"], found["no_intervals"]) == (20, None)
    entry = found["iia_violation"]
    assert entry["interval"][0] <= entry["estimate"] <= entry["interval"][1]
    assert entry["reference"] > 0
    assert found["natural_effects"]["extrapolated"] is False
    assert [menu["n"] for menu in found["menus"]] == [30] * 4
    monkeypatch.setattr("entourage.effects.refits.REFITS", 2)
    monkeypatch.setattr("entourage.effects.refits.LEAST_REFITS", 2)
    told = run_command(trips, "trips.csv", "--group", "who").stdout  # as many by default now
    assert "refits to 20 resampled groups" in told
    assert f"95 % CI [{entry['interval'][0]:.4f}, {entry['interval'][1]:.4f}]" in told
    assert told.count("offered 30 times: row ") == 2
    page = (trips / "page.html").read_text()
    headline = re.search(r'<p class="headline">(.*?)</p>', page).group(1)
    low, high = entry["interval"]
    assert ("IIA violations" in headline) == (low > 0 or high < 0)
    assert headline.startswith(
        ("Significant context effects at level 0.05: ", "No significant context effect at")
    )
    assert "Repeated choice sets" in page
    assert "refits to 20 resampled groups" in page
    assert "context-ablated control" in page
    monkeypatch.setattr("entourage.cli.effects._PATIENCE", 0.0)
    late = json.loads(run_command(trips, "trips.csv", "--json").stdout)
    assert late["no_intervals"].endswith("no confidence intervals. Ask for them by --refits 2.")


def test_a_table_without_its_target_has_no_intervals(trips):
    told = run_command(trips, "new.csv").stdout
    assert "TABLE has no column 'chosen': no refits, so no confidence intervals." in told
    found = json.loads(run_command(trips, "new.csv", "--json").stdout)
    assert found["iia_violation"]["interval"] is found["context_test"] is None
    assert found["menus"] == []


def test_a_table_in_python_gives_what_the_command_prints(trips, resampled):
    model, frame = load(trips / "trips.entourage").set_params(device="cpu"), pd.read_csv(trips / "trips.csv")
    better = {"speed": "less"}
    found = effects_report(model, frame, groups="who", refits=2, pair=(3, 5), better=better, draws=0)
    assert json.dumps(found.to_json()) == resampled.stdout.strip()
    assert found.pair.map.names == ("speed", "cheap")
    assert sorted(found.rows.tolist()) == list(range(len(frame)))
