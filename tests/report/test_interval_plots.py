"""Interval plots of a page: places on one scale, and numbers beside every picture."""

import math
import re

import pytest

from entourage.report import IntervalPlot, Line, Live, Mark, Section, Table, write_report


def plot(*lines, **others):
    return IntervalPlot("gain", "what", "mean", list(lines), **others)


def test_places_are_proportional_and_the_ends_of_all_intervals_are_inside():
    drawn = plot(Line("a", 1.0, (0.0, 2.0), ""), Line("b", 3.0, (2.0, 4.0), ""))
    a, b = (drawn.drawn(line) for line in drawn.lines)
    assert a.bar[0] == 100 - b.bar[1] == 4
    assert a.bar[1] == b.bar[0] == 50
    assert (a.point, b.point) == (27, 73)
    assert drawn.ticks == [(4, "0"), (27, "1"), (50, "2"), (73, "3"), (96, "4")]


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        ((-0.25, 0.1), ["−0.2", "−0.1", "0", "0.1"]),
        ((0.9912, 0.9931), ["0.9915", "0.992", "0.9925", "0.993"]),
        ((-3000.0, 12000.0), ["0", "5000", "10000"]),
        ((5.0, 5.0), ["4", "6"]),
    ],
)
def test_ticks_are_round_numbers_in_few_digits(ends, words):
    assert [text for _, text in plot(Line("a", ends[0], ends, "")).ticks] == words


def test_what_is_undefined_is_not_drawn_and_what_is_infinite_ends_at_the_edge():
    drawn = plot(
        Line("none", None, None, "no case", marks=(None,)),
        Line("nan", math.nan, (math.nan, 1.0), "", marks=(math.nan,)),
        Line("wide", 1.0, (-math.inf, math.inf), "", marks=(0.0,)),
        marks=(Mark("control", "cross"),),
    )
    none, nan, wide = (drawn.drawn(line) for line in drawn.lines)
    for one in (none, nan):
        assert (one.point, one.bar, one.marks) == (None, None, [])
    assert wide.bar == (4, 96)
    assert [x for x, _ in wide.marks] == [4]
    assert plot(Line("none", None, None, "")).ends == (0, 1)


def test_a_page_has_headline_contents_plots_with_numbers_and_folded_tables(tmp_path):
    lines = [
        Line("<i>net", 0.5, (0.25, 0.75), "0.5 [0.25, 0.75]", "a note", "p = 0.01", "context", best=True)
    ]
    sections = [
        Section("Gain", plots=[plot(*lines, zero=0.0, legend=(("context", "net"),))]),
        Section("Gain", folded=[("All numbers", Table(["a", "b"], [[("x", "text"), "1"]]))]),
        Section("…"),
    ]
    write_report(
        tmp_path / "r.html",
        "Title",
        "Lead.",
        sections,
        headline="It helps.",
        notes=["Left out."],
        live=Live("runs there", "a%20b.html", "Open it"),
    )
    page = (tmp_path / "r.html").read_text()
    order = [
        page.index(text)
        for text in ("<h1>Title", "It helps.", "Lead.", "Left out.", "Open it", "<nav", "<main")
    ]
    assert order == sorted(order)
    links = re.findall(r'<a href="#([\w-]+)">', page)
    assert links == re.findall(r'<section id="([\w-]+)">', page) == ["gain", "gain-2", "section"]
    assert '<a href="a%20b.html">' in page
    assert "&lt;i&gt;net" in page
    assert "<i>" not in page
    row = page[page.index("<tbody") : page.index("</tbody")]
    assert 'x1="34.67%" x2="96.0%"' in row
    assert re.search(r'class="numbers best">0.5 \[0.25, 0.75\]\s*<small>p = 0.01</small>', row)
    assert re.search(
        r"<details><summary>All numbers</summary>.*<td class=\"text\">x</td><td>1</td>", page, re.S
    )
    assert '<th scope="col" class="text">a</th>' in page
    assert re.findall(r"<h(\d)", page) == ["1", "2", "2", "2"], "headings in order"
    assert not re.search(r"<script|https?:|@import|url\(", page), "nothing runs, nothing is loaded"


def test_a_short_page_has_no_contents_and_no_empty_boxes(tmp_path):
    write_report(tmp_path / "r.html", "Title", "Lead.", [Section("One", "Text.")])
    page = (tmp_path / "r.html").read_text()
    for absent in ("<nav", 'class="headline"', 'class="note"', 'class="live', "<details", "<figure"):
        assert absent not in page
