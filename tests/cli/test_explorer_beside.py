"""The explorer beside a page of compare or effects: what runs in it, and why there is none."""

import importlib.util
import re

import numpy as np
import pandas as pd
import pytest
from commands import run

from entourage import FATE, DiscreteChooser
from entourage.baselines import LinearRanker
from entourage.cli.explorer_beside import SHOWN_SETS, Shown, write_beside
from entourage.cli.outputs import check_explorer
from entourage.errors import UserError


class Made:
    """Records what explore is asked for, and refuses some models."""

    def __init__(self, refused=()):
        self.calls, self.refused = [], refused

    def __call__(self, model, frame, **options):
        self.calls.append((model, frame, options))
        for one in (model, options["compare"]):
            if one in self.refused:
                raise UserError(f"{one} has no graph.")
        return self

    def save(self, path):
        path.write_text("an explorer")


@pytest.fixture
def made(monkeypatch):
    found = Made()
    monkeypatch.setattr("entourage.serving.explorer.explore", found)
    return found


@pytest.fixture(scope="module")
def trips():
    """A table of choices, rows of a set apart, and a small net fitted to it."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"trip": np.repeat(np.arange(150), 3), "cost": rng.random(450), "time": rng.random(450)}
    )
    frame["taken"] = (frame.groupby("trip")["cost"].rank() == 1).astype(int)
    frame = frame.sample(frac=1, random_state=0, ignore_index=True)
    model = DiscreteChooser(FATE(width=4), steps=3, random_state=0)
    return frame, model.fit(frame, set_id="trip", target="taken", target_kind="choice")


def test_sets_with_buttons_come_first_and_the_object_is_selected(made, trips, tmp_path):
    frame, model = trips
    rows = [int(frame.index[frame.trip == trip][k]) for trip, k in ((149, 2), (3, 0), (149, 1))]
    shown = [Shown(row, f"about {row}") for row in rows]
    live = write_beside(
        tmp_path / "sub e.html", tmp_path / "p.html", [("net", model)], frame, shown, title="T"
    )
    assert live.href == "sub%20e.html"
    assert "net runs beside the context-ablated control" in live.text
    ((_, table, options),) = made.calls
    ids = list(dict.fromkeys(table.column("trip").to_pylist()))
    assert ids[:2] == [149, 3]
    assert len(ids) == SHOWN_SETS
    for row, preset in zip(rows, options["presets"], strict=True):
        own = [i for i, trip in enumerate(table.column("trip").to_pylist()) if trip == ids[preset.set]]
        assert table.column("cost")[own[preset.selected]].as_py() == frame.cost[row]
        assert (preset.name, preset.text) == (f"Set {frame.trip[row]}", f"about {row}")


def test_a_rival_or_a_model_that_cannot_run_in_a_page_is_left_out_and_named(monkeypatch, trips, tmp_path):
    frame, model = trips
    explorer = tmp_path / "e.html"
    refusing = Made(refused=["trees"])
    monkeypatch.setattr("entourage.serving.explorer.explore", refusing)
    live = write_beside(explorer, None, [("net", model)], frame, rival=("boosted", "trees"), title="T")
    assert "net beside boosted: trees has no graph." in live.text
    assert [call[2]["names"] for call in refusing.calls] == [("net", "boosted"), ("net",)]
    assert explorer.exists()
    explorer.unlink()
    refusing.refused = ["trees", model]
    live = write_beside(explorer, None, [("net", model)], frame, title="T")
    assert (live.href, explorer.exists()) == ("", False)
    assert live.text.startswith("There is no explorer. net: DiscreteChooser")


def test_an_explorer_that_is_the_report_is_refused_before_any_work(tmp_path):
    with pytest.raises(UserError, match="--explorer and the report are the same file"):
        check_explorer(tmp_path / "a.html", tmp_path / "a.html")


def test_a_real_page_of_a_model_and_its_rival_is_written(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"race": np.repeat(np.arange(20), 3), "x": rng.random(60), "place": np.tile([0, 1, 2], 20)}
    )
    models = [LinearRanker(relative=own).fit(frame, set_id="race", target="place") for own in (True, False)]
    named = list(zip(["relative", "linear"], models, strict=True))
    live = write_beside(tmp_path / "e.html", tmp_path / "p.html", named[:1], frame, rival=named[1], title="T")
    assert (tmp_path / "e.html").stat().st_size > 3_000_000
    assert "relative runs beside linear, the best that sees no context: change" in live.text


@pytest.fixture
def races(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"race": np.repeat(np.arange(30), 4), "a": rng.random(120), "b": rng.random(120)})
    frame["place"] = frame.groupby("race")["a"].rank().astype(int)
    frame.to_csv(tmp_path / "races.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return [
        "races.csv",
        "--set-id",
        "race",
        "--target",
        "place",
        "--workers",
        "1",
        "--steps",
        "3",
        "--folds",
        "2",
    ]


def test_compare_links_to_a_page_of_the_chosen_net_beside_the_best_without_context(
    races, made, tmp_path, capsys
):
    models = ["--models", "linear,FATE,FATE ablated"]
    code, out, err = run(capsys, "compare", *races, *models, "--explorer", "e.html")
    assert code == 0, err
    assert "Explorer: e.html" in out
    page = (tmp_path / "comparison.html").read_text()
    assert '<a href="e.html">Open the explorer.</a>' in page
    ((model, _, options),) = made.calls
    assert options["names"][0] == "FATE"
    assert options["compare"] is not None
    assert repr(model).startswith("Ranker(")
    assert re.search(r'<p class="headline">(No s|S)ignificant context effect', page)
    assert page.count("<nav") == 1
    assert "&lt;" not in re.search(r'<p class="headline">(.*?)</p>', page).group(1)


def test_without_the_extra_compare_says_so_at_once_and_writes_its_page(races, tmp_path, monkeypatch, capsys):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "onnxscript" else found(name)
    )
    code, out, err = run(capsys, "compare", *races, "--models", "linear,FATE", "--explorer", "e.html")
    assert code == 0, err
    words = "An explorer needs onnxscript: run pip install 'entourage[onnx]'."
    assert f"There will be no explorer. {words}" in err
    assert f"There is no explorer. {words}" in out
    assert words.replace("'", "&#39;") in (tmp_path / "comparison.html").read_text()
    assert not (tmp_path / "e.html").exists()


def test_effects_links_to_a_page_of_its_model_with_the_most_influential_objects(
    made, trips, tmp_path, capsys
):
    frame, model = trips
    frame.to_csv(tmp_path / "t.csv", index=False)
    model.save(tmp_path / "m.entourage")
    asked = ["--refits", 0, "--draws", 0, "--report", tmp_path / "p.html", "--explorer", tmp_path / "e.html"]
    code, out, err = run(capsys, "effects", tmp_path / "m.entourage", tmp_path / "t.csv", *asked)
    assert code == 0, err
    assert f"Explorer: {tmp_path / 'e.html'}" in out
    page = (tmp_path / "p.html").read_text()
    assert '<a href="e.html">Open the explorer.</a> In it, m runs beside' in page
    assert len(made.calls[0][2]["presets"]) == 3
    code, _, _ = run(capsys, "effects", tmp_path / "m.entourage", tmp_path / "t.csv", *asked[:6])
    assert "With the option --explorer explorer.html" in (tmp_path / "p.html").read_text()
    assert code == 0
    assert len(made.calls) == 1
