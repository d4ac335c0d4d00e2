"""What a page of the explorer holds, before any browser opens it."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from entourage import FATE, ContextFree, DiscreteChooser, Ranker
from entourage.baselines import LinearRanker
from entourage.data import make_medoid
from entourage.decisions.auditing import AuditRange
from entourage.errors import DataError, ParameterError
from entourage.serving import explore
from entourage.serving.explorer import page as module
from entourage.serving.explorer.cells import show_sets
from entourage.serving.explorer.control import has_control
from entourage.serving.explorer.page import MODULES, WEB, Preset, script_of_page


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "trip": np.repeat(np.arange(40), 3),
            "mode": np.tile(["bus", "train", "</script><script>alert(1)</script>"], 40),
            "cost": rng.uniform(1, 9, 120),
            "fast": rng.random(120) < 0.5,
            "rain": np.repeat(rng.random(40), 3),
        }
    )
    frame.loc[5, "cost"] = np.nan
    frame.loc[7, "mode"] = None
    frame["taken"] = (frame.groupby("trip").cumcount() == 0).astype(int)
    return frame


@pytest.fixture(scope="module")
def chooser(table):
    return DiscreteChooser(ContextFree(width=4), steps=5, random_state=0).fit(
        table, set_id="trip", target="taken", situation=["rain"]
    )


@pytest.fixture
def quick(monkeypatch):
    """No graph is made: what is tested is the page around it."""
    monkeypatch.setattr(module, "_onnx", lambda model: b"no model")


def data_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL).group(1))


def test_cells_are_values_places_of_levels_and_nothing(table, chooser):
    shown = show_sets(chooser, table, label="mode")
    assert [(c.name, c.kind) for c in shown.columns] == [
        ("mode", "level"),
        ("cost", "number"),
        ("fast", "flag"),
    ]
    assert [c.name for c in shown.situation] == ["rain"]
    first = shown.sets[0]
    levels = shown.columns[0].levels
    assert [levels[int(place)] for place in first.cells[:, 0]] == table["mode"][:3].tolist()
    assert first.cells[:, 1].tolist() == table["cost"][:3].tolist()
    assert first.labels == table["mode"][:3].tolist()
    assert first.situation.tolist() == [table["rain"][0]]
    assert np.isnan(shown.sets[1].cells[2, 1])
    assert np.isnan(shown.sets[2].cells[1, 0])
    other = show_sets(chooser, table.assign(mode="ship"))
    assert (other.sets[0].cells[:, 0] == -1).all()
    assert other.columns[0].low == -1


def test_columns_of_whole_numbers_are_known(table, chooser):
    shown = show_sets(chooser, table.assign(cost=table["cost"].round()))
    assert [column.whole for column in shown.columns] == [False, True, True]
    assert not show_sets(chooser, table).columns[1].whole


def test_a_text_that_stands_for_a_missing_value_is_nothing_in_every_column(table):
    gaps = table.astype({"cost": object, "fast": object})
    marked = gaps.assign(cost=table["cost"].map("{:.3f}".format), mode=table["mode"].fillna("n/a"))
    marked.loc[5, "cost"] = " -- "
    gaps["cost"] = marked["cost"].where(marked["cost"] != " -- ", None).astype(float)
    marked.loc[8, "mode"], gaps.loc[8, "mode"] = " -- ", None
    gaps.loc[7, "mode"] = None
    model = DiscreteChooser(ContextFree(width=4), steps=5, random_state=0).fit(
        marked, set_id="trip", target="taken", missing=["--", "n/a"]
    )
    shown, wanted = show_sets(model, marked), show_sets(model, gaps)
    assert np.isnan(shown.sets[1].cells[2, 1])
    assert np.isnan(shown.sets[2].cells[2, 0])
    for one, other in zip(shown.sets, wanted.sets, strict=True):
        np.testing.assert_array_equal(one.cells, other.cells)


def test_rows_in_another_order_are_the_same_sets(table, chooser):
    shown = show_sets(chooser, table)
    mixed = show_sets(chooser, table.sample(frac=1, random_state=0).sort_values("trip", kind="stable"))
    for one, other in zip(shown.sets, mixed.sets, strict=True):
        assert one.id == other.id
        assert sorted(map(str, one.cells.tolist())) == sorted(map(str, other.cells.tolist()))


def test_large_sets_and_many_sets_are_cut_and_said():
    X = np.random.default_rng(0).normal(size=(12, 50, 2))
    model = LinearRanker().fit(X, X[..., 0].argsort(1).argsort(1))
    shown = show_sets(model, X, most_sets=5)
    assert len(shown.sets) == 5
    assert shown.left_out == 7
    assert {(len(one.cells), one.left_out) for one in shown.sets} == {(30, 20)}
    again = show_sets(model, X, most_sets=5)
    assert all((a.cells == b.cells).all() for a, b in zip(shown.sets, again.sets, strict=True))


def test_no_name_in_a_table_ends_the_script(table, chooser, quick):
    page = explore(chooser, table, label="mode").page
    assert "</script><script>alert" not in page
    assert data_of(page)["sets"][0]["labels"][2] == "</script><script>alert(1)</script>"
    assert not re.findall(r'(?:src|href)="(?!data:|#)', page)


def test_the_page_knows_the_model(table, chooser, quick):
    found = data_of(
        explore(chooser, table, price="cost", names=("mine",), presets=(Preset("one", 3, 1),)).page
    )
    assert (found["task"], found["outsides"], found["models"]) == ("choice", [False], ["mine"])
    assert found["price"] == 1
    assert 1 in (found["x"], found["y"])
    assert found["sets"][1]["rows"][2][1] is None
    assert found["presets"][0] == {"name": "one", "set": 3, "selected": 1, "text": ""}
    assert (found["set_column"], found["label_column"], found["control"]) == ("trip", None, True)
    over = AuditRange.of(table["cost"].to_numpy())
    assert found["columns"][1]["audited"] == vars(over)
    assert found["columns"][0]["audited"] is None
    assert explore(chooser, table).page == explore(chooser, table).page
    frame = explore(chooser, table)._repr_html_()
    assert frame.startswith("<iframe")
    assert "<script" not in frame


def test_wrong_inputs_are_told(table, chooser, quick):
    X, ranks = make_medoid(n_sets=30, n_features=2, random_state=0)
    ranker = Ranker(FATE(width=4), steps=2, random_state=0).fit(X, ranks)
    for error, words, call in [
        (ParameterError, "numeric column", lambda: explore(chooser, table, price="mode")),
        (ParameterError, "-1", lambda: explore(chooser, table, price="cost", sign=2)),
        (ParameterError, "has not", lambda: explore(chooser, table, presets=(Preset("x", 99),))),
        (DataError, "other columns", lambda: explore(chooser, table, compare=ranker)),
        (DataError, "table", lambda: explore(chooser, X)),
        (DataError, "arrays", lambda: explore(ranker, X, label="mode")),
        (DataError, "MB", lambda: module.explore(chooser, pd.concat([table] * 1))),
    ]:
        if words == "MB":
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(module, "MOST_BYTES", 1000)
                with pytest.raises(error, match=words):
                    call()
            continue
        with pytest.raises(error, match=words):
            call()


def test_every_module_of_the_page_is_in_it():
    assert {path.stem for path in WEB.glob("*.js")} == {*MODULES, "types"}
    script = script_of_page()
    assert not re.search(r"^(import|export) ", script, re.MULTILINE)
    assert "innerHTML" not in script
    assert "fetch(" not in script
    for path in WEB.glob("*.js"):  # each after those it takes from
        taken = re.findall(r'^import .* from "\./(\w+)\.js";$', path.read_text(), re.MULTILINE)
        assert all(MODULES.index(one) < MODULES.index(path.stem) for one in taken), path.stem
        assert len(path.read_text().splitlines()) <= 300


def test_rankers_have_probabilities_only_where_they_were_calibrated(quick):
    X, ranks = make_medoid(n_sets=60, n_features=2, random_state=0)
    ranker = Ranker(FATE(width=4), steps=2, random_state=0).fit(X, ranks)
    assert data_of(explore(ranker, X[:2]).page)["temperatures"] == [pytest.approx(ranker.temperature_)]
    assert data_of(explore(LinearRanker().fit(X, ranks), X[:2]).page)["temperatures"] == [None]


def test_log_probabilities_say_nothing_of_an_object_outside_of_its_set():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4, 2))

    class Blend(LinearRanker):
        def _packed_scores(self, sets):
            scores = np.exp(super()._packed_scores(sets))
            totals = np.add.reduceat(scores, sets.offsets[:-1])
            return np.log(scores / np.repeat(totals, sets.sizes))

    ranks = X[..., 0].argsort(1).argsort(1)
    assert has_control(LinearRanker().fit(X, ranks), X)
    assert not has_control(Blend().fit(X, ranks), X)
