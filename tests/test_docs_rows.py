"""Figures in pages are read from rows; what isn't there is an error."""

import importlib.util
import json
from pathlib import Path

import pytest

EXTENSION = Path(__file__).parents[1] / "docs" / "_ext" / "benchmark_rows.py"
pytest.importorskip("sphinx")


@pytest.fixture(scope="module")
def pages():
    spec = importlib.util.spec_from_file_location("benchmark_rows", EXTENSION)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def source(pages, tmp_path, monkeypatch):
    """Four rows: two seeds of a net, one of another, and one of another kind."""
    rows = [
        {"net": "FATE()", "n": 100, "p": 0.01, "score": {"mean": 0.90}, "a b": 7},
        {"net": "FATE()", "n": 300, "p": 0.20, "score": {"mean": 0.94}, "a b": 7},
        {"net": "FETA()", "n": 100, "p": 0.30, "score": {"mean": -0.50}, "a b": 7},
        {"what": "load"},
    ]
    (tmp_path / "some.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "whole.json").write_text(json.dumps({"machine": "x86_64", "rows": rows}))
    monkeypatch.setattr(pages, "FOLDERS", (tmp_path,))
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    return "some.jsonl"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{n, net == "FETA()"} sets', "100 sets"),
        ('{one(p, net == "FATE()" and n == 300):.1f}', "0.2"),
        ('{mean(score.mean, net == "FATE()"):.2f} ± {std(score.mean, net == "FATE()"):.3f}', "0.92 ± 0.028"),
        ("{100 * share(p <= 0.05, p > 0):.1f} %", "33.3 %"),
        ('{count(True, net != "FATE()")} of {count(True)}', "1 of 4"),
        ('{one(n, p == 0.2) / one(n, p == 0.3):.1f}×', "3.0×"),
        ('{row["a b"], net == "FETA()"}', "7"),
        ("{score.mean, p == 0.3:.2f}", "−0.50"),
        ("[{low(p < 0.05, p > 0):.3f}, {high(p < 0.05, p > 0):.3f}]", "[0.008, 0.906]"),  # Clopper, Pearson: 1 of 3
        ("{1000 * one(n, p == 0.3):,}", "100,000"),
    ],
)  # fmt: skip
def test_a_figure_is_what_the_rows_say(pages, source, text, expected):
    assert pages.fill(text, pages.read_rows(source)) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{n, net == "RankNet"}', "no row"),
        ("{n, p > 0}", "rows differ"),
        ('{speed, net == "FETA()"}', "a row has net, n, p"),
        ('{score.median, net == "FETA()"}', "median"),
        ("0.9 was typed", "no figure"),
    ],
)
def test_a_figure_that_rows_do_not_have_stops_the_build(pages, source, text, problem):
    with pytest.raises(pages.RowError, match=problem):
        pages.fill(text, pages.read_rows(source))


def test_what_a_file_says_once_holds_for_all_of_its_rows(pages, source):
    assert {row["machine"] for row in pages.read_rows("whole.json")} == {"x86_64"}
    with pytest.raises(pages.RowError, match=r"other\.json"):
        pages.read_rows("other.json")


TABLE = """
first = "net"
where = "p > 0"
by = "net"
total = "all"
blank = "–"
bold = {score = "most"}

[names]
"`FATE()`" = "FATE()"
FETA = "FETA()"

[columns]
"n = 300" = "{p, n == 300:.1f}"
score = "{mean(score.mean):.2f}"
"""


def test_a_table_has_a_line_for_each_value(pages, source):
    assert pages.table(source, TABLE).splitlines() == [
        "| net | n = 300 | score |",
        "| --- | ---: | ---: |",
        "| `FATE()` | 0.2 | **0.92** |",
        "| FETA | – | −0.50 |",
        "| all | 0.2 | 0.45 |",
    ]


def test_lines_may_be_conditions(pages, source):
    body = "[lines]\nfew = 'n == 100'\n[columns]\nrows = '{count(True)}'"
    assert pages.table(source, body).splitlines()[-1] == "| few | 2 |"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("FETA()", "RankSVM"), "no row for the line 'FETA'"),
        (('blank = "–"', ""), "no row for"),
        (("[columns]", "[colums]"), "unknown"),
    ],
)
def test_a_table_lacks_nothing(pages, source, change, problem):
    with pytest.raises(pages.RowError, match=problem):
        pages.table(source, TABLE.replace(*change))
